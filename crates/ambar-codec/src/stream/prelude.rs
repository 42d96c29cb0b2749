//! The prelude of a stream, between the header and the description of the coded values: how values are computed
//! from coded values (`docs/format.md`, 7.13).

use crate::bound::ErrorBound;
use crate::bound::mapping::Mapping;
use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::entropy::exceptions;
use crate::error::{Result, corrupt};
use crate::stream::header::{BoundKind, Header};

/// A relative bound, and the unit of the mapping that makes it absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RelativeCoding {
    pub relative: f64,
    /// The floor of the bound; 0 if it has no floor.
    pub floor: f64,
    /// The unit of the mapping.
    pub unit: f64,
}

impl RelativeCoding {
    /// The mapping between values and coded values.
    pub(crate) fn mapping(self) -> Mapping {
        Mapping {
            unit: self.unit,
            // Below its unit, the mapping breaks a bound whose floor is lower, except for zeros.
            snaps_to_zero: self.floor < self.unit,
        }
    }
}

/// How values are computed from coded values. By default, they are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prelude<'a> {
    pub relative: Option<RelativeCoding>,
    /// Values of a relative bound that are stored bit for bit.
    pub exceptions: &'a [u8],
    /// The bits of the smallest value.
    pub minimum: Option<u64>,
    /// The number of components, if they are coded one after another.
    pub components: Option<usize>,
}

impl<'a> Prelude<'a> {
    /// The kind of bound of a stream whose coded values have this absolute bound.
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
        if let Some(components) = self.components {
            write_number(components as u64, out);
        }
    }

    /// Reads the parts that the header announces.
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
                return Err(corrupt!(
                    "invalid relative error bound {relative:e} with floor {floor:e} and unit {unit:e}"
                ));
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
        if header.has_components {
            let components = cursor.number_to(usize::MAX)?;
            if components < 2 {
                return Err(corrupt!(
                    "the stream has {components} components; expected at least 2"
                ));
            }
            prelude.components = Some(components);
        }
        Ok(prelude)
    }

    /// The bound of the values if the coded values have this absolute bound.
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

    /// Replaces coded values by values, in the order of coding.
    ///
    /// # Errors
    /// `Corrupt` if the index of an exception is out of range.
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
            Err(corrupt!(
                "expected the end of the exceptions of a relative bound; found {} more bytes",
                cursor.0.len()
            ))
        }
    }

    /// As [`apply`](Self::apply), without exceptions, whose indices count all values of a stream.
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
                // NaN is not below the minimum.
                *value = if *value < minimum { minimum } else { *value };
            }
        }
    }
}
