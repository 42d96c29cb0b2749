//! Images: sums of values along lines of sight through a window, in parallel.

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::Window;
use crate::kinds::computed::ComputedColumns;
use crate::memory::Column;

/// Number of groups of chunks with separate sums. It is constant: results do not depend on threads.
const GROUPS: usize = 32;

/// Maximum memory for the images of all groups; larger images use fewer groups.
const IMAGES: usize = 1 << 30;

/// The quantity that a projection computes along each line of sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight<'a> {
    /// The integral of the field over the length, in code length.
    Sum,
    /// The mean by volume.
    Volume,
    /// The mean by this field times the volume; `density` for a mean by mass.
    Field(&'a str),
}

impl<'a> Weight<'a> {
    /// The field, if it is one.
    pub(super) fn field(self) -> Option<&'a str> {
        match self {
            Self::Field(name) => Some(name),
            _ => None,
        }
    }
}

/// The columns of an image: its field, and the weight if it is a field.
pub(super) struct ImageColumns<'a> {
    pub names: &'a [&'a str],
    pub computed: &'a ComputedColumns,
}

/// The sum along each line of sight.
pub(super) struct Line {
    pub axis: usize,
    /// The position of a plane along the axis, in units of the layout: only cells in the plane count.
    pub plane: Option<u64>,
    /// A second field is the weight of the first.
    pub mass: bool,
    /// True for the integral, false for the mean.
    pub integral: bool,
}

impl Line {
    /// Lines along `axis` through the domain.
    pub fn through(axis: usize, weight: Weight<'_>) -> Self {
        Self {
            axis,
            plane: None,
            mass: matches!(weight, Weight::Field(_)),
            integral: weight == Weight::Sum,
        }
    }

    /// Lines across a plane, only in the plane.
    pub fn in_plane(axis: usize, plane: u64) -> Self {
        Self {
            axis,
            plane: Some(plane),
            mass: false,
            integral: false,
        }
    }

    /// The other two dimensions, in order.
    pub fn across(&self) -> (usize, usize) {
        match self.axis {
            0 => (1, 2),
            1 => (0, 2),
            _ => (0, 1),
        }
    }
}

/// The geometry of an image: the cells of the window across the lines of sight.
pub(super) struct Canvas<'a> {
    pub line: &'a Line,
    pub window: &'a Window,
    /// Length of a window cell along the axis, code length.
    pub depth: f64,
}

impl Canvas<'_> {
    /// Computes the image of `chunks`: float64, in C order, NaN for pixels without cells. `reach`
    /// returns the window cells in a dimension that some chunks overlap, `add` adds a chunk.
    pub fn sum<C: Sync>(
        &self,
        chunks: &[C],
        reach: impl Fn(&[C], usize) -> Result<(u64, u64)> + Sync,
        add: impl Fn(&C, &mut Sums) -> Result<()> + Sync,
    ) -> Result<Column> {
        let (u, v) = self.line.across();
        let cells = self.window.cells();
        let mut image = Column::allocate(&[DataType::Float64], (cells[u] * cells[v]) as usize)?;
        let mut image = image
            .pop()
            .ok_or_else(|| Error::limit("cannot allocate memory for an image"))?;
        let most = (IMAGES / (2 * image.bytes().len()).max(1)).clamp(4, GROUPS);
        let sums: Vec<Sums> = chunks
            .par_chunks(chunks.len().div_ceil(most).max(1))
            .with_max_len(1)
            .map(|chunks| {
                let mut sums = Sums::new(reach(chunks, u)?, reach(chunks, v)?)?;
                for chunk in chunks {
                    add(chunk, &mut sums)?;
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        let width = cells[v] as usize;
        let rows = image.values_mut::<f64>().par_chunks_mut(width);
        rows.enumerate().for_each(|(row, values)| {
            values.fill(0.0);
            let mut weights = vec![0.0; width];
            let row = self.window.lo[u] + row as u64;
            for part in &sums {
                part.add_row(row, self.window.lo[v], values, &mut weights);
            }
            for (value, weight) in values.iter_mut().zip(weights) {
                *value = match weight {
                    0.0 => f64::NAN,
                    _ if self.line.integral => *value * self.depth,
                    _ => *value / weight,
                };
            }
        });
        Ok(image)
    }
}

/// Part of an image: pixels `u.0..u.1` by `v.0..v.1`.
pub(super) struct Sums {
    u: (u64, u64),
    v: (u64, u64),
    sums: Vec<f64>,
    weights: Vec<f64>,
}

impl Sums {
    fn new(u: (u64, u64), v: (u64, u64)) -> Result<Self> {
        let cells = (u.1 - u.0).checked_mul(v.1 - v.0);
        let cells = cells.and_then(|n| usize::try_from(n).ok());
        let cells = cells.ok_or_else(|| Error::limit("the image does not fit in memory"))?;
        Ok(Self {
            u,
            v,
            sums: vec![0.0; cells],
            weights: vec![0.0; cells],
        })
    }

    /// Adds a value with a weight to a rectangle of pixels. Returns false if the rectangle is not inside.
    pub fn add(&mut self, u: (u64, u64), v: (u64, u64), value: f64, weight: f64) -> bool {
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

    /// Adds its part of row `u` of the image, whose first pixel is `first`.
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
