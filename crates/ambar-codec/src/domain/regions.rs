//! Layouts, and their regions: cuboids of values that are predicted independently of each other.

use crate::domain::bitmap::Bitmap;
use crate::domain::blocks::{self, BlockRegion};
use crate::domain::lattice::{self, Phases};
use crate::domain::padding::Padding;
use crate::domain::tree::CellRegion;
use crate::element::Element;
use crate::error::{Result, invalid};
use std::borrow::Cow;

/// The layout of values: which values are neighbours in space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// An array in C order: the last dimension varies fastest. Short last dimensions, such as 3 after longer ones, are the
    /// components of vectors or tensors, which are coded one component after another, as are last dimensions that do not predict
    /// each other. Of more than four dimensions, the slowest are merged.
    Array(&'a [usize]),
    /// An array of which only the first `held` values along each dimension count. The others are padding: their decoded values
    /// are arbitrary. Give them values between the least and the largest held one, near those next to them, such as the last
    /// value along each dimension: wavelets transform padding, and it counts in the least value of the stream.
    PaddedArray {
        /// The length of each dimension, padding included.
        shape: &'a [usize],
        /// The length of each dimension, without padding.
        held: &'a [usize],
    },
    /// Consecutive unit blocks, each in C order, sorted along the Morton curve with x fastest. Blocks that touch are
    /// predicted across their faces.
    Blocks {
        /// The number of values of a block in z, y, x; 1 in unused dimensions.
        side: [usize; 3],
        /// The indices of the first value of each block in z, y, x, which are multiples of the sides.
        origins: &'a [[i64; 3]],
    },
    /// Leaf cells of a tree, of several levels, sorted along the Morton curve with x fastest. A cell has half the side of
    /// a cell of the next coarser level. Values after those of the cells are a one-dimensional array.
    Cells {
        /// Dimensions of the tree, 1 to 3.
        dimensions: usize,
        /// The level of each cell.
        levels: &'a [u8],
        /// The indices of each cell on its level in z, y, x, at least 0; 0 in unused dimensions.
        origins: &'a [[i64; 3]],
    },
}

/// The shape of an array with separate dimensions, and of the part of it that is not padding.
#[derive(Default)]
pub(crate) struct SeparateShape {
    shape: Vec<usize>,
    held: Option<Vec<usize>>,
}

impl<'a> Layout<'a> {
    /// The layout of an array.
    pub(crate) fn array(shape: &'a [usize], held: Option<&'a [usize]>) -> Self {
        match held {
            Some(held) => Self::PaddedArray { shape, held },
            None => Self::Array(shape),
        }
    }

    /// Whether a value is padding, by its index.
    pub(crate) fn is_padding(&self, mut number: usize) -> bool {
        let Self::PaddedArray { shape, held } = self else {
            return false;
        };
        // The last index first.
        !shape.iter().zip(*held).rev().all(|(n, held)| {
            let index = number % n;
            number /= n;
            index < *held
        })
    }

    /// The shape of an array, and of the part of it that is not padding; `None` for other layouts.
    pub(crate) fn as_array(&self) -> Option<(&'a [usize], Option<&'a [usize]>)> {
        match self {
            Self::Array(shape) => Some((shape, None)),
            Self::PaddedArray { shape, held } => Some((shape, Some(held))),
            Self::Blocks { .. } | Self::Cells { .. } => None,
        }
    }

    /// Whether the layout has more than one plane, and planes have more than one row.
    pub(crate) fn has_planes(&self) -> bool {
        match self {
            Self::Array(shape) | Self::PaddedArray { shape, .. } => {
                array_regions(shape).is_ok_and(|([z, y, _], _)| z > 1 && y > 1)
            }
            Self::Blocks {
                side: [z, y, _], ..
            } => *z > 1 && *y > 1,
            Self::Cells { .. } => false,
        }
    }

    /// The layout of an array with more regions, of which the first `count` dimensions have the length 1.
    pub(crate) fn with_separate_dimensions<'b>(
        &'b self,
        count: usize,
        separate: &'b mut SeparateShape,
    ) -> Layout<'b> {
        let Some((shape, held)) = self.as_array() else {
            return self.clone();
        };
        separate.shape = separate_dimensions(shape, count);
        separate.held = held
            .filter(|held| is_box(&shape[..outer_dimensions(shape, count)], held))
            .map(|held| separate_dimensions(held, count));
        Layout::array(&separate.shape, separate.held.as_deref())
    }

    /// Checks that the layout has this number of values.
    pub(crate) fn check(&self, values: usize) -> Result<()> {
        match self {
            Self::Array(shape) | Self::PaddedArray { shape, .. } => {
                let (inner, outer) = array_regions(shape)?;
                if volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
                    return Err(invalid!(
                        "found {values} values for an array of shape {shape:?}"
                    ));
                }
            }
            Self::Blocks { side, origins } => {
                let cells = volume(*side).unwrap_or(0);
                if cells == 0 || cells.checked_mul(origins.len()) != Some(values) {
                    return Err(invalid!(
                        "found {values} values for {} blocks with the sides {side:?}",
                        origins.len()
                    ));
                }
            }
            Self::Cells {
                levels, origins, ..
            } => {
                if levels.len() != origins.len()
                    || levels.len() > values
                    || u32::try_from(values).is_err()
                {
                    return Err(invalid!(
                        "found {values} values for cells with {} levels and {} origins; expected an origin for each \
                         level, and a value for each cell, below 2^32",
                        levels.len(),
                        origins.len()
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The values of a region, z slowest.
pub(crate) struct RegionBuffer<'a, T: Clone> {
    pub shape: [usize; 3],
    pub values: Cow<'a, [T]>,
    /// The present points; `None` for all.
    pub valid: Option<Bitmap>,
    /// The padding points, if there are any.
    pub padding: Option<Padding<T>>,
}

/// The shape of the regions of an array, and their number.
pub(crate) fn array_regions(shape: &[usize]) -> Result<([usize; 3], usize)> {
    let (outer, inner) = match shape {
        [n] => (1, [1, 1, *n]),
        [a, b] => (1, [1, *a, *b]),
        [a, b, c] => (1, [*a, *b, *c]),
        [n, a, b, c] => (*n, [*a, *b, *c]),
        _ => {
            return Err(invalid!(
                "the shape {shape:?} has {} dimensions; expected 1 to 4",
                shape.len()
            ));
        }
    };
    Ok((inner, outer))
}

/// Whether the first values along each of some slow dimensions, of which `held` begins with the numbers, are consecutive and the
/// first if these dimensions are merged.
pub(crate) fn is_box(outer: &[usize], held: &[usize]) -> bool {
    let mut pairs = outer.iter().zip(held).skip_while(|(_, held)| **held == 1);
    pairs.next();
    pairs.all(|(n, held)| n == held)
}

/// How many slow dimensions are merged if `count` dimensions of a region are separate.
fn outer_dimensions(shape: &[usize], count: usize) -> usize {
    match count {
        0 => 0,
        _ => shape.len().saturating_sub(3 - count.min(2)),
    }
}

/// The shape of the same values with more regions, of which the first `count` dimensions have the length 1.
pub(crate) fn separate_dimensions(shape: &[usize], count: usize) -> Vec<usize> {
    let outer = outer_dimensions(shape, count);
    if outer == 0 {
        return shape.to_vec();
    }
    let (outer, inner) = shape.split_at(outer);
    let mut separated = vec![outer.iter().product()];
    separated.resize(1 + count, 1);
    separated.extend(inner);
    separated
}

/// Marks the padding points of the regions of an array, of which the first `held` values along each dimension count. Masked points
/// are not padding.
///
/// # Errors
/// `Invalid` if there are not 1 to 4 dimensions.
pub(crate) fn mark_padding<T: Element>(
    held: &[usize],
    regions: &mut [RegionBuffer<'_, T>],
) -> Result<()> {
    let (inner, outer) = array_regions(held)?;
    for (number, region) in regions.iter_mut().enumerate() {
        let held = (number < outer).then_some(inner);
        if held != Some(region.shape) {
            let present = region.valid.as_ref();
            let padding = Padding::after(&region.values, region.shape, held, present);
            region.padding = Some(padding);
        }
    }
    Ok(())
}

/// The number of points of a cuboid; `None` if it overflows.
pub(crate) fn volume(shape: [usize; 3]) -> Option<usize> {
    volume_of(&shape)
}

/// The number of values of an array; `None` if it overflows.
pub(crate) fn volume_of(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
}

impl<'a, T: Element> RegionBuffer<'a, T> {
    /// All values of a region without holes.
    pub(crate) fn dense(shape: [usize; 3], values: &'a [T]) -> Self {
        Self {
            shape,
            values: Cow::Borrowed(values),
            valid: None,
            padding: None,
        }
    }
}

/// Copies the blocks of a region into a dense buffer, whose memory is reused. Absent points have any value.
pub(crate) fn gather<T: Element>(
    region: &BlockRegion,
    side: [usize; 3],
    values: &[T],
    mut dense: Vec<T>,
) -> RegionBuffer<'static, T> {
    let shape: [usize; 3] = std::array::from_fn(|d| region.places[d] * side[d]);
    let cells: usize = shape.iter().product();
    dense.resize(cells, T::default());
    blocks::for_each_row(region, side, |from, [z, y, x], n| {
        let to = (z * shape[1] + y) * shape[2] + x;
        blocks::copy_row(&values[from..from + n], &mut dense[to..to + n]);
    });
    RegionBuffer {
        shape,
        values: Cow::Owned(dense),
        valid: present_points(region, side),
        padding: None,
    }
}

/// The points of a region that are in a block; `None` for all.
pub(crate) fn present_points(region: &BlockRegion, side: [usize; 3]) -> Option<Bitmap> {
    let mut valid = present_first_rows(region, side)?;
    valid.repeat([side[0], side[1]]);
    Some(valid)
}

/// As [`present_points`], for the first row of each block only.
pub(crate) fn present_first_rows(region: &BlockRegion, side: [usize; 3]) -> Option<Bitmap> {
    if region.blocks.len() == region.places.iter().product::<usize>() {
        return None;
    }
    let mut valid = Bitmap::new(std::array::from_fn(|d| region.places[d] * side[d]));
    for (_, place) in &region.blocks {
        let [z, y, x] = std::array::from_fn(|d| place[d] * side[d]);
        valid.set([z, y], x, x + side[2]);
    }
    Some(valid)
}

/// Copies the values of the cells of a region into a dense buffer.
pub(crate) fn gather_cells<T: Element>(
    region: &CellRegion,
    values: &[T],
) -> RegionBuffer<'static, T> {
    let shape = region.shape();
    let mut dense = vec![T::default(); shape.iter().product()];
    region.for_each_cell(|row, [z, y, x]| {
        dense[(z * shape[1] + y) * shape[2] + x] = values[row];
    });
    RegionBuffer {
        shape,
        values: Cow::Owned(dense),
        valid: region.present(),
        padding: None,
    }
}

/// The part of the output that a region is decoded into.
pub(crate) enum RegionTarget<'a> {
    /// An array of this shape.
    Array([usize; 3]),
    /// Blocks.
    Blocks {
        side: [usize; 3],
        /// The number of block positions in z, y, x.
        places: [usize; 3],
        /// The index of the block at each position, if it has one.
        numbers: Vec<Option<usize>>,
    },
    /// Cells.
    Cells(&'a CellRegion),
}

impl RegionTarget<'_> {
    /// The target of a region of blocks.
    pub(crate) fn of_region(region: &BlockRegion, side: [usize; 3]) -> Self {
        let [nz, ny, nx] = region.places;
        let mut numbers = vec![None; nz * ny * nx];
        for (number, [z, y, x]) in &region.blocks {
            numbers[(z * ny + y) * nx + x] = Some(*number);
        }
        Self::Blocks {
            side,
            places: region.places,
            numbers,
        }
    }

    /// Calls `visit(index in the output, z, y and x in the region, length)` for all rows, in the order of the region.
    #[inline(always)]
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(usize, [usize; 3], usize)) {
        match self {
            Self::Array([nz, ny, nx]) => {
                for z in 0..*nz {
                    for y in 0..*ny {
                        visit((z * ny + y) * nx, [z, y, 0], *nx);
                    }
                }
            }
            Self::Blocks {
                side: [sz, sy, sx],
                places: [nz, ny, nx],
                numbers,
            } => {
                for z in 0..nz * sz {
                    for y in 0..ny * sy {
                        let blocks = &numbers[(z / sz * ny + y / sy) * nx..][..*nx];
                        let row = (z % sz * sy + y % sy) * sx;
                        for (x, number) in blocks.iter().enumerate() {
                            if let Some(number) = number {
                                visit(number * sz * sy * sx + row, [z, y, x * sx], *sx);
                            }
                        }
                    }
                }
            }
            Self::Cells(region) => region.for_each_cell(|row, at| visit(row, at, 1)),
        }
    }

    /// Copies the phases of the finest lattice to the output.
    pub(crate) fn fill<T: Element>(&self, phases: &Phases, from: &[Vec<T>; 8], out: &mut [T]) {
        let from = from.each_ref().map(|values| &values[..]);
        match self {
            Self::Blocks {
                side: [_, _, 4], ..
            } => self.fill_blocks::<T, 2>(phases, &from, out),
            Self::Blocks {
                side: [_, _, 8], ..
            } => self.fill_blocks::<T, 4>(phases, &from, out),
            Self::Blocks {
                side: [_, _, 16], ..
            } => self.fill_blocks::<T, 8>(phases, &from, out),
            Self::Cells(region) => region.fill(phases, &from, out),
            _ => self.for_each_row(
                #[inline(always)]
                |to, [z, y, x], n| {
                    lattice::interleave_row(phases, &from, [z, y, x], &mut out[to..to + n]);
                },
            ),
        }
    }

    /// As [`fill`](Self::fill), for blocks whose rows have twice `HALF` points.
    fn fill_blocks<T: Element, const HALF: usize>(
        &self,
        phases: &Phases,
        from: &[&[T]; 8],
        out: &mut [T],
    ) {
        let Self::Blocks {
            side: [sz, sy, _],
            places: [nz, ny, nx],
            numbers,
        } = self
        else {
            return;
        };
        for z in 0..nz * sz {
            for y in 0..ny * sy {
                let row = (z % sz * sy + y % sy) * 2 * HALF;
                let numbers = &numbers[(z / sz * ny + y / sy) * nx..][..*nx];
                let [even, odd] = lattice::row_halves(phases, from, [z, y], nx * HALF);
                let pairs = even.as_chunks::<HALF>().0.iter().zip(odd.as_chunks().0);
                for (number, (even, odd)) in numbers.iter().zip(pairs) {
                    if let Some(number) = number {
                        let to = &mut out[number * sz * sy * 2 * HALF + row..][..2 * HALF];
                        lattice::interleave_pairs(even, odd, to.as_chunks_mut::<2>().0);
                    }
                }
            }
        }
    }

    /// The index in the output of the value with an index in the region; `None` for holes.
    pub(crate) fn output_index(&self, at: usize) -> Option<usize> {
        match self {
            Self::Array(_) => Some(at),
            Self::Blocks {
                side: [sz, sy, sx],
                places: [_, ny, nx],
                numbers,
            } => {
                let (row, x) = (at / (nx * sx), at % (nx * sx));
                let (z, y) = (row / (ny * sy), row % (ny * sy));
                let number = numbers[(z / sz * ny + y / sy) * nx + x / sx]?;
                Some(((number * sz + z % sz) * sy + y % sy) * sx + x % sx)
            }
            Self::Cells(region) => region.row_at(at),
        }
    }
}
