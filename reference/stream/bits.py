"""Numbers, checksums and the binary coder that all streams share (format.md, 7.1 and 7.2)."""

import contextlib
import struct

import numcodecs


class DamagedError(ValueError):
    """The bytes are not what was written."""


class UnsupportedError(ValueError):
    """The bytes need a newer version, or another program wrote them."""


def check(condition: object, message: str) -> None:
    """Raise `DamagedError` unless `condition` holds."""
    if not condition:
        raise DamagedError(message)


def check_supported(condition: object, message: str) -> None:
    """Raise `UnsupportedError` unless `condition` holds."""
    if not condition:
        raise UnsupportedError(message)


@contextlib.contextmanager
def damage(*errors: type[Exception]):
    """Raise `DamagedError` in place of these errors."""
    try:
        yield
    except errors as error:
        raise DamagedError(f"damaged: {error}") from error


def _crc_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in table]
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of `data`."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(data: bytes) -> bytes:
    """Return `data` without the CRC-32C at its end, which is verified."""
    check(len(data) >= 4, "no room for a checksum")
    check(crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), "the checksum differs")
    return bytes(data[:-4])


def unzip(data: bytes) -> bytes:
    """Return the content of a zstd frame."""
    with damage(RuntimeError):
        return numcodecs.Zstd().decode(data)


class Reader:
    """Reads the parts of a stream from its front."""

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
        """Return the next number (7.1): seven bits a byte, the lowest first."""
        value = 0
        for shift in range(0, 63, 7):
            byte = self.unpack("B")
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamagedError("a number of more than nine bytes")

    def section(self) -> bytes:
        """Return the next section: its length as a number, then its bytes."""
        return self.take(self.number())

    def end(self) -> None:
        """Check that nothing is left."""
        check(self.at == len(self.data), "bytes are left at the end of a stream")


def probabilities(count: int) -> list[int]:
    """Return `count` probabilities as they begin."""
    return [2048] * count


class BinaryDecoder:
    """The binary coder: bits under adaptive probabilities (7.2)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.range = data, 4, 0xFFFFFFFF
        self.code = int.from_bytes(data[:4].ljust(4, b"\0"), "big")

    def _fill(self) -> None:
        while self.range < 1 << 24:
            self.range <<= 8
            byte = self.data[self.at] if self.at < len(self.data) else 0
            self.code = (self.code << 8 | byte) & 0xFFFFFFFF
            self.at += 1

    def bit(self, p: list[int], number: int) -> int:
        """Return one bit under probability `number` of `p`, which adapts."""
        limit = (self.range >> 12) * p[number]
        bit = self.code >= limit
        if bit:
            self.code -= limit
            self.range -= limit
            p[number] -= p[number] >> 4
        else:
            self.range = limit
            p[number] += (4096 - p[number]) >> 4
        self._fill()
        return int(bit)

    def tree(self, p: list[int], width: int, first: int = 0) -> int:
        """Return `width` bits, the highest first, under a tree that begins at `first` of `p`."""
        number = 1
        for _ in range(width):
            number = 2 * number + self.bit(p, first + number)
        return number - (1 << width)

    def uniform(self, count: int) -> int:
        """Return a whole number below `count`, all equally likely (9.2)."""
        self.range //= count
        value = min(self.code // self.range, count - 1)
        self.code -= value * self.range
        self._fill()
        return value

    def end(self) -> None:
        """Check that all bytes were read."""
        check(self.at >= len(self.data), "bytes are left behind the coded bits")


class Whole:
    """Whole numbers of 64 bits with probabilities of their own (7.2)."""

    def __init__(self) -> None:
        self.lengths, self.bits = probabilities(128), probabilities(65 * 64)

    def decode(self, coder: BinaryDecoder) -> int:
        """Return the next number."""
        length = min(64, coder.tree(self.lengths, 7))
        value = 1 if length else 0
        for place in range(length - 2, -1, -1):
            value = 2 * value + coder.bit(self.bits, 64 * length + place)
        return value
