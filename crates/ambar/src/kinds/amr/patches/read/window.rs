//! Windows on patches: the blocks that overlap them, and their values.

use rayon::prelude::*;

use super::derived_columns::DerivedColumn;
use super::select::LevelRows;
use crate::error::{Error, Result};
use crate::kinds::amr::Window;
use crate::kinds::amr::patches::PatchAmr;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::CellSet;
use crate::kinds::amr::window::snapped;
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::region::Region;
use crate::kinds::select::Rows;
use crate::numbers;

/// The blocks of one chunk that overlap a window, in order; at least one.
pub(crate) struct Touched {
    pub level: usize,
    pub blocks: Vec<usize>,
}

/// Columns of some blocks, as float64.
pub(crate) struct Loaded {
    /// The first block that was read.
    first: usize,
    block_cells: usize,
    /// Every `step`th cell of a block in each dimension was read.
    pub step: usize,
    /// One for each column.
    pub values: Vec<Vec<f64>>,
}

impl Loaded {
    /// The index of the first value of a block.
    pub fn start(&self, block: usize) -> usize {
        (block - self.first) * self.block_cells
    }
}

impl PatchAmr {
    /// The window of the cells of `level` that the box around `region` touches (`None`: the whole
    /// domain), limited to the domain. A border within a billionth of a cell of a face is moved to the
    /// face.
    ///
    /// # Errors
    /// `Invalid` if the level does not exist, the region has other dimensions or is outside of the
    /// domain.
    pub fn window(&self, level: u8, region: Option<&Region>) -> Result<Window> {
        let cells = self.cells_at(level)?;
        let mut window = Window {
            level,
            lo: [0; 3],
            hi: cells,
        };
        let Some(region) = region else {
            return Ok(window);
        };
        region.check(self.nest.ndim())?;
        let hierarchy = self.nest.hierarchy();
        let sides = self.nest.level(level.into()).cell_size;
        let (lo, hi) = region.bounds();
        for d in 0..self.nest.ndim() {
            let place = |x: f64| snapped((x - hierarchy.lower[d]) / sides[d]);
            // Casts saturate at the border.
            window.lo[d] = (place(lo[d]).floor() as u64).min(cells[d]);
            window.hi[d] = (place(hi[d]).ceil() as u64).min(cells[d]);
            if window.lo[d] >= window.hi[d] {
                return Err(Error::invalid(format!(
                    "the region from {lo:?} to {hi:?} does not overlap the domain from {:?} to {:?}",
                    hierarchy.lower, hierarchy.upper
                )));
            }
        }
        Ok(window)
    }

    /// Cells of `level` in each dimension of the whole domain.
    pub(crate) fn cells_at(&self, level: u8) -> Result<[u64; 3]> {
        if usize::from(level) >= self.nest.levels() {
            return Err(Error::invalid(format!(
                "level {level} does not exist; available: 0 to {}",
                self.nest.levels() - 1
            )));
        }
        let shape = self.nest.level(level.into()).domain.shape();
        Ok(shape.map(|n| n as u64))
    }

    /// Checks that a window is in the domain and fits in memory.
    pub(crate) fn check_window(&self, window: &Window) -> Result<()> {
        let cells = self.cells_at(window.level)?;
        if (0..3).any(|d| window.lo[d] >= window.hi[d] || window.hi[d] > cells[d]) {
            return Err(Error::invalid(format!(
                "the window {:?} to {:?} is empty or outside of the domain of {cells:?} cells of \
                 level {}",
                window.lo, window.hi, window.level
            )));
        }
        window.count().map(drop)
    }

    /// Checks that columns exist and contain real numbers.
    pub(crate) fn check_numbers(&self, names: &[&str], computed: &ComputedColumns) -> Result<()> {
        let rows = LevelRows::new(self, 0)?;
        let table = WithComputed::new(&rows, computed);
        names.iter().try_for_each(|name| table.check_number(name))
    }

    /// The window in cell indices of its level.
    pub(crate) fn box_of(&self, window: &Window) -> IndexBox {
        let first = self.nest.level(window.level.into()).domain.lo;
        IndexBox {
            lo: std::array::from_fn(|d| first[d] + window.lo[d] as i64),
            hi: std::array::from_fn(|d| first[d] + window.hi[d] as i64),
        }
    }

    /// The cells of level `to` that a region of level `from` touches.
    pub(crate) fn region_at(&self, region: &IndexBox, from: usize, to: usize) -> IndexBox {
        if to < from {
            region.coarsened(self.nest.ratio(to, from))
        } else {
            region.refined(self.nest.ratio(from, to))
        }
    }

    /// The blocks with leaf cells in the window; with a `plane` (dimension, index on the finest
    /// level) those with leaf cells that it cuts.
    pub(crate) fn touched(
        &self,
        window: &Window,
        plane: Option<(usize, i64)>,
    ) -> Result<Vec<Touched>> {
        let whole = self.box_of(window);
        let finest = self.nest.levels() - 1;
        let mut touched: Vec<Touched> = Vec::new();
        for level in 0..=finest {
            let mut region = self.region_at(&whole, window.level.into(), level);
            if let Some((axis, index)) = plane {
                let index = index.div_euclid(self.nest.ratio(level, finest)[axis]);
                (region.lo[axis], region.hi[axis]) = (index, index + 1);
            }
            let blocks = self.blocks(level)?;
            let holds_leaves = |block: &usize| {
                let part = blocks.extent(*block).intersection(&region);
                self.nest.count(level, &part, CellSet::Leaves) > 0
            };
            let meeting = blocks.meeting(&region).into_par_iter();
            let meeting: Vec<usize> = meeting.filter(holds_leaves).collect();
            let chunks = meeting.chunk_by(|a, b| a / blocks.per_chunk() == b / blocks.per_chunk());
            touched.extend(chunks.map(|chunk| Touched {
                level,
                blocks: chunk.to_vec(),
            }));
        }
        Ok(touched)
    }

    /// Reads some columns of blocks.
    pub(crate) fn load(
        &self,
        touched: &Touched,
        columns: &[&str],
        computed: &ComputedColumns,
    ) -> Result<Loaded> {
        self.load_samples(touched, columns, computed, 1)
    }

    /// The step between samples if one of `wanted` cells in each dimension is enough: the largest power of 2 that fits
    /// the blocks; 1 if all cells are read.
    pub(crate) fn sample_step(
        &self,
        touched: &Touched,
        columns: &[&str],
        computed: &ComputedColumns,
        wanted: [i64; 3],
    ) -> Result<usize> {
        let side = self.blocks(touched.level)?.side();
        let is_stored = |name: &&str| {
            !computed.contains(name) && DerivedColumn::parse(name, &self.nest).is_none()
        };
        if !self.values.has_samples() || !columns.iter().all(is_stored) {
            return Ok(1);
        }
        let wanted = wanted[..self.nest.ndim()].iter();
        let fits = wanted.fold(side, |fits, wanted| fits | *wanted as usize);
        Ok(1 << fits.trailing_zeros().min(3))
    }

    /// The same as [`PatchAmr::load`], of every `step`th cell of a block in each dimension.
    pub(crate) fn load_samples(
        &self,
        touched: &Touched,
        columns: &[&str],
        computed: &ComputedColumns,
        step: usize,
    ) -> Result<Loaded> {
        let blocks = self.blocks(touched.level)?;
        let (first, last) = match touched.blocks[..] {
            [] => (0, 0),
            [first, .., last] => (first, last + 1),
            [only] => (only, only + 1),
        };
        let block_cells = blocks.block_cells() / step.pow(self.nest.ndim() as u32);
        let count = (last - first) * block_cells;
        let rows = LevelRows::new(self, touched.level)?;
        let table = WithComputed::new(&rows, computed);
        let range = [first, last].map(|block| (block * blocks.block_cells()) as u64);
        let mut values = Vec::with_capacity(columns.len());
        let mut bytes = Vec::new();
        for name in columns {
            let read = |bytes: &mut [u8]| match step {
                1 => table.read(name, range[0]..range[1], bytes),
                _ => {
                    let (field, step) = (self.field(name)?, step as u64);
                    (self.values).read_samples(blocks, field, first..last, step, bytes)
                }
            };
            let column = (*name, &table.dtype(name)?);
            values.push(numbers::read_f64(column, count, &mut bytes, read)?);
        }
        Ok(Loaded {
            first,
            block_cells,
            step,
            values,
        })
    }

    /// Calls `visit` with each leaf cell of a block in `region`: its place in the block, and its
    /// index on its level.
    pub(crate) fn leaves_in(
        &self,
        level: usize,
        block: usize,
        region: &IndexBox,
        mut visit: impl FnMut(usize, [i64; 3]),
    ) -> Result<()> {
        let blocks = self.blocks(level)?;
        let extent = blocks.extent(block);
        let part = extent.intersection(region);
        let mask = blocks.mask(block..block + 1, CellSet::Leaves);
        let [width, height, _] = extent.shape();
        for z in part.lo[2]..part.hi[2] {
            for y in part.lo[1]..part.hi[1] {
                let row = (z - extent.lo[2]) as usize * height + (y - extent.lo[1]) as usize;
                for x in part.lo[0]..part.hi[0] {
                    let place = row * width + (x - extent.lo[0]) as usize;
                    if mask[place] {
                        visit(place, [x, y, z]);
                    }
                }
            }
        }
        Ok(())
    }
}
