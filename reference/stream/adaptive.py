"""The adaptive coder of tokens (format.md, 7.18)."""

from .bits import BinaryDecoder
from .entropy import RawBits

FIRST = 0, 1, 2, 3, 5  # magnitude of each class below the last


def expected(context: int) -> int:
    """Return 512 m + 8, where m is the magnitude that a context expects."""
    return (7 if context % 2 else 5) << context // 2 + 1


class Probability:
    """A probability of 1, in parts of 2^22."""

    def __init__(self, one: int = 1 << 21) -> None:
        self.one, self.count = one, 3

    def adapt(self, bit: int) -> None:
        """Follow a decision."""
        weight = 65536 // self.count
        self.one += ((1 << 22) - self.one) * weight >> 16 if bit else -(self.one * weight >> 16)
        self.count = min(self.count + 1, 64)


class AdaptivePacket(RawBits):
    """Decodes the tokens and raw bits of one level packet."""

    def __init__(self, symbols: bytes, raw: bytes) -> None:
        super().__init__(raw)
        self.coder, self.probabilities = BinaryDecoder(symbols), {}
        self.one, self.two = 0, 0  # the magnitudes of the token before, and of the one before it

    def decide(self, *names: tuple) -> int:
        """Return a bit under the mean of four probabilities, given by name."""
        all_four = []
        for name in names:
            if name not in self.probabilities:
                p = 1 << 21
                if name[0] == "class":
                    m = expected(name[2]) - 8
                    p = (m << 22) // (m + 512)
                self.probabilities[name] = Probability(p)
            all_four.append(self.probabilities[name])
        p = sum(x.one for x in all_four) >> 8
        bit = self.coder.bit_with(min(max(p, 1), 65535))
        for x in dict.fromkeys(all_four):
            x.adapt(bit)
        return bit

    def alone(self, *name) -> int:
        """Return a bit under one probability."""
        return self.decide(name, name, name, name)

    def token(self, context: int) -> int:
        """Return the next token."""
        mean = expected(context) // 2 + 4 + 64 * (3 * self.one + self.two)
        octave = mean.bit_length() - 1
        suggested = min(39, 2 * (octave - 3) + (mean >> octave - 1 & 1))
        total = min(7, 2 * self.one + self.two)
        kind = 0
        while kind < 5 and self.decide(
            ("class", "context", context, kind),
            ("class", "sum", context, total, kind),
            ("class", "suggested", suggested, kind),
            ("class", "suggested", suggested, kind),
        ):
            kind += 1
        self.two = self.one
        if kind == 5:
            length = 0
            while length < 60 and self.alone("length", suggested, length):
                length += 1
            second = self.alone("second", length) if length < 60 else 0
            self.one = min(2048, 2 + second << min(length + 2, 10))
            return 16 + 2 * length + second
        magnitude = FIRST[kind]
        if kind == 3:
            magnitude += self.alone("three")
        if kind == 4:
            high = self.alone("five")
            magnitude += 2 * high + self.alone("five", high)
        self.one = magnitude
        if magnitude in (0, 8):
            return 15 if magnitude else 0
        return 2 * magnitude - 1 + self.coder.bit_with(1 << 15)

    def tokens(self, contexts: list[int], _: bool) -> list[int]:
        """Return the tokens of consecutive points; contexts by row and by plane have no runs."""
        return [self.token(context) for context in contexts]

    def end(self) -> None:
        """Check that all raw bits and bytes were read."""
        super().end()
        self.coder.end()
