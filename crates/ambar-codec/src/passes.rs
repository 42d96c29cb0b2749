//! The walk over a region: from its coarsest lattice to the finest, phase by phase, row by row.
//!
//! Encoder and decoder take the same walk. At every row the walk knows, from what both have, a
//! prediction of each value and how large a residual is to be expected; a [`RowCoder`] turns these
//! into values, by encoding or decoding residuals.

use crate::context::{self, Expectation, Mixture};
use crate::element::Element;
use crate::lattice::{self, ORDER, Phases};
use crate::predict::{self, LANES, Line, Weights};
use crate::validity::{Mend, Validity};

/// What belongs to one level of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// 0 is the finest.
    pub number: usize,
    /// Twice the error bound of its values; 0 where coding is lossless.
    pub step: f64,
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
    /// Which points are there; `None` for all. Others get their prediction as value.
    pub valid: Option<&'a [u8]>,
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
    /// Of the current row, in groups of lanes.
    predictions: Vec<[T; LANES]>,
    rough: Vec<[f32; LANES]>,
    bins: Vec<[u8; LANES]>,
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
    let mut anchor = [T::default()];
    coder.row(Row {
        place: Place { start: 0, step: 1 },
        level: rules.levels[top.min(rules.levels.len() - 1)],
        predictions: &[T::default()],
        bins: &[context::BINS as u8 - 1],
        valid: validity.map(|v| v.anchor()),
        values: &mut anchor,
        marks: &mut [0],
    });
    scratch.coarse.clear();
    scratch.coarse.extend_from_slice(&anchor);
    for number in (0..top).rev() {
        let phases = Phases::new(lattices[number]);
        scratch.prepare(&phases, lattices[number + 1], validity.is_some());
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
        out.copy_from_slice(&anchor);
    }
}

impl<T: Element> Scratch<T> {
    /// Makes room for a lattice's phases, and copies the coarser lattice, dense, into phase 0.
    fn prepare(&mut self, phases: &Phases, [nz, ny, nx]: [usize; 3], masked: bool) {
        // Where all points are there, values are written before they are read; else 0 is read in
        // the place of some. Marks beyond the borders are read as 0.
        let len = phases.len + LANES;
        for (values, marks) in self.values.iter_mut().zip(&mut self.marks) {
            values.resize(len, T::default());
            if masked {
                values.fill(T::default());
            } else if cfg!(debug_assertions) {
                values.fill(T::from_f64(f64::NAN));
            }
            marks.clear();
            marks.resize(len, 0);
        }
        for z in 0..nz {
            for y in 0..ny {
                let (to, from) = (phases.row(z, y), (z * ny + y) * nx);
                self.values[0][to..to + nx].copy_from_slice(&self.coarse[from..from + nx]);
            }
        }
        let groups = nx.div_ceil(LANES);
        self.predictions.resize(groups, [T::default(); LANES]);
        self.rough.resize(groups, [0.0; LANES]);
        self.bins.resize(groups, [0; LANES]);
    }
}

/// The walk over one lattice.
struct LevelWalk<'a, T> {
    phases: &'a Phases,
    shape: [usize; 3],
    level: Level,
    weights: Weights<T>,
    /// Which points of each phase are there; `None` for all.
    valid: Option<&'a [Vec<u8>; 8]>,
    rules: &'a Rules<'a>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Element> LevelWalk<'_, T> {
    /// Codes all rows of phase `t`.
    fn pass(&mut self, t: usize, coder: &mut impl RowCoder<T>) {
        let mixture = &self.rules.mixture[t.count_ones() as usize - 1];
        let expectation = Expectation::new(t, self.phases, mixture, self.level.step);
        let mend = self.valid.map(|valid| Mend::new(t, self.phases, valid));
        let [nz, ny, nx] = self.phases.points(t);
        let mut own = std::mem::take(&mut self.scratch.values[t]);
        for z in 0..nz {
            for y in 0..ny {
                let row = self.phases.row(z, y);
                let valid = self.valid.map(|valid| &valid[t][row..row + nx]);
                if valid.is_some_and(|valid| !valid.contains(&1)) {
                    continue;
                }
                self.predict(t, (z, y), nx);
                if let Some(mend) = &mend {
                    mend.broken(row, nx, |k, there| {
                        self.predict_one(t, row, k, |d| there >> d & 1 == 1)
                    });
                }
                let groups = nx.div_ceil(LANES);
                let scratch = &mut *self.scratch;
                let (rough, bins) = (&scratch.rough[..groups], &mut scratch.bins[..groups]);
                expectation.bins(&scratch.marks, (t, row), (z, y), rough, bins);
                let mut marks = std::mem::take(&mut self.scratch.marks[t]);
                coder.row(Row {
                    place: self.place(t, (z, y)),
                    level: self.level,
                    predictions: &self.scratch.predictions.as_flattened()[..nx],
                    bins: &self.scratch.bins.as_flattened()[..nx],
                    valid,
                    values: &mut own[row..row + nx],
                    marks: &mut marks[row..row + nx],
                });
                self.scratch.marks[t] = marks;
            }
        }
        self.scratch.values[t] = own;
    }

    /// Where a row lies in the region.
    fn place(&self, t: usize, (z, y): (usize, usize)) -> Place {
        let scale = 1usize << self.level.number;
        let at = |d: usize, k: usize| (2 * k + (t >> d & 1)) * scale;
        let [_, ny, nx] = self.shape;
        Place {
            start: (at(0, z) * ny + at(1, y)) * nx + at(2, 0),
            step: 2 * scale,
        }
    }

    /// Fills predictions and roughness of a row.
    fn predict(&mut self, t: usize, (z, y): (usize, usize), nx: usize) {
        let row = self.phases.row(z, y);
        let points = self.phases.points(t);
        // The last odd point of an even number of points has no neighbour behind it.
        let open = |d: usize, k: usize| 2 * k + 2 >= self.phases.fine[d];
        let inner = |d: &usize| match *d {
            0 => !open(0, z),
            1 => !open(1, y),
            _ => nx > 1 || !open(2, 0),
        };
        let mut whole = [0; 3];
        let mut count = 0;
        for d in (0..3).filter(|d| t >> d & 1 == 1).filter(inner) {
            whole[count] = d;
            count += 1;
        }
        let scratch = &mut *self.scratch;
        let groups = nx.div_ceil(LANES);
        let out = &mut scratch.predictions[..groups];
        let rough = &mut scratch.rough[..groups];
        let values = &scratch.values;
        let weights = &self.weights;
        let line = |d: usize| Line {
            values: &values[t ^ 1 << d],
            stride: self.phases.stride[d],
        };
        match whole[..count] {
            [a] => predict::interpolate(row, [line(a)], weights, out, rough),
            [a, b] => predict::interpolate(row, [line(a), line(b)], weights, out, rough),
            [a, b, c] => {
                predict::interpolate(row, [line(a), line(b), line(c)], weights, out, rough);
            }
            _ => {
                let d = t.trailing_zeros() as usize;
                let values = &values[t ^ 1 << d];
                let near = &values[row..row + nx];
                let back = if points[d] > 1 {
                    self.phases.stride[d]
                } else {
                    0
                };
                let far = &values[row - back..row - back + nx];
                let out = &mut out.as_flattened_mut()[..nx];
                predict::extrapolate(near, far, weights, out, rough.as_flattened_mut());
            }
        }
        if t & 4 != 0 && open(2, nx - 1) && nx > 1 {
            self.predict_one(t, row, nx - 1, |d| d != 2 && whole[..count].contains(&d));
        }
    }

    /// Predicts one point by the dimensions in which both near neighbours are there, or beyond the
    /// nearest ones.
    fn predict_one(&mut self, t: usize, row: usize, k: usize, inner: impl Fn(usize) -> bool) {
        let at = row + k;
        let (mut sum, mut count, mut rough) = (T::default(), 0, 0.0f32);
        let odd = || (0..3).filter(|d| t >> d & 1 == 1);
        for d in odd().filter(|d| inner(*d)) {
            let (values, stride) = (&self.scratch.values[t ^ 1 << d], self.phases.stride[d]);
            let places = [at - stride, at, at + stride, at + 2 * stride];
            let (value, linear) = self.weights.between(places.map(|place| values[place]));
            sum = sum.plus(value);
            rough += value.minus(linear).magnitude().to_f32();
            count += 1;
        }
        if count == 0 {
            for d in odd() {
                if let Some((value, off)) = self.one_sided(t, at, d) {
                    sum = sum.plus(value);
                    rough += off;
                    count += 1;
                }
            }
        }
        if count > 0 {
            let mean = sum.times(T::from_f64(1.0 / f64::from(count)));
            self.scratch.predictions.as_flattened_mut()[k] = predict::tame(mean);
            self.scratch.rough.as_flattened_mut()[k] = rough / count as f32;
        }
    }

    /// The value beyond the neighbour on the one side where it is there.
    fn one_sided(&self, t: usize, at: usize, d: usize) -> Option<(T, f32)> {
        let source = t ^ 1 << d;
        let stride = self.phases.stride[d];
        let values = &self.scratch.values[source];
        let places = match self.valid {
            None => [at, at - stride],
            Some(valid) if valid[source][at] == 1 => [at, at - stride],
            Some(valid) if valid[source][at + stride] == 1 => [at + stride, at + 2 * stride],
            Some(_) => return None,
        };
        let [near, far] = places.map(|place| values[place]);
        let off = near.minus(far).magnitude().to_f32() * 0.5;
        Some((self.weights.beyond(near, far), off))
    }

    /// Continues phase `t` beyond its borders in its even dimensions, for interpolation to reach
    /// there.
    fn pad(&mut self, t: usize) {
        let points = self.phases.points(t);
        let values = &mut self.scratch.values[t];
        if let Some(valid) = self.valid {
            crate::validity::fill(values, &valid[t], self.phases, t);
        }
        for d in (0..3).filter(|d| t >> d & 1 == 0 && self.phases.fine[*d] > 1) {
            pad_dimension(values, self.phases, points, d);
        }
    }
}

/// Continues a phase by one point on both sides of dimension `d`: along the parabola through three
/// points, the line through two, or the value of one.
fn pad_dimension<T: Element>(values: &mut [T], phases: &Phases, points: [usize; 3], d: usize) {
    let stride = phases.stride[d];
    let n = points[d];
    let mut around = points;
    around[d] = 1;
    let last = (n - 1) * stride;
    for z in 0..around[0] {
        for y in 0..around[1] {
            let row = phases.row(z, y);
            for x in row..row + around[2] {
                let pick = |k: usize| (values[x + k * stride], values[x + last - k * stride]);
                let (a, z) = pick(0);
                let (b, y) = if n > 1 { pick(1) } else { (a, z) };
                let (c, w) = if n > 2 {
                    pick(2)
                } else {
                    (b.plus(b).minus(a), y.plus(y).minus(z))
                };
                values[x - stride] = continued(a, b, c);
                values[x + last + stride] = continued(z, y, w);
            }
        }
    }
}

/// The value before `a` on the parabola through `a`, `b` and `c`.
#[inline(always)]
pub(crate) fn continued<T: Element>(a: T, b: T, c: T) -> T {
    let difference = a.minus(b);
    predict::tame(difference.plus(difference).plus(difference).plus(c))
}
