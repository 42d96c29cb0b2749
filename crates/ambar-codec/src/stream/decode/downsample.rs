//! Lower resolution: every `2^level`th value of each dimension.

use crate::error::{Error, Result, invalid};
use crate::stream::decode::head::{ParsedLayout, ParsedStream};

impl ParsedStream<'_> {
    /// The number of values at every `2^level`th index of each dimension.
    pub(super) fn downsampled_count(&self, level: u32) -> Result<usize> {
        let coarse = |n: usize| coarse_length(n, level);
        match &self.layout {
            ParsedLayout::Array { inner, outer } => {
                Ok(inner.map(coarse).iter().product::<usize>() * outer)
            }
            ParsedLayout::Blocks { side, count, .. } => {
                let even = |n: usize| n == 1 || n == coarse(n) << level.min(usize::BITS - 1);
                if !side.iter().all(|n| even(*n)) {
                    return Err(uneven_sides(side, level));
                }
                Ok(side.map(coarse).iter().product::<usize>() * count)
            }
            ParsedLayout::Cells(_) => Err(invalid!(
                "streams of cells have no downsampled values; decode the whole stream"
            )),
        }
    }
}

/// The error of blocks that have no lattice of a level.
pub(super) fn uneven_sides(side: &[usize; 3], level: u32) -> Error {
    invalid!(
        "the blocks have the sides {side:?}; expected multiples of 2^{level}; decode a finer level"
    )
}

/// The number of points at every `2^level`th of `n` indices.
pub(super) fn coarse_length(n: usize, level: u32) -> usize {
    match level {
        0 => n,
        _ => (n.saturating_sub(1)).checked_shr(level).unwrap_or(0) + usize::from(n > 0),
    }
}

/// `n` times `2^bits`; 0 for 0.
pub(super) fn scaled(n: usize, bits: usize) -> usize {
    n.checked_shl(bits as u32).unwrap_or(0)
}

/// The index among every `2^level`th value of a region of this shape, if `at` is one of these.
pub(super) fn downsampled_index(at: usize, [_, ny, nx]: [usize; 3], level: u32) -> Option<usize> {
    if level == 0 {
        return Some(at);
    }
    let place = [at / nx / ny, at / nx % ny, at % nx];
    let [z, y, x] = place.map(|n| n.checked_shr(level).unwrap_or(0));
    let is_coarse = [z, y, x].map(|n| scaled(n, level as usize)) == place;
    let [ny, nx] = [ny, nx].map(|n| coarse_length(n, level));
    is_coarse.then_some((z * ny + y) * nx + x)
}
