//! Error bounds in Python: absolute ones are numbers, other kinds are strings.

use ambar::codec;
use ambar::kinds::bound::{self, BoundPart, BoundTarget, ErrorBound, FieldBounds};
use ambar::metadata;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::json::JsonObject;

/// An error bound from Python.
#[derive(Clone, Debug, FromPyObject)]
pub enum BoundInput {
    Text(String),
    Number(f64),
}

impl BoundInput {
    /// The bound, checked.
    pub fn parse(&self) -> PyResult<ErrorBound> {
        match self {
            Self::Text(text) => bound::parse(text),
            // Formatted, so that the message of an error names the number.
            Self::Number(number) => bound::parse(&format!("{number:e}")),
        }
        .or_raise()
    }
}

/// An error bound for Python.
#[derive(Clone, Debug, IntoPyObject)]
pub enum BoundOutput {
    Number(f64),
    Text(String),
}

impl From<ErrorBound> for BoundOutput {
    fn from(bound: ErrorBound) -> Self {
        match bound {
            ErrorBound::Lossless => Self::Number(0.0),
            ErrorBound::Absolute(bound) => Self::Number(bound),
            other => Self::Text(other.to_string()),
        }
    }
}

/// Checks an error bound: returns a number where it is absolute (0: lossless), else the string in its usual form.
/// With the value range of the whole array, bounds that depend on it are resolved.
#[pyfunction]
#[pyo3(signature = (bound, value_range=None))]
pub fn error_bound(bound: BoundInput, value_range: Option<[f64; 2]>) -> PyResult<BoundOutput> {
    let mut bound = bound.parse()?;
    if let Some(range) = value_range.filter(|_| bound.needs_range()) {
        bound = bound.resolve(range);
    }
    Ok(bound.into())
}

/// The bound of a part of a field.
#[pyclass(frozen, get_all, module = "ambar._core")]
pub struct PartBound {
    /// First and last level; `None` for all.
    levels: Option<(u64, u64)>,
    /// The sides of a box; `None` for the whole domain.
    region: Option<Vec<(f64, f64)>>,
    /// The field and the part, in the grammar of targets.
    target: String,
    bound: String,
}

/// Selects the bounds that apply to a field from bounds by target. `names` are the name of the field and its aliases.
/// The general bound comes last. `None` if no target matches the field.
#[pyfunction]
pub fn select_bounds(
    rules: Vec<(String, BoundInput)>,
    names: Vec<String>,
) -> PyResult<Option<Vec<PartBound>>> {
    let parse = |(target, bound): (String, BoundInput)| {
        Ok((target.parse::<BoundTarget>().or_raise()?, bound.parse()?))
    };
    let rules = rules.into_iter().map(parse).collect::<PyResult<Vec<_>>>()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let selected = FieldBounds::select(&rules, &names).or_raise()?;
    Ok(selected.bounds.map(|bounds| {
        let mut parts = bounds.parts;
        parts.push((BoundPart::default(), bounds.general));
        let part = |(part, bound): (BoundPart, ErrorBound)| {
            let sides = |region: Vec<[f64; 2]>| region.into_iter().map(Into::into).collect();
            PartBound {
                target: format!("{}{part}", names[0]),
                levels: part.levels.map(Into::into),
                region: part.region.map(|region| sides(region.0)),
                bound: bound.to_string(),
            }
        };
        parts.into_iter().map(part).collect()
    }))
}

/// Raises the error for a bound of a field that does not exist, with similar names.
#[pyfunction]
pub fn refuse_bound_of(what: &str, name: &str, known: Vec<String>) -> PyResult<()> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(bound::missing_target(what, name, &known)).or_raise()
}

/// Whether a bound depends on the value range of the whole array.
#[pyfunction]
pub fn bound_needs_range(bound: BoundInput) -> PyResult<bool> {
    Ok(bound.parse()?.needs_range())
}

/// The kind of a bound and its numbers: "lossless", "absolute", "relative" (with the floor, 0 for none), "bits",
/// "rms", "of range", "psnr".
#[pyfunction]
pub fn bound_parts(bound: BoundInput) -> PyResult<(&'static str, Vec<f64>)> {
    Ok(match bound.parse()? {
        ErrorBound::Lossless => ("lossless", vec![]),
        ErrorBound::Absolute(bound) => ("absolute", vec![bound]),
        ErrorBound::Relative(relative) => ("relative", vec![relative, 0.0]),
        ErrorBound::RelativeAbove { relative, floor } => ("relative", vec![relative, floor]),
        ErrorBound::Bits(bits) => ("bits", vec![f64::from(bits)]),
        ErrorBound::Rms(root) => ("rms", vec![root]),
        ErrorBound::OfRange(part) => ("of range", vec![part]),
        ErrorBound::Psnr(decibels) => ("psnr", vec![decibels]),
    })
}

/// The attributes that state the loss of values within a bound, in the style of the CF conventions.
#[pyfunction]
pub fn lossy_attributes(bound: BoundInput) -> PyResult<JsonObject> {
    let bound = bound.parse()?;
    Ok(JsonObject(metadata::lossy_attributes(Some(bound))))
}

/// A bound for people: its numbers have four digits, and are never smaller.
#[pyfunction]
pub fn format_bound(bound: BoundInput) -> PyResult<String> {
    Ok(codec::format_bound(bound.parse()?))
}
