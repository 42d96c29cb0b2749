//! The traversals of wavelet coefficients, and of corrections of the values that follow from them: row by row, with contexts
//! from rows that have been coded.

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

/// The first context of corrections. Those of coefficients are smaller, except the last one: magnitudes are at most 255.
const FIRST_CORRECTION_CONTEXT: u8 = 28;
/// The last context of corrections.
const LAST_CORRECTION_CONTEXT: u8 = CONTEXTS as u8 - 2;

/// Traverses the coefficients of a region, whose bins have the width `step`. Passes the position and the values of each row
/// to `visit`, after it was coded.
pub(crate) fn traverse<T: Element, C: RowCoder<T>>(
    transform: &Transform,
    step: f64,
    coder: &mut C,
    mut visit: impl FnMut(&mut C, [usize; 2], &mut [T]),
) {
    let mut rows = RegionRows::new(transform.shape, step);
    coder.begin_level(0);
    for row in rows.positions() {
        let contexts = &mut rows.contexts[..rows.room];
        rows.magnitudes.contexts(transform, row, contexts);
        rows.code(coder, row);
        visit(coder, row, rows.values());
    }
}

/// Traverses the corrections of the values of a region, which are multiples of `step`. Passes the index of the first value and the
/// corrected values of each row to `visit`, which may change them, and stores them in the region.
pub(crate) fn traverse_corrections<T: Element, C: RowCoder<T>>(
    shape: [usize; 3],
    step: f64,
    region: &mut [T],
    coder: &mut C,
    mut visit: impl FnMut(&mut C, usize, &mut [T]),
) {
    let mut rows = RegionRows::new(shape, step);
    coder.begin_level(0);
    for row in rows.positions() {
        let contexts = &mut rows.contexts[..rows.room];
        rows.magnitudes.correction_contexts(row, contexts);
        let start = rows.start(row);
        let corrected = &mut region[start..][..shape[2]];
        rows.predictions[..shape[2]].copy_from_slice(corrected);
        rows.code(coder, row);
        visit(coder, start, rows.values());
        corrected.copy_from_slice(rows.values());
    }
}

/// The rows of a region, all points of which are coded, and the memory of one.
struct RegionRows<T> {
    shape: [usize; 3],
    level: InterpolationLevel,
    /// The length of a row in whole groups of lanes.
    room: usize,
    predictions: Vec<T>,
    contexts: Vec<u8>,
    present: Vec<u64>,
    values: Vec<T>,
    magnitudes: Magnitudes,
}

impl<T: Element> RegionRows<T> {
    /// Rows of which all predictions are 0.
    fn new(shape: [usize; 3], step: f64) -> Self {
        let nx = shape[2];
        let room = nx.next_multiple_of(LANES);
        let mut present = vec![u64::MAX; nx.div_ceil(64)];
        if let Some(last) = present.last_mut().filter(|_| !nx.is_multiple_of(64)) {
            *last = (1 << (nx % 64)) - 1;
        }
        Self {
            shape,
            level: InterpolationLevel {
                number: 0,
                shift: 0,
                step,
                has_point_contexts: true,
                has_plane_contexts: false,
                interpolation: Interpolation::default(),
            },
            room,
            predictions: vec![T::default(); room],
            contexts: vec![0; room + LANES],
            present,
            values: vec![T::default(); room],
            magnitudes: Magnitudes::new(shape),
        }
    }

    /// The positions of all rows, in z and y.
    fn positions(&self) -> impl Iterator<Item = [usize; 2]> + use<T> {
        let [nz, ny, _] = self.shape;
        (0..nz).flat_map(move |z| (0..ny).map(move |y| [z, y]))
    }

    /// The index of the first value of a row.
    fn start(&self, [z, y]: [usize; 2]) -> usize {
        (z * self.shape[1] + y) * self.shape[2]
    }

    /// Codes a row.
    fn code<C: RowCoder<T>>(&mut self, coder: &mut C, row: [usize; 2]) {
        let nx = self.shape[2];
        coder.row(Row {
            location: RowLocation {
                start: self.start(row),
                step: 1,
            },
            level: self.level,
            predictions: &self.predictions,
            contexts: Some(&self.contexts),
            points: nx,
            present: &self.present,
            count: nx,
            values: &mut self.values,
            magnitudes: Some(self.magnitudes.row_mut(row, self.room)),
        });
    }

    /// The values of the row that was coded.
    fn values(&mut self) -> &mut [T] {
        &mut self.values[..self.shape[2]]
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

    /// Computes the contexts of a row of corrections, in whole groups of lanes.
    fn correction_contexts(&self, [z, y]: [usize; 2], out: &mut [u8]) {
        let before = [(y > 0).then(|| [z, y - 1]), (z > 0).then(|| [z - 1, y])];
        let row = |row: [usize; 2]| &self.bytes[self.start(row)..][..out.len() + 2];
        correction_contexts_of_rows(before.map(|at| at.map(row)), out);
    }
}

/// The sums of the magnitudes around each point of a group of lanes. `rows` begin one point before the first group.
#[inline(always)]
fn sums_around(rows: [Option<&[u8]>; 2], first: usize) -> [u16; LANES] {
    let mut sums = [0; LANES];
    for row in rows.into_iter().flatten() {
        let [before, at, after] = [0, 1, 2].map(|k| row[first + k..].first_chunk::<LANES>());
        if let (Some(before), Some(at), Some(after)) = (before, at, after) {
            for k in 0..LANES {
                sums[k] += u16::from(before[k]) + 2 * u16::from(at[k]) + u16::from(after[k]);
            }
        }
    }
    sums
}

vectorised! {
    /// Computes contexts of corrections from the magnitudes of up to two rows, which begin one point before the row.
    fn correction_contexts_of_rows [] of [] (before: [Option<&[u8]>; 2], out: &mut [u8]) {
        const MOST: u16 = (LAST_CORRECTION_CONTEXT - FIRST_CORRECTION_CONTEXT) as u16;
        for (group, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            for (out, sum) in out.iter_mut().zip(sums_around(before, group * LANES)) {
                *out = FIRST_CORRECTION_CONTEXT + sum.min(MOST) as u8;
            }
        }
    }
}

vectorised! {
    /// Computes contexts from the magnitudes of up to two rows of the same bands, and of up to two of coarser bands, which
    /// begin one point before the row.
    fn contexts_of_rows [] of [] (own: [Option<&[u8]>; 2], parents: [Option<&[u8]>; 2], weights: [f32; 2], out: &mut [u8]) {
        for (group, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let sums = [own, parents].map(|rows| sums_around(rows, group * LANES));
            for (k, out) in out.iter_mut().enumerate() {
                let [own, parents] = [sums[0][k], sums[1][k]].map(f32::from);
                *out = context(own * weights[0] + parents * weights[1]);
            }
        }
    }
}
