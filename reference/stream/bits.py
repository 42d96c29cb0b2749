"""Errors, checksums, numbers and the binary coder (format.md, chapter 3, 7.1, 7.2 and 9.2)."""

import contextlib
import struct
import zipfile
from collections import defaultdict


class DamagedError(ValueError):
    """The bytes differ from those that were written."""


class UnsupportedError(ValueError):
    """The bytes need a newer version of this decoder, or other codecs."""


def check(condition: object, message: str, error: type[ValueError] = DamagedError) -> None:
    """Raise an error unless `condition` holds."""
    if not condition:
        raise error(message)


@contextlib.contextmanager
def damage():
    """Raise `DamagedError` in place of the errors that damaged bytes cause."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError,
            StopIteration, TypeError, struct.error, zipfile.BadZipFile) as error:  # fmt: skip
        raise DamagedError(f"damaged: {error}") from error


CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [c >> 1 ^ 0x82F63B78 * (c & 1) for c in CRC_TABLE]


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data` (chapter 3)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(data: bytes) -> bytes:
    """Return `data` without the CRC-32C at its end, which is verified."""
    check(len(data) >= 4, "too few bytes for a checksum")
    check(crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), "the checksum differs")
    return bytes(data[:-4])


class Reader:
    """Reads the parts of a stream from its front (7.1)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        """Return the next `length` bytes."""
        check(length <= len(self.data) - self.at, "the stream ends too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def unpack(self, form: str):
        """Return one little-endian value of a `struct` format."""
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def number(self) -> int:
        """Return the next number (7.2)."""
        value = 0
        for shift in range(0, 63, 7):
            byte = self.unpack("B")
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamagedError("a number of more than nine bytes")

    def section(self) -> bytes:
        """Return the bytes of the next section."""
        return self.take(self.number())

    def end(self) -> None:
        """Check that nothing is left."""
        check(self.at == len(self.data), f"{len(self.data) - self.at} bytes after the end")


class BinaryDecoder:
    """The binary coder (7.2). A context is the name of its probability."""

    def __init__(self, data: bytes) -> None:
        self.range, self.code = 0xFFFFFFFF, int.from_bytes(data[:4].ljust(4, b"\0"), "big")
        self.bytes, self.probabilities = iter(data[4:]), defaultdict(lambda: 2048)

    def narrow(self, start: int, length: int) -> None:
        """Continue with a part of the range."""
        self.code, self.range = self.code - start, length
        while self.range < 1 << 24:
            self.range <<= 8
            self.code = (self.code << 8 | next(self.bytes, 0)) & 0xFFFFFFFF

    def bit(self, *context) -> int:
        """Return one bit."""
        p = self.probabilities[context]
        limit = (self.range >> 12) * p
        if self.code >= limit:
            self.probabilities[context] = p - (p >> 4)
            self.narrow(limit, self.range - limit)
            return 1
        self.probabilities[context] = p + (4096 - p >> 4)
        self.narrow(0, limit)
        return 0

    def bit_with(self, p: int) -> int:
        """Return one bit, which is 1 with a probability of `p` in 65536 (7.18)."""
        limit = (self.range >> 16) * p
        if self.code < limit:
            self.narrow(0, limit)
            return 1
        self.narrow(limit, self.range - limit)
        return 0

    def tree(self, width: int, *context) -> int:
        """Return an integer of `width` bits."""
        number = 1
        for _ in range(width):
            number = 2 * number + self.bit(*context, number)
        return number - (1 << width)

    def integer64(self) -> int:
        """Return an integer below 2^64."""
        length = min(64, self.tree(7, "length"))
        value = min(1, length)
        for position in range(length - 2, -1, -1):
            value = 2 * value + self.bit("bit", length, position)
        return value

    def uniform(self, count: int) -> int:
        """Return an integer below `count`, all equally likely (9.2)."""
        part = self.range // count
        value = min(self.code // part, count - 1)
        self.narrow(value * part, part)
        return value

    def magnitude(self, most: int, *context) -> int:
        """Return an integer up to `most` (9.2)."""
        length = min(64, self.tree(most.bit_length().bit_length(), *context))
        if length < 2:
            return length
        top = min(3, length - 1)
        value, rest = 1 << top | self.tree(top, *context, length), length - 1 - top
        while rest:
            piece = min(16, rest)
            value, rest = value << piece | self.uniform(1 << piece), rest - piece
        return value

    def signed(self, most: int, *context) -> int:
        """Return a signed magnitude (9.2)."""
        folded = self.magnitude(most, *context)
        return folded >> 1 if folded % 2 == 0 else -(folded + 1 >> 1)

    def end(self) -> None:
        """Check that all bytes were read."""
        check(next(self.bytes, None) is None, "bytes after the coded bits")
