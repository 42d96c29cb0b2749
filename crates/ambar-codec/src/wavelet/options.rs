//! The level options of streams of wavelet coefficients (`docs/format.md`, 7.1 and 7.17).

use super::axis::MAX_WAVELET_LEVELS;
use crate::entropy::bitio::Cursor;
use crate::error::{Error, Result, corrupt};

/// The options of a stream of wavelet coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WaveletOptions {
    /// How many of the possible levels of each dimension are omitted.
    pub omitted: u8,
    /// Half the bin width of the coefficients, if corrections of values follow them. Otherwise it is the bound of the stream.
    pub coefficient_bound: Option<f64>,
}

impl WaveletOptions {
    /// The bit of the level options which states that the stream holds wavelet coefficients.
    pub(crate) const BIT: u8 = 1 << 5;
    /// The bit of the level options which states that corrections follow the coefficients.
    const CORRECTED: u8 = 1 << 6;

    /// Writes the level options.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let corrected = self.coefficient_bound.map_or(0, |_| Self::CORRECTED);
        out.push(Self::BIT | corrected);
        out.push(self.omitted);
        if let Some(bound) = self.coefficient_bound {
            out.extend(bound.to_le_bytes());
        }
    }

    /// Reads what follows the byte of the level options.
    ///
    /// # Errors
    /// `ReservedBits`, or `Corrupt`.
    pub(crate) fn read(byte: u8, cursor: &mut Cursor<'_>) -> Result<Self> {
        if byte & !(Self::BIT | Self::CORRECTED) != 0 {
            return Err(Error::ReservedBits {
                field: "level options",
                found: byte,
                reserved: !(Self::BIT | Self::CORRECTED),
            });
        }
        let omitted = cursor.byte()?;
        if usize::from(omitted) >= MAX_WAVELET_LEVELS {
            return Err(corrupt!(
                "the wavelets omit {omitted} levels; expected less than {MAX_WAVELET_LEVELS}"
            ));
        }
        let coefficient_bound = match byte & Self::CORRECTED {
            0 => None,
            _ => Some(f64::from_bits(cursor.word()?)),
        };
        if let Some(bound) = coefficient_bound.filter(|bound| !(*bound > 0.0 && bound.is_finite()))
        {
            return Err(corrupt!(
                "the bound of the wavelet coefficients is {bound:e}; expected a finite number above 0"
            ));
        }
        Ok(Self {
            omitted,
            coefficient_bound,
        })
    }
}
