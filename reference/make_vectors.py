"""Writes `vectors`: streams of the encoder, and the values that this decoder computes from them.

Each vector is three files: `NAME.bin` the stream, `NAME.npy` its values in one dimension,
`NAME.json` its kind and the fields of its header. Run it after the golden streams changed.
"""

import json
import sys
from pathlib import Path

import numpy as np
import stream
from stream import packet, simplices

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "crates/ambar-codec/tests/golden"
MOST = 12_000  # bytes of values of a vector


def main() -> None:
    """Write all vectors."""
    folder = HERE / "vectors"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for source in sorted([*GOLDEN.glob("*.stream"), *GOLDEN.glob("*.packet")]):
        data = source.read_bytes()
        if source.suffix == ".packet":
            kind, fields = "packet", ("version", "form", "type", "flags")
            values = np.frombuffer(packet.decode(data), np.uint8)
        elif source.name.startswith("simplices"):
            kind, fields = "ambar.simplices", ("version", "size", "width", "flags")
            values = simplices.decode(data)
        else:
            kind, fields, values = "ambar", (), stream.decode(data)
        header = dict(zip(fields, data)) or stream.read_header(data)
        expected = source.with_suffix(".chunk" if kind == "packet" else ".values").read_bytes()
        if values.tobytes() != expected:
            sys.stderr.write(f"{source.name}: the decoded values differ from the encoded ones\n")
        elif values.nbytes <= MOST:
            (folder / f"{source.stem}.bin").write_bytes(data)
            np.save(folder / f"{source.stem}.npy", values)
            text = json.dumps({"kind": kind, "header": header, "values": values.size}, indent=1)
            (folder / f"{source.stem}.json").write_text(text + "\n")
    sys.stdout.write(f"{len(list(folder.glob('*.bin')))} vectors\n")


if __name__ == "__main__":
    main()
