//! The traversal of wavelet coefficients: row by row, with contexts from coefficients that have been coded.

use super::Transform;
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::predict::context::context;
use crate::predict::interpolation::Interpolation;
use crate::predict::row::{InterpolationLevel, Row, RowCoder, RowLocation};
use crate::simd::LANES;
use crate::simd::dispatch::vectorised;

/// The weight of the mean magnitude of a preceding row of the same bands, and that of a row of coarser bands, whose
/// magnitudes are halved.
const OWN_WEIGHT: f64 = 9.0;
const PARENT_WEIGHT: f64 = 2.0;

/// Traverses the coefficients of a region, whose bins have the width `step`. Passes the position and the values of each row
/// to `visit`, after it was coded.
pub(crate) fn traverse<T: Element, C: RowCoder<T>>(
    transform: &Transform,
    step: f64,
    coder: &mut C,
    mut visit: impl FnMut(&mut C, [usize; 2], &mut [T]),
) {
    let [nz, ny, nx] = transform.shape;
    let room = nx.next_multiple_of(LANES);
    let mut magnitudes = Magnitudes::new(transform.shape);
    let (predictions, mut values) = (vec![T::default(); room], vec![T::default(); room]);
    let mut contexts = vec![0; room + LANES];
    let mut present = vec![u64::MAX; nx.div_ceil(64)];
    if let Some(last) = present.last_mut().filter(|_| nx % 64 > 0) {
        *last = (1 << (nx % 64)) - 1;
    }
    let level = InterpolationLevel {
        number: 0,
        shift: 0,
        step,
        has_point_contexts: true,
        has_plane_contexts: false,
        interpolation: Interpolation::default(),
    };
    coder.begin_level(0);
    for z in 0..nz {
        for y in 0..ny {
            magnitudes.contexts(transform, [z, y], &mut contexts[..room]);
            coder.row(Row {
                location: RowLocation {
                    start: (z * ny + y) * nx,
                    step: 1,
                },
                level,
                predictions: &predictions,
                contexts: Some(&contexts),
                points: nx,
                present: &present,
                count: nx,
                values: &mut values,
                magnitudes: Some(magnitudes.row_mut([z, y], room)),
            });
            visit(coder, [z, y], &mut values[..nx]);
        }
    }
}

/// The magnitudes of the residuals of a region. A zero precedes each row.
struct Magnitudes {
    bytes: Vec<u8>,
    shape: [usize; 3],
}

impl Magnitudes {
    fn new(shape: [usize; 3]) -> Self {
        let [nz, ny, nx] = shape;
        Self {
            bytes: vec![0; nz * ny * (nx + 1) + 2 * LANES],
            shape,
        }
    }

    /// The index of the zero before a row.
    fn start(&self, [z, y]: [usize; 2]) -> usize {
        (z * self.shape[1] + y) * (self.shape[2] + 1)
    }

    fn row_mut(&mut self, row: [usize; 2], room: usize) -> &mut [u8] {
        let start = self.start(row) + 1;
        &mut self.bytes[start..start + room]
    }

    /// Computes the contexts of a row, in whole groups of lanes.
    fn contexts(&self, transform: &Transform, [z, y]: [usize; 2], out: &mut [u8]) {
        let [along_z, along_y] = &transform.axes;
        let (at_z, at_y) = (&along_z.coefficients[z], &along_y.coefficients[y]);
        let own = [
            at_y.has_predecessor.then(|| [z, y - 1]),
            at_z.has_predecessor.then(|| [z - 1, y]),
        ];
        let parents = [at_z.parent.map(|z| [z, y]), at_y.parent.map(|y| [z, y])];
        let count = |rows: &[Option<[usize; 2]>; 2]| rows.iter().flatten().count() as f64;
        let weight = OWN_WEIGHT * count(&own) + PARENT_WEIGHT * count(&parents);
        if weight == 0.0 {
            return out.fill(CONTEXTS as u8 - 1);
        }
        let row = |row: [usize; 2]| &self.bytes[self.start(row)..][..out.len() + 2];
        let rows = |rows: [Option<[usize; 2]>; 2]| rows.map(|at| at.map(row));
        let weights = [OWN_WEIGHT, 0.5 * PARENT_WEIGHT].map(|part| (part / (4.0 * weight)) as f32);
        contexts_of_rows(rows(own), rows(parents), weights, out);
    }
}

vectorised! {
    /// Computes contexts from the magnitudes of up to two rows of the same bands, and of up to two of coarser bands, which
    /// begin one point before the row.
    fn contexts_of_rows [] of [] (own: [Option<&[u8]>; 2], parents: [Option<&[u8]>; 2], weights: [f32; 2], out: &mut [u8]) {
        let n = out.len() / LANES * LANES;
        for first in (0..n).step_by(LANES) {
            let mut sums = [[0u16; LANES]; 2];
            for (sums, rows) in sums.iter_mut().zip([own, parents]) {
                for row in rows.iter().flatten() {
                    let window = &row[first..first + LANES + 2];
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum += u16::from(window[k]) + 2 * u16::from(window[k + 1]) + u16::from(window[k + 2]);
                    }
                }
            }
            let out = &mut out[first..first + LANES];
            for (k, out) in out.iter_mut().enumerate() {
                let [own, parents] = [sums[0][k], sums[1][k]].map(f32::from);
                *out = context(own * weights[0] + parents * weights[1]);
            }
        }
    }
}
