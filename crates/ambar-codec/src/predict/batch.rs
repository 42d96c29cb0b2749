//! The row pipeline: predictions and contexts of a batch of rows, and the hand-over to the coder.
//!
//! Encoder and decoder share [`Pass::code`]. If all contexts are known before the first row of a batch, the encoder gets the
//! whole batch, and the decoder reconstructs it in one pass. Otherwise they get the rows one by one.

use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::entropy::token::for_each_raw;
use crate::predict::batch_geometry::{self, Batch, BatchRow, Geometry};
use crate::predict::context::ContextModel;
use crate::predict::diagonals::Diagonals;
use crate::predict::differences::Differences;
use crate::predict::interpolate::{self, Line, VECTOR_POINTS, Weights};
use crate::predict::reconstruct;
use crate::predict::row::{InterpolationLevel, Row, RowBatch, RowCoder, RowLocation};
use crate::simd::LANES;
use crate::simd::compact::append_rows;

/// Buffers of a batch. Points and rows are as far apart as in the phase.
#[derive(Default)]
pub(crate) struct RowScratch<T> {
    pub(crate) predictions: Vec<T>,
    pub(crate) variation: Vec<f32>,
    /// Sums of residual magnitudes in earlier phases.
    pub(crate) near_sums: Vec<u16>,
    /// Sums of residual magnitudes in the plane before.
    pub(crate) plane_sums: Vec<u16>,
    /// Tokens that were decoded in advance.
    pub(crate) tokens: Vec<u8>,
    /// Contexts of one row, or of all rows.
    pub(crate) contexts: Vec<u8>,
    /// Contexts of the points that are coded, compacted.
    pub(crate) compacted_contexts: Vec<u8>,
    /// Runs of points: offsets from the batch's first point, and lengths in whole groups.
    pub(crate) runs: Vec<(usize, usize)>,
    /// The rows with points to predict.
    pub(crate) rows: Vec<BatchRow>,
}

impl<T: Element> RowScratch<T> {
    /// Reserves space for the batches of any phase of a lattice.
    pub(crate) fn prepare(&mut self, phases: &Phases) {
        let row = phases.fine[2].div_ceil(2) + 2 * LANES;
        let room = (batch_geometry::max_rows(phases) - 1) * phases.stride[1] + row;
        self.predictions.resize(room, T::default());
        self.variation.resize(room, 0.0);
        self.near_sums.resize(room, 0);
        self.plane_sums.resize(room + 2, 0);
        self.tokens.resize(room, 0);
        self.contexts.resize(room, 0);
    }
}

/// The source of the contexts of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextSource {
    /// The level: all points have one context, which the coder got in advance.
    Level,
    /// Earlier phases, and the rows before in y and z: known once the row before has been coded.
    Row,
    /// Earlier phases, and the plane before in z: known for all rows of a batch.
    Plane,
}

/// The decoded values of the phase that a batch belongs to.
pub(crate) struct PhaseBuffers<'a, T> {
    pub values: &'a mut [T],
    /// Magnitudes of the residuals; empty with contexts of levels.
    pub magnitudes: &'a mut [u8],
}

/// The dimensions in which the points of a row have both neighbours, if these are fewer than in other rows.
enum AvailableAxes<'a, T> {
    One([Line<'a, T>; 1]),
    Two([Line<'a, T>; 2]),
    /// All odd dimensions, or none.
    Other,
}

/// A phase being coded.
pub(crate) struct Pass<'a, T, const N: usize> {
    pub t: usize,
    pub lines: [Line<'a, T>; N],
    pub outer_points: Differences<'a, T, N, 6>,
    pub slopes: Differences<'a, T, N, 2>,
    pub diagonals: Diagonals<'a, T>,
    pub geometry: Geometry<'a, N>,
    pub weights: Weights<T>,
    /// Magnitudes of the residuals of all phases.
    pub magnitudes: &'a [Vec<u8>; 8],
    pub model: ContextModel,
    pub level: InterpolationLevel,
    /// The shape of the region.
    pub shape: [usize; 3],
}

impl<T: Element, const N: usize> Pass<'_, T, N> {
    /// The lines along which all points of a row, except the last one, have both neighbours.
    fn available_axes(&self, row: [usize; 2]) -> AvailableAxes<'_, T> {
        let is_last = self.geometry.is_last(row);
        let lines = self.lines.iter().zip(self.geometry.used);
        let mut lines = lines.filter(|(_, d)| !is_last[*d]).map(|(line, _)| *line);
        match (lines.next(), lines.next(), lines.next()) {
            (Some(one), None, _) if N > 1 => AvailableAxes::One([one]),
            (Some(one), Some(two), None) if N > 2 => AvailableAxes::Two([one, two]),
            _ => AvailableAxes::Other,
        }
    }

    /// Predicts the last points of the first rows of a batch from both neighbours along all lines except x, or along x if it
    /// is the only line. Calls `visit` with the offset from the first point of the batch, the prediction and the local
    /// variation.
    #[inline(always)]
    fn for_each_last_point(&self, batch: &Batch, rows: usize, mut visit: impl FnMut(usize, T, T)) {
        let last = self.geometry.points - 1;
        let offset = |row: usize| row * self.geometry.pitch + last;
        for first in (0..rows).step_by(VECTOR_POINTS) {
            let places = std::array::from_fn(|k| batch.at + offset((first + k).min(rows - 1)));
            let weights = &self.weights;
            let (means, curvatures) = match self.lines[..] {
                [y_or_z, _] => interpolate::predict_points(&places, &[y_or_z], weights),
                [z, y, _] => interpolate::predict_points(&places, &[z, y], weights),
                _ => interpolate::extrapolate_points(&places, &self.lines[0], weights),
            };
            for (k, row) in (first..rows).take(VECTOR_POINTS).enumerate() {
                visit(offset(row), means[k], curvatures[k]);
            }
        }
    }

    #[inline(always)]
    fn location(&self, row: [usize; 2]) -> RowLocation {
        RowLocation::new(self.t, row, self.shape, self.level.number)
    }

    /// Predicts the points of a batch. Computes the local variation too, if `VARIATION`.
    fn predict<const VARIATION: bool>(&self, batch: &Batch, scratch: &mut RowScratch<T>) {
        for (from, n) in &scratch.runs {
            interpolate::predict_span::<T, N, VARIATION>(
                batch.at + from,
                &self.lines,
                &self.weights,
                &mut scratch.predictions[*from..from + n],
                &mut scratch.variation[*from..from + n],
            );
        }
        let interior = self.geometry.interior_rows(batch);
        if self.geometry.last_point_lacks_neighbour() {
            self.for_each_last_point(batch, interior, |at, mean, curvature| {
                scratch.predictions[at] = mean;
                if VARIATION {
                    scratch.variation[at] = curvature.to_f32();
                }
            });
        }
        for row in interior..batch.rows {
            let (place, start) = ([batch.z, batch.y + row], row * self.geometry.pitch);
            let (at, span) = (
                batch.at + start,
                start..start + self.geometry.row_of_groups(),
            );
            let (out, variation) = (&mut scratch.predictions, &mut scratch.variation);
            match self.available_axes(place) {
                AvailableAxes::One(line) => interpolate::predict_span::<T, 1, VARIATION>(
                    at,
                    &line,
                    &self.weights,
                    &mut out[span.clone()],
                    &mut variation[span],
                ),
                AvailableAxes::Two(lines) => interpolate::predict_span::<T, 2, VARIATION>(
                    at,
                    &lines,
                    &self.weights,
                    &mut out[span.clone()],
                    &mut variation[span],
                ),
                AvailableAxes::Other => {}
            }
            self.geometry
                .for_each_missing_neighbours(place, |word, neighbours| {
                    let from = start + 64 * word;
                    interpolate::predict_with_missing::<T, N, VARIATION>(
                        batch.at + from,
                        &neighbours,
                        &self.lines,
                        &self.weights,
                        &mut out[from..],
                        &mut variation[from..],
                    );
                });
        }
        let pitch = self.geometry.pitch;
        self.outer_points
            .add_to(batch, pitch, &mut scratch.predictions);
        self.slopes.add_to(batch, pitch, &mut scratch.predictions);
        self.diagonals
            .blend_into(batch, pitch, &mut scratch.predictions);
    }

    /// A row for the coder: predictions and contexts are given, values and residual magnitudes are computed.
    fn row<'a>(
        &'a self,
        BatchRow {
            position, count, ..
        }: BatchRow,
        (predictions, contexts): (&'a [T], Option<&'a [u8]>),
        (values, magnitudes): (&'a mut [T], Option<&'a mut [u8]>),
    ) -> Row<'a, T> {
        Row {
            location: self.location(position),
            level: self.level,
            predictions,
            contexts,
            points: self.geometry.points,
            present: self.geometry.present(position),
            count,
            values,
            magnitudes,
        }
    }

    /// Codes the rows of a batch: computes which points are coded, their predictions and contexts, and passes these to the
    /// coder.
    pub(crate) fn code<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        source: ContextSource,
        out: PhaseBuffers<'_, T>,
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) {
        self.geometry.list_runs(batch, &mut scratch.runs);
        self.geometry.list_rows(batch, &mut scratch.rows);
        let is_batched = C::BATCHED && self.level.step != 0.0;
        match source {
            // Values are reconstructed while they are predicted.
            ContextSource::Level if is_batched => {
                return self.predict_and_reconstruct(batch, out.values, scratch, coder);
            }
            ContextSource::Level => self.predict::<false>(batch, scratch),
            ContextSource::Row => {
                self.predict::<true>(batch, scratch);
                for (from, n) in &scratch.runs {
                    let near = &mut scratch.near_sums[*from..from + n];
                    self.model.near(self.magnitudes, batch.at + from, near);
                }
            }
            ContextSource::Plane => {
                self.predict::<true>(batch, scratch);
                self.contexts_after_plane(batch, out.magnitudes, scratch);
                coder.set_contexts(&scratch.compacted_contexts);
                if is_batched {
                    return self.reconstruct(batch, out, scratch, coder);
                }
            }
        }
        let points = self.geometry.points;
        if source != ContextSource::Row && self.level.step != 0.0 {
            let masks = self.geometry.row_masks(&scratch.rows);
            let rows = scratch.rows.iter().zip(masks);
            let all = self.geometry.span(batch).next_multiple_of(LANES);
            let magnitudes = match source {
                ContextSource::Level => None,
                _ => Some(&mut out.magnitudes[batch.at..][..all]),
            };
            let rows = rows.map(
                #[inline(always)]
                |(row, mask)| (self.location(row.position), mask),
            );
            return coder.rows(
                rows,
                RowBatch {
                    level: self.level,
                    points,
                    predictions: &scratch.predictions[..all],
                    contexts: (source != ContextSource::Level).then(|| &scratch.contexts[..all]),
                    values: &mut out.values[batch.at..][..all],
                    magnitudes,
                },
            );
        }
        let room = points.next_multiple_of(LANES);
        for row in &scratch.rows {
            let (from, at) = (row.from, batch.at + row.from);
            let mut contexts = None;
            if source == ContextSource::Row {
                self.model.contexts(
                    (out.magnitudes, at),
                    [row.position[1] > 0, row.position[0] > 0],
                    (&scratch.near_sums[from..], &scratch.variation[from..]),
                    &mut scratch.contexts[..room],
                );
                contexts = Some(&scratch.contexts[..]);
            }
            let magnitudes = match source {
                ContextSource::Level => None,
                ContextSource::Row | ContextSource::Plane => {
                    Some(&mut out.magnitudes[at..at + room])
                }
            };
            let known = (&scratch.predictions[from..], contexts);
            coder.row(self.row(*row, known, (&mut out.values[at..at + room], magnitudes)));
        }
    }

    /// Computes the contexts of a batch's points from earlier phases and the plane before, and compacts them.
    fn contexts_after_plane(&self, batch: &Batch, magnitudes: &[u8], scratch: &mut RowScratch<T>) {
        for (from, n) in &scratch.runs {
            let (at, n) = (batch.at + from, n.next_multiple_of(LANES));
            let near = &mut scratch.near_sums[*from..from + n];
            self.model.near(self.magnitudes, at, near);
            self.model.contexts_after_plane(
                (magnitudes, at),
                (near, &scratch.variation[*from..from + n]),
                &mut scratch.plane_sums,
                &mut scratch.contexts[*from..from + n],
            );
        }
        let row_masks = self.geometry.row_masks(&scratch.rows);
        let points = self.geometry.points;
        scratch.compacted_contexts.clear();
        append_rows(
            row_masks,
            points,
            &scratch.contexts,
            &mut scratch.compacted_contexts,
        );
    }

    /// Decodes the rows of a batch without stored predictions.
    fn predict_and_reconstruct<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        own: &mut [T],
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) {
        if !self.scatter_tokens(batch, scratch, coder) {
            return self.predict_and_add::<false>(batch, own, scratch);
        }
        self.predict_and_add::<true>(batch, own, scratch);
        let step = T::from_f64(self.level.step);
        self.for_each_raw_point(batch, &scratch.tokens, |at, index, token| {
            let value = &mut own[batch.at + at];
            *value = coder.raw(token, index).value(*value, step);
        });
    }

    /// Decodes the rows of a batch whose predictions are stored.
    fn reconstruct<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        out: PhaseBuffers<'_, T>,
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) {
        let has_raw_bits = self.scatter_tokens(batch, scratch, coder);
        let step = T::from_f64(self.level.step);
        for (from, n) in &scratch.runs {
            let (at, n) = (batch.at + from, n.next_multiple_of(LANES));
            reconstruct::add_and_store_magnitudes(
                &scratch.tokens[*from..from + n],
                step,
                &scratch.predictions[*from..from + n],
                &mut out.values[at..at + n],
                &mut out.magnitudes[at..at + n],
            );
        }
        if !has_raw_bits {
            return;
        }
        self.for_each_raw_point(batch, &scratch.tokens, |k, index, token| {
            let (raw, at) = (coder.raw(token, index), batch.at + k);
            out.values[at] = raw.value(scratch.predictions[k], step);
            out.magnitudes[at] = raw.magnitude();
        });
    }

    /// Lays out the tokens of a batch, which were decoded in advance; 0 for points that are not coded. Returns whether any may
    /// have raw bits.
    fn scatter_tokens<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) -> bool {
        if scratch.rows.len() < batch.rows {
            scratch.tokens.fill(0);
        }
        let row_masks = self.geometry.row_masks(&scratch.rows);
        let raw = coder.scatter_tokens(row_masks, self.geometry.points, &mut scratch.tokens);
        // Runs are processed in whole groups, which may extend beyond the last row. Stale tokens after it would change residual
        // magnitudes that are read later.
        scratch.tokens[self.geometry.span(batch)..][..2 * LANES].fill(0);
        raw
    }

    /// Calls `visit` for the tokens of a batch that have raw bits, with their offsets from the first point of the batch, and
    /// their indices in the region.
    #[inline(always)]
    fn for_each_raw_point(
        &self,
        batch: &Batch,
        tokens: &[u8],
        mut visit: impl FnMut(usize, usize, u8),
    ) {
        let pitch = self.geometry.pitch;
        for_each_raw(&tokens[..self.geometry.span(batch)], |at, token| {
            let row = self.location([batch.z, batch.y + at / pitch]);
            visit(at, row.start + at % pitch * row.step, token);
        });
    }

    /// Predicts the points of a batch, and adds the residuals of the tokens that are laid out. Points with raw bits, which
    /// exist only if `RAW`, become their predictions.
    fn predict_and_add<const RAW: bool>(
        &self,
        batch: &Batch,
        own: &mut [T],
        scratch: &RowScratch<T>,
    ) {
        let step = T::from_f64(self.level.step);
        for (from, n) in &scratch.runs {
            let at = batch.at + from;
            interpolate::predict_span_and_add::<T, N, RAW>(
                at,
                &self.lines,
                &self.weights,
                (&scratch.tokens[*from..from + n], step),
                &mut own[at..at + n],
            );
        }
        let interior = self.geometry.interior_rows(batch);
        if self.geometry.last_point_lacks_neighbour() {
            self.for_each_last_point(batch, interior, |at, mean, _| {
                let token = scratch.tokens[at];
                own[batch.at + at] = reconstruct::add_token::<T, RAW>(mean, token, step);
            });
        }
        let mut predicted = [T::default(); 64];
        for row in interior..batch.rows {
            let (place, start) = ([batch.z, batch.y + row], row * self.geometry.pitch);
            let (at, n) = (batch.at + start, self.geometry.row_of_groups());
            let (tokens, out) = (&scratch.tokens[start..start + n], &mut own[at..at + n]);
            let (weights, tokens) = (&self.weights, (tokens, step));
            match self.available_axes(place) {
                AvailableAxes::One(line) => {
                    interpolate::predict_span_and_add::<T, 1, RAW>(at, &line, weights, tokens, out)
                }
                AvailableAxes::Two(lines) => {
                    interpolate::predict_span_and_add::<T, 2, RAW>(at, &lines, weights, tokens, out)
                }
                AvailableAxes::Other => {}
            }
            self.geometry
                .for_each_missing_neighbours(place, |word, neighbours| {
                    let from = start + 64 * word;
                    let at = batch.at + from;
                    let (lines, weights) = (&self.lines, &self.weights);
                    interpolate::predict_with_missing::<T, N, false>(
                        at,
                        &neighbours,
                        lines,
                        weights,
                        &mut predicted,
                        &mut [],
                    );
                    let mut left = neighbours.missing_neighbours();
                    while left != 0 {
                        let k = left.trailing_zeros() as usize;
                        left &= left - 1;
                        let token = scratch.tokens[from + k];
                        own[at + k] = reconstruct::add_token::<T, RAW>(predicted[k], token, step);
                    }
                });
        }
    }
}
