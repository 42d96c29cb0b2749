"""Arrays of every type and of unusual shapes."""

from __future__ import annotations

import numpy as np

RANDOM = np.random.default_rng(7)


def samples() -> dict[str, np.ndarray]:
    """Return an array of each type, and the odd shapes."""
    numbers = {
        name: (RANDOM.normal(size=(37, 11)) * 50).astype(name)
        for name in [
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ]
    }
    for name in ("uint8", "uint16", "uint32", "uint64"):
        numbers[name] = RANDOM.integers(0, 200, (37, 11)).astype(name)
    words = ["", "ambar", "Bernstein", "depo ☃", "x" * 300]
    return numbers | {
        "bool": RANDOM.random((37, 11)) > 0.5,
        "big_endian": np.arange(40, dtype=">f8").reshape(5, 8),
        "fortran": np.asfortranarray(RANDOM.random((13, 7))),
        "strided": RANDOM.random((20, 20))[::2, ::-3],
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308]),
        "text": np.array(words[:4] * 5).reshape(4, 5),
        "text_bytes": np.array([b"a", b"bcd", b""]),
        "strings": np.array(words * 3, dtype=object).reshape(3, 5),
        "byte_strings": np.array([b"", b"\0\1", b"x" * 1000], dtype=object),
        "days": np.array(["2024-02-29", "NaT", "1969-12-31"], dtype="M8[D]"),
        "nanoseconds": np.arange(5).astype("M8[ns]"),
        "durations": np.array([1, -5, 7], dtype="m8[25s]"),
        "scalar": np.array(3.5),
        "empty": np.empty((0, 3), np.float32),
        "no_rows": np.empty((4, 0), np.int64),
        "one": np.array([7], np.uint8),
        "five_dimensions": RANDOM.integers(0, 9, (2, 3, 4, 5, 6)),
        "large": np.cumsum(RANDOM.normal(size=300_000)).reshape(1000, 300),
    }
