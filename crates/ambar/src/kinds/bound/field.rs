//! The error bounds of one field: a general bound, and bounds for levels and boxes.

use std::fmt;
use std::str::FromStr;

use ambar_codec::ErrorBound;

use super::target::{BoundPart, BoundTarget, specificity};
use crate::error::{Error, Result};
use crate::metadata::Attributes;

/// The error bounds of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldBounds {
    /// The bound outside of all parts.
    pub general: ErrorBound,
    /// The bounds of parts; where they overlap, the strictest applies.
    pub parts: Vec<(BoundPart, ErrorBound)>,
}

impl From<ErrorBound> for FieldBounds {
    fn from(general: ErrorBound) -> Self {
        let parts = Vec::new();
        Self { general, parts }
    }
}

/// Parses a list such as `1e-3 relative, @2:=1e-4 relative, @[0.2:0.4, :, :]=0`: the bound of the field, and bounds of
/// levels and boxes. A field without a bound of its own is lossless elsewhere.
impl FromStr for FieldBounds {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let (mut general, mut parts) = (None, Vec::new());
        for item in split_outside_boxes(given) {
            if !item.starts_with('@') {
                if general.replace(super::parse(item)?).is_some() {
                    return Err(Error::invalid(format!(
                        "invalid error bounds of a field: {given:?}; expected one bound without @, found two. Write \
                         \"BOUND, @2:=BOUND, @[0.2:0.4, :, :]=BOUND\""
                    )));
                }
                continue;
            }
            let (part, bound) = item.split_once('=').ok_or_else(|| {
                Error::invalid(format!(
                    "invalid error bounds of a field: {given:?}; {item:?} has no bound. Write @2:=BOUND or \
                     @[0.2:0.4, :, :]=BOUND"
                ))
            })?;
            parts.push((part.trim().parse()?, super::parse(bound.trim())?));
        }
        let general = general.unwrap_or(ErrorBound::Lossless);
        Ok(Self { general, parts })
    }
}

impl fmt::Display for FieldBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.general)?;
        let mut parts = self.parts.iter();
        parts.try_for_each(|(part, bound)| write!(f, ", {part}={bound}"))
    }
}

/// The items of a list separated by commas, except those in boxes.
fn split_outside_boxes(list: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let items = list.split(move |c: char| {
        is_inside = match c {
            '[' => true,
            ']' => false,
            _ => is_inside,
        };
        c == ',' && !is_inside
    });
    items.map(str::trim)
}

impl FieldBounds {
    /// Selects the bounds of the field with these names: the most specific name or pattern applies. If it has no bound
    /// for the whole field, that of the next less specific one applies outside of the parts, or else the field is
    /// lossless there.
    ///
    /// # Errors
    /// `Invalid` for bounds that cannot be compared.
    pub fn select(rules: &[(BoundTarget, ErrorBound)], names: &[&str]) -> Result<Selected> {
        let rank = |target: &BoundTarget| {
            let ranks = names.iter().map(|name| specificity(&target.name, name));
            ranks.flatten().max()
        };
        let mut ranked: Vec<_> = rules
            .iter()
            .filter_map(|rule| Some((rank(&rule.0)?, rule)))
            .collect();
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        let Some(best) = ranked.first().map(|(rank, _)| *rank) else {
            return Ok(Selected::default());
        };
        let parts = ranked
            .iter()
            .filter(|(rank, (target, _))| *rank == best && !target.part.is_all());
        let mut wholes = ranked
            .iter()
            .filter(|(_, (target, _))| target.part.is_all());
        let general = wholes.next();
        let bounds = Self {
            general: general.map_or(ErrorBound::Lossless, |(_, (_, bound))| *bound),
            parts: parts
                .map(|(_, (target, bound))| (target.part.clone(), *bound))
                .collect(),
        };
        bounds.check(names[0])?;
        Ok(Selected {
            bounds: Some(bounds),
            is_named: best.0,
        })
    }

    /// Checks that all bounds can be compared.
    fn check(&self, name: &str) -> Result<()> {
        let mut lossy = self.all().filter(|bound| !bound.is_lossless());
        let Some(first) = lossy.next() else {
            return Ok(());
        };
        match lossy.find(|bound| class(*bound) != class(first)) {
            None => Ok(()),
            Some(other) => Err(Error::invalid(format!(
                "the error bounds of {name:?}, \"{first}\" and \"{other}\", cannot be compared; give bounds of one \
                 kind for all levels and boxes of a field"
            ))),
        }
    }

    fn all(&self) -> impl Iterator<Item = ErrorBound> {
        let parts = self.parts.iter().map(|(_, bound)| *bound);
        std::iter::once(self.general).chain(parts)
    }

    /// Whether a bound depends on the value range of the field.
    #[must_use]
    pub fn needs_range(&self) -> bool {
        self.all().any(ErrorBound::needs_range)
    }

    /// Whether a bound depends on positions.
    #[must_use]
    pub fn has_regions(&self) -> bool {
        self.parts.iter().any(|(part, _)| part.region.is_some())
    }

    /// Whether a bound depends on levels or positions.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    fn map(&self, change: impl Fn(ErrorBound) -> ErrorBound) -> Self {
        let parts = self.parts.iter();
        Self {
            general: change(self.general),
            parts: parts
                .map(|(part, bound)| (part.clone(), change(*bound)))
                .collect(),
        }
    }

    /// The bounds of a field whose finite values have this range; lossless if no value is finite.
    #[must_use]
    pub fn resolve(&self, range: [f64; 2]) -> Self {
        self.map(|bound| bound.resolve(range))
    }

    /// The same parts, all lossless.
    #[must_use]
    pub fn lossless(&self) -> Self {
        self.map(|_| ErrorBound::Lossless)
    }

    /// The loosest bound of any part of the field.
    #[must_use]
    pub fn loosest(&self) -> ErrorBound {
        let parts = self.parts.iter().map(|(_, bound)| *bound);
        parts.fold(self.general, looser)
    }

    /// The strictest bound of any part of the field.
    #[must_use]
    pub fn strictest(&self) -> ErrorBound {
        let parts = self.parts.iter().map(|(_, bound)| *bound);
        parts.fold(self.general, stricter)
    }

    /// The bounds, with numbers limited to `most`.
    #[must_use]
    pub fn limited(&self, most: f64) -> Self {
        self.map(|bound| match bound {
            ErrorBound::Absolute(x) => ErrorBound::from(x.min(most)),
            ErrorBound::Rms(x) if x > most => match most > 0.0 {
                true => ErrorBound::Rms(most),
                false => ErrorBound::Lossless,
            },
            ErrorBound::Relative(x) if x > most => from_relative(most, 0.0),
            ErrorBound::RelativeAbove { relative, floor } if relative > most => {
                from_relative(most, floor)
            }
            other => other,
        })
    }

    /// The bounds on one level: a general bound, and boxes.
    #[must_use]
    pub fn on_level(&self, level: u64) -> Self {
        let parts = self.parts.iter();
        let mut parts: Vec<(BoundPart, ErrorBound)> = parts
            .filter(|(part, _)| part.has_level(Some(level)))
            .cloned()
            .collect();
        for (part, _) in &mut parts {
            part.levels = None;
        }
        let everywhere = parts.iter().filter(|(part, _)| part.is_all());
        let everywhere = everywhere.map(|(_, bound)| *bound).reduce(stricter);
        if let Some(bound) = everywhere {
            // Cells in a box have two bounds, of which the stricter applies.
            for (_, other) in &mut parts {
                *other = stricter(*other, bound);
            }
        }
        parts.retain(|(part, _)| !part.is_all());
        Self {
            general: everywhere.unwrap_or(self.general),
            parts,
        }
    }

    /// The strictest bound of a cell with these corners; `level` is `None` for points.
    #[must_use]
    pub fn within(&self, level: Option<u64>, lower: &[f64; 3], upper: &[f64; 3]) -> ErrorBound {
        let (mut strictest, mut is_covered) = (None, false);
        for (part, bound) in &self.parts {
            let region = part.region.as_ref();
            if part.has_level(level) && region.is_none_or(|region| region.touches(lower, upper)) {
                strictest = Some(strictest.map_or(*bound, |other| stricter(other, *bound)));
                is_covered |= region.is_none_or(|region| region.contains(lower, upper));
            }
        }
        match strictest {
            Some(bound) if is_covered => bound,
            Some(bound) => stricter(bound, self.general),
            None => self.general,
        }
    }

    /// The given bounds, by target.
    #[must_use]
    pub fn to_json(&self, field: &str) -> Attributes {
        let parts = self.parts.iter();
        let parts = parts.map(|(part, bound)| (format!("{field}{part}"), bound.to_string().into()));
        let mut asked: Attributes = parts.collect();
        if !self.general.is_lossless() || asked.is_empty() {
            asked.insert(field.to_owned(), self.general.to_string().into());
        }
        asked
    }

    /// The bounds with their targets, as in `Compression`.
    #[must_use]
    pub fn named(&self, field: &str) -> Vec<(String, ErrorBound)> {
        let parts = self.parts.iter();
        let parts = parts.map(|(part, bound)| (format!("{field}{part}"), *bound));
        parts.chain([(field.to_owned(), self.general)]).collect()
    }
}

/// The bounds selected for a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// `None` if no name or pattern matches the field.
    pub bounds: Option<FieldBounds>,
    /// Whether the field was named, not matched by a pattern.
    pub is_named: bool,
}

/// Bounds of one class are comparable.
fn class(bound: ErrorBound) -> u8 {
    match bound {
        ErrorBound::Lossless => 0,
        ErrorBound::Absolute(_) | ErrorBound::OfRange(_) => 1,
        ErrorBound::Relative(_) | ErrorBound::RelativeAbove { .. } => 2,
        ErrorBound::Bits(_) => 3,
        ErrorBound::Rms(_) | ErrorBound::Psnr(_) => 4,
    }
}

/// A relative bound, and the absolute error that it permits for values below its floor.
fn relative(bound: ErrorBound) -> Option<[f64; 2]> {
    match bound {
        ErrorBound::Relative(relative) => Some([relative, 0.0]),
        ErrorBound::RelativeAbove { relative, floor } => Some([relative, relative * floor]),
        _ => None,
    }
}

fn from_relative(relative: f64, floor: f64) -> ErrorBound {
    if relative <= 0.0 {
        ErrorBound::Lossless
    } else if floor > 0.0 {
        ErrorBound::RelativeAbove { relative, floor }
    } else {
        ErrorBound::Relative(relative)
    }
}

/// The stricter of two bounds of one class.
pub(crate) fn stricter(a: ErrorBound, b: ErrorBound) -> ErrorBound {
    use ErrorBound::{Absolute, Bits, Lossless, OfRange, Psnr, Rms};
    match (a, b) {
        _ if a == b => a,
        (Absolute(x), Absolute(y)) => Absolute(x.min(y)),
        (Rms(x), Rms(y)) => Rms(x.min(y)),
        (OfRange(x), OfRange(y)) => OfRange(x.min(y)),
        (Psnr(x), Psnr(y)) => Psnr(x.max(y)),
        (Bits(x), Bits(y)) => Bits(x.max(y)),
        _ => match (relative(a), relative(b)) {
            (Some([x, least_x]), Some([y, least_y])) => {
                let least = x.min(y);
                from_relative(least, (least_x.min(least_y) / least).next_down())
            }
            _ => Lossless,
        },
    }
}

/// The looser of two bounds of one class.
pub(crate) fn looser(a: ErrorBound, b: ErrorBound) -> ErrorBound {
    use ErrorBound::{Absolute, Bits, Lossless, OfRange, Psnr, Rms};
    match (a, b) {
        _ if a == b => a,
        (Lossless, other) | (other, Lossless) => other,
        (Absolute(x), Absolute(y)) => Absolute(x.max(y)),
        (Rms(x), Rms(y)) => Rms(x.max(y)),
        (OfRange(x), OfRange(y)) => OfRange(x.max(y)),
        (Psnr(x), Psnr(y)) => Psnr(x.min(y)),
        (Bits(x), Bits(y)) => Bits(x.min(y)),
        _ => match (relative(a), relative(b)) {
            (Some([x, least_x]), Some([y, least_y])) => {
                let most = x.max(y);
                match least_x.max(least_y) / most {
                    0.0 => ErrorBound::Relative(most),
                    floor => from_relative(most, floor.next_up()),
                }
            }
            _ => a,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(given: &[(&str, &str)]) -> Vec<(BoundTarget, ErrorBound)> {
        let rule =
            |(target, bound): &(&str, &str)| (target.parse().unwrap(), bound.parse().unwrap());
        given.iter().map(rule).collect()
    }

    fn selected(given: &[(&str, &str)], field: &str) -> FieldBounds {
        let selected = FieldBounds::select(&rules(given), &[field]).unwrap();
        selected.bounds.unwrap()
    }

    #[test]
    fn the_most_specific_name_wins() {
        let given = [("*", "1"), ("v*", "2"), ("vx@3:", "0.5"), ("*@1", "0.1")];
        assert_eq!(
            selected(&given, "p").within(Some(1), &[0.0; 3], &[0.0; 3]),
            ErrorBound::Absolute(0.1)
        );
        assert_eq!(selected(&given, "vy"), ErrorBound::Absolute(2.0).into());
        let vx = selected(&given, "vx");
        assert_eq!(vx.general, ErrorBound::Absolute(2.0));
        assert_eq!(vx.on_level(3), ErrorBound::Absolute(0.5).into());
        assert_eq!(vx.on_level(1), ErrorBound::Absolute(2.0).into());
        let none = FieldBounds::select(&rules(&given[1..3]), &["p"]).unwrap();
        assert_eq!(none, Selected::default());
    }

    #[test]
    fn the_strictest_part_applies_to_a_cell() {
        let given = [
            ("p", "1"),
            ("p@2:", "0.5"),
            ("p@[0:1, 0:1]", "0.25"),
            ("p@3@[0:0.5, :]", "2"),
        ];
        let bounds = selected(&given, "p");
        let at = |level, lower: f64, upper: f64| match bounds.within(
            level,
            &[lower, lower, 0.0],
            &[upper, upper, 0.0],
        ) {
            ErrorBound::Absolute(bound) => bound,
            other => panic!("{other:?}"),
        };
        assert_eq!(at(Some(0), 2.0, 3.0), 1.0);
        assert_eq!(at(Some(2), 2.0, 3.0), 0.5);
        assert_eq!(at(Some(2), 0.5, 0.75), 0.25);
        assert_eq!(at(Some(0), 0.5, 3.0), 0.25);
        assert_eq!(at(None, 0.5, 0.5), 0.25);
        assert_eq!(bounds.loosest(), ErrorBound::Absolute(2.0));
        assert_eq!(bounds.on_level(3).loosest(), ErrorBound::Absolute(0.5));
    }

    #[test]
    fn bounds_of_two_kinds_are_refused() {
        let given = rules(&[("p", "1e-3 relative"), ("p@3", "0.1")]);
        let error = FieldBounds::select(&given, &["p"]).unwrap_err().to_string();
        assert!(error.contains("cannot be compared"), "{error}");
        let given = [
            ("p", "1e-3 relative"),
            ("p@3", "1e-2 relative above 10"),
            ("p@4", "0"),
        ];
        let bounds = selected(&given, "p");
        assert_eq!(bounds.on_level(4), ErrorBound::Lossless.into());
        let loosest = bounds.loosest();
        for (x, y) in [(1.0, 1.05), (100.0, 100.9), (1e-5, 0.09)] {
            assert!(loosest.is_satisfied(x, y), "{x} {y} {loosest:?}");
        }
        let strictest = stricter(
            "1e-3 relative above 100".parse().unwrap(),
            "1e-2 relative above 1".parse().unwrap(),
        );
        let ErrorBound::RelativeAbove { relative, floor } = strictest else {
            panic!("{strictest:?}");
        };
        assert!(relative == 1e-3 && (9.99..=10.0).contains(&floor));
    }

    #[test]
    fn bounds_of_one_field_are_a_list() {
        let list = "1e-3 relative, @2:=1e-4 relative,@1 @[0.2:0.4, :, :0.5] = 0";
        let bounds: FieldBounds = list.parse().unwrap();
        let given = [
            ("p", "1e-3 relative"),
            ("p@2:", "1e-4 relative"),
            ("p@1@[0.2:0.4, :, :0.5]", "0"),
        ];
        assert_eq!(bounds, selected(&given, "p"));
        assert_eq!(bounds.to_string().parse::<FieldBounds>().unwrap(), bounds);
        let part: FieldBounds = "@1=0.5".parse().unwrap();
        assert_eq!(part.general, ErrorBound::Lossless);
        for (wrong, reason) in [
            ("", "invalid error bound"),
            ("1, 2", "found two"),
            ("1, @2", "has no bound"),
            ("1, @x=2", "is not a level"),
            ("1, @[0:1=2", "is not a box"),
            ("1, @2=2 percent", "invalid error bound"),
            ("1,", "invalid error bound"),
        ] {
            let error = wrong.parse::<FieldBounds>().unwrap_err().to_string();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }

    #[test]
    fn bounds_are_written_as_they_were_asked_for() {
        let given = [("p", "1e-3 of range"), ("p@3:", "1e-4 of range")];
        let bounds = selected(&given, "p");
        let json = serde_json::Value::Object(bounds.to_json("p"));
        assert_eq!(
            json,
            serde_json::json!({"p": "1e-3 of range", "p@3:": "1e-4 of range"})
        );
        assert_eq!(
            bounds.resolve([0.0, 10.0]).loosest(),
            ErrorBound::Absolute(0.01)
        );
    }
}
