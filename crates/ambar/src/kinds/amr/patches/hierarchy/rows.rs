//! Traversal of a region row by row, in several arrays in parallel.

use super::IndexBox;

/// Calls `visit` for each row of cells along x of `region`, which is in each of `frames`: with the
/// position of its first cell in arrays over these frames (x fastest), and its length.
pub(crate) fn rows<const N: usize>(
    region: &IndexBox,
    frames: [&IndexBox; N],
    mut visit: impl FnMut([usize; N], usize),
) {
    if region.is_empty() {
        return;
    }
    let shapes = frames.map(IndexBox::shape);
    let length = region.shape()[0];
    for z in region.lo[2]..region.hi[2] {
        for y in region.lo[1]..region.hi[1] {
            let starts = std::array::from_fn(|i| {
                let [width, height, _] = shapes[i];
                let inside = |at: i64, d: usize| (at - frames[i].lo[d]) as usize;
                (inside(z, 2) * height + inside(y, 1)) * width + inside(region.lo[0], 0)
            });
            visit(starts, length);
        }
    }
}

/// Copies the cells of `region`, of `size` bytes each, from an array over one box to one over another.
pub fn copy(
    region: &IndexBox,
    size: usize,
    (from, source): (&IndexBox, &[u8]),
    (to, target): (&IndexBox, &mut [u8]),
) {
    rows(region, [from, to], |[from, to], len| {
        let source = &source[from * size..(from + len) * size];
        target[to * size..(to + len) * size].copy_from_slice(source);
    });
}
