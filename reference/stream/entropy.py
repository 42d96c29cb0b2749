"""Frequency tables, rANS symbols, groups of tokens and raw bits (format.md, 7.8 to 7.10)."""

import struct

from .bits import BinaryDecoder, check, probabilities

LITERAL = 136
ESCAPE_BASE = {1: 0, 2: 11, 3: 5, 4: 3}  # r of 7.10, by the size of groups


def read_tables(count: int, data: bytes, highest: int) -> list[list[tuple[int, int, int]]]:
    """Decode `count` tables (7.9); return one for each of the 40 contexts, or none of them.

    A table has for each of its 2048 slots: the symbol, its frequency, and the slot's place in it.
    """
    check(count or not data, "bytes in place of no tables")
    coder = BinaryDecoder(data)
    limits, tokens, fractions = probabilities(64), probabilities(256), probabilities(16)
    lengths = probabilities(225 * 16)
    tables: list[list[tuple[int, int, int]]] = []
    before = [0] * (LITERAL + 1)
    for _ in range(count):
        limit, main, last = coder.tree(limits, 6), coder.tree(tokens, 8), coder.tree(tokens, 8)
        check(len(tables) < limit <= 40 and max(main, last) <= highest, "a table out of order")
        frequencies, length = [0] * (LITERAL + 1), 0
        for token in range(last + 1):
            if token != main:
                context = 15 * length + min(14, before[token].bit_length())
                length = min(14, coder.tree(lengths, 4, 16 * context))
                frequencies[token] = length
                if length > 1:
                    n = min(3, length - 1)
                    fraction = (1 << n) + coder.tree(fractions, n)
                    frequencies[token] = fraction << (length - 1 - n)
        frequencies[main] = 2048 - sum(frequencies)
        check(frequencies[main] > 0, "a table whose sum is not 2048")
        table = [(s, f, place) for s, f in enumerate(frequencies) for place in range(f)]
        tables += [table] * (limit - len(tables))
        before = frequencies
    check(len(tables) in (0, 40), "tables that end before context 40")
    coder.end()
    return tables


class Symbols:
    """Decodes symbols with interleaved rANS states (7.9)."""

    def __init__(self, data: bytes, states: int) -> None:
        check(len(data) >= 4 * states and len(data) % 2 == 0, "coded tokens of a wrong length")
        self.states = list(struct.unpack_from(f"<{states}I", data))
        self.words = struct.unpack_from(f"<{(len(data) - 4 * states) // 2}H", data, 4 * states)
        self.turn = self.word = 0

    def next(self, table: list[tuple[int, int, int]]) -> int:
        """Return the next symbol under `table`."""
        state = self.states[self.turn]
        symbol, frequency, place = table[state & 2047]
        state = frequency * (state >> 11) + place
        if state < 1 << 16 and self.word < len(self.words):
            state = state << 16 | self.words[self.word]
            self.word += 1
        self.states[self.turn] = state
        self.turn = (self.turn + 1) % len(self.states)
        return symbol

    def end(self) -> None:
        """Check that all words were read, and the states are those of an encoder's beginning."""
        check(self.word == len(self.words) and max(self.states) <= 1 << 16, "words are left")


class RawBits:
    """Reads bits from bytes, the lowest first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> int:
        """Return the next `count` bits, at most 64."""
        first = self.at >> 3
        window = int.from_bytes(self.data[first : first + 9], "little") >> (self.at & 7)
        self.at += count
        return window & ((1 << count) - 1)

    def end(self) -> None:
        """Check that no byte is missing or left."""
        check((self.at + 7) >> 3 == len(self.data), "raw bits are left, or missing")


class Tokens:
    """Decodes runs of tokens, in groups or alone, and their raw bits."""

    def __init__(self, tables, groups, size: int, symbols: Symbols, raw: RawBits) -> None:
        self.tables, self.groups, self.size = tables, groups, size
        self.symbols, self.raw = symbols, raw

    def decode(self, contexts: list[int], grouped: bool, bits: int) -> list[tuple]:
        """Return folded residuals, and the bits of literals or None, of consecutive points."""
        return [self.value(token, bits) for token in self.run(contexts, grouped)]

    def run(self, contexts: list[int], grouped: bool) -> list[int]:
        """Return the tokens of consecutive points; of a grouped run all contexts are equal."""
        check(self.tables or not contexts, "values without tables")
        size, base, tokens = self.size, ESCAPE_BASE[self.size], [-1] * len(contexts)
        for first in range(0, len(tokens) // size * size if grouped and size > 1 else 0, size):
            check(self.groups, "groups without tables")
            symbol = self.symbols.next(self.groups[contexts[0]])
            check(symbol <= base**size, "a symbol above the escape of a group")
            if symbol < base**size:
                tokens[first : first + size] = [symbol // base**i % base for i in range(size)]
        return [
            self.symbols.next(self.tables[context]) if token < 0 else token
            for token, context in zip(tokens, contexts, strict=True)
        ]

    def value(self, token: int, bits: int) -> tuple[int, int | None]:
        """Return the folded residual of a token, and the bits of a literal."""
        if token < 16:
            return token, None
        if token == LITERAL:
            return 0, self.raw.take(bits)
        check(token < LITERAL, "a token above 136")
        width = (token - 16 >> 1) + 3
        return (2 + (token & 1)) << width | self.raw.take(width), None
