//! Covering grids: a tree's leaf cells averaged or repeated on the cells of one level.

use crate::error::Result;
use crate::kinds::amr::raster::{self, Mean, Raster};
use crate::kinds::amr::tree::window::WindowCells;
use crate::kinds::amr::{AmrTree, Window};
use crate::kinds::computed::ComputedColumns;
use crate::memory::Column;
use crate::numbers::power_of_two;

impl AmrTree {
    /// The values of `fields` (or derived or computed columns) on the cells of `window`, float64, in C order:
    /// x outermost, the last dimension innermost. Finer leaf cells are averaged by volume, coarser
    /// ones repeated. Window cells without leaf cells are NaN; the value of a partially covered one is the mean
    /// of the covered part. Only chunks that overlap the window are read.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if it is not numeric or the window is
    /// not in the box; `Limit` if the result does not fit in memory; `Corrupt`, `Io`.
    pub fn grid(
        &self,
        fields: &[&str],
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Vec<(String, Column)>> {
        self.prepare_numbers(fields, computed)?;
        self.check_window(window)?;
        let chunks = self.chunks_in(window)?;
        raster::grids(fields, window, &chunks, |raster, chunk| {
            let painter = Painter {
                tree: self,
                fields,
                computed,
                window,
                raster,
            };
            painter.paint(*chunk)
        })
    }
}

/// Writes the cells of chunks into a raster.
struct Painter<'a> {
    tree: &'a AmrTree,
    fields: &'a [&'a str],
    computed: &'a ComputedColumns,
    window: &'a Window,
    raster: &'a Raster<'a>,
}

impl Painter<'_> {
    /// Writes the cells of a chunk. Returns the window cells that the chunk covers in part. Other chunks cover
    /// the remainder, because all cells in a window cell are consecutive along the curve.
    fn paint(&self, chunk: usize) -> Result<Vec<Mean>> {
        let target = WindowCells::new(&self.tree.shape, self.window);
        let ndim = self.tree.shape.ndim as i32;
        let mut partial = Vec::new();
        let mut open: Option<Mean> = None;
        self.tree.visit_chunk(
            chunk,
            self.fields,
            self.computed,
            |values, row, level, centre| {
                let depth = target.depth(level);
                if depth <= 0 {
                    let block = target.block_of(level, &centre);
                    if let Some((lo, hi)) = block {
                        self.raster.spread(values, row, &lo, &hi);
                    }
                    return;
                }
                let Some(cell) = target.cell_of(&centre) else {
                    return;
                };
                let index = self.raster.place(&cell);
                let mean = match &mut open {
                    Some(mean) if mean.place == index => mean,
                    _ => {
                        let sums = vec![0.0; values.len()];
                        partial.extend(open.take());
                        open.insert(Mean {
                            place: index,
                            volume: 0.0,
                            sums,
                        })
                    }
                };
                let volume = power_of_two(-ndim * depth);
                mean.volume += volume;
                for (sum, values) in mean.sums.iter_mut().zip(values) {
                    *sum += values[row] * volume;
                }
                // Volumes are powers of two, so this comparison is exact.
                if mean.volume == 1.0 {
                    self.raster.set(mean);
                    open = None;
                }
            },
        )?;
        partial.extend(open);
        Ok(partial)
    }
}
