"""Files of figures: pictures, and movies of many of them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.output_files import published, write_error
from ambar.figures.panels import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOVIES = (".mp4", ".mkv", ".mov", ".webm")
"""Suffixes of movies that ffmpeg writes."""


def save_figure(figure: Figure, target: Path, dpi: int = 150) -> Path:
    """Write a figure of matplotlib, and return the path of the file, which is whole or not written.

    Raises ValueError if matplotlib does not support the suffix, OSError if writing fails.
    """
    known = figure.canvas.get_supported_filetypes()
    if target.suffix.removeprefix(".").lower() not in known:
        raise _core.InvalidError(
            f"{target}: invalid format of a picture {target.suffix!r}; must be one of "
            f"{', '.join('.' + name for name in sorted(known))}"
        )
    with published(target, replace=True) as scratch, style():
        try:
            figure.savefig(scratch, bbox_inches="tight", dpi=dpi)
        except OSError as error:
            raise write_error(error, target) from error
    return target


def write_movie(figures: Iterable[Figure], target: Path, *, rate: float, dpi: int) -> Path:
    """Write figures of equal size as a movie, and return its path.

    A suffix of a movie, such as .mp4, needs the program ffmpeg or the package imageio-ffmpeg. A
    path that ends in .gif becomes an animated picture, one without a suffix a folder of numbered
    PNG files.

    Raises
    ------
    ValueError
        If the suffix is another one.
    ModuleNotFoundError
        If ffmpeg is needed and not installed.
    OSError
        If writing fails.
    """
    writers: dict[str, Callable[..., None]] = {"": _write_frames, ".gif": _write_gif}
    writers |= dict.fromkeys(_MOVIES, _write_ffmpeg)
    suffix = target.suffix.lower()
    if suffix not in writers:
        raise _core.InvalidError(
            f"{target}: invalid format of a movie {suffix!r}; must be one of "
            f"{', '.join(_MOVIES)}, .gif, or a folder without a suffix"
        )
    program = _ffmpeg() if suffix in _MOVIES else ""
    with published(target, replace=True) as scratch:
        options = {"rate": rate, "program": program}
        writers[suffix](_pixels(figures, dpi), scratch, **options)
    return target


def _pixels(figures: Iterable[Figure], dpi: int) -> Iterator[np.ndarray]:
    """Yield the colours (height, width, 3) of figures; all are as large as the first one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    shape: tuple[int, int] | None = None
    for figure in figures:
        with style():
            figure.set_dpi(dpi)
            canvas: Any = FigureCanvasAgg(figure)
            canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3]
        # Encoders of movies need an even number of pixels.
        shape = shape or (pixels.shape[0] // 2 * 2, pixels.shape[1] // 2 * 2)
        frame = np.full((*shape, 3), 255, np.uint8)
        height, width = (min(a, b) for a, b in zip(shape, pixels.shape[:2], strict=True))
        frame[:height, :width] = pixels[:height, :width]
        yield frame


def _write_frames(frames: Iterator[np.ndarray], target: Path, **_: Any) -> None:
    from PIL import Image

    target.mkdir()
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(target / f"frame_{number:04d}.png")


def _write_gif(frames: Iterator[np.ndarray], target: Path, *, rate: float, **_: Any) -> None:
    from PIL import Image

    images = (Image.fromarray(frame).quantize(256) for frame in frames)
    first = next(images)
    first.save(
        target,
        save_all=True,
        append_images=images,
        duration=round(1000 / rate),
        loop=0,
        optimize=False,
    )


def _write_ffmpeg(frames: Iterator[np.ndarray], target: Path, *, rate: float, program: str) -> None:
    first = next(frames)
    height, width = first.shape[:2]
    command = [
        *(program, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"),
        *("-s", f"{width}x{height}", "-r", f"{rate:g}", "-i", "-"),
        *("-an", "-pix_fmt", "yuv420p", "-crf", "18", str(target)),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:  # noqa: S603 - no shell
        stdin: Any = process.stdin
        try:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(first.tobytes())
                for frame in frames:
                    stdin.write(frame.tobytes())
            _, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        message = errors.decode(errors="replace").strip()
        raise OSError(f"{target.name}: ffmpeg failed: {message or process.returncode}")


def _ffmpeg() -> str:
    """Return the program ffmpeg: the installed one, or that of imageio-ffmpeg."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "a movie needs the program ffmpeg, or pip install imageio-ffmpeg; without them write "
            "a .gif, or a folder of frames"
        ) from None
    return str(imageio_ffmpeg.get_ffmpeg_exe())
