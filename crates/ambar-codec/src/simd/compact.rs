//! Bytes of the points of a row that are there: next to each other, and back at their places.

#[cfg(target_arch = "x86_64")]
use crate::simd::compact_avx512;
#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::are_widest;
use crate::simd::{LANES, Spots};

/// Room that is needed behind what is written: eight bytes are written at a time.
pub(crate) const ROOM: usize = 8;

/// Puts the bytes whose bits are set next to each other; gives their number. `from` and `to` have
/// room behind.
#[inline(always)]
pub(crate) fn pack(bits: &[u64], from: &[u8], to: &mut [u8]) -> usize {
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
    pack(there, row, &mut to[end - count..]);
    to.truncate(end);
}

/// Puts the bytes of rows' points that are there next to each other. Rows have room behind their `points`, whole
/// lanes.
pub(crate) fn pack_rows<'a>(
    rows: impl Iterator<Item = Spots<'a>> + Clone,
    points: usize,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    #[cfg(target_arch = "x86_64")]
    if are_widest() {
        // SAFETY: the processor has these instructions.
        return unsafe { compact_avx512::pack_rows(rows, from, to) };
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
pub(crate) fn unpack_rows<'a>(
    rows: impl Iterator<Item = Spots<'a>>,
    points: usize,
    from: &[u8],
    to: &mut [u8],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if are_widest() {
        // SAFETY: the processor has these instructions.
        return unsafe { compact_avx512::unpack_rows(rows, points, from, to) };
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
            unpack(row.there, points, from, to);
        }
        to[points..][..LANES].fill(0);
        used += row.count;
    }
    used
}

/// Puts bytes that are next to each other where bits are set, and 0 at the other places, of `length`
/// in all. `from` and `to` have room behind.
#[inline(always)]
pub(crate) fn unpack(bits: &[u64], length: usize, from: &[u8], to: &mut [u8]) {
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

#[cfg(all(target_arch = "x86_64", target_feature = "bmi2"))]
#[inline(always)]
fn gather(bytes: u64, bits: u8) -> u64 {
    // SAFETY: the target has BMI2.
    unsafe { core::arch::x86_64::_pext_u64(bytes, whole(bits)) }
}

#[cfg(all(target_arch = "x86_64", target_feature = "bmi2"))]
#[inline(always)]
fn spread(bytes: u64, bits: u8) -> u64 {
    // SAFETY: the target has BMI2.
    unsafe { core::arch::x86_64::_pdep_u64(bytes, whole(bits)) }
}

/// The bytes whose bits are set.
#[cfg(all(target_arch = "x86_64", target_feature = "bmi2"))]
#[inline(always)]
fn whole(bits: u8) -> u64 {
    // SAFETY: the target has BMI2.
    unsafe { core::arch::x86_64::_pdep_u64(u64::from(bits), 0x0101_0101_0101_0101) * 0xff }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "bmi2")))]
use plain::{gather, spread};

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "bmi2"))))]
mod plain {
    /// Byte `k` of a word.
    fn byte(bytes: u64, k: u32) -> u64 {
        bytes.checked_shr(8 * k).unwrap_or(0) & 0xff
    }

    /// The bytes whose bits are set, next to each other, the lowest first.
    pub(super) fn gather(bytes: u64, bits: u8) -> u64 {
        let places = (0..8).filter(|k| bits >> k & 1 == 1);
        places.zip(0..).fold(0, |sum, (from, to): (u32, u32)| {
            sum | byte(bytes, from) << (8 * to)
        })
    }

    /// Undoes [`gather`]: 0 where bits are not set.
    pub(super) fn spread(bytes: u64, bits: u8) -> u64 {
        let places = (0..8).filter(|k| bits >> k & 1 == 1);
        places.zip(0..).fold(0, |sum, (to, from): (u32, u32)| {
            sum | byte(bytes, from) << (8 * to)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_instructions_do_what_is_said() {
        let bytes = 0x8182_8384_8586_8788;
        for bits in 0..=255 {
            assert_eq!(gather(bytes, bits), plain::gather(bytes, bits), "{bits}");
            assert_eq!(spread(bytes, bits), plain::spread(bytes, bits), "{bits}");
        }
        assert_eq!(plain::gather(bytes, 0b1010_0001), 0x81_8388);
        assert_eq!(plain::spread(0x81_8388, 0b1010_0001), 0x8100_8300_0000_0088);
    }

    #[test]
    fn what_is_unpacked_stands_at_its_place() {
        let bits = [0x8000_0000_f00f_0102u64, 0x5];
        let row: Vec<u8> = (0..67 + ROOM).map(|k| k as u8 + 1).collect();
        let mut packed = [0; 80];
        let count = pack(&bits, &row, &mut packed);
        assert_eq!(count, 13);
        let mut again = [9; 80];
        unpack(&bits, 67, &packed, &mut again);
        for k in 0..67 {
            let there = bits[k / 64] >> (k % 64) & 1 == 1;
            assert_eq!(again[k], if there { row[k] } else { 0 }, "{k}");
        }
    }
}
