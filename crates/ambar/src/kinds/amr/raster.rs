//! Rasters: the cells of a window, which several threads paint.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::Window;
use crate::memory::Column;

/// The grids of a window's fields, in C order: x outermost.
pub(super) struct Raster<'a> {
    window: &'a Window,
    grids: Vec<&'a [AtomicU64]>,
}

/// The partial mean by volume of a window cell that contains finer cells.
pub(super) struct Mean {
    /// The index of the cell, in C order.
    pub place: usize,
    /// The fraction of its volume that the sums contain.
    pub volume: f64,
    /// Sums of value times fraction of the volume, by field.
    pub sums: Vec<f64>,
}

/// Grids of `fields` on the cells of `window`. `paint` paints the cells of each of `parts`, in parallel,
/// and returns the cells that the part fills partly. Other cells are NaN.
///
/// # Errors
/// The errors of `paint`; `Limit` if the grids do not fit in memory.
pub(super) fn grids<P: Sync>(
    fields: &[&str],
    window: &Window,
    parts: &[P],
    paint: impl Fn(&Raster<'_>, &P) -> Result<Vec<Mean>> + Sync,
) -> Result<Vec<(String, Column)>> {
    let mut grids = empty_grids(fields.len(), window)?;
    let raster = Raster::new(window, &mut grids);
    let partial: Vec<Vec<Mean>> = parts
        .par_iter()
        .with_max_len(1)
        .map(|part| paint(&raster, part))
        .collect::<Result<_>>()?;
    raster.join(partial.into_iter().flatten().collect());
    let names = fields.iter().map(|name| (*name).to_owned());
    Ok(names.zip(grids).collect())
}

/// Grids of `fields` fields, filled with NaN.
fn empty_grids(fields: usize, window: &Window) -> Result<Vec<Column>> {
    let mut grids = Column::allocate(&vec![DataType::Float64; fields], window.count()?)?;
    for grid in &mut grids {
        grid.values_mut::<f64>()
            .par_chunks_mut(1 << 16)
            .for_each(|part| part.fill(f64::NAN));
    }
    Ok(grids)
}

/// A view of `values` that several threads may write to.
fn shared(values: &mut [f64]) -> &[AtomicU64] {
    let (start, len) = (values.as_mut_ptr().cast::<AtomicU64>(), values.len());
    // SAFETY: AtomicU64 has the size of f64 and here its alignment (columns are aligned to 128
    // bytes); the exclusive borrow lasts as long as the view: all access is atomic.
    unsafe { std::slice::from_raw_parts(start, len) }
}

impl<'a> Raster<'a> {
    /// A raster of these grids, each with the number of cells of the window.
    fn new(window: &'a Window, grids: &'a mut [Column]) -> Self {
        let grids = grids.iter_mut().map(|grid| shared(grid.values_mut()));
        Self {
            window,
            grids: grids.collect(),
        }
    }

    /// The index of a cell of the window.
    pub fn place(&self, cell: &[u64; 3]) -> usize {
        let cells = self.window.cells();
        let offset: [u64; 3] = std::array::from_fn(|d| cell[d] - self.window.lo[d]);
        ((offset[0] * cells[1] + offset[1]) * cells[2] + offset[2]) as usize
    }

    /// Sets the cells `lo .. hi` to the values at `row`, one slice for each field.
    pub fn spread(&self, values: &[Vec<f64>], row: usize, lo: &[u64; 3], hi: &[u64; 3]) {
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

    /// Sets the values of a cell, one for each field.
    pub fn put(&self, place: usize, values: impl Iterator<Item = f64>) {
        for (grid, value) in self.grids.iter().zip(values) {
            grid[place].store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Sets a cell to the mean of the part in the sums.
    pub fn set(&self, mean: &Mean) {
        self.put(mean.place, mean.sums.iter().map(|sum| sum / mean.volume));
    }

    /// Merges the partial means of the same cells, in the given order: the result does not depend on
    /// threads.
    fn join(&self, mut partial: Vec<Mean>) {
        partial.par_sort_by_key(|mean| mean.place);
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
