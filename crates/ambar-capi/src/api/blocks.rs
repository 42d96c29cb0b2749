//! Decompositions of arrays: the blocks that each rank owns.

#![allow(non_camel_case_types)] // names of the C API

use std::sync::Arc;

use ambar::Result;
use ambar::array::Region;
use ambar::ranks::Decomposition;

use super::arguments::{ambar_bytes, dimensions, from_c};
use super::status::guard;

/// The decomposition of arrays of one shape into the blocks of all ranks, equal on all ranks. It is immutable, so threads may
/// share it.
pub struct ambar_blocks(pub(super) Arc<Decomposition>);

/// Encodes one rank's `count` blocks of arrays of `shape` as bytes, which the program gathers from all ranks. `starts` and
/// `lengths` have `ndim` numbers for each block. A rank may have no blocks.
///
/// # Safety
/// Pointers follow the contract of the API.
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
        from_c!(own = out(own, "the place of the blocks"));
        let ndim = dimensions(ndim)?;
        let count = usize::try_from(count)
            .map_err(|_| ambar::Error::invalid(format!("negative number of blocks: {count}")))?;
        from_c!(shape = list(shape, ndim, "the shape"));
        from_c!(starts = list(starts, count * ndim, "the starts"));
        from_c!(lengths = list(lengths, count * ndim, "the lengths"));
        let blocks: Vec<Region> = (0..count)
            .map(|block| region(starts, lengths, block * ndim..(block + 1) * ndim))
            .collect();
        let bytes = Decomposition::encode(shape, &blocks)?;
        own.set(bytes.into());
        Ok(())
    })
}

fn region(starts: &[u64], lengths: &[u64], range: std::ops::Range<usize>) -> Region {
    Region {
        start: starts[range.clone()].to_vec(),
        shape: lengths[range].to_vec(),
    }
}

/// Combines the bytes of `ambar_blocks_make` of all ranks, in rank order, to a decomposition. Release it with
/// `ambar_blocks_free`.
///
/// # Safety
/// `parts` and `lens` have pointer and length of the bytes of each of `ranks` ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_blocks_gather(
    ranks: u32,
    parts: *const *const u8,
    lens: *const usize,
    blocks: *mut *mut ambar_blocks,
) -> i32 {
    guard(|| {
        from_c!(blocks = out(blocks, "the place of the blocks"));
        // SAFETY: this function has the same contract as `byte_lists`.
        let parts = unsafe { byte_lists(ranks, parts, lens) }?;
        blocks.hand_over(ambar_blocks(Arc::new(Decomposition::gather(&parts)?)));
        Ok(())
    })
}

/// The bytes of each rank.
///
/// # Safety
/// `parts` and `lens` are null, or have pointer and length of the bytes of each of `ranks` ranks.
pub(super) unsafe fn byte_lists<'a>(
    ranks: u32,
    parts: *const *const u8,
    lens: *const usize,
) -> Result<Vec<&'a [u8]>> {
    from_c!(parts = list(parts, ranks as usize, "the list of parts"));
    from_c!(lens = list(lens, ranks as usize, "the list of lengths"));
    let mut lists = Vec::with_capacity(parts.len());
    for (part, len) in parts.iter().zip(lens) {
        from_c!(bytes = list(*part, *len, "the bytes of a rank"));
        lists.push(bytes);
    }
    Ok(lists)
}

/// Releases a decomposition. Null is ignored.
///
/// # Safety
/// `blocks` is null, or from `ambar_blocks_gather`, and is released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_blocks_free(blocks: *mut ambar_blocks) {
    from_c!(blocks = owned(blocks));
    drop(blocks);
}
