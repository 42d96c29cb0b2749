//! Rows of values to tokens and raw bits, and back.

use crate::bits::{BitReader, BitWriter};
use crate::element::Element;
use crate::passes::{Row, RowCoder};
use crate::rans;
use crate::token::{self, LITERAL};

/// Residuals in steps are smaller than this; others are literals. Exact as float32 too.
const MOST_STEPS: f64 = (1 << 23) as f64;

/// An order of words that is that of the values: neighbours differ by one.
#[inline(always)]
fn ordered(word: u64, bits: u32) -> u64 {
    let sign = word >> (bits - 1) & 1;
    if sign == 1 {
        !word & mask(bits)
    } else {
        word | 1 << (bits - 1)
    }
}

/// Undoes [`ordered`].
#[inline(always)]
fn unordered(word: u64, bits: u32) -> u64 {
    let sign = word >> (bits - 1) & 1;
    if sign == 0 {
        !word & mask(bits)
    } else {
        word & !(1 << (bits - 1))
    }
}

#[inline(always)]
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The number with `bits` bits as one with a sign.
#[inline(always)]
fn signed(word: u64, bits: u32) -> i64 {
    (word << (64 - bits)) as i64 >> (64 - bits)
}

/// Whether `a` and `b`, whose difference is `error` as rounded, differ by the bound or less.
#[inline(always)]
fn within(a: f64, b: f64, error: f64, bound: f64) -> bool {
    // Less than the bound as rounded means less than the bound: rounding is monotonous.
    error.abs() < bound || (error.abs() == bound && no_more(a, b, error))
}

/// Whether the difference of `a` and `b` is no more than it is as rounded. Source of the exact rest:
/// D. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
#[cold]
fn no_more(a: f64, b: f64, error: f64) -> bool {
    let part = error - a;
    let rest = (a - (error - part)) - (b + part);
    rest == 0.0 || (rest < 0.0) == (error > 0.0) && !rest.is_nan()
}

/// What an encoded region is made of: tokens and the bins they belong to, raw bits.
#[derive(Default)]
pub(crate) struct Symbols {
    pub tokens: Vec<u8>,
    pub bins: Vec<u8>,
    pub raw: BitWriter,
    /// Values that were stored as they are.
    pub literals: usize,
    /// Sum of the squares of the errors.
    pub square_error: f64,
}

/// Encodes rows.
pub(crate) struct Encoder<'a, T> {
    source: &'a [T],
    /// Errors allowed; 0 for none.
    bound: f64,
    pub symbols: Symbols,
    row: Vec<T>,
    steps: Vec<f64>,
}

impl<'a, T: Element> Encoder<'a, T> {
    /// An encoder of `source`, a region's values. What it makes is added to `symbols`.
    pub(crate) fn new(source: &'a [T], bound: f64, symbols: Symbols) -> Self {
        Self {
            source,
            bound,
            symbols,
            row: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn literal(&mut self, x: T) -> u8 {
        self.symbols.raw.write(x.to_word(), 8 * T::SIZE as u32);
        self.symbols.literals += 1;
        LITERAL
    }

    /// Codes one value within the bound; gives the value as decoded and the magnitude.
    #[inline(always)]
    fn bounded(&mut self, x: T, prediction: T, steps: f64, step: T) -> (T, u8) {
        let close = if steps.abs() < MOST_STEPS {
            let value = prediction.plus(T::from_i32(steps as i32).times(step));
            let error = value.to_f64() - x.to_f64();
            within(value.to_f64(), x.to_f64(), error, self.bound).then_some((value, error))
        } else {
            None
        };
        let Some((value, error)) = close else {
            let token = self.literal(x);
            self.symbols.tokens.push(token);
            return (prediction, u8::MAX);
        };
        self.symbols.square_error += error * error;
        let steps = steps as i64;
        let (token, bits) = token::split(token::fold(steps));
        self.symbols.tokens.push(token);
        if bits > 0 {
            self.symbols
                .raw
                .write(token::fold(steps) & ((1 << bits) - 1), bits);
        }
        (value, steps.unsigned_abs().min(255) as u8)
    }

    /// Codes one value without loss; gives the value to predict others from, and its length in bits.
    #[inline(always)]
    fn lossless(&mut self, x: T, prediction: T) -> (T, u8) {
        if !x.is_tame() {
            let token = self.literal(x);
            self.symbols.tokens.push(token);
            return (prediction, 64);
        }
        let width = 8 * T::SIZE as u32;
        let difference =
            ordered(x.to_word(), width).wrapping_sub(ordered(prediction.to_word(), width));
        let folded = token::fold(signed(difference, width));
        let (token, bits) = token::split(folded);
        self.symbols.tokens.push(token);
        if bits > 0 {
            self.symbols.raw.write(folded & ((1 << bits) - 1), bits);
        }
        (x, (64 - folded.leading_zeros()) as u8)
    }
}

impl<T: Element> RowCoder<T> for Encoder<'_, T> {
    fn row(&mut self, row: Row<'_, T>) {
        let n = row.predictions.len();
        self.row.clear();
        let source = &self.source[row.place.start..];
        self.row
            .extend(source.iter().step_by(row.place.step).take(n));
        self.steps.clear();
        let lossless = row.level.step == 0.0;
        let step = T::from_f64(row.level.step);
        if !lossless {
            let inverse = 1.0 / row.level.step;
            let pairs = self.row.iter().zip(row.predictions);
            let steps = pairs.map(|(x, p)| ((x.to_f64() - p.to_f64()) * inverse).round_ties_even());
            self.steps.extend(steps);
        }
        for k in 0..n {
            if row.valid.is_some_and(|valid| valid[k] == 0) {
                row.values[k] = row.predictions[k];
                continue;
            }
            let (x, prediction) = (self.row[k], row.predictions[k]);
            let (value, mark) = if lossless {
                self.lossless(x, prediction)
            } else {
                self.bounded(x, prediction, self.steps[k], step)
            };
            (row.values[k], row.marks[k]) = (value, mark);
            self.symbols.bins.push(row.bins[k]);
        }
    }
}

/// Decodes rows.
pub(crate) struct Decoder<'a> {
    pub symbols: rans::Decoder<'a>,
    pub raw: BitReader<'a>,
    /// Where the table of each bin begins.
    bases: &'a [u32; 256],
    /// Literals: index in the region, bits.
    pub literals: Vec<(usize, u64)>,
    row_bins: Vec<u8>,
    tokens: Vec<u8>,
    picked: Vec<u32>,
}

impl<'a> Decoder<'a> {
    /// A decoder; `bases` has an entry for every bin.
    pub(crate) fn new(
        symbols: rans::Decoder<'a>,
        raw: BitReader<'a>,
        bases: &'a [u32; 256],
    ) -> Self {
        Self {
            symbols,
            raw,
            bases,
            literals: Vec::new(),
            row_bins: Vec::new(),
            tokens: Vec::new(),
            picked: Vec::new(),
        }
    }

    fn decode_tokens(&mut self, bins: &[u8]) {
        self.tokens.resize(bins.len().max(self.tokens.len()), 0);
        self.symbols
            .decode(bins, self.bases, &mut self.tokens[..bins.len()]);
    }

    /// One value from its token.
    #[inline(always)]
    fn value<T: Element>(&mut self, token: u8, row: &Row<'_, T>, k: usize, step: T) -> (T, u8) {
        let prediction = row.predictions[k];
        if token == LITERAL {
            let bits = self.raw.read(8 * T::SIZE as u32);
            self.literals
                .push((row.place.start + k * row.place.step, bits));
            let lossless = row.level.step == 0.0;
            return (prediction, if lossless { 64 } else { u8::MAX });
        }
        let bits = token::raw_bits(token);
        let raw = if bits > 0 { self.raw.read(bits) } else { 0 };
        let folded = token::join(token, raw);
        if row.level.step == 0.0 {
            let width = 8 * T::SIZE as u32;
            let word = ordered(prediction.to_word(), width)
                .wrapping_add(token::unfold(folded) as u64)
                & mask(width);
            let value = T::from_word(unordered(word, width));
            (value, (64 - folded.leading_zeros()) as u8)
        } else {
            let steps = token::unfold(folded);
            let value = prediction.plus(T::from_i32(steps as i32).times(step));
            (value, steps.unsigned_abs().min(255) as u8)
        }
    }
}

impl<T: Element> RowCoder<T> for Decoder<'_> {
    fn row(&mut self, mut row: Row<'_, T>) {
        let step = T::from_f64(row.level.step);
        match row.valid {
            Some(valid) if valid.contains(&0) => self.parts(&mut row, valid, step),
            _ => {
                self.decode_tokens(row.bins);
                self.whole(&mut row, step);
            }
        }
    }
}

impl Decoder<'_> {
    /// A row of which some points are missing.
    fn parts<T: Element>(&mut self, row: &mut Row<'_, T>, valid: &[u8], step: T) {
        let n = valid.len();
        let (mut bins, mut picked) = (
            std::mem::take(&mut self.row_bins),
            std::mem::take(&mut self.picked),
        );
        bins.resize(n.max(bins.len()), 0);
        picked.resize(n.max(picked.len()), 0);
        let mut count = 0;
        for (k, (bin, valid)) in row.bins.iter().zip(valid).enumerate() {
            (bins[count], picked[count]) = (*bin, k as u32);
            count += usize::from(*valid);
        }
        self.decode_tokens(&bins[..count]);
        row.values.copy_from_slice(row.predictions);
        for (i, k) in picked[..count].iter().enumerate() {
            let k = *k as usize;
            let (value, mark) = self.value(self.tokens[i], row, k, step);
            (row.values[k], row.marks[k]) = (value, mark);
        }
        (self.row_bins, self.picked) = (bins, picked);
    }

    /// A row of which every point is there.
    fn whole<T: Element>(&mut self, row: &mut Row<'_, T>, step: T) {
        let n = row.predictions.len();
        let direct = self.tokens[..n].iter().all(|token| *token < 16);
        if direct && row.level.step > 0.0 {
            // The common case: no raw bits, so that all points are independent of each other.
            let tokens = &self.tokens[..n];
            for (((value, mark), prediction), token) in row
                .values
                .iter_mut()
                .zip(row.marks.iter_mut())
                .zip(row.predictions)
                .zip(tokens)
            {
                let token = i32::from(*token);
                let steps = token >> 1 ^ -(token & 1);
                *value = prediction.plus(T::from_i32(steps).times(step));
                *mark = (token + 1 >> 1) as u8;
            }
            return;
        }
        for k in 0..n {
            let (value, mark) = self.value(self.tokens[k], row, k, step);
            (row.values[k], row.marks[k]) = (value, mark);
        }
    }
}
