//! One plotfile: its checked headers, and reading its values box by box.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambar::kinds::amr::patches::{IndexBox, PatchHierarchy, PatchLevel, PatchSource, copy_cells};
use ambar::{Column, DataType, Error, ErrorKind, Result};

use super::files::extrema::Extrema;
use super::files::fab::swap_bytes;
use super::files::folder::{self, FileUsage, FolderContents, IgnoredEntry};
use super::files::header::PlotfileHeader;
use super::files::level::{ExpectedLevel, LevelFiles};
use super::files::names::field_names;
use super::files::open_files::OpenFiles;
use super::files::particle_data;
use super::files::species::SpeciesFiles;
use super::files::text::read_text;

/// One plotfile. Opening it parses and checks its headers; values are read on request.
#[derive(Debug)]
pub struct Plotfile {
    path: PathBuf,
    pub(super) header: PlotfileHeader,
    /// The names under which the fields are stored.
    names: Vec<String>,
    pub(super) levels: Vec<LevelFiles>,
    hierarchy: PatchHierarchy,
    dtype: DataType,
    contents: FolderContents,
    species: Vec<Species>,
    pub(super) files: OpenFiles,
}

/// A particle species, readable or not.
#[derive(Debug)]
pub struct Species {
    /// The name of its folder.
    pub name: String,
    /// Its files, or the error of opening them.
    files: std::result::Result<SpeciesFiles, SpeciesError>,
}

/// The stored error of opening a species; the rest of the plotfile stays readable.
#[derive(Debug)]
struct SpeciesError {
    kind: ErrorKind,
    file: String,
    message: String,
    display: String,
}

impl Species {
    fn open(root: &Path, name: &str, ndim: usize) -> Self {
        let files = SpeciesFiles::open(&root.join(name), ndim);
        Self {
            name: name.to_owned(),
            files: files.map_err(|error| SpeciesError {
                kind: error.kind(),
                file: error.file().to_owned(),
                message: error.message().to_owned(),
                display: error.to_string(),
            }),
        }
    }

    /// Its columns: `position_x`, ... (float32 or float64), the real components, `id` (int64), `cpu`
    /// (int32) and the integer components (int32) if the files have integers, `level` (uint8) and `grid`
    /// (uint32). Empty if it cannot be read.
    pub fn columns(&self) -> Vec<(String, DataType)> {
        self.files
            .as_ref()
            .map_or_else(|_| Vec::new(), SpeciesFiles::columns)
    }

    /// Its number of particles; 0 if it cannot be read.
    pub fn particles(&self) -> u64 {
        self.files
            .as_ref()
            .map_or(0, |files| files.header.particles)
    }

    /// The format of its files, such as `Version_Two_Dot_Zero_double`; empty if it cannot be read.
    pub fn version(&self) -> &str {
        self.files
            .as_ref()
            .map_or("", |files| &files.header.version)
    }

    /// Why it cannot be read; `None` if it can.
    pub fn missing(&self) -> Option<&str> {
        self.files
            .as_ref()
            .err()
            .map(|missing| missing.display.as_str())
    }
}

/// True if `path` looks like a plotfile: a folder whose `Header` begins with a version and a number of
/// fields, and is not that of a checkpoint or of particles.
///
/// A folder with another `Header` counts as a damaged plotfile if the `Header` is empty, or if it does not
/// begin as that of a checkpoint and the folder has `Level_0/Cell_H`, the fields of a plotfile.
pub fn is_plotfile(path: &Path) -> bool {
    let Ok(bytes) = folder::first_bytes(&path.join("Header"), 4096) else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let (version, fields) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    if bytes.is_empty() {
        return true;
    }
    if version.to_ascii_lowercase().starts_with("checkpoint") {
        return false;
    }
    let is_version = !version.trim().is_empty() && !version.starts_with("Version_");
    is_version && fields.trim().parse::<u32>().is_ok() || path.join("Level_0/Cell_H").is_file()
}

impl Plotfile {
    /// Opens a plotfile: reads `Header`, the `Cell_H` of each level, and the line before each FAB.
    ///
    /// # Errors
    /// `NotFound` if the folder or a `Header` in it does not exist; `Corrupt` if text files are damaged or
    /// contradict each other, or files are missing or truncated; `Unsupported` for values on nodes or
    /// FABs of text; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let header_path = path.join("Header");
        let text = read_text(&header_path).map_err(|error| match error.kind() {
            ambar::ErrorKind::NotFound => Error::not_found(
                "expected a file Header, which does not exist; give the folder of one AMReX plotfile \
                 (plt00000)",
            )
            .in_file(path.display()),
            _ => error,
        })?;
        let header = PlotfileHeader::parse(&text, &header_path)?;
        let files = OpenFiles::default();
        let mut levels = Vec::new();
        for level in &header.levels {
            let expected = ExpectedLevel {
                path: &level.path,
                ndim: header.ndim,
                boxes: level.boxes,
                components: header.fields.len(),
            };
            levels.push(LevelFiles::open(path, expected, &files)?);
        }
        let hierarchy =
            hierarchy(&header, &levels).map_err(|error| error.in_file(header_path.display()))?;
        let mut fabs = levels.iter().flat_map(|level| &level.fabs).peekable();
        let is_single = fabs.peek().is_some() && fabs.all(|fab| !fab.descriptor.double);
        let mut contents = FolderContents::list(path, &header)?;
        if levels.iter().any(|level| level.header.ghosts != [0; 3]) {
            contents.ignore(
                "ghost cells",
                "values around the boxes are not stored".into(),
            );
        }
        let names = contents.species.iter();
        let species = names.map(|name| Species::open(path, name, header.ndim));
        Ok(Self {
            path: path.to_owned(),
            species: species.collect(),
            contents,
            names: field_names(&header.fields, header.ndim),
            header,
            levels,
            hierarchy,
            dtype: if is_single {
                DataType::Float32
            } else {
                DataType::Float64
            },
            files,
        })
    }

    /// The plotfile's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format's name in `Header`, such as `HyperCLaw-V1.1`.
    pub fn version(&self) -> &str {
        &self.header.version
    }

    /// Names of the fields in file order, as stored; see `field_names`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Dimensions, 1 to 3.
    pub fn ndim(&self) -> usize {
        self.header.ndim
    }

    /// The run's time, in its own units.
    pub fn time(&self) -> f64 {
        self.header.time
    }

    /// Each level's number of steps.
    pub fn steps(&self) -> Vec<i64> {
        self.header.levels.iter().map(|level| level.step).collect()
    }

    /// The coordinate system: 0 Cartesian, 1 cylindrical, 2 spherical.
    pub fn coordinates(&self) -> i64 {
        self.header.coordinates
    }

    /// Minima and maxima of a level's boxes in `Cell_H`: one row per box (or one row for the level in one
    /// of the formats), one column per field; `None` if it has none.
    pub fn extrema(&self, level: usize) -> Option<&Extrema> {
        self.levels.get(level)?.header.extrema.as_ref()
    }

    /// The index of the file that holds a box, among the files of its level. In AMReX each rank, or group
    /// of ranks, writes one file.
    pub fn file_of(&self, level: usize, index: usize) -> Option<u32> {
        let fab = self.levels.get(level)?.fabs.get(index)?;
        Some(fab.file)
    }

    /// Ghost cells around each box in the files of a level. Reading skips them.
    pub fn ghosts(&self, level: usize) -> [i64; 3] {
        self.levels
            .get(level)
            .map_or([0; 3], |level| level.header.ghosts)
    }

    /// The other text files in the plotfile's folder, such as `job_info` or `comoving_a`, by name; at most
    /// 1 MiB each.
    pub fn text_files(&self) -> &BTreeMap<String, String> {
        &self.contents.text_files
    }

    /// The particle species: folders with a `Header` of particles.
    pub fn species(&self) -> &[Species] {
        &self.species
    }

    /// Reads all particles of a species, level by level and grid by grid in file order, on the threads of
    /// the current rayon pool. Returns the columns of `Species::columns`.
    ///
    /// # Errors
    /// `NotFound` for a species that does not exist; `Corrupt` or `Unsupported` if it cannot be read;
    /// `Limit` if the columns do not fit into memory; `Io`.
    pub fn read_particles(&self, species: &str) -> Result<Vec<(String, Column)>> {
        particle_data::read(self.species_files(species)?, &self.files)
    }

    pub(super) fn species_files(&self, name: &str) -> Result<&SpeciesFiles> {
        let species = self.species.iter().find(|species| species.name == name);
        let Some(species) = species else {
            let names: Vec<_> = self.species.iter().map(|species| &*species.name).collect();
            return Err(Error::not_found(format!(
                "particle species {name:?} does not exist; available: {names:?}"
            ))
            .in_file(self.path.display()));
        };
        species
            .files
            .as_ref()
            .map_err(|missing| Error::new(missing.kind, &missing.message).in_file(&missing.file))
    }

    /// Files, folders and ghost cells of the plotfile that are not read, and the reasons.
    pub fn ignored(&self) -> &[IgnoredEntry] {
        &self.contents.ignored
    }

    /// Number, bytes and fingerprint of all files of the plotfile.
    pub fn usage(&self) -> &FileUsage {
        &self.contents.usage
    }

    fn component(&self, field: &str) -> Result<usize> {
        let names = &self.names;
        names
            .iter()
            .position(|name| name == field)
            .ok_or_else(|| Error::unknown("field", field, names).in_file(self.path.display()))
    }

    /// Reads a component on `part` of a box, or on all of it.
    fn read(
        &self,
        (level, index): (usize, usize),
        component: usize,
        part: Option<&IndexBox>,
        out: &mut [u8],
    ) -> Result<()> {
        let no_box = || {
            Error::not_found(format!("box {index} of level {level} does not exist"))
                .in_file(self.path.display())
        };
        let level = self.levels.get(level).ok_or_else(no_box)?;
        let fab = level.fabs.get(index).ok_or_else(no_box)?;
        let cells = level.header.boxes.get(index).ok_or_else(no_box)?;
        let part = part.unwrap_or(cells);
        if !cells.contains(part) {
            return Err(no_box());
        }
        let size = self.dtype.size().unwrap_or(8);
        if out.len() != part.cells() * size {
            return Err(Error::invalid(format!(
                "expected a buffer of {} bytes, found {}",
                part.cells() * size,
                out.len()
            )));
        }
        let file = self.files.get(&level.file(fab.file))?;
        let grown = level.with_ghosts(cells);
        let stored = fab.descriptor.size();
        // Opening the plotfile checks that the whole FAB is inside its file.
        let start = fab.start + u64::from(fab.line) + (component * grown.cells() * stored) as u64;
        let what = format!("field {:?} of box {index}", self.header.fields[component]);
        // Values that must be widened are read into the end of `out`.
        let skipped = out.len() - part.cells() * stored;
        let place = &mut out[skipped..];
        let [width, height, _] = grown.shape();
        let row = |y: i64, z: i64| {
            let [y, z] = [(y, 1), (z, 2)].map(|(at, d)| (at - grown.lo[d]) as usize);
            start + ((z * height + y) * width * stored) as u64
        };
        if part.shape()[..2] == [width, height] {
            file.read(row(part.lo[1], part.lo[2]), place, &what)?;
        } else {
            // Of each plane the rows of the part, over their full length.
            let mut values = vec![0; width * part.shape()[1] * stored];
            for z in part.lo[2]..part.hi[2] {
                let plane = IndexBox {
                    lo: [grown.lo[0], part.lo[1], z],
                    hi: [grown.hi[0], part.hi[1], z + 1],
                };
                file.read(row(part.lo[1], z), &mut values, &what)?;
                let cells = plane.intersection(part);
                copy_cells(&cells, stored, (&plane, &values), (part, &mut *place));
            }
        }
        if fab.descriptor.is_swapped() {
            swap_bytes(place, stored);
        }
        if stored < size {
            widen(out);
        }
        Ok(())
    }
}

impl PatchSource for Plotfile {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }

    fn fields(&self) -> &[String] {
        &self.names
    }

    fn dtype(&self, field: &str) -> Result<DataType> {
        self.component(field)?;
        Ok(self.dtype.clone())
    }

    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        self.read((level, index), self.component(field)?, None, out)
    }

    fn read_part(
        &self,
        level: usize,
        index: usize,
        field: &str,
        part: &IndexBox,
        out: &mut [u8],
    ) -> Result<()> {
        self.read((level, index), self.component(field)?, Some(part), out)
    }
}

fn hierarchy(header: &PlotfileHeader, levels: &[LevelFiles]) -> Result<PatchHierarchy> {
    let ratios = header.refinement()?;
    let each = header.levels.iter().zip(levels).enumerate();
    let levels = each.map(|(number, (level, files))| PatchLevel {
        domain: level.domain,
        boxes: files.header.boxes.clone(),
        cell_size: level.cell_size,
        ratio: ratios.get(number).copied().unwrap_or([1; 3]),
    });
    let hierarchy = PatchHierarchy {
        ndim: header.ndim,
        lower: header.lower,
        upper: header.upper,
        levels: levels.collect(),
    };
    hierarchy
        .check()
        .map_err(|error| Error::corrupt(format!("{}; copy the plotfile again", error.message())))?;
    Ok(hierarchy)
}

/// Converts the singles in the second half of `out` to doubles in place: each write is at or before the
/// next read.
fn widen(out: &mut [u8]) {
    let half = out.len() / 2;
    for i in 0..half / 4 {
        let mut single = [0; 4];
        single.copy_from_slice(&out[half + 4 * i..][..4]);
        let double = f64::from(f32::from_ne_bytes(single)).to_ne_bytes();
        out[8 * i..][..8].copy_from_slice(&double);
    }
}
