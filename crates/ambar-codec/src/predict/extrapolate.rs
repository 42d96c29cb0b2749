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
    points: [usize; 3],
    d: usize,
) {
    let (stride, n) = (phases.stride[d], points[d]);
    let mut around = points;
    around[d] = 1;
    for z in 0..around[0] {
        for y in 0..around[1] {
            let row = phases.row(z, y);
            if d == 2 {
                pad_row(&mut values[row - 1..][..n + 2]);
                continue;
            }
            // Rows in the order of their distance from the extrapolated one.
            let (before, from) = values.split_at_mut(row);
            let rows: [&[T]; 3] = std::array::from_fn(|k| &from[k.min(n - 1) * stride..]);
            extrapolate_rows(rows, n, &mut before[row - stride..][..around[2]]);
            let (from, behind) = values.split_at_mut(row + n * stride);
            let rows = std::array::from_fn(|k| &from[row + (n - 1 - k.min(n - 1)) * stride..]);
            extrapolate_rows(rows, n, &mut behind[..around[2]]);
        }
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
    /// Extrapolates a row from three others, of which the third is used only if `n` is above 2.
    fn extrapolate_rows [T: Element] of [T] (rows: [&[T]; 3], n: usize, out: &mut [T]) {
        let length = out.len();
        let [a, b, c] = rows.map(|row| &row[..length]);
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
