//! Keys along the Morton curve: the bits of integer coordinates, interleaved, x lowest.

use std::fmt::Debug;

/// A Morton key: `u64` where it suffices, else `u128`.
pub trait Key: Copy + Ord + Debug + Send + Sync + 'static {
    /// The key 0.
    const ZERO: Self;

    /// The key of a cell. Coordinates of unused dimensions are ignored.
    fn encode(ndim: usize, at: [u64; 3]) -> Self;
    /// The cell of a key.
    fn decode(self, ndim: usize) -> [u64; 3];
    /// The key times `2^bits`; `bits` may be all.
    fn up(self, bits: u32) -> Self;
    /// The key by `2^bits`, rounded down; `bits` may be all.
    fn down(self, bits: u32) -> Self;
    /// The sum with `count * 2^bits`; wraps around behind the last cell of the last key.
    fn plus(self, count: u64, bits: u32) -> Self;
    /// The difference from a key that is not larger.
    fn minus(self, other: Self) -> Self;
    /// The lowest bits as a number.
    fn low(self) -> u64;
}

macro_rules! key {
    ($type:ty, $encode:expr, $decode:expr) => {
        impl Key for $type {
            const ZERO: Self = 0;

            #[inline]
            fn encode(ndim: usize, at: [u64; 3]) -> Self {
                $encode(ndim, at)
            }
            #[inline]
            fn decode(self, ndim: usize) -> [u64; 3] {
                $decode(ndim, self)
            }
            #[inline]
            fn up(self, bits: u32) -> Self {
                self.checked_shl(bits).unwrap_or(0)
            }
            #[inline]
            fn down(self, bits: u32) -> Self {
                self.checked_shr(bits).unwrap_or(0)
            }
            #[inline]
            fn plus(self, count: u64, bits: u32) -> Self {
                self.wrapping_add(Self::from(count).up(bits))
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn low(self) -> u64 {
                self as u64
            }
        }
    };
}

key!(u64, encode64, decode64);
key!(u128, encode128, decode128);

#[inline]
fn encode64(ndim: usize, [x, y, z]: [u64; 3]) -> u64 {
    match ndim {
        1 => x,
        2 => spread2(x) | spread2(y) << 1,
        _ => spread3(x) | spread3(y) << 1 | spread3(z) << 2,
    }
}

fn decode64(ndim: usize, key: u64) -> [u64; 3] {
    match ndim {
        1 => [key, 0, 0],
        2 => [gather2(key), gather2(key >> 1), 0],
        _ => [gather3(key), gather3(key >> 1), gather3(key >> 2)],
    }
}

/// Bits of a coordinate that `encode64` takes.
fn bits64(ndim: usize) -> u32 {
    64 / ndim as u32
}

fn encode128(ndim: usize, at: [u64; 3]) -> u128 {
    let bits = bits64(ndim);
    let high = at.map(|x| x.checked_shr(bits).unwrap_or(0));
    let low = at.map(|x| x & u64::MAX.checked_shr(64 - bits).unwrap_or(0));
    u128::from(encode64(ndim, low)) | u128::from(encode64(ndim, high)) << (bits * ndim as u32)
}

fn decode128(ndim: usize, key: u128) -> [u64; 3] {
    let bits = bits64(ndim);
    let high = decode64(ndim, (key >> (bits * ndim as u32)) as u64);
    let low = decode64(ndim, key as u64 & (u64::MAX >> (64 - bits * ndim as u32)));
    std::array::from_fn(|d| low[d] | high[d].checked_shl(bits).unwrap_or(0))
}

/// The lowest 32 bits, each two places from the next.
#[inline]
fn spread2(x: u64) -> u64 {
    let x = x & 0xffff_ffff;
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

fn gather2(x: u64) -> u64 {
    let x = x & 0x5555_5555_5555_5555;
    let x = (x | x >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// The lowest 21 bits, each three places from the next.
#[inline]
fn spread3(x: u64) -> u64 {
    let x = x & 0x1f_ffff;
    let x = (x | x << 32) & 0x001f_0000_0000_ffff;
    let x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    let x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    let x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

fn gather3(x: u64) -> u64 {
    let x = x & 0x1249_2492_4924_9249;
    let x = (x | x >> 2) & 0x10c3_0c30_c30c_30c3;
    let x = (x | x >> 4) & 0x100f_00f0_0f00_f00f;
    let x = (x | x >> 8) & 0x001f_0000_ff00_00ff;
    let x = (x | x >> 16) & 0x001f_0000_0000_ffff;
    (x | x >> 32) & 0x1f_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(ndim: usize, at: [u64; 3]) -> u128 {
        (0..128 / ndim as u32)
            .flat_map(|bit| (0..ndim).map(move |d| (bit, d)))
            .filter(|(bit, d)| *bit < 64 && at[*d] >> bit & 1 == 1)
            .fold(0, |key, (bit, d)| key | 1 << (bit * ndim as u32 + d as u32))
    }

    #[test]
    fn keys_interleave_bits_and_give_them_back() {
        let mut seed = 7u64;
        for round in 0..1000 {
            let at: [u64; 3] = std::array::from_fn(|_| {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                seed >> (round % 60)
            });
            for ndim in 1..=3 {
                let cut = |bits: u32| {
                    std::array::from_fn(|d| {
                        if d < ndim {
                            at[d] & (u64::MAX >> (64 - bits))
                        } else {
                            0
                        }
                    })
                };
                let small = cut(64 / ndim as u32);
                assert_eq!(u128::from(u64::encode(ndim, small)), plain(ndim, small));
                assert_eq!(u64::encode(ndim, small).decode(ndim), small);
                let large = cut([64, 64, 42][ndim - 1]);
                assert_eq!(u128::encode(ndim, large), plain(ndim, large));
                assert_eq!(u128::encode(ndim, large).decode(ndim), large);
            }
        }
    }
}
