//! The CDF 9/7 wavelet in lifting steps, along rows and across them.

use crate::element::Element;
use crate::simd::dispatch::vectorised;

/// The weights of the lifting steps. The first and third change values of odd index, the others those of even index.
const WEIGHTS: [f64; 4] = [
    -1.586134342059924,
    -0.052980118572961,
    0.882911075530934,
    0.443506852043971,
];

/// Rows to transform as if each was one value.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// The index of the first value of the first row.
    pub first: usize,
    /// The number of rows.
    pub count: usize,
    /// The distance of rows.
    pub stride: usize,
    /// The number of values of a row.
    pub width: usize,
}

/// Transforms rows `levels` times.
pub(crate) fn forward<T: Element>(values: &mut [T], rows: Rows, levels: usize) {
    for level in 0..levels {
        for (step, weight) in WEIGHTS.iter().enumerate() {
            lift_rows(
                values,
                rows.every(1 << level),
                1 - step % 2,
                T::from_f64(*weight),
            );
        }
    }
}

/// The inverse of [`forward`], except for rounding.
pub(crate) fn inverse<T: Element>(values: &mut [T], rows: Rows, levels: usize) {
    for level in (0..levels).rev() {
        for (step, weight) in WEIGHTS.iter().enumerate().rev() {
            lift_rows(
                values,
                rows.every(1 << level),
                1 - step % 2,
                T::from_f64(-weight),
            );
        }
    }
}

impl Rows {
    /// Every `step`th row.
    fn every(self, step: usize) -> Self {
        Self {
            count: self.count.div_ceil(step),
            stride: self.stride * step,
            ..self
        }
    }
}

vectorised! {
    /// Adds to each second row, from row `parity` on, the sum of its neighbours times `weight`. A neighbour beyond the end is
    /// replaced by that on the other side.
    fn lift_rows [T: Element] of [T] (values: &mut [T], rows: Rows, parity: usize, weight: T) {
        for k in (parity..rows.count).step_by(2) {
            let at = rows.first + k * rows.stride;
            let (before, rest) = values.split_at_mut(at);
            let (row, after) = rest.split_at_mut(rows.width);
            let before = || &before[at - rows.stride..][..rows.width];
            let after = || &after[rows.stride - rows.width..][..rows.width];
            let (a, b) = match (k > 0, k + 1 < rows.count) {
                (true, true) => (before(), after()),
                (true, false) => (before(), before()),
                (false, true) => (after(), after()),
                (false, false) => return,
            };
            for (value, (a, b)) in row.iter_mut().zip(a.iter().zip(b)) {
                *value = value.plus(weight.times(a.plus(*b)));
            }
        }
    }
}

/// The values of even and odd index of a row, with space for a value before and after them.
pub(crate) struct RowBuffers<T> {
    even: Vec<T>,
    odd: Vec<T>,
}

impl<T: Element> RowBuffers<T> {
    pub(crate) fn new(length: usize) -> Self {
        let buffer = vec![T::default(); length.div_ceil(2) + 2];
        Self {
            even: buffer.clone(),
            odd: buffer,
        }
    }

    /// Performs a lifting step on the first `evens` and `odds` values.
    #[inline(always)]
    fn lift(&mut self, [evens, odds]: [usize; 2], step: usize, weight: T) {
        let (even, odd) = (&mut self.even[..=evens], &mut self.odd[..odds + 2]);
        if step.is_multiple_of(2) {
            even[evens] = even[evens - 1];
            for k in 0..odds {
                odd[k + 1] = odd[k + 1].plus(weight.times(even[k].plus(even[k + 1])));
            }
        } else {
            (odd[0], odd[odds + 1]) = (odd[1], odd[odds]);
            for k in 0..evens {
                even[k] = even[k].plus(weight.times(odd[k].plus(odd[k + 1])));
            }
        }
    }
}

vectorised! {
    /// Transforms a row `levels` times. Arranges its coefficients by band.
    pub(crate) fn analyse_row [T: Element] of [T] (row: &mut [T], levels: usize, buffers: &mut RowBuffers<T>) {
        for level in 0..levels {
            let n = row.len().div_ceil(1 << level);
            let (evens, odds) = (n.div_ceil(2), n / 2);
            for (k, pair) in row[..n].chunks(2).enumerate() {
                buffers.even[k] = pair[0];
                if let Some(odd) = pair.get(1) {
                    buffers.odd[k + 1] = *odd;
                }
            }
            for (step, weight) in WEIGHTS.iter().enumerate() {
                buffers.lift([evens, odds], step, T::from_f64(*weight));
            }
            row[..evens].copy_from_slice(&buffers.even[..evens]);
            row[evens..n].copy_from_slice(&buffers.odd[1..=odds]);
        }
    }
}

vectorised! {
    /// The inverse of [`analyse_row`], except for rounding.
    pub(crate) fn synthesise_row [T: Element] of [T] (row: &mut [T], levels: usize, buffers: &mut RowBuffers<T>) {
        for level in (0..levels).rev() {
            let n = row.len().div_ceil(1 << level);
            let (evens, odds) = (n.div_ceil(2), n / 2);
            buffers.even[..evens].copy_from_slice(&row[..evens]);
            buffers.odd[1..=odds].copy_from_slice(&row[evens..n]);
            for (step, weight) in WEIGHTS.iter().enumerate().rev() {
                buffers.lift([evens, odds], step, T::from_f64(-weight));
            }
            let (even, odd) = (&buffers.even[..evens], &buffers.odd[1..=odds]);
            let (pairs, last) = row[..n].as_chunks_mut::<2>();
            for (pair, (even, odd)) in pairs.iter_mut().zip(even.iter().zip(odd)) {
                *pair = [*even, *odd];
            }
            if let [last] = last {
                *last = even[evens - 1];
            }
        }
    }
}
