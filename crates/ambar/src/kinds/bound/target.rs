//! The targets of error bounds: fields by name or pattern, optionally on some levels or in a box.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, distance, hint, is_similar};

/// The target of an error bound, such as `density`, `velocity_*`,
/// `density@8:` or `density@[0.2:0.4, 0.2:0.4, 0.2:0.4]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundTarget {
    /// A field's name, or a pattern in which each `*` matches any characters.
    pub name: String,
    /// The cells or particles of the field.
    pub part: BoundPart,
}

/// A part of a field: levels, a box, or both; all of it by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundPart {
    /// The first and the last level.
    pub levels: Option<[u64; 2]>,
    /// The box.
    pub region: Option<BoundBox>,
}

/// A box in code coordinates: lower and upper end in each dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundBox(pub Vec<[f64; 2]>);

impl FromStr for BoundTarget {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let invalid = |reason: String| {
            Error::invalid(format!(
                "invalid target of an error bound: {given:?}; {reason}. Write NAME, NAME@5 (a level), NAME@5: or \
                 NAME@5:8 (levels), or NAME@[0.2:0.4, 0.2:0.4, 0.2:0.4] (a box)"
            ))
        };
        let mut pieces = given.split('@').map(str::trim);
        let name = pieces.next().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(invalid("the name is missing".into()));
        }
        let part = parse_part(pieces).map_err(invalid)?;
        Ok(Self { name, part })
    }
}

impl FromStr for BoundPart {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let invalid = |reason: String| {
            Error::invalid(format!(
                "invalid part of a field: {given:?}; {reason}. Write @5 (a level), @5: or @5:8 (levels), or \
                 @[0.2:0.4, 0.2:0.4, 0.2:0.4] (a box)"
            ))
        };
        let mut pieces = given.split('@').map(str::trim);
        if pieces.next() != Some("") {
            return Err(invalid("expected @ first".into()));
        }
        parse_part(pieces).map_err(invalid)
    }
}

/// Parses levels and a box; the error is the reason.
fn parse_part<'a>(pieces: impl Iterator<Item = &'a str>) -> std::result::Result<BoundPart, String> {
    let mut part = BoundPart::default();
    for piece in pieces {
        let is_new = match piece.strip_prefix('[') {
            Some(inside) => {
                let region = inside
                    .strip_suffix(']')
                    .and_then(parse_box)
                    .ok_or_else(|| format!("{piece:?} is not a box"))?;
                part.region.replace(region).is_none()
            }
            None => {
                let levels =
                    parse_levels(piece).ok_or_else(|| format!("{piece:?} is not a level"))?;
                part.levels.replace(levels).is_none()
            }
        };
        if !is_new {
            return Err("expected levels and a box at most once".into());
        }
    }
    Ok(part)
}

fn parse_levels(text: &str) -> Option<[u64; 2]> {
    let end = |text: &str, default: u64| match text.trim() {
        "" => Some(default),
        number => number.parse().ok(),
    };
    let levels = match text.split_once(':') {
        Some((first, last)) => [end(first, 0)?, end(last, u64::MAX)?],
        None => [text.parse().ok()?; 2],
    };
    (levels[0] <= levels[1]).then_some(levels)
}

fn parse_box(text: &str) -> Option<BoundBox> {
    let end = |text: &str, default: f64| match text.trim() {
        "" => Some(default),
        number => number.parse().ok(),
    };
    let side = |text: &str| {
        let (lower, upper) = text.split_once(':')?;
        let side = [end(lower, f64::NEG_INFINITY)?, end(upper, f64::INFINITY)?];
        (side[0] <= side[1]).then_some(side)
    };
    let sides: Option<Vec<[f64; 2]>> = text.split(',').map(side).collect();
    sides
        .filter(|sides| (1..=3).contains(&sides.len()))
        .map(BoundBox)
}

impl fmt::Display for BoundPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.levels {
            None => {}
            Some([first, last]) if first == last => write!(f, "@{first}")?,
            Some([first, u64::MAX]) => write!(f, "@{first}:")?,
            Some([first, last]) => write!(f, "@{first}:{last}")?,
        }
        if let Some(BoundBox(sides)) = &self.region {
            let end = |end: f64| match end.is_finite() {
                true => end.to_string(),
                false => String::new(),
            };
            let sides = sides
                .iter()
                .map(|[a, b]| format!("{}:{}", end(*a), end(*b)));
            write!(f, "@[{}]", sides.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

impl BoundPart {
    /// Whether the part is the whole field.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.levels.is_none() && self.region.is_none()
    }

    /// Whether the part can contain cells of a level; `None` for points, which have no level.
    #[must_use]
    pub fn has_level(&self, level: Option<u64>) -> bool {
        let (Some([first, last]), Some(level)) = (self.levels, level) else {
            return self.levels.is_none();
        };
        (first..=last).contains(&level)
    }
}

impl BoundBox {
    /// Whether the boxes have a point in common; both contain their upper ends.
    #[must_use]
    pub fn touches(&self, lower: &[f64; 3], upper: &[f64; 3]) -> bool {
        let mut sides = self.0.iter().zip(lower.iter().zip(upper));
        sides.all(|([first, last], (lower, upper))| lower <= last && upper >= first)
    }

    /// Whether the box contains another box.
    #[must_use]
    pub fn contains(&self, lower: &[f64; 3], upper: &[f64; 3]) -> bool {
        let mut sides = self.0.iter().zip(lower.iter().zip(upper));
        sides.all(|([first, last], (lower, upper))| first <= lower && upper <= last)
    }
}

impl BoundTarget {
    /// Whether the target applies to a field with any of these names.
    #[must_use]
    pub fn applies_to(&self, names: &[&str]) -> bool {
        let mut names = names.iter();
        names.any(|name| specificity(&self.name, name).is_some())
    }
}

/// The specificity of a pattern that matches a name, larger for more specific ones; `None` if it does not match.
pub(crate) fn specificity(pattern: &str, name: &str) -> Option<(bool, usize)> {
    if pattern == name {
        return Some((true, name.len()));
    }
    if !pattern.contains('*') || pattern.contains('/') != name.contains('/') {
        return None;
    }
    let mut pieces = pattern.split('*');
    let mut rest = name.strip_prefix(pieces.next()?)?;
    let last = pieces.next_back()?;
    for piece in pieces {
        rest = &rest[rest.find(piece)? + piece.len()..];
    }
    rest.ends_with(last)
        .then(|| (false, pattern.chars().filter(|c| *c != '*').count()))
}

/// The error for a bound of a field that does not exist; lists similar names and the available ones.
pub fn missing_target(what: &str, name: &str, known: &[&str]) -> Error {
    let short = name.rsplit('/').next().unwrap_or(name);
    let mut close: Vec<(usize, &str)> = known
        .iter()
        .map(|other| {
            let own = other.rsplit('/').next().unwrap_or(other);
            (distance(name, other).min(distance(short, own)), *other)
        })
        .filter(|(distance, _)| is_similar(*distance, short))
        .collect();
    close.sort_by_key(|(distance, _)| *distance);
    let close: Vec<&str> = close.into_iter().take(3).map(|(_, name)| name).collect();
    Error::not_found(format!(
        "an error bound is given for {name:?}, but {what} does not exist; {}available: {}",
        hint(&close),
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_and_written_back() {
        for (text, written) in [
            ("density", "density"),
            ("velocity_*@5", "velocity_*@5"),
            ("rho@5:", "rho@5:"),
            ("rho@:5", "rho@0:5"),
            ("rho @ 3:5", "rho@3:5"),
            ("rho@[0:0.5,:1,2:]", "rho@[0:0.5, :1, 2:]"),
            ("rho@[0.25:1]@7", "rho@7@[0.25:1]"),
        ] {
            let target: BoundTarget = text.parse().unwrap();
            assert_eq!(format!("{}{}", target.name, target.part), written);
        }
        for wrong in [
            "",
            "@5",
            "rho@",
            "rho@x",
            "rho@5:3",
            "rho@-1",
            "rho@1@2",
            "rho@[]",
            "rho@[1]",
            "rho@[2:1]",
            "rho@[0:1,0:1,0:1,0:1]",
            "rho@[a:b]",
            "rho@[0:1",
        ] {
            assert!(wrong.parse::<BoundTarget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_specific_name_is_found() {
        let rank = |pattern| specificity(pattern, "velocity_x");
        assert!(rank("velocity_x") > rank("velocity_*"));
        assert!(rank("velocity_*") > rank("v*"));
        assert!(rank("v*_x") > rank("*"));
        for other in [
            "velocity_y",
            "velocity",
            "*_y",
            "x*",
            "v*_x*y",
            "*/velocity_x",
        ] {
            assert_eq!(rank(other), None, "{other}");
        }
        assert_eq!(specificity("*", "gas/mass"), None);
        assert!(specificity("gas/*", "gas/mass").is_some());
        assert_eq!(specificity("ab*ba", "aba"), None);
    }

    #[test]
    fn errors_name_close_matches() {
        let error = missing_target("such a field", "densty", &["density", "pressure"]).to_string();
        assert!(error.contains("did you mean density?"), "{error}");
        let error = missing_target("such a field", "xyz", &["density", "pressure"]).to_string();
        assert!(
            error.ends_with("exist; available: density, pressure"),
            "{error}"
        );
    }
}
