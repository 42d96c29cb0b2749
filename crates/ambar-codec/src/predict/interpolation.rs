//! Interpolation of a level: its sharpness along each dimension, and the dimensions that predict each phase.

use crate::error::{Result, corrupt};

/// The weight of the far neighbours, negated: cubic, linear, and sharper than cubic, for waves of a few points.
const SHARPNESS: [f64; 4] = [1.0 / 16.0, 0.0, 3.0 / 32.0, 5.0 / 32.0];
/// The first bit of the ignored dimensions of the phases with several odd dimensions.
const IGNORED_BITS: [(usize, u32); 4] = [(3, 6), (5, 8), (6, 10), (7, 12)];

/// The interpolation of a level, as stored: cubic along all odd dimensions by default.
///
/// Dimensions are z, y, x. Two bits for each are the index of its sharpness. Then, for the phases 3, 5, 6 and 7, one bit for
/// each odd dimension, which is set if the phase is not interpolated along it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interpolation(u16);

impl Interpolation {
    /// Reads the stored bits.
    ///
    /// # Errors
    /// `Corrupt` if a phase has no dimension left, or if the reserved bit is set.
    pub(crate) fn from_bits(bits: u16) -> Result<Self> {
        let read = Self(bits);
        if bits >> 15 != 0 || IGNORED_BITS.iter().any(|(t, _)| read.dimensions(*t) == 0) {
            return Err(corrupt!(
                "the interpolation of a level is {bits:#06x}; expected bit 15 to be 0 and a dimension of each phase"
            ));
        }
        Ok(read)
    }

    /// The stored bits.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The number of values of sharpness.
    pub(crate) const SHARPNESS_COUNT: u16 = SHARPNESS.len() as u16;

    /// Replaces the sharpness along dimension `d`.
    pub(crate) fn with_sharpness(self, d: usize, index: u16) -> Self {
        Self(self.0 & !(3 << (2 * d)) | (index & 3) << (2 * d))
    }

    /// Replaces the dimensions, a set of bits, along which phase `t` is interpolated.
    pub(crate) fn with_dimensions(self, t: usize, dimensions: usize) -> Self {
        let Some((_, first)) = IGNORED_BITS.iter().find(|(phase, _)| *phase == t) else {
            return self;
        };
        let mut bits = self.0;
        for (k, d) in odd_dimensions(t).enumerate() {
            let bit = 1 << (first + k as u32);
            bits = if dimensions >> d & 1 == 1 {
                bits & !bit
            } else {
                bits | bit
            };
        }
        Self(bits)
    }

    /// Replaces the sharpness along all dimensions by linear interpolation.
    pub(crate) fn linear(self) -> Self {
        (0..3).fold(self, |linear, d| linear.with_sharpness(d, 1))
    }

    /// Only the sharpness.
    pub(crate) fn sharpness_only(self) -> Self {
        Self(self.0 & 0x3f)
    }

    /// Only the ignored dimensions.
    pub(crate) fn ignored_only(self) -> Self {
        Self(self.0 & !0x3f)
    }

    /// The weights of the near and the far neighbours along dimension `d`.
    pub(crate) fn weights(self, d: usize) -> (f64, f64) {
        let sharpness = SHARPNESS[usize::from(self.0 >> (2 * d) & 3)];
        (0.5 + sharpness, 0.0 - sharpness)
    }

    /// The dimensions, a set of bits, along which phase `t` is interpolated.
    pub(crate) fn dimensions(self, t: usize) -> usize {
        let Some((_, first)) = IGNORED_BITS.iter().find(|(phase, _)| *phase == t) else {
            return t;
        };
        let ignored = |k: usize| self.0 >> (first + k as u32) & 1 == 1;
        odd_dimensions(t)
            .enumerate()
            .filter(|(k, _)| !ignored(*k))
            .fold(0, |dimensions, (_, d)| dimensions | 1 << d)
    }
}

/// The odd dimensions of phase `t`.
fn odd_dimensions(t: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |d| t >> d & 1 == 1)
}

#[cfg(test)]
impl Interpolation {
    /// Any valid interpolation.
    pub(crate) fn numbered(number: u16) -> Self {
        let mut read = Self(number.wrapping_mul(0x9e37) & 0x7fff);
        for (t, _) in IGNORED_BITS {
            if read.dimensions(t) == 0 {
                read = read.with_dimensions(t, 1 << odd_dimensions(t).next().unwrap_or(0));
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_keeps_a_dimension() {
        for bits in 0..=u16::MAX {
            let read = Interpolation::from_bits(bits);
            let expected = bits >> 15 == 0
                && [6, 8, 10].iter().all(|b| bits >> b & 3 != 3)
                && bits >> 12 & 7 != 7;
            assert_eq!(read.is_ok(), expected, "{bits:#x}");
            if let Ok(read) = read {
                let copy = IGNORED_BITS
                    .iter()
                    .fold(read.sharpness_only(), |copy, (t, _)| {
                        copy.with_dimensions(*t, read.dimensions(*t))
                    });
                assert_eq!(copy, read);
            }
        }
    }
}
