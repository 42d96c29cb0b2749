//! Padding points of a region: coded points outside its blocks or its array, whose decoded value is discarded.

use crate::domain::bitmap::Bitmap;
use crate::element::Element;

/// The tolerance at a distance of 1, as a part of the second difference of the last three values.
const TOLERANCE_FACTOR: f64 = 0.75;

/// Padding of arrays at this distance or further has any value: its tolerance would be large, and its effect small.
const REACH: usize = 16;

/// The padding points of a region, and the value of each. Values near them are predicted from them, so they continue the others.
pub(crate) struct Padding<T> {
    points: Bitmap,
    /// The number of padding points before each row, and at the end their total.
    before: Vec<usize>,
    values: Vec<PaddingValue<T>>,
}

/// The value of a padding point: any value within the tolerance may be coded.
#[derive(Clone, Copy, Debug)]
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

    /// This value.
    pub(crate) fn exact(value: T) -> Self {
        Self {
            value,
            tolerance: T::default(),
        }
    }

    /// Any value.
    fn any() -> Self {
        Self {
            value: T::default(),
            tolerance: T::from_f64(f64::INFINITY),
        }
    }

    /// Whether any value may be coded.
    pub(crate) fn is_any(&self) -> bool {
        self.tolerance.to_f64() == f64::INFINITY
    }

    /// Joins the extrapolation from the three values before this one along a dimension, the nearest first. Before, it is the
    /// mean of `count` extrapolations.
    pub(crate) fn join_extrapolation(&mut self, near: [f64; 3], count: usize) {
        let (value, tolerance) = extrapolation(near, 1.0);
        let (mean, larger) = match count {
            0 => (value, tolerance),
            _ => (self.value.to_f64(), self.tolerance.to_f64()),
        };
        *self = Self {
            value: finite_or_zero(mean + (value - mean) / (count + 1) as f64),
            tolerance: finite_or_zero(tolerance.max(larger)),
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
    /// Padding at these points, with any values.
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
            values: vec![PaddingValue::any(); total],
        }
    }

    /// Padding after the first `held` values along each dimension of a region: the linear extrapolation of these, or any value
    /// far from them. All points of the region are padding if `held` is `None`. Only `present` points are coded; all if `None`.
    pub(crate) fn after(
        values: &[T],
        shape: [usize; 3],
        held: Option<[usize; 3]>,
        present: Option<&Bitmap>,
    ) -> Self {
        let [nz, ny, nx] = shape;
        let held = held.unwrap_or([0; 3]);
        let mut points = Bitmap::new(shape);
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let is_held = z < held[0] && y < held[1];
            points.set([z, y], if is_held { held[2] } else { 0 }, nx);
        }
        if let Some(present) = present {
            points = points.only(present);
        }
        let mut padding = Self::new(points);
        if held != [0; 3] {
            let near: [usize; 3] = std::array::from_fn(|d| shape[d].min(held[d] + REACH));
            for place in padding.points_below(near) {
                let index = padding.index(place);
                padding.values[index] = extrapolated(values, shape, held, place);
            }
        }
        padding
    }

    /// The places of the padding points whose indices are below `end` along each dimension.
    fn points_below(&self, end: [usize; 3]) -> Vec<[usize; 3]> {
        let mut places = Vec::new();
        for (z, y) in (0..end[0]).flat_map(|z| (0..end[1]).map(move |y| (z, y))) {
            Bitmap::runs(self.points.row(z, y), |begin, length| {
                places.extend((begin..end[2].min(begin + length)).map(|x| [z, y, x]));
            });
        }
        places
    }

    /// The same points, with any values.
    pub(crate) fn with_any_values(mut self) -> Self {
        self.values.fill(PaddingValue::any());
        self
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
        let mut values = &self.values[self.before[row]..self.before[row + 1]];
        if values.is_empty() {
            return;
        }
        Bitmap::runs(self.points.row(row / ny, row % ny), |begin, length| {
            let (run, rest) = values.split_at(length);
            values = rest;
            for k in begin.saturating_sub(first).div_ceil(step)..points {
                let Some(value) = run.get(first + k * step - begin) else {
                    break;
                };
                visit(k, *value);
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
