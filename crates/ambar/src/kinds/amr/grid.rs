//! Covering grids: a tree's leaf cells averaged or spread onto the cells of one level.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::AmrTree;
use crate::kinds::amr::window::{Target, Window};
use crate::kinds::numbers::power_of_two;
use crate::memory::Column;

impl AmrTree {
    /// The values of `fields` (or derived columns) on the cells of `window`, float64, in C order:
    /// x outermost, the last dimension innermost. Finer leaf cells are averaged by volume, coarser
    /// ones spread; where there is no cell, the value is NaN. Where a window cell is covered in
    /// part, the value is the mean of what there is. Only the chunks that the window touches are
    /// read.
    ///
    /// # Errors
    /// `NotFound` for a column that is not there; `Invalid` where it is no number or the window is
    /// not in the box; `Limit` where the result does not fit in memory; `Corrupt`, `Io`.
    pub fn grid(&self, fields: &[&str], window: &Window) -> Result<Vec<(String, Column)>> {
        for name in fields {
            self.check_number(name)?;
        }
        let cells = self.check_window(window)?;
        let mut grids = Column::allocate(&vec![DataType::Float64; fields.len()], cells)?;
        for grid in &mut grids {
            grid.values_mut::<f64>()
                .par_chunks_mut(1 << 16)
                .for_each(|part| part.fill(f64::NAN));
        }
        let painter = Painter {
            tree: self,
            fields,
            window,
            grids: grids
                .iter_mut()
                .map(|grid| shared(grid.values_mut()))
                .collect(),
        };
        let partial: Vec<Vec<Mean>> = self
            .chunks_in(window)?
            .into_par_iter()
            .with_max_len(1)
            .map(|chunk| painter.paint(chunk))
            .collect::<Result<_>>()?;
        painter.join(partial.into_iter().flatten());
        Ok(fields
            .iter()
            .map(|name| (*name).to_owned())
            .zip(grids)
            .collect())
    }
}

/// A view of `values` that several threads may write to.
fn shared(values: &mut [f64]) -> &[AtomicU64] {
    let (start, len) = (values.as_mut_ptr().cast::<AtomicU64>(), values.len());
    // SAFETY: AtomicU64 has the size of f64 and here its alignment (columns are aligned to 128
    // bytes); the exclusive borrow lasts as long as the view, so that all access is atomic.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// The mean, as far as it is known, of a window cell that finer cells fill.
struct Mean {
    place: usize,
    /// The part of the volume seen so far.
    volume: f64,
    /// Sums of value times volume, by field.
    sums: Vec<f64>,
}

struct Painter<'a> {
    tree: &'a AmrTree,
    fields: &'a [&'a str],
    window: &'a Window,
    grids: Vec<&'a [AtomicU64]>,
}

impl Painter<'_> {
    /// Paints the cells of a chunk. Returns the window cells that it fills in part: others fill the
    /// rest, for all cells in a window cell follow each other along the curve.
    fn paint(&self, chunk: usize) -> Result<Vec<Mean>> {
        let target = Target::new(&self.tree.shape, self.window);
        let ndim = self.tree.shape.ndim as i32;
        let mut partial = Vec::new();
        let mut open: Option<Mean> = None;
        self.tree
            .visit_chunk(chunk, self.fields, |values, row, level, centre| {
                let depth = target.depth(level);
                if depth <= 0 {
                    let block = target.block_of(level, &centre);
                    if let Some((lo, hi)) = block {
                        self.spread(values, row, &lo, &hi);
                    }
                    return;
                }
                let Some(cell) = target.cell_of(&centre) else {
                    return;
                };
                let place = self.place(&cell);
                let mean = match &mut open {
                    Some(mean) if mean.place == place => mean,
                    _ => {
                        let sums = vec![0.0; values.len()];
                        partial.extend(open.take());
                        open.insert(Mean {
                            place,
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
                // Volumes are powers of two: a full cell is recognised exactly.
                if mean.volume == 1.0 {
                    self.set(mean);
                    open = None;
                }
            })?;
        partial.extend(open);
        Ok(partial)
    }

    fn place(&self, cell: &[u64; 3]) -> usize {
        let cells = self.window.cells();
        let offset: [u64; 3] = std::array::from_fn(|d| cell[d] - self.window.lo[d]);
        ((offset[0] * cells[1] + offset[1]) * cells[2] + offset[2]) as usize
    }

    fn spread(&self, values: &[Vec<f64>], row: usize, lo: &[u64; 3], hi: &[u64; 3]) {
        let line = (hi[2] - lo[2]) as usize;
        for (grid, values) in self.grids.iter().zip(values) {
            let bits = values[row].to_bits();
            for x in lo[0]..hi[0] {
                for y in lo[1]..hi[1] {
                    let first = self.place(&[x, y, lo[2]]);
                    for cell in &grid[first..first + line] {
                        cell.store(bits, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn set(&self, mean: &Mean) {
        for (grid, sum) in self.grids.iter().zip(&mean.sums) {
            grid[mean.place].store((sum / mean.volume).to_bits(), Ordering::Relaxed);
        }
    }

    /// Puts together what several chunks know of the same window cells, in the order of the curve,
    /// so that the result does not depend on threads.
    fn join(&self, partial: impl Iterator<Item = Mean>) {
        let mut open: Option<Mean> = None;
        for mean in partial {
            match &mut open {
                Some(first) if first.place == mean.place => {
                    first.volume += mean.volume;
                    for (sum, more) in first.sums.iter_mut().zip(mean.sums) {
                        *sum += more;
                    }
                }
                _ => {
                    if let Some(done) = open.replace(mean) {
                        self.set(&done);
                    }
                }
            }
        }
        if let Some(done) = open {
            self.set(&done);
        }
    }
}
