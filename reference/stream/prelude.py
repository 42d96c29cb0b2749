"""From coded values to values: mapped bounds, the minimum, exceptions (format.md, 7.13)."""

import numpy as np

from .bits import Reader, check

C = 0.07695
B = (1 - 4 * C) / 3
A = 1 - B - C
BEND = 1 / A


class Prelude:
    """The parts of a head that state how values are made of coded ones."""

    def __init__(self, reader: Reader, header: dict) -> None:
        self.dtype = np.dtype(header["dtype"])
        self.floor = self.unit = self.minimum = None
        self.exceptions = b""
        if header["bound"] == "mapped":
            relative, self.floor, self.unit = (reader.unpack("d") for _ in range(3))
            check(0 < relative < 1 and 0 <= self.floor < np.inf, "a relative bound out of range")
            check(2.0**-1022 <= self.unit < np.inf, "a unit out of range")
            self.exceptions = reader.section()
        if header["clamped"]:
            self.minimum = np.frombuffer(reader.take(self.dtype.itemsize), self.dtype)[0]

    def apply(self, coded: np.ndarray) -> np.ndarray:
        """Return the values."""
        values = coded if self.unit is None else self._mapped(coded)
        if self.minimum is not None:
            values = np.where(values < self.minimum, self.minimum, values)
        if self.exceptions:
            reader, at = Reader(self.exceptions), -1
            values = values.copy()
            for _ in range(reader.number()):
                at += reader.number() + 1
                check(at < len(values), "an exception outside of the values")
                values[at] = np.frombuffer(reader.take(self.dtype.itemsize), self.dtype)[0]
            reader.end()
        return values

    def _mapped(self, coded: np.ndarray) -> np.ndarray:
        y = coded.astype(np.float64)
        size = np.abs(y)
        linear = y * A * self.unit
        if self.floor < self.unit:
            linear[size < BEND / 2] = 0.0
        t = np.clip(np.nan_to_num(size - BEND, posinf=0.0), 0, 2046)
        k = np.floor(t).astype(np.int64)
        f = t - k
        p = 1 + f * (A + f * (B + f * C))
        value = self.unit * p * np.ldexp(1.0, k // 2) * np.ldexp(1.0, k - k // 2)
        x = np.where(size <= BEND, linear, np.copysign(value, y)).astype(self.dtype)
        return np.where(np.isfinite(y), x, coded)
