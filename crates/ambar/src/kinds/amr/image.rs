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
        let coarse = (1..layer_count(&sums)).rev().fold(None, |coarser, shift| {
            let mut layer = Layer::new(self.pixels(u), self.pixels(v), shift);
            layer.fill(&sums, coarser.as_ref(), shift);
            Some(layer)
        });
        let width = cells[v] as usize;
        let rows = image.values_mut::<f64>().par_chunks_mut(width);
        rows.enumerate().for_each(|(row, values)| {
            let mut pixels = vec![[0.0; 2]; width];
            let (row, first) = (self.window.lo[u] + row as u64, self.window.lo[v]);
            sum_row(&sums, coarse.as_ref(), 0, (row, first), &mut pixels);
            for (value, [sum, weight]) in values.iter_mut().zip(pixels) {
                *value = match weight {
                    0.0 => f64::NAN,
                    _ if self.line.integral => sum * self.depth,
                    _ => sum / weight,
                };
            }
        });
        Ok(image)
    }

    /// The pixels in a dimension.
    fn pixels(&self, d: usize) -> (u64, u64) {
        (self.window.lo[d], self.window.hi[d])
    }
}

/// Part of an image: pixels `u.0..u.1` by `v.0..v.1`.
///
/// A value that counts in many pixels is added to one block of pixels. Blocks are distributed to their pixels when all
/// parts are complete.
pub(super) struct Sums {
    u: (u64, u64),
    v: (u64, u64),
    /// Sums over blocks of 1, 2, 4, ... pixels to the side.
    layers: Vec<Layer>,
}

impl Sums {
    fn new(u: (u64, u64), v: (u64, u64)) -> Result<Self> {
        let pixels = (u.1 - u.0).checked_mul(v.1 - v.0);
        if pixels.and_then(|n| usize::try_from(n).ok()).is_none() {
            return Err(Error::limit("the image does not fit in memory"));
        }
        Ok(Self {
            u,
            v,
            layers: Vec::new(),
        })
    }

    /// Adds a value with a weight to a rectangle of pixels. Returns false if the rectangle is not inside.
    pub fn add(&mut self, u: (u64, u64), v: (u64, u64), value: f64, weight: f64) -> bool {
        if !self.contains(u, v) {
            return false;
        }
        let layer = self.layer(0);
        for row in u.0..u.1 {
            let first = layer.place(row, v.0);
            let pixels = &mut layer.sums[first..first + (v.1 - v.0) as usize];
            for [sum, all] in pixels {
                *sum += value * weight;
                *all += weight;
            }
        }
        true
    }

    /// Adds a value with a weight to the pixels `u`, `v` of a block, the part of it in the window. The corner of a block is
    /// a multiple of its side `2^shift`. Returns false if the pixels are not inside.
    #[inline]
    pub fn add_block(
        &mut self,
        shift: u32,
        u: (u64, u64),
        v: (u64, u64),
        value: f64,
        weight: f64,
    ) -> bool {
        if !self.contains(u, v) {
            return false;
        }
        let layer = self.layer(shift);
        let place = layer.place(u.0 >> shift, v.0 >> shift);
        let [sum, all] = &mut layer.sums[place];
        *sum += value * weight;
        *all += weight;
        true
    }

    fn contains(&self, u: (u64, u64), v: (u64, u64)) -> bool {
        let inside = |(lo, hi): (u64, u64), all: (u64, u64)| all.0 <= lo && hi <= all.1;
        inside(u, self.u) && inside(v, self.v)
    }

    /// The sums over blocks with a side of `2^shift` pixels.
    fn layer(&mut self, shift: u32) -> &mut Layer {
        while self.layers.len() <= shift as usize {
            let next = Layer::new(self.u, self.v, self.layers.len() as u32);
            self.layers.push(next);
        }
        let layer = &mut self.layers[shift as usize];
        layer.allocate();
        layer
    }
}

/// The number of layers of all parts.
fn layer_count(parts: &[Sums]) -> u32 {
    let counts = parts.iter().map(|part| part.layers.len());
    counts.max().unwrap_or(0) as u32
}

/// Sums of values times weights, and of weights, over blocks of pixels: blocks `u.0..u.1` by `v.0..v.1`.
struct Layer {
    u: (u64, u64),
    v: (u64, u64),
    /// Empty without values.
    sums: Vec<[f64; 2]>,
}

impl Layer {
    /// Blocks with a side of `2^shift` pixels, which contain these pixels.
    fn new(u: (u64, u64), v: (u64, u64), shift: u32) -> Self {
        let blocks = |(lo, hi): (u64, u64)| (lo >> shift, hi.div_ceil(1 << shift));
        Self {
            u: blocks(u),
            v: blocks(v),
            sums: Vec::new(),
        }
    }

    fn width(&self) -> usize {
        (self.v.1 - self.v.0) as usize
    }

    fn allocate(&mut self) {
        if self.sums.is_empty() {
            self.sums = vec![[0.0; 2]; (self.u.1 - self.u.0) as usize * self.width()];
        }
    }

    /// The index of a block.
    fn place(&self, u: u64, v: u64) -> usize {
        (u - self.u.0) as usize * self.width() + (v - self.v.0) as usize
    }

    /// Sums these layers of all parts, and blocks of twice the side.
    fn fill(&mut self, parts: &[Sums], coarser: Option<&Self>, shift: u32) {
        self.allocate();
        let (width, first) = (self.width(), (self.u.0, self.v.0));
        let rows = self.sums.par_chunks_mut(width.max(1)).enumerate();
        rows.for_each(|(row, blocks)| {
            let corner = (first.0 + row as u64, first.1);
            sum_row(parts, coarser, shift, corner, blocks);
        });
    }
}

/// Sums a row of blocks, from the block `corner` on: the layers of all parts, and blocks of twice the side.
fn sum_row(
    parts: &[Sums],
    coarser: Option<&Layer>,
    shift: u32,
    corner: (u64, u64),
    blocks: &mut [[f64; 2]],
) {
    let (u, first) = corner;
    if let Some(coarser) = coarser {
        let start = coarser.place(u >> 1, coarser.v.0);
        for (v, block) in (first..).zip(blocks.iter_mut()) {
            *block = coarser.sums[start + ((v >> 1) - coarser.v.0) as usize];
        }
    }
    let layers = parts
        .iter()
        .filter_map(|part| part.layers.get(shift as usize));
    for layer in
        layers.filter(|layer| !layer.sums.is_empty() && (layer.u.0..layer.u.1).contains(&u))
    {
        let start = layer.place(u, layer.v.0);
        let own = &layer.sums[start..start + layer.width()];
        let blocks = &mut blocks[(layer.v.0 - first) as usize..];
        for (block, [sum, weight]) in blocks.iter_mut().zip(own) {
            block[0] += sum;
            block[1] += weight;
        }
    }
}
