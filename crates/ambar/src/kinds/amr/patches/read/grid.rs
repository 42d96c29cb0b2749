//! Covering grids: leaf cells, averaged or replicated to the cells of one level.

use super::window::{Loaded, Touched};
use crate::error::Result;
use crate::kinds::amr::Window;
use crate::kinds::amr::patches::PatchAmr;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::raster::{self, Mean, Raster};
use crate::kinds::computed::ComputedColumns;
use crate::memory::Column;

impl PatchAmr {
    /// The values of `fields` (or derived columns) on the cells of `window`, float64, in C order:
    /// x outermost, the last dimension innermost. Finer leaf cells are averaged by volume, coarser
    /// cells are replicated. Window cells without leaf cells are NaN. The value of a partly covered
    /// window cell is the mean of its covered part. Only chunks that overlap the window are read.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if its values are not numbers, or the window is
    /// not in the domain; `Limit` if the result does not fit in memory; `Corrupt`, `Io`.
    pub fn grid(
        &self,
        fields: &[&str],
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Vec<(String, Column)>> {
        self.grid_of(fields, window, computed, false)
    }

    /// The same, with samples in place of means. Of finer cells, only those at the lower corners of window cells are
    /// read, which is faster. The value of a window cell is the mean of the samples in it.
    ///
    /// # Errors
    /// As [`PatchAmr::grid`].
    pub fn preview(
        &self,
        fields: &[&str],
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Vec<(String, Column)>> {
        self.grid_of(fields, window, computed, true)
    }

    fn grid_of(
        &self,
        fields: &[&str],
        window: &Window,
        computed: &ComputedColumns,
        is_preview: bool,
    ) -> Result<Vec<(String, Column)>> {
        self.check_numbers(fields, computed)?;
        self.check_window(window)?;
        let touched = self.touched(window, None)?;
        raster::grids(fields, window, &touched, |raster, touched| {
            let painter = Painter {
                amr: self,
                window,
                whole: self.box_of(window),
                raster,
            };
            let level = window.level.into();
            let step = match is_preview && touched.level > level {
                true => {
                    let wanted = self.nest.ratio(level, touched.level);
                    self.sample_step(touched, fields, computed, wanted)?
                }
                false => 1,
            };
            painter.paint(
                touched,
                &self.load_samples(touched, fields, computed, step)?,
            )
        })
    }
}

struct Painter<'a> {
    amr: &'a PatchAmr,
    window: &'a Window,
    /// The window in cell indices of its level.
    whole: IndexBox,
    raster: &'a Raster<'a>,
}

impl Painter<'_> {
    /// Paints the leaf cells of some blocks. Returns the window cells that a block fills in part.
    fn paint(&self, touched: &Touched, loaded: &Loaded) -> Result<Vec<Mean>> {
        let mut partial = Vec::new();
        for block in &touched.blocks {
            if touched.level <= self.window.level.into() {
                self.spread(touched.level, *block, loaded)?;
            } else {
                self.average(touched.level, *block, loaded, &mut partial)?;
            }
        }
        Ok(partial)
    }

    /// A cell's indices in the window.
    fn inside(&self, cell: [i64; 3]) -> [u64; 3] {
        std::array::from_fn(|d| (cell[d] - self.whole.lo[d]) as u64 + self.window.lo[d])
    }

    fn spread(&self, level: usize, block: usize, loaded: &Loaded) -> Result<()> {
        let window_level = self.window.level.into();
        let ratio = self.amr.nest.ratio(level, window_level);
        let region = self.whole.coarsened(ratio);
        let start = loaded.start(block);
        self.amr.leaves_in(level, block, &region, |place, lo| {
            let hi = lo.map(|x| x + 1);
            let cells = IndexBox { lo, hi }.refined(ratio).intersection(&self.whole);
            let (lo, hi) = (self.inside(cells.lo), self.inside(cells.hi));
            self.raster.spread(&loaded.values, start + place, &lo, &hi);
        })
    }

    fn average(
        &self,
        level: usize,
        block: usize,
        loaded: &Loaded,
        partial: &mut Vec<Mean>,
    ) -> Result<()> {
        let ratio = self.amr.nest.ratio(self.window.level.into(), level);
        let region = self.whole.refined(ratio);
        let extent = self.amr.blocks(level)?.extent(block);
        let coarse = extent.intersection(&region).coarsened(ratio);
        let [width, height, _] = coarse.shape();
        let fields = loaded.values.len();
        let mut counts = vec![0.0; coarse.cells()];
        let mut sums = vec![0.0; coarse.cells() * fields];
        let start = loaded.start(block);
        let samples = Samples::new(extent, loaded.step);
        self.amr.leaves_in(level, block, &region, |place, cell| {
            let Some(place) = samples.place(place, cell) else {
                return;
            };
            let [x, y, z]: [usize; 3] =
                std::array::from_fn(|d| (cell[d].div_euclid(ratio[d]) - coarse.lo[d]) as usize);
            let mean = (z * height + y) * width + x;
            counts[mean] += 1.0;
            let sums = &mut sums[mean * fields..(mean + 1) * fields];
            for (sum, values) in sums.iter_mut().zip(&loaded.values) {
                *sum += values[start + place];
            }
        })?;
        let step = loaded.step as f64;
        let full = ratio[..self.amr.nest.ndim()].iter();
        let full = full.map(|ratio| *ratio as f64 / step).product::<f64>();
        for (i, count) in counts.into_iter().enumerate().filter(|(_, n)| *n > 0.0) {
            let at = [i % width, i / width % height, i / width / height];
            let cell = self.inside(std::array::from_fn(|d| coarse.lo[d] + at[d] as i64));
            let place = self.raster.place(&cell);
            let sums = &sums[i * fields..(i + 1) * fields];
            if count == full {
                self.raster.put(place, sums.iter().map(|sum| sum / full));
                continue;
            }
            partial.push(Mean {
                place,
                volume: count / full,
                sums: sums.iter().map(|sum| sum / full).collect(),
            });
        }
        Ok(())
    }
}

/// The positions of the samples of a block.
struct Samples {
    extent: IndexBox,
    step: i64,
    /// Samples of the block in x and y.
    shape: [i64; 2],
}

impl Samples {
    fn new(extent: IndexBox, step: usize) -> Self {
        let [nx, ny, _] = extent.shape();
        Self {
            extent,
            step: step as i64,
            shape: [nx / step, ny / step].map(|n| (n as i64).max(1)),
        }
    }

    /// The place of a cell among the samples, if it is one; `place` is that among all cells.
    fn place(&self, place: usize, cell: [i64; 3]) -> Option<usize> {
        if self.step == 1 {
            return Some(place);
        }
        let at: [i64; 3] = std::array::from_fn(|d| cell[d] - self.extent.lo[d]);
        let [x, y, z] = at.map(|n| n / self.step);
        let is_sample = at.iter().all(|n| n % self.step == 0);
        is_sample.then_some(((z * self.shape[1] + y) * self.shape[0] + x) as usize)
    }
}
