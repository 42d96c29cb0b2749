//! One plotfile: opening it, what is known of it, and reading its values box by box.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambar::kinds::amr::patches::{IndexBox, PatchHierarchy, PatchLevel, PatchSource};
use ambar::{Column, DataType, Error, ErrorKind, Result};

use super::cellh::Extrema;
use super::files::OpenFiles;
use super::folder::{self, Contents};
use super::header::Header;
use super::layout::field_names;
use super::level::Level;
use super::particles;
use super::species::SpeciesFiles;
use super::text::read_text;

pub use super::folder::LeftOut;

/// One plotfile: its texts, parsed and checked, and where the values lie. Values stay in the files.
#[derive(Debug)]
pub struct Plotfile {
    path: PathBuf,
    pub(super) header: Header,
    /// The names under which the fields are stored.
    names: Vec<String>,
    pub(super) levels: Vec<Level>,
    hierarchy: PatchHierarchy,
    dtype: DataType,
    contents: Contents,
    species: Vec<Species>,
    pub(super) files: OpenFiles,
}

/// A particle species, there or not to be read.
#[derive(Debug)]
pub struct Species {
    /// The name of its folder.
    pub name: String,
    /// Its files, or why they cannot be read.
    files: std::result::Result<SpeciesFiles, Missing>,
}

/// An error that is kept, so that the rest of the plotfile can be read.
#[derive(Debug)]
struct Missing {
    kind: ErrorKind,
    file: String,
    message: String,
    whole: String,
}

impl Species {
    fn open(root: &Path, name: &str, ndim: usize) -> Self {
        let files = SpeciesFiles::open(&root.join(name), ndim);
        Self {
            name: name.to_owned(),
            files: files.map_err(|error| Missing {
                kind: error.kind(),
                file: error.file().to_owned(),
                message: error.message().to_owned(),
                whole: error.to_string(),
            }),
        }
    }

    /// Its columns: `position_x` and so on (float32 or float64), the real components, `id` (int64)
    /// and `cpu` (int32) and the integer components (int32) where the files have integers, `level`
    /// (uint8) and `grid` (uint32). None where it cannot be read.
    pub fn columns(&self) -> Vec<(String, DataType)> {
        self.files
            .as_ref()
            .map_or_else(|_| Vec::new(), SpeciesFiles::columns)
    }

    /// Its number of particles; 0 where it cannot be read.
    pub fn particles(&self) -> u64 {
        self.files
            .as_ref()
            .map_or(0, |files| files.header.particles)
    }

    /// The format of its files, such as `Version_Two_Dot_Zero_double`; empty where it cannot be read.
    pub fn version(&self) -> &str {
        self.files
            .as_ref()
            .map_or("", |files| &files.header.version)
    }

    /// Why it cannot be read; `None` where it can.
    pub fn missing(&self) -> Option<&str> {
        self.files
            .as_ref()
            .err()
            .map(|missing| missing.whole.as_str())
    }
}

/// Whether `path` looks like a plotfile: a folder with a `Header` of a version and a number of
/// fields, and nothing of a checkpoint or of particles. An empty `Header` is that of a damaged one.
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
    let named = !version.trim().is_empty()
        && !version.starts_with("Version_")
        && !version.starts_with("CheckPointVersion");
    bytes.is_empty() || named && fields.trim().parse::<u32>().is_ok()
}

impl Plotfile {
    /// Opens a plotfile: reads `Header`, each level's `Cell_H`, and the line before each FAB.
    ///
    /// # Errors
    /// `NotFound` where there is no such folder or no `Header` in it; `Corrupt`, naming file, line,
    /// expected and found, where texts are damaged or contradict each other, or files are missing
    /// or cut short; `Unsupported` for what is not read (values on nodes, FABs of text); `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let header_path = path.join("Header");
        let text = read_text(&header_path).map_err(|error| match error.kind() {
            ambar::ErrorKind::NotFound => Error::not_found(
                "no file Header here: give the folder of one AMReX plotfile (plt00000)",
            )
            .in_file(path.display()),
            _ => error,
        })?;
        let header = Header::parse(&text, &header_path)?;
        let files = OpenFiles::default();
        let mut levels = Vec::new();
        for level in &header.levels {
            let expected = (level.boxes, header.fields.len());
            levels.push(Level::open(
                path,
                &level.path,
                header.ndim,
                expected,
                &files,
            )?);
        }
        let hierarchy =
            hierarchy(&header, &levels).map_err(|error| error.in_file(header_path.display()))?;
        let mut fabs = levels.iter().flat_map(|level| &level.fabs).peekable();
        let single = fabs.peek().is_some() && fabs.all(|fab| !fab.descriptor.double);
        let contents = Contents::list(path, &header)?;
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
            dtype: if single {
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

    /// The fields' names, in their order in the files; those of derived columns are renamed, see
    /// `field_names`.
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

    /// Smallest and largest values of a level's boxes as `Cell_H` has them: a row a box (or one row
    /// for the level, in one of the formats), a column a field; `None` where it has none.
    pub fn extrema(&self, level: usize) -> Option<&Extrema> {
        self.levels.get(level)?.header.extrema.as_ref()
    }

    /// Which of its level's files holds a box: AMReX has each rank, or group of ranks, write one.
    pub fn file_of(&self, level: usize, index: usize) -> Option<u32> {
        let fab = self.levels.get(level)?.fabs.get(index)?;
        Some(fab.file)
    }

    /// Ghost cells around each box of a level, which its files hold and reading leaves out.
    pub fn ghosts(&self, level: usize) -> [i64; 3] {
        self.levels
            .get(level)
            .map_or([0; 3], |level| level.header.ghosts)
    }

    /// The other texts at top level, such as `job_info` or `comoving_a`, by name; at most 1 MiB each.
    pub fn texts(&self) -> &BTreeMap<String, String> {
        &self.contents.texts
    }

    /// The particle species: folders with a `Header` of particles.
    pub fn species(&self) -> &[Species] {
        &self.species
    }

    /// Reads all particles of a species, level by level and grid by grid in the files' order, on the
    /// threads of the current rayon pool: the columns of its `Species`.
    ///
    /// # Errors
    /// `NotFound` for a species that is not there; `Corrupt` or `Unsupported` where it cannot be
    /// read; `Limit` for more than memory holds; `Io`.
    pub fn read_particles(&self, species: &str) -> Result<Vec<(String, Column)>> {
        particles::read(self.species_files(species)?, &self.files)
    }

    pub(super) fn species_files(&self, name: &str) -> Result<&SpeciesFiles> {
        let species = self.species.iter().find(|species| species.name == name);
        let Some(species) = species else {
            let names: Vec<_> = self.species.iter().map(|species| &*species.name).collect();
            return Err(
                Error::not_found(format!("no particles {name:?}; there are {names:?}"))
                    .in_file(self.path.display()),
            );
        };
        species
            .files
            .as_ref()
            .map_err(|missing| Error::new(missing.kind, &missing.message).in_file(&missing.file))
    }

    /// Files and folders that are no part of what is read, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.contents.left_out
    }

    /// Number of files in the plotfile's folder and all below, and their bytes.
    pub fn usage(&self) -> (u64, u64) {
        self.contents.usage
    }

    fn component(&self, field: &str) -> Result<usize> {
        let names = &self.names;
        names.iter().position(|name| name == field).ok_or_else(|| {
            Error::not_found(format!(
                "no field {field:?}; there are {}",
                names.join(", ")
            ))
            .in_file(self.path.display())
        })
    }

    fn read(&self, level: usize, index: usize, component: usize, out: &mut [u8]) -> Result<()> {
        let no_box = || {
            Error::not_found(format!("no box {index} on level {level}"))
                .in_file(self.path.display())
        };
        let level = self.levels.get(level).ok_or_else(no_box)?;
        let fab = level.fabs.get(index).ok_or_else(no_box)?;
        let cells = level.header.boxes.get(index).ok_or_else(no_box)?;
        let size = self.dtype.size().unwrap_or(8);
        if out.len() != cells.cells() * size {
            return Err(Error::invalid(format!(
                "a buffer of {} bytes for {} values of {size}",
                out.len(),
                cells.cells()
            )));
        }
        let file = self.files.get(&level.file(fab.file))?;
        let grown = level.grown(cells);
        let stored = fab.descriptor.size();
        // Opening has checked that all of the FAB lies in its file.
        let start = fab.start + u64::from(fab.line) + (component * grown.cells() * stored) as u64;
        let what = format!("field {:?} of box {index}", self.header.fields[component]);
        // Values to be widened are read into the end of `out`.
        let skipped = out.len() - cells.cells() * stored;
        let place = &mut out[skipped..];
        if grown == *cells {
            file.read(start, place, &what)?;
        } else {
            let mut all = vec![0; grown.cells() * stored];
            file.read(start, &mut all, &what)?;
            copy_inner(&all, &grown, cells, stored, place);
        }
        if fab.descriptor.swapped() {
            swap(place, stored);
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
        self.read(level, index, self.component(field)?, out)
    }
}

fn hierarchy(header: &Header, levels: &[Level]) -> Result<PatchHierarchy> {
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
        .map_err(|error| Error::corrupt(format!("{}: copy the plotfile again", error.message())))?;
    Ok(hierarchy)
}

/// Copies the cells of `inner` out of those of `outer`, row by row.
fn copy_inner(from: &[u8], outer: &IndexBox, inner: &IndexBox, size: usize, out: &mut [u8]) {
    let (shape, rows) = (outer.shape(), inner.shape());
    let skip: [usize; 3] = std::array::from_fn(|d| (inner.lo[d] - outer.lo[d]) as usize);
    let row = rows[0] * size;
    for (number, out) in out.chunks_exact_mut(row.max(1)).enumerate() {
        let (y, z) = (number % rows[1] + skip[1], number / rows[1] + skip[2]);
        let start = ((z * shape[1] + y) * shape[0] + skip[0]) * size;
        out.copy_from_slice(&from[start..start + row]);
    }
}

/// Turns the bytes of each number around.
pub(super) fn swap(bytes: &mut [u8], size: usize) {
    for number in bytes.chunks_exact_mut(size) {
        number.reverse();
    }
}

/// Makes doubles of the singles in the second half of `out`: the place written never passes the
/// place read.
fn widen(out: &mut [u8]) {
    let half = out.len() / 2;
    for i in 0..half / 4 {
        let mut single = [0; 4];
        single.copy_from_slice(&out[half + 4 * i..][..4]);
        let double = f64::from(f32::from_ne_bytes(single)).to_ne_bytes();
        out[8 * i..][..8].copy_from_slice(&double);
    }
}
