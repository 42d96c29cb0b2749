//! Slices and projections: images of a hierarchy along one of its axes.

use super::window::Touched;
use crate::error::{Error, Result};
use crate::kinds::amr::image::{Canvas, ImageColumns, Line, Sums};
use crate::kinds::amr::patches::PatchAmr;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::window::snapped;
use crate::kinds::amr::{AXES, Weight, Window};
use crate::kinds::computed::ComputedColumns;
use crate::memory::Column;

impl PatchAmr {
    /// The values of `field` (or a derived or computed column) in the plane at `at` (code length) across `axis`
    /// (0 to `ndim - 1`), float64, in C order of the other dimensions of `window`; its extent along
    /// the axis is ignored. A plane on a face of cells selects the cells above, at the upper end of the
    /// domain the cells below. Leaf cells in the plane that are finer than the window are averaged by
    /// area, coarser cells are replicated. Pixels without cells are NaN.
    ///
    /// # Errors
    /// As `grid`; `Invalid` if the axis does not exist or the plane is outside of the domain.
    pub fn slice(
        &self,
        field: &str,
        axis: usize,
        at: f64,
        window: &Window,
        computed: &ComputedColumns,
    ) -> Result<Column> {
        self.check_axis(axis)?;
        self.cells_at(window.level)?;
        let hierarchy = self.nest.hierarchy();
        let (lower, upper) = (hierarchy.lower[axis], hierarchy.upper[axis]);
        if !(lower..=upper).contains(&at) {
            return Err(Error::invalid(format!(
                "the plane {} = {at} is outside of the domain from {lower} to {upper}",
                AXES[axis]
            )));
        }
        let last = self.nest.levels() - 1;
        let finest = self.nest.level(last);
        let place = snapped((at - lower) / finest.cell_size[axis]);
        let index = (place as u64).min(finest.domain.shape()[axis] as u64 - 1);
        let ratio = self.nest.ratio(window.level.into(), last)[axis] as u64;
        let mut window = *window;
        window.lo[axis] = index / ratio;
        window.hi[axis] = window.lo[axis] + 1;
        let columns = ImageColumns {
            names: &[field],
            computed,
        };
        self.image(&columns, &Line::in_plane(axis, index), &window)
    }

    /// The integral or mean of `field` (or a derived or computed column) along `axis` through the cells of
    /// `window`, float64, in C order of the other dimensions. Leaf cells finer than the window are
    /// averaged by area, coarser cells are replicated, and cells that are partly in the window count
    /// with this part: the sum of the image is the volume integral. Pixels without cells are NaN.
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
        self.image(&columns, &line, window)
    }

    /// Sums the first of `columns` along lines of sight; the second one, if any, is the weight.
    fn image(&self, columns: &ImageColumns<'_>, line: &Line, window: &Window) -> Result<Column> {
        self.check_numbers(columns.names, columns.computed)?;
        self.check_window(window)?;
        let finest = self.nest.level(self.nest.levels() - 1).domain.lo[line.axis];
        let plane = line.plane.map(|index| (line.axis, finest + index as i64));
        let touched = self.touched(window, plane)?;
        let canvas = Canvas {
            line,
            window,
            depth: self.nest.level(window.level.into()).cell_size[line.axis],
        };
        let view = View {
            amr: self,
            line,
            window,
            whole: self.box_of(window),
            plane,
        };
        canvas.sum(
            &touched,
            |touched, d| view.reach(touched, d),
            |touched, sums| view.add(touched, columns, sums),
        )
    }

    fn check_axis(&self, axis: usize) -> Result<()> {
        if axis < self.nest.ndim() {
            return Ok(());
        }
        let known = AXES[..self.nest.ndim()].join(", ");
        Err(Error::invalid(format!(
            "axis {axis} does not exist; available: {known}"
        )))
    }
}

/// The geometry of an image.
struct View<'a> {
    amr: &'a PatchAmr,
    line: &'a Line,
    window: &'a Window,
    /// The window in cell indices of its level.
    whole: IndexBox,
    /// A plane's dimension and index on the finest level.
    plane: Option<(usize, i64)>,
}

impl View<'_> {
    /// The window cells in dimension `d` that these blocks can reach.
    fn reach(&self, touched: &[Touched], d: usize) -> Result<(u64, u64)> {
        let (mut lo, mut hi) = (u64::MAX, 0);
        for touched in touched {
            let blocks = self.amr.blocks(touched.level)?;
            for block in &touched.blocks {
                let extent = blocks.extent(*block);
                let level = self.window.level.into();
                let cells = self.amr.region_at(&extent, touched.level, level);
                let (from, to) = self.inside(&cells.intersection(&self.whole), d);
                (lo, hi) = (lo.min(from), hi.max(to));
            }
        }
        Ok((lo.min(hi), hi))
    }

    /// The window cells in dimension `d` of a region in the window.
    fn inside(&self, region: &IndexBox, d: usize) -> (u64, u64) {
        let shift = |x: i64| (x - self.whole.lo[d]) as u64 + self.window.lo[d];
        (shift(region.lo[d]), shift(region.hi[d]))
    }

    /// Adds the leaf cells of some blocks.
    fn add(&self, touched: &Touched, columns: &ImageColumns<'_>, sums: &mut Sums) -> Result<()> {
        let (level, window_level) = (touched.level, usize::from(self.window.level));
        let nest = &self.amr.nest;
        let loaded = self.amr.load(touched, columns.names, columns.computed)?;
        let mut region = self.amr.region_at(&self.whole, window_level, level);
        if let Some((axis, index)) = self.plane {
            let last = nest.levels() - 1;
            let index = index.div_euclid(nest.ratio(level, last)[axis]);
            (region.lo[axis], region.hi[axis]) = (index, index + 1);
        }
        let (u, v) = self.line.across();
        let share = self.share(level);
        for block in &touched.blocks {
            let start = loaded.start(*block);
            self.amr.leaves_in(level, *block, &region, |place, lo| {
                let hi = lo.map(|x| x + 1);
                let cell = self
                    .amr
                    .region_at(&IndexBox { lo, hi }, level, window_level);
                let pixels = cell.intersection(&self.whole);
                // In units of a window cell; an area in a plane, else a volume.
                let mut part = share.unwrap_or_else(|| {
                    let (from, to) = self.inside(&pixels, self.line.axis);
                    (to - from) as f64
                });
                if self.line.mass {
                    part *= loaded.values[1][start + place];
                }
                let value = loaded.values[0][start + place];
                sums.add(
                    self.inside(&pixels, u),
                    self.inside(&pixels, v),
                    value,
                    part,
                );
            })?;
        }
        Ok(())
    }

    /// The fraction of the area (in a plane) or of the volume of a window cell that a cell of `level` fills.
    /// `None` for coarser cells, for which their length in the window counts.
    fn share(&self, level: usize) -> Option<f64> {
        let window_level = usize::from(self.window.level);
        let in_plane = self.plane.is_some();
        if level <= window_level {
            return in_plane.then_some(1.0);
        }
        let ratio = self.amr.nest.ratio(window_level, level);
        let across = (0..3).filter(|d| !(in_plane && *d == self.line.axis));
        Some(1.0 / across.map(|d| ratio[d] as f64).product::<f64>())
    }
}
