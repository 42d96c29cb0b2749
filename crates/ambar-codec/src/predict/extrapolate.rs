//! Extrapolation of a phase by one point beyond its borders, for the interpolation of points at the borders.

use crate::domain::lattice::Phases;
use crate::element::Element;
use crate::predict::interpolate;
use crate::simd::dispatch::vectorised;

/// Extrapolates a phase by one point on both sides of dimension `d`: by the parabola through three points, the line through
/// two, or the value of one.
pub(crate) fn pad_dimension<T: Element>(
    values: &mut [T],
    phases: &Phases,
    [nz, ny, nx]: [usize; 3],
    d: usize,
) {
    if d == 2 {
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            pad_row(&mut values[phases.row(z, y) - 1..][..nx + 2]);
        }
        return;
    }
    // A whole plane is extrapolated in one call, padding between its rows included, whose values are ignored.
    let (planes, length, n) = match d {
        0 => (1, (ny - 1) * phases.stride[1] + nx, nz),
        _ => (nz, nx, ny),
    };
    let stride = phases.stride[d];
    for first in (0..planes).map(|z| phases.row(z, 0)) {
        // Spans in the order of their distance from the extrapolated one.
        let (before, from) = values.split_at_mut(first);
        let spans: [&[T]; 3] = std::array::from_fn(|k| &from[k.min(n - 1) * stride..]);
        extrapolate_span(spans, n, &mut before[first - stride..][..length]);
        let (from, after) = values.split_at_mut(first + n * stride);
        let spans = std::array::from_fn(|k| &from[first + (n - 1 - k.min(n - 1)) * stride..]);
        extrapolate_span(spans, n, &mut after[..length]);
    }
}

/// Extrapolates the first and the last element of a row from the others.
#[inline(always)]
fn pad_row<T: Element>(row: &mut [T]) {
    let last = row.len() - 1;
    let at = |k: usize| (row[1 + k], row[last - 1 - k]);
    let ((a, z), n) = (at(0), row.len() - 2);
    let (b, y) = if n > 1 { at(1) } else { (a, z) };
    let (c, x) = if n > 2 {
        at(2)
    } else {
        (third(a, b), third(z, y))
    };
    row[0] = extrapolated(a, b, c);
    row[last] = extrapolated(z, y, x);
}

vectorised! {
    /// Extrapolates a span of points from three others, of which the third is used only if `n` is above 2.
    fn extrapolate_span [T: Element] of [T] (spans: [&[T]; 3], n: usize, out: &mut [T]) {
        let length = out.len();
        let [a, b, c] = spans.map(|span| &span[..length]);
        for k in 0..length {
            let c = if n > 2 { c[k] } else { third(a[k], b[k]) };
            out[k] = extrapolated(a[k], b[k], c);
        }
    }
}

/// The third value on the line through two.
#[inline(always)]
fn third<T: Element>(a: T, b: T) -> T {
    b.plus(b).minus(a)
}

/// The value before `a` on the parabola through `a`, `b` and `c`.
#[inline(always)]
pub(crate) fn extrapolated<T: Element>(a: T, b: T, c: T) -> T {
    let difference = a.minus(b);
    interpolate::finite_or_zero(difference.plus(difference).plus(difference).plus(c))
}
