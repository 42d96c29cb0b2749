//! The value types, float32 and float64, and the operations that the codec needs.

/// A floating-point type that can be compressed.
///
/// All arithmetic is IEEE 754 in the order written, without fused operations, so that encoders and decoders
/// compute the same bits on every machine.
pub trait Element: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Bytes of a value.
    const SIZE: usize;
    /// The code of the type in the header of a stream.
    const CODE: u8;
    /// Values of smaller magnitude are predictable.
    const MAX_PREDICTABLE: f64;
    /// Magnitudes of residuals, in steps, are below this: exact in this type, and within 32 bits.
    const MAX_STEPS: f64;

    /// The value whose bits are the low bits of the word.
    fn from_word(word: u64) -> Self;
    /// The bits of the value, in the low bits of the word.
    fn to_word(self) -> u64;
    /// The nearest value.
    fn from_f64(x: f64) -> Self;
    /// The value itself.
    fn to_f64(self) -> f64;
    /// The value, rounded to single precision.
    fn to_f32(self) -> f32;
    /// A small integer as a value.
    fn from_i32(x: i32) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// The absolute value.
    fn magnitude(self) -> Self;
    /// Whether the value is finite and so far from overflow that sums of a few dozen such values stay finite.
    fn is_predictable(self) -> bool;
}

macro_rules! element {
    ($type:ty, $word:ty, $size:expr, $code:expr, $max_predictable:expr, $max_steps:expr) => {
        impl Element for $type {
            const SIZE: usize = $size;
            const CODE: u8 = $code;
            const MAX_PREDICTABLE: f64 = $max_predictable;
            const MAX_STEPS: f64 = $max_steps;

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
            fn is_predictable(self) -> bool {
                self.abs() < $max_predictable
            }
        }
    };
}

element!(f32, u32, 4, 1, 1e34, (1u32 << 23) as f64);
element!(f64, u64, 8, 2, 1e300, (1u32 << 30) as f64);
