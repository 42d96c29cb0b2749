//! The wavelet transform of streams that bound the mean squared error (`docs/format.md`, 7.17): each dimension of an
//! array is transformed on its own, several times. The coefficients are quantized, and coded row by row.
//!
//! The wavelet is the biorthogonal CDF 9/7 in lifting steps. Sources: A. Cohen, I. Daubechies, J.-C. Feauveau,
//! "Biorthogonal bases of compactly supported wavelets", 1992; I. Daubechies, W. Sweldens, "Factoring wavelet transforms
//! into lifting steps", 1998.

pub(crate) mod axis;
mod lifting;
#[cfg(test)]
mod tests;
pub(crate) mod traversal;

use crate::element::Element;
use crate::predict::interpolate::finite_or_zero;
use crate::simd::dispatch::vectorised;
use axis::{Axis, WaveletLevels};
use lifting::{RowBuffers, Rows};

/// The transform of a region.
pub(crate) struct Transform {
    shape: [usize; 3],
    levels: WaveletLevels,
    axes: [Axis; 3],
}

impl Transform {
    pub(crate) fn new(shape: [usize; 3], levels: WaveletLevels) -> Self {
        Self {
            shape,
            levels,
            axes: [0, 1, 2].map(|d| Axis::new(shape[d], levels.of(d))),
        }
    }

    /// Transforms values into coefficients, which are arranged by band and scaled so that errors of the same size
    /// contribute equally to the squared error of the values.
    pub(crate) fn coefficients<T: Element>(&self, values: &[T], out: &mut Vec<T>) {
        let mut lifted = values.to_vec();
        self.for_each_column(|rows, d| lifting::forward(&mut lifted, rows, d));
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
        (self.axes[0].places[z].position * ny + self.axes[1].places[y].position) * nx
    }

    /// Calls `visit` for groups of rows to lift: along z for each y, then along y for each z.
    fn for_each_column(&self, mut visit: impl FnMut(Rows, usize)) {
        let [nz, ny, nx] = self.shape;
        for y in 0..ny {
            visit(
                Rows {
                    first: y * nx,
                    count: nz,
                    stride: ny * nx,
                    width: nx,
                },
                self.levels.of(0),
            );
        }
        for z in 0..nz {
            visit(
                Rows {
                    first: z * ny * nx,
                    count: ny,
                    stride: nx,
                    width: nx,
                },
                self.levels.of(1),
            );
        }
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
        let mut columns = Vec::new();
        self.transform
            .for_each_column(|rows, levels| columns.push((rows, levels)));
        for (rows, levels) in columns.into_iter().rev() {
            lifting::inverse(region, rows, levels);
        }
        replace_not_finite(region);
    }
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
        let [along_z, along_y, along_x] = &self.transform.axes;
        let (z, y) = (&along_z.places[z], &along_y.places[y]);
        if self.bands != [z.band, y.band] {
            self.bands = [z.band, y.band];
            let scale = z.scale * y.scale;
            self.row.clear();
            self.row
                .extend(along_x.places.iter().map(|x| T::from_f64(scale * x.scale)));
        }
        &self.row
    }
}

vectorised! {
    /// Whether the transform applies to values: all are finite, and so far from overflow that coefficients stay finite.
    pub(crate) fn applies [T: Element] of [T] (values: &[T]) -> bool {
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
