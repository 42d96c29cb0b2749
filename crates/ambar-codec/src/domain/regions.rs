//! Regions of values: cuboids that are predicted each on its own, from arrays and from blocks.

use crate::domain::bitmap::Bitmap;
use crate::domain::blocks::{self, Region};
use crate::domain::lattice::{self, Phases};
use crate::domain::tree::CellRegion;
use crate::element::Element;
use crate::error::{Invalid, Result};

/// How values lie: what is next to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// An array of 1 to 4 dimensions in C order: the last varies quickest.
    Array(&'a [usize]),
    /// Unit blocks of `side` values (z, y, x; 1 in dimensions that are not used) behind each other,
    /// each in C order. `origins` (z, y, x) are multiples of the side, sorted along the Morton curve
    /// with x quickest. Blocks that touch are predicted across their faces.
    Blocks {
        /// Values of a block in z, y, x.
        side: [usize; 3],
        /// The blocks' first values' indices in z, y, x.
        origins: &'a [[i64; 3]],
    },
    /// Leaf cells of a tree, of several levels, sorted along the Morton curve with x quickest. A cell has
    /// half the side of one of the level before. Values behind those of the cells lie in a row.
    Cells {
        /// Dimensions of the tree, 1 to 3.
        dimensions: usize,
        /// The cells' levels.
        levels: &'a [u8],
        /// The cells' indices on their levels in z, y, x, from 0 on; 0 in dimensions that are not used.
        origins: &'a [[i64; 3]],
    },
}

impl Layout<'_> {
    /// Whether values lie in planes behind each other.
    pub(crate) fn has_planes(&self) -> bool {
        match self {
            Self::Array(shape) => of_array(shape).is_ok_and(|([z, y, _], _)| z > 1 && y > 1),
            Self::Blocks {
                side: [z, y, _], ..
            } => *z > 1 && *y > 1,
            Self::Cells { .. } => false,
        }
    }

    /// Checks that there are as many values.
    pub(crate) fn check(&self, values: usize) -> Result<()> {
        match self {
            Self::Array(shape) => {
                let (inner, outer) = of_array(shape)?;
                if volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
                    return Err(Invalid(
                        "the product of the shape differs from the number of values",
                    ));
                }
            }
            Self::Blocks { side, origins } => {
                let cells = volume(*side).unwrap_or(0);
                if cells == 0 || cells.checked_mul(origins.len()) != Some(values) {
                    return Err(Invalid(
                        "the cells of the blocks differ in number from the values",
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
                    return Err(Invalid(
                        "expected an origin for each level, and at most as many cells as values",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Values of a region, z slowest, and which of them are there.
pub(crate) struct RegionBuffer<T> {
    pub shape: [usize; 3],
    pub values: Vec<T>,
    /// Which values are there; `None` for all.
    pub valid: Option<Bitmap>,
    /// How far what is decoded may be off where there is nobody's value; below 0 elsewhere. Empty where all
    /// values are somebody's.
    pub padding_tolerance: Vec<T>,
}

/// The regions of an array, without copying: their shape and number.
pub(crate) fn of_array(shape: &[usize]) -> Result<([usize; 3], usize)> {
    let (outer, inner) = match shape {
        [n] => (1, [1, 1, *n]),
        [a, b] => (1, [1, *a, *b]),
        [a, b, c] => (1, [*a, *b, *c]),
        [n, a, b, c] => (*n, [*a, *b, *c]),
        _ => return Err(Invalid("invalid shape; expected 1 to 4 dimensions")),
    };
    Ok((inner, outer))
}

/// Values of a cuboid, unless there are more than can be counted.
pub(crate) fn volume(shape: [usize; 3]) -> Option<usize> {
    volume_of(&shape)
}

/// Values of an array, unless there are more than can be counted.
pub(crate) fn volume_of(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
}

/// Copies a region's blocks into their dense places; says which places hold one.
pub(crate) fn gather<T: Element>(
    region: &Region,
    side: [usize; 3],
    values: &[T],
) -> RegionBuffer<T> {
    let shape: [usize; 3] = std::array::from_fn(|d| region.places[d] * side[d]);
    let cells: usize = shape.iter().product();
    let mut dense = vec![T::default(); cells];
    blocks::for_each_row(region, side, |from, [z, y, x], n| {
        let to = (z * shape[1] + y) * shape[2] + x;
        blocks::copy_row(&values[from..from + n], &mut dense[to..to + n]);
    });
    RegionBuffer {
        shape,
        values: dense,
        valid: present(region, side),
        padding_tolerance: Vec::new(),
    }
}

/// Which values of a region of blocks are in a block; `None` for all.
pub(crate) fn present(region: &Region, side: [usize; 3]) -> Option<Bitmap> {
    let mut valid = first_rows(region, side)?;
    valid.repeat([side[0], side[1]]);
    Some(valid)
}

/// The same, of the blocks' first rows alone.
pub(crate) fn first_rows(region: &Region, side: [usize; 3]) -> Option<Bitmap> {
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

/// Copies the values of a region's cells into their dense places; says which places hold one.
pub(crate) fn gather_cells<T: Element>(region: &CellRegion, values: &[T]) -> RegionBuffer<T> {
    let shape = region.shape();
    let mut dense = vec![T::default(); shape.iter().product()];
    region.for_each_cell(|row, [z, y, x]| {
        dense[(z * shape[1] + y) * shape[2] + x] = values[row];
    });
    RegionBuffer {
        shape,
        values: dense,
        valid: region.present(),
        padding_tolerance: Vec::new(),
    }
}

/// What a region's values are decoded into.
pub(crate) enum Target<'a> {
    /// An array of this shape.
    Array([usize; 3]),
    /// Blocks.
    Blocks {
        side: [usize; 3],
        /// Places for blocks, z, y, x.
        places: [usize; 3],
        /// The numbers of the blocks at these places, where there are any.
        numbers: Vec<Option<usize>>,
    },
    /// Cells.
    Cells(&'a CellRegion),
}

impl Target<'_> {
    /// The blocks of a region.
    pub(crate) fn of_region(region: &Region, side: [usize; 3]) -> Self {
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

    /// Calls `visit(place in the values, z, y and x in the region, length)` for all rows, in the
    /// order of the region, where they lie.
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

    /// Fills the values from the phases of the region's lattice.
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

    /// Fills the values of blocks, whose rows have twice `HALF` points.
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
                let [even, odd] = lattice::halves(phases, from, [z, y], nx * HALF);
                let pairs = even.as_chunks::<HALF>().0.iter().zip(odd.as_chunks().0);
                for (number, (even, odd)) in numbers.iter().zip(pairs) {
                    if let Some(number) = number {
                        let to = &mut out[number * sz * sy * 2 * HALF + row..][..2 * HALF];
                        lattice::by_turns(even, odd, to.as_chunks_mut::<2>().0);
                    }
                }
            }
        }
    }

    /// Where the value with an index in the region is, if there is one.
    pub(crate) fn place(&self, at: usize) -> Option<usize> {
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
