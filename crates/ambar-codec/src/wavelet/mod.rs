//! The wavelet transform (`docs/format.md`, 7.17): each dimension of a region is transformed separately, up to seven times. The
//! coefficients are quantized, and coded row by row. Unless only the mean squared error is bounded, corrections follow of values
//! whose error would be too large.
//!
//! The wavelet is the biorthogonal CDF 9/7 in lifting steps. Sources: A. Cohen, I. Daubechies, J.-C. Feauveau,
//! "Biorthogonal bases of compactly supported wavelets", 1992; I. Daubechies, W. Sweldens, "Factoring wavelet transforms
//! into lifting steps", 1998. Corrections of outliers: S. Li, P. Lindstrom, J. Clyne, "Lossy scientific data compression with
//! SPERR", 2023.

pub(crate) mod axis;
mod lifting;
mod options;
#[cfg(test)]
mod tests;
pub(crate) mod traversal;

use crate::element::Element;
use crate::predict::interpolate::finite_or_zero;
use crate::simd::dispatch::vectorised;
use axis::{Axis, WaveletLevels};
use lifting::{RowBuffers, Rows};

pub(crate) use options::WaveletOptions;

/// The transform of a region.
pub(crate) struct Transform {
    shape: [usize; 3],
    levels: WaveletLevels,
    /// The coefficients along z and y.
    axes: [Axis; 2],
    /// The scales along x.
    row_scales: Vec<f64>,
}

impl Transform {
    /// The transform with the possible levels of each dimension, less `omitted` ones.
    pub(crate) fn new(shape: [usize; 3], omitted: u8) -> Self {
        let levels = WaveletLevels::of_shape(shape, omitted);
        Self {
            shape,
            levels,
            axes: [0, 1].map(|d| Axis::new(shape[d], levels.of(d))),
            row_scales: axis::scales(shape[2], levels.of(2)),
        }
    }

    /// Transforms values into coefficients, which are arranged by band and scaled so that errors of the same size
    /// contribute equally to the squared error of the values.
    pub(crate) fn coefficients<T: Element>(&self, values: &[T], out: &mut Vec<T>) {
        let mut lifted = values.to_vec();
        for (rows, levels) in self.columns() {
            lifting::forward(&mut lifted, rows, levels);
        }
        out.clear();
        let nx = self.shape[2];
        let mut buffers = RowBuffers::new(nx);
        let mut scales = Scales::new(self);
        for z in 0..self.shape[0] {
            for y in 0..self.shape[1] {
                let row = &mut lifted[self.start(z, y)..][..nx];
                lifting::analyse_row(row, self.levels.of(2), &mut buffers);
                let scales: &[T] = scales.of_row(z, y);
                let pairs = row.iter().zip(scales);
                out.extend(pairs.map(|(x, scale)| T::from_f64(x.to_f64() / scale.to_f64())));
            }
        }
    }

    /// The index in the region of the first value of a row of the arrangement.
    fn start(&self, z: usize, y: usize) -> usize {
        let [_, ny, nx] = self.shape;
        (self.axes[0].coefficients[z].position * ny + self.axes[1].coefficients[y].position) * nx
    }

    /// The rows to transform, with their levels: along z for each y, then along y for each z.
    fn columns(&self) -> impl DoubleEndedIterator<Item = (Rows, usize)> {
        let [nz, ny, nx] = self.shape;
        let [along_z, along_y] = [self.levels.of(0), self.levels.of(1)];
        let rows = move |first, count, stride| Rows {
            first,
            count,
            stride,
            width: nx,
        };
        let z = (0..ny).map(move |y| (rows(y * nx, nz, ny * nx), along_z));
        let y = (0..nz).map(move |z| (rows(z * ny * nx, ny, nx), along_y));
        z.chain(y)
    }

    /// The shape of the region.
    pub(crate) fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Whether no dimension is transformed.
    pub(crate) fn is_identity(&self) -> bool {
        self.levels.is_empty()
    }
}

/// Computes values from rows of coefficients.
pub(crate) struct Synthesis<'a, T> {
    transform: &'a Transform,
    buffers: RowBuffers<T>,
    scales: Scales<'a, T>,
}

impl<'a, T: Element> Synthesis<'a, T> {
    pub(crate) fn new(transform: &'a Transform) -> Self {
        Self {
            transform,
            buffers: RowBuffers::new(transform.shape[2]),
            scales: Scales::new(transform),
        }
    }

    /// Transforms a row of the arrangement along x, into its place in the region.
    pub(crate) fn row(&mut self, [z, y]: [usize; 2], coefficients: &[T], region: &mut [T]) {
        let row = &mut region[self.transform.start(z, y)..][..self.transform.shape[2]];
        multiply(coefficients, self.scales.of_row(z, y), row);
        lifting::synthesise_row(row, self.transform.levels.of(2), &mut self.buffers);
    }

    /// Transforms the region along y and z, after all of its rows.
    pub(crate) fn finish(self, region: &mut [T]) {
        for (rows, levels) in self.transform.columns().rev() {
            lifting::inverse(region, rows, levels);
        }
        replace_not_finite(region);
    }
}

/// The width of the bins of coefficients, and the unit of corrections, within a bound.
pub(crate) fn bin_width<T: Element>(bound: f64) -> f64 {
    // Larger steps would let sums overflow.
    (2.0 * bound).min(T::MAX_PREDICTABLE)
}

/// The scales of the coefficients of a row.
struct Scales<'a, T> {
    transform: &'a Transform,
    /// The bands along z and y to which `row` belongs.
    bands: [usize; 2],
    row: Vec<T>,
}

impl<'a, T: Element> Scales<'a, T> {
    fn new(transform: &'a Transform) -> Self {
        Self {
            transform,
            bands: [usize::MAX; 2],
            row: Vec::new(),
        }
    }

    fn of_row(&mut self, z: usize, y: usize) -> &[T] {
        let [along_z, along_y] = &self.transform.axes;
        let (z, y) = (&along_z.coefficients[z], &along_y.coefficients[y]);
        if self.bands != [z.band, y.band] {
            self.bands = [z.band, y.band];
            let scale = z.scale * y.scale;
            self.row.clear();
            let scales = self.transform.row_scales.iter();
            self.row.extend(scales.map(|x| T::from_f64(scale * x)));
        }
        &self.row
    }
}

vectorised! {
    /// Whether all values are finite, and so far from overflow that coefficients stay finite.
    pub(crate) fn are_predictable [T: Element] of [T] (values: &[T]) -> bool {
        values.iter().fold(true, |all, x| all & x.is_predictable())
    }
}

vectorised! {
    fn multiply [T: Element] of [T] (a: &[T], b: &[T], out: &mut [T]) {
        let n = out.len();
        let (a, b) = (&a[..n], &b[..n]);
        for k in 0..n {
            out[k] = a[k].times(b[k]);
        }
    }
}

vectorised! {
    /// Replaces values that are not finite, or close to overflow, by 0.
    fn replace_not_finite [T: Element] of [T] (values: &mut [T]) {
        for value in values {
            *value = finite_or_zero(*value);
        }
    }
}
