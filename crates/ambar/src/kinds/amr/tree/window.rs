//! Windows on a tree: ranges of cells of one level, the pixels of grids, slices and projections.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kinds::amr::tree::derived::Derived;
use crate::kinds::amr::tree::shape::Shape;
use crate::kinds::amr::tree::walk::{BLOCK, Centres, Walk};
use crate::kinds::amr::window::snapped;
use crate::kinds::amr::{AmrTree, Window};
use crate::kinds::numbers;
use crate::kinds::region::Region;
use crate::kinds::select::{Rows, chunk_count, chunk_range};

impl AmrTree {
    /// The window of the cells of `level` that the box around `region` touches (`None`: the whole
    /// box), cut off at the box. A border less than a billionth of a cell off a cell's face is at
    /// that face.
    ///
    /// # Errors
    /// `Invalid` where the level is too fine for the lattice, the region has other dimensions or
    /// is outside of the box.
    pub fn window(&self, level: u8, region: Option<&Region>) -> Result<Window> {
        self.shape.check_level(level)?;
        let cells = self.shape.cells_at(level);
        let mut window = Window {
            level,
            lo: [0; 3],
            hi: cells,
        };
        let Some(region) = region else {
            return Ok(window);
        };
        region.check(self.shape.ndim)?;
        let side = self.shape.cell_size(level);
        let (lo, hi) = region.bounds();
        for d in 0..self.shape.ndim {
            // Casts take what is outside to the border.
            window.lo[d] = (snapped(lo[d] / side).floor() as u64).min(cells[d]);
            window.hi[d] = (snapped(hi[d] / side).ceil() as u64).min(cells[d]);
            if window.lo[d] >= window.hi[d] {
                return Err(Error::invalid(format!(
                    "the region from {lo:?} to {hi:?} holds no part of the box, which ends at {:?}",
                    self.shape.size()
                )));
            }
        }
        Ok(window)
    }

    /// Checks that a window is in the box and can be held in memory.
    pub(super) fn check_window(&self, window: &Window) -> Result<()> {
        self.shape.check_level(window.level)?;
        let cells = self.shape.cells_at(window.level);
        if (0..3).any(|d| window.lo[d] >= window.hi[d] || window.hi[d] > cells[d]) {
            return Err(Error::invalid(format!(
                "the window {:?} to {:?} is empty or beyond the box, which has {cells:?} cells of \
                 level {}",
                window.lo, window.hi, window.level
            )));
        }
        window.count().map(drop)
    }

    /// The chunks that may hold cells in the window.
    pub(super) fn chunks_in(&self, window: &Window) -> Result<Vec<usize>> {
        let geometry = self.geometry()?;
        let target = Target::new(&self.shape, window);
        let side = self.shape.cell_size(window.level);
        let touches = |chunk: &usize| {
            // Faces at the same place have the same f64: both are one product of an integer.
            let [lo, hi] = &geometry.boxes[*chunk];
            let in_box = (0..self.shape.ndim)
                .all(|d| lo[d] < window.hi[d] as f64 * side && window.lo[d] as f64 * side < hi[d]);
            in_box
                && geometry.chunk_touches(&self.shape, *chunk, |corner, side| {
                    target.touches(corner, side)
                })
        };
        Ok((0..geometry.corners.len())
            .into_par_iter()
            .filter(touches)
            .collect())
    }

    /// Reads some columns of a chunk as f64, and calls `visit` with each cell's row in the chunk,
    /// level and centre.
    pub(super) fn visit_chunk(
        &self,
        chunk: usize,
        columns: &[&str],
        mut visit: impl FnMut(&[Vec<f64>], usize, u8, [u64; 3]),
    ) -> Result<()> {
        let rows = chunk_range(&*self.source, chunk as u64);
        let count = (rows.end - rows.start) as usize;
        let mut values = Vec::with_capacity(columns.len());
        let mut bytes = Vec::new();
        for name in columns {
            let read = |bytes: &mut [u8]| match Derived::parse(name, self.shape.ndim) {
                Some(_) => self.derive(rows.clone(), &[name], &mut [bytes]),
                None => self.source.read(name, rows.clone(), bytes),
            };
            let column = (*name, &self.dtype(name)?);
            values.push(numbers::read_f64(column, count, &mut bytes, read)?);
        }
        let levels = self.levels(rows)?;
        let (row, corner) = self.start(chunk)?;
        let mut walk = Walk::new(&self.shape, row, corner, &self.geometry()?.jumps);
        let mut centres = Centres::default();
        for (block, levels) in levels.chunks(BLOCK).enumerate() {
            walk.next(levels, &mut centres)?;
            for (i, level) in levels.iter().enumerate() {
                let centre = std::array::from_fn(|d| centres.axes[d].get(i).copied().unwrap_or(0));
                visit(&values, block * BLOCK + i, *level, centre);
            }
        }
        Ok(())
    }

    /// Number of chunks.
    pub fn chunks(&self) -> u64 {
        chunk_count(&*self.source)
    }
}

/// A window as the cells of a tree see it.
pub(super) struct Target<'a> {
    shape: &'a Shape,
    window: &'a Window,
}

impl<'a> Target<'a> {
    pub(super) fn new(shape: &'a Shape, window: &'a Window) -> Self {
        Self { shape, window }
    }

    /// How many levels finer than the window's a cell is; below 0 where it is coarser.
    pub(super) fn depth(&self, level: u8) -> i32 {
        i32::from(level) - i32::from(self.window.level)
    }

    /// The window cell that holds a cell at least as fine; `None` where that is outside.
    pub(super) fn cell_of(&self, centre: &[u64; 3]) -> Option<[u64; 3]> {
        // Only called for cells no coarser than the window: the window is no finer than the lattice.
        let shift = u32::from(self.shape.lattice_level.saturating_sub(self.window.level)) + 1;
        let cell = centre.map(|c| c >> shift);
        self.window.holds(&cell).then_some(cell)
    }

    /// The window cells `lo .. hi` that a coarser cell covers; `None` where they are all outside.
    pub(super) fn block_of(&self, level: u8, centre: &[u64; 3]) -> Option<([u64; 3], [u64; 3])> {
        let side = 1u64 << (self.shape.lattice_level - level);
        // Centres of dimensions that are not used are 0.
        let corner = centre.map(|c| c.saturating_sub(side) / 2);
        self.clip(&corner, side)
    }

    /// The window cells that a cube of the lattice covers or is in.
    fn clip(&self, corner: &[u64; 3], side: u64) -> Option<([u64; 3], [u64; 3])> {
        let (lattice, window) = (self.shape.lattice_level, self.window.level);
        let (up, down) = (
            window.saturating_sub(lattice),
            lattice.saturating_sub(window),
        );
        let (mut lo, mut hi) = ([0; 3], [1; 3]);
        for d in 0..self.shape.ndim {
            let end = (corner[d] + side) << up;
            lo[d] = ((corner[d] << up) >> down).max(self.window.lo[d]);
            hi[d] = end.div_ceil(1 << down).min(self.window.hi[d]);
            if lo[d] >= hi[d] {
                return None;
            }
        }
        Some((lo, hi))
    }

    fn touches(&self, corner: &[u64; 3], side: u64) -> bool {
        self.clip(corner, side).is_some()
    }
}
