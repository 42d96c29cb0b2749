//! Padding points of a region: coded points outside its blocks or its array, whose decoded value is discarded.

use crate::domain::bitmap::Bitmap;
use crate::element::Element;

/// The tolerance of the value of a point next to the other ones, as a part of the second difference of these.
const TOLERANCE_FACTOR: f64 = 0.75;

/// The padding points of a region, and the value of each. Values near them are predicted from them, so they continue the others.
pub(crate) struct Padding<T> {
    points: Bitmap,
    /// The number of padding points before each row, and at the end their total.
    before: Vec<usize>,
    values: Vec<PaddingValue<T>>,
}

/// The value of a padding point: any value within the tolerance may be coded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PaddingValue<T> {
    pub value: T,
    pub tolerance: T,
}

impl<T: Element> PaddingValue<T> {
    /// The value and the tolerance, or any value if either is not finite or close to overflow.
    fn new(value: f64, tolerance: f64) -> Self {
        let [value, tolerance] = [value, tolerance].map(T::from_f64);
        if value.is_predictable() && tolerance.is_predictable() {
            Self { value, tolerance }
        } else {
            Self::any()
        }
    }

    /// Any value.
    fn any() -> Self {
        Self {
            value: T::default(),
            tolerance: T::from_f64(f64::INFINITY),
        }
    }

    /// Joins the extrapolation from the points before this one along a dimension, `distance` from the nearest of which are the
    /// values `near`, the nearest first. It is the mean of `count` extrapolations before.
    pub(crate) fn join_extrapolation(&mut self, near: [f64; 3], count: usize) {
        let (value, tolerance) = extrapolation(near, 1.0);
        let mean = self.value.to_f64();
        let value = mean + (value - mean) / (count + 1) as f64;
        *self = Self {
            value: finite_or_zero(value),
            tolerance: finite_or_zero(tolerance.max(self.tolerance.to_f64())),
        };
    }
}

/// The value at a distance after the last of three values, the last first, and its tolerance.
fn extrapolation([one, two, three]: [f64; 3], distance: f64) -> (f64, f64) {
    let curvature = one - 2.0 * two + three;
    let terms = 0.5 * distance * (distance + 1.0);
    (
        one + distance * (one - two),
        TOLERANCE_FACTOR * curvature.abs() * terms,
    )
}

/// Replaces a number that is not finite, or close to overflow, by 0.
pub(crate) fn finite_or_zero<T: Element>(x: f64) -> T {
    let value = T::from_f64(x);
    if value.is_predictable() {
        value
    } else {
        T::default()
    }
}

impl<T: Element> Padding<T> {
    /// Padding at these points, with values of 0.
    pub(crate) fn new(points: Bitmap) -> Self {
        let [nz, ny, _] = points.shape();
        let mut before = vec![0];
        let mut total = 0;
        for row in 0..nz * ny {
            total += Bitmap::count(points.row(row / ny, row % ny));
            before.push(total);
        }
        Self {
            points,
            before,
            values: vec![PaddingValue::default(); total],
        }
    }

    /// Padding after the first `held` values along each dimension of a region: the linear extrapolation of these; all points,
    /// with any value, if `held` is `None`.
    pub(crate) fn after(values: &[T], shape: [usize; 3], held: Option<[usize; 3]>) -> Self {
        let [nz, ny, nx] = shape;
        let mut points = Bitmap::new(shape);
        let is_held = |z: usize, y: usize| held.is_some_and(|held| z < held[0] && y < held[1]);
        let mut padding = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                let first = held.filter(|_| is_held(z, y)).map_or(0, |held| held[2]);
                points.set([z, y], first, nx);
                padding.extend((first..nx).map(|x| match held {
                    Some(held) => extrapolated(values, shape, held, [z, y, x]),
                    None => PaddingValue::any(),
                }));
            }
        }
        Self {
            values: padding,
            ..Self::new(points)
        }
    }

    /// The number of padding points.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The number of padding points before one of them.
    pub(crate) fn index(&self, [z, y, x]: [usize; 3]) -> usize {
        let row = self.points.row(z, y);
        let last = row[x / 64] & ((1 << (x % 64)) - 1);
        self.before[z * self.points.shape()[1] + y]
            + Bitmap::count(&row[..x / 64])
            + last.count_ones() as usize
    }

    /// The value of a padding point, by its index.
    pub(crate) fn value_mut(&mut self, index: usize) -> &mut PaddingValue<T> {
        &mut self.values[index]
    }

    /// Calls `visit(k, value)` for the padding points among `points` points of a row of the region, of which point 0 has
    /// the index `start` in the region, and which are `step` apart.
    pub(crate) fn for_each_in_row(
        &self,
        start: usize,
        step: usize,
        points: usize,
        mut visit: impl FnMut(usize, PaddingValue<T>),
    ) {
        let [_, ny, nx] = self.points.shape();
        let (row, first) = (start / nx, start % nx);
        let values = &self.values[self.before[row]..self.before[row + 1]];
        if values.is_empty() {
            return;
        }
        let mut values = values.iter();
        Bitmap::runs(self.points.row(row / ny, row % ny), |begin, length| {
            for (x, value) in (begin..begin + length).zip(&mut values) {
                let k = x.wrapping_sub(first) / step;
                if k < points && first + k * step == x {
                    visit(k, *value);
                }
            }
        });
    }
}

/// The extrapolation of the first `held` values along each dimension to a point after them.
fn extrapolated<T: Element>(
    values: &[T],
    shape: [usize; 3],
    held: [usize; 3],
    place: [usize; 3],
) -> PaddingValue<T> {
    let strides = [shape[1] * shape[2], shape[2], 1];
    let nearest: [usize; 3] = std::array::from_fn(|d| place[d].min(held[d] - 1));
    let at: usize = (0..3).map(|d| nearest[d] * strides[d]).sum();
    let (base, mut value, mut tolerance) = (values[at].to_f64(), values[at].to_f64(), 0.0);
    for d in (0..3).filter(|d| place[*d] > nearest[*d]) {
        let distance = (place[d] - nearest[d]) as f64;
        let before = |k: usize| values[at - k.min(nearest[d]) * strides[d]].to_f64();
        let (along, more) = match nearest[d] {
            0 => (base, f64::INFINITY),
            _ => extrapolation([base, before(1), before(2)], distance),
        };
        value += along - base;
        tolerance += more;
    }
    PaddingValue::new(value, tolerance)
}
