//! The geometry of a tree's chunks: first corner, bounding box and levels of the cells.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::Jump;
use crate::kinds::amr::tree::curve_walk::{BLOCK, Centres, CurveWalk};
use crate::kinds::amr::tree::shape::TreeShape;
use crate::kinds::morton;

/// The geometry of a tree's chunks, which stores have in index arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TreeGeometry {
    /// Lower corner of each chunk's first cell, in lattice units.
    pub corners: Vec<[u64; 3]>,
    /// Lower and upper corner of the bounding box of each chunk's cells, in code length; 0 in unused
    /// dimensions.
    pub boxes: Vec<[[f64; 3]; 2]>,
    /// Smallest and largest level of each chunk.
    pub levels: Vec<[u8; 2]>,
    /// All jumps, in the order of their rows.
    pub jumps: Vec<Jump>,
}

impl TreeGeometry {
    /// Computes the geometry of leaves in chunks of `chunk_rows`, in parallel.
    ///
    /// # Errors
    /// `Invalid` if the levels and jumps do not form a tree.
    pub(crate) fn of_leaves(
        shape: &TreeShape,
        levels: &[u8],
        jumps: Vec<Jump>,
        chunk_rows: u64,
    ) -> Result<Self> {
        let chunk_rows = chunk_rows.max(1);
        let size = usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        let corners = first_corners(shape, levels, &jumps, size)?;
        let extents: Vec<ChunkExtent> = levels
            .par_chunks(size)
            .zip(&corners)
            .enumerate()
            .map(|(chunk, (levels, corner))| {
                chunk_extent(shape, chunk as u64 * chunk_rows, *corner, levels, &jumps)
            })
            .collect::<Result<_>>()
            .map_err(|error| Error::invalid(error.message()))?;
        Ok(Self {
            corners,
            boxes: extents.iter().map(|chunk| chunk.bounds).collect(),
            levels: extents.iter().map(|chunk| chunk.levels).collect(),
            jumps,
        })
    }

    /// Checks a geometry that was read: one entry for each chunk; corners and jumps on the lattice, in the
    /// order of the curve.
    ///
    /// # Errors
    /// `Corrupt` with the violated rule.
    pub(crate) fn check(&self, shape: &TreeShape, rows: u64, chunks: u64) -> Result<()> {
        let wrong = |what: &str| Err(Error::corrupt(format!("the index of chunks {what}")));
        let entries = [self.corners.len(), self.boxes.len(), self.levels.len()];
        if entries.iter().any(|n| *n as u64 != chunks) {
            return wrong(&format!(
                "has {entries:?} entries; expected {chunks}, the number of chunks"
            ));
        }
        let keys = self
            .corners
            .iter()
            .map(|corner| morton::key(shape.ndim, corner));
        if !self.corners.iter().all(|corner| inside(shape, corner))
            || !keys.is_sorted_by(|a, b| a < b)
        {
            return wrong("has corners that are not on the lattice or not in order");
        }
        check_jumps(shape, &self.jumps, rows).map_err(|error| Error::corrupt(error.message()))
    }

    /// Whether `touches` is true for any of the cubes (lower corner and side in lattice units) of which the
    /// chunk's interval of the curve consists. This is exact except for cubes outside of the box, in contrast
    /// to the bounding box of an interval that crosses a border of coarse cells.
    pub(crate) fn chunk_touches(
        &self,
        shape: &TreeShape,
        chunk: usize,
        mut touches: impl FnMut(&[u64; 3], u64) -> bool,
    ) -> bool {
        let mut from = morton::key(shape.ndim, &self.corners[chunk]);
        let end = match self.corners.get(chunk + 1) {
            Some(corner) => morton::key(shape.ndim, corner),
            None => shape.curve_end(),
        };
        while from < end {
            // The largest cube that starts here, is aligned, and does not exceed the end.
            let aligned = from.trailing_zeros().min(126);
            let fits = (end - from).ilog2();
            let shift = aligned.min(fits) / shape.ndim as u32;
            if touches(&morton::point(shape.ndim, from), 1 << shift) {
                return true;
            }
            from += 1 << (shift as usize * shape.ndim);
        }
        false
    }
}

fn inside(shape: &TreeShape, corner: &[u64; 3]) -> bool {
    let extent = shape.extent();
    corner.iter().zip(extent).all(|(x, extent)| *x < extent)
}

fn check_jumps(shape: &TreeShape, jumps: &[Jump], rows: u64) -> Result<()> {
    let key = |jump: &Jump| morton::key(shape.ndim, &jump.corner);
    let sorted = jumps.is_sorted_by(|a, b| a.row < b.row && key(a) < key(b));
    if sorted
        && jumps
            .iter()
            .all(|jump| jump.row < rows && inside(shape, &jump.corner))
    {
        return Ok(());
    }
    Err(Error::invalid(
        "the jumps of the curve are not on the lattice or not in order; restore the file from a copy",
    ))
}

/// The first corner of each chunk of `chunk` leaves: cumulative sums of the cells' sizes along
/// the curve, in parallel.
///
/// # Errors
/// `Invalid` if a level is finer than the lattice, or the jumps are out of order.
pub(super) fn first_corners(
    shape: &TreeShape,
    levels: &[u8],
    jumps: &[Jump],
    chunk: usize,
) -> Result<Vec<[u64; 3]>> {
    let finest = levels.par_iter().max().copied().unwrap_or(0);
    if finest > shape.lattice_level {
        return Err(Error::invalid(format!(
            "a leaf has level {finest}; expected at most the lattice's level, {}",
            shape.lattice_level
        )));
    }
    check_jumps(shape, jumps, levels.len() as u64)?;
    let ndim = shape.ndim;
    let jumps_before = |row: usize| jumps.partition_point(|jump| jump.row < row as u64);
    let steps: Vec<(Option<u128>, u128)> = levels
        .par_chunks(chunk)
        .enumerate()
        .map(|(i, levels)| {
            let (start, end) = (i * chunk, i * chunk + levels.len());
            // Only leaves after the chunk's last jump affect the next chunks.
            let last = jumps[jumps_before(start)..jumps_before(end)].last();
            let from = last.map_or(0, |jump| jump.row as usize - start);
            let mut counts = [0u128; 256];
            for level in &levels[from..] {
                counts[usize::from(*level)] += 1;
            }
            let size = |level: usize| 1u128 << ((usize::from(shape.lattice_level) - level) * ndim);
            let counted = counts.iter().enumerate().filter(|(_, n)| **n > 0);
            let sum = counted.fold(0u128, |sum, (level, n)| {
                sum.saturating_add(n.saturating_mul(size(level)))
            });
            (last.map(|jump| morton::key(ndim, &jump.corner)), sum)
        })
        .collect();
    let mut key = 0u128;
    let mut corners = Vec::with_capacity(steps.len());
    for (i, (restart, sum)) in steps.into_iter().enumerate() {
        let here = jumps.get(jumps_before(i * chunk));
        corners.push(match here {
            Some(jump) if jump.row == (i * chunk) as u64 => jump.corner,
            _ => morton::point(ndim, key),
        });
        // Leaves after the end of the curve are detected by the walk.
        key = restart
            .unwrap_or(key)
            .saturating_add(sum)
            .min(shape.curve_end());
    }
    Ok(corners)
}

/// Bounding box and extreme levels of a chunk.
struct ChunkExtent {
    bounds: [[f64; 3]; 2],
    levels: [u8; 2],
}

fn chunk_extent(
    shape: &TreeShape,
    row: u64,
    corner: [u64; 3],
    levels: &[u8],
    jumps: &[Jump],
) -> Result<ChunkExtent> {
    if !inside(shape, &corner) {
        return Err(Error::corrupt(format!(
            "the cells before row {row} fill the box, but more follow; restore the file from a copy"
        )));
    }
    let mut walk = CurveWalk::new(shape, row, corner, jumps);
    let mut centres = Centres::default();
    let mut sides = [0u64; 256];
    for (level, side) in sides
        .iter_mut()
        .enumerate()
        .take(usize::from(shape.lattice_level) + 1)
    {
        *side = 1 << (usize::from(shape.lattice_level) - level);
    }
    let (mut lo, mut hi) = ([u64::MAX; 3], [0u64; 3]);
    for levels in levels.chunks(BLOCK) {
        walk.next(levels, &mut centres)?;
        for d in 0..shape.ndim {
            for (centre, level) in centres.axes[d].iter().zip(levels) {
                let side = sides[usize::from(*level)];
                lo[d] = lo[d].min(centre - side);
                hi[d] = hi[d].max(centre + side);
            }
        }
    }
    let unit = shape.half_unit();
    let length = |x: [u64; 3]| {
        std::array::from_fn(|d| {
            if d < shape.ndim {
                x[d] as f64 * unit
            } else {
                0.0
            }
        })
    };
    let extremes = levels
        .iter()
        .fold([u8::MAX, 0], |[lo, hi], l| [lo.min(*l), hi.max(*l)]);
    Ok(ChunkExtent {
        bounds: [length(lo), length(hi)],
        levels: extremes,
    })
}
