//! Run information of a plotfile: time, steps and text files.

use std::collections::BTreeMap;

use ambar::kinds::amr::patches::PatchHierarchy;
use serde::{Deserialize, Serialize};

use crate::amrex::files::header::{HeaderLevel, PlotfileHeader};

/// Run information of a plotfile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The format's name, such as `HyperCLaw-V1.1`.
    pub version: String,
    /// The run's time, in its own units.
    #[serde(with = "real")]
    pub time: f64,
    /// 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i64,
    /// Width of the boundary data; 0.
    pub boundary: i64,
    /// Step and time of each level, the coarsest first. Further levels have step 0 and the run's time.
    pub levels: Vec<RunLevel>,
    /// The text of `Header` after the last level.
    pub rest: String,
    /// The other text files in the plotfile's folder, by name.
    pub text_files: BTreeMap<String, String>,
    /// The names in `Header` of the fields that are stored under another name; see `field_names`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
}

/// Step and time of a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLevel {
    /// The level's number of steps.
    pub step: i64,
    /// The same number, in the part of `Header` about this level.
    pub own_step: i64,
    /// The level's time.
    #[serde(with = "real")]
    pub time: f64,
}

impl Default for RunInfo {
    fn default() -> Self {
        Self {
            version: "HyperCLaw-V1.1".into(),
            time: 0.0,
            coordinates: 0,
            boundary: 0,
            levels: Vec::new(),
            rest: String::new(),
            text_files: BTreeMap::new(),
            renamed: BTreeMap::new(),
        }
    }
}

impl RunInfo {
    /// The name of a field in `Header`.
    fn original<'a>(&'a self, field: &'a String) -> &'a String {
        self.renamed.get(field).unwrap_or(field)
    }
}

/// Builds a `Header`.
pub fn build_header(
    hierarchy: &PatchHierarchy,
    fields: &[String],
    run: &RunInfo,
    paths: &[String],
) -> PlotfileHeader {
    let each = hierarchy.levels.iter().zip(paths).enumerate();
    let levels = each.map(|(number, (level, path))| {
        let own = run.levels.get(number);
        HeaderLevel {
            domain: level.domain,
            cell_size: level.cell_size,
            step: own.map_or(0, |own| own.step),
            time: own.map_or(run.time, |own| own.time),
            own_step: own.map_or(0, |own| own.own_step),
            boxes: level.boxes.len(),
            path: if fields.is_empty() {
                String::new()
            } else {
                path.clone()
            },
        }
    });
    let finest = hierarchy.levels.len().saturating_sub(1);
    PlotfileHeader {
        version: run.version.clone(),
        fields: fields
            .iter()
            .map(|field| run.original(field).clone())
            .collect(),
        ndim: hierarchy.ndim,
        time: run.time,
        lower: hierarchy.lower,
        upper: hierarchy.upper,
        ratios: hierarchy
            .levels
            .iter()
            .take(finest)
            .map(|level| level.ratio)
            .collect(),
        coordinates: run.coordinates,
        boundary: run.boundary,
        levels: levels.collect(),
        rest: run.rest.clone(),
    }
}

/// Reals in JSON; numbers that are not finite are strings.
mod real {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(f64),
        Text(String),
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        crate::amrex::files::number_text::json(*value).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(number),
            Value::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}
