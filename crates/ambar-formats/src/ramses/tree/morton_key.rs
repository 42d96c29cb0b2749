//! Morton keys of 64 bits, or of 128 bits for deep trees.

use std::fmt::Debug;

use ambar::kinds::morton;

/// A Morton key, `u64` or `u128`.
pub trait MortonKey: Copy + Ord + Debug + Send + Sync + 'static {
    /// The key 0.
    const ZERO: Self;

    /// The key of a cell. Coordinates of unused dimensions are ignored.
    fn encode(ndim: usize, at: &[u64; 3]) -> Self;
    /// The cell of a key.
    fn decode(self, ndim: usize) -> [u64; 3];
    /// The key times `2^bits`; 0 if that shifts all bits out.
    fn shift_up(self, bits: u32) -> Self;
    /// The key divided by `2^bits`, rounded down.
    fn shift_down(self, bits: u32) -> Self;
    /// The sum with `count * 2^bits`; wraps around after the last key.
    fn add_shifted(self, count: u64, bits: u32) -> Self;
    /// The difference from `other`, which must not be larger.
    fn subtract(self, other: Self) -> Self;
    /// The lowest 64 bits.
    fn low_bits(self) -> u64;
}

macro_rules! key {
    ($type:ty, $encode:path) => {
        impl MortonKey for $type {
            const ZERO: Self = 0;

            fn encode(ndim: usize, at: &[u64; 3]) -> Self {
                $encode(ndim, at)
            }
            fn decode(self, ndim: usize) -> [u64; 3] {
                morton::point(ndim, self.into())
            }
            fn shift_up(self, bits: u32) -> Self {
                self.checked_shl(bits).unwrap_or(0)
            }
            fn shift_down(self, bits: u32) -> Self {
                self.checked_shr(bits).unwrap_or(0)
            }
            fn add_shifted(self, count: u64, bits: u32) -> Self {
                self.wrapping_add(Self::from(count).shift_up(bits))
            }
            fn subtract(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn low_bits(self) -> u64 {
                self as u64
            }
        }
    };
}

key!(u64, morton::key64);
key!(u128, morton::key);
