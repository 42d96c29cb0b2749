//! Token groups: several consecutive tokens as one symbol, because fewer symbols decode in less time.
//!
//! The tokens of a run, which have one context, are split into groups. A group of small tokens is one symbol, whose
//! digits are the tokens. Any other group is an escape symbol. The tokens of escapes, and the remainder of the run, are
//! coded one by one after the groups of the run.

use crate::entropy::CONTEXTS;
use crate::entropy::adaptive;
use crate::entropy::frequencies::Frequencies;
use crate::entropy::rans::{self, EncodeTables, SymbolContexts};
use crate::entropy::symbols::Symbols;
use crate::entropy::tables::{EncodedTables, Histogram, Tables};
use crate::entropy::token::has_raw_bits;
use crate::error::Result;
use crate::simd::dispatch::vectorised;

/// Maximum number of tokens of a group.
pub(crate) const MAX_GROUP_SIZE: usize = 4;
/// For each size: tokens of a group are below this, otherwise the group is an escape.
const RADIX: [u8; MAX_GROUP_SIZE + 1] = [0, 0, 11, 5, 3];

/// Maximum part of a stream that the overhead of level packets takes.
const MAX_OVERHEAD: f64 = 0.004;

/// The symbol of escapes, which follows those of the groups.
pub(crate) const fn escape(size: usize) -> u8 {
    (RADIX[size] as u32).pow(size as u32) as u8
}

/// The tokens of a group as a word, the first in the lowest byte.
#[inline(always)]
fn word<const SIZE: usize>(tokens: &[u8; SIZE]) -> u32 {
    let mut bytes = [0; MAX_GROUP_SIZE];
    bytes[..SIZE].copy_from_slice(tokens);
    u32::from_le_bytes(bytes)
}

/// The sum of `factor(k) << 8 k` over the tokens `k` of a group.
const fn word_of_factors<const SIZE: usize>(factors: [u32; SIZE]) -> u32 {
    let (mut word, mut k) = (0, 0);
    while k < SIZE {
        word |= factors[k] << (8 * k);
        k += 1;
    }
    word
}

/// Whether a group, given as a [`word`], is an escape.
#[inline(always)]
fn is_escape<const SIZE: usize>(word: u32) -> bool {
    // The highest bit of each byte is set in the sum if the token is at least `RADIX`. A carry comes from a byte whose
    // own highest bit is set.
    let limits = const { word_of_factors([0x80 - RADIX[SIZE] as u32; SIZE]) };
    (word | word.wrapping_add(limits)) & 0x8080_8080 != 0
}

/// The symbol of a group, given as a [`word`].
#[inline(always)]
fn symbol<const SIZE: usize>(word: u32) -> u8 {
    // The sum of the products of tokens and powers of `RADIX` is in the byte of the last token. Lower bytes do not
    // overflow into it.
    let powers = const {
        let (mut powers, mut k) = ([1; SIZE], SIZE - 1);
        while k > 0 {
            powers[k - 1] = powers[k] * RADIX[SIZE] as u32;
            k -= 1;
        }
        word_of_factors(powers)
    };
    if is_escape::<SIZE>(word) {
        escape(SIZE)
    } else {
        (word.wrapping_mul(powers) >> (8 * (SIZE - 1))) as u8
    }
}

vectorised! {
    /// Writes the symbols of the groups of a run of tokens.
    fn write_symbols [const SIZE: usize] of [SIZE] (tokens: &[u8], symbols: &mut [u8]) {
        for (to, tokens) in symbols.iter_mut().zip(tokens.as_chunks::<SIZE>().0) {
            *to = symbol::<SIZE>(word(tokens));
        }
    }
}

vectorised! {
    /// The number of escapes if all tokens are grouped.
    fn count_escapes [const SIZE: usize] of [SIZE] (tokens: &[u8]) -> usize {
        let groups = tokens.as_chunks::<SIZE>().0;
        groups.iter().map(|tokens| u32::from(is_escape::<SIZE>(word(tokens)))).sum::<u32>() as usize
    }
}

/// The group size that gives the fewest symbols.
fn best_size(symbols: &Symbols) -> usize {
    let tokens = &symbols.tokens[..];
    let counts = [
        tokens.len(),
        tokens.len() / 2 + 2 * count_escapes::<2>(tokens),
        tokens.len() / 3 + 3 * count_escapes::<3>(tokens),
        tokens.len() / 4 + 4 * count_escapes::<4>(tokens),
    ];
    let best = (1..).zip(counts).min_by_key(|(_, count)| *count);
    best.map_or(1, |(size, _)| size)
}

/// How symbols are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenCoder {
    /// With frequency tables, and 8 or 32 rANS states.
    Rans { states: usize },
    /// With probabilities that adapt to earlier tokens.
    Adaptive,
}

/// The decoder of symbols.
pub(crate) enum TokenDecoder<'a> {
    Rans(rans::Decoder<'a>),
    Adaptive(adaptive::Decoder<'a>),
}

impl TokenDecoder<'_> {
    /// Decodes symbols.
    #[inline(always)]
    pub(crate) fn decode(&mut self, contexts: SymbolContexts<'_>, symbols: &mut [u8]) {
        match self {
            Self::Rans(decoder) => decoder.decode(contexts, symbols),
            Self::Adaptive(decoder) => decoder.decode(contexts, symbols),
        }
    }

    /// Checks that exactly all bytes were read.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn finish(&self) -> Result<()> {
        match self {
            Self::Rans(decoder) => decoder.finish(),
            Self::Adaptive(decoder) => decoder.finish(),
        }
    }
}

/// When tokens are coded adaptively.
#[derive(Clone, Copy)]
pub(crate) struct AdaptiveUse {
    /// Maximum bytes of the stream with frequency tables.
    pub max_bytes: usize,
    /// Maximum bytes of the adaptive stream, relative to those.
    pub max_ratio: f64,
}

impl AdaptiveUse {
    /// Any stream, if it becomes 2 % smaller. Its tokens decode up to ten times slower.
    pub(crate) const FOR_SIZE: Self = Self {
        max_bytes: usize::MAX,
        max_ratio: 0.98,
    };
    /// Only short streams, whose frequency tables take a large part.
    pub(crate) const FOR_SPEED: Self = Self {
        max_bytes: 1 << 14,
        max_ratio: 0.96,
    };
}

/// Entropy-coded symbols.
pub(crate) struct CodedTokens {
    /// Tokens of a group; 1 if tokens are coded one by one.
    pub size: usize,
    pub coder: TokenCoder,
    /// The tables in the order of the stream: those of groups, if there are any, then those of single tokens. Empty if the
    /// coder is adaptive.
    pub tables: Vec<EncodedTables>,
    pub packets: Vec<CodedPacket>,
}

/// A level packet: entropy-coded symbols and raw bits.
pub(crate) struct CodedPacket {
    pub symbols: Vec<u8>,
    pub raw: Vec<u8>,
}

impl CodedTokens {
    /// The bytes of the tables, of symbols and of raw bits.
    fn byte_count(&self) -> usize {
        let of_tables = self.tables.iter().map(|tables| tables.bytes.len());
        let of_packets = self.packets.iter().map(|x| x.symbols.len() + x.raw.len());
        of_tables.chain(of_packets).sum()
    }
}

/// The number of level packets into which symbols are split.
#[derive(Clone, Copy)]
pub(crate) enum PacketCount {
    /// Exactly this number.
    Exactly(usize),
    /// At most this number: as many as the overhead allows.
    AtMost(usize),
}

impl PacketCount {
    /// The number for symbols of this size.
    fn get(self, bytes: f64, states: usize) -> usize {
        match self {
            Self::Exactly(count) => count,
            Self::AtMost(most) => {
                // The states, two lengths and a checksum.
                let overhead = (4 * states + 10) as f64;
                most.min(1 + (bytes * MAX_OVERHEAD / overhead) as usize)
            }
        }
    }
}

/// The number of states for symbols of this size: more if their bytes are a small part.
fn states_for(bits: f64) -> usize {
    if bits > 8.0 * rans::WIDE_STATES_MIN_BYTES {
        rans::WIDE_STATES
    } else {
        rans::STATES
    }
}

/// Codes tokens in groups of the best size.
pub(crate) fn encode(symbols: &Symbols, packets: PacketCount) -> CodedTokens {
    match best_size(symbols) {
        2 => encode_groups::<2>(symbols, packets, None),
        3 => encode_groups::<3>(symbols, packets, None),
        4 => encode_groups::<4>(symbols, packets, None),
        _ => encode_tokens(symbols, packets, None),
    }
}

/// Codes tokens one by one, adaptively where this is allowed and shorter.
pub(crate) fn encode_ungrouped(
    symbols: &Symbols,
    packets: PacketCount,
    adaptive: AdaptiveUse,
) -> CodedTokens {
    let coded = encode_tokens(symbols, packets, None);
    let bytes = coded.byte_count();
    if bytes > adaptive.max_bytes {
        return coded;
    }
    let adapted = encode_adaptively(symbols, coded.packets.len());
    if adapted.byte_count() as f64 <= adaptive.max_ratio * bytes as f64 {
        adapted
    } else {
        coded
    }
}

/// Codes tokens one by one, without frequency tables.
fn encode_adaptively(symbols: &Symbols, count: usize) -> CodedTokens {
    let encode = |symbols: &Symbols| adaptive::encode(&symbols.contexts, &symbols.tokens);
    CodedTokens {
        size: 1,
        coder: TokenCoder::Adaptive,
        tables: Vec::new(),
        packets: encode_packets(symbols, count, encode),
    }
}

/// Codes tokens one by one, with a given number of states.
fn encode_tokens(symbols: &Symbols, packets: PacketCount, states: Option<usize>) -> CodedTokens {
    let histogram = Histogram::new(&symbols.contexts, &symbols.tokens);
    let single = histogram.tables(None);
    let bits = histogram.bits_under(&single);
    let states = states.unwrap_or_else(|| states_for(bits));
    let slots = EncodeTables::new(&single.frequencies);
    let encode = |symbols: &Symbols| {
        slots.encode_with(
            states,
            &single.table_of_context,
            &symbols.contexts,
            &symbols.tokens,
        )
    };
    let count = packets.get(bits / 8.0 + symbols.raw.bytes().len() as f64, states);
    CodedTokens {
        size: 1,
        coder: TokenCoder::Rans { states },
        tables: vec![single.encode()],
        packets: encode_packets(symbols, count, encode),
    }
}

/// Splits symbols into level packets, and encodes them.
fn encode_packets(
    symbols: &Symbols,
    count: usize,
    encode: impl Fn(&Symbols) -> Vec<u8>,
) -> Vec<CodedPacket> {
    let packet = |symbols: &Symbols| CodedPacket {
        symbols: encode(symbols),
        raw: symbols.raw.bytes().to_vec(),
    };
    match count {
        1 => vec![packet(symbols)],
        _ => symbols.split(count).iter().map(packet).collect(),
    }
}

/// The contexts and symbols of groups. Groups without a frequency in the tables become escapes.
fn groups<const SIZE: usize>(symbols: &Symbols, grouped: Option<&Tables>) -> [Vec<u8>; 2] {
    let room = symbols.tokens.len() / SIZE;
    let [mut contexts, mut groups] = [(); 2].map(|()| Vec::with_capacity(room));
    for (begin, count) in symbols.runs.iter().filter(|(_, count)| *count > 0) {
        let (first, count_of_groups) = (groups.len(), count / SIZE);
        groups.resize(first + count_of_groups, 0);
        write_symbols::<SIZE>(&symbols.tokens[*begin..begin + count], &mut groups[first..]);
        contexts.resize(groups.len(), symbols.contexts[*begin]);
    }
    if let Some(grouped) = grouped {
        escape_rare_groups::<SIZE>(&contexts, &mut groups, grouped);
    }
    [contexts, groups]
}

/// Replaces groups without a frequency in the tables, which are rare, by escapes.
fn escape_rare_groups<const SIZE: usize>(contexts: &[u8], groups: &mut [u8], grouped: &Tables) {
    // For each context, the symbol of each group.
    let symbols: [[u8; 256]; CONTEXTS] = std::array::from_fn(|context| {
        let frequencies = grouped
            .frequencies
            .get(usize::from(grouped.table_of_context[context]));
        let is_rare = |group: &usize| {
            let frequency = frequencies.and_then(|frequencies| frequencies.get(*group));
            frequency.is_none_or(|frequency| *frequency == 0)
        };
        std::array::from_fn(|group| {
            if is_rare(&group) {
                escape(SIZE)
            } else {
                group as u8
            }
        })
    });
    for (context, group) in contexts.iter().zip(groups) {
        *group = symbols[usize::from(*context)][usize::from(*group)];
    }
}

fn encode_groups<const SIZE: usize>(
    symbols: &Symbols,
    packets: PacketCount,
    states: Option<usize>,
) -> CodedTokens {
    let [contexts, mut of_all] = groups::<SIZE>(symbols, None);
    let of_groups = Histogram::new(&contexts, &of_all);
    let grouped = of_groups.tables(Some(escape(SIZE)));
    escape_rare_groups::<SIZE>(&contexts, &mut of_all, &grouped);
    let ordered = TokenSequence::new::<SIZE>(symbols, &of_all);
    let [single_bins, single] = &ordered.single;
    let histogram = Histogram::new(single_bins, single);
    let single = histogram.tables(None);
    let bits = of_groups.bits_under(&grouped) + histogram.bits_under(&single);
    let states = states.unwrap_or_else(|| states_for(bits));
    let (frequencies, table_of_context) = concat_tables(&single, &grouped);
    let slots = EncodeTables::new(&frequencies);
    let encode = |[contexts, symbols]: &[Vec<u8>; 2]| {
        slots.encode_with(states, &table_of_context, contexts, symbols)
    };
    let packets = match packets.get(bits / 8.0 + symbols.raw.bytes().len() as f64, states) {
        1 => encode_packets(symbols, 1, |_| encode(&ordered.all)),
        count => encode_packets(symbols, count, |symbols| {
            let [_, groups] = groups::<SIZE>(symbols, Some(&grouped));
            encode(&TokenSequence::new::<SIZE>(symbols, &groups).all)
        }),
    };
    CodedTokens {
        size: SIZE,
        coder: TokenCoder::Rans { states },
        tables: vec![grouped.encode(), single.encode()],
        packets,
    }
}

/// Contexts and symbols in coding order: all of them, and single tokens alone.
struct TokenSequence {
    all: [Vec<u8>; 2],
    single: [Vec<u8>; 2],
}

impl TokenSequence {
    fn new<const SIZE: usize>(symbols: &Symbols, groups: &[u8]) -> Self {
        let room = symbols.tokens.len() / 2;
        let mut ordered = Self {
            all: [(); 2].map(|()| Vec::with_capacity(room)),
            single: [(); 2].map(|()| Vec::with_capacity(room)),
        };
        let (mut end, mut left) = (0, groups);
        for (begin, count) in &symbols.runs {
            ordered.add_single(symbols, end, *begin);
            end = begin + count;
            let (of_run, rest) = left.split_at(count / SIZE);
            left = rest;
            let Some(context) = symbols.contexts.get(*begin) else {
                continue;
            };
            ordered.all[1].extend_from_slice(of_run);
            let grouped = ordered.all[1].len();
            ordered.all[0].resize(grouped, context + CONTEXTS as u8);
            let single = ordered.single[1].len();
            let (tokens, last) = symbols.tokens[*begin..end].as_chunks::<SIZE>();
            for (group, tokens) in of_run.iter().zip(tokens) {
                if *group == escape(SIZE) {
                    ordered.single[1].extend_from_slice(tokens);
                }
            }
            ordered.single[1].extend_from_slice(last);
            ordered.single[0].resize(ordered.single[1].len(), *context);
            for (all, single_of) in ordered.all.iter_mut().zip(&ordered.single) {
                all.extend_from_slice(&single_of[single..]);
            }
        }
        ordered.add_single(symbols, end, symbols.tokens.len());
        ordered
    }

    /// Appends tokens that are coded one by one.
    fn add_single(&mut self, symbols: &Symbols, begin: usize, end: usize) {
        for to in [&mut self.all, &mut self.single] {
            to[0].extend_from_slice(&symbols.contexts[begin..end]);
            to[1].extend_from_slice(&symbols.tokens[begin..end]);
        }
    }
}

/// Concatenates the tables of single tokens and of groups. Returns the frequencies, and the table of each context, where
/// the contexts of groups follow those of single tokens.
pub(crate) fn concat_tables(
    single: &Tables,
    grouped: &Tables,
) -> (Vec<Frequencies>, [u8; 2 * CONTEXTS]) {
    let mut table_of_context = [0; 2 * CONTEXTS];
    table_of_context[..CONTEXTS].copy_from_slice(&single.table_of_context);
    let of_groups = table_of_context[CONTEXTS..].iter_mut();
    for (table_of_context, table) in of_groups.zip(grouped.table_of_context) {
        *table_of_context = single.frequencies.len() as u8 + table;
    }
    let tables = single.frequencies.iter().chain(&grouped.frequencies);
    (tables.cloned().collect(), table_of_context)
}

/// The decoder of token groups, with its buffers.
pub(crate) struct Groups {
    size: usize,
    /// The tokens of each symbol, the first in the lowest byte.
    tokens: [u32; 256],
    groups: Vec<u8>,
    /// The indices of escapes.
    escapes: Vec<usize>,
    single: Vec<u8>,
}

/// The symbols of a decoded run of tokens.
pub(crate) struct RunSymbols {
    /// The number of tokens that were coded one by one.
    pub single: usize,
    /// The number of groups.
    pub groups: usize,
    /// Whether any token has raw bits.
    pub has_raw_bits: bool,
}

impl Groups {
    /// For groups of `size` tokens, 1 to `MAX_GROUP_SIZE`.
    pub(crate) fn new(size: usize) -> Self {
        let mut tokens = [0; 256];
        if size > 1 {
            let radix = u32::from(RADIX[size]);
            for (number, tokens) in (0..u32::from(escape(size))).zip(&mut tokens) {
                let digits = (0..size as u32).map(|k| number / radix.pow(k) % radix);
                *tokens = digits.rev().fold(0, |tokens, digit| tokens << 8 | digit);
            }
        }
        Self {
            size,
            tokens,
            groups: Vec::new(),
            escapes: Vec::new(),
            single: Vec::new(),
        }
    }

    /// Decodes a run of `count` tokens of a context. `tokens` must have space for `MAX_GROUP_SIZE` more.
    pub(crate) fn decode(
        &mut self,
        symbols: &mut TokenDecoder<'_>,
        context: u8,
        count: usize,
        tokens: &mut [u8],
    ) -> RunSymbols {
        match self.size {
            2 => self.run::<2>(symbols, context, count, tokens),
            3 => self.run::<3>(symbols, context, count, tokens),
            4 => self.run::<4>(symbols, context, count, tokens),
            _ => {
                let tokens = &mut tokens[..count];
                symbols.decode(SymbolContexts::Same(context), tokens);
                RunSymbols {
                    single: count,
                    groups: 0,
                    has_raw_bits: has_raw_bits(tokens),
                }
            }
        }
    }

    #[inline(always)]
    fn run<const SIZE: usize>(
        &mut self,
        symbols: &mut TokenDecoder<'_>,
        context: u8,
        count: usize,
        tokens: &mut [u8],
    ) -> RunSymbols {
        let n = count / SIZE;
        if self.groups.len() < n {
            self.groups.resize(n, 0);
        }
        let groups = &mut self.groups[..n];
        symbols.decode(SymbolContexts::Same(context + CONTEXTS as u8), groups);
        self.escapes.clear();
        expand::<SIZE>(&self.tokens, groups, tokens, &mut self.escapes);
        self.single
            .resize(SIZE * self.escapes.len() + count % SIZE, 0);
        symbols.decode(SymbolContexts::Same(context), &mut self.single);
        let (of_groups, of_rest) = self.single.as_chunks::<SIZE>();
        let (to, rest) = tokens[..count].as_chunks_mut::<SIZE>();
        for (from, escape) in of_groups.iter().zip(&self.escapes) {
            to[*escape] = *from;
        }
        rest.copy_from_slice(of_rest);
        RunSymbols {
            single: self.single.len(),
            groups: n,
            // The tokens of groups are small.
            has_raw_bits: has_raw_bits(&self.single),
        }
    }
}

vectorised! {
    /// Writes the tokens of groups, and appends the indices of escapes. `to` has space for `MAX_GROUP_SIZE` more.
    fn expand [const SIZE: usize] of [SIZE] (
        tokens: &[u32; 256],
        groups: &[u8],
        to: &mut [u8],
        escapes: &mut Vec<usize>,
    ) {
        let write = |group: u8, to: &mut [u8]| {
            if let Some(to) = to.first_chunk_mut::<MAX_GROUP_SIZE>() {
                *to = tokens[usize::from(group)].to_le_bytes();
            }
        };
        let (eights, rest) = groups.as_chunks::<8>();
        for (number, eight) in eights.iter().enumerate() {
            // One check of the length for eight groups.
            let to = &mut to[8 * SIZE * number..][..8 * SIZE + MAX_GROUP_SIZE];
            for (k, group) in eight.iter().enumerate() {
                write(*group, &mut to[SIZE * k..]);
            }
            let mut left = bytes_equal_to(escape(SIZE), *eight);
            while left != 0 {
                escapes.push(8 * number + left.trailing_zeros() as usize / 8);
                left &= left - 1;
            }
        }
        for (number, group) in (8 * eights.len()..).zip(rest) {
            write(*group, &mut to[SIZE * number..]);
            if *group == escape(SIZE) {
                escapes.push(number);
            }
        }
    }
}

/// A word whose highest bit of each byte is set if the byte is `value`.
#[inline(always)]
fn bytes_equal_to(value: u8, bytes: [u8; 8]) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    let difference = u64::from_le_bytes(bytes) ^ u64::from_ne_bytes([value; 8]);
    !(((difference & LOW) + LOW) | difference | LOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::rans::decode_table::DecodeTables;
    use crate::stream::properties::Random;

    const ONE: PacketCount = PacketCount::Exactly(1);

    /// Runs of two contexts with single tokens between them. `few` percent of the tokens are any token, the others are
    /// below `below`.
    fn symbols(few: u64, below: u64) -> Symbols {
        let mut random = Random(few + below);
        let mut symbols = Symbols::default();
        for run in 0..300 {
            if run % 7 == 0 {
                symbols.contexts.push(39);
                symbols.tokens.push((random.next() % 137) as u8);
            }
            let count = [0, 1, 2, 3, 64, 65, 130, 500][(random.next() % 8) as usize];
            symbols.runs.push((symbols.contexts.len(), count));
            for _ in 0..count {
                let most = if random.next() % 100 < few {
                    137
                } else {
                    below
                };
                symbols.contexts.push((run % 2) as u8);
                symbols.tokens.push((random.next() % most) as u8);
            }
        }
        symbols
    }

    fn decoded(coded: &CodedTokens, symbols: &Symbols) -> Vec<u8> {
        let decode = |tables: &EncodedTables| Tables::decode(&tables.bytes, tables.count).unwrap();
        let (single, grouped) = match &coded.tables[..] {
            [single] => (decode(single), Tables::empty()),
            [grouped, single] => (decode(single), decode(grouped)),
            tables => panic!("{} sections of tables", tables.len()),
        };
        let (frequencies, table_of_context) = concat_tables(&single, &grouped);
        let mut tables = DecodeTables::default();
        tables.set(&frequencies).unwrap();
        let context_tables = tables.context_tables(&table_of_context);
        let count = symbols.tokens.len();
        let TokenCoder::Rans { states } = coded.coder else {
            panic!("{:?}", coded.coder)
        };
        let bytes = &coded.packets[0].symbols;
        let decoder = rans::Decoder::new(&context_tables, bytes, count, states).unwrap();
        let mut decoder = TokenDecoder::Rans(decoder);
        let mut groups = Groups::new(coded.size);
        let mut tokens = vec![0; count + MAX_GROUP_SIZE];
        let mut end = 0;
        for (begin, count) in &symbols.runs {
            let contexts = SymbolContexts::Each(&symbols.contexts[end..*begin]);
            decoder.decode(contexts, &mut tokens[end..*begin]);
            end = begin + count;
            let context = symbols.contexts.get(*begin).copied().unwrap_or(0);
            groups.decode(&mut decoder, context, *count, &mut tokens[*begin..]);
        }
        decoder.finish().unwrap();
        tokens.truncate(count);
        tokens
    }

    #[test]
    fn groups_of_all_sizes_round_trip() {
        for (few, below) in [(0, 1), (1, 2), (2, 3), (5, 5), (10, 11), (100, 2)] {
            let symbols = symbols(few, below);
            for number in [rans::STATES, rans::WIDE_STATES] {
                let states = Some(number);
                let all = [
                    encode_tokens(&symbols, ONE, states),
                    encode_groups::<2>(&symbols, ONE, states),
                    encode_groups::<3>(&symbols, ONE, states),
                    encode_groups::<4>(&symbols, ONE, states),
                ];
                for (size, coded) in (1..).zip(&all) {
                    let coder = TokenCoder::Rans { states: number };
                    assert_eq!((coded.size, coded.coder), (size, coder));
                    let same = decoded(coded, &symbols) == symbols.tokens;
                    assert!(same, "{few} {below} {size} {number}");
                }
            }
        }
    }

    #[test]
    fn long_streams_are_adaptive_only_for_size() {
        // Magnitudes resemble the preceding ones, which the context does not state.
        let mut random = Random(3);
        let alternating = |count: usize| {
            let mut symbols = Symbols::default();
            for number in 0..count as u64 {
                symbols.contexts.push(5);
                let most = 1 + number / 64 % 2 * 10;
                symbols.tokens.push((random.next() % most) as u8);
            }
            symbols
        };
        let lengths = [2_000, 100_000].map(alternating);
        for (symbols, [speed, size]) in lengths.iter().zip([[true, true], [false, true]]) {
            for (adaptive, expected) in [
                (AdaptiveUse::FOR_SPEED, speed),
                (AdaptiveUse::FOR_SIZE, size),
            ] {
                let coded = encode_ungrouped(symbols, ONE, adaptive);
                assert_eq!(coded.coder == TokenCoder::Adaptive, expected);
                assert_eq!(coded.tables.is_empty(), expected);
            }
        }
    }

    #[test]
    fn long_streams_have_more_states() {
        for (below, states) in [(1, rans::STATES), (11, rans::WIDE_STATES)] {
            let coded = encode(&symbols(1, below), ONE);
            assert_eq!(
                coded.coder,
                TokenCoder::Rans { states },
                "{} bytes",
                coded.packets[0].symbols.len()
            );
        }
    }

    #[test]
    fn the_group_size_minimises_the_number_of_symbols() {
        for (few, below, size) in [(0, 1, 4), (1, 3, 4), (1, 5, 3), (1, 11, 2), (100, 2, 1)] {
            assert_eq!(
                encode(&symbols(few, below), ONE).size,
                size,
                "{few} {below}"
            );
        }
    }
}
