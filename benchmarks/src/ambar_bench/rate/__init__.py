"""The study of rate and distortion: bytes at equal PSNR."""
