//! A fast encoder of pco chunks: classic mode, consecutive differences, dyadic bins.
//!
//! Source: the format of pco, <https://github.com/pcodec/pcodec/blob/main/docs/format.md>.
//!
//! The crate `pco` searches for modes and for bins of any range. This encoder only has bins whose range is a
//! power of two, so that the bin of a value follows from its leading bits. It counts values in narrow bins, and
//! merges neighbouring bins while that makes the chunk smaller. It takes a quarter of the time for about the
//! same size of smooth and of noisy values. Any reader of pco decodes its chunks.

use bytemuck::Pod;

/// Values of a batch: its entropy-coded bits precede its offsets.
const BATCH: usize = 256;

/// Interleaved states of the entropy coder.
const STATES: usize = 4;

/// Bits after the leading one that keys of differences have.
const SIGNED_KEY_BITS: u32 = 4;

/// Bits of the keys of values.
const FLAT_KEY_BITS: u32 = 11;

/// Maximum number of keys.
const KEYS: usize = 1 << FLAT_KEY_BITS;

/// Maximum order of differences.
const MOST_DIFFERENCES: usize = 3;

/// Bits of metadata fields.
const VARIANT_BITS: u32 = 4;
const ORDER_BITS: u32 = 3;
const SIZE_LOG_BITS: u32 = 4;
const BIN_COUNT_BITS: u32 = 15;

/// Logarithm of the size of the largest table of the entropy coder, which a reader keeps in its cache.
const MOST_SIZE_LOG: u32 = 11;

/// Values in a sampled run, and number of runs, by which the order of differences is chosen.
const RUN: usize = 256;
const RUNS: usize = 8;

/// An unsigned integer that is in the order of the values.
pub(super) trait Latent: Copy + Ord + Pod {
    const BITS: u32;
    /// The latent of a signed integer, by its bits.
    fn of_signed(bits: Self) -> Self;
    /// The latent of a float, by its bits.
    fn of_float(bits: Self) -> Self;
    fn wide(self) -> u64;
    fn sign_extended(self) -> i64;
    fn narrow(wide: u64) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! latent {
    ($number:ty, $signed:ty) => {
        impl Latent for $number {
            const BITS: u32 = <$number>::BITS;
            #[inline(always)]
            fn of_signed(bits: Self) -> Self {
                bits ^ 1 << (Self::BITS - 1)
            }
            #[inline(always)]
            fn of_float(bits: Self) -> Self {
                let sign = (bits as $signed >> (Self::BITS - 1)) as Self;
                bits ^ (sign | 1 << (Self::BITS - 1))
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn sign_extended(self) -> i64 {
                (self as $signed).into()
            }
            #[inline(always)]
            fn narrow(wide: u64) -> Self {
                wide as Self
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    };
}

latent!(u32, i32);
latent!(u64, i64);

/// Appends the metadata and the page of a chunk. The latents are overwritten.
pub(super) fn encode<L: Latent>(latents: &mut [L], out: &mut Vec<u8>) {
    let order = choose_order(latents);
    let first = difference(latents, order);
    let stored = &latents[order.min(latents.len())..];
    let keys = Keys::of(stored, order);
    let (mut codes, counts) = keys.count(stored);
    let bins = keys.bins::<L>(&counts, stored.len());
    keys.replace_by_bins(&mut codes, &counts, &bins);
    let table = Table::new(&bins, stored.len());

    let offsets: u64 = bins
        .iter()
        .map(|bin| u64::from(bin.bits) * u64::from(bin.count))
        .sum();
    let bits = stored.len() as u64 * u64::from(table.size_log + 1) + offsets;
    let mut writer = BitWriter::new(out, 128 + 16 * bins.len() + (bits / 8) as usize);
    writer.write(0, VARIANT_BITS); // classic mode
    writer.write(u64::from(order > 0), VARIANT_BITS);
    if order > 0 {
        writer.write(order as u64, ORDER_BITS + 1);
    }
    writer.write(u64::from(table.size_log), SIZE_LOG_BITS);
    writer.write(bins.len() as u64, BIN_COUNT_BITS);
    // Differences are stored from the lowest one on.
    let centre = if order > 0 { 1 << (L::BITS - 1) } else { 0 };
    for (bin, symbol) in bins.iter().zip(&table.symbols) {
        writer.write(u64::from(symbol.weight) - 1, table.size_log);
        writer.write_wide(L::narrow(bin.lower ^ centre).wide(), L::BITS);
        writer.write(u64::from(bin.bits), L::BITS.ilog2() + 1);
    }
    writer.finish_byte();

    let (coded, states) = table.encode(&codes);
    for latent in first {
        writer.write_wide(latent.wide(), L::BITS);
    }
    for state in states {
        writer.write(u64::from(state), table.size_log);
    }
    writer.finish_byte();
    let batches = stored.chunks(BATCH).zip(codes.chunks(BATCH));
    for (number, (stored, codes)) in batches.enumerate() {
        if bins.len() > 1 {
            write_coded(&mut writer, &coded[number * BATCH..][..stored.len()]);
        }
        write_offsets(&mut writer, stored, codes, &bins);
    }
    writer.finish_byte();
    writer.finish();
}

fn write_coded(writer: &mut BitWriter<'_>, coded: &[Coded]) {
    for group in coded.chunks(STATES) {
        let (mut bits, mut length) = (0, 0);
        for coded in group {
            bits |= u64::from(coded.value) << length;
            length += u32::from(coded.bits);
        }
        writer.write(bits, length);
    }
}

fn write_offsets<L: Latent>(writer: &mut BitWriter<'_>, stored: &[L], codes: &[u16], bins: &[Bin]) {
    let offset = |latent: L, code: u16| {
        let bin = &bins[usize::from(code)];
        (latent.minus(L::narrow(bin.lower)).wide(), bin.bits)
    };
    match bins.iter().map(|bin| bin.bits).max().unwrap_or(0) {
        0 => {}
        1..=28 => {
            for (latents, codes) in stored.chunks(2).zip(codes.chunks(2)) {
                let (mut value, mut length) = offset(latents[0], codes[0]);
                if let ([_, latent], [_, code]) = (latents, codes) {
                    let (second, bits) = offset(*latent, *code);
                    value |= second << length;
                    length += bits;
                }
                writer.write(value, length);
            }
        }
        29..=MOST_BITS => {
            for (latent, code) in stored.iter().zip(codes) {
                let (value, bits) = offset(*latent, *code);
                writer.write(value, bits);
            }
        }
        _ => {
            for (latent, code) in stored.iter().zip(codes) {
                let (value, bits) = offset(*latent, *code);
                writer.write_wide(value, bits);
            }
        }
    }
}

/// The order of differences of the smallest estimated size, by sampled runs.
fn choose_order<L: Latent>(latents: &[L]) -> usize {
    if latents.len() < RUN {
        return 0;
    }
    let count = RUNS.min(latents.len() / RUN);
    let stride = (latents.len() - RUN) / (count - 1).max(1);
    let runs = (0..count).flat_map(|run| &latents[run * stride..][..RUN]);
    let mut runs: Vec<L> = runs.copied().collect();
    let mut best = (0, estimate(&runs, 0));
    for order in 1..=MOST_DIFFERENCES {
        let mut stored = Vec::with_capacity(runs.len());
        for run in runs.chunks_mut(RUN) {
            difference(&mut run[order - 1..], 1);
            stored.extend_from_slice(&run[order..]);
        }
        let size = estimate(&stored, order);
        if size >= best.1 {
            break;
        }
        best = (order, size);
    }
    best.0
}

/// Estimated bits per value.
fn estimate<L: Latent>(stored: &[L], order: usize) -> f32 {
    let keys = Keys::of(stored, order);
    let (_, counts) = keys.count(stored);
    let tree = Tree::new::<L>(stored.len());
    let bins = keys.bins::<L>(&counts, stored.len());
    let costs = bins.iter().map(|bin| tree.cost(bin.count, bin.bits));
    costs.sum::<f32>() / stored.len() as f32
}

/// Replaces latents by their differences, `order` times, and returns the first latent of each time. They are
/// in the same places, before the differences.
fn difference<L: Latent>(latents: &mut [L], order: usize) -> Vec<L> {
    let mut first = Vec::with_capacity(order);
    for done in 0..order {
        let Some((start, later)) = latents[done..].split_first_mut() else {
            break;
        };
        first.push(*start);
        let mut before = *start;
        for latent in later {
            let value = *latent;
            *latent = value.minus(before);
            before = value;
        }
    }
    first
}

/// A bin: the `1 << bits` latents from `lower` on. Lower bounds of negative differences wrap around.
#[derive(Clone, Copy, Debug)]
struct Bin {
    lower: u64,
    bits: u32,
    count: u32,
}

/// The leading bits of latents, which determine their bins.
#[derive(Clone, Copy)]
enum Keys {
    /// Of differences: the leading bits of the magnitude, and then the sign as the lowest bit.
    Signed,
    /// Of values: the leading bits above the minimum.
    Flat { minimum: u64, shift: u32 },
}

impl Keys {
    fn of<L: Latent>(stored: &[L], order: usize) -> Self {
        if order > 0 {
            return Self::Signed;
        }
        let minimum = stored.iter().min().map_or(0, |latent| latent.wide());
        let maximum = stored.iter().max().map_or(0, |latent| latent.wide());
        let bits = u64::BITS - (maximum - minimum).leading_zeros();
        Self::Flat {
            minimum,
            shift: bits.saturating_sub(FLAT_KEY_BITS),
        }
    }

    /// The key of each latent, and how often each occurs.
    fn count<L: Latent>(self, stored: &[L]) -> (Vec<u16>, Vec<u32>) {
        let keys: Vec<u16> = match self {
            Self::Signed => (stored.iter())
                .map(|latent| {
                    let value = latent.sign_extended();
                    let sign = value >> 63;
                    let magnitude = (value ^ sign) as u64;
                    let class = u64::BITS
                        - 1
                        - SIGNED_KEY_BITS
                        - (magnitude | 1 << SIGNED_KEY_BITS).leading_zeros();
                    let key = (class << SIGNED_KEY_BITS) + (magnitude >> class) as u32;
                    (key << 1) as u16 | (sign & 1) as u16
                })
                .collect(),
            Self::Flat { minimum, shift } => (stored.iter())
                .map(|latent| ((latent.wide() - minimum) >> shift) as u16)
                .collect(),
        };
        // Equal keys often follow each other: with two tables the second need not wait for the first.
        let mut counts = vec![0; KEYS];
        let mut others = [0; KEYS];
        let (pairs, last) = keys.as_chunks::<2>();
        for [one, other] in pairs {
            counts[usize::from(*one) % KEYS] += 1;
            others[usize::from(*other) % KEYS] += 1;
        }
        for key in last {
            counts[usize::from(*key) % KEYS] += 1;
        }
        for (count, other) in counts.iter_mut().zip(others) {
            *count += other;
        }
        (keys, counts)
    }

    /// The bins of `total` latents with these counts of keys.
    fn bins<L: Latent>(self, counts: &[u32], total: usize) -> Vec<Bin> {
        let mut tree = Tree::new::<L>(total);
        match self {
            Self::Flat { minimum, shift } => {
                tree.add(counts, minimum, shift);
            }
            Self::Signed => {
                for sign in [0, 1] {
                    let counts: Vec<u32> = counts[sign..].iter().step_by(2).copied().collect();
                    let start = tree.bins.len();
                    tree.add_magnitudes(&counts, L::BITS - 1);
                    for bin in tree.bins[start..].iter_mut().filter(|_| sign == 1) {
                        bin.lower = !(bin.lower + ((1 << bin.bits) - 1));
                    }
                }
            }
        }
        tree.bins
    }

    /// Replaces the key of each latent by the number of its bin.
    fn replace_by_bins(self, codes: &mut [u16], counts: &[u32], bins: &[Bin]) {
        let mut of_key = [0u16; KEYS];
        // Bins are in the order of the keys of each sign.
        let mut next = [0; 2];
        for (key, of_key) in of_key.iter_mut().enumerate() {
            if counts[key] == 0 {
                continue;
            }
            let (lowest, sign) = self.lowest(key as u64);
            let contains = |bin: &Bin| match lowest.wrapping_sub(bin.lower).checked_shr(bin.bits) {
                Some(above) => above == 0,
                None => true,
            };
            let skipped = bins[next[sign]..].iter().take_while(|bin| !contains(bin));
            next[sign] += skipped.count();
            *of_key = next[sign] as u16;
        }
        for code in codes {
            *code = of_key[usize::from(*code) % KEYS];
        }
    }

    /// A latent of a key, and its sign.
    fn lowest(self, key: u64) -> (u64, usize) {
        match self {
            Self::Flat { minimum, shift } => (minimum + (key << shift), 0),
            Self::Signed => {
                let (key, sign) = (key >> 1, key & 1);
                let class = (key >> SIGNED_KEY_BITS).saturating_sub(1);
                let magnitude = (key - (class << SIGNED_KEY_BITS)) << class;
                (magnitude ^ sign.wrapping_neg(), sign as usize)
            }
        }
    }
}

/// Finds the bins of the smallest chunk: merges halves of ranges if one bin costs less than those inside.
struct Tree {
    bins: Vec<Bin>,
    total: f32,
    /// Bits of a bin in the metadata.
    bin_cost: f32,
}

impl Tree {
    fn new<L: Latent>(total: usize) -> Self {
        Self {
            bins: Vec::new(),
            total: total as f32,
            bin_cost: (L::BITS + MOST_SIZE_LOG + L::BITS.ilog2()) as f32,
        }
    }

    /// Bits that the values of a bin take.
    fn cost(&self, count: u32, bits: u32) -> f32 {
        if count == 0 {
            return 0.0;
        }
        let count = count as f32;
        count * ((self.total / count).log2() + bits as f32) + self.bin_cost
    }

    /// Appends the bins of adjacent ranges of `1 << bits` latents from `lower` on; returns their cost and count.
    fn add(&mut self, counts: &[u32], lower: u64, bits: u32) -> (f32, u32) {
        if let [count] = counts {
            let count = *count;
            if count > 0 {
                self.bins.push(Bin { lower, bits, count });
            }
            return (self.cost(count, bits), count);
        }
        let start = self.bins.len();
        let (low, high) = counts.split_at(counts.len() / 2);
        let low = self.add(low, lower, bits);
        let high = self.add(
            high,
            lower.wrapping_add((counts.len() as u64 / 2) << bits),
            bits,
        );
        let bits = bits + counts.len().ilog2();
        self.merged(start, lower, bits, low, high)
    }

    /// Replaces the bins from number `start` on by one if it costs less.
    fn merged(
        &mut self,
        start: usize,
        lower: u64,
        bits: u32,
        low: (f32, u32),
        high: (f32, u32),
    ) -> (f32, u32) {
        let (cost, count) = (low.0 + high.0, low.1 + high.1);
        if low.1 > 0 && high.1 > 0 {
            let merged = self.cost(count, bits);
            if merged < cost {
                self.bins.truncate(start);
                self.bins.push(Bin { lower, bits, count });
                return (merged, count);
            }
        }
        (cost, count)
    }

    /// Appends the bins of magnitudes of at most `most_bits` bits, by the counts of their keys.
    fn add_magnitudes(&mut self, counts: &[u32], most_bits: u32) {
        let start = self.bins.len();
        let (exact, classes) = counts.split_at(1 << SIGNED_KEY_BITS);
        let mut below = self.add(exact, 0, 0);
        for (class, counts) in classes.chunks(exact.len()).enumerate() {
            let class = class as u32;
            let bits = class + SIGNED_KEY_BITS;
            if bits >= most_bits {
                break;
            }
            let here = self.add(counts, 1 << bits, class);
            below = self.merged(start, 0, bits + 1, below, here);
        }
    }
}

/// Bits that were coded for a value.
#[derive(Clone, Copy)]
struct Coded {
    value: u16,
    bits: u16,
}

/// A symbol of the entropy coder.
struct Symbol {
    weight: u32,
    /// Added to a state, the upper half of the sum is the number of its bits to write.
    bits: u32,
    /// Added to the remaining bits of a state, it is the index of the next state.
    next: i32,
}

/// The tables of the entropy coder (tANS).
struct Table {
    size_log: u32,
    symbols: Vec<Symbol>,
    next_states: Vec<u16>,
}

impl Table {
    fn new(bins: &[Bin], total: usize) -> Self {
        let size_log = match bins.len() {
            0 | 1 => 0,
            count => (usize::BITS - (count - 1).leading_zeros() + 2).clamp(6, MOST_SIZE_LOG),
        };
        let weights = weights(bins, total, 1 << size_log);
        let mut start = 0;
        let symbols: Vec<Symbol> = weights
            .into_iter()
            .map(|weight| {
                let most = size_log + 1 - (2 * weight - 1).ilog2();
                let next = start - weight as i32;
                start += weight as i32;
                Symbol {
                    weight,
                    bits: (most << 16).wrapping_sub(weight << most),
                    next,
                }
            })
            .collect();
        let next_states = next_states(&symbols, size_log);
        Self {
            size_log,
            symbols,
            next_states,
        }
    }

    /// The bits of each symbol, and the final states without their highest bit.
    fn encode(&self, codes: &[u16]) -> (Vec<Coded>, [u16; STATES]) {
        let mut states = [1u32 << self.size_log; STATES];
        if self.symbols.len() < 2 {
            return (Vec::new(), [0; STATES]);
        }
        let mut coded = vec![Coded { value: 0, bits: 0 }; codes.len()];
        let encode = |state: &mut u32, code: u16| {
            let symbol = &self.symbols[usize::from(code)];
            let bits = state.wrapping_add(symbol.bits) >> 16;
            let value = (*state & ((1 << bits) - 1)) as u16;
            let next = (*state >> bits) as i32 + symbol.next;
            *state = u32::from(self.next_states[next as usize]);
            Coded {
                value,
                bits: bits as u16,
            }
        };
        let (groups, last) = codes.as_chunks::<STATES>();
        let (coded_groups, coded_last) = coded.as_chunks_mut::<STATES>();
        for (index, (coded, code)) in coded_last.iter_mut().zip(last).enumerate().rev() {
            *coded = encode(&mut states[index], *code);
        }
        for (coded, codes) in coded_groups.iter_mut().zip(groups).rev() {
            for index in 0..STATES {
                coded[index] = encode(&mut states[index], codes[index]);
            }
        }
        (
            coded,
            states.map(|state| (state - (1 << self.size_log)) as u16),
        )
    }
}

/// The next states of all symbols, in the order of the symbols and of the states.
fn next_states(symbols: &[Symbol], size_log: u32) -> Vec<u16> {
    let size = 1usize << size_log;
    let stride = (3 * size / 5) | 1;
    let mut symbol_of = vec![0u16; size];
    let mut step = 0;
    for (number, symbol) in symbols.iter().enumerate() {
        for _ in 0..symbol.weight {
            symbol_of[(stride * step) % size] = number as u16;
            step += 1;
        }
    }
    let mut next_states = vec![0u16; size];
    let mut places: Vec<usize> = symbols
        .iter()
        .map(|symbol| (symbol.next + symbol.weight as i32) as usize)
        .collect();
    for (state, symbol) in symbol_of.into_iter().enumerate() {
        let place = &mut places[usize::from(symbol)];
        next_states[*place] = (size + state) as u16;
        *place += 1;
    }
    next_states
}

/// Weights of at least 1 whose sum is `size`, about proportional to the counts.
fn weights(bins: &[Bin], total: usize, size: u32) -> Vec<u32> {
    let scale = f64::from(size) / total.max(1) as f64;
    let weight = |bin: &Bin| ((f64::from(bin.count) * scale).round() as u32).max(1);
    let mut weights: Vec<u32> = bins.iter().map(weight).collect();
    let mut sum: u32 = weights.iter().sum();
    while sum != size {
        // The largest weight changes the least in proportion.
        let Some(largest) = weights.iter_mut().max() else {
            break;
        };
        if sum < size {
            *largest += size - sum;
            sum = size;
        } else {
            let less = (sum - size).min((*largest / 8).max(1));
            *largest -= less;
            sum -= less;
        }
    }
    weights
}

/// Most bits that one call of `BitWriter::write` writes.
const MOST_BITS: u32 = 56;

/// Appends integers of some bits, the lowest bit first.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    position: usize,
    bits: u64,
    length: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer of at most `bytes` bytes.
    fn new(out: &'a mut Vec<u8>, bytes: usize) -> Self {
        let position = out.len();
        out.resize(position + bytes + 8, 0);
        Self {
            out,
            position,
            bits: 0,
            length: 0,
        }
    }

    /// Writes the lowest `length` bits of `value`, at most `MOST_BITS`; the others must be 0.
    #[inline(always)]
    fn write(&mut self, value: u64, length: u32) {
        self.bits |= value << self.length;
        self.length += length;
        if let Some(place) = self.out[self.position..].first_chunk_mut() {
            *place = self.bits.to_le_bytes();
        }
        let bytes = self.length / 8;
        self.position += bytes as usize;
        self.bits >>= 8 * bytes;
        self.length %= 8;
    }

    /// Writes up to 64 bits.
    #[inline(always)]
    fn write_wide(&mut self, value: u64, length: u32) {
        let low = length.min(32);
        self.write(value & ((1 << low) - 1), low);
        if length > low {
            self.write(value >> low, length - low);
        }
    }

    fn finish_byte(&mut self) {
        self.write(0, (8 - self.length) % 8);
    }

    fn finish(self) {
        self.out.truncate(self.position);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Config, decode, encode, encode_fast, number_type};
    use crate::dtype::DataType;

    /// Values of several shapes: constants, lines, waves, noise, extremes, few distinct ones.
    fn values(kind: usize, count: usize) -> Vec<f64> {
        let mut state = 7u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count)
            .map(|i| {
                let x = i as f64;
                match kind {
                    0 => 5.0,
                    1 => 3.0 * x - 1000.0,
                    2 => 1e6 * (x / 50.0).sin() + random(),
                    3 => 1e9 * (random() - 0.5),
                    4 => [f64::MAX, f64::MIN, 0.0, -0.0, 1e-300][i % 5],
                    5 => (random() * 3.0).floor(),
                    6 => x * x * x / 1e4,
                    _ => 1.0 + f64::from(i as u32 % 1000 / 999),
                }
            })
            .collect()
    }

    fn check<T: bytemuck::Pod>(dtype: &DataType, values: &[T], most: Option<usize>) {
        let raw: &[u8] = bytemuck::cast_slice(values);
        let mut encoded = Vec::new();
        encode_fast(number_type(dtype).unwrap(), raw, &mut encoded).unwrap();
        let mut decoded = vec![1; raw.len()];
        decode(dtype, &encoded, &mut decoded).unwrap();
        assert!(decoded == raw, "{dtype} of {} values", values.len());
        let size = encoded.len();
        assert!(
            most.is_none_or(|most| size <= most),
            "{dtype}: {size} bytes"
        );
    }

    #[test]
    fn pco_decodes_the_chunks() {
        for kind in 0..8 {
            for count in [1, 2, 3, 4, 255, 256, 257, 300, 5000, 300_000] {
                if count == 300_000 && kind != 2 {
                    continue;
                }
                let floats = values(kind, count);
                let raw_size = |bytes: usize| Some(count * bytes + 64);
                check(&DataType::Float64, &floats, raw_size(8));
                let narrow: Vec<f32> = floats.iter().map(|x| *x as f32).collect();
                check(&DataType::Float32, &narrow, raw_size(4));
                let integers: Vec<i64> = floats.iter().map(|x| *x as i64).collect();
                check(&DataType::Int64, &integers, raw_size(8));
                let integers: Vec<u64> = integers.iter().map(|x| *x as u64).collect();
                check(&DataType::UInt64, &integers, raw_size(8));
                let integers: Vec<i32> = integers.iter().map(|x| *x as i32).collect();
                check(&DataType::Int32, &integers, raw_size(4));
                let integers: Vec<u32> = integers.iter().map(|x| *x as u32).collect();
                check(&DataType::UInt32, &integers, raw_size(4));
            }
        }
    }

    /// Runs of values of one width each: differences of every size, in any order.
    fn runs() -> impl Strategy<Value = Vec<u64>> {
        let run = (any::<u64>(), 0u32..65, 1usize..400).prop_flat_map(|(start, bits, length)| {
            let values = proptest::collection::vec(any::<u64>(), length);
            values.prop_map(move |values| {
                let offset = |value: u64| value.checked_shr(64 - bits).unwrap_or(0);
                let offsets = values.into_iter().map(offset);
                offsets.map(|offset| start.wrapping_add(offset)).collect()
            })
        });
        proptest::collection::vec(run, 1..6).prop_map(|runs: Vec<Vec<u64>>| runs.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pco_decodes_any_values(bits in runs()) {
            let narrow: Vec<u32> = bits.iter().map(|bits| *bits as u32).collect();
            for dtype in [DataType::UInt64, DataType::Int64, DataType::Float64] {
                check(&dtype, &bits, None);
            }
            for dtype in [DataType::UInt32, DataType::Int32, DataType::Float32] {
                check(&dtype, &narrow, None);
            }
        }
    }

    #[test]
    fn chunks_are_about_as_small_as_those_of_pco() {
        for kind in [0, 2, 3] {
            let floats = values(kind, 100_000);
            let mut of_pco = Vec::new();
            let raw: &[u8] = bytemuck::cast_slice(&floats);
            encode(&Config::new(9), &DataType::Float64, raw, &mut of_pco).unwrap();
            check(
                &DataType::Float64,
                &floats,
                Some(of_pco.len() * 102 / 100 + 50),
            );
        }
        let line: Vec<i64> = (0..100_000).map(|i| 7 * i).collect();
        check(&DataType::Int64, &line, Some(100));
    }

    #[test]
    fn decimals_are_encoded_by_pco() {
        let decimals: Vec<f64> = values(3, 100_000)
            .iter()
            .map(|value| (value / 1e5).round() / 100.0)
            .collect();
        let raw: &[u8] = bytemuck::cast_slice(&decimals);
        let size = |level| {
            let mut encoded = Vec::new();
            encode(&Config::new(level), &DataType::Float64, raw, &mut encoded).unwrap();
            encoded.len()
        };
        // Level 9 is always of pco.
        assert!(size(8) < size(9) * 102 / 100);
        let mut fast = Vec::new();
        encode_fast(number_type(&DataType::Float64).unwrap(), raw, &mut fast).unwrap();
        assert!(fast.len() > 2 * size(8));
    }
}
