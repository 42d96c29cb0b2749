//! Rows of values to tokens and raw bits.

use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::symbols::Symbols;
use crate::entropy::token::{self, DIRECT, LITERAL};
use crate::predict::row::{Place, Row, RowCoder};
use crate::quantize::float_order::difference;
use crate::simd::LANES;
use crate::simd::compact::append;
use crate::simd::dispatch::vectorised;

/// Residuals in steps are smaller than this; others are literals. Exact as float32 too.
const MOST_STEPS: f64 = (1 << 23) as f64;
/// Added to a number that is small in comparison, it leaves that number, rounded, in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The whole number nearest to a number below 2^51, the even one of two; of a larger one, a number as large. Unlike
/// `round_ties_even` it takes no call where the processor has no instruction for it, and never gives -0, which a
/// decoder does not add either.
#[inline(always)]
fn rounded(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
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

/// Encodes rows.
pub(crate) struct Encoder<'a, T> {
    source: &'a RegionBuffer<T>,
    /// Errors allowed; 0 for none.
    bound: f64,
    symbols: &'a mut Symbols,
    /// The values of a row, their slack and tokens, with room for whole groups of lanes.
    row: Vec<T>,
    padding_tolerance: Vec<T>,
    tokens: Vec<u8>,
}

/// Up to 64 values of a row, and what they are coded with.
struct Part<'a, T> {
    x: &'a [T],
    /// As in [`RegionBuffer`]; empty where no value is padding.
    padding_tolerance: &'a [T],
    /// The bits of those that are coded.
    there: u64,
    predictions: &'a [T],
    step: f64,
}

impl<T: Element> Part<'_, T> {
    /// Whether a value is nobody's.
    fn is_nobodys(&self, k: usize) -> bool {
        self.padding_tolerance
            .get(k)
            .is_some_and(|padding_tolerance| *padding_tolerance >= T::default())
    }

    /// Makes values that are nobody's, and their folded residuals: as near to the predictions as their slack
    /// allows, for that takes least; those that are too far away, the predictions.
    fn relax(&self, values: &mut [T], folded: &mut [u32]) {
        let is_padding = |any, padding_tolerance: &T| any | (*padding_tolerance >= T::default());
        if !self.padding_tolerance.iter().fold(false, is_padding) {
            return;
        }
        let coded = |k: &usize| self.there >> k & 1 == 1 && self.is_nobodys(*k);
        for k in (0..self.padding_tolerance.len()).filter(coded) {
            let off = self.x[k].to_f64() - self.predictions[k].to_f64();
            let off = (off.abs() - self.padding_tolerance[k].to_f64())
                .max(0.0)
                .copysign(off);
            let steps = rounded(off / self.step);
            let steps = if steps.abs() < MOST_STEPS { steps } else { 0.0 };
            let residual = T::from_f64(steps).times(T::from_f64(self.step));
            values[k] = self.predictions[k].plus(residual);
            folded[k] = token::fold(steps as i64) as u32;
        }
    }
}

impl<'a, T: Element> Encoder<'a, T> {
    /// An encoder of a region's values. What it makes is added to `symbols`.
    pub(crate) fn new(source: &'a RegionBuffer<T>, bound: f64, symbols: &'a mut Symbols) -> Self {
        Self {
            source,
            bound,
            symbols,
            row: Vec::new(),
            padding_tolerance: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// Copies the `points` values of a row, and their slack.
    fn gather(&mut self, place: Place, points: usize) {
        self.tokens.resize(points + LANES, 0);
        gather(&self.source.values, place, points, &mut self.row);
        if !self.source.padding_tolerance.is_empty() {
            gather(
                &self.source.padding_tolerance,
                place,
                points,
                &mut self.padding_tolerance,
            );
        }
    }

    fn literal(&mut self, x: T) -> u8 {
        self.symbols.raw.write(x.to_word(), 8 * T::SIZE as u32);
        self.symbols.literals += 1;
        LITERAL
    }

    #[inline(always)]
    fn residual(&mut self, folded: u64) -> u8 {
        let (token, bits) = token::split(folded);
        self.symbols.raw.write(folded & ((1 << bits) - 1), bits);
        token
    }

    /// Codes one value within the bound; gives the value as decoded, the magnitude and the token.
    #[inline(always)]
    fn bounded(&mut self, x: T, prediction: T, steps: f64, step: T) -> (T, u8, u8) {
        if steps.abs() < MOST_STEPS {
            let value = prediction.plus(T::from_f64(steps).times(step)).to_f64();
            if within(value, x.to_f64(), value - x.to_f64(), self.bound) {
                let steps = steps as i64;
                let mark = steps.unsigned_abs().min(255) as u8;
                return (T::from_f64(value), mark, self.residual(token::fold(steps)));
            }
        }
        (prediction, u8::MAX, self.literal(x))
    }

    /// Codes values of a row within the bound: makes values, marks and tokens, which are 0 for those that are not
    /// coded.
    fn bounded_part(
        &mut self,
        part: &Part<'_, T>,
        values: &mut [T],
        mut magnitudes: Option<&mut [u8]>,
        tokens: &mut [u8],
    ) {
        let mut folded = [0; 64];
        let folded = &mut folded[..values.len()];
        let fine = quantise(part, self.bound, values, folded);
        part.relax(values, folded);
        if let Some(magnitudes) = &mut magnitudes {
            for (mark, folded) in magnitudes.iter_mut().zip(&*folded) {
                *mark = (folded.wrapping_add(1) >> 1).min(255) as u8;
            }
        }
        for (tokens, folded) in tokens.iter_mut().zip(&*folded) {
            *tokens = *folded as u8;
        }
        if !fine {
            let (inverse, step) = (1.0 / part.step, T::from_f64(part.step));
            for k in (0..values.len()).filter(|k| part.there >> k & 1 == 1) {
                if part.is_nobodys(k) {
                    tokens[k] = self.residual(u64::from(folded[k]));
                    continue;
                }
                let (x, prediction) = (part.x[k], part.predictions[k]);
                let steps = rounded((x.to_f64() - prediction.to_f64()) * inverse);
                let mark;
                (values[k], mark, tokens[k]) = self.bounded(x, prediction, steps, step);
                if let Some(magnitudes) = &mut magnitudes {
                    magnitudes[k] = mark;
                }
            }
            return;
        }
        let groups = tokens.chunks_mut(LANES).zip(folded.chunks(LANES));
        for (tokens, folded) in groups {
            if folded.iter().fold(0, |any, folded| any | folded) >= u32::from(DIRECT) {
                for (token, folded) in tokens.iter_mut().zip(folded) {
                    *token = self.residual(u64::from(*folded));
                }
            }
        }
    }

    /// Codes one value without loss; gives the value to predict others from, its length in bits, and
    /// the token.
    #[inline(always)]
    fn lossless(&mut self, x: T, prediction: T, shift: u32) -> (T, u8, u8) {
        if !x.is_tame() {
            return (prediction, 64, self.literal(x));
        }
        let folded = difference(x, prediction, shift);
        let mark = (64 - folded.leading_zeros()) as u8;
        (x, mark, self.residual(folded))
    }
}

impl<T: Element> RowCoder<T> for Encoder<'_, T> {
    fn begin_level(&mut self, number: usize) {
        self.symbols.begin_level(number);
    }

    fn set_context(&mut self, context: u8, count: usize) {
        let begin = self.symbols.contexts.len();
        self.symbols.contexts.resize(begin + count, context);
        self.symbols.runs.push((begin, count));
    }

    fn set_contexts(&mut self, contexts: &[u8]) {
        self.symbols.contexts.extend_from_slice(contexts);
    }

    fn row(&mut self, mut row: Row<'_, T>) {
        self.gather(row.place, row.points);
        let source = std::mem::take(&mut self.row);
        let padding_tolerance = std::mem::take(&mut self.padding_tolerance);
        let mut tokens = std::mem::take(&mut self.tokens);
        let there = |k: usize| row.there[k / 64] >> (k % 64);
        if row.level.step == 0.0 {
            for k in (0..row.points).filter(|k| there(*k) & 1 == 1) {
                let (value, mark, token) =
                    self.lossless(source[k], row.predictions[k], row.level.shift);
                (row.values[k], tokens[k]) = (value, token);
                if let Some(magnitudes) = &mut row.magnitudes {
                    magnitudes[k] = mark;
                }
            }
        } else {
            for (word, there) in row.there.iter().enumerate() {
                let (first, end) = (64 * word, row.values.len().min(64 * word + 64));
                let part = Part {
                    x: &source[first..end],
                    padding_tolerance: padding_tolerance.get(first..end).unwrap_or_default(),
                    there: *there,
                    predictions: &row.predictions[first..end],
                    step: row.level.step,
                };
                self.bounded_part(
                    &part,
                    &mut row.values[first..end],
                    row.magnitudes
                        .as_deref_mut()
                        .map(|magnitudes| &mut magnitudes[first..end]),
                    &mut tokens[first..end],
                );
            }
        }
        let symbols = &mut *self.symbols;
        append(row.there, row.count, &tokens, &mut symbols.tokens);
        if let Some(contexts) = row.contexts {
            append(
                row.there,
                row.count,
                &contexts[..row.points + LANES],
                &mut symbols.contexts,
            );
        }
        (self.row, self.padding_tolerance, self.tokens) = (source, padding_tolerance, tokens);
    }
}

/// Copies the `points` values of a row, and makes room for whole groups of lanes.
fn gather<T: Element>(source: &[T], place: Place, points: usize, row: &mut Vec<T>) {
    row.resize(points + LANES, T::default());
    let (source, row) = (&source[place.start..], &mut row[..points]);
    if place.step == 2 {
        // The common case: half of all values.
        let pairs = source.as_chunks::<2>().0;
        let whole = pairs.len().min(points);
        for (to, from) in row[..whole].iter_mut().zip(pairs) {
            *to = from[0];
        }
        for (k, to) in row.iter_mut().enumerate().skip(whole) {
            *to = source[2 * k];
        }
    } else {
        for (to, from) in row.iter_mut().zip(source.iter().step_by(place.step)) {
            *to = *from;
        }
    }
}

vectorised! {
    /// Makes folded residuals of values and the values as they will be decoded, of those that are not `there` 0
    /// and the predictions; says whether all are within the bound. A function of its own, so that the compiler
    /// knows what is written to be apart from what is read.
    fn quantise [T: Element] of [T] (
        part: &Part<'_, T>,
        bound: f64,
        values: &mut [T],
        folded: &mut [u32],
    ) -> bool {
        let (n, there) = (values.len(), part.there);
        let (x, predictions, folded) = (&part.x[..n], &part.predictions[..n], &mut folded[..n]);
        let (inverse, step) = (1.0 / part.step, T::from_f64(part.step));
        let mut off = 0;
        for k in 0..n {
            let prediction = predictions[k];
            let here = there >> k & 1;
            let steps = rounded((x[k].to_f64() - prediction.to_f64()) * inverse);
            let steps = if here == 1 { steps } else { 0.0 };
            let value = prediction.plus(T::from_f64(steps).times(step));
            let error = (value.to_f64() - x[k].to_f64()).abs();
            let fine = (steps.abs() < MOST_STEPS) & (error < bound);
            off |= if fine { 0 } else { here };
            let whole = (steps + ROUNDER).to_bits() as i32;
            folded[k] = (whole << 1 ^ whole >> 31) as u32;
            values[k] = value;
        }
        off == 0
    }
}
