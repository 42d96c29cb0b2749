"""The length of classic NetCDF files (versions 1, 2 and 5), checked against their header.

libnetcdf reads zeros after the end of a truncated file, without an error.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import BinaryIO

from ambar import _core

SIGNATURES = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
"""The first bytes of classic files: 32-bit offsets, 64-bit offsets, 64-bit data."""

_SIZES = (1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8)
"""Bytes of a value of the types 1 (byte) to 11 (unsigned 64-bit integer)."""


def refuse_truncated(path: Path) -> None:
    """Raise CorruptError if a classic NetCDF file is shorter than its header states."""
    found = path.stat().st_size
    with path.open("rb") as file:
        version = file.read(4)
        if version not in SIGNATURES:
            return
        try:
            expected = _Header(file, version[3], found).data_end()
        except EOFError:
            raise _core.CorruptError(
                f"expected a file longer than its header, found {found:,} bytes: the file was cut "
                "short; restore it from a copy"
            ) from None
    if found < expected:
        raise _core.CorruptError(
            f"expected {expected:,} bytes as the header states, found {found:,}: the file was cut "
            "short; restore it from a copy"
        )


class _Header:
    """Reads a header; raises EOFError where the file ends.

    libnetcdf reports all other errors of headers.
    """

    def __init__(self, file: BinaryIO, version: int, size: int) -> None:
        self._file = file
        self._left = size - file.tell()
        self._count_bytes = 8 if version == 5 else 4
        self._offset_bytes = 4 if version == 1 else 8

    def data_end(self) -> int:
        """Return the position after the last value, without padding, which writers may omit."""
        records = self._count()
        lengths = [self._dimension() for _ in range(self._list_length())]
        self._skip_attributes()
        fixed_ends = [0]
        record_parts: list[tuple[int, int]] = []  # position and bytes in the first record
        for _ in range(self._list_length()):
            self._skip_name()
            dims = [self._count() for _ in range(self._count())]
            self._skip_attributes()
            value_bytes = self._value_bytes()
            self._count()  # the bytes of the variable, which overflow in large files
            begin = self._integer(self._offset_bytes)
            if any(dim >= len(lengths) for dim in dims):
                return 0
            shape = [lengths[dim] for dim in dims]
            is_record = bool(shape) and shape[0] == 0
            part = math.prod(shape[is_record:]) * value_bytes
            if is_record:
                record_parts.append((begin, part))
            elif part:
                fixed_ends.append(begin + part)
        is_unknown = records == 256**self._count_bytes - 1
        if not record_parts or not records or is_unknown:
            return max(fixed_ends)
        # Only the part of a variable that is alone in the records has no padding.
        is_alone = len(record_parts) == 1
        record = sum(part if is_alone else _padded(part) for _, part in record_parts)
        return max(*fixed_ends, *(at + (records - 1) * record + part for at, part in record_parts))

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise EOFError

    def _integer(self, size: int) -> int:
        self._take(size)
        return int.from_bytes(self._file.read(size), "big")

    def _count(self) -> int:
        return self._integer(self._count_bytes)

    def _skip(self, count: int) -> None:
        self._take(count)
        self._file.seek(count, 1)

    def _list_length(self) -> int:
        self._integer(4)  # the tag of the list
        return self._count()

    def _skip_name(self) -> None:
        self._skip(_padded(self._count()))

    def _dimension(self) -> int:
        self._skip_name()
        return self._count()

    def _value_bytes(self) -> int:
        number = self._integer(4)
        return _SIZES[number - 1] if 0 < number <= len(_SIZES) else 0

    def _skip_attributes(self) -> None:
        for _ in range(self._list_length()):
            self._skip_name()
            value_bytes = self._value_bytes()
            self._skip(_padded(self._count() * value_bytes))


def _padded(count: int) -> int:
    return -(-count // 4) * 4
