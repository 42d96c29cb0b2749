//! Error bounds of the fields of a group.

use crate::codec::Profile;
use crate::dtype::DataType;
use crate::error::{Error, Result};

mod field;
mod target;

pub use ambar_codec::ErrorBound;
pub use field::{FieldBounds, Selected};
pub(crate) use field::{looser, stricter};
pub use target::{BoundBox, BoundPart, BoundTarget, missing_target};

/// Parses an error bound.
///
/// # Errors
/// `Invalid`, with the valid forms.
pub fn parse(text: &str) -> Result<ErrorBound> {
    text.parse()
        .map_err(|error: ambar_codec::InvalidBound| Error::invalid(error.to_string()))
}

/// The range of decoded values, `count` of which range from `low` to `high` before they are encoded.
pub(crate) fn widened(bound: ErrorBound, [low, high]: [f64; 2], count: usize) -> [f64; 2] {
    if low > high {
        return [low, high];
    }
    let margin = |x: f64| match bound {
        ErrorBound::Absolute(bound) => bound,
        ErrorBound::Relative(relative) => relative * x.abs(),
        ErrorBound::RelativeAbove { relative, floor } => relative * x.abs().max(floor),
        ErrorBound::Bits(bits) => {
            0.5f64.powi(bits as i32 + 1) * x.abs().max(f64::from(f32::MIN_POSITIVE))
        }
        ErrorBound::Rms(root) => root * (count as f64).sqrt(),
        ErrorBound::Lossless | ErrorBound::OfRange(_) | ErrorBound::Psnr(_) => 0.0,
    };
    let (below, above) = (margin(low), margin(high));
    // Rounds outwards, except for a margin of 0.
    let outwards = |margin: f64| {
        if margin > 0.0 {
            margin.next_up()
        } else {
            margin
        }
    };
    match bound {
        ErrorBound::Lossless | ErrorBound::Absolute(_) => [low - below, high + above],
        _ => [
            (low - outwards(below)).next_down(),
            (high + outwards(above)).next_up(),
        ],
    }
}

/// How the fields of a group are to be compressed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compression {
    /// The profile for lossless fields.
    pub profile: Profile,
    /// Error bounds by target, as [`BoundTarget`] parses it: the name of a field, or a pattern that matches fields of
    /// float32 and float64, optionally with levels or a box. The most specific name applies.
    pub error_bounds: Vec<(String, ErrorBound)>,
}

impl From<Profile> for Compression {
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            error_bounds: Vec::new(),
        }
    }
}

impl Compression {
    /// The bounds, their targets parsed.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn rules(&self) -> Result<Vec<(BoundTarget, ErrorBound)>> {
        let bounds = self.error_bounds.iter();
        bounds
            .map(|(target, bound)| Ok((target.parse()?, *bound)))
            .collect()
    }

    /// The bounds of a field.
    ///
    /// # Errors
    /// `Invalid` if the field is named, but its values are not floats; if bounds cannot be compared.
    pub fn bounds(&self, field: &str, dtype: &DataType) -> Result<FieldBounds> {
        let selected = FieldBounds::select(&self.rules()?, &[field])?;
        if matches!(dtype, DataType::Float32 | DataType::Float64) {
            return Ok(selected.bounds.unwrap_or(ErrorBound::Lossless.into()));
        }
        match selected.bounds {
            Some(bounds) if selected.is_named && !bounds.loosest().is_lossless() => {
                Err(Error::invalid(format!(
                    "expected an error bound of float32 or float64 values, found {field:?} of {dtype}; remove the bound"
                )))
            }
            _ => Ok(ErrorBound::Lossless.into()),
        }
    }

    /// Checks that the field of every bound exists, except of `*`.
    ///
    /// # Errors
    /// `NotFound`, with the available fields; `Invalid`.
    pub fn check_names(&self, fields: &[String]) -> Result<()> {
        let known: Vec<&str> = fields.iter().map(String::as_str).collect();
        for (target, _) in self.rules()? {
            if target.name != "*" && !target.applies_to(&known) {
                return Err(missing_target("such a field", &target.name, &known));
            }
        }
        Ok(())
    }

    /// Checks that boxes have `ndim` dimensions, and that the levels of every bound overlap `levels`, the first and the
    /// last one; `None` for rows, which have no levels. Ranges without an end, such as `@3:`, are valid before a run has
    /// these levels.
    ///
    /// # Errors
    /// `Invalid`; `NotFound`, with the available levels.
    pub fn check_parts(&self, ndim: usize, levels: Option<[u64; 2]>) -> Result<()> {
        for (target, _) in self.rules()? {
            check_part(&target, ndim, levels)?;
        }
        Ok(())
    }
}

fn check_part(target: &BoundTarget, ndim: usize, levels: Option<[u64; 2]>) -> Result<()> {
    let text = format!("{}{}", target.name, target.part);
    if let Some(BoundBox(sides)) = &target.part.region
        && sides.len() != ndim
    {
        let expected = match ndim {
            0 => "no box, because rows of this table have no positions".to_owned(),
            ndim => format!("a box of {ndim} dimensions"),
        };
        return Err(Error::invalid(format!(
            "invalid target of an error bound: {text:?}; expected {expected}, found {} dimensions",
            sides.len()
        )));
    }
    match (target.part.levels, levels) {
        (Some(_), None) => Err(Error::invalid(format!(
            "invalid target of an error bound: {text:?}; particles and tables have no levels"
        ))),
        (Some([first, last]), Some([lowest, highest]))
            if last < lowest || (first > highest && last < u64::MAX) =>
        {
            Err(Error::not_found(format!(
                "an error bound is given for {text:?}, but such a level does not exist; levels: {lowest} to {highest}"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_widened() {
        let of = |text: &str, range| widened(parse(text).unwrap(), range, 4);
        assert_eq!(of("0.5", [1.0, 2.0]), [0.5, 2.5]);
        assert_eq!(of("lossless", [1.0, 2.0]), [1.0, 2.0]);
        let none = [f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(of("0.1 relative", none), none);
        let [low, high] = of("0.5 relative above 4", [1.0, 8.0]);
        assert!((-1.1..=-1.0).contains(&low) && (12.0..12.1).contains(&high));
        let [low, high] = of("1 rms", [1.0, 2.0]);
        assert!(low <= -1.0 && high >= 4.0);
    }

    #[test]
    fn a_star_stands_for_all_other_floats() {
        let bounds = [("*", 1.0), ("x", 2.0)];
        let bounds = bounds.map(|(name, bound)| (name.to_owned(), ErrorBound::Absolute(bound)));
        let compression = Compression {
            error_bounds: bounds.to_vec(),
            ..Compression::default()
        };
        let bound = |field: &str, dtype| compression.bounds(field, &dtype).map_err(|_| ());
        let absolute = |bound| Ok(FieldBounds::from(ErrorBound::Absolute(bound)));
        assert_eq!(bound("x", DataType::Float32), absolute(2.0));
        assert_eq!(bound("y", DataType::Float64), absolute(1.0));
        assert_eq!(bound("y", DataType::Int32), Ok(ErrorBound::Lossless.into()));
        assert_eq!(bound("x", DataType::Int32), Err(()));
        assert!(compression.check_names(&["y".into()]).is_err());
        assert!(compression.check_names(&["y".into(), "x".into()]).is_ok());
    }

    #[test]
    fn levels_and_boxes_are_checked() {
        let check = |target: &str, levels| {
            let compression = Compression {
                error_bounds: vec![(target.to_owned(), ErrorBound::Absolute(1.0))],
                ..Compression::default()
            };
            compression.check_parts(2, levels).is_ok()
        };
        assert!(check("x@3:", Some([1, 3])) && check("x@[0:1, 0:1]", None));
        assert!(check("x@5:", Some([1, 3])) && check("x@2:5", Some([1, 3])));
        assert!(!check("x@4", Some([1, 3])) && !check("x@4:5", Some([1, 3])));
        assert!(!check("x@0", Some([1, 3])) && !check("x@0:1", Some([2, 3])));
        assert!(!check("x@3", None) && !check("x@[0:1]", None));
    }
}
