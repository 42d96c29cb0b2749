//! Where each chunk of a tree lies: its first corner, the box and the levels of its cells.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kinds::amr::tree::shape::Shape;
use crate::kinds::amr::tree::walk::Jump;
use crate::kinds::amr::tree::walk::{BLOCK, Centres, Walk};
use crate::kinds::morton;

/// Geometry of a tree's chunks: what the index arrays of a store hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Geometry {
    /// Lower corner of each chunk's first cell, in lattice units.
    pub corners: Vec<[u64; 3]>,
    /// Lower and upper corner of the box around each chunk's cells, in code length; 0 in dimensions
    /// that are not used.
    pub boxes: Vec<[[f64; 3]; 2]>,
    /// Smallest and largest level of each chunk.
    pub levels: Vec<[u8; 2]>,
    /// All jumps, in the order of their rows.
    pub jumps: Vec<Jump>,
}

impl Geometry {
    /// The geometry of leaves cut into chunks of `chunk_rows`. Parallel.
    ///
    /// # Errors
    /// `Invalid` where the levels and jumps make no tree.
    pub(crate) fn of_leaves(
        shape: &Shape,
        levels: &[u8],
        jumps: Vec<Jump>,
        chunk_rows: u64,
    ) -> Result<Self> {
        let chunk_rows = chunk_rows.max(1);
        let size = usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        let corners = first_corners(shape, levels, &jumps, size)?;
        let placed: Vec<Placed> = levels
            .par_chunks(size)
            .zip(&corners)
            .enumerate()
            .map(|(chunk, (levels, corner))| {
                place(shape, chunk as u64 * chunk_rows, *corner, levels, &jumps)
            })
            .collect::<Result<_>>()
            .map_err(|error| Error::invalid(error.message()))?;
        Ok(Self {
            corners,
            boxes: placed.iter().map(|chunk| chunk.extent).collect(),
            levels: placed.iter().map(|chunk| chunk.levels).collect(),
            jumps,
        })
    }

    /// Checks what a file says: one entry a chunk, corners and jumps along the curve, on the lattice.
    ///
    /// # Errors
    /// `Corrupt`, saying what is wrong.
    pub(crate) fn check(&self, shape: &Shape, rows: u64, chunks: u64) -> Result<()> {
        let wrong = |what: &str| Err(Error::corrupt(format!("the index of chunks {what}")));
        let entries = [self.corners.len(), self.boxes.len(), self.levels.len()];
        if entries.iter().any(|n| *n as u64 != chunks) {
            return wrong(&format!(
                "has {entries:?} entries, the cells {chunks} chunks"
            ));
        }
        let keys = self
            .corners
            .iter()
            .map(|corner| morton::key(shape.ndim, corner));
        if !self.corners.iter().all(|corner| inside(shape, corner))
            || !keys.is_sorted_by(|a, b| a < b)
        {
            return wrong("has corners off the lattice or out of order");
        }
        check_jumps(shape, &self.jumps, rows).map_err(|error| Error::corrupt(error.message()))
    }

    /// Whether cells of `chunk` may be in what `touches` accepts: it is asked about cubes, by their
    /// lower corner and side in lattice units. Exact except for cubes outside of the box: the chunk's
    /// interval of the curve is taken apart into the few cubes it consists of, which a box around
    /// an interval that crosses a coarse border is not.
    pub(crate) fn chunk_touches(
        &self,
        shape: &Shape,
        chunk: usize,
        mut touches: impl FnMut(&[u64; 3], u64) -> bool,
    ) -> bool {
        let mut from = morton::key(shape.ndim, &self.corners[chunk]);
        let end = match self.corners.get(chunk + 1) {
            Some(corner) => morton::key(shape.ndim, corner),
            None => shape.curve_end(),
        };
        while from < end {
            // The largest cube that begins here: aligned, and not beyond the end.
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

fn inside(shape: &Shape, corner: &[u64; 3]) -> bool {
    let extent = shape.extent();
    corner.iter().zip(extent).all(|(x, extent)| *x < extent)
}

fn check_jumps(shape: &Shape, jumps: &[Jump], rows: u64) -> Result<()> {
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
        "the jumps of the curve are off the lattice or out of order",
    ))
}

/// The corner at which each chunk of `chunk` leaves begins: a running sum of the cells' sizes along
/// the curve. Parallel.
///
/// # Errors
/// `Invalid` where a level is finer than the lattice, or the jumps are out of order.
pub(super) fn first_corners(
    shape: &Shape,
    levels: &[u8],
    jumps: &[Jump],
    chunk: usize,
) -> Result<Vec<[u64; 3]>> {
    let finest = levels.par_iter().max().copied().unwrap_or(0);
    if finest > shape.lattice_level {
        return Err(Error::invalid(format!(
            "a leaf has level {finest}, finer than the finest, {}",
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
            // Only what lies behind the chunk's last jump counts for the chunks that follow.
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
        // Leaves that go on behind the curve's end are found when they are walked.
        key = restart
            .unwrap_or(key)
            .saturating_add(sum)
            .min(shape.curve_end());
    }
    Ok(corners)
}

struct Placed {
    extent: [[f64; 3]; 2],
    levels: [u8; 2],
}

fn place(
    shape: &Shape,
    row: u64,
    corner: [u64; 3],
    levels: &[u8],
    jumps: &[Jump],
) -> Result<Placed> {
    if !inside(shape, &corner) {
        return Err(Error::corrupt(format!(
            "the cells before row {row} fill the box already"
        )));
    }
    let mut walk = Walk::new(shape, row, corner, jumps);
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
    Ok(Placed {
        extent: [length(lo), length(hi)],
        levels: extremes,
    })
}
