//! How a plotfile's files are laid out: what its values do not tell, so that it can be written again
//! byte by byte.

use std::collections::BTreeMap;
use std::path::Path;

use ambar::kinds::amr::patches::{PatchHierarchy, PatchSource, is_derived};
use ambar::{Error, Result};
use serde::{Deserialize, Serialize};

use super::cellh::{CellHeader, format_boxes};
use super::fab::{Descriptor, LINE_LIMIT};
use super::header::{Header, HeaderLevel};
use super::level::{Level, header_path};
use super::plotfile::Plotfile;
use super::species::SpeciesFiles;
use super::text::read_text;

/// What a plotfile tells about its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The format's name, such as `HyperCLaw-V1.1`.
    pub version: String,
    /// The run's time, in its own units.
    #[serde(with = "real")]
    pub time: f64,
    /// 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i64,
    /// Width of the boundary data; 0.
    pub boundary: i64,
    /// Each level's step and time, the coarsest first. Levels beyond have step 0 and the run's time.
    pub levels: Vec<RunLevel>,
    /// What stands in `Header` behind the last level.
    pub rest: String,
    /// The other texts at top level, by name.
    pub texts: BTreeMap<String, String>,
    /// The names in `Header` of the fields that are stored under another name (`field_names`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
}

/// What a plotfile tells of a level's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLevel {
    /// Its number of steps.
    pub step: i64,
    /// The same, as the level's own part of `Header` has it.
    pub own_step: i64,
    /// Its time.
    #[serde(with = "real")]
    pub time: f64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            version: "HyperCLaw-V1.1".into(),
            time: 0.0,
            coordinates: 0,
            boundary: 0,
            levels: Vec::new(),
            rest: String::new(),
            texts: BTreeMap::new(),
            renamed: BTreeMap::new(),
        }
    }
}

impl Run {
    /// The name that a field has in `Header`.
    fn original<'a>(&'a self, field: &'a String) -> &'a String {
        self.renamed.get(field).unwrap_or(field)
    }
}

/// The names under which fields are stored: their own, except where a derived column has it (`level`,
/// `x`, `dx`, `ix`, ...). Such a field is stored as `level_field`.
pub fn field_names(fields: &[String], ndim: usize) -> Vec<String> {
    let stored = |field: &String| {
        let mut name = field.clone();
        if is_derived(field, ndim) {
            name += "_field";
            while fields.contains(&name) {
                name.push('_');
            }
        }
        name
    };
    fields.iter().map(stored).collect()
}

/// The names in `Header` of the fields that are stored under another, by that.
pub fn renamed(stored: &[String], fields: &[String]) -> BTreeMap<String, String> {
    let pairs = stored.iter().zip(fields).filter(|(new, old)| new != old);
    pairs.map(|(new, old)| (new.clone(), old.clone())).collect()
}

/// How the files of a plotfile are laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// What it tells about its run.
    pub run: Run,
    /// Digits of the numbers in `Header`.
    pub(super) precision: usize,
    /// The text of `Header`, where it is not what AMReX writes today.
    pub(super) header: Option<String>,
    pub(super) levels: Vec<LevelLayout>,
    pub(super) species: Vec<SpeciesLayout>,
}

/// How the files of a level are laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelLayout {
    /// The beginning of the files' names.
    pub path: String,
    /// The format of `Cell_H`, and how its files were written.
    pub version: i64,
    pub how: i64,
    /// Names of the files.
    pub files: Vec<String>,
    /// For each box, which of them its FAB lies in.
    pub file: Vec<u32>,
    /// For each box, where its FAB begins; `None` where they lie one behind the other in the order of
    /// the boxes.
    pub offsets: Option<Vec<u64>>,
    /// For each box, whether its numbers are double precision and lowest byte first; one for all
    /// where they are alike.
    pub numbers: Vec<(bool, bool)>,
    /// Lines before FABs that are not what AMReX writes today, by box.
    pub lines: BTreeMap<usize, String>,
    /// Smallest and largest values as in `Cell_H`: the bytes of doubles, lowest first, in
    /// hexadecimal digits. `None` where they are to be computed.
    pub extrema: Option<[String; 2]>,
    /// The text of `Cell_H`, where it is not what AMReX writes today.
    pub text: Option<String>,
}

/// How the files of a species are laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeciesLayout {
    /// The name of its folder.
    pub name: String,
    /// The text of its `Header`: names of components, and where each grid's particles lie.
    pub header: String,
    /// Whether its files hold integers.
    pub ints: bool,
    /// Digits of the numbers in its files' names.
    pub digits: usize,
    /// Each level's `Particle_H`.
    pub boxes: Vec<ParticleBoxes>,
    /// Other texts in its folder, by name.
    pub texts: BTreeMap<String, String>,
}

/// The list of boxes beside a level's particles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ParticleBoxes {
    /// There is none.
    Missing,
    /// The boxes of the level.
    Level,
    /// Another text.
    Text(String),
}

impl Layout {
    /// The layout as JSON: what `from_json` reads. Some ten bytes a box, and 32 a field of a box for
    /// smallest and largest values.
    ///
    /// # Errors
    /// `Invalid`: never for a layout that was read.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::invalid(format!("a plotfile's layout: {error}")))
    }

    /// The layout that `to_json` wrote. What it says is checked when it is used.
    ///
    /// # Errors
    /// `Corrupt` where the text is none.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::corrupt(format!("a plotfile's layout: {error}")))
    }

    /// Forgets smallest and largest values, so that they are computed when the plotfile is written:
    /// where values changed, or where they are what is computed anyway.
    pub fn forget_extrema(&mut self) {
        for level in &mut self.levels {
            level.extrema = None;
            level.text = None;
        }
    }
}

impl Plotfile {
    /// What the plotfile tells about its run.
    pub fn run(&self) -> Run {
        let level = |level: &HeaderLevel| RunLevel {
            step: level.step,
            own_step: level.own_step,
            time: level.time,
        };
        Run {
            version: self.header.version.clone(),
            time: self.header.time,
            coordinates: self.header.coordinates,
            boundary: self.header.boundary,
            levels: self.header.levels.iter().map(level).collect(),
            rest: self.header.rest.clone(),
            texts: self.texts().clone(),
            renamed: renamed(self.names(), &self.header.fields),
        }
    }

    /// How the plotfile's files are laid out: with it, `write_plotfile` makes the same files again.
    /// Reads the texts once more.
    ///
    /// # Errors
    /// As `open`.
    pub fn layout(&self) -> Result<Layout> {
        let run = self.run();
        let text = read_text(&self.path().join("Header"))?;
        let paths: Vec<_> = self.levels.iter().map(|level| level.path.clone()).collect();
        let header = build_header(self.hierarchy(), self.names(), &run, &paths);
        let boxes: Vec<_> = self
            .levels
            .iter()
            .map(|level| level.header.boxes.clone())
            .collect();
        let precision = [17, 15, 16, 6, 10, 12];
        let precision = precision
            .into_iter()
            .find(|p| header.format(&boxes, *p) == text);
        let levels = self.levels.iter().map(|level| self.level_layout(level));
        let species = self
            .species()
            .iter()
            .filter(|species| species.missing().is_none());
        let species = species.map(|species| {
            let files = self.species_files(&species.name)?;
            species_layout(&species.name, files, &boxes)
        });
        Ok(Layout {
            precision: precision.unwrap_or(17),
            header: precision.is_none().then_some(text),
            levels: levels.collect::<Result<_>>()?,
            species: species.collect::<Result<_>>()?,
            run,
        })
    }

    /// The layout as JSON, as `Layout::to_json`.
    ///
    /// # Errors
    /// As `layout`.
    pub fn layout_json(&self) -> Result<String> {
        self.layout()?.to_json()
    }

    fn level_layout(&self, level: &Level) -> Result<LevelLayout> {
        let header = &level.header;
        let plain = header.ghosts == [0; 3];
        let text = read_text(&header_path(self.path(), &level.path)?)?;
        let hex = |values: &[f64]| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            bytes.map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let mut numbers: Vec<_> = level
            .fabs
            .iter()
            .map(|fab| (fab.descriptor.double, fab.descriptor.little))
            .collect();
        if numbers.windows(2).all(|pair| pair[0] == pair[1]) {
            numbers.truncate(1);
        }
        let offsets = (!in_order(level)).then(|| level.fabs.iter().map(|fab| fab.start).collect());
        Ok(LevelLayout {
            path: level.path.clone(),
            version: header.version,
            how: header.how,
            files: header.files.clone(),
            file: level.fabs.iter().map(|fab| fab.file).collect(),
            // Without the ghost cells, the FABs are shorter.
            offsets: offsets.filter(|_| plain),
            numbers,
            lines: if plain {
                self.lines(level)?
            } else {
                BTreeMap::new()
            },
            extrema: header.extrema.as_ref().map(|e| [hex(&e.min), hex(&e.max)]),
            text: Some(text).filter(|text| plain && header.format(self.ndim()) != *text),
        })
    }

    /// Lines before FABs that are not what AMReX writes today.
    fn lines(&self, level: &Level) -> Result<BTreeMap<usize, String>> {
        let mut lines = BTreeMap::new();
        for (index, fab) in level.fabs.iter().enumerate().filter(|(_, fab)| !fab.usual) {
            let file = self.files.get(&level.file(fab.file))?;
            let len = (fab.line as usize).min(LINE_LIMIT);
            let line = file.start(fab.start, len, "a FAB's line")?;
            lines.insert(index, String::from_utf8_lossy(&line).into_owned());
        }
        Ok(lines)
    }
}

/// Whether each file's FABs lie one behind the other in the order of the boxes.
fn in_order(level: &Level) -> bool {
    level.by_file().into_iter().all(|boxes| {
        let mut end = 0;
        let ordered = boxes.windows(2).all(|pair| pair[0] < pair[1]);
        ordered
            && boxes.into_iter().all(|index| {
                let fab = &level.fabs[index];
                let there = fab.start == end;
                end = fab.start
                    + u64::from(fab.line)
                    + level.bytes(index, fab.descriptor).unwrap_or(0);
                there
            })
    })
}

/// A `Header` of these parts.
pub fn build_header(
    hierarchy: &PatchHierarchy,
    fields: &[String],
    run: &Run,
    paths: &[String],
) -> Header {
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
    Header {
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

/// The values that `LevelLayout::extrema` holds; `None` where they are not `values` many.
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

fn species_layout(
    name: &str,
    species: &SpeciesFiles,
    boxes: &[Vec<ambar::kinds::amr::patches::IndexBox>],
) -> Result<SpeciesLayout> {
    let ndim = species.header.ndim;
    let mut lists = Vec::new();
    for level in 0..species.header.levels.len() {
        let path = species.folder.join(format!("Level_{level}/Particle_H"));
        lists.push(match path.is_file() {
            false => ParticleBoxes::Missing,
            true => {
                let text = read_text(&path)?;
                let usual = boxes
                    .get(level)
                    .is_some_and(|boxes| format_boxes(boxes, ndim) == text);
                if usual {
                    ParticleBoxes::Level
                } else {
                    ParticleBoxes::Text(text)
                }
            }
        });
    }
    Ok(SpeciesLayout {
        name: name.to_owned(),
        header: read_text(&species.folder.join("Header"))?,
        ints: species.record.ints > 0,
        digits: species.digits,
        boxes: lists,
        texts: texts_beside(&species.folder)?,
    })
}

/// The texts in a species' folder but its `Header`.
fn texts_beside(folder: &Path) -> Result<BTreeMap<String, String>> {
    let io = |e| Error::io(e, folder, "listing a folder of particles");
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name != "Header"
            && let Some(text) = super::folder::small_text(&entry.path())
        {
            texts.insert(name, text);
        }
    }
    Ok(texts)
}

/// The `Cell_H` of a layout's level, as far as the layout tells it.
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
    /// How the numbers of a box lie.
    pub fn descriptor(&self, index: usize) -> Descriptor {
        let found = self.numbers.get(index).or(self.numbers.first());
        let (double, little) = found.copied().unwrap_or((true, true));
        Descriptor { double, little }
    }
}

/// Real numbers in JSON, which has none that are not finite: those are texts.
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
        super::super::numbers::json(*value).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(number),
            Value::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}
