//! Slices and projections: images of a tree along one of its axes.

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::window::{Target, Window};
use crate::kinds::amr::{AXES, AmrTree};
use crate::kinds::numbers::{self, power_of_two};
use crate::memory::Column;

/// Groups of chunks that are summed on their own. Fixed, so that results do not depend on threads.
const GROUPS: usize = 32;

/// Memory for the images of all groups, above which there are fewer groups.
const IMAGES: usize = 1 << 30;

/// What a projection computes along each line of sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight<'a> {
    /// The integral of the field over the length, in code length.
    Sum,
    /// The mean by volume.
    Volume,
    /// The mean by this field times the volume; `density` for a mean by mass.
    Field(&'a str),
}

impl AmrTree {
    /// The values of `field` (or a derived column) in the plane at `at` (code length) across `axis`
    /// (0 to `ndim - 1`), float64, in C order of the other dimensions of `window`; its extent along
    /// the axis plays no part. The plane on a face of cells takes those above, at the box's end
    /// those below. Of the cells that it cuts, those finer than the window are averaged by area,
    /// coarser ones spread; where there is none, the value is NaN.
    ///
    /// # Errors
    /// As `grid`; `Invalid` where the axis does not exist or the plane lies outside of the box.
    pub fn slice(&self, field: &str, axis: usize, at: f64, window: &Window) -> Result<Column> {
        self.check_axis(axis)?;
        let size = self.shape.size()[axis];
        if !(0.0..=size).contains(&at) {
            return Err(Error::invalid(format!(
                "the plane {} = {at} is outside of the box, which goes from 0 to {size}",
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
        // The plane is thinner than the window's cells: fewer chunks touch it.
        let mut thin = window;
        if down > 0 {
            thin.level = lattice;
            for d in 0..self.shape.ndim {
                thin.lo[d] <<= down;
                thin.hi[d] <<= down;
            }
            (thin.lo[axis], thin.hi[axis]) = (unit, unit + 1);
        }
        let line = Line {
            axis,
            plane: Some(2 * unit + 1),
            mass: false,
            integral: false,
        };
        self.image(&[field], &line, &window, &thin)
    }

    /// The integral or mean of `field` (or a derived column) along `axis` through the cells of
    /// `window`, float64, in C order of the other dimensions. Leaf cells finer than the window are
    /// averaged by area, coarser ones spread, and those that reach out of the window count with
    /// their part in it: the image's sum is the volume integral. Where there is no cell, the value
    /// is NaN.
    ///
    /// # Errors
    /// As `grid`; `Invalid` where the axis does not exist.
    pub fn project(
        &self,
        field: &str,
        axis: usize,
        weight: Weight<'_>,
        window: &Window,
    ) -> Result<Column> {
        self.check_axis(axis)?;
        let line = Line {
            axis,
            plane: None,
            mass: matches!(weight, Weight::Field(_)),
            integral: weight == Weight::Sum,
        };
        match weight {
            Weight::Field(weight) => self.image(&[field, weight], &line, window, window),
            _ => self.image(&[field], &line, window, window),
        }
    }

    /// Sums `fields` (the second, if any, weighs) along lines of sight; reads what touches `near`.
    fn image(
        &self,
        fields: &[&str],
        line: &Line,
        window: &Window,
        near: &Window,
    ) -> Result<Column> {
        for name in fields {
            self.check_number(name)?;
        }
        self.check_window(window)?;
        let (u, v) = line.across();
        let cells = window.cells();
        let mut image = Column::allocate(&[DataType::Float64], (cells[u] * cells[v]) as usize)?;
        let mut image = image
            .pop()
            .ok_or_else(|| Error::limit("no memory for an image"))?;
        let chunks = self.chunks_in(near)?;
        let most = (IMAGES / (2 * image.bytes().len()).max(1)).clamp(4, GROUPS);
        let sums: Vec<Sums> = chunks
            .par_chunks(chunks.len().div_ceil(most).max(1))
            .with_max_len(1)
            .map(|chunks| {
                let mut sums = self.empty_sums(chunks, line, window)?;
                for chunk in chunks {
                    self.add_chunk(*chunk, fields, line, window, &mut sums)?;
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        let width = cells[v] as usize;
        let scale = if line.integral {
            self.shape.cell_size(window.level)
        } else {
            1.0
        };
        let rows = image.values_mut::<f64>().par_chunks_mut(width);
        rows.enumerate().for_each(|(row, values)| {
            values.fill(0.0);
            let mut weights = vec![0.0; width];
            for part in &sums {
                part.add_row(
                    window.lo[u] + row as u64,
                    window.lo[v],
                    values,
                    &mut weights,
                );
            }
            for (value, weight) in values.iter_mut().zip(weights) {
                *value = match weight {
                    0.0 => f64::NAN,
                    _ if line.integral => *value * scale,
                    _ => *value / weight,
                };
            }
        });
        Ok(image)
    }

    /// Sums for the part of the image that these chunks can reach.
    fn empty_sums(&self, chunks: &[usize], line: &Line, window: &Window) -> Result<Sums> {
        let side = self.shape.cell_size(window.level);
        let boxes = &self.geometry()?.boxes;
        let (u, v) = line.across();
        let reach = |d: usize| {
            if d >= self.shape.ndim {
                return (0, 1);
            }
            let of_chunks = chunks
                .iter()
                .map(|chunk| [boxes[*chunk][0][d], boxes[*chunk][1][d]]);
            let [lo, hi] = of_chunks.fold([f64::INFINITY, 0.0], |[lo, hi], [a, b]| {
                [lo.min(a), hi.max(b)]
            });
            // One more on either side makes up for rounding.
            let (first, last) = (window.lo[d], window.hi[d]);
            let lo = ((lo / side) as u64).saturating_sub(1).clamp(first, last);
            let hi = ((hi / side) as u64).saturating_add(2).clamp(lo, last);
            (lo, hi)
        };
        let (u, v) = (reach(u), reach(v));
        let cells = (u.1 - u.0)
            .checked_mul(v.1 - v.0)
            .and_then(|n| usize::try_from(n).ok());
        let cells = cells.ok_or_else(|| Error::limit("the image does not fit in memory"))?;
        Ok(Sums {
            u,
            v,
            sums: vec![0.0; cells],
            weights: vec![0.0; cells],
        })
    }

    fn add_chunk(
        &self,
        chunk: usize,
        fields: &[&str],
        line: &Line,
        window: &Window,
        sums: &mut Sums,
    ) -> Result<()> {
        let target = Target::new(&self.shape, window);
        let (u, v) = line.across();
        let (ndim, lattice) = (self.shape.ndim as i32, self.shape.lattice_level);
        let mut missed = false;
        self.visit_chunk(chunk, fields, |values, row, level, centre| {
            let side = 1u64 << (lattice - level);
            if line
                .plane
                .is_some_and(|plane| plane.abs_diff(centre[line.axis]) >= side)
            {
                return;
            }
            let depth = target.depth(level);
            let place = if depth > 0 {
                target
                    .cell_of(&centre)
                    .map(|cell| (cell, cell.map(|c| c + 1)))
            } else {
                target.block_of(level, &centre)
            };
            let Some((lo, hi)) = place else {
                return;
            };
            // In units of a window cell; an area in a plane, else a volume.
            let mut part = match (depth, line.plane) {
                (1.., None) => power_of_two(-ndim * depth),
                (1.., Some(_)) => power_of_two((1 - ndim) * depth),
                (_, None) => (hi[line.axis] - lo[line.axis]) as f64,
                (_, Some(_)) => 1.0,
            };
            if line.mass {
                part *= values[1][row];
            }
            missed |= !sums.add((lo[u], hi[u]), (lo[v], hi[v]), values[0][row], part);
        })?;
        if missed {
            return Err(Error::corrupt(format!(
                "the box of chunk {chunk} in the index does not hold its cells; restore the file \
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
            "there is no axis {axis}; there are: {known}"
        )))
    }

    /// Checks that a column exists and holds real numbers.
    pub(super) fn check_number(&self, name: &str) -> Result<()> {
        let dtype = self.dtype(name)?;
        if numbers::is_number(&dtype) {
            return Ok(());
        }
        Err(numbers::not_numeric(name, &dtype))
    }
}

/// What is summed along each line of sight.
struct Line {
    axis: usize,
    /// Only what this plane cuts: its place along the axis, in half lattice units.
    plane: Option<u64>,
    /// A second field weighs the first.
    mass: bool,
    /// The integral, not the mean.
    integral: bool,
}

impl Line {
    /// The other two dimensions, in order.
    fn across(&self) -> (usize, usize) {
        match self.axis {
            0 => (1, 2),
            1 => (0, 2),
            _ => (0, 1),
        }
    }
}

/// Part of an image: pixels `u.0..u.1` by `v.0..v.1`.
struct Sums {
    u: (u64, u64),
    v: (u64, u64),
    sums: Vec<f64>,
    weights: Vec<f64>,
}

impl Sums {
    /// Adds a value of some weight to a rectangle of pixels; `false` where it reaches out.
    fn add(&mut self, u: (u64, u64), v: (u64, u64), value: f64, weight: f64) -> bool {
        let inside = |(lo, hi): (u64, u64), all: (u64, u64)| all.0 <= lo && hi <= all.1;
        if !(inside(u, self.u) && inside(v, self.v)) {
            return false;
        }
        let width = (self.v.1 - self.v.0) as usize;
        let (first, len) = ((v.0 - self.v.0) as usize, (v.1 - v.0) as usize);
        for row in u.0..u.1 {
            let start = (row - self.u.0) as usize * width + first;
            let sums = self.sums[start..start + len].iter_mut();
            for (sum, all) in sums.zip(&mut self.weights[start..start + len]) {
                *sum += value * weight;
                *all += weight;
            }
        }
        true
    }

    /// Adds its part of the image's row `u`, whose first pixel is `first`.
    fn add_row(&self, u: u64, first: u64, sums: &mut [f64], weights: &mut [f64]) {
        if !(self.u.0..self.u.1).contains(&u) {
            return;
        }
        let width = (self.v.1 - self.v.0) as usize;
        let (from, to) = ((u - self.u.0) as usize * width, (self.v.0 - first) as usize);
        let add = |all: &mut [f64], part: &[f64]| {
            for (all, part) in all[to..to + width]
                .iter_mut()
                .zip(&part[from..from + width])
            {
                *all += part;
            }
        };
        add(sums, &self.sums);
        add(weights, &self.weights);
    }
}
