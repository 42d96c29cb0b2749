//! Predictions of a row of points from the points around it, and how rough the values are there.

use crate::element::Element;

/// Points that are computed at a time. Rows are computed in whole groups: what lies behind their
/// end is of no meaning, and never used.
pub(crate) const LANES: usize = 16;
/// Points that are computed at a time where there are less.
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
        }
    }

    /// From four neighbours: the value between, and half the sum of the near ones.
    #[inline(always)]
    pub(crate) fn between(&self, v: [T; 4]) -> (T, T) {
        let near = v[1].plus(v[2]);
        let far = v[0].plus(v[3]);
        let value = near.times(self.near).plus(far.times(self.far));
        (value, near.times(self.half))
    }

    /// From neighbours on one side: the value beyond the nearer one.
    #[inline(always)]
    pub(crate) fn beyond(&self, near: T, far: T) -> T {
        near.plus(near.minus(far).times(self.half))
    }
}

/// A prediction that sums may be made of: 0 where it is close to overflow.
#[inline(always)]
pub(crate) fn tame<T: Element>(x: T) -> T {
    if x.is_tame() { x } else { T::default() }
}

/// `L` values from `at` on, one for each lane.
#[inline(always)]
pub(crate) fn lanes<T, const L: usize>(values: &[T], at: usize) -> Option<&[T; L]> {
    values.get(at..)?.first_chunk()
}

/// Calls one of two closures for groups that cover `n` points: the first for whole groups of lanes,
/// the other for groups of `FEW` lanes. Both get the group's first point.
#[inline(always)]
pub(crate) fn groups<S>(
    n: usize,
    state: &mut S,
    whole: impl Fn(&mut S, usize),
    few: impl Fn(&mut S, usize),
) {
    let mut at = 0;
    while n - at > LANES - FEW {
        whole(state, at);
        at += LANES;
        if at >= n {
            return;
        }
    }
    while at < n {
        few(state, at);
        at += FEW;
    }
}

/// Where the neighbours of a row along one dimension are: the phase that is even in it, and the
/// distance of its points.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a, T> {
    pub values: &'a [T],
    pub stride: usize,
}

impl<'a, T> Line<'a, T> {
    /// The neighbours at -3, -1, +1 and +3 of the points from `at` on.
    #[inline(always)]
    fn lanes<const L: usize>(&self, at: usize) -> Option<[&'a [T; L]; 4]> {
        Some([
            lanes(self.values, at - self.stride)?,
            lanes(self.values, at)?,
            lanes(self.values, at + self.stride)?,
            lanes(self.values, at + 2 * self.stride)?,
        ])
    }
}

/// Predicts `n` points of a row from `row` on by the mean of the interpolations along `N`
/// dimensions. `rough` gets how much these differ from linear ones and among themselves.
pub(crate) fn interpolate<T: Element, const N: usize>(
    (row, n): (usize, usize),
    lines: [Line<'_, T>; N],
    weights: &Weights<T>,
    out: &mut [T],
    rough: Option<&mut [f32]>,
) {
    let Some(rough) = rough else {
        groups(
            n,
            &mut (out, [0.0; LANES]),
            |(out, none), k| {
                group::<T, N, LANES, false>(row + k, lines, weights, &mut out[k..], none);
            },
            |(out, none), k| {
                group::<T, N, FEW, false>(row + k, lines, weights, &mut out[k..], none);
            },
        );
        return;
    };
    groups(
        n,
        &mut (out, rough),
        |(out, rough), k| {
            group::<T, N, LANES, true>(row + k, lines, weights, &mut out[k..], &mut rough[k..]);
        },
        |(out, rough), k| {
            group::<T, N, FEW, true>(row + k, lines, weights, &mut out[k..], &mut rough[k..]);
        },
    );
}

/// Predicts `L` points from `at` on; where `ROUGH`, says how rough the values are there.
#[inline(always)]
fn group<T: Element, const N: usize, const L: usize, const ROUGH: bool>(
    at: usize,
    lines: [Line<'_, T>; N],
    weights: &Weights<T>,
    out: &mut [T],
    rough: &mut [f32],
) {
    // Phases have room behind their last row: all neighbours are there.
    let (Some(neighbours), Some(out), Some(rough)) = (
        all(lines.map(|line| line.lanes::<L>(at))),
        out.first_chunk_mut::<L>(),
        rough.first_chunk_mut::<L>(),
    ) else {
        return;
    };
    for k in 0..L {
        let (mut sum, mut bend) = (T::default(), T::default());
        let (mut least, mut most) = (T::default(), T::default());
        for (j, v) in neighbours.iter().enumerate() {
            let (value, linear) = weights.between([v[0][k], v[1][k], v[2][k], v[3][k]]);
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
        let (mean, bend) = match N {
            1 => (sum, bend),
            2 => (sum.times(weights.half), bend.times(weights.half)),
            _ => (sum.times(weights.third), bend.times(weights.third)),
        };
        out[k] = tame(mean);
        if ROUGH {
            rough[k] = bend.plus(most.minus(least)).to_f32();
        }
    }
}

#[inline(always)]
fn all<T: Copy, const N: usize>(options: [Option<T>; N]) -> Option<[T; N]> {
    let first = options[0]?;
    let mut out = [first; N];
    for (out, option) in out.iter_mut().zip(options) {
        *out = option?;
    }
    Some(out)
}

/// Predicts a row from the points on one side of it, `near` and `far` from it.
pub(crate) fn extrapolate<T: Element>(
    near: &[T],
    far: &[T],
    weights: &Weights<T>,
    out: &mut [T],
    rough: &mut [f32],
) {
    for (((out, rough), near), far) in out.iter_mut().zip(rough).zip(near).zip(far) {
        *out = tame(weights.beyond(*near, *far));
        *rough = near.minus(*far).magnitude().times(weights.half).to_f32();
    }
}
