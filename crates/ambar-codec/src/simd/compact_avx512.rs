//! Bytes of rows' points that are there, 64 at once, where the processor has vectors of 512 bits.

use crate::simd::{LANES, RowMask};
use core::arch::x86_64::*;

/// Bytes of a vector.
const WIDTH: usize = 64;

/// The first `n` bits, at most all.
#[inline(always)]
fn first(n: usize) -> u64 {
    match n {
        0 => 0,
        n => u64::MAX >> (WIDTH - n.min(WIDTH)),
    }
}

/// As [`crate::simd::compact::compact_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn compact_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>> + Clone,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    // Whole vectors are written.
    let all = rows.clone().map(|row| row.count).sum::<usize>();
    to.resize(all + WIDTH, 0);
    let mut used = 0;
    for row in rows {
        for (word, there) in row.there.iter().enumerate() {
            let (at, count) = (row.from + WIDTH * word, there.count_ones() as usize);
            assert!(at + WIDTH - there.leading_zeros() as usize <= from.len());
            assert!(used + count <= all);
            // SAFETY: what is read is within `from`, for only bytes whose bits are set are; what is written
            // is within `to`, which has a whole vector of room behind the last byte.
            unsafe {
                let bytes = _mm512_maskz_loadu_epi8(*there, from.as_ptr().add(at).cast());
                let compacted = _mm512_maskz_compress_epi8(*there, bytes);
                _mm512_storeu_si512(to.as_mut_ptr().add(used).cast(), compacted);
            }
            used += count;
        }
    }
    to.truncate(all);
}

/// As [`crate::simd::compact::expand_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn expand_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>>,
    points: usize,
    from: &[u8],
    to: &mut [u8],
) -> usize {
    let mut used = 0;
    for row in rows {
        let to = &mut to[row.from..][..points + LANES];
        for (word, there) in row.there.iter().enumerate() {
            let (at, count) = (WIDTH * word, there.count_ones() as usize);
            assert!(used + count <= from.len() && at <= points);
            let ours = first(points + LANES - at);
            // SAFETY: what is read is within `from`, and what is written within `to`: masks leave all others
            // out.
            unsafe {
                let bytes = _mm512_maskz_loadu_epi8(first(count), from.as_ptr().add(used).cast());
                let spread = _mm512_maskz_expand_epi8(*there, bytes);
                _mm512_mask_storeu_epi8(to.as_mut_ptr().add(at).cast(), ours, spread);
            }
            used += count;
        }
        // Lanes behind the last word.
        let done = WIDTH * row.there.len();
        if done < points + LANES {
            to[done..].fill(0);
        }
    }
    used
}
