//! Packing of groups of 256 integers with one bit width, in eight interleaved lanes.
//!
//! Integer *i* is in lane *i* mod 8. Each lane fills words of 32 bits from the lowest bit, and the words of the eight lanes
//! are interleaved, so that vector instructions shift eight integers.

#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::{SimdLevel, level};

/// The number of integers of a group.
pub(super) const GROUP: usize = 256;
const LANES: usize = 8;
/// The bytes of one word of each lane.
const ROW: usize = 4 * LANES;
const ROWS: usize = GROUP / LANES;
/// Maximum number of bytes of a packed group.
pub(super) const MAX_BYTES: usize = 4 * GROUP;

/// The bytes of the first `count` integers of a group with this bit width.
pub(super) fn bytes(count: usize, width: u32) -> usize {
    ROW * (count.div_ceil(LANES) * width as usize).div_ceil(32)
}

type Lanes = [u32; LANES];

#[inline(always)]
fn each(mut f: impl FnMut(usize) -> u32) -> Lanes {
    let mut lanes = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        lanes[lane] = f(lane);
        lane += 1;
    }
    lanes
}

#[inline(always)]
fn store(lanes: &Lanes, to: &mut [u8; ROW]) {
    for (to, lane) in to.as_chunks_mut::<4>().0.iter_mut().zip(lanes) {
        *to = lane.to_le_bytes();
    }
}

#[inline(always)]
fn load(from: &[u8; ROW]) -> Lanes {
    let words = from.as_chunks::<4>().0;
    each(|lane| u32::from_le_bytes(words[lane]))
}

/// Calls a macro with the number of each row.
macro_rules! rows {
    ($row:ident) => {
        rows!($row, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($row:ident, $($number:literal)*) => {
        $($row!($number);)*
    };
}

#[inline(always)]
fn pack_by<const WIDTH: usize>(numbers: &[u32; GROUP], to: &mut [u8; MAX_BYTES]) {
    let from: &[Lanes] = numbers.as_chunks().0;
    let (Some(from), (to, _)) = (from.first_chunk::<ROWS>(), to.as_chunks_mut::<ROW>()) else {
        return;
    };
    let mut filling = [0; LANES];
    // The macro makes all shifts and indices constants.
    macro_rules! row {
        ($number:literal) => {
            let (word, shift) = ($number * WIDTH / 32, $number * WIDTH % 32);
            if shift == 0 {
                filling = from[$number];
            } else {
                if shift < WIDTH {
                    // The high bits of the row before.
                    filling =
                        each(|lane| from[($number + ROWS - 1) % ROWS][lane] >> (WIDTH - shift));
                }
                filling = each(|lane| filling[lane] | from[$number][lane] << shift);
            }
            if shift + WIDTH >= 32 {
                store(&filling, &mut to[word]);
            }
        };
    }
    if WIDTH > 0 {
        rows!(row);
    }
}

#[inline(always)]
fn unpack_by<const WIDTH: usize>(from: &[u8; MAX_BYTES], numbers: &mut [u32; GROUP]) {
    let to: &mut [Lanes] = numbers.as_chunks_mut().0;
    let (Some(to), (from, _)) = (to.first_chunk_mut::<ROWS>(), from.as_chunks::<ROW>()) else {
        return;
    };
    let mask = (1u64 << WIDTH).wrapping_sub(1) as u32;
    let mut words = load(&from[0]);
    macro_rules! row {
        ($number:literal) => {
            let (word, shift) = ($number * WIDTH / 32, $number * WIDTH % 32);
            let mut row = each(|lane| words[lane] >> shift);
            if shift + WIDTH >= 32 {
                if word + 1 < WIDTH {
                    words = load(&from[word + 1]);
                }
                if shift + WIDTH > 32 {
                    row = each(|lane| row[lane] | words[lane] << ((32 - shift) % 32));
                }
            }
            to[$number] = each(|lane| row[lane] & mask);
        };
    }
    if WIDTH > 0 {
        rows!(row);
    } else {
        *to = [[0; LANES]; ROWS];
    }
}

/// A table of functions for 0 to 32 bits.
macro_rules! by_width {
    ($function:ident) => {
        by_width!($function, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    ($function:ident, $($width:literal)*) => {
        [$($function::<$width>),*]
    };
}

type Pack = unsafe fn(&[u32; GROUP], &mut [u8; MAX_BYTES]);
type Unpack = unsafe fn(&[u8; MAX_BYTES], &mut [u32; GROUP]);

static PACK: [Pack; 33] = by_width!(pack_by);
static UNPACK: [Unpack; 33] = by_width!(unpack_by);

/// Copies for processors that have AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{GROUP, MAX_BYTES, Pack, Unpack};

    #[target_feature(enable = "avx2")]
    fn pack_by<const WIDTH: usize>(numbers: &[u32; GROUP], to: &mut [u8; MAX_BYTES]) {
        super::pack_by::<WIDTH>(numbers, to);
    }

    #[target_feature(enable = "avx2")]
    fn unpack_by<const WIDTH: usize>(from: &[u8; MAX_BYTES], numbers: &mut [u32; GROUP]) {
        super::unpack_by::<WIDTH>(from, numbers);
    }

    pub(super) static PACK: [Pack; 33] = by_width!(pack_by);
    pub(super) static UNPACK: [Unpack; 33] = by_width!(unpack_by);
}

/// The functions for all widths and the level of the processor.
#[inline(always)]
fn functions() -> (&'static [Pack; 33], &'static [Unpack; 33]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= SimdLevel::Avx2 {
        return (&avx2::PACK, &avx2::UNPACK);
    }
    (&PACK, &UNPACK)
}

/// Packs numbers of at most `width` bits, 0 to 32.
pub(super) fn pack(numbers: &[u32; GROUP], width: u32, to: &mut [u8; MAX_BYTES]) {
    // SAFETY: `functions` returns functions for the level of the processor.
    unsafe { functions().0[width.min(32) as usize](numbers, to) }
}

/// Undoes [`pack`].
pub(super) fn unpack(from: &[u8; MAX_BYTES], width: u32, numbers: &mut [u32; GROUP]) {
    // SAFETY: `functions` returns functions for the level of the processor.
    unsafe { functions().1[width.min(32) as usize](from, numbers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_round_trip() {
        for width in 0..=32 {
            let mask = (1u64 << width).wrapping_sub(1) as u32;
            let number = |i: usize| (i as u32 + 1).wrapping_mul(0x9e37_79b9).rotate_left(7) & mask;
            let numbers: [u32; GROUP] = std::array::from_fn(number);
            for count in [1, 8, 9, 100, GROUP] {
                let mut some = numbers;
                some[count..].fill(0);
                let mut packed = [0xff; MAX_BYTES];
                pack(&some, width, &mut packed);
                // Bytes after these are not needed.
                packed[bytes(count, width)..].fill(0);
                let mut back = [7; GROUP];
                unpack(&packed, width, &mut back);
                assert_eq!(some, back, "{width} bits, {count} numbers");
            }
        }
    }

    #[test]
    fn bits_are_where_the_format_states() {
        let mut numbers = [0; GROUP];
        (numbers[0], numbers[9], numbers[250]) = (5, 3, 7);
        let mut packed = [0; MAX_BYTES];
        pack(&numbers, 3, &mut packed);
        let word = |row: usize, lane: usize| {
            u32::from_le_bytes(packed.as_chunks::<4>().0[LANES * row + lane])
        };
        assert_eq!(word(0, 0), 5);
        assert_eq!(word(0, 1), 3 << 3);
        // Row 31 of lane 2 has bits 93 to 95.
        assert_eq!(word(2, 2), 7 << 29);
        assert_eq!(bytes(GROUP, 3), 96);
    }
}
