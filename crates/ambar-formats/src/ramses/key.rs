//! Keys along the Morton curve, of 64 bits where they suffice, else of 128.

use std::fmt::Debug;

use ambar::kinds::morton;

/// A Morton key, `u64` or `u128`. In sums, `bits` says by how many bits the other term is shifted.
pub trait Key: Copy + Ord + Debug + Send + Sync + 'static {
    /// The key 0.
    const ZERO: Self;

    /// The key of a cell. Coordinates of unused dimensions are ignored.
    fn encode(ndim: usize, at: &[u64; 3]) -> Self;
    /// The cell of a key.
    fn decode(self, ndim: usize) -> [u64; 3];
    /// The key times `2^bits`; 0 where that shifts all bits out.
    fn up(self, bits: u32) -> Self;
    /// The key by `2^bits`, rounded down.
    fn down(self, bits: u32) -> Self;
    /// The sum with `count * 2^bits`; wraps around behind the last key.
    fn plus(self, count: u64, bits: u32) -> Self;
    /// The difference from a key that is not larger.
    fn minus(self, other: Self) -> Self;
    /// The lowest 64 bits as a number.
    fn low(self) -> u64;
}

macro_rules! key {
    ($type:ty, $encode:path) => {
        impl Key for $type {
            const ZERO: Self = 0;

            fn encode(ndim: usize, at: &[u64; 3]) -> Self {
                $encode(ndim, at)
            }
            fn decode(self, ndim: usize) -> [u64; 3] {
                morton::point(ndim, self.into())
            }
            fn up(self, bits: u32) -> Self {
                self.checked_shl(bits).unwrap_or(0)
            }
            fn down(self, bits: u32) -> Self {
                self.checked_shr(bits).unwrap_or(0)
            }
            fn plus(self, count: u64, bits: u32) -> Self {
                self.wrapping_add(Self::from(count).up(bits))
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn low(self) -> u64 {
                self as u64
            }
        }
    };
}

key!(u64, morton::key64);
key!(u128, morton::key);
