//! The encoder of rows: values to tokens and raw bits.

use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::symbols::Symbols;
use crate::entropy::token::{self, DIRECT, LITERAL};
use crate::predict::row::{Row, RowCoder, RowLocation};
use crate::quantize::float_order::difference;
use crate::simd::LANES;
use crate::simd::compact::append;
use crate::simd::dispatch::vectorised;

/// Residuals, in steps, are smaller than this, so that they are exact float32 values. Values with larger residuals are
/// literals.
const MAX_STEPS: f64 = (1 << 23) as f64;
/// Adding this to a much smaller number leaves the rounded number in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Rounds to the nearest integer, ties to even, if the magnitude is below 2^51; a larger number remains large. Unlike
/// `round_ties_even`, it needs no function call on processors without a rounding instruction, and never returns -0,
/// which a decoder cannot reproduce.
#[inline(always)]
fn rounded(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
}

/// Whether `a` and `b`, whose difference is `error` as rounded, differ by the bound or less.
#[inline(always)]
fn within(a: f64, b: f64, error: f64, bound: f64) -> bool {
    // A rounded error below the bound is below the bound, because rounding is monotonic.
    error.abs() < bound || (error.abs() == bound && is_exactly_within(a, b, error))
}

/// Whether the exact difference of `a` and `b` is at most the rounded one. Source of the rounding error:
/// D. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
#[cold]
fn is_exactly_within(a: f64, b: f64, error: f64) -> bool {
    let part = error - a;
    let rest = (a - (error - part)) - (b + part);
    rest == 0.0 || (rest < 0.0) == (error > 0.0) && !rest.is_nan()
}

/// Encodes the rows of a region.
pub(crate) struct Encoder<'a, T> {
    source: &'a RegionBuffer<T>,
    /// The error bound; 0 for lossless.
    bound: f64,
    symbols: &'a mut Symbols,
    /// The values of a row, their tolerances and tokens, with space for whole groups of lanes.
    row: Vec<T>,
    padding_tolerance: Vec<T>,
    tokens: Vec<u8>,
}

/// Up to 64 consecutive values of a row.
struct RowSegment<'a, T> {
    values: &'a [T],
    /// As in [`RegionBuffer`]; empty where no value is padding.
    padding_tolerance: &'a [T],
    /// A bit for each value that is coded.
    coded: u64,
    predictions: &'a [T],
    step: f64,
}

impl<T: Element> RowSegment<'_, T> {
    /// True for padding points, whose decoded value is discarded.
    fn is_padding(&self, k: usize) -> bool {
        self.padding_tolerance
            .get(k)
            .is_some_and(|padding_tolerance| *padding_tolerance >= T::default())
    }

    /// Replaces padding values, and their folded residuals, by the nearest to the predictions that the tolerances allow,
    /// which take the fewest bits. Values that are too far away become their predictions.
    fn quantize_padding(&self, values: &mut [T], folded: &mut [u32]) {
        let is_padding = |any, padding_tolerance: &T| any | (*padding_tolerance >= T::default());
        if !self.padding_tolerance.iter().fold(false, is_padding) {
            return;
        }
        let coded = |k: &usize| self.coded >> k & 1 == 1 && self.is_padding(*k);
        for k in (0..self.padding_tolerance.len()).filter(coded) {
            let off = self.values[k].to_f64() - self.predictions[k].to_f64();
            let off = (off.abs() - self.padding_tolerance[k].to_f64())
                .max(0.0)
                .copysign(off);
            let steps = rounded(off / self.step);
            let steps = if steps.abs() < MAX_STEPS { steps } else { 0.0 };
            let residual = T::from_f64(steps).times(T::from_f64(self.step));
            values[k] = self.predictions[k].plus(residual);
            folded[k] = token::fold(steps as i64) as u32;
        }
    }
}

/// A value as an encoder codes it.
struct CodedValue<T> {
    /// The value that others are predicted from.
    value: T,
    /// The magnitude of the residual.
    magnitude: u8,
    token: u8,
}

impl<'a, T: Element> Encoder<'a, T> {
    /// An encoder of the values of a region, which appends to `symbols`.
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

    /// Copies the `points` values of a row, and their tolerances.
    fn gather(&mut self, location: RowLocation, points: usize) {
        self.tokens.resize(points + LANES, 0);
        gather(&self.source.values, location, points, &mut self.row);
        if !self.source.padding_tolerance.is_empty() {
            gather(
                &self.source.padding_tolerance,
                location,
                points,
                &mut self.padding_tolerance,
            );
        }
    }

    fn write_literal(&mut self, x: T) -> u8 {
        self.symbols.raw.write(x.to_word(), 8 * T::SIZE as u32);
        self.symbols.literals += 1;
        LITERAL
    }

    #[inline(always)]
    fn write_residual(&mut self, folded: u64) -> u8 {
        let (token, bits) = token::split(folded);
        self.symbols.raw.write(folded & ((1 << bits) - 1), bits);
        token
    }

    /// Codes one value within the bound. Returns the decoded value.
    #[inline(always)]
    fn quantize_value(&mut self, x: T, prediction: T, steps: f64, step: T) -> CodedValue<T> {
        if steps.abs() < MAX_STEPS {
            let value = prediction.plus(T::from_f64(steps).times(step)).to_f64();
            if within(value, x.to_f64(), value - x.to_f64(), self.bound) {
                let steps = steps as i64;
                return CodedValue {
                    value: T::from_f64(value),
                    magnitude: steps.unsigned_abs().min(255) as u8,
                    token: self.write_residual(token::fold(steps)),
                };
            }
        }
        CodedValue {
            value: prediction,
            magnitude: u8::MAX,
            token: self.write_literal(x),
        }
    }

    /// Codes a segment of a row within the bound. Writes the decoded values, the residual magnitudes, and the tokens,
    /// which are 0 for values that are not coded.
    fn quantize_segment(
        &mut self,
        segment: &RowSegment<'_, T>,
        values: &mut [T],
        mut magnitudes: Option<&mut [u8]>,
        tokens: &mut [u8],
    ) {
        let mut folded = [0; 64];
        let folded = &mut folded[..values.len()];
        let is_within_bound = quantize(segment, self.bound, values, folded);
        segment.quantize_padding(values, folded);
        if let Some(magnitudes) = &mut magnitudes {
            for (magnitude, folded) in magnitudes.iter_mut().zip(&*folded) {
                *magnitude = (folded.wrapping_add(1) >> 1).min(255) as u8;
            }
        }
        for (tokens, folded) in tokens.iter_mut().zip(&*folded) {
            *tokens = *folded as u8;
        }
        if !is_within_bound {
            let (inverse, step) = (1.0 / segment.step, T::from_f64(segment.step));
            for k in (0..values.len()).filter(|k| segment.coded >> k & 1 == 1) {
                if segment.is_padding(k) {
                    tokens[k] = self.write_residual(u64::from(folded[k]));
                    continue;
                }
                let (x, prediction) = (segment.values[k], segment.predictions[k]);
                let steps = rounded((x.to_f64() - prediction.to_f64()) * inverse);
                let coded = self.quantize_value(x, prediction, steps, step);
                (values[k], tokens[k]) = (coded.value, coded.token);
                if let Some(magnitudes) = &mut magnitudes {
                    magnitudes[k] = coded.magnitude;
                }
            }
            return;
        }
        let groups = tokens.chunks_mut(LANES).zip(folded.chunks(LANES));
        for (tokens, folded) in groups {
            if folded.iter().fold(0, |any, folded| any | folded) >= u32::from(DIRECT) {
                for (token, folded) in tokens.iter_mut().zip(folded) {
                    *token = self.write_residual(u64::from(*folded));
                }
            }
        }
    }

    /// Codes one value without loss. The magnitude is the length of the residual in bits.
    #[inline(always)]
    fn encode_lossless(&mut self, x: T, prediction: T, shift: u32) -> CodedValue<T> {
        if !x.is_predictable() {
            return CodedValue {
                value: prediction,
                magnitude: 64,
                token: self.write_literal(x),
            };
        }
        let folded = difference(x, prediction, shift);
        CodedValue {
            value: x,
            magnitude: (64 - folded.leading_zeros()) as u8,
            token: self.write_residual(folded),
        }
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
        self.gather(row.location, row.points);
        let source = std::mem::take(&mut self.row);
        let padding_tolerance = std::mem::take(&mut self.padding_tolerance);
        let mut tokens = std::mem::take(&mut self.tokens);
        let is_coded = |k: usize| row.present[k / 64] >> (k % 64) & 1 == 1;
        if row.level.step == 0.0 {
            for k in (0..row.points).filter(|k| is_coded(*k)) {
                let coded = self.encode_lossless(source[k], row.predictions[k], row.level.shift);
                (row.values[k], tokens[k]) = (coded.value, coded.token);
                if let Some(magnitudes) = &mut row.magnitudes {
                    magnitudes[k] = coded.magnitude;
                }
            }
        } else {
            for (word, coded) in row.present.iter().enumerate() {
                let (first, end) = (64 * word, row.values.len().min(64 * word + 64));
                let segment = RowSegment {
                    values: &source[first..end],
                    padding_tolerance: padding_tolerance.get(first..end).unwrap_or_default(),
                    coded: *coded,
                    predictions: &row.predictions[first..end],
                    step: row.level.step,
                };
                self.quantize_segment(
                    &segment,
                    &mut row.values[first..end],
                    row.magnitudes
                        .as_deref_mut()
                        .map(|magnitudes| &mut magnitudes[first..end]),
                    &mut tokens[first..end],
                );
            }
        }
        let symbols = &mut *self.symbols;
        append(row.present, row.count, &tokens, &mut symbols.tokens);
        if let Some(contexts) = row.contexts {
            append(
                row.present,
                row.count,
                &contexts[..row.points + LANES],
                &mut symbols.contexts,
            );
        }
        (self.row, self.padding_tolerance, self.tokens) = (source, padding_tolerance, tokens);
    }
}

/// Copies the `points` values of a row, and reserves space for whole groups of lanes.
fn gather<T: Element>(source: &[T], location: RowLocation, points: usize, row: &mut Vec<T>) {
    row.resize(points + LANES, T::default());
    let (source, row) = (&source[location.start..], &mut row[..points]);
    if location.step == 2 {
        // The finest level, which has most values.
        let pairs = source.as_chunks::<2>().0;
        let whole = pairs.len().min(points);
        for (to, from) in row[..whole].iter_mut().zip(pairs) {
            *to = from[0];
        }
        for (k, to) in row.iter_mut().enumerate().skip(whole) {
            *to = source[2 * k];
        }
    } else {
        for (to, from) in row.iter_mut().zip(source.iter().step_by(location.step)) {
            *to = *from;
        }
    }
}

vectorised! {
    /// Computes folded residuals and decoded values, which are 0 and the predictions for values that are not coded.
    /// Returns whether all are within the bound. Not inlined, so that the compiler can assume that inputs and outputs do
    /// not alias.
    fn quantize [T: Element] of [T] (
        segment: &RowSegment<'_, T>,
        bound: f64,
        values: &mut [T],
        folded: &mut [u32],
    ) -> bool {
        let (n, coded) = (values.len(), segment.coded);
        let (originals, predictions, folded) = (&segment.values[..n], &segment.predictions[..n], &mut folded[..n]);
        let (inverse, step) = (1.0 / segment.step, T::from_f64(segment.step));
        let mut failures = 0;
        for k in 0..n {
            let prediction = predictions[k];
            let is_coded = coded >> k & 1;
            let steps = rounded((originals[k].to_f64() - prediction.to_f64()) * inverse);
            let steps = if is_coded == 1 { steps } else { 0.0 };
            let value = prediction.plus(T::from_f64(steps).times(step));
            let error = (value.to_f64() - originals[k].to_f64()).abs();
            let is_within_bound = (steps.abs() < MAX_STEPS) & (error < bound);
            failures |= if is_within_bound { 0 } else { is_coded };
            let whole = (steps + ROUNDER).to_bits() as i32;
            folded[k] = (whole << 1 ^ whole >> 31) as u32;
            values[k] = value;
        }
        failures == 0
    }
}
