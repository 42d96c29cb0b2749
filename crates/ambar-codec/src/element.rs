//! The two types of values, float32 and float64, and what the codec asks of them.

/// A floating-point type that can be compressed.
///
/// All arithmetic is that of IEEE 754 in the order written, without fused operations: encoder and
/// decoder compute the same on every machine.
pub trait Element: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Bytes of a value.
    const SIZE: usize;
    /// What a stream's header calls the type.
    const CODE: u8;
    /// Values below are tame.
    const LARGEST: f64;

    /// From the bits of the type, in the low bits of the word.
    fn from_word(word: u64) -> Self;
    /// The bits of the type, in the low bits of the word.
    fn to_word(self) -> u64;
    /// The nearest value.
    fn from_f64(x: f64) -> Self;
    /// The value itself.
    fn to_f64(self) -> f64;
    /// The value, to single precision.
    fn to_f32(self) -> f32;
    /// A small integer as a value.
    fn from_i32(x: i32) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// Without its sign.
    fn magnitude(self) -> Self;
    /// Whether it is so far from overflow that sums of a few dozen of its like stay finite.
    fn is_tame(self) -> bool;
}

macro_rules! element {
    ($type:ty, $word:ty, $size:expr, $code:expr, $tame:expr) => {
        impl Element for $type {
            const SIZE: usize = $size;
            const CODE: u8 = $code;
            const LARGEST: f64 = $tame;

            #[inline(always)]
            fn from_word(word: u64) -> Self {
                Self::from_bits(word as $word)
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits() as u64
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn from_i32(x: i32) -> Self {
                x as $type
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn is_tame(self) -> bool {
                self.abs() < $tame
            }
        }
    };
}

element!(f32, u32, 4, 1, 1e34);
element!(f64, u64, 8, 2, 1e300);
