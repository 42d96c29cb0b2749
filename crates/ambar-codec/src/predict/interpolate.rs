//! Predictions of a row of points from the points around it, and how rough the values are there.

use crate::element::Element;
use crate::predict::reconstruct::direct;
use crate::simd::dispatch::vectorised;

/// Points that are predicted at a time.
pub(crate) const FEW: usize = 8;

/// The constants of the interpolation, in the type of the values.
#[derive(Clone, Copy)]
pub(crate) struct Weights<T> {
    /// Of the near neighbours: 9/16 (cubic) or 1/2 (linear).
    near: T,
    /// Of the far neighbours: -1/16 or 0.
    far: T,
    half: T,
    third: T,
    one: T,
    /// Added to a number, even to -0, it leaves that number: sums begin with it.
    nothing: T,
}

impl<T: Element> Weights<T> {
    /// Cubic interpolation through four neighbours, or linear through two.
    pub(crate) fn new(cubic: bool) -> Self {
        let (near, far) = if cubic { (0.5625, -0.0625) } else { (0.5, 0.0) };
        Self {
            near: T::from_f64(near),
            far: T::from_f64(far),
            half: T::from_f64(0.5),
            third: T::from_f64(1.0 / 3.0),
            one: T::from_f64(1.0),
            nothing: T::from_f64(-0.0),
        }
    }

    /// From four neighbours: the value between, and half the sum of the near ones.
    #[inline(always)]
    fn between(&self, v: [T; 4]) -> (T, T) {
        let near = v[1].plus(v[2]);
        let far = v[0].plus(v[3]);
        let value = near.times(self.near).plus(far.times(self.far));
        (value, near.times(self.half))
    }

    /// What the sum of `count` numbers, 1 to 3, is multiplied by to get their mean.
    #[inline(always)]
    fn part(&self, count: u8) -> T {
        let few = if count == 2 { self.half } else { self.one };
        if count == 3 { self.third } else { few }
    }
}

/// A prediction that sums may be made of: 0 where it is close to overflow.
#[inline(always)]
pub(crate) fn tame<T: Element>(x: T) -> T {
    if x.is_tame() { x } else { T::default() }
}

/// Where the neighbours of a row along one dimension are: the phase that is even in it, and the
/// distance of its points.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a, T> {
    pub values: &'a [T],
    pub stride: usize,
}

impl<'a, T: Copy> Line<'a, T> {
    /// The neighbours at -3, -1, +1 and +3 of the point at `at`.
    #[inline(always)]
    fn four(&self, at: usize) -> [T; 4] {
        let from = &self.values[at - self.stride..][..3 * self.stride + 1];
        [0, 1, 2, 3].map(|k| from[k * self.stride])
    }

    /// The neighbours at -1 and -3 of the point at `at`.
    #[inline(always)]
    fn before(&self, at: usize) -> (T, T) {
        (self.values[at], self.values[at - self.stride])
    }

    /// The neighbours at +1 and +3 of the point at `at`.
    #[inline(always)]
    fn behind(&self, at: usize) -> (T, T) {
        (
            self.values[at + self.stride],
            self.values[at + 2 * self.stride],
        )
    }

    /// The neighbours at -3, -1, +1 and +3 of `n` points from `at` on.
    #[inline(always)]
    fn around(&self, at: usize, n: usize) -> [&'a [T]; 4] {
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
fn around<'a, T: Copy, const N: usize>(
    lines: &[Line<'a, T>; N],
    at: usize,
    n: usize,
) -> [[&'a [T]; 4]; N] {
    let mut all: [[&[T]; 4]; N] = [[&[]; 4]; N];
    for (around, line) in all.iter_mut().zip(lines) {
        *around = line.around(at, n);
    }
    all
}

/// Which of a word's points are there, and along each odd dimension their near neighbours before and
/// behind them.
#[derive(Clone, Copy)]
pub(crate) struct There<const N: usize> {
    pub own: u64,
    pub before: [u64; N],
    pub behind: [u64; N],
}

impl<const N: usize> There<N> {
    /// Of the points from number `first` on.
    #[inline(always)]
    fn from(&self, first: usize) -> There<N> {
        let mut there = *self;
        there.own >>= first;
        for d in 0..N {
            there.before[d] >>= first;
            there.behind[d] >>= first;
        }
        there
    }

    /// The points that are there and lack a neighbour.
    #[inline(always)]
    pub(crate) fn broken(&self) -> u64 {
        (0..N).fold(0, |broken, d| broken | !(self.before[d] & self.behind[d])) & self.own
    }

    /// The points that have both neighbours along any dimension.
    #[inline(always)]
    fn any(&self) -> u64 {
        (0..N).fold(0, |any, d| any | self.before[d] & self.behind[d])
    }
}

/// Predicts those points of a word that lack a neighbour, the first of the word being at `at`, by the
/// mean of the interpolations along the dimensions in which both are there. Where `ROUGH`, `rough`
/// gets how much these differ from linear ones and among themselves.
#[inline(always)]
pub(crate) fn mend<T: Element, const N: usize, const ROUGH: bool>(
    at: usize,
    there: &There<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    out: &mut [T],
    rough: &mut [f32],
) {
    let broken = there.broken();
    if broken & broken.wrapping_sub(1) == 0 {
        // A single point, most often the last of a row.
        let k = broken.trailing_zeros() as usize;
        let (mean, bend) = broken_point(at, there, lines, weights, k);
        out[k] = mean;
        if ROUGH {
            rough[k] = bend.to_f32();
        }
        return;
    }
    if N == 1
        && broken == there.own
        && there.before[0] & broken == broken
        && broken & broken.wrapping_add(1) == 0
    {
        // The last row or plane.
        let n = broken.count_ones() as usize;
        let rough = &mut rough[..if ROUGH { n } else { 0 }];
        return beyond::<T, ROUGH>(at, &lines[0], weights, &mut out[..n], rough);
    }
    let any = there.any();
    let mut left = groups(broken);
    while left != 0 {
        let k = FEW * left.trailing_zeros() as usize;
        left &= left - 1;
        let there = There {
            own: there.own & !any,
            ..*there
        };
        let (mut means, mut bends) = ([T::default(); FEW], [0.0; FEW]);
        let there = there.from(k);
        span_with_holes::<T, N, ROUGH>(at + k, &there, lines, weights, &mut means, &mut bends);
        let ours = broken >> k & 0xff;
        for j in (0..FEW).filter(|j| ours >> j & 1 == 1) {
            out[k + j] = means[j];
            if ROUGH {
                rough[k + j] = bends[j];
            }
        }
    }
}

/// Predicts point `k` of a word that begins at `at`, with the neighbours of it alone; gives its
/// roughness too.
#[inline(always)]
fn broken_point<T: Element, const N: usize>(
    at: usize,
    there: &There<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    k: usize,
) -> (T, T) {
    let (mut sum, mut bend) = (weights.nothing, T::default());
    let (mut least, mut most, mut count) = (T::default(), T::default(), 0);
    for (j, line) in lines.iter().enumerate() {
        if (there.before[j] & there.behind[j]) >> k & 1 == 0 {
            continue;
        }
        let (value, linear) = weights.between(line.four(at + k));
        sum = sum.plus(value);
        bend = bend.plus(value.minus(linear).magnitude());
        least = if (count == 0) | (value < least) {
            value
        } else {
            least
        };
        most = if (count == 0) | (value > most) {
            value
        } else {
            most
        };
        count += 1;
    }
    if count == 0 {
        return from_one_side(at, there, lines, weights, k);
    }
    let part = weights.part(count);
    (
        tame(sum.times(part)),
        bend.times(part).plus(most.minus(least)),
    )
}

/// The groups of `FEW` bits of which any is set, a bit for each.
#[inline(always)]
pub(crate) fn groups(word: u64) -> u64 {
    // To the lowest bit of each byte; then these next to each other, at the top.
    let any = word | word >> 4;
    let any = any | any >> 2;
    let any = (any | any >> 1) & 0x0101_0101_0101_0101;
    any.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Predicts a point from its neighbours at -3, -1, +1 and +3 along each line; gives its roughness too.
#[inline(always)]
fn whole<T: Element, const N: usize>(neighbours: [[T; 4]; N], weights: &Weights<T>) -> (T, T) {
    let part = weights.part(N as u8);
    let (mut sum, mut bend) = (T::default(), T::default());
    let (mut least, mut most) = (T::default(), T::default());
    for (j, v) in neighbours.into_iter().enumerate() {
        let (value, linear) = weights.between(v);
        let off = value.minus(linear).magnitude();
        if j == 0 {
            (sum, bend, least, most) = (value, off, value, value);
        } else {
            sum = sum.plus(value);
            bend = bend.plus(off);
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
        }
    }
    if N > 1 {
        (sum, bend) = (sum.times(part), bend.times(part));
    }
    (tame(sum), bend.plus(most.minus(least)))
}

/// Predictions of points, and how rough the values are there.
pub(crate) type Points<T> = ([T; FEW], [T; FEW]);

vectorised! {
    /// Predicts points that lie anywhere, all of whose neighbours are there.
    pub(crate) fn points [T: Element, const N: usize] of [T, N] (
        places: &[usize; FEW],
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
    ) -> Points<T> {
        let mut neighbours = [[[T::default(); FEW]; 4]; N];
        for (neighbours, line) in neighbours.iter_mut().zip(lines) {
            for (k, at) in places.iter().enumerate() {
                for (to, value) in neighbours.iter_mut().zip(line.four(*at)) {
                    to[k] = value;
                }
            }
        }
        let (mut means, mut bends) = ([T::default(); FEW], [T::default(); FEW]);
        for k in 0..FEW {
            let four = |v: &[[T; FEW]; 4]| [v[0][k], v[1][k], v[2][k], v[3][k]];
            (means[k], bends[k]) = whole(neighbours.each_ref().map(four), weights);
        }
        (means, bends)
    }
}

/// Predicts points that lie anywhere beyond their neighbours before them.
pub(crate) fn points_behind<T: Element>(
    places: &[usize; FEW],
    line: &Line<'_, T>,
    weights: &Weights<T>,
) -> Points<T> {
    let (mut means, mut bends) = ([T::default(); FEW], [T::default(); FEW]);
    for (k, at) in places.iter().enumerate() {
        let (near, far) = line.before(*at);
        let half = near.minus(far).times(weights.half);
        (means[k], bends[k]) = (tame(near.plus(half)), half.magnitude());
    }
    (means, bends)
}

vectorised! {
    /// Predicts points from `at` on, all of whose neighbours are there.
    pub(crate) fn span [T: Element, const N: usize, const ROUGH: bool] of [T, N, ROUGH] (
        at: usize,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        out: &mut [T],
        rough: &mut [f32],
    ) {
        let n = out.len() / FEW * FEW;
        let (out, rough) = (&mut out[..n], &mut rough[..if ROUGH { n } else { 0 }]);
        let neighbours = around(lines, at, n);
        for k in 0..n {
            let (mean, bend) = whole(neighbours.map(|v| v.map(|v| v[k])), weights);
            out[k] = mean;
            if ROUGH {
                rough[k] = bend.to_f32();
            }
        }
    }
}

vectorised! {
    /// Makes values of points from `at` on, all of whose neighbours are there, of predictions and tokens,
    /// whose `step` comes with them.
    pub(crate) fn span_and_add [T: Element, const N: usize, const RAW: bool] of [T, N, RAW] (
        at: usize,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        coded: (&[u8], T),
        out: &mut [T],
    ) {
        let (n, step) = (out.len() / FEW * FEW, coded.1);
        let (out, tokens) = (&mut out[..n], &coded.0[..n]);
        let neighbours = around(lines, at, n);
        for k in 0..n {
            let (mean, _) = whole(neighbours.map(|v| v.map(|v| v[k])), weights);
            out[k] = direct::<T, RAW>(mean, tokens[k], step);
        }
    }
}

vectorised! {
    /// Predicts points from `at` on, some of which lack neighbours: those of `there.own` have both along
    /// no dimension.
    fn span_with_holes [T: Element, const N: usize, const ROUGH: bool] of [T, N, ROUGH] (
        at: usize,
        there: &There<N>,
        lines: &[Line<'_, T>; N],
        weights: &Weights<T>,
        out: &mut [T],
        rough: &mut [f32],
    ) {
        let n = out.len() / FEW * FEW;
        let (out, rough) = (&mut out[..n], &mut rough[..if ROUGH { n } else { 0 }]);
        let neighbours = around(lines, at, n);
        for k in 0..n {
            let (mut sum, mut bend) = (weights.nothing, T::default());
            let (mut least, mut most) = (T::default(), T::default());
            let (mut any, mut part) = (false, weights.one);
            for (j, v) in neighbours.iter().enumerate() {
                let both = (there.before[j] & there.behind[j]) >> k & 1 == 1;
                let (value, linear) = weights.between([v[0][k], v[1][k], v[2][k], v[3][k]]);
                let off = value.minus(linear).magnitude();
                sum = sum.plus(if both { value } else { weights.nothing });
                bend = bend.plus(if both { off } else { T::default() });
                least = if both & (!any | (value < least)) {
                    value
                } else {
                    least
                };
                most = if both & (!any | (value > most)) {
                    value
                } else {
                    most
                };
                let next = if part == weights.one {
                    weights.half
                } else {
                    weights.third
                };
                part = if both & any { next } else { part };
                any |= both;
            }
            out[k] = tame(sum.times(part));
            if ROUGH {
                rough[k] = bend.times(part).plus(most.minus(least)).to_f32();
            }
        }
        let mut alone = there.own;
        if n < 64 {
            alone &= (1 << n) - 1;
        }
        while alone != 0 {
            let k = alone.trailing_zeros() as usize;
            alone &= alone - 1;
            let (mean, bend) = from_one_side(at, there, lines, weights, k);
            out[k] = mean;
            if ROUGH {
                rough[k] = bend.to_f32();
            }
        }
    }
}

/// Predicts points from `at` on beyond their neighbours before them along a line.
#[inline(never)]
fn beyond<T: Element, const ROUGH: bool>(
    at: usize,
    line: &Line<'_, T>,
    weights: &Weights<T>,
    out: &mut [T],
    rough: &mut [f32],
) {
    let n = out.len();
    let [far, near, ..] = line.around(at, n);
    for k in 0..n {
        let half = near[k].minus(far[k]).times(weights.half);
        out[k] = tame(near[k].plus(half));
        if ROUGH {
            rough[k] = half.magnitude().to_f32();
        }
    }
}

/// Predicts point `k` of a word that begins at `at` beyond the neighbours that it has on one side.
#[inline(always)]
fn from_one_side<T: Element, const N: usize>(
    at: usize,
    there: &There<N>,
    lines: &[Line<'_, T>; N],
    weights: &Weights<T>,
    k: usize,
) -> (T, T) {
    let (mut sum, mut bend, mut count) = (weights.nothing, T::default(), 0);
    for (j, line) in lines.iter().enumerate() {
        let (near, far) = if there.before[j] >> k & 1 == 1 {
            line.before(at + k)
        } else if there.behind[j] >> k & 1 == 1 {
            line.behind(at + k)
        } else {
            continue;
        };
        let half = near.minus(far).times(weights.half);
        sum = sum.plus(near.plus(half));
        bend = bend.plus(half.magnitude());
        count += 1;
    }
    if count == 0 {
        return (T::default(), T::default());
    }
    let part = weights.part(count);
    (tame(sum.times(part)), bend.times(part))
}
