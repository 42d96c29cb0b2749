//! Interpolation of a level: the dimensions that predict each phase, the weights of their points, of outer points, and of points
//! on diagonals.

use crate::domain::lattice::ORDER;
use crate::entropy::bitio::Cursor;
use crate::error::{Result, corrupt};

/// The weight of the far neighbours, negated: cubic, linear, and sharper than cubic, for waves of a few points.
const SHARPNESS: [f64; 4] = [1.0 / 16.0, 0.0, 3.0 / 32.0, 5.0 / 32.0];
/// The first bit of the ignored dimensions of the phases with several odd dimensions.
const IGNORED_BITS: [(usize, u32); 4] = [(3, 6), (5, 8), (6, 10), (7, 12)];

/// The bit which states that phases have weights of their own.
const HAS_PHASE_WEIGHTS: u16 = 1 << 15;
/// The bits of the sharpness along the dimensions. With weights of phases, the first three are flags, and the others 0.
const SHARPNESS_BITS: u16 = 0x3f;
/// The bit which states that weights of phases include those of outer points.
const HAS_OUTER_WEIGHTS: u16 = 1;
/// The bit which states that weights of phases have two bytes; those of one byte are multiples of coarser units.
const HAS_FINE_WEIGHTS: u16 = 2;
/// The bit which states that weights of phases include those of slopes.
const HAS_SLOPE_WEIGHTS: u16 = 4;
/// The bits of the sharpness that may be set with weights of phases.
const WEIGHT_BITS: u16 = HAS_OUTER_WEIGHTS | HAS_FINE_WEIGHTS | HAS_SLOPE_WEIGHTS;
/// The number of units of weights in 1.
pub(crate) const UNITS_PER_ONE: f64 = 8192.0;
/// The units of weights of one byte: of the sharpness, of outer points, of slopes and of diagonals.
pub(crate) const SHARPNESS_UNIT: i16 = 128;
pub(crate) const OUTER_UNIT: i16 = 64;
pub(crate) const SLOPE_UNIT: i16 = 128;
pub(crate) const DIAGONAL_UNIT: i16 = 256;
/// The pairs of dimensions in which points are next to others on diagonals: zy, zx, yx.
pub(crate) const DIMENSION_PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// The weights of a phase that has its own, in units of 1/8192.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PhaseWeights {
    /// The weight of the far neighbours along a dimension, negated.
    pub sharpness: i16,
    /// The weight of the outer neighbours along a dimension, at -5 and +5. Three times as much is taken from the far neighbours,
    /// and twice as much added to the near ones, so that cubic values are predicted as without it.
    pub outer: i16,
    /// The weight of half the difference of the near neighbours along a dimension: with -1, a point is predicted by the one before
    /// it.
    pub slope: i16,
    /// The weights of the means of the four nearest points on the diagonals of each pair of dimensions; 0 for pairs without
    /// coded points.
    pub diagonals: [i16; 3],
}

impl PhaseWeights {
    /// Cubic interpolation.
    pub(crate) const CUBIC: Self = Self {
        sharpness: 512,
        outer: 0,
        slope: 0,
        diagonals: [0; 3],
    };

    /// The weights that a stream with these bits has of phase `t`, and the unit of each if it has one byte.
    fn stored(&mut self, t: usize, bits: u16) -> impl Iterator<Item = (&mut i16, i16)> {
        let coded = move |pair: usize| coded_pairs(t).any(|other| other == pair);
        let diagonals = self.diagonals.iter_mut().enumerate();
        let diagonals =
            diagonals.filter_map(move |(pair, w)| coded(pair).then_some((w, DIAGONAL_UNIT)));
        [(&mut self.sharpness, SHARPNESS_UNIT)]
            .into_iter()
            .chain((bits & HAS_OUTER_WEIGHTS != 0).then_some((&mut self.outer, OUTER_UNIT)))
            .chain((bits & HAS_SLOPE_WEIGHTS != 0).then_some((&mut self.slope, SLOPE_UNIT)))
            .chain(diagonals)
    }
}

/// The interpolation of a level: cubic along all odd dimensions by default.
///
/// Dimensions are z, y, x. Two bits for each are the index of its sharpness. Then, for the phases 3, 5, 6 and 7, one bit for
/// each odd dimension, which is set if the phase is not interpolated along it. The last bit is set if each phase has weights
/// of its own, which replace the sharpness of the dimensions. The first bit is then set if outer points are among them, the
/// second one if weights have two bytes, the third one if slopes are among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interpolation {
    bits: u16,
    /// In the order of the phases' numbers, from 1 on; default unless the last bit is set.
    phases: [PhaseWeights; 7],
}

impl Interpolation {
    /// Reads an interpolation; phases may have weights of their own only if `allows_phase_weights`.
    ///
    /// # Errors
    /// `Corrupt` if a phase has no dimension left, or if a bit is set that must be 0.
    pub(crate) fn read(cursor: &mut Cursor<'_>, allows_phase_weights: bool) -> Result<Self> {
        let bytes = cursor.bytes(2)?;
        let mut read = Self {
            bits: u16::from_le_bytes([bytes[0], bytes[1]]),
            ..Self::default()
        };
        let bits = read.bits;
        let has_dimensions = IGNORED_BITS.iter().all(|(t, _)| read.dimensions(*t) != 0);
        let is_allowed = allows_phase_weights && bits & SHARPNESS_BITS & !WEIGHT_BITS == 0;
        if !has_dimensions || read.has_phase_weights() && !is_allowed {
            return Err(corrupt!(
                "invalid interpolation of a level: {bits:#06x}; expected at least one used dimension for each phase, and bit 15 \
                 only with contexts by row or plane and the bits 3 to 5 equal to 0"
            ));
        }
        if read.has_phase_weights() {
            for t in ORDER {
                for (weight, unit) in read.phases[t - 1].stored(t, bits) {
                    *weight = if bits & HAS_FINE_WEIGHTS != 0 {
                        i16::from_le_bytes([cursor.byte()?, cursor.byte()?])
                    } else {
                        i16::from(cursor.byte()? as i8) * unit
                    };
                }
            }
        }
        Ok(read)
    }

    /// Writes the interpolation.
    pub(crate) fn write(mut self, out: &mut Vec<u8>) {
        out.extend(self.bits.to_le_bytes());
        if !self.has_phase_weights() {
            return;
        }
        for t in ORDER {
            for (weight, unit) in self.phases[t - 1].stored(t, self.bits) {
                if self.bits & HAS_FINE_WEIGHTS != 0 {
                    out.extend(weight.to_le_bytes());
                } else {
                    out.push((*weight / unit) as u8);
                }
            }
        }
    }

    /// Whether phases have weights of their own.
    pub(crate) fn has_phase_weights(self) -> bool {
        self.bits & HAS_PHASE_WEIGHTS != 0
    }

    /// Gives each phase weights of its own, instead of the sharpness of dimensions.
    pub(crate) fn with_phase_weights(self, weights: impl Fn(usize) -> PhaseWeights) -> Self {
        let mut phases: [PhaseWeights; 7] = std::array::from_fn(|k| weights(k + 1));
        let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        let mut bits = self.bits & !SHARPNESS_BITS
            | HAS_PHASE_WEIGHTS
            | bit(phases.iter().any(|w| w.outer != 0), HAS_OUTER_WEIGHTS)
            | bit(phases.iter().any(|w| w.slope != 0), HAS_SLOPE_WEIGHTS);
        let is_fine = |(weight, unit): (&mut i16, i16)| {
            *weight % unit != 0 || i8::try_from(*weight / unit).is_err()
        };
        let mut phase_numbers = 1..=7;
        let is_fine = phase_numbers.any(|t| phases[t - 1].stored(t, bits).any(is_fine));
        bits |= bit(is_fine, HAS_FINE_WEIGHTS);
        Self { bits, phases }
    }

    /// The pairs of dimensions on whose diagonals phase `t` has points that are coded before it, and the weights of their means.
    pub(crate) fn diagonals(self, t: usize) -> impl Iterator<Item = ([usize; 2], f64)> {
        let weights = self.phases[t - 1].diagonals;
        coded_pairs(t).map(move |pair| {
            (
                DIMENSION_PAIRS[pair],
                f64::from(weights[pair]) / UNITS_PER_ONE,
            )
        })
    }

    /// The weight of the outer neighbours along the dimensions of phase `t`.
    pub(crate) fn outer_weight(self, t: usize) -> f64 {
        f64::from(self.phases[t - 1].outer) / UNITS_PER_ONE
    }

    /// The weight of half the difference of the near neighbours along the dimensions of phase `t`.
    pub(crate) fn slope_weight(self, t: usize) -> f64 {
        f64::from(self.phases[t - 1].slope) / UNITS_PER_ONE
    }

    /// The number of values of sharpness.
    pub(crate) const SHARPNESS_COUNT: u16 = SHARPNESS.len() as u16;

    /// Replaces the sharpness along dimension `d`.
    pub(crate) fn with_sharpness(self, d: usize, index: u16) -> Self {
        debug_assert!(!self.has_phase_weights());
        Self {
            bits: self.bits & !(3 << (2 * d)) | (index & 3) << (2 * d),
            ..self
        }
    }

    /// Replaces the dimensions, a set of bits, along which phase `t` is interpolated.
    pub(crate) fn with_dimensions(self, t: usize, dimensions: usize) -> Self {
        let Some((_, first)) = IGNORED_BITS.iter().find(|(phase, _)| *phase == t) else {
            return self;
        };
        let mut bits = self.bits;
        for (k, d) in odd_dimensions(t).enumerate() {
            let bit = 1 << (first + k as u32);
            bits = if dimensions >> d & 1 == 1 {
                bits & !bit
            } else {
                bits | bit
            };
        }
        Self { bits, ..self }
    }

    /// Replaces the sharpness along all dimensions by linear interpolation.
    pub(crate) fn linear(self) -> Self {
        (0..3).fold(self, |linear, d| linear.with_sharpness(d, 1))
    }

    /// Only the ignored dimensions.
    pub(crate) fn ignored_only(self) -> Self {
        Self {
            bits: self.bits & !(SHARPNESS_BITS | HAS_PHASE_WEIGHTS),
            ..Self::default()
        }
    }

    /// The weights of the near and the far neighbours along dimension `d` in the interpolation of phase `t`.
    pub(crate) fn weights(self, t: usize, d: usize) -> (f64, f64) {
        let sharpness = if self.has_phase_weights() {
            f64::from(self.phases[t - 1].sharpness) / UNITS_PER_ONE
        } else {
            SHARPNESS[usize::from(self.bits >> (2 * d) & 3)]
        };
        (0.5 + sharpness, 0.0 - sharpness)
    }

    /// The dimensions, a set of bits, along which phase `t` is interpolated.
    pub(crate) fn dimensions(self, t: usize) -> usize {
        let Some((_, first)) = IGNORED_BITS.iter().find(|(phase, _)| *phase == t) else {
            return t;
        };
        let ignored = |k: usize| self.bits >> (first + k as u32) & 1 == 1;
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

/// The pairs of dimensions on whose diagonals the nearest points of phase `t` are coded before it.
pub(crate) fn coded_pairs(t: usize) -> impl Iterator<Item = usize> {
    let is_before = move |pair: &usize| {
        let source = t ^ DIMENSION_PAIRS[*pair]
            .iter()
            .fold(0, |bits, d| bits | 1 << d);
        let place = |t| ORDER.iter().position(|other| *other == t);
        source == 0 || place(source) < place(t)
    };
    (0..DIMENSION_PAIRS.len()).filter(is_before)
}

#[cfg(test)]
impl Interpolation {
    /// Any valid interpolation; with weights of phases if `number` is odd.
    pub(crate) fn numbered(number: u16) -> Self {
        let mut any = Self {
            bits: number.wrapping_mul(0x9e37) & 0x7fff,
            ..Self::default()
        };
        for (t, _) in IGNORED_BITS {
            if any.dimensions(t) == 0 {
                any = any.with_dimensions(t, 1 << odd_dimensions(t).next().unwrap_or(0));
            }
        }
        if number.is_multiple_of(2) {
            return any;
        }
        // The weights of some numbers have two bytes.
        let fine = number as i16 / 2 % 5 / 2;
        any.with_phase_weights(|t| {
            let mut weights = PhaseWeights {
                sharpness: (7 * t as i16 * number as i16 % 17 - 8) * SHARPNESS_UNIT + fine,
                outer: (number as i16 / 2 % 3 * (t as i16 + number as i16) % 7) * OUTER_UNIT,
                slope: (number as i16 / 2 % 4 / 2 * (t as i16 - number as i16 % 9)) * SLOPE_UNIT,
                ..PhaseWeights::default()
            };
            for pair in coded_pairs(t) {
                let weight = 3 * (t + pair) as i16 * number as i16 % 41 - 20;
                weights.diagonals[pair] = weight * DIAGONAL_UNIT + fine;
            }
            weights
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bits: u16, weights: &[u8], allows_phase_weights: bool) -> Result<Interpolation> {
        let bytes = [&bits.to_le_bytes()[..], weights].concat();
        let mut cursor = Cursor(&bytes);
        let read = Interpolation::read(&mut cursor, allows_phase_weights)?;
        let mut written = Vec::new();
        read.write(&mut written);
        assert_eq!(written, bytes);
        Ok(read)
    }

    #[test]
    fn each_phase_keeps_a_dimension() {
        for bits in 0..0x8000 {
            let read = read(bits, &[], false);
            let expected = [6, 8, 10].iter().all(|b| bits >> b & 3 != 3) && bits >> 12 & 7 != 7;
            assert_eq!(read.is_ok(), expected, "{bits:#x}");
            if let Ok(read) = read {
                let sharpness = Interpolation {
                    bits: bits & SHARPNESS_BITS,
                    ..read
                };
                let copy = IGNORED_BITS.iter().fold(sharpness, |copy, (t, _)| {
                    copy.with_dimensions(*t, read.dimensions(*t))
                });
                assert_eq!(copy, read);
            }
        }
    }

    #[test]
    fn weights_of_phases_are_read_where_they_apply() {
        let weights: Vec<u8> = (1..=19).collect();
        let some = read(HAS_PHASE_WEIGHTS | 1 << 6, &weights, true).unwrap();
        assert_eq!(some.dimensions(3), 2);
        assert_eq!(some.weights(1, 0), (0.5 + 1.0 / 64.0, -1.0 / 64.0));
        assert_eq!(some.diagonals(1).count(), 0);
        let last: Vec<_> = some.diagonals(7).collect();
        assert_eq!(
            last,
            [
                ([0, 1], 17.0 / 32.0),
                ([0, 2], 18.0 / 32.0),
                ([1, 2], 19.0 / 32.0)
            ]
        );
        let weights_with_outer: Vec<u8> = (1..=26).collect();
        let bits = HAS_PHASE_WEIGHTS | HAS_OUTER_WEIGHTS;
        let with_outer = read(bits, &weights_with_outer, true).unwrap();
        assert_eq!(with_outer.outer_weight(1), 2.0 / 128.0);
        assert_eq!(with_outer.weights(2, 1), (0.5 + 3.0 / 64.0, -3.0 / 64.0));
        assert_eq!(some.outer_weight(7), 0.0);
        assert!(read(bits, &weights, true).is_err());
        let fine: Vec<u8> = (1..=38).collect();
        let with_fine = read(HAS_PHASE_WEIGHTS | HAS_FINE_WEIGHTS, &fine, true).unwrap();
        let first = f64::from(0x201) / 8192.0;
        assert_eq!(with_fine.weights(1, 0), (0.5 + first, -first));
        assert!(read(HAS_PHASE_WEIGHTS, &weights, false).is_err());
        let bits = HAS_PHASE_WEIGHTS | HAS_SLOPE_WEIGHTS;
        let with_slope = read(bits, &weights_with_outer, true).unwrap();
        assert_eq!(with_slope.slope_weight(1), 2.0 / 64.0);
        assert_eq!(with_slope.outer_weight(1), 0.0);
        assert!(read(HAS_PHASE_WEIGHTS | 8, &weights, true).is_err());
        assert!(read(HAS_PHASE_WEIGHTS, &weights[1..], true).is_err());
    }
}
