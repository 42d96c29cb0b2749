//! Rows of values to tokens and raw bits.

use crate::bits::BitWriter;
use crate::element::Element;
use crate::order::difference;
use crate::passes::{Place, Row, RowCoder};
use crate::predict::LANES;
use crate::token::{self, LITERAL};

/// Residuals in steps are smaller than this; others are literals. Exact as float32 too.
const MOST_STEPS: f64 = (1 << 23) as f64;
/// Residuals in steps smaller than this are tokens without raw bits.
const FEW_STEPS: f64 = 8.0;
/// Added to a number that is small in comparison, it leaves that number, rounded, in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

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

/// What encoded regions are made of: tokens and the bins they belong to, raw bits.
#[derive(Default)]
pub(crate) struct Symbols {
    pub tokens: Vec<u8>,
    pub bins: Vec<u8>,
    pub raw: BitWriter,
    /// Values that were stored as they are.
    pub literals: usize,
}

impl Symbols {
    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.bins.clear();
        self.raw.clear();
        self.literals = 0;
    }
}

/// Encodes rows.
pub(crate) struct Encoder<'a, T> {
    source: &'a [T],
    /// Errors allowed; 0 for none.
    bound: f64,
    symbols: &'a mut Symbols,
    /// The values of a row, with room for whole groups of lanes.
    row: Vec<T>,
}

impl<'a, T: Element> Encoder<'a, T> {
    /// An encoder of `source`, a region's values. What it makes is added to `symbols`.
    pub(crate) fn new(source: &'a [T], bound: f64, symbols: &'a mut Symbols) -> Self {
        Self {
            source,
            bound,
            symbols,
            row: Vec::new(),
        }
    }

    /// Copies the values of runs of a row.
    fn gather(&mut self, place: Place, runs: &[(usize, usize)], count: usize) {
        self.row.resize(count + LANES, T::default());
        let mut out = &mut self.row[..];
        for (first, length) in runs {
            let source = &self.source[place.start + first * place.step..];
            let (row, rest) = out.split_at_mut(*length);
            out = rest;
            if place.step == 2 {
                // The common case: half of all values.
                let (last, row) = row
                    .split_last_mut()
                    .map_or((None, &mut [][..]), |(a, b)| (Some(a), b));
                for (to, from) in row.iter_mut().zip(source.as_chunks::<2>().0) {
                    *to = from[0];
                }
                if let Some(last) = last {
                    *last = source[2 * (length - 1)];
                }
            } else {
                for (to, from) in row.iter_mut().zip(source.iter().step_by(place.step)) {
                    *to = *from;
                }
            }
        }
    }

    fn literal(&mut self, x: T) {
        self.symbols.raw.write(x.to_word(), 8 * T::SIZE as u32);
        self.symbols.literals += 1;
        self.symbols.tokens.push(LITERAL);
    }

    fn push(&mut self, folded: u64) {
        let (token, bits) = token::split(folded);
        self.symbols.tokens.push(token);
        if bits > 0 {
            self.symbols.raw.write(folded & ((1 << bits) - 1), bits);
        }
    }

    /// Codes one value within the bound; gives the value as decoded and the magnitude.
    #[inline(always)]
    fn bounded(&mut self, x: T, prediction: T, steps: f64, step: T) -> (T, u8) {
        if steps.abs() < MOST_STEPS {
            let value = prediction.plus(T::from_f64(steps).times(step)).to_f64();
            if within(value, x.to_f64(), value - x.to_f64(), self.bound) {
                let steps = steps as i64;
                self.push(token::fold(steps));
                return (T::from_f64(value), steps.unsigned_abs().min(255) as u8);
            }
        }
        self.literal(x);
        (prediction, u8::MAX)
    }

    /// Codes a group of values within the bound.
    #[inline(always)]
    fn bounded_group(&mut self, group: Group<'_, T>, x: &[T; LANES], n: usize, level_step: f64) {
        let (inverse, step) = (1.0 / level_step, T::from_f64(level_step));
        let mut steps = [0.0; LANES];
        let (mut few, mut fine) = (true, true);
        let mut folded = [0u32; LANES];
        for k in 0..LANES {
            let prediction = group.predictions[k];
            steps[k] = ((x[k].to_f64() - prediction.to_f64()) * inverse).round_ties_even();
            let value = prediction.plus(T::from_f64(steps[k]).times(step));
            let error = (value.to_f64() - x[k].to_f64()).abs();
            let size = steps[k].abs();
            few &= (size < FEW_STEPS) | (k >= n);
            fine &= (size < MOST_STEPS) & (error < self.bound) | (k >= n);
            let whole = (steps[k] + ROUNDER).to_bits() as i32;
            folded[k] = (whole << 1 ^ whole >> 31) as u32;
            group.values[k] = value;
            group.marks[k] = whole.unsigned_abs().min(255) as u8;
        }
        if few && fine {
            let tokens = folded.map(|folded| folded as u8);
            self.symbols.tokens.extend_from_slice(&tokens[..n]);
            return;
        }
        if fine {
            let mut tokens = [0; LANES];
            for (token, folded) in tokens[..n].iter_mut().zip(folded) {
                let bits;
                (*token, bits) = token::split(u64::from(folded));
                self.symbols
                    .raw
                    .write(u64::from(folded) & ((1 << bits) - 1), bits);
            }
            self.symbols.tokens.extend_from_slice(&tokens[..n]);
            return;
        }
        for k in 0..n {
            (group.values[k], group.marks[k]) =
                self.bounded(x[k], group.predictions[k], steps[k], step);
        }
    }

    /// Codes one value without loss; gives the value to predict others from, and its length in bits.
    #[inline(always)]
    fn lossless(&mut self, x: T, prediction: T, shift: u32) -> (T, u8) {
        if !x.is_tame() {
            self.literal(x);
            return (prediction, 64);
        }
        let folded = difference(x, prediction, shift);
        self.push(folded);
        (x, (64 - folded.leading_zeros()) as u8)
    }
}

/// A group of lanes of a row.
struct Group<'a, T> {
    predictions: &'a [T; LANES],
    values: &'a mut [T; LANES],
    marks: &'a mut [u8; LANES],
}

impl<T: Element> RowCoder<T> for Encoder<'_, T> {
    fn row(&mut self, row: Row<'_, T>) {
        self.gather(row.place, row.runs, row.count);
        self.symbols.bins.extend_from_slice(&row.bins[..row.count]);
        let source = std::mem::take(&mut self.row);
        if row.level.step == 0.0 {
            for (k, x) in source[..row.count].iter().enumerate() {
                (row.values[k], row.marks[k]) =
                    self.lossless(*x, row.predictions[k], row.level.shift);
            }
        } else {
            let predictions = row.predictions.as_chunks::<LANES>().0;
            let values = row.values.as_chunks_mut::<LANES>().0;
            let marks = row.marks.as_chunks_mut::<LANES>().0;
            let source = source.as_chunks::<LANES>().0;
            let groups = predictions.iter().zip(values).zip(marks).zip(source);
            let mut left = row.count;
            for (((predictions, values), marks), x) in groups.take(row.count.div_ceil(LANES)) {
                let group = Group {
                    predictions,
                    values,
                    marks,
                };
                self.bounded_group(group, x, left.min(LANES), row.level.step);
                left = left.saturating_sub(LANES);
            }
        }
        self.row = source;
    }
}
