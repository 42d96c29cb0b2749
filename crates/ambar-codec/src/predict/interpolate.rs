//! SZ3-style interpolation of rows of points from their neighbours, and the local variation of the values.

use crate::element::Element;
use crate::predict::reconstruct::add_token;
use crate::simd::dispatch::vectorised;

/// Points of a group, which are predicted together.
pub(crate) const VECTOR_POINTS: usize = 8;

/// The constants of the interpolation, in the type of the values.
#[derive(Clone, Copy)]
pub(crate) struct Weights<T> {
    half: T,
    third: T,
    one: T,
    /// -0: adding it changes no number, not even -0, so sums begin with it.
    neg_zero: T,
}

impl<T: Element> Weights<T> {
    pub(crate) fn new() -> Self {
        Self {
            half: T::from_f64(0.5),
            third: T::from_f64(1.0 / 3.0),
            one: T::from_f64(1.0),
            neg_zero: T::from_f64(-0.0),
        }
    }

    /// Interpolates between four neighbours along a line, with its weights. Returns the value and the linear interpolation.
    #[inline(always)]
    fn interpolate(&self, (near_weight, far_weight): (T, T), v: [T; 4]) -> (T, T) {
        let near = v[1].plus(v[2]);
        let far = v[0].plus(v[3]);
        let value = near.times(near_weight).plus(far.times(far_weight));
        (value, near.times(self.half))
    }

    /// The factor that turns the sum of `count` numbers (1 to 3) into their mean.
    #[inline(always)]
    fn mean_factor(&self, count: u8) -> T {
        let few = if count == 2 { self.half } else { self.one };
        if count == 3 { self.third } else { few }
    }
}

/// Replaces a prediction that is not finite, or close to overflow, by 0.
#[inline(always)]
pub(crate) fn finite_or_zero<T: Element>(x: T) -> T {
    if x.is_predictable() { x } else { T::default() }
}

/// The neighbours of a row along one dimension: the phase that is even in it, and the distance of its points.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a, T> {
    pub values: &'a [T],
    pub stride: usize,
    /// The weights of the near and the far neighbours.
    pub weights: (T, T),
}

impl<'a, T: Copy> Line<'a, T> {
    /// The neighbours at -3, -1, +1 and +3 of the point at `at`.
    #[inline(always)]
    fn neighbours(&self, at: usize) -> [T; 4] {
        let from = &self.values[at - self.stride..][..3 * self.stride + 1];
        [0, 1, 2, 3].map(|k| from[k * self.stride])
    }

    /// The neighbours at -1 and -3 of the point at `at`.
    #[inline(always)]
    fn neighbours_before(&self, at: usize) -> (T, T) {
        (self.values[at], self.values[at - self.stride])
    }

    /// The neighbours at +1 and +3 of the point at `at`.
    #[inline(always)]
    fn neighbours_after(&self, at: usize) -> (T, T) {
        (
            self.values[at + self.stride],
            self.values[at + 2 * self.stride],
        )
    }

    /// The neighbours at -3, -1, +1 and +3 of `n` points from `at` on.
    #[inline(always)]
    fn neighbours_of_span(&self, at: usize, n: usize) -> [&'a [T]; 4] {
        [
            &self.values[at - self.stride..][..n],
            &self.values[at..][..n],
            &self.values[at + self.stride..][..n],
            &self.values[at + 2 * self.stride..][..n],
        ]
    }
}

/// The neighbours of `n` points from `at` on along all lines.
#[inline(always)]
fn neighbours_of_span<'a, T: Copy, const N: usize>(
    lines: &[Line<'a, T>; N],
    at: usize,
    n: usize,
) -> [[&'a [T]; 4]; N] {
    let mut all: [[&[T]; 4]; N] = [[&[]; 4]; N];
    for (span, line) in all.iter_mut().zip(lines) {
        *span = line.neighbours_of_span(at, n);
    }
    all
}

/// For the 64 points of a word: the points that are present, and along each odd dimension the presence of
/// their nearest neighbours before and after them.
#[derive(Clone, Copy)]
pub(crate) struct NeighbourMask<const N: usize> {
    pub own: u64,
    pub before: [u64; N],
    pub after: [u64; N],
}

impl<const N: usize> NeighbourMask<N> {
    /// The mask of the points from number `first` on.
    #[inline(always)]
    fn shifted(&self, first: usize) -> NeighbourMask<N> {
        let mut neighbours = *self;
        neighbours.own >>= first;
        for d in 0..N {
            neighbours.before[d] >>= first;
            neighbours.after[d] >>= first;
        }
        neighbours
    }

    /// The present points that lack a neighbour along any odd dimension.
    #[inline(always)]
    pub(crate) fn missing_neighbours(&self) -> u64 {
        (0..N).fold(0, |missing, d| missing | !(self.before[d] & self.after[d])) & self.own
    }

    /// The points with both neighbours along at least one dimension.
    #[inline(always)]
    fn with_both_neighbours(&self) -> u64 {
        (0..N).fold(0, |any, d| any | self.before[d] & self.after[d])
    }
}

/// Predicts the points of a word that lack a neighbour by the mean of the interpolations along the
/// dimensions in which both neighbours are present. The word's first point is at `at`. If `VARIATION`, computes
/// the local variation: the differences of these from linear interpolations, and among themselves.
#[inline(always)]
pub(crate) fn predict_with_missing<T: Element, const N: usize, const VARIATION: bool>(
    at: usize,
    neighbours: &NeighbourMask<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    out: &mut [T],
    variation: &mut [f32],
) {
    let missing = neighbours.missing_neighbours();
    if missing & missing.wrapping_sub(1) == 0 {
        // A single point: often the last of a row.
        let k = missing.trailing_zeros() as usize;
        let (mean, curvature) = predict_point_with_missing(at, neighbours, lines, weights, k);
        out[k] = mean;
        if VARIATION {
            variation[k] = curvature.to_f32();
        }
        return;
    }
    if N == 1
        && missing == neighbours.own
        && neighbours.before[0] & missing == missing
        && missing & missing.wrapping_add(1) == 0
    {
        // The last row or plane.
        let n = missing.count_ones() as usize;
        let variation = &mut variation[..if VARIATION { n } else { 0 }];
        return extrapolate_span::<T, VARIATION>(at, &lines[0], weights, &mut out[..n], variation);
    }
    let interpolated = neighbours.with_both_neighbours();
    let mut left = nonzero_bytes(missing);
    while left != 0 {
        let k = VECTOR_POINTS * left.trailing_zeros() as usize;
        left &= left - 1;
        let neighbours = NeighbourMask {
            own: neighbours.own & !interpolated,
            ..*neighbours
        };
        let (mut means, mut curvatures) = ([T::default(); VECTOR_POINTS], [0.0; VECTOR_POINTS]);
        let neighbours = neighbours.shifted(k);
        predict_span_with_holes::<T, N, VARIATION>(
            at + k,
            &neighbours,
            lines,
            weights,
            &mut means,
            &mut curvatures,
        );
        let ours = missing >> k & 0xff;
        for j in (0..VECTOR_POINTS).filter(|j| ours >> j & 1 == 1) {
            out[k + j] = means[j];
            if VARIATION {
                variation[k + j] = curvatures[j];
            }
        }
    }
}

/// Predicts point `k` of the word that begins at `at` from the neighbours that are present. Returns the
/// local variation too.
#[inline(always)]
fn predict_point_with_missing<T: Element, const N: usize>(
    at: usize,
    neighbours: &NeighbourMask<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    k: usize,
) -> (T, T) {
    let (mut sum, mut curvature) = (weights.neg_zero, T::default());
    let (mut min, mut max, mut count) = (T::default(), T::default(), 0);
    for (j, line) in lines.iter().enumerate() {
        if (neighbours.before[j] & neighbours.after[j]) >> k & 1 == 0 {
            continue;
        }
        let (value, linear) = weights.interpolate(line.weights, line.neighbours(at + k));
        sum = sum.plus(value);
        curvature = curvature.plus(value.minus(linear).magnitude());
        min = if (count == 0) | (value < min) {
            value
        } else {
            min
        };
        max = if (count == 0) | (value > max) {
            value
        } else {
            max
        };
        count += 1;
    }
    if count == 0 {
        return extrapolate_from_one_side(at, neighbours, lines, weights, k);
    }
    let factor = weights.mean_factor(count);
    (
        finite_or_zero(sum.times(factor)),
        curvature.times(factor).plus(max.minus(min)),
    )
}

/// One bit for each group of `VECTOR_POINTS` bits: set where any bit of the group is.
#[inline(always)]
pub(crate) fn nonzero_bytes(word: u64) -> u64 {
    // Reduce each byte to its lowest bit, and compact these bits at the top.
    let any = word | word >> 4;
    let any = any | any >> 2;
    let any = (any | any >> 1) & 0x0101_0101_0101_0101;
    any.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Predicts a point from its neighbours at -3, -1, +1 and +3 along each line. Returns the local variation too.
#[inline(always)]
fn predict_point<T: Element, const N: usize>(
    neighbours: [[T; 4]; N],
    line_weights: [(T, T); N],
    weights: &Weights<T>,
) -> (T, T) {
    let factor = weights.mean_factor(N as u8);
    let (mut sum, mut curvature) = (T::default(), T::default());
    let (mut min, mut max) = (T::default(), T::default());
    for (j, v) in neighbours.into_iter().enumerate() {
        let (value, linear) = weights.interpolate(line_weights[j], v);
        let off = value.minus(linear).magnitude();
        if j == 0 {
            (sum, curvature, min, max) = (value, off, value, value);
        } else {
            sum = sum.plus(value);
            curvature = curvature.plus(off);
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
        }
    }
    if N > 1 {
        (sum, curvature) = (sum.times(factor), curvature.times(factor));
    }
    (finite_or_zero(sum), curvature.plus(max.minus(min)))
}

/// The predictions of points, and the local variation at each.
pub(crate) type PredictedPoints<T> = ([T; VECTOR_POINTS], [T; VECTOR_POINTS]);

vectorised! {
    /// Predicts points at arbitrary places, all of whose neighbours are present.
    pub(crate) fn predict_points [T: Element, const N: usize] of [T, N] (
        places: &[usize; VECTOR_POINTS],
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
    ) -> PredictedPoints<T> {
        let mut neighbours = [[[T::default(); VECTOR_POINTS]; 4]; N];
        for (neighbours, line) in neighbours.iter_mut().zip(lines) {
            for (k, at) in places.iter().enumerate() {
                for (to, value) in neighbours.iter_mut().zip(line.neighbours(*at)) {
                    to[k] = value;
                }
            }
        }
        let line_weights = lines.map(|line| line.weights);
        let (mut means, mut curvatures) = ([T::default(); VECTOR_POINTS], [T::default(); VECTOR_POINTS]);
        for k in 0..VECTOR_POINTS {
            let four = |v: &[[T; VECTOR_POINTS]; 4]| [v[0][k], v[1][k], v[2][k], v[3][k]];
            (means[k], curvatures[k]) = predict_point(neighbours.each_ref().map(four), line_weights, weights);
        }
        (means, curvatures)
    }
}

/// Extrapolates points at arbitrary places from the neighbours before them.
pub(crate) fn extrapolate_points<T: Element>(
    places: &[usize; VECTOR_POINTS],
    line: &Line<'_, T>,
    weights: &Weights<T>,
) -> PredictedPoints<T> {
    let (mut means, mut curvatures) =
        ([T::default(); VECTOR_POINTS], [T::default(); VECTOR_POINTS]);
    for (k, at) in places.iter().enumerate() {
        let (near, far) = line.neighbours_before(*at);
        let half = near.minus(far).times(weights.half);
        (means[k], curvatures[k]) = (finite_or_zero(near.plus(half)), half.magnitude());
    }
    (means, curvatures)
}

vectorised! {
    /// Predicts consecutive points, all of whose neighbours are present.
    pub(crate) fn predict_span [T: Element, const N: usize, const VARIATION: bool] of [T, N, VARIATION] (
        at: usize,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        out: &mut [T],
        variation: &mut [f32],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (out, variation) = (&mut out[..n], &mut variation[..if VARIATION { n } else { 0 }]);
        let (lanes, line_weights) = (neighbours_of_span(lines, at, n), lines.map(|line| line.weights));
        for k in 0..n {
            let (mean, curvature) = predict_point(lanes.map(|v| v.map(|v| v[k])), line_weights, weights);
            out[k] = mean;
            if VARIATION {
                variation[k] = curvature.to_f32();
            }
        }
    }
}

vectorised! {
    /// Predicts consecutive points, all of whose neighbours are present, and adds the residuals of their
    /// tokens. `coded` holds the tokens and the step.
    pub(crate) fn predict_span_and_add [T: Element, const N: usize, const RAW: bool] of [T, N, RAW] (
        at: usize,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        coded: (&[u8], T),
        out: &mut [T],
    ) {
        let (n, step) = (out.len() / VECTOR_POINTS * VECTOR_POINTS, coded.1);
        let (out, tokens) = (&mut out[..n], &coded.0[..n]);
        let (lanes, line_weights) = (neighbours_of_span(lines, at, n), lines.map(|line| line.weights));
        for k in 0..n {
            let (mean, _) = predict_point(lanes.map(|v| v.map(|v| v[k])), line_weights, weights);
            out[k] = add_token::<T, RAW>(mean, tokens[k], step);
        }
    }
}

vectorised! {
    /// Predicts points from `at`, some of which lack neighbours. Those of `neighbours.own` lack one along each dimension.
    fn predict_span_with_holes [T: Element, const N: usize, const VARIATION: bool] of [T, N, VARIATION] (
        at: usize,
        neighbours: &NeighbourMask<N>,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        out: &mut [T],
        variation: &mut [f32],
    ) {
        let n = out.len() / VECTOR_POINTS * VECTOR_POINTS;
        let (out, variation) = (
            &mut out[..n],
            &mut variation[..if VARIATION { n } else { 0 }],
        );
        let (lanes, line_weights) = (neighbours_of_span(lines, at, n), lines.map(|line| line.weights));
        for k in 0..n {
            let (mut sum, mut curvature) = (weights.neg_zero, T::default());
            let (mut min, mut max) = (T::default(), T::default());
            let (mut any, mut factor) = (false, weights.one);
            for (j, v) in lanes.iter().enumerate() {
                let both = (neighbours.before[j] & neighbours.after[j]) >> k & 1 == 1;
                let (value, linear) = weights.interpolate(line_weights[j], [v[0][k], v[1][k], v[2][k], v[3][k]]);
                let off = value.minus(linear).magnitude();
                sum = sum.plus(if both { value } else { weights.neg_zero });
                curvature = curvature.plus(if both { off } else { T::default() });
                min = if both & (!any | (value < min)) {
                    value
                } else {
                    min
                };
                max = if both & (!any | (value > max)) {
                    value
                } else {
                    max
                };
                let next = if factor == weights.one {
                    weights.half
                } else {
                    weights.third
                };
                factor = if both & any { next } else { factor };
                any |= both;
            }
            out[k] = finite_or_zero(sum.times(factor));
            if VARIATION {
                variation[k] = curvature.times(factor).plus(max.minus(min)).to_f32();
            }
        }
        let mut alone = neighbours.own;
        if n < 64 {
            alone &= (1 << n) - 1;
        }
        while alone != 0 {
            let k = alone.trailing_zeros() as usize;
            alone &= alone - 1;
            let (mean, curvature) = extrapolate_from_one_side(at, neighbours, lines, weights, k);
            out[k] = mean;
            if VARIATION {
                variation[k] = curvature.to_f32();
            }
        }
    }
}

/// Extrapolates consecutive points from the neighbours before them along a line.
#[inline(never)]
fn extrapolate_span<T: Element, const VARIATION: bool>(
    at: usize,
    line: &Line<'_, T>,
    weights: &Weights<T>,
    out: &mut [T],
    variation: &mut [f32],
) {
    let n = out.len();
    let [far, near, ..] = line.neighbours_of_span(at, n);
    for k in 0..n {
        let half = near[k].minus(far[k]).times(weights.half);
        out[k] = finite_or_zero(near[k].plus(half));
        if VARIATION {
            variation[k] = half.magnitude().to_f32();
        }
    }
}

/// Extrapolates point `k` of the word that begins at `at` from the neighbours on one side of it.
#[inline(always)]
fn extrapolate_from_one_side<T: Element, const N: usize>(
    at: usize,
    neighbours: &NeighbourMask<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    k: usize,
) -> (T, T) {
    let (mut sum, mut curvature, mut count) = (weights.neg_zero, T::default(), 0);
    for (j, line) in lines.iter().enumerate() {
        let (near, far) = if neighbours.before[j] >> k & 1 == 1 {
            line.neighbours_before(at + k)
        } else if neighbours.after[j] >> k & 1 == 1 {
            line.neighbours_after(at + k)
        } else {
            continue;
        };
        let half = near.minus(far).times(weights.half);
        sum = sum.plus(near.plus(half));
        curvature = curvature.plus(half.magnitude());
        count += 1;
    }
    if count == 0 {
        return (T::default(), T::default());
    }
    let factor = weights.mean_factor(count);
    (finite_or_zero(sum.times(factor)), curvature.times(factor))
}
