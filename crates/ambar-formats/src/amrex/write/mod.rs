//! Writing a native plotfile, for AMReX and yt, from any source of patches.

mod create;
mod fields;
mod particles;
pub mod request;
mod staging;

use std::path::Path;

use ambar::{Error, Result};

use super::files::header::PlotfileHeader;
use super::files::names::check_path;
use super::layout::LevelLayout;
use super::layout::run::build_header;
use crate::progress::ProgressCounter;
use create::{check_line, write_text};
use fields::{LevelWriter, default_layout};
use request::WriteRequest;
use staging::StagingFolder;

/// Writes a plotfile, on the threads of the current rayon pool. With the layout of an existing plotfile,
/// the files become the same again, except for ghost cells and bytes between FABs.
///
/// The files are written to a temporary folder beside `path` and made durable; then the folder is
/// renamed.
///
/// # Errors
/// `Exists` if `path` exists; `Invalid` for columns that `SpeciesData` does not allow, or invalid names;
/// those of the source and of `progress`; `Io`.
pub fn write_plotfile(path: &Path, request: &WriteRequest<'_>) -> Result<()> {
    request.source.hierarchy().check()?;
    let target = StagingFolder::new(path)?;
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
    let counter = ProgressCounter::new(request.progress, total);
    let layouts = level_layouts(request)?;
    for (number, layout) in layouts.iter().enumerate() {
        let writer = LevelWriter {
            source,
            number,
            layout,
            counter: &counter,
        };
        writer.write(folder)?;
    }
    let names: Vec<_> = request
        .layout
        .iter()
        .flat_map(|layout| &layout.species)
        .collect();
    for species in request.species {
        check_entry(species.name)?;
        let layout = names.iter().find(|layout| layout.name == species.name);
        particles::write(folder, hierarchy, species, layout.copied())?;
    }
    for (name, text) in &request.run.text_files {
        check_entry(name)?;
        write_text(&folder.join(name), text)?;
    }
    write_text(&folder.join("Header"), &header_text(request, &layouts)?)
}

/// The layout of each level: the requested one if it matches the boxes, else the default.
fn level_layouts(request: &WriteRequest<'_>) -> Result<Vec<LevelLayout>> {
    let mut layouts = Vec::new();
    let levels = &request.source.hierarchy().levels;
    for (number, level) in levels.iter().enumerate() {
        let given = request.layout.and_then(|layout| layout.levels.get(number));
        let matches = |layout: &&LevelLayout| {
            let exists = |file: &u32| (*file as usize) < layout.files.len();
            layout.file.len() == level.boxes.len()
                && layout.file.iter().all(exists)
                && (1..=4).contains(&layout.version)
        };
        let layout = match given.filter(matches) {
            Some(layout) => layout.clone(),
            None => default_layout(request.source, number)?,
        };
        for name in layout.files.iter().chain([&layout.path]) {
            check_path(name).map_err(|expected| {
                Error::invalid(format!(
                    "expected {expected}, found {name:?}; rename the file"
                ))
            })?;
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
    // Compares formatted numbers with all digits, in which NaN equals NaN.
    let is_same = |a: PlotfileHeader, b: PlotfileHeader| {
        a.without_ratios().format(&boxes, 17) == b.without_ratios().format(&boxes, 17)
    };
    if let Some(text) = given
        && let Ok(found) = PlotfileHeader::parse(text, Path::new("Header"))
        && is_same(found, header.clone())
    {
        return Ok(text.clone());
    }
    header.fields.iter().try_for_each(|name| check_line(name))?;
    let precision = request
        .layout
        .map_or(17, |layout| layout.precision.clamp(1, 40));
    Ok(header.format(&boxes, precision))
}

/// Checks the name of an entry in the plotfile's folder.
fn check_entry(name: &str) -> Result<()> {
    if name == "Header" || name.contains('/') || check_path(name).is_err() {
        return Err(Error::invalid(format!(
            "invalid name of a text file or particle species in a plotfile: {name:?}; expected a file name \
             other than Header; rename it"
        )));
    }
    Ok(())
}
