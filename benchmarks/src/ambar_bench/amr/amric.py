"""AMRIC's schemes, reproduced in Rust: `benchmarks/amr/amric`, which Cargo builds on first use."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar_bench.amr.hierarchy import Values

SCHEMES = ("1d", "lorenzo-regression", "interpolation-linear", "interpolation-clustered")
"""The schemes, in the library's order."""
_ROOT = Path(__file__).resolve().parents[4]


class _Blocks(ctypes.Structure):
    _fields_ = (
        ("scheme", ctypes.c_uint32),
        ("value_size", ctypes.c_uint32),
        ("count", ctypes.c_size_t),
        ("side", ctypes.c_size_t),
    )


def lacking() -> list[str]:
    """Return what is missing to build the library: Cargo, or ambar's source tree."""
    missing = []
    if shutil.which("cargo") is None:
        missing.append("Cargo")
    if not (_ROOT / "benchmarks/amr/amric/Cargo.toml").is_file():
        missing.append("ambar's source tree")
    return missing


def encode(scheme: str, values: Values, bound: float) -> bytes:
    """Return the stream of unit blocks (n, u, u, u), or of any array with the scheme "1d".

    Raises
    ------
    ValueError
        If the values are not a whole number of unit blocks, or the bound is not valid.
    """
    values = np.ascontiguousarray(values)
    library = _library()
    stream, length = ctypes.c_void_p(), ctypes.c_size_t()
    _check(
        library.amric_encode(
            _blocks(scheme, values),
            values.ctypes.data,
            bound,
            ctypes.byref(stream),
            ctypes.byref(length),
        )
    )
    try:
        return ctypes.string_at(stream, length.value)
    finally:
        library.amric_free(stream, length)


def decode(scheme: str, stream: bytes, dtype: str, shape: tuple[int, ...]) -> Values:
    """Return the values of a stream.

    Raises
    ------
    ValueError
        If the stream is damaged, or is not one of this scheme, type and shape.
    """
    values: Values = np.zeros(shape, dtype)
    blocks = _blocks(scheme, values)
    _check(_library().amric_decode(blocks, stream, len(stream), values.ctypes.data))
    return values


def _blocks(scheme: str, values: Values) -> _Blocks:
    if values.dtype not in (np.float32, np.float64):
        raise ambar.InvalidError(f"expected float32 or float64 values, found {values.dtype}")
    side = 1
    if scheme != "1d":
        if values.ndim != 4 or len(set(values.shape[1:])) != 1:
            raise ambar.InvalidError(f"expected unit blocks (n, u, u, u), found {values.shape}")
        side = values.shape[-1]
    return _Blocks(SCHEMES.index(scheme), values.itemsize, values.size, side)


def _check(message: bytes | None) -> None:
    if message is not None:
        raise ambar.InvalidError(message.decode())


@cache
def _library() -> Any:
    command = ["cargo", "build", "--release", "--locked", "--package", "ambar-amric"]
    built = subprocess.run(  # noqa: S603 - a fixed command
        [*command, "--message-format", "json-render-diagnostics"],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    (path,) = (
        name
        for message in messages
        if message.get("target", {}).get("name") == "ambar_amric"
        for name in message.get("filenames", [])
    )
    library = ctypes.CDLL(path)
    library.amric_encode.argtypes = (
        _Blocks,
        ctypes.c_void_p,
        ctypes.c_double,
        ctypes.c_void_p,
        ctypes.c_void_p,
    )
    library.amric_encode.restype = ctypes.c_char_p
    library.amric_decode.argtypes = (_Blocks, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
    library.amric_decode.restype = ctypes.c_char_p
    library.amric_free.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.amric_free.restype = None
    return library
