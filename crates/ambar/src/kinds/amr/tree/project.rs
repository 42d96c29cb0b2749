//! Slices and projections: images of a tree along one of its axes.

use crate::error::{Error, Result};
use crate::kinds::amr::image::{Canvas, ImageColumns, Line, Sums};
use crate::kinds::amr::{AXES, AmrTree, TreeShape, Weight, Window};
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::memory::Column;
use crate::numbers::power_of_two;

impl AmrTree {
    /// The values of `field` (or a derived or computed column) in the plane at `at` (code length) perpendicular to `axis`
    /// (0 to `ndim - 1`), float64, in C order of the other dimensions of `window`, whose extent along
    /// the axis is ignored. A plane on a face of cells cuts the cells above it, at the box's end
    /// those below. Cells finer than the window are averaged by area, coarser ones repeated; pixels without
    /// cells are NaN.
    ///
    /// # Errors
    /// As `grid`; `Invalid` if the axis does not exist or the plane is outside of the box.
    pub fn slice(
        &self,
        field: &str,
        axis: usize,
        at: f64,
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Column> {
        self.check_axis(axis)?;
        let size = self.shape.size()[axis];
        if !(0.0..=size).contains(&at) {
            return Err(Error::invalid(format!(
                "the plane {} = {at} is outside of the box; expected 0 to {size}",
                AXES[axis]
            )));
        }
        let cells = self.shape.cells_at(window.level)[axis];
        let units = self.shape.extent()[axis];
        let unit = ((at / self.shape.half_unit() / 2.0) as u64).min(units - 1);
        let lattice = self.shape.lattice_level;
        let (up, down) = (
            window.level.saturating_sub(lattice),
            lattice.saturating_sub(window.level),
        );
        let mut window = *window;
        window.lo[axis] = ((unit << up) >> down).min(cells - 1);
        window.hi[axis] = window.lo[axis] + 1;
        self.check_window(&window)?;
        // The plane is thinner than the window's cells, so fewer chunks overlap it.
        let mut thin = window;
        if down > 0 {
            thin.level = lattice;
            for d in 0..self.shape.ndim {
                thin.lo[d] <<= down;
                thin.hi[d] <<= down;
            }
            (thin.lo[axis], thin.hi[axis]) = (unit, unit + 1);
        }
        let line = Line::in_plane(axis, 2 * unit + 1);
        let columns = ImageColumns {
            names: &[field],
            computed,
        };
        self.image(&columns, &line, &window, &thin)
    }

    /// The integral or mean of `field` (or a derived or computed column) along `axis` through the cells of
    /// `window`, float64, in C order of the other dimensions. Leaf cells finer than the window are
    /// averaged by area, coarser ones repeated. Cells that extend beyond the window count with
    /// their part in it, so the image's sum is the volume integral. Pixels without cells are NaN.
    ///
    /// # Errors
    /// As `grid`; `Invalid` if the axis does not exist.
    pub fn project(
        &self,
        field: &str,
        axis: usize,
        weight: Weight<'_>,
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Column> {
        self.check_axis(axis)?;
        let line = Line::through(axis, weight);
        let names = [Some(field), weight.field()];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let columns = ImageColumns {
            names: &names,
            computed,
        };
        self.image(&columns, &line, window, window)
    }

    /// Sums the first of `columns` along lines of sight, weighted by the second if given; reads chunks that overlap `near`.
    fn image(
        &self,
        columns: &ImageColumns<'_>,
        line: &Line,
        window: &Window,
        near: &Window,
    ) -> Result<Column> {
        self.prepare_numbers(columns.names, columns.computed)?;
        self.check_window(window)?;
        let chunks = self.chunks_in(near)?;
        let canvas = Canvas {
            line,
            window,
            depth: self.shape.cell_size(window.level),
        };
        let reach = |chunks: &[usize], d| self.reach(chunks, d, window);
        let add =
            |chunk: &usize, sums: &mut Sums| self.add_chunk(*chunk, columns, line, window, sums);
        canvas.sum(&chunks, reach, add)
    }

    /// The range of window cells in dimension `d` that these chunks can overlap.
    fn reach(&self, chunks: &[usize], d: usize, window: &Window) -> Result<(u64, u64)> {
        if d >= self.shape.ndim {
            return Ok((0, 1));
        }
        let boxes = &self.geometry()?.boxes;
        let of_chunks = chunks
            .iter()
            .map(|chunk| [boxes[*chunk][0][d], boxes[*chunk][1][d]]);
        let [lo, hi] = of_chunks.fold([f64::INFINITY, 0.0], |[lo, hi], [a, b]| {
            [lo.min(a), hi.max(b)]
        });
        // One more cell on either side compensates for rounding.
        let side = self.shape.cell_size(window.level);
        let (first, last) = (window.lo[d], window.hi[d]);
        let lo = ((lo / side) as u64).saturating_sub(1).clamp(first, last);
        let hi = ((hi / side) as u64).saturating_add(2).clamp(lo, last);
        Ok((lo, hi))
    }

    fn add_chunk(
        &self,
        chunk: usize,
        columns: &ImageColumns<'_>,
        line: &Line,
        window: &Window,
        sums: &mut Sums,
    ) -> Result<()> {
        let (u, v) = line.across();
        let lattice = self.shape.lattice_level;
        let blocks: Vec<LevelBlocks> = (0..=lattice)
            .map(|level| LevelBlocks::new(&self.shape, level, line, window))
            .collect();
        let mut is_outside = false;
        self.visit_chunk(
            chunk,
            columns.names,
            columns.computed,
            |values, row, level, centre| {
                let side = 1u64 << (lattice - level);
                if line
                    .plane
                    .is_some_and(|plane| plane.abs_diff(centre[line.axis]) >= side)
                {
                    return;
                }
                let blocks = &blocks[usize::from(level)];
                let (mut lo, mut hi) = ([0; 3], [0; 3]);
                for d in 0..3 {
                    let index = centre[d] >> blocks.down;
                    lo[d] = (index << blocks.shift).max(window.lo[d]);
                    hi[d] = ((index + 1) << blocks.shift).min(window.hi[d]);
                }
                if (0..3).any(|d| lo[d] >= hi[d]) {
                    return;
                }
                let mut part = blocks.part;
                if line.plane.is_none() {
                    part *= (hi[line.axis] - lo[line.axis]) as f64;
                }
                if line.mass {
                    part *= values[1][row];
                }
                let (u, v) = ((lo[u], hi[u]), (lo[v], hi[v]));
                is_outside |= !sums.add_block(blocks.shift, u, v, values[0][row], part);
            },
        )?;
        if is_outside {
            return Err(Error::corrupt(format!(
                "the bounding box of chunk {chunk} in the index does not contain its cells; restore the file \
                 from a copy"
            )));
        }
        Ok(())
    }

    fn check_axis(&self, axis: usize) -> Result<()> {
        if axis < self.shape.ndim {
            return Ok(());
        }
        let known = AXES[..self.shape.ndim].join(", ");
        Err(Error::invalid(format!(
            "axis {axis} does not exist; available: {known}"
        )))
    }

    /// Checks that columns exist and contain real numbers, and prepares the source for reading them.
    pub(super) fn prepare_numbers(&self, names: &[&str], computed: &ComputedColumns) -> Result<()> {
        let table = WithComputed::new(self, computed);
        names.iter().try_for_each(|name| table.check_number(name))?;
        self.source.prepare(&computed.needed(names))
    }
}

/// The blocks of window cells that the cells of a level cover, or are in.
struct LevelBlocks {
    /// The binary logarithm of their side.
    shift: u32,
    /// Centres of cells shifted right by it are the indices of blocks.
    down: u32,
    /// The part of a window cell that a cell fills: of its area in a plane, otherwise of its volume; 1 for coarser cells.
    part: f64,
}

impl LevelBlocks {
    fn new(shape: &TreeShape, level: u8, line: &Line, window: &Window) -> Self {
        let finer = i32::from(level.saturating_sub(window.level));
        let ndim = shape.ndim as i32 - i32::from(line.plane.is_some());
        Self {
            shift: window.level.saturating_sub(level).into(),
            down: u32::from(shape.lattice_level - level.min(window.level)) + 1,
            part: power_of_two(-ndim * finer),
        }
    }
}
