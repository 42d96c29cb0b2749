//! SZ's multilevel interpolation: level by level, one dimension after the other, linear or cubic.
//!
//! Source: K. Zhao et al., "Optimizing error-bounded lossy compression for scientific data by dynamic
//! spline interpolation" (ICDE 2021).

use crate::huffman;
use crate::quantizer::{Encoding, Residuals};
use crate::value::Value;

/// Levels from this one on have half the bound; the finest level is 1.
const TIGHTER_FROM: u32 = 3;
/// Side of the sample on which settings are tried.
const SAMPLE: usize = 48;

/// The interpolation chosen for an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    cubic: bool,
    /// Whether the dimensions are traversed from x to z.
    reversed: bool,
}

impl Settings {
    pub(crate) fn to_byte(self) -> u8 {
        u8::from(self.cubic) | u8::from(self.reversed) << 1
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        Self {
            cubic: byte & 1 == 1,
            reversed: byte & 2 == 2,
        }
    }
}

/// The settings that make the middle of an array smallest.
pub(crate) fn choose<T: Value>(values: &[T], shape: [usize; 3], bound: f64) -> Settings {
    let (sample, sides) = middle(values, shape);
    let mut best = (usize::MAX, Settings::from_byte(0));
    for byte in 0..4 {
        let settings = Settings::from_byte(byte);
        let mut residuals = Encoding::new(&sample, bound);
        let mut decoded = vec![T::default(); sample.len()];
        walk(&mut residuals, sides, bound, settings, &mut decoded);
        let mut out = Vec::new();
        huffman::encode(residuals.symbols(), &mut out);
        if out.len() < best.0 {
            best = (out.len(), settings);
        }
    }
    best.1
}

fn middle<T: Value>(values: &[T], shape: [usize; 3]) -> (Vec<T>, [usize; 3]) {
    let sides = shape.map(|n| n.min(SAMPLE));
    let lo: [usize; 3] = std::array::from_fn(|d| (shape[d] - sides[d]) / 2);
    let mut sample = Vec::with_capacity(sides.iter().product());
    for z in lo[0]..lo[0] + sides[0] {
        for y in lo[1]..lo[1] + sides[1] {
            let row = (z * shape[1] + y) * shape[2] + lo[2];
            sample.extend_from_slice(&values[row..row + sides[2]]);
        }
    }
    (sample, sides)
}

/// Visits all values of an array, from its coarsest level to the finest.
pub(crate) fn walk<T: Value>(
    residuals: &mut impl Residuals<T>,
    shape: [usize; 3],
    bound: f64,
    settings: Settings,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let longest = shape.iter().max().copied().unwrap_or(1);
    let levels = longest.next_power_of_two().trailing_zeros();
    let tight = |level: u32| {
        if level >= TIGHTER_FROM {
            bound * 0.5
        } else {
            bound
        }
    };
    residuals.set_bound(tight(levels + 1));
    out[0] = residuals.value(0, 0.0);
    let order = if settings.reversed {
        [2, 1, 0]
    } else {
        [0, 1, 2]
    };
    for level in (1..=levels).rev() {
        residuals.set_bound(tight(level));
        let half = 1usize << (level - 1);
        let mut steps = [2 * half; 3];
        for d in order {
            let pass = Pass {
                shape,
                axis: d,
                half,
                steps,
                cubic: settings.cubic,
            };
            pass.run(residuals, out);
            steps[d] = half;
        }
    }
}

/// The points between known ones along one axis.
struct Pass {
    shape: [usize; 3],
    axis: usize,
    half: usize,
    /// Distance of known points in each dimension.
    steps: [usize; 3],
    cubic: bool,
}

impl Pass {
    fn run<T: Value>(&self, residuals: &mut impl Residuals<T>, out: &mut [T]) {
        let [_, ny, nx] = self.shape;
        let stride = [ny * nx, nx, 1][self.axis];
        let axis = |d: usize| {
            let start = if d == self.axis { self.half } else { 0 };
            (start..self.shape[d]).step_by(self.steps[d])
        };
        for z in axis(0) {
            for y in axis(1) {
                for x in axis(2) {
                    let at = (z * ny + y) * nx + x;
                    let predicted = self.predict(out, at, stride, [z, y, x][self.axis]);
                    out[at] = residuals.value(at, predicted);
                }
            }
        }
    }

    /// Predicts the point at index `along` of the axis from known ones at odd distances of `half`.
    #[inline(always)]
    fn predict<T: Value>(&self, known: &[T], at: usize, stride: usize, along: usize) -> f64 {
        let (half, n) = (self.half, self.shape[self.axis]);
        let before = |k: usize| known[at - k * half * stride].to_f64();
        let after = |k: usize| known[at + k * half * stride].to_f64();
        let has_before = |k: usize| along >= k * half;
        let has_after = |k: usize| along + k * half < n;
        if !has_after(1) {
            return match (has_before(3), self.cubic && has_before(5)) {
                (_, true) => (3.0 * before(5) - 10.0 * before(3) + 15.0 * before(1)) / 8.0,
                (true, _) => 1.5 * before(1) - 0.5 * before(3),
                _ => before(1),
            };
        }
        let (one, two) = (before(1), after(1));
        if !self.cubic {
            return (one + two) / 2.0;
        }
        match (has_before(3), has_after(3)) {
            (true, true) => (9.0 * (one + two) - (before(3) + after(3))) / 16.0,
            (false, true) => (3.0 * one + 6.0 * two - after(3)) / 8.0,
            (true, false) => (6.0 * one + 3.0 * two - before(3)) / 8.0,
            (false, false) => (one + two) / 2.0,
        }
    }
}
