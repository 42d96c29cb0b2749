//! Unit blocks as one array: in a row along z, or as a cube.

use super::Scheme;
use crate::element::Element;

/// Places for `count` blocks in z, y and x: a row, or nearly a cube with as few places left over as
/// can be.
pub(super) fn places(scheme: Scheme, count: usize) -> [usize; 3] {
    if scheme != Scheme::InterpolationClustered || count < 8 {
        return [count, 1, 1];
    }
    let cube = (1..).find(|n| n * n * n >= count).unwrap_or(1);
    let mut best = [cube; 3];
    for x in cube.div_ceil(2)..=cube {
        for y in x..=2 * cube {
            let places = [count.div_ceil(x * y), y, x];
            let size = |places: [usize; 3]| places.iter().product::<usize>();
            let longest = |places: [usize; 3]| places.into_iter().max();
            if places[0] <= 2 * cube
                && (size(places), longest(places)) < (size(best), longest(best))
            {
                best = places;
            }
        }
    }
    best
}

/// Copies blocks to their places; places left over hold the last block again.
pub(super) fn gather<T: Element>(blocks: &[T], places: [usize; 3], side: usize) -> Vec<T> {
    let mut dense = vec![T::default(); places.iter().product::<usize>() * side * side * side];
    let last = (blocks.len() / (side * side * side)).saturating_sub(1);
    rows(places, side, |block, row, at| {
        let from = (block.min(last) * side * side + row) * side;
        if let Some(values) = blocks.get(from..from + side) {
            dense[at..at + side].copy_from_slice(values);
        }
    });
    dense
}

/// Copies blocks back.
pub(super) fn scatter<T: Element>(dense: &[T], places: [usize; 3], side: usize, blocks: &mut [T]) {
    rows(places, side, |block, row, at| {
        let to = (block * side * side + row) * side;
        if let Some(values) = blocks.get_mut(to..to + side) {
            values.copy_from_slice(&dense[at..at + side]);
        }
    });
}

/// Visits the rows: the block's number, the row's in it, and the index of its first value.
fn rows(places: [usize; 3], side: usize, mut visit: impl FnMut(usize, usize, usize)) {
    let [nz, ny, nx] = places;
    for z in 0..nz * side {
        for y in 0..ny * side {
            for x in 0..nx {
                let block = (z / side * ny + y / side) * nx + x;
                let row = z % side * side + y % side;
                visit(block, row, ((z * ny * side + y) * nx + x) * side);
            }
        }
    }
}
