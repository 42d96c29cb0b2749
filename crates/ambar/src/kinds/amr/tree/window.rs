//! Windows on a tree: the cells of one level that are the pixels of grids, slices and projections.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::{BLOCK, Centres, CurveWalk};
use crate::kinds::amr::tree::shape::TreeShape;
use crate::kinds::amr::window::snapped;
use crate::kinds::amr::{AmrTree, Window};
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::region::Region;
use crate::kinds::select::{Rows, chunk_count, chunk_range};
use crate::numbers;

impl AmrTree {
    /// The cells of `level` that overlap the bounding box of `region` (`None` for the whole
    /// box), cut off at the box. A border at most a billionth of a cell from a cell's face is at
    /// that face.
    ///
    /// # Errors
    /// `Invalid` if the level is too fine for the lattice, the region's number of dimensions differs, or it
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
            // Casts move coordinates outside of the box to its border.
            window.lo[d] = (snapped(lo[d] / side).floor() as u64).min(cells[d]);
            window.hi[d] = (snapped(hi[d] / side).ceil() as u64).min(cells[d]);
            if window.lo[d] >= window.hi[d] {
                return Err(Error::invalid(format!(
                    "the region from {lo:?} to {hi:?} is outside of the box from 0 to {:?}",
                    self.shape.size()
                )));
            }
        }
        Ok(window)
    }

    /// Checks that a window is in the box and fits in memory.
    pub(super) fn check_window(&self, window: &Window) -> Result<()> {
        self.shape.check_level(window.level)?;
        let cells = self.shape.cells_at(window.level);
        if (0..3).any(|d| window.lo[d] >= window.hi[d] || window.hi[d] > cells[d]) {
            return Err(Error::invalid(format!(
                "the window {:?} to {:?} is empty or not inside of the box, which has {cells:?} cells of \
                 level {}",
                window.lo, window.hi, window.level
            )));
        }
        window.count().map(drop)
    }

    /// The chunks that can contain cells of the window.
    pub(super) fn chunks_in(&self, window: &Window) -> Result<Vec<usize>> {
        let geometry = self.geometry()?;
        let target = WindowCells::new(&self.shape, window);
        let side = self.shape.cell_size(window.level);
        let touches = |chunk: &usize| {
            // Equal faces have equal f64 values: both are one product with an integer.
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
        computed: &ComputedColumns,
        mut visit: impl FnMut(&[Vec<f64>], usize, u8, [u64; 3]),
    ) -> Result<()> {
        let rows = chunk_range(&*self.source, chunk as u64);
        let count = (rows.end - rows.start) as usize;
        let table = WithComputed::new(self, computed);
        let mut values = Vec::with_capacity(columns.len());
        let mut bytes = Vec::new();
        for name in columns {
            let read = |bytes: &mut [u8]| table.read(name, rows.clone(), bytes);
            let column = (*name, &table.dtype(name)?);
            values.push(numbers::read_f64(column, count, &mut bytes, read)?);
        }
        let levels = self.levels(rows)?;
        let start = self.start(chunk)?;
        let jumps = &self.geometry()?.jumps;
        let mut walk = CurveWalk::new(&self.shape, start.row, start.corner, jumps);
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

/// The cells of a window, as ranges of a tree's lattice.
pub(super) struct WindowCells<'a> {
    shape: &'a TreeShape,
    window: &'a Window,
}

impl<'a> WindowCells<'a> {
    pub(super) fn new(shape: &'a TreeShape, window: &'a Window) -> Self {
        Self { shape, window }
    }

    /// How many levels finer than the window a cell is; negative if it is coarser.
    pub(super) fn depth(&self, level: u8) -> i32 {
        i32::from(level) - i32::from(self.window.level)
    }

    /// The window cell that contains a cell at least as fine; `None` outside of the window.
    pub(super) fn cell_of(&self, centre: &[u64; 3]) -> Option<[u64; 3]> {
        // Called only for cells at least as fine as the window, so the window is not finer than the lattice.
        let shift = u32::from(self.shape.lattice_level.saturating_sub(self.window.level)) + 1;
        let cell = centre.map(|c| c >> shift);
        self.window.contains(&cell).then_some(cell)
    }

    /// The window cells `lo .. hi` that a coarser cell covers; `None` outside of the window.
    pub(super) fn block_of(&self, level: u8, centre: &[u64; 3]) -> Option<([u64; 3], [u64; 3])> {
        let side = 1u64 << (self.shape.lattice_level - level);
        // Centres in unused dimensions are 0.
        let corner = centre.map(|c| c.saturating_sub(side) / 2);
        self.clip(&corner, side)
    }

    /// The window cells that a cube of the lattice overlaps.
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
