//! Who holds what of arrays of one shape.

#![allow(non_camel_case_types)] // the names are C's

use std::sync::Arc;

use ambar::Result;
use ambar::array::Region;
use ambar::ranks::Decomposition;

use super::arguments::{Out, ambar_bytes, dimensions, list};
use super::status::guard;

/// Who holds which part of arrays of one shape; the same on all ranks. Nothing changes it: threads may
/// share it.
pub struct ambar_blocks(pub(super) Arc<Decomposition>);

/// One rank's blocks of arrays of `shape` as bytes, to be gathered from all ranks. There are `count` blocks,
/// and of each `ndim` numbers at `starts` and at `lengths`; a rank may have none.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_blocks_make(
    ndim: i32,
    shape: *const u64,
    count: i32,
    starts: *const u64,
    lengths: *const u64,
    own: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let own = Out::new(own, "the place of the blocks")?;
        let ndim = dimensions(ndim)?;
        let count = usize::try_from(count)
            .map_err(|_| ambar::Error::invalid(format!("{count} blocks; expected 0 or more")))?;
        // SAFETY: the caller says so, here and below.
        let shape = unsafe { list(shape, ndim, "the shape") }?;
        // SAFETY: as above.
        let starts = unsafe { list(starts, count * ndim, "the starts") }?;
        // SAFETY: as above.
        let lengths = unsafe { list(lengths, count * ndim, "the lengths") }?;
        let blocks: Vec<Region> = (0..count)
            .map(|block| region(starts, lengths, block * ndim..(block + 1) * ndim))
            .collect();
        let bytes = Decomposition::encode(shape, &blocks)?;
        // SAFETY: as above.
        unsafe { own.set(bytes.into()) };
        Ok(())
    })
}

fn region(starts: &[u64], lengths: &[u64], place: std::ops::Range<usize>) -> Region {
    Region {
        start: starts[place.clone()].to_vec(),
        shape: lengths[place].to_vec(),
    }
}

/// Puts together what all ranks have made, in the order of the ranks.
///
/// # Safety
/// `parts` and `lens` point to one number of bytes for each of `ranks`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_blocks_gather(
    ranks: u32,
    parts: *const *const u8,
    lens: *const usize,
    blocks: *mut *mut ambar_blocks,
) -> i32 {
    guard(|| {
        let blocks = Out::new(blocks, "the place of the blocks")?;
        // SAFETY: the caller says so, here and below.
        let parts = unsafe { byte_lists(ranks, parts, lens) }?;
        let made = ambar_blocks(Arc::new(Decomposition::gather(&parts)?));
        // SAFETY: as above.
        unsafe { blocks.hand_over(made) };
        Ok(())
    })
}

/// One list of bytes for each rank.
///
/// # Safety
/// As the function above.
pub(super) unsafe fn byte_lists<'a>(
    ranks: u32,
    parts: *const *const u8,
    lens: *const usize,
) -> Result<Vec<&'a [u8]>> {
    // SAFETY: the caller says so, here and below.
    let parts = unsafe { list(parts, ranks as usize, "the list of parts") }?;
    // SAFETY: as above.
    let lens = unsafe { list(lens, ranks as usize, "the list of lengths") }?;
    parts
        .iter()
        .zip(lens)
        // SAFETY: as above.
        .map(|(part, len)| unsafe { list(*part, *len, "a part") })
        .collect()
}

/// Frees what `ambar_blocks_gather` has made; null is nothing.
///
/// # Safety
/// It is null or from there, and freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_blocks_free(blocks: *mut ambar_blocks) {
    if !blocks.is_null() {
        // SAFETY: `ambar_blocks_gather` has made this box, and the caller frees it once.
        drop(unsafe { Box::from_raw(blocks) });
    }
}
