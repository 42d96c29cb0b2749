//! Unit blocks arranged as one array: in a row along z, or as a cube.

use crate::schemes::Scheme;
use crate::value::Value;

/// The number of block positions along z, y and x for `count` blocks: a row, or nearly a cube with as
/// few unused positions as possible.
pub(crate) fn grid_for(scheme: Scheme, count: usize) -> [usize; 3] {
    if scheme != Scheme::InterpolationClustered || count < 8 {
        return [count, 1, 1];
    }
    let cube = (1..).find(|n| n * n * n >= count).unwrap_or(1);
    let mut best = [cube; 3];
    for x in cube.div_ceil(2)..=cube {
        for y in x..=2 * cube {
            let grid = [count.div_ceil(x * y), y, x];
            let size = |grid: [usize; 3]| grid.iter().product::<usize>();
            let longest = |grid: [usize; 3]| grid.into_iter().max();
            if grid[0] <= 2 * cube && (size(grid), longest(grid)) < (size(best), longest(best)) {
                best = grid;
            }
        }
    }
    best
}

/// Copies blocks to their positions; unused positions repeat the last block.
pub(crate) fn gather<T: Value>(blocks: &[T], grid: [usize; 3], side: usize) -> Vec<T> {
    let mut dense = vec![T::default(); grid.iter().product::<usize>() * side * side * side];
    let last = (blocks.len() / (side * side * side)).saturating_sub(1);
    rows(grid, side, |block, row, at| {
        let from = (block.min(last) * side * side + row) * side;
        if let Some(values) = blocks.get(from..from + side) {
            dense[at..at + side].copy_from_slice(values);
        }
    });
    dense
}

/// Copies blocks back.
pub(crate) fn scatter<T: Value>(dense: &[T], grid: [usize; 3], side: usize, blocks: &mut [T]) {
    rows(grid, side, |block, row, at| {
        let to = (block * side * side + row) * side;
        if let Some(values) = blocks.get_mut(to..to + side) {
            values.copy_from_slice(&dense[at..at + side]);
        }
    });
}

/// Visits the rows: the block's number, the row's in it, and the index of its first value.
fn rows(grid: [usize; 3], side: usize, mut visit: impl FnMut(usize, usize, usize)) {
    let [nz, ny, nx] = grid;
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
