//! The origins of unit blocks, including the padding blocks of an array's last chunk.

use super::chunk_grid::ChunkGrid;

/// The origins of unit blocks, and of the padding blocks of the last chunk: consecutive, after all others on
/// the Morton curve.
pub(super) fn pad_origins(origins: &[[i64; 3]], grid: &ChunkGrid) -> Vec<[i64; 3]> {
    let chunk = grid
        .chunk_shape
        .first()
        .map_or(1, |blocks| *blocks as usize);
    let side = |d: usize| {
        let dimension = (grid.chunk_shape.len() + d)
            .checked_sub(3)
            .filter(|dimension| *dimension > 0);
        dimension.map_or(1, |dimension| grid.chunk_shape[dimension] as i64)
    };
    let farthest = origins
        .iter()
        .flat_map(|origin| (0..3).map(|d| origin[d] / side(d)))
        .max();
    // In z if blocks have a side in z, otherwise in y or x.
    let (outer, inner) = (3 - (grid.chunk_shape.len() - 1).min(3), 2);
    let after = (farthest.unwrap_or(0).max(0) as u64 + 1).next_power_of_two() as i64;
    let missing = origins.len().next_multiple_of(chunk) - origins.len();
    let padding = (0..missing as i64).map(|number| {
        let mut origin = [0; 3];
        origin[inner] += number * side(inner);
        origin[outer] += after * side(outer);
        origin
    });
    origins.iter().copied().chain(padding).collect()
}
