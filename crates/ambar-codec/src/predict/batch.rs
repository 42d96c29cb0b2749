//! Rows of a phase that are predicted together, and their way to the coder.

use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::entropy::token::for_each_raw;
use crate::predict::batch_geometry::{self, Batch, BatchRow, Geometry};
use crate::predict::context::Expectation;
use crate::predict::interpolate::{self, FEW, Line, Weights};
use crate::predict::reconstruct;
use crate::predict::row::{Level, Place, Row, RowCoder};
use crate::simd::LANES;

/// Buffers of rows that are predicted together. A row's points lie one behind the other, rows as far
/// apart as in the phase.
#[derive(Default)]
pub(crate) struct RowScratch<T> {
    pub(crate) predictions: Vec<T>,
    pub(crate) rough: Vec<f32>,
    /// Sums of magnitudes nearby.
    pub(crate) near: Vec<u16>,
    /// Sums of magnitudes in the plane before.
    pub(crate) before: Vec<u16>,
    /// Tokens that are known ahead.
    pub(crate) tokens: Vec<u8>,
    /// The classes of one row, or of all.
    pub(crate) bins: Vec<u8>,
    /// The classes of the points that are there.
    pub(crate) classes: Vec<u8>,
    /// Where points are: offsets from the first row's first point, and lengths, in whole groups.
    pub(crate) runs: Vec<(usize, usize)>,
    /// The rows that there are points of to go over.
    pub(crate) rows: Vec<BatchRow>,
}

impl<T: Element> RowScratch<T> {
    /// Makes room for rows of any phase of a lattice.
    pub(crate) fn prepare(&mut self, phases: &Phases) {
        let row = phases.fine[2].div_ceil(2) + 2 * LANES;
        let room = (batch_geometry::most_rows(phases) - 1) * phases.stride[1] + row;
        self.predictions.resize(room, T::default());
        self.rough.resize(room, 0.0);
        self.near.resize(room, 0);
        self.before.resize(room + 2, 0);
        self.tokens.resize(room, 0);
        self.bins.resize(room, 0);
    }
}

/// The lines that a row's points are predicted along, where these are fewer than in other rows.
enum Left<'a, T> {
    One([Line<'a, T>; 1]),
    Two([Line<'a, T>; 2]),
    /// All of them, or none.
    Other,
}

/// A phase being coded.
pub(crate) struct Pass<'a, T, const N: usize> {
    pub t: usize,
    pub lines: [Line<'a, T>; N],
    pub geometry: Geometry<'a, N>,
    pub weights: Weights<T>,
    /// Magnitudes of the residuals of all phases.
    pub marks: &'a [Vec<u8>; 8],
    pub expectation: Expectation,
    pub level: Level,
    /// Of the region.
    pub shape: [usize; 3],
}

impl<T: Element, const N: usize> Pass<'_, T, N> {
    /// The lines along which all points of a row have both neighbours but the last.
    fn left(&self, row: [usize; 2]) -> Left<'_, T> {
        let beyond = self.geometry.beyond(row);
        let lines = self.lines.iter().zip(self.geometry.odd);
        let mut lines = lines.filter(|(_, d)| !beyond[*d]).map(|(line, _)| *line);
        match (lines.next(), lines.next(), lines.next()) {
            (Some(one), None, _) if N > 1 => Left::One([one]),
            (Some(one), Some(two), None) if N > 2 => Left::Two([one, two]),
            _ => Left::Other,
        }
    }

    /// Predicts the last points of a batch's first rows from both neighbours along all lines but x; or
    /// along x alone, where there is no other. `visit` gets their offsets from the batch's first point,
    /// predictions and roughness.
    #[inline(always)]
    fn last_points(&self, batch: &Batch, rows: usize, mut visit: impl FnMut(usize, T, T)) {
        let last = self.geometry.points - 1;
        let offset = |row: usize| row * self.geometry.pitch + last;
        for first in (0..rows).step_by(FEW) {
            let places = std::array::from_fn(|k| batch.at + offset((first + k).min(rows - 1)));
            let weights = &self.weights;
            let (means, bends) = match self.lines[..] {
                [y_or_z, _] => interpolate::points(&places, &[y_or_z], weights),
                [z, y, _] => interpolate::points(&places, &[z, y], weights),
                _ => interpolate::points_behind(&places, &self.lines[0], weights),
            };
            for (k, row) in (first..rows).take(FEW).enumerate() {
                visit(offset(row), means[k], bends[k]);
            }
        }
    }

    pub(crate) fn place(&self, row: [usize; 2]) -> Place {
        Place::new(self.t, row, self.shape, self.level.number)
    }

    /// Predicts the points of a batch; where `ROUGH`, says how rough the values are.
    pub(crate) fn predict<const ROUGH: bool>(&self, batch: &Batch, scratch: &mut RowScratch<T>) {
        for (from, n) in &scratch.runs {
            interpolate::span::<T, N, ROUGH>(
                batch.at + from,
                &self.lines,
                &self.weights,
                &mut scratch.predictions[*from..from + n],
                &mut scratch.rough[*from..from + n],
            );
        }
        let between = self.geometry.between(batch);
        if self.geometry.ends() {
            self.last_points(batch, between, |at, mean, bend| {
                scratch.predictions[at] = mean;
                if ROUGH {
                    scratch.rough[at] = bend.to_f32();
                }
            });
        }
        for row in between..batch.rows {
            let (place, start) = ([batch.z, batch.y + row], row * self.geometry.pitch);
            let (at, span) = (
                batch.at + start,
                start..start + self.geometry.row_of_groups(),
            );
            let (out, rough) = (&mut scratch.predictions, &mut scratch.rough);
            match self.left(place) {
                Left::One(line) => interpolate::span::<T, 1, ROUGH>(
                    at,
                    &line,
                    &self.weights,
                    &mut out[span.clone()],
                    &mut rough[span],
                ),
                Left::Two(lines) => interpolate::span::<T, 2, ROUGH>(
                    at,
                    &lines,
                    &self.weights,
                    &mut out[span.clone()],
                    &mut rough[span],
                ),
                Left::Other => {}
            }
            self.geometry.for_each_broken(place, |word, there| {
                let from = start + 64 * word;
                interpolate::mend::<T, N, ROUGH>(
                    batch.at + from,
                    &there,
                    &self.lines,
                    &self.weights,
                    &mut out[from..],
                    &mut rough[from..],
                );
            });
        }
    }

    /// A row on its way to the coder: predictions and classes are known, values and marks are made.
    pub(crate) fn row<'a>(
        &'a self,
        BatchRow { place, count, .. }: BatchRow,
        (predictions, bins): (&'a [T], Option<&'a [u8]>),
        (values, marks): (&'a mut [T], Option<&'a mut [u8]>),
    ) -> Row<'a, T> {
        Row {
            place: self.place(place),
            level: self.level,
            predictions,
            bins,
            points: self.geometry.points,
            there: self.geometry.there(place),
            count,
            values,
            marks,
        }
    }

    /// Codes the rows of a batch under the classes of what is expected.
    pub(crate) fn expected_rows(
        &self,
        batch: &Batch,
        own: &mut [T],
        marks: &mut [u8],
        scratch: &mut RowScratch<T>,
        coder: &mut impl RowCoder<T>,
    ) {
        self.geometry.runs(batch, &mut scratch.runs);
        self.geometry.rows(batch, &mut scratch.rows);
        self.predict::<true>(batch, scratch);
        for (from, n) in &scratch.runs {
            let near = &mut scratch.near[*from..from + n];
            self.expectation.near(self.marks, batch.at + from, near);
        }
        let room = self.geometry.points.next_multiple_of(LANES);
        for row in &scratch.rows {
            let (from, at) = (row.from, batch.at + row.from);
            self.expectation.bins(
                (marks, at),
                [row.place[1] > 0, row.place[0] > 0],
                (&scratch.near[from..], &scratch.rough[from..]),
                &mut scratch.bins[..room],
            );
            let to = (&mut own[at..at + room], Some(&mut marks[at..at + room]));
            let known = (&scratch.predictions[from..], Some(&scratch.bins[..]));
            coder.row(self.row(*row, known, to));
        }
    }

    /// Codes the rows of a batch, all under one class.
    pub(crate) fn plain_rows<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        own: &mut [T],
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) {
        self.geometry.runs(batch, &mut scratch.runs);
        self.geometry.rows(batch, &mut scratch.rows);
        if C::LAYS && self.level.step != 0.0 {
            return self.laid_rows(batch, own, scratch, coder);
        }
        self.predict::<false>(batch, scratch);
        let room = self.geometry.points.next_multiple_of(LANES);
        for row in &scratch.rows {
            let at = batch.at + row.from;
            let known = (&scratch.predictions[row.from..], None);
            coder.row(self.row(*row, known, (&mut own[at..at + room], None)));
        }
    }

    /// Decodes the rows of a batch whose tokens are known ahead: values are made as they are predicted.
    fn laid_rows<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        own: &mut [T],
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) {
        if !self.lay(batch, scratch, coder) {
            return self.add::<false>(batch, own, scratch);
        }
        self.add::<true>(batch, own, scratch);
        let step = T::from_f64(self.level.step);
        self.for_each_raw_point(batch, &scratch.tokens, |at, place, token| {
            if let Some(residual) = coder.raw(token, place) {
                let value = &mut own[batch.at + at];
                *value = value.plus(T::from_i32(residual).times(step));
            }
        });
    }

    /// Lays out the tokens of a batch's rows, which are known ahead; 0 where no point is coded. Says
    /// whether there may be some with raw bits.
    pub(crate) fn lay<C: RowCoder<T>>(
        &self,
        batch: &Batch,
        scratch: &mut RowScratch<T>,
        coder: &mut C,
    ) -> bool {
        if scratch.rows.len() < batch.rows {
            scratch.tokens.fill(0);
        }
        let spots = self.geometry.spots(&scratch.rows);
        let raw = coder.lay(spots, self.geometry.points, &mut scratch.tokens);
        // Runs are gone over in whole lanes, from where they begin: they may end that far behind the last row,
        // where tokens of longer rows would leave marks.
        scratch.tokens[self.geometry.all(batch)..][..2 * LANES].fill(0);
        raw
    }

    /// Calls `visit` for the tokens of a batch that have raw bits: with their offsets from the batch's
    /// first point, and their indices in the region.
    #[inline(always)]
    pub(crate) fn for_each_raw_point(
        &self,
        batch: &Batch,
        tokens: &[u8],
        mut visit: impl FnMut(usize, usize, u8),
    ) {
        let pitch = self.geometry.pitch;
        for_each_raw(&tokens[..self.geometry.all(batch)], |at, token| {
            let place = self.place([batch.z, batch.y + at / pitch]);
            visit(at, place.start + at % pitch * place.step, token);
        });
    }

    /// Makes the values of a batch from the tokens that are laid out; where there may be some with raw
    /// bits (`RAW`), these points' predictions.
    fn add<const RAW: bool>(&self, batch: &Batch, own: &mut [T], scratch: &RowScratch<T>) {
        let step = T::from_f64(self.level.step);
        for (from, n) in &scratch.runs {
            let at = batch.at + from;
            interpolate::span_and_add::<T, N, RAW>(
                at,
                &self.lines,
                &self.weights,
                (&scratch.tokens[*from..from + n], step),
                &mut own[at..at + n],
            );
        }
        let between = self.geometry.between(batch);
        if self.geometry.ends() {
            self.last_points(batch, between, |at, mean, _| {
                let token = scratch.tokens[at];
                own[batch.at + at] = reconstruct::direct::<T, RAW>(mean, token, step);
            });
        }
        let mut mended = [T::default(); 64];
        for row in between..batch.rows {
            let (place, start) = ([batch.z, batch.y + row], row * self.geometry.pitch);
            let (at, n) = (batch.at + start, self.geometry.row_of_groups());
            let (tokens, out) = (&scratch.tokens[start..start + n], &mut own[at..at + n]);
            let (weights, tokens) = (&self.weights, (tokens, step));
            match self.left(place) {
                Left::One(line) => {
                    interpolate::span_and_add::<T, 1, RAW>(at, &line, weights, tokens, out)
                }
                Left::Two(lines) => {
                    interpolate::span_and_add::<T, 2, RAW>(at, &lines, weights, tokens, out)
                }
                Left::Other => {}
            }
            self.geometry.for_each_broken(place, |word, there| {
                let from = start + 64 * word;
                let at = batch.at + from;
                let (lines, weights) = (&self.lines, &self.weights);
                interpolate::mend::<T, N, false>(at, &there, lines, weights, &mut mended, &mut []);
                let mut left = there.broken();
                while left != 0 {
                    let k = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let token = scratch.tokens[from + k];
                    own[at + k] = reconstruct::direct::<T, RAW>(mended[k], token, step);
                }
            });
        }
    }
}
