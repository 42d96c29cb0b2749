//! Compaction and expansion with AVX-512, 64 bytes per vector.

use crate::simd::{LANES, RowMask};
use core::arch::x86_64::*;

/// Bytes of a vector.
const WIDTH: usize = 64;

/// The `n` lowest bits, or all if `n` is larger than their number.
#[inline(always)]
fn low_bits(n: usize) -> u64 {
    match n {
        0 => 0,
        n => u64::MAX >> (WIDTH - n.min(WIDTH)),
    }
}

/// As [`crate::simd::compact::append_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn append_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>> + Clone,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    // Space for whole vectors.
    let mut used = to.len();
    let all = used + rows.clone().map(|row| row.count).sum::<usize>();
    to.resize(all + WIDTH, 0);
    for row in rows {
        for (word, bits) in row.bits.iter().enumerate() {
            let (at, count) = (row.start + WIDTH * word, bits.count_ones() as usize);
            assert!(at + WIDTH - bits.leading_zeros() as usize <= from.len());
            assert!(used + count <= all);
            // SAFETY: only bytes whose bits are set are read, which are within `from`. `to` has space for a whole vector
            // after the last byte.
            unsafe {
                let bytes = _mm512_maskz_loadu_epi8(*bits, from.as_ptr().add(at).cast());
                let compacted = _mm512_maskz_compress_epi8(*bits, bytes);
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
        let to = &mut to[row.start..][..points + LANES];
        for (word, bits) in row.bits.iter().enumerate() {
            let (at, count) = (WIDTH * word, bits.count_ones() as usize);
            assert!(used + count <= from.len() && at <= points);
            let writable = low_bits(points + LANES - at);
            // SAFETY: the masks exclude bytes outside of `from` and `to`.
            unsafe {
                let bytes =
                    _mm512_maskz_loadu_epi8(low_bits(count), from.as_ptr().add(used).cast());
                let spread = _mm512_maskz_expand_epi8(*bits, bytes);
                _mm512_mask_storeu_epi8(to.as_mut_ptr().add(at).cast(), writable, spread);
            }
            used += count;
        }
        // The bytes after the last word.
        let done = WIDTH * row.bits.len();
        if done < points + LANES {
            to[done..].fill(0);
        }
    }
    used
}
