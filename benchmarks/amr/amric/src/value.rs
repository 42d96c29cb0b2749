//! The two types of values: float32 and float64.

/// A floating-point type that can be compressed.
pub(crate) trait Value: Copy + Default {
    /// Bytes of a value.
    const SIZE: usize;

    /// The value nearest to `x`.
    fn from_f64(x: f64) -> Self;
    /// The value in double precision.
    fn to_f64(self) -> f64;
    /// From the bits of the type, in the low bits of the word.
    fn from_word(word: u64) -> Self;
    /// The bits of the type, in the low bits of the word.
    fn to_word(self) -> u64;
}

macro_rules! value {
    ($type:ty, $word:ty) => {
        impl Value for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                Self::from_bits(word as $word)
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits() as u64
            }
        }
    };
}

value!(f32, u32);
value!(f64, u64);
