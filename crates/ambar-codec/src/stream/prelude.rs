//! The part of a head between its first four bytes and the description of the coded values: how decoded values
//! are made of coded ones (`docs/format.md`, 7.1).

use crate::bound::ErrorBound;
use crate::bound::mapping::Mapping;
use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::entropy::exceptions;
use crate::error::{Corrupt, Result};
use crate::stream::header::{BoundKind, Header};

/// A relative bound and how it is coded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RelativeCoding {
    pub relative: f64,
    /// The floor of the bound; 0 for none.
    pub floor: f64,
    /// The unit of the mapping.
    pub unit: f64,
}

impl RelativeCoding {
    /// The mapping of values to coded ones.
    pub(crate) fn mapping(self) -> Mapping {
        Mapping {
            unit: self.unit,
            // Below its unit, the mapping is not within a bound whose floor is lower, except for zeros.
            snaps: self.floor < self.unit,
        }
    }
}

/// How decoded values are made of coded ones. The default: they are the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prelude<'a> {
    pub relative: Option<RelativeCoding>,
    /// Values of a relative bound that are stored bit for bit.
    pub exceptions: &'a [u8],
    /// The bits of the smallest value.
    pub minimum: Option<u64>,
}

impl<'a> Prelude<'a> {
    /// The kind of a stream whose coded values have such an absolute bound.
    pub(crate) fn kind(&self, bound: f64) -> BoundKind {
        match self.relative {
            _ if bound == 0.0 => BoundKind::Lossless,
            Some(_) => BoundKind::Mapped,
            None => BoundKind::Absolute,
        }
    }

    /// Appends the bytes.
    pub(crate) fn write(&self, value_size: usize, out: &mut Vec<u8>) {
        if let Some(coding) = self.relative {
            for number in [coding.relative, coding.floor, coding.unit] {
                out.extend(number.to_le_bytes());
            }
            write_number(self.exceptions.len() as u64, out);
            out.extend_from_slice(self.exceptions);
        }
        if let Some(minimum) = self.minimum {
            out.extend_from_slice(&minimum.to_le_bytes()[..value_size]);
        }
    }

    /// Reads the bytes that the header calls for.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn parse(header: &Header, cursor: &mut Cursor<'a>) -> Result<Self> {
        let mut prelude = Self::default();
        if header.bound == BoundKind::Mapped {
            let mut number = || cursor.word().map(f64::from_bits);
            let (relative, floor, unit) = (number()?, number()?, number()?);
            let is_valid = relative > 0.0
                && relative < 1.0
                && floor >= 0.0
                && floor.is_finite()
                && unit >= f64::MIN_POSITIVE
                && unit.is_finite();
            if !is_valid {
                return Err(Corrupt("the stream's relative error bound is invalid"));
            }
            prelude.relative = Some(RelativeCoding {
                relative,
                floor,
                unit,
            });
            let length = cursor.number_to(cursor.0.len())?;
            prelude.exceptions = cursor.bytes(length)?;
        }
        if header.is_clamped {
            let mut word = [0; 8];
            word[..header.value_size].copy_from_slice(cursor.bytes(header.value_size)?);
            prelude.minimum = Some(u64::from_le_bytes(word));
        }
        Ok(prelude)
    }

    /// The bound of the values, whose coded values have this absolute bound.
    pub(crate) fn bound(&self, coded: f64) -> ErrorBound {
        match self.relative {
            None => ErrorBound::from(coded),
            Some(RelativeCoding {
                relative, floor, ..
            }) if floor > 0.0 => ErrorBound::RelativeAbove { relative, floor },
            Some(RelativeCoding { relative, .. }) => ErrorBound::Relative(relative),
        }
    }

    /// The smallest value, if it is stored.
    pub(crate) fn minimum_of(&self, value_size: usize) -> Option<f64> {
        let minimum = self.minimum?;
        Some(match value_size {
            4 => f64::from(f32::from_bits(minimum as u32)),
            _ => f64::from_bits(minimum),
        })
    }

    /// Makes decoded values of coded ones.
    ///
    /// # Errors
    /// `Corrupt` where an exception is outside of the values.
    pub(crate) fn apply<T: Element>(&self, values: &mut [T]) -> Result<()> {
        self.apply_to_points(values);
        if self.exceptions.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor(self.exceptions);
        exceptions::read(&mut cursor, values)?;
        if cursor.0.is_empty() {
            Ok(())
        } else {
            Err(Corrupt(
                "bytes follow the last exception of a relative bound",
            ))
        }
    }

    /// The part of [`apply`](Self::apply) that does not depend on where values are.
    pub(crate) fn apply_to_points<T: Element>(&self, values: &mut [T]) {
        if let Some(coding) = self.relative {
            let mapping = coding.mapping();
            for value in &mut *values {
                *value = mapping.decode(*value);
            }
        }
        if let Some(minimum) = self.minimum {
            let minimum = T::from_word(minimum);
            for value in values {
                // NaN stays.
                *value = if *value < minimum { minimum } else { *value };
            }
        }
    }
}
