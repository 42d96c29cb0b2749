//! Values beyond the borders of a phase, for interpolation to reach there.

use crate::element::Element;
use crate::lattice::Phases;
use crate::predict;

/// Continues a phase by one point on both sides of dimension `d`: along the parabola through three
/// points, the line through two, or the value of one.
pub(crate) fn pad_dimension<T: Element>(
    values: &mut [T],
    phases: &Phases,
    points: [usize; 3],
    d: usize,
) {
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
