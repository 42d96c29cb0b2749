"""Raw bits, frequency tables, rANS and token groups (format.md, 7.8 to 7.10)."""

import struct
from collections import deque

from .bits import BinaryDecoder, Reader, check

LITERAL = 136
GROUP_BASE = {1: 0, 2: 11, 3: 5, 4: 3}  # r of 7.10, by the group size


def read_tables(reader: Reader, highest: int) -> list[list[tuple[int, int, int]]]:
    """Return the table of each context (7.9): symbol, frequency and rest of all 2048 slots."""
    count, data = reader.unpack("B"), reader.section()
    check(count or not data, f"{len(data)} bytes of tables; expected 0 for 0 contexts")
    coder, before = BinaryDecoder(data), [0] * (LITERAL + 1)
    tables: list[list[tuple[int, int, int]]] = []
    for _ in range(count):
        limit, main, last = (
            coder.tree(6, "limits"),
            coder.tree(8, "tokens"),
            coder.tree(8, "tokens"),
        )
        check(len(tables) < limit <= 40 and max(main, last) <= highest, "invalid table")
        frequencies, length = [0] * (LITERAL + 1), 0
        for token in range(last + 1):
            if token != main:
                context = length, min(14, before[token].bit_length())
                length = min(14, coder.tree(4, "lengths", *context))
                frequencies[token] = length
                if length > 1:
                    n = min(3, length - 1)
                    frequencies[token] = (1 << n | coder.tree(n, "fractions")) << (length - 1 - n)
        frequencies[main] = 2048 - sum(frequencies)
        check(frequencies[main] > 0, "a table whose sum is not 2048")
        table = [(s, f, place) for s, f in enumerate(frequencies) for place in range(f)]
        tables += [table] * (limit - len(tables))
        before = frequencies
    check(len(tables) in (0, 40), "tables that end before context 40")
    coder.end()
    return tables


class RawBits:
    """The raw bits of one level packet."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.position = raw, 0

    def bits(self, count: int) -> int:
        """Return the next raw bits (7.8)."""
        first, shift = divmod(self.position, 8)
        self.position += count
        return int.from_bytes(self.raw[first : first + 9], "little") >> shift & (1 << count) - 1

    def value(self, token: int, literal_bits: int) -> int:
        """Return the folded residual of a token, or the bits of a literal (7.8)."""
        if token < 16:
            return token
        if token == LITERAL:
            return self.bits(literal_bits)
        width = (token - 16 >> 1) + 3
        return (2 | token & 1) << width | self.bits(width)

    def end(self) -> None:
        """Check that all raw bits were read."""
        check((self.position + 7) // 8 == len(self.raw), "too many or too few raw bits")


class Packet(RawBits):
    """Decodes the tokens and raw bits of one level packet."""

    def __init__(self, symbols: bytes, raw: bytes, states: int, tables, groups, size: int) -> None:
        super().__init__(raw)
        check(len(symbols) >= 4 * states and len(symbols) % 2 == 0, "invalid length of symbols")
        self.states = deque(struct.unpack_from(f"<{states}I", symbols))
        self.words = deque(word for (word,) in struct.iter_unpack("<H", symbols[4 * states :]))
        self.tables, self.groups, self.size = tables, groups, size

    def symbol(self, table: list[tuple[int, int, int]]) -> int:
        """Return the next symbol (7.9)."""
        state = self.states.popleft()
        symbol, frequency, rest = table[state & 2047]
        state = frequency * (state >> 11) + rest
        if state < 1 << 16 and self.words:
            state = state << 16 | self.words.popleft()
        self.states.append(state)
        return symbol

    def tokens(self, contexts: list[int], is_run: bool) -> list[int]:
        """Return the tokens of consecutive points, of a run in groups (7.10)."""
        check(self.tables or not contexts, "tokens without frequency tables")
        size, base, tokens = self.size, GROUP_BASE[self.size], [-1] * len(contexts)
        for first in range(0, len(tokens) // size * size if is_run and size > 1 else 0, size):
            symbol = self.symbol(self.groups[contexts[0]])
            check(symbol <= base**size, "a symbol above the escape of a group")
            if symbol < base**size:
                tokens[first : first + size] = [symbol // base**i % base for i in range(size)]
        return [
            self.symbol(self.tables[context]) if token < 0 else token
            for token, context in zip(tokens, contexts)
        ]

    def end(self) -> None:
        """Check that all raw bits and words were read, and that the states are final."""
        super().end()
        check(not self.words and max(self.states) <= 1 << 16, "too many or too few words")
