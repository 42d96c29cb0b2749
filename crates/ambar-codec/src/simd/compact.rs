//! Compaction of the bytes of present points of rows, and expansion to their positions.

#[cfg(target_arch = "x86_64")]
use crate::simd::compact_avx512;
#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::{SimdLevel, level};
use crate::simd::{LANES, RowMask};

/// Space that outputs need after the last byte, because eight bytes are written at a time.
pub(crate) const SPACE: usize = 8;

/// Compacts the bytes whose bits are set. Returns their number. `from` and `to` have [`SPACE`] after the last byte.
pub(crate) fn compact(bits: &[u64], from: &[u8], to: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() >= SimdLevel::Avx2 {
        // SAFETY: the level guarantees these instructions.
        return unsafe { bmi2::compact(bits, from, to) };
    }
    compact_by(bits, from, to, baseline::compact_word)
}

#[inline(always)]
fn compact_by(
    bits: &[u64],
    from: &[u8],
    to: &mut [u8],
    compact_word: impl Fn(u64, u8) -> u64,
) -> usize {
    let mut count = 0;
    for (number, word) in bits.iter().enumerate() {
        let (mut left, mut at) = (*word, 64 * number);
        while left != 0 {
            let (Some(eight), Some(out)) = (
                from.get(at..).and_then(|from| from.first_chunk::<8>()),
                to.get_mut(count..).and_then(|to| to.first_chunk_mut()),
            ) else {
                return count;
            };
            *out = compact_word(u64::from_le_bytes(*eight), left as u8).to_le_bytes();
            count += (left as u8).count_ones() as usize;
            left >>= 8;
            at += 8;
        }
    }
    count
}

/// Appends the bytes of the `count` present points of a row, which has [`LANES`] bytes after its points.
pub(crate) fn append(bits: &[u64], count: usize, row: &[u8], to: &mut Vec<u8>) {
    let end = to.len() + count;
    if row.len() == count + LANES {
        to.extend_from_slice(&row[..count]);
        return;
    }
    to.resize(end + SPACE, 0);
    compact(bits, row, &mut to[end - count..]);
    to.truncate(end);
}

/// Appends the compacted bytes of rows, which have [`LANES`] bytes after their `points`.
pub(crate) fn append_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>> + Clone,
    points: usize,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    #[cfg(target_arch = "x86_64")]
    if level() == SimdLevel::Avx512 {
        // SAFETY: the level guarantees these instructions.
        return unsafe { compact_avx512::append_rows(rows, from, to) };
    }
    for row in rows {
        append(
            row.bits,
            row.count,
            &from[row.start..][..points + LANES],
            to,
        );
    }
}

/// Expands compacted bytes to the present points of consecutive rows. Absent points, and [`LANES`] bytes after each row,
/// become 0. Returns the number of bytes used.
pub(crate) fn expand_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>>,
    points: usize,
    from: &[u8],
    to: &mut [u8],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() == SimdLevel::Avx512 {
        // SAFETY: the level guarantees these instructions.
        return unsafe { compact_avx512::expand_rows(rows, points, from, to) };
    }
    let mut used = 0;
    for row in rows {
        let (from, to) = (&from[used..], &mut to[row.start..]);
        if row.count == points {
            // Copying whole groups needs no function call. There is space after the row.
            let (from, to) = (from.as_chunks::<LANES>().0, to.as_chunks_mut().0);
            for (to, from) in to.iter_mut().zip(from).take(points.div_ceil(LANES)) {
                *to = *from;
            }
        } else {
            expand(row.bits, points, from, to);
        }
        to[points..][..LANES].fill(0);
        used += row.count;
    }
    used
}

/// Expands compacted bytes to the set bits among the first `length`. Other bytes become 0. `from` and `to` have [`SPACE`]
/// after the last byte.
pub(crate) fn expand(bits: &[u64], length: usize, from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= SimdLevel::Avx2 {
        // SAFETY: the level guarantees these instructions.
        return unsafe { bmi2::expand(bits, length, from, to) };
    }
    expand_by(bits, length, from, to, baseline::expand_word);
}

#[inline(always)]
fn expand_by(
    bits: &[u64],
    length: usize,
    from: &[u8],
    to: &mut [u8],
    expand_word: impl Fn(u64, u8) -> u64,
) {
    let mut count = 0;
    for (number, at) in (0..length).step_by(8).enumerate() {
        let bits = (bits[number / 8] >> (8 * (number % 8))) as u8;
        let (Some(eight), Some(out)) = (
            from.get(count..).and_then(|from| from.first_chunk::<8>()),
            to.get_mut(at..).and_then(|to| to.first_chunk_mut()),
        ) else {
            return;
        };
        *out = expand_word(u64::from_le_bytes(*eight), bits).to_le_bytes();
        count += bits.count_ones() as usize;
    }
}

/// Compaction and expansion with BMI2.
#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use core::arch::x86_64::{_pdep_u64, _pext_u64};

    /// As [`compact`](super::compact).
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) fn compact(bits: &[u64], from: &[u8], to: &mut [u8]) -> usize {
        super::compact_by(bits, from, to, compact_word)
    }

    /// As [`expand`](super::expand).
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) fn expand(bits: &[u64], length: usize, from: &[u8], to: &mut [u8]) {
        super::expand_by(bits, length, from, to, expand_word);
    }

    /// As [`compact_word`](super::baseline::compact_word), of functions that have BMI2.
    #[inline(always)]
    pub(super) fn compact_word(bytes: u64, bits: u8) -> u64 {
        // SAFETY: callers enable BMI2.
        unsafe { _pext_u64(bytes, whole(bits)) }
    }

    /// As [`expand_word`](super::baseline::expand_word), of functions that have BMI2.
    #[inline(always)]
    pub(super) fn expand_word(bytes: u64, bits: u8) -> u64 {
        // SAFETY: callers enable BMI2.
        unsafe { _pdep_u64(bytes, whole(bits)) }
    }

    /// A word whose bytes are 0xff where bits are set.
    #[inline(always)]
    fn whole(bits: u8) -> u64 {
        // SAFETY: callers enable BMI2.
        unsafe { _pdep_u64(u64::from(bits), 0x0101_0101_0101_0101) * 0xff }
    }
}

mod baseline {
    /// Compacts the bytes whose bits are set, the lowest first.
    #[inline(always)]
    pub(super) fn compact_word(bytes: u64, bits: u8) -> u64 {
        if bits == u8::MAX {
            return bytes;
        }
        let (mut left, mut gathered, mut to) = (bits, 0, 0);
        while left != 0 {
            gathered |= (bytes >> (8 * left.trailing_zeros()) & 0xff) << to;
            left &= left - 1;
            to += 8;
        }
        gathered
    }

    /// Undoes [`compact_word`]; bytes whose bits are not set become 0.
    #[inline(always)]
    pub(super) fn expand_word(mut bytes: u64, bits: u8) -> u64 {
        if bits == u8::MAX {
            return bytes;
        }
        let (mut left, mut spread) = (bits, 0);
        while left != 0 {
            spread |= (bytes & 0xff) << (8 * left.trailing_zeros());
            left &= left - 1;
            bytes >>= 8;
        }
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::at_each_level;

    #[test]
    fn words_are_compacted_and_expanded_at_each_level() {
        let bytes: u64 = 0x8182_8384_8586_8788;
        for bits in 0..=u8::MAX {
            let bits_of = |k: u32| bits >> k & 1 == 1;
            let places: Vec<u32> = (0..8).filter(|k| bits_of(*k)).collect();
            let gathered = places
                .iter()
                .zip(0..)
                .fold(0, |sum, (from, to): (&u32, u32)| {
                    sum | (bytes >> (8 * from) & 0xff) << (8 * to)
                });
            let mut compacted = [0; 16];
            for level in at_each_level(|| {
                let row = bytes.to_le_bytes();
                let count = compact(&[u64::from(bits)], &[row, [0; 8]].concat(), &mut compacted);
                let mut spread = [9; 16];
                expand(&[u64::from(bits)], 8, &compacted, &mut spread);
                (count, compacted, spread)
            }) {
                let (count, compacted, spread) = level;
                assert_eq!(count, places.len());
                let mask = (1u128 << (8 * count)) - 1;
                let compacted = u128::from_le_bytes(compacted) & mask;
                assert_eq!(compacted, u128::from(gathered), "{bits}");
                let kept = (0..8).map(|k| {
                    if bits_of(k) {
                        bytes.to_le_bytes()[k as usize]
                    } else {
                        0
                    }
                });
                assert!(kept.eq(spread[..8].iter().copied()), "{bits}");
            }
        }
        assert_eq!(baseline::compact_word(bytes, 0b1010_0001), 0x81_8388);
        assert_eq!(
            baseline::expand_word(0x81_8388, 0b1010_0001),
            0x8100_8300_0000_0088
        );
    }

    #[test]
    fn expansion_undoes_compaction() {
        let bits = [0x8000_0000_f00f_0102u64, 0x5];
        let row: Vec<u8> = (0..67 + SPACE).map(|k| k as u8 + 1).collect();
        let mut compacted = [0; 80];
        let count = compact(&bits, &row, &mut compacted);
        assert_eq!(count, 13);
        let mut again = [9; 80];
        expand(&bits, 67, &compacted, &mut again);
        for k in 0..67 {
            let bits = bits[k / 64] >> (k % 64) & 1 == 1;
            assert_eq!(again[k], if bits { row[k] } else { 0 }, "{k}");
        }
    }
}
