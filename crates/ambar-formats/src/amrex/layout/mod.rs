//! The layout of a plotfile: the arrangement of its files, which does not follow from its values. With
//! it, a plotfile can be written again byte for byte.

mod of_plotfile;
pub mod run;

use std::collections::BTreeMap;

use ambar::{Error, Result};
use serde::{Deserialize, Serialize};

use super::files::cell_header::CellHeader;
use super::files::fab::Descriptor;
use run::RunInfo;

/// The layout of a plotfile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlotfileLayout {
    /// Run information.
    pub run: RunInfo,
    /// Digits of the numbers in `Header`.
    pub(super) precision: usize,
    /// The text of `Header`, if it differs from the one that current AMReX writes.
    pub(super) header: Option<String>,
    pub(super) levels: Vec<LevelLayout>,
    pub(super) species: Vec<SpeciesLayout>,
}

/// The layout of a level's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelLayout {
    /// Common prefix of the files' paths.
    pub path: String,
    /// The format of `Cell_H`.
    pub version: i64,
    /// How the files were written, as in `Cell_H`.
    pub how: i64,
    /// Names of the files.
    pub files: Vec<String>,
    /// For each box, the index in `files` of the file with its FAB.
    pub file: Vec<u32>,
    /// For each box, the position of its FAB; `None` if the FABs are consecutive in box order.
    pub offsets: Option<Vec<u64>>,
    /// For each box, whether its numbers are double precision, and whether they are little-endian; one
    /// pair if all boxes are alike.
    pub numbers: Vec<(bool, bool)>,
    /// By box, lines before FABs that differ from those that current AMReX writes.
    pub lines: BTreeMap<usize, String>,
    /// Minima and maxima in `Cell_H`, as the bytes of little-endian doubles in hexadecimal digits; `None`
    /// if they are those of the values, which are computed.
    pub extrema: Option<[String; 2]>,
    /// The text of `Cell_H`, if it differs from the one that current AMReX writes.
    pub text: Option<String>,
}

/// The layout of a species' files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeciesLayout {
    /// Name of its folder.
    pub name: String,
    /// The text of its `Header`: names of components, and positions of each grid's particles.
    pub header: String,
    /// True if its files hold integers.
    pub ints: bool,
    /// Digits of the numbers in file names.
    pub digits: usize,
    /// The `Particle_H` of each level.
    pub boxes: Vec<ParticleBoxes>,
    /// Other text files in its folder, by name.
    pub text_files: BTreeMap<String, String>,
}

/// The list of boxes in a level's `Particle_H`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ParticleBoxes {
    /// The file does not exist.
    Missing,
    /// The boxes of the level.
    Level,
    /// Another text.
    Text(String),
}

impl PlotfileLayout {
    /// The layout as JSON for `from_json`: about ten bytes per box, and 32 per box and field for minima
    /// and maxima that are not those of the values.
    ///
    /// # Errors
    /// `Invalid` if serialization fails, which does not happen for a layout of a plotfile.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::invalid(format!("cannot write the layout as JSON: {error}")))
    }

    /// Parses a layout from `to_json`. Its contents are checked on use.
    ///
    /// # Errors
    /// `Corrupt` for invalid JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| {
            Error::corrupt(format!(
                "invalid layout of a plotfile: {error}; restore the file from a copy"
            ))
        })
    }

    /// Removes minima and maxima, so that they are computed when the plotfile is written. Needed when
    /// values have changed.
    pub fn clear_extrema(&mut self) {
        for level in &mut self.levels {
            level.extrema = None;
            level.text = None;
        }
    }
}

/// Decodes `LevelLayout::extrema`; `None` if it does not hold `values` values.
pub fn from_hex(text: &str, values: usize) -> Option<Vec<f64>> {
    let digits = text.as_bytes().chunks(16);
    if text.len() != values.checked_mul(16)? || !text.is_ascii() {
        return None;
    }
    let value = |digits: &[u8]| {
        let bits = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some(f64::from_bits(bits.swap_bytes()))
    };
    digits.map(value).collect()
}

/// The parts of `Cell_H` that a layout has.
pub fn cell_header(layout: &LevelLayout, components: usize) -> CellHeader {
    CellHeader {
        version: layout.version,
        how: layout.how,
        components,
        ghosts: [0; 3],
        boxes: Vec::new(),
        files: layout.files.clone(),
        fabs: Vec::new(),
        extrema: None,
        descriptor: None,
    }
}

impl LevelLayout {
    /// Format of the numbers of a box.
    pub fn descriptor(&self, index: usize) -> Descriptor {
        let found = self.numbers.get(index).or(self.numbers.first());
        let (double, little) = found.copied().unwrap_or((true, true));
        Descriptor { double, little }
    }
}
