//! Words: integers of 32 or 64 bits with wrapping arithmetic.

/// An integer with wrapping arithmetic.
pub trait Word: Copy + Default + Ord + Send + Sync + std::fmt::Debug + 'static {
    /// Bits of a word.
    const BITS: u32;

    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// The bitwise or.
    fn or(self, other: Self) -> Self;
    /// The number of bits without leading zeros.
    fn width(self) -> u32;
    /// Folds the sign of the word, as a signed integer, into the lowest bit.
    fn folded(self) -> Self;
    /// Undoes `folded`.
    fn unfolded(self) -> Self;
    /// Maps the order of signed integers to that of unsigned ones; its own inverse.
    fn ordered(self) -> Self;
    /// Half of the word.
    fn half(self) -> Self;
    /// The lowest 32 bits.
    fn low(self) -> u32;
    /// The bits above the lowest 32.
    fn high(self) -> u32;
    /// Undoes `low` and `high`.
    fn join(low: u32, high: u32) -> Self;
    /// The bits, in the low bits of 64.
    fn to_bits(self) -> u64;
    /// Undoes `to_bits`.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! word {
    ($type:ty, $signed:ty, $high:expr, $join:expr) => {
        impl Word for $type {
            const BITS: u32 = <$type>::BITS;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn width(self) -> u32 {
                <$type>::BITS - self.leading_zeros()
            }
            #[inline(always)]
            fn folded(self) -> Self {
                self << 1 ^ (self as $signed >> (<$type>::BITS - 1)) as $type
            }
            #[inline(always)]
            fn unfolded(self) -> Self {
                self >> 1 ^ (self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn ordered(self) -> Self {
                self ^ 1 << (<$type>::BITS - 1)
            }
            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn high(self) -> u32 {
                $high(self)
            }
            #[inline(always)]
            fn join(low: u32, high: u32) -> Self {
                $join(low, high)
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
        }
    };
}

word!(u32, i32, |_| 0, |low, _| low);
word!(
    u64,
    i64,
    |word: u64| (word >> 32) as u32,
    |low: u32, high: u32| u64::from(low) | u64::from(high) << 32
);
