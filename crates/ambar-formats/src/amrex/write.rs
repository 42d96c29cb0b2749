//! Writing a native plotfile, that AMReX and yt read, from any source of boxes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ambar::kinds::amr::patches::PatchSource;
use ambar::{Column, Error, Result};

use super::cellh::check_name;
use super::header::Header;
use super::layout::{Layout, LevelLayout, Run, build_header};
use super::write_fields::{self, default_layout};
use super::write_particles;

/// Called with the number of bytes of values written and of all to write; an error ends the write.
pub type Progress<'a> = dyn Fn(u64, u64) -> Result<()> + Send + Sync + 'a;

/// The particles of a species: columns as `Plotfile::read_particles` gives them.
#[derive(Clone, Copy, Debug)]
pub struct SpeciesData<'a> {
    /// The name of its folder.
    pub name: &'a str,
    /// Columns of equal length: `position_x` and so on, `level` (uint8) and `grid` (uint32), and any
    /// real (float32 or float64, as the positions) and integer (int32) components; `id` (int64) and
    /// `cpu` (int32) where there are integers.
    pub columns: &'a [(String, Column)],
}

/// What to write.
pub struct WriteRequest<'a> {
    /// The hierarchy, its fields and values.
    pub source: &'a dyn PatchSource,
    /// Time, steps, coordinates, texts.
    pub run: &'a Run,
    /// How the files are to be laid out; where it is `None`, or a level has other boxes than it
    /// says, files of about 128 MiB are written.
    pub layout: Option<&'a Layout>,
    /// The particles.
    pub species: &'a [SpeciesData<'a>],
    /// Told of each part of a box written.
    pub progress: Option<&'a Progress<'a>>,
}

/// Bytes written, and what to tell.
pub struct Counter<'a> {
    progress: Option<&'a Progress<'a>>,
    done: AtomicU64,
    total: u64,
}

impl Counter<'_> {
    /// So many bytes more are written.
    ///
    /// # Errors
    /// Those of the caller's function.
    pub fn add(&self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.progress
            .map_or(Ok(()), |progress| progress(done, self.total))
    }
}

/// Writes a plotfile, on the threads of the current rayon pool. What `Plotfile::open` read, with its
/// layout, becomes the same files again, but for ghost cells, and for bytes between FABs.
///
/// The files are written to a folder beside `path`, made durable, and renamed when all are there.
///
/// # Errors
/// `Busy` where there is something at `path`; `Invalid` for columns that are not as `SpeciesData`
/// says, or names that cannot be those of files; what the source and `progress` return; `Io`.
pub fn write_plotfile(path: &Path, request: &WriteRequest<'_>) -> Result<()> {
    request.source.hierarchy().check()?;
    let target = Target::new(path)?;
    write_files(&target.folder, request)?;
    target.finish()
}

fn write_files(folder: &Path, request: &WriteRequest<'_>) -> Result<()> {
    let source = request.source;
    let hierarchy = source.hierarchy();
    let boxes = || hierarchy.levels.iter().flat_map(|level| &level.boxes);
    let cells: u64 = boxes().map(|cells| cells.cells() as u64).sum();
    let mut total = 0;
    for field in source.fields() {
        total += cells * source.dtype(field)?.size().unwrap_or(8) as u64;
    }
    let counter = Counter {
        progress: request.progress,
        done: AtomicU64::new(0),
        total,
    };
    let layouts = level_layouts(request)?;
    for (number, layout) in layouts.iter().enumerate() {
        write_fields::write_level(folder, source, number, layout, &counter)?;
    }
    let names: Vec<_> = request
        .layout
        .iter()
        .flat_map(|layout| &layout.species)
        .collect();
    for species in request.species {
        check_entry(species.name)?;
        let layout = names.iter().find(|layout| layout.name == species.name);
        write_particles::write(folder, hierarchy, species, layout.copied())?;
    }
    for (name, text) in &request.run.texts {
        check_entry(name)?;
        write_text(&folder.join(name), text)?;
    }
    write_text(&folder.join("Header"), &header_text(request, &layouts)?)
}

/// The layout of each level: the one asked for where it fits, else a usual one.
fn level_layouts(request: &WriteRequest<'_>) -> Result<Vec<LevelLayout>> {
    let mut layouts = Vec::new();
    let levels = &request.source.hierarchy().levels;
    for (number, level) in levels.iter().enumerate() {
        let given = request.layout.and_then(|layout| layout.levels.get(number));
        let fits = |layout: &&LevelLayout| {
            let known = |file: &u32| (*file as usize) < layout.files.len();
            layout.file.len() == level.boxes.len()
                && layout.file.iter().all(known)
                && (1..=4).contains(&layout.version)
        };
        let layout = match given.filter(fits) {
            Some(layout) => layout.clone(),
            None => default_layout(request.source, number)?,
        };
        for name in layout.files.iter().chain([&layout.path]) {
            check_name(name)
                .map_err(|expected| Error::invalid(format!("{expected} expected, not {name:?}")))?;
        }
        layouts.push(layout);
    }
    Ok(layouts)
}

fn header_text(request: &WriteRequest<'_>, layouts: &[LevelLayout]) -> Result<String> {
    let hierarchy = request.source.hierarchy();
    let paths: Vec<_> = layouts.iter().map(|layout| layout.path.clone()).collect();
    let header = build_header(hierarchy, request.source.fields(), request.run, &paths);
    let given = request.layout.and_then(|layout| layout.header.as_ref());
    let boxes: Vec<_> = hierarchy
        .levels
        .iter()
        .map(|level| level.boxes.clone())
        .collect();
    // Texts with all digits are compared, for NaN is equal to itself there.
    let same = |a: Header, b: Header| {
        a.without_ratios().format(&boxes, 17) == b.without_ratios().format(&boxes, 17)
    };
    if let Some(text) = given
        && let Ok(found) = Header::parse(text, Path::new("Header"))
        && same(found, header.clone())
    {
        return Ok(text.clone());
    }
    header.fields.iter().try_for_each(|name| check_line(name))?;
    let precision = request
        .layout
        .map_or(17, |layout| layout.precision.clamp(1, 40));
    Ok(header.format(&boxes, precision))
}

/// A name of a field or component: a line of its text.
pub fn check_line(name: &str) -> Result<()> {
    if name.trim() != name || name.is_empty() || name.contains(['\n', '\r']) {
        return Err(Error::invalid(format!(
            "{name:?} cannot be the name of a field or component: it must be a line of text"
        )));
    }
    Ok(())
}

/// A name at a plotfile's top level.
fn check_entry(name: &str) -> Result<()> {
    if name == "Header" || name.contains('/') || check_name(name).is_err() {
        return Err(Error::invalid(format!(
            "{name:?} cannot be the name of a text or of particles in a plotfile"
        )));
    }
    Ok(())
}

/// Writes a new file and makes it durable.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let mut file = create(path)?;
    let io = |e| Error::io(e, path, "writing a text of the plotfile");
    file.write_all(text.as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)
}

/// A new file; folders above it are made.
pub fn create(path: &Path) -> Result<fs::File> {
    let io = |e| Error::io(e, path, "making a file of the plotfile");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io)?;
    }
    fs::File::create_new(path).map_err(io)
}

/// The folder being written, beside the one it becomes. Removed unless it is finished.
struct Target {
    folder: PathBuf,
    path: PathBuf,
    done: bool,
}

impl Target {
    fn new(path: &Path) -> Result<Self> {
        free(path)?;
        let name = path.file_name().ok_or_else(|| {
            Error::invalid(format!("{:?} is not the name of a folder", path.display()))
        })?;
        let name = format!(
            ".{}.ambar-new-{}",
            name.to_string_lossy(),
            std::process::id()
        );
        let folder = path.with_file_name(name);
        match fs::create_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::busy(
                "this folder of an unfinished write is there: remove it",
            )
            .in_file(folder.display())),
            Err(e) => Err(Error::io(e, &folder, "making the plotfile's folder")),
            Ok(()) => Ok(Self {
                folder,
                path: path.to_owned(),
                done: false,
            }),
        }
    }

    fn finish(mut self) -> Result<()> {
        free(&self.path)?;
        let io = |e| Error::io(e, &self.path, "renaming the plotfile's folder");
        fs::rename(&self.folder, &self.path).map_err(io)?;
        self.done = true;
        let parent = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::File::open(parent.unwrap_or(Path::new(".")));
        parent.and_then(|parent| parent.sync_all()).map_err(io)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.done {
            // The error that brought us here matters more than one of cleaning up.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn free(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io(e, path, "looking for the plotfile")),
        Ok(_) => Err(
            Error::busy("this exists already: choose another name, or remove it")
                .in_file(path.display()),
        ),
    }
}
