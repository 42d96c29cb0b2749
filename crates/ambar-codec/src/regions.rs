//! Regions of values: cuboids that are predicted each on its own, from arrays and from blocks.

use crate::bitmap::Bitmap;
use crate::blocks::{self, Region};
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
}

impl Layout<'_> {
    /// Checks that there are as many values, and that the error bound is one.
    pub(crate) fn check(&self, values: usize, bound: f64) -> Result<()> {
        if !(bound >= 0.0 && bound.is_finite()) {
            return Err(Invalid("an error bound is a finite number from 0 on"));
        }
        match self {
            Self::Array(shape) => {
                let (inner, outer) = of_array(shape)?;
                if volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
                    return Err(Invalid("the shape holds another number of values"));
                }
            }
            Self::Blocks { side, origins } => {
                let cells = volume(*side).unwrap_or(0);
                if cells == 0 || cells.checked_mul(origins.len()) != Some(values) {
                    return Err(Invalid("the blocks hold another number of values"));
                }
            }
        }
        Ok(())
    }
}

/// Values of a region, z slowest, and which of them are there.
pub(crate) struct Dense<T> {
    pub shape: [usize; 3],
    pub values: Vec<T>,
    /// Which values are there; `None` for all.
    pub valid: Option<Bitmap>,
}

/// The regions of an array, without copying: their shape and number.
pub(crate) fn of_array(shape: &[usize]) -> Result<([usize; 3], usize)> {
    let (outer, inner) = match shape {
        [n] => (1, [1, 1, *n]),
        [a, b] => (1, [1, *a, *b]),
        [a, b, c] => (1, [*a, *b, *c]),
        [n, a, b, c] => (*n, [*a, *b, *c]),
        _ => return Err(Invalid("arrays have 1 to 4 dimensions")),
    };
    Ok((inner, outer))
}

/// Values of a cuboid, unless there are more than can be counted.
pub(crate) fn volume(shape: [usize; 3]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
}

/// Copies a region's blocks into their dense places; says which places hold one.
pub(crate) fn gather<T: Element>(region: &Region, side: [usize; 3], values: &[T]) -> Dense<T> {
    let shape = std::array::from_fn(|d| region.places[d] * side[d]);
    let cells: usize = shape.iter().product();
    let mut dense = vec![T::default(); cells];
    blocks::for_each_row(region, side, |from, to, n| {
        blocks::copy_row(&values[from..from + n], &mut dense[to..to + n]);
    });
    Dense {
        shape,
        values: dense,
        valid: present(region, side),
    }
}

/// Copies a region's dense values back to its blocks.
pub(crate) fn scatter<T: Element>(
    region: &Region,
    side: [usize; 3],
    dense: &[T],
    values: &mut [T],
) {
    blocks::for_each_row(region, side, |to, from, n| {
        blocks::copy_row(&dense[from..from + n], &mut values[to..to + n]);
    });
}

/// Which values of a region of blocks are in a block; `None` for all.
pub(crate) fn present(region: &Region, side: [usize; 3]) -> Option<Bitmap> {
    if region.blocks.len() == region.places.iter().product::<usize>() {
        return None;
    }
    let mut valid = Bitmap::new(std::array::from_fn(|d| region.places[d] * side[d]));
    for (_, place) in &region.blocks {
        let [z, y, x] = std::array::from_fn(|d| place[d] * side[d]);
        for z in z..z + side[0] {
            for y in y..y + side[1] {
                valid.set([z, y], x, x + side[2]);
            }
        }
    }
    Some(valid)
}
