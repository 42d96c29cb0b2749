//! Where unit blocks lie, those included that fill an array's last chunk.

use super::layout::Layout;

/// The origins of unit blocks, and of those that fill the last chunk up: behind all others on the
/// Morton curve, in a row.
pub(super) fn padded(origins: &[[i64; 3]], layout: &Layout) -> Vec<[i64; 3]> {
    let chunk = layout
        .chunk_shape
        .first()
        .map_or(1, |blocks| *blocks as usize);
    let side = |d: usize| {
        let dimension = (layout.chunk_shape.len() + d)
            .checked_sub(3)
            .filter(|place| *place > 0);
        dimension.map_or(1, |place| layout.chunk_shape[place] as i64)
    };
    let farthest = origins
        .iter()
        .flat_map(|origin| (0..3).map(|d| origin[d] / side(d)))
        .max();
    // In z where blocks have a side in z, else in y or x.
    let (outer, inner) = (3 - (layout.chunk_shape.len() - 1).min(3), 2);
    let behind = (farthest.unwrap_or(0).max(0) as u64 + 1).next_power_of_two() as i64;
    let missing = origins.len().next_multiple_of(chunk) - origins.len();
    let more = (0..missing as i64).map(|number| {
        let mut origin = [0; 3];
        origin[inner] += number * side(inner);
        origin[outer] += behind * side(outer);
        origin
    });
    origins.iter().copied().chain(more).collect()
}
