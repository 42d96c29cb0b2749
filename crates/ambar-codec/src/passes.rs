//! The walk over a region: from its coarsest lattice to the finest, phase by phase, row by row.
//!
//! Encoder and decoder take the same walk. At every row the walk knows, from what both have, a
//! prediction of each value and how large a residual is to be expected; a [`RowCoder`] turns these
//! into values, by encoding or decoding residuals.

use crate::bitmap::Bitmap;
use crate::context::{self, Expectation, Mixture};
use crate::continuation;
use crate::element::Element;
use crate::lattice::{self, ORDER, Phases};
use crate::predict::{self, LANES, Line, Weights};
use crate::validity::{self, Validity};

/// What belongs to one level of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// 0 is the finest.
    pub number: usize,
    /// Twice the error bound of its values; 0 where coding is lossless.
    pub step: f64,
    /// Lowest bits that are 0 in all values; of use where coding is lossless.
    pub shift: u32,
    /// Whether contexts are what is expected of each value; else they are the levels.
    pub expects: bool,
    /// Cubic interpolation; else linear.
    pub cubic: bool,
}

/// Where a row lies in the region's values: the index of its first point, and the distance of points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub start: usize,
    pub step: usize,
}

/// A row on its way: predictions and bins are given, values and marks are made.
pub(crate) struct Row<'a, T> {
    pub place: Place,
    pub level: Level,
    /// Predicted values.
    pub predictions: &'a [T],
    /// Classes of the expected magnitudes.
    pub bins: &'a [u8],
    /// The runs of points that are there, as first point and length. They lie behind each other in
    /// the slices: of other points there is nothing. There is room for a group of lanes behind them.
    pub runs: &'a [(usize, usize)],
    /// The number of points that are there.
    pub count: usize,
    /// The values, as they will be decoded.
    pub values: &'a mut [T],
    /// Magnitudes of the residuals.
    pub marks: &'a mut [u8],
}

/// What happens to the rows.
pub(crate) trait RowCoder<T> {
    /// Makes values and marks of a row.
    fn row(&mut self, row: Row<'_, T>);
}

/// Buffers of the walk, kept from region to region.
#[derive(Default)]
pub(crate) struct Scratch<T> {
    values: [Vec<T>; 8],
    marks: [Vec<u8>; 8],
    coarse: Vec<T>,
    row: RowScratch<T>,
}

/// Of the current row: what belongs to its points that are there, behind each other, with room for a
/// group of lanes behind the last.
#[derive(Default)]
struct RowScratch<T> {
    predictions: Vec<T>,
    rough: Vec<f32>,
    bins: Vec<u8>,
    values: Vec<T>,
    marks: Vec<u8>,
}

/// What the walk does the same on all levels.
pub(crate) struct Rules<'a> {
    pub mixture: &'a [Mixture; context::GROUPS],
    /// The levels' properties, the finest first; one more than there are refinements.
    pub levels: &'a [Level],
}

/// Walks over a region of `shape`; `out` gets its values, dense, z slowest.
pub(crate) fn walk<T: Element>(
    shape: [usize; 3],
    validity: Option<&Validity>,
    rules: &Rules<'_>,
    coder: &mut impl RowCoder<T>,
    scratch: &mut Scratch<T>,
    out: &mut [T],
) {
    let lattices = lattice::levels(shape);
    let top = lattices.len() - 1;
    let mut anchor = [T::default(); LANES];
    if validity.is_none_or(Validity::anchor) {
        coder.row(Row {
            place: Place { start: 0, step: 1 },
            level: rules.levels[top.min(rules.levels.len() - 1)],
            predictions: &[T::default(); LANES],
            bins: &[context::BINS as u8 - 1],
            runs: &[(0, 1)],
            count: 1,
            values: &mut anchor,
            marks: &mut [0; LANES],
        });
    }
    scratch.coarse.clear();
    scratch.coarse.push(anchor[0]);
    for number in (0..top).rev() {
        let phases = Phases::new(lattices[number]);
        scratch.prepare(&phases, lattices[number + 1]);
        let mut level = LevelWalk {
            phases: &phases,
            shape,
            level: rules.levels[number.min(rules.levels.len() - 1)],
            weights: Weights::new(rules.levels[number.min(rules.levels.len() - 1)].cubic),
            valid: validity.map(|v| v.phases(number)),
            rules,
            scratch,
        };
        level.level.number = number;
        level.pad(0);
        for t in ORDER {
            if phases.points(t).contains(&0) {
                continue;
            }
            level.pass(t, coder);
            level.pad(t);
        }
        let [_, ny, nx] = phases.fine;
        let dense = |z: usize, y: usize| (z * ny + y) * nx;
        if number == 0 {
            lattice::interleave(&phases, &scratch.values, out, dense);
        } else {
            let mut coarse = std::mem::take(&mut scratch.coarse);
            coarse.resize(phases.fine.iter().product(), T::default());
            lattice::interleave(&phases, &scratch.values, &mut coarse, dense);
            scratch.coarse = coarse;
        }
    }
    if top == 0 {
        out[0] = anchor[0];
    }
}

impl<T: Element> Scratch<T> {
    /// Makes room for a lattice's phases, and copies the coarser lattice, dense, into phase 0.
    fn prepare(&mut self, phases: &Phases, [nz, ny, nx]: [usize; 3]) {
        let len = phases.len + LANES;
        for t in (0..8).filter(|t| !phases.points(*t).contains(&0)) {
            // Values are written before they are read. Marks of points that are not there are read.
            self.values[t].resize(len, T::default());
            if cfg!(debug_assertions) {
                self.values[t].fill(T::from_f64(f64::NAN));
            }
            self.marks[t].clear();
            self.marks[t].resize(len, 0);
        }
        for z in 0..nz {
            for y in 0..ny {
                let (to, from) = (phases.row(z, y), (z * ny + y) * nx);
                self.values[0][to..to + nx].copy_from_slice(&self.coarse[from..from + nx]);
            }
        }
        let room = nx + LANES;
        self.row.predictions.resize(room, T::default());
        self.row.values.resize(room, T::default());
        self.row.rough.resize(room, 0.0);
        self.row.bins.resize(room, 0);
        self.row.marks.resize(room, 0);
    }
}

/// A row of a phase, and where its points have neighbours.
struct RowPlace {
    t: usize,
    z: usize,
    y: usize,
    /// Index of its first point in the phase.
    row: usize,
    /// The odd dimensions in which its points have neighbours on both sides, but for its last point,
    /// and their number.
    whole: ([usize; 3], usize),
    /// Whether its last point lacks the one behind it.
    open: bool,
}

impl RowPlace {
    fn new(phases: &Phases, t: usize, (z, y): (usize, usize)) -> Self {
        // The last odd point of an even number of points has no neighbour behind it.
        let open = |d: usize, k: usize| 2 * k + 2 >= phases.fine[d];
        let (mut whole, mut count) = ([0; 3], 0);
        for (d, k) in [(0, z), (1, y), (2, 0)] {
            if t >> d & 1 == 1 && !open(d, k) {
                whole[count] = d;
                count += 1;
            }
        }
        Self {
            t,
            z,
            y,
            row: phases.row(z, y),
            whole: (whole, count),
            open: t & 4 != 0 && phases.fine[2].is_multiple_of(2),
        }
    }

    /// The odd dimensions in which its points have neighbours on both sides.
    fn whole(&self) -> &[usize] {
        &self.whole.0[..self.whole.1]
    }

    /// Where the row lies in a region of `shape`, on lattice `number`.
    fn in_region(&self, [_, ny, nx]: [usize; 3], number: usize) -> Place {
        let at = |d: usize, k: usize| (2 * k + (self.t >> d & 1)) << number;
        Place {
            start: (at(0, self.z) * ny + at(1, self.y)) * nx + at(2, 0),
            step: 2 << number,
        }
    }
}

/// Copies what is most often short, without calling for it.
#[inline(always)]
fn short_copy<T: Copy>(from: &[T], to: &mut [T]) {
    let (from, from_rest) = from.as_chunks::<4>();
    let (to, to_rest) = to.as_chunks_mut::<4>();
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = *from;
    }
}

/// The walk over one lattice.
struct LevelWalk<'a, T> {
    phases: &'a Phases,
    shape: [usize; 3],
    level: Level,
    weights: Weights<T>,
    /// Which points of each phase are there; `None` for all.
    valid: Option<&'a [Bitmap; 8]>,
    rules: &'a Rules<'a>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> LevelWalk<'_, T> {
    /// Codes all rows of phase `t`.
    fn pass(&mut self, t: usize, coder: &mut impl RowCoder<T>) {
        let mixture = &self.rules.mixture[t.count_ones() as usize - 1];
        let expectation = Expectation::new(t, self.phases, mixture, self.level.step);
        let [nz, ny, nx] = self.phases.points(t);
        let mut own = std::mem::take(&mut self.scratch.values[t]);
        let mut runs = vec![(0, nx)];
        for z in 0..nz {
            for y in 0..ny {
                if let Some(valid) = self.valid {
                    runs.clear();
                    Bitmap::runs(valid[t].row(z, y), |first, n| runs.push((first, n)));
                    if runs.is_empty() {
                        continue;
                    }
                }
                let place = RowPlace::new(self.phases, t, (z, y));
                let mut count = 0;
                for (first, length) in &runs {
                    self.predict(&place, (*first, *length), count);
                    count += length;
                }
                self.mend(&place);
                self.bins(&expectation, &place, &runs);
                self.code(coder, &place, (&runs, count), &mut own);
            }
        }
        self.scratch.values[t] = own;
    }

    /// Fills the bins of a row.
    fn bins(&mut self, expectation: &Expectation, place: &RowPlace, runs: &[(usize, usize)]) {
        let scratch = &mut *self.scratch;
        let mut at = 0;
        if !self.level.expects {
            let count = runs.iter().map(|(_, n)| n).sum::<usize>();
            scratch.row.bins[..count].fill(context::level_bin(self.level.number));
            return;
        }
        for (first, n) in runs {
            let (rough, bins) = (&scratch.row.rough[at..], &mut scratch.row.bins[at..]);
            let from = (place.t, place.row + first, *n);
            expectation.bins(&scratch.marks, from, (place.z, place.y), rough, bins);
            at += n;
        }
    }

    /// Has a row coded, and puts its values and marks into their places.
    fn code(
        &mut self,
        coder: &mut impl RowCoder<T>,
        place: &RowPlace,
        (runs, count): (&[(usize, usize)], usize),
        own: &mut [T],
    ) {
        let scratch = &mut *self.scratch;
        let marks = &mut scratch.marks[place.t];
        let row = &mut scratch.row;
        let mut out = Row {
            place: place.in_region(self.shape, self.level.number),
            level: self.level,
            predictions: &row.predictions,
            bins: &row.bins,
            runs,
            count,
            values: &mut row.values,
            marks: &mut row.marks,
        };
        if let [(first, n)] = *runs {
            // Behind the run is room: what is written there is written again, or not read.
            let to = place.row + first;
            out.values = &mut own[to..to + n.next_multiple_of(LANES)];
            coder.row(out);
            short_copy(&row.marks[..n], &mut marks[to..to + n]);
            return;
        }
        coder.row(out);
        let mut at = 0;
        for (first, n) in runs {
            let to = place.row + first;
            short_copy(&row.values[at..at + n], &mut own[to..to + n]);
            short_copy(&row.marks[at..at + n], &mut marks[to..to + n]);
            at += n;
        }
    }

    /// Fills predictions and roughness, from `to` on, of a run of points of a row.
    fn predict(&mut self, place: &RowPlace, (first, n): (usize, usize), to: usize) {
        let (t, at) = (place.t, place.row + first);
        let scratch = &mut *self.scratch;
        let end = to + n.next_multiple_of(LANES);
        let out = &mut scratch.row.predictions[to..end];
        let rough = &mut scratch.row.rough[to..end];
        let values = &scratch.values;
        let line = |d: usize| Line {
            values: &values[t ^ 1 << d][..],
            stride: self.phases.stride[d],
        };
        let weights = &self.weights;
        let expects = self.level.expects;
        match *place.whole() {
            [a] => predict::interpolate((at, n), [line(a)], weights, out, expects.then_some(rough)),
            [a, b] => {
                let lines = [line(a), line(b)];
                predict::interpolate((at, n), lines, weights, out, expects.then_some(rough));
            }
            [a, b, c] => {
                let lines = [line(a), line(b), line(c)];
                predict::interpolate((at, n), lines, weights, out, expects.then_some(rough));
            }
            _ => {
                let d = t.trailing_zeros() as usize;
                let line = line(d);
                let near = &line.values[at..at + n];
                let far = &line.values[at - line.stride..][..n];
                predict::extrapolate(near, far, weights, &mut out[..n], rough);
            }
        }
    }

    /// Predicts again the points of a row that lack a neighbour which their prediction was made of.
    fn mend(&mut self, place: &RowPlace) {
        let (t, row, whole) = (place.t, place.row, place.whole());
        let Some(valid) = self.valid else {
            let nx = self.phases.points(t)[2];
            // A row without any such dimension is extrapolated along one: that is right if it is
            // the only odd one. Else the last point may lack a neighbour in x.
            let lonely = whole.is_empty() && !t.is_power_of_two();
            let first = match lonely {
                true => 0,
                false => nx - usize::from(place.open),
            };
            let behind = whole.iter().fold(0, |bits, d| bits | 1 << d) & 3;
            for k in first..nx {
                self.predict_one(t, row + k, k, [t as u8, behind]);
            }
            return;
        };
        let mut counted = 0;
        for word in 0..valid[t].words() {
            let own = valid[t].word([place.z, place.y], word);
            let near = validity::near(valid, t, [place.z, place.y], word);
            let mut sound = u64::MAX;
            for d in whole {
                sound &= near[0][*d] & near[1][*d];
            }
            // Extrapolation made use of one side only.
            let sound = if whole.is_empty() { 0 } else { sound };
            let mut broken = own & !sound;
            while broken != 0 {
                let bit = broken.trailing_zeros();
                broken &= broken - 1;
                let to = counted + (own & ((1 << bit) - 1)).count_ones() as usize;
                let there =
                    near.map(|near| (0..3).fold(0, |bits, d| bits | (near[d] >> bit & 1) << d));
                let at = row + 64 * word + bit as usize;
                self.predict_one(t, at, to, there.map(|bits| bits as u8));
            }
            counted += own.count_ones() as usize;
        }
    }

    /// Predicts the point at `at` by the dimensions in which both near neighbours are there, or
    /// beyond the nearest ones. `there` has bits of the odd dimensions in which the neighbour before
    /// and behind is there.
    fn predict_one(&mut self, t: usize, at: usize, to: usize, there: [u8; 2]) {
        let (mut sum, mut count, mut bend) = (T::default(), 0, T::default());
        let (mut least, mut most) = (T::default(), T::default());
        for d in 0..3 {
            if (there[0] & there[1]) >> d & 1 == 0 {
                continue;
            }
            let (values, stride) = (&self.scratch.values[t ^ 1 << d], self.phases.stride[d]);
            let places = [at - stride, at, at + stride, at + 2 * stride];
            let (value, linear) = self.weights.between(places.map(|place| values[place]));
            if count == 0 {
                (sum, least, most) = (value, value, value);
            } else {
                sum = sum.plus(value);
            }
            bend = bend.plus(value.minus(linear).magnitude());
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
            count += 1;
        }
        if count == 0 {
            for d in 0..3 {
                let (values, stride) = (&self.scratch.values[t ^ 1 << d], self.phases.stride[d]);
                let places = match there.map(|there| there >> d & 1) {
                    [1, _] => [at, at - stride],
                    [_, 1] => [at + stride, at + 2 * stride],
                    _ => continue,
                };
                let [near, far] = places.map(|place| values[place]);
                let value = self.weights.beyond(near, far);
                sum = if count == 0 { value } else { sum.plus(value) };
                let half = near.minus(far).magnitude().times(T::from_f64(0.5));
                bend = bend.plus(half);
                count += 1;
            }
        }
        let part = T::from_f64(1.0 / f64::from(count.max(1)));
        let rough = bend.times(part).plus(most.minus(least)).to_f32();
        let mean = predict::tame(sum.times(part));
        self.scratch.row.predictions[to] = mean;
        self.scratch.row.rough[to] = rough;
    }

    /// Continues phase `t` beyond its borders in its even dimensions, for interpolation to reach
    /// there.
    fn pad(&mut self, t: usize) {
        let points = self.phases.points(t);
        let values = &mut self.scratch.values[t];
        if let Some(valid) = self.valid {
            return validity::fill(values, &valid[t], self.phases, t);
        }
        for d in (0..3).filter(|d| t >> d & 1 == 0 && self.phases.fine[*d] > 1) {
            continuation::pad_dimension(values, self.phases, points, d);
        }
    }
}
