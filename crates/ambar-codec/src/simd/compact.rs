//! Bytes of the points of a row that are there: next to each other, and back at their places.

#[cfg(target_arch = "x86_64")]
use crate::simd::compact_avx512;
#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::{Level, level};
use crate::simd::{LANES, RowMask};

/// Room that is needed behind what is written: eight bytes are written at a time.
pub(crate) const ROOM: usize = 8;

/// Puts the bytes whose bits are set next to each other; gives their number. `from` and `to` have
/// room behind.
pub(crate) fn compact(bits: &[u64], from: &[u8], to: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the processor has these instructions.
        return unsafe { bmi2::compact(bits, from, to) };
    }
    pack_by(bits, from, to, plain::gather)
}

#[inline(always)]
fn pack_by(bits: &[u64], from: &[u8], to: &mut [u8], gather: impl Fn(u64, u8) -> u64) -> usize {
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
            *out = gather(u64::from_le_bytes(*eight), left as u8).to_le_bytes();
            count += (left as u8).count_ones() as usize;
            left >>= 8;
            at += 8;
        }
    }
    count
}

/// Appends the bytes of the `count` points of a row that are there. `row` has room behind them, whole
/// lanes.
pub(crate) fn append(there: &[u64], count: usize, row: &[u8], to: &mut Vec<u8>) {
    let end = to.len() + count;
    if row.len() == count + LANES {
        to.extend_from_slice(&row[..count]);
        return;
    }
    to.resize(end + ROOM, 0);
    compact(there, row, &mut to[end - count..]);
    to.truncate(end);
}

/// Puts the bytes of rows' points that are there next to each other. Rows have room behind their `points`, whole
/// lanes.
pub(crate) fn compact_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>> + Clone,
    points: usize,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::Avx512 {
        // SAFETY: the processor has these instructions.
        return unsafe { compact_avx512::compact_rows(rows, from, to) };
    }
    to.clear();
    for row in rows {
        append(
            row.there,
            row.count,
            &from[row.from..][..points + LANES],
            to,
        );
    }
}

/// Puts bytes that are next to each other at the places of rows' points that are there, and 0 at the other
/// places of these rows and in whole lanes behind; gives their number. Rows come one behind the other.
pub(crate) fn expand_rows<'a>(
    rows: impl Iterator<Item = RowMask<'a>>,
    points: usize,
    from: &[u8],
    to: &mut [u8],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::Avx512 {
        // SAFETY: the processor has these instructions.
        return unsafe { compact_avx512::expand_rows(rows, points, from, to) };
    }
    let mut used = 0;
    for row in rows {
        let (from, to) = (&from[used..], &mut to[row.from..]);
        if row.count == points {
            // There is room behind, and whole lanes are copied without a call.
            let (from, to) = (from.as_chunks::<LANES>().0, to.as_chunks_mut().0);
            for (to, from) in to.iter_mut().zip(from).take(points.div_ceil(LANES)) {
                *to = *from;
            }
        } else {
            expand(row.there, points, from, to);
        }
        to[points..][..LANES].fill(0);
        used += row.count;
    }
    used
}

/// Puts bytes that are next to each other where bits are set, and 0 at the other places, of `length`
/// in all. `from` and `to` have room behind.
pub(crate) fn expand(bits: &[u64], length: usize, from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the processor has these instructions.
        return unsafe { bmi2::expand(bits, length, from, to) };
    }
    unpack_by(bits, length, from, to, plain::spread);
}

#[inline(always)]
fn unpack_by(
    bits: &[u64],
    length: usize,
    from: &[u8],
    to: &mut [u8],
    spread: impl Fn(u64, u8) -> u64,
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
        *out = spread(u64::from_le_bytes(*eight), bits).to_le_bytes();
        count += bits.count_ones() as usize;
    }
}

/// Instructions of BMI2 for the bytes of a word.
#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use core::arch::x86_64::{_pdep_u64, _pext_u64};

    /// As [`compact`](super::pack).
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) fn compact(bits: &[u64], from: &[u8], to: &mut [u8]) -> usize {
        super::pack_by(bits, from, to, gather)
    }

    /// As [`expand`](super::unpack).
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) fn expand(bits: &[u64], length: usize, from: &[u8], to: &mut [u8]) {
        super::unpack_by(bits, length, from, to, spread);
    }

    /// As [`gather`](super::plain::gather), of functions that have BMI2.
    #[inline(always)]
    pub(super) fn gather(bytes: u64, bits: u8) -> u64 {
        // SAFETY: those that call it have BMI2.
        unsafe { _pext_u64(bytes, whole(bits)) }
    }

    /// As [`spread`](super::plain::spread), of functions that have BMI2.
    #[inline(always)]
    pub(super) fn spread(bytes: u64, bits: u8) -> u64 {
        // SAFETY: those that call it have BMI2.
        unsafe { _pdep_u64(bytes, whole(bits)) }
    }

    /// The bytes whose bits are set.
    #[inline(always)]
    fn whole(bits: u8) -> u64 {
        // SAFETY: those that call it have BMI2.
        unsafe { _pdep_u64(u64::from(bits), 0x0101_0101_0101_0101) * 0xff }
    }
}

mod plain {
    /// The bytes whose bits are set, next to each other, the lowest first.
    #[inline(always)]
    pub(super) fn gather(bytes: u64, bits: u8) -> u64 {
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

    /// Undoes [`gather`]: 0 where bits are not set.
    #[inline(always)]
    pub(super) fn spread(mut bytes: u64, bits: u8) -> u64 {
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
    fn bytes_of_a_word_are_packed_and_unpacked_at_each_level() {
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
        assert_eq!(plain::gather(bytes, 0b1010_0001), 0x81_8388);
        assert_eq!(plain::spread(0x81_8388, 0b1010_0001), 0x8100_8300_0000_0088);
    }

    #[test]
    fn what_is_unpacked_stands_at_its_place() {
        let bits = [0x8000_0000_f00f_0102u64, 0x5];
        let row: Vec<u8> = (0..67 + ROOM).map(|k| k as u8 + 1).collect();
        let mut compacted = [0; 80];
        let count = compact(&bits, &row, &mut compacted);
        assert_eq!(count, 13);
        let mut again = [9; 80];
        expand(&bits, 67, &compacted, &mut again);
        for k in 0..67 {
            let there = bits[k / 64] >> (k % 64) & 1 == 1;
            assert_eq!(again[k], if there { row[k] } else { 0 }, "{k}");
        }
    }
}
