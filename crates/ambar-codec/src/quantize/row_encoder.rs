//! The encoder of rows: values to tokens and raw bits.

use crate::domain::padding::PaddingValue;
use crate::domain::regions::RegionBuffer;
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::entropy::symbols::Symbols;
use crate::entropy::token::{self, DIRECT, LITERAL};
use crate::predict::row::{Row, RowBatch, RowCoder, RowLocation, literal_or_prediction};
use crate::quantize::float_order::{difference, sum};
use crate::simd::compact::{append, append_rows};
use crate::simd::dispatch::vectorised;
use crate::simd::{LANES, RowMask};

/// Adding this to a much smaller number leaves the rounded number in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Points that are quantized in one call.
const SEGMENT: usize = 64;

/// Rounds to the nearest integer, ties to even, if the magnitude is below 2^51; a larger number remains large. Unlike
/// `round_ties_even`, it needs no function call on processors without a rounding instruction, and never returns -0,
/// which a decoder cannot reproduce.
#[inline(always)]
fn rounded(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
}

/// Brings `x` closer to 0 by `dead_zone`, at most to 0.
#[inline(always)]
fn shrunk(x: f64, dead_zone: f64) -> f64 {
    (x.abs() - dead_zone).max(0.0).copysign(x)
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
pub(crate) struct Encoder<'a, T: Clone> {
    source: &'a RegionBuffer<'a, T>,
    /// The error bound; 0 for lossless.
    bound: f64,
    /// The unit of errors: the step of the finest level.
    unit: f64,
    /// The dead zone of each context, if the encoder minimises rate and squared error together.
    dead_zones: Option<&'a [f64; CONTEXTS]>,
    /// The least decoded value, where errors are measured.
    least: T,
    symbols: &'a mut Symbols,
    /// The values of a row, with space for whole groups of lanes.
    row: Vec<T>,
    /// The values of the rows of a batch; the predictions of all other points.
    originals: Vec<T>,
    tokens: Vec<u8>,
    /// The dead zones of the points of a batch.
    zones: Vec<f64>,
    padding: Vec<PaddingPoint<T>>,
}

/// A padding point of a batch: its index and value.
struct PaddingPoint<T> {
    at: usize,
    value: PaddingValue<T>,
}

impl<T: Element> PaddingValue<T> {
    /// The residual of the value nearest to the prediction that the tolerance allows, which takes the fewest bits; 0 if
    /// that is too far away.
    fn steps(&self, prediction: T, step: f64) -> f64 {
        let off = self.value.to_f64() - prediction.to_f64();
        let steps = rounded(shrunk(off, self.tolerance.to_f64()) / step);
        if steps.abs() < T::MAX_STEPS {
            steps
        } else {
            0.0
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
    /// An encoder of the values of a region, which appends to `symbols`. Decoders replace values below `least`, if any.
    pub(crate) fn new(
        source: &'a RegionBuffer<'a, T>,
        bound: f64,
        dead_zones: Option<&'a [f64; CONTEXTS]>,
        least: Option<T>,
        symbols: &'a mut Symbols,
    ) -> Self {
        Self {
            source,
            bound: if dead_zones.is_some() {
                f64::INFINITY
            } else {
                bound
            },
            unit: 2.0 * bound,
            dead_zones,
            least: least.unwrap_or(T::from_f64(f64::NEG_INFINITY)),
            symbols,
            row: Vec::new(),
            originals: Vec::new(),
            tokens: Vec::new(),
            zones: Vec::new(),
            padding: Vec::new(),
        }
    }

    /// Replaces literals in the last row, which begins at `start` and is complete, by their values.
    pub(crate) fn restore_literals(&self, start: usize, values: &mut [T]) {
        if self.symbols.literals > 0 {
            let tokens = &self.symbols.tokens[self.symbols.tokens.len() - values.len()..];
            let sources = &self.source.values[start..];
            for ((value, token), source) in values.iter_mut().zip(tokens).zip(sources) {
                if *token == LITERAL {
                    *value = *source;
                }
            }
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
        if steps.abs() < T::MAX_STEPS {
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
            value: literal_or_prediction(x, prediction, step),
            magnitude: u8::MAX,
            token: self.write_literal(x),
        }
    }

    /// Lays out the values of rows, and lists their padding points.
    fn gather_rows<'r>(
        &mut self,
        rows: impl Iterator<Item = (RowLocation, RowMask<'r>)>,
        points: usize,
        predictions: &[T],
    ) {
        self.originals.clear();
        self.originals.extend_from_slice(predictions);
        self.padding.clear();
        for (location, mask) in rows.filter(|(_, mask)| mask.count > 0) {
            let originals = &mut self.originals[mask.start..][..points];
            if mask.count == points {
                gather(&self.source.values, location, originals);
            } else {
                self.row.resize(points, T::default());
                gather(&self.source.values, location, &mut self.row);
                copy_present(mask.bits, &self.row, originals);
            }
            if let Some(padding) = &self.source.padding {
                padding.for_each_in_row(location.start, location.step, points, |k, value| {
                    let at = mask.start + k;
                    // The prediction is always within the bound of its own value.
                    originals[k] = predictions[at];
                    if !value.is_any() {
                        self.padding.push(PaddingPoint { at, value });
                    }
                });
            }
        }
    }

    /// Writes the raw bits of points within the bound, and completes their tokens. `folded` are their residuals.
    fn write_residuals(&mut self, folded: &[u32], tokens: &mut [u8]) {
        for (token, folded) in tokens.iter_mut().zip(folded) {
            *token = self.write_residual(u64::from(*folded));
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
        if row.level.step != 0.0 {
            let mask = RowMask {
                start: 0,
                bits: row.present,
                count: row.count,
            };
            let batch = RowBatch {
                level: row.level,
                points: row.points,
                predictions: &row.predictions[..row.values.len()],
                contexts: row.contexts,
                values: row.values,
                magnitudes: row.magnitudes,
            };
            self.rows([(row.location, mask)].into_iter(), batch);
        } else {
            self.row.resize(row.points, T::default());
            gather(&self.source.values, row.location, &mut self.row);
            if let Some(padding) = &self.source.padding {
                let (RowLocation { start, step }, values) = (row.location, &mut self.row);
                let shift = row.level.shift;
                padding.for_each_in_row(start, step, row.points, |k, _| {
                    values[k] = sum(row.predictions[k], 0, shift);
                });
            }
            self.tokens.resize(row.points + LANES, 0);
            for k in (0..row.points).filter(|k| row.present[k / 64] >> (k % 64) & 1 == 1) {
                let (x, prediction) = (self.row[k], row.predictions[k]);
                let coded = self.encode_lossless(x, prediction, row.level.shift);
                (row.values[k], self.tokens[k]) = (coded.value, coded.token);
                if let Some(magnitudes) = &mut row.magnitudes {
                    magnitudes[k] = coded.magnitude;
                }
            }
            let tokens = &self.tokens[..row.points + LANES];
            append(row.present, row.count, tokens, &mut self.symbols.tokens);
        }
        if let Some(contexts) = row.contexts {
            append(
                row.present,
                row.count,
                &contexts[..row.points + LANES],
                &mut self.symbols.contexts,
            );
        }
    }

    fn rows<'r>(
        &mut self,
        rows: impl Iterator<Item = (RowLocation, RowMask<'r>)> + Clone,
        batch: RowBatch<'_, T>,
    ) {
        let RowBatch {
            level,
            points,
            predictions,
            contexts,
            values,
            mut magnitudes,
        } = batch;
        self.gather_rows(rows.clone(), points, predictions);
        let mut zones = std::mem::take(&mut self.zones);
        zones.clear();
        let dead_zones = self.dead_zones.zip(contexts).map(|(all, contexts)| {
            let zone = |context: &u8| all[usize::from(*context).min(CONTEXTS - 1)];
            zones.extend(contexts[..values.len()].iter().map(zone));
            &zones[..]
        });
        let (inverse, step) = (1.0 / level.step, T::from_f64(level.step));
        let mut originals = std::mem::take(&mut self.originals);
        let padding = std::mem::take(&mut self.padding);
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.resize(values.len() + LANES, 0);
        let mut left = &padding[..];
        let mut folded = [0; SEGMENT];
        for first in (0..values.len()).step_by(SEGMENT) {
            let end = values.len().min(first + SEGMENT);
            let (values, predictions) = (&mut values[first..end], &predictions[first..end]);
            let (originals, tokens) = (&mut originals[first..end], &mut tokens[first..end]);
            let folded = &mut folded[..end - first];
            let magnitudes = match &mut magnitudes {
                Some(magnitudes) => &mut magnitudes[first..end],
                None => &mut [][..],
            };
            let points = (&*originals, predictions);
            let outputs = (&mut *tokens, &mut *magnitudes);
            let (is_within_bound, mut any) = match dead_zones {
                Some(dead_zones) => quantize::<T, true>(
                    points,
                    level.step,
                    self.bound,
                    &dead_zones[first..end],
                    values,
                    folded,
                    outputs,
                ),
                None => quantize::<T, false>(
                    points,
                    level.step,
                    self.bound,
                    &[],
                    values,
                    folded,
                    outputs,
                ),
            };
            let before = left;
            while let Some((point, rest)) = left.split_first().filter(|(point, _)| point.at < end) {
                left = rest;
                let k = point.at - first;
                let steps = point.value.steps(predictions[k], level.step);
                values[k] = predictions[k].plus(T::from_f64(steps).times(step));
                folded[k] = token::fold(steps as i64) as u32;
                any |= folded[k];
                tokens[k] = folded[k] as u8;
                if let Some(magnitude) = magnitudes.get_mut(k) {
                    *magnitude = steps.abs().min(255.0) as u8;
                }
            }
            if is_within_bound {
                if any >= u32::from(DIRECT) {
                    self.write_residuals(folded, tokens);
                }
                continue;
            }
            let padding = &before[..before.len() - left.len()];
            for k in 0..values.len() {
                if padding.iter().any(|point| point.at == first + k) {
                    tokens[k] = self.write_residual(u64::from(folded[k]));
                    continue;
                }
                let (x, prediction) = (originals[k], predictions[k]);
                let steps = (x.to_f64() - prediction.to_f64()) * inverse;
                let dead_zone = dead_zones.map_or(0.0, |zones| zones[first + k]);
                let steps = rounded(shrunk(steps, dead_zone));
                let coded = self.quantize_value(x, prediction, steps, step);
                (values[k], tokens[k]) = (coded.value, coded.token);
                if coded.token == LITERAL {
                    // Literals have no error.
                    originals[k] = coded.value;
                }
                if let Some(magnitude) = magnitudes.get_mut(k) {
                    *magnitude = coded.magnitude;
                }
            }
        }
        if self.dead_zones.is_some() {
            // Errors of padding do not count.
            for point in &padding {
                originals[point.at] = values[point.at];
            }
            self.symbols.square_error += square_error(&originals, values, self.unit, self.least);
        }
        let masks = rows.map(|(_, mask)| mask);
        append_rows(masks, points, &tokens, &mut self.symbols.tokens);
        (self.originals, self.padding, self.tokens) = (originals, padding, tokens);
        self.zones = zones;
    }
}

vectorised! {
    /// The sum of the squared errors, in squared units, of values that decoders replace by `least` if they are below. Absent
    /// points have equal originals, which may be below it.
    pub(crate) fn square_error [T: Element] of [T] (originals: &[T], values: &[T], unit: f64, least: T) -> f64 {
        let inverse = 1.0 / unit;
        let squared = |original: T, value: T| {
            let [original, decoded] = [original, value].map(|x| if x < least { least } else { x });
            let error = (original.to_f64() - decoded.to_f64()) * inverse;
            error * error
        };
        let mut sums = [0.0; 8];
        let (originals, last_originals) = originals.as_chunks::<8>();
        let (values, last_values) = values.as_chunks::<8>();
        for (originals, values) in originals.iter().zip(values) {
            for k in 0..8 {
                sums[k] += squared(originals[k], values[k]);
            }
        }
        let last = last_originals.iter().zip(last_values);
        last.fold(sums.iter().sum(), |sum, (original, value)| sum + squared(*original, *value))
    }
}

/// Copies the values of a row.
fn gather<T: Element>(source: &[T], location: RowLocation, row: &mut [T]) {
    let source = &source[location.start..];
    if location.step != 2 {
        for (to, from) in row.iter_mut().zip(source.iter().step_by(location.step)) {
            *to = *from;
        }
        return;
    }
    // The finest level, which has most values. The last value may be the last of the region.
    let pairs = source.as_chunks::<2>().0;
    let whole = pairs.len().min(row.len());
    copy_first_of_pairs(&pairs[..whole], &mut row[..whole]);
    if let Some(to) = row.get_mut(whole) {
        *to = source[2 * whole];
    }
}

vectorised! {
    /// Copies the first of each pair.
    fn copy_first_of_pairs [T: Element] of [T] (pairs: &[[T; 2]], to: &mut [T]) {
        for (to, pair) in to.iter_mut().zip(pairs) {
            *to = pair[0];
        }
    }
}

vectorised! {
    /// Copies the values whose bits are set.
    fn copy_present [T: Element] of [T] (bits: &[u64], from: &[T], to: &mut [T]) {
        for ((bits, from), to) in bits.iter().zip(from.chunks(64)).zip(to.chunks_mut(64)) {
            for (k, (to, from)) in to.iter_mut().zip(from).enumerate() {
                *to = if bits >> k & 1 == 1 { *from } else { *to };
            }
        }
    }
}

vectorised! {
    /// Computes folded residuals, decoded values, tokens of residuals without raw bits, and, if wanted, magnitudes. Returns
    /// whether all values are within the bound, and the bitwise or of the residuals. Not inlined, so that the compiler can
    /// assume that inputs and outputs do not alias.
    fn quantize [T: Element, const SHRINKS: bool] of [T, SHRINKS] (
        points: (&[T], &[T]),
        step: f64,
        bound: f64,
        dead_zones: &[f64],
        values: &mut [T],
        folded: &mut [u32],
        bytes: (&mut [u8], &mut [u8]),
    ) -> (bool, u32) {
        let n = values.len();
        let (originals, predictions, folded) = (&points.0[..n], &points.1[..n], &mut folded[..n]);
        let dead_zones = &dead_zones[..if SHRINKS { n } else { 0 }];
        let (tokens, magnitudes) = bytes;
        let (inverse, step) = (1.0 / step, T::from_f64(step));
        let mut failures = 0;
        for k in 0..n {
            let prediction = predictions[k];
            let steps = (originals[k].to_f64() - prediction.to_f64()) * inverse;
            let steps = rounded(if SHRINKS { shrunk(steps, dead_zones[k]) } else { steps });
            let value = prediction.plus(T::from_f64(steps).times(step));
            let error = (value.to_f64() - originals[k].to_f64()).abs();
            let is_within_bound = (steps.abs() < T::MAX_STEPS) & (error < bound);
            failures |= u64::from(!is_within_bound);
            let whole = (steps + ROUNDER).to_bits() as i32;
            folded[k] = (whole << 1 ^ whole >> 31) as u32;
            values[k] = value;
        }
        for (token, folded) in tokens.iter_mut().zip(&*folded) {
            *token = *folded as u8;
        }
        for (magnitude, folded) in magnitudes.iter_mut().zip(&*folded) {
            *magnitude = (folded.wrapping_add(1) >> 1).min(255) as u8;
        }
        (failures == 0, folded.iter().fold(0, |any, folded| any | folded))
    }
}
