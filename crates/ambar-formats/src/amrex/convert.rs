//! Plotfiles into stores: a snapshot with its cells, its particles, and how its files were laid out.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambar::array::{ArrayData, ArraySpec, Strings};
use ambar::container::{CreateOptions, Durability};
use ambar::kinds::amr::PatchAmr;
use ambar::kinds::amr::patches::{Covered, PatchHierarchy, PatchOptions, PatchSource};
use ambar::kinds::attributes::VERSION;
use ambar::kinds::bound::Compression;
use ambar::kinds::{particles, write};
use ambar::metadata::Attributes;
use ambar::store::{Store, StoreWriter};
use ambar::{Column, DataType, Error, Result};
use serde_json::{Map, Value, json};

use super::layout::{Layout, Run};
use super::plotfile::{LeftOut, Plotfile};
use super::write::Progress;

/// The component that is the cells' fields.
pub(super) const CELLS: &str = "cells";

/// The array with the text of a plotfile's layout.
pub(super) const LAYOUT: &str = "source/layout";

/// The array with the text of what is told of a run, where there is no layout.
pub(super) const RUN: &str = "source/run";

/// The attribute of a species that names the column with each particle's place in the files.
pub(super) const ORDER: &str = "order";

/// What to convert, and how.
#[derive(Clone, Default)]
pub struct ConvertOptions {
    /// `cells`, and names of species; `None` for all there are.
    pub components: Option<Vec<String>>,
    /// Names of the cells' fields to keep; `None` for all.
    pub fields: Option<Vec<String>>,
    /// What becomes of cells that the next finer level covers.
    pub covered: Covered,
    /// How the arrays are compressed. Names of error bounds are those of the cells' fields, or, as
    /// `species/column`, of particles; `*` stands for the cells' fields only.
    pub compression: Compression,
    /// Whether the commit waits for the disk.
    pub durability: Durability,
    /// Whether a store that exists is replaced.
    pub overwrite: bool,
    /// Told of the work done, in hundredths.
    pub progress: Option<Arc<Progress<'static>>>,
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The plotfile's name.
    pub name: String,
    /// Bytes of its files.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub stored_bytes: u64,
    /// What lies in its folder and is no part of the store.
    pub left_out: Vec<LeftOut>,
}

/// What is known of boxes beside their values.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The plotfile's name.
    pub name: String,
    /// The run information, kept among the attributes.
    pub info: Map<String, Value>,
    /// What is needed to write a plotfile again.
    pub run: Run,
    /// Number of files, and their bytes.
    pub usage: (u64, u64),
}

/// Converts a plotfile to a store at `target`, which appears when it is complete.
///
/// # Errors
/// As `Plotfile::open`; `NotFound` for a component or field that is not there; `Corrupt` where a
/// species is damaged that was not left out; `Busy` where `target` exists; `Io`.
pub fn convert(path: &Path, target: &Path, options: &ConvertOptions) -> Result<Converted> {
    let plotfile = Plotfile::open(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy());
    let about = About {
        name: name.unwrap_or_default().into_owned(),
        info: super::json::info(&plotfile),
        run: plotfile.run(),
        usage: plotfile.usage(),
    };
    write_store(&plotfile, Some(&plotfile), &about, target, options)
}

/// Converts boxes without particles, such as those of a plotfile in HDF5, to a store at `target`.
///
/// # Errors
/// As `convert`.
pub fn convert_source(
    source: &dyn PatchSource,
    about: &About,
    target: &Path,
    options: &ConvertOptions,
) -> Result<Converted> {
    write_store(source, None, about, target, options)
}

fn write_store(
    source: &dyn PatchSource,
    plotfile: Option<&Plotfile>,
    about: &About,
    target: &Path,
    options: &ConvertOptions,
) -> Result<Converted> {
    let chosen = Chosen::new(plotfile, options)?;
    let mut writer = StoreWriter::create(
        target,
        &CreateOptions {
            durability: options.durability,
            overwrite: options.overwrite,
            directory: false,
        },
    )?;
    let steps = Steps {
        progress: options.progress.clone(),
    };
    steps.part(0, 0)(0, 1)?;
    let mut components = Map::new();
    writer.group("/", Attributes::new())?;
    if chosen.cells {
        let end = if chosen.species.is_empty() { 99 } else { 70 };
        let fields = options.fields.as_deref().unwrap_or(source.fields());
        components.insert(CELLS.into(), json!(fields));
        write_cells(&mut writer, source, &steps, end, options)?;
        write_texts(&mut writer, plotfile, about, options)?;
    }
    if let Some(plotfile) = plotfile {
        let count = chosen.species.len() as u64;
        for (place, name) in (0u64..).zip(&chosen.species) {
            let span = (70 + 29 * place / count, 70 + 29 * (place + 1) / count);
            let columns = write_species(&mut writer, plotfile, name, &steps, span, options)?;
            components.insert(format!("particles/{name}"), json!(columns));
        }
    }
    let (files, bytes) = about.usage;
    let own = json!({"ambar": {
        "version": VERSION,
        "kind": "snapshot",
        "source": {"format": "amrex", "name": about.name, "files": files, "bytes": bytes},
        "info": about.info,
        "components": components,
        "missing": missing(plotfile),
    }});
    writer.group("/", object(own))?;
    writer.commit()?;
    steps.part(100, 100)(0, 1)?;
    Ok(Converted {
        name: about.name.clone(),
        source_bytes: bytes,
        stored_bytes: Store::open(target)?.usage()?.total,
        left_out: plotfile.map_or_else(Vec::new, |plotfile| plotfile.left_out().to_vec()),
    })
}

fn object(value: Value) -> Attributes {
    match value {
        Value::Object(members) => members,
        _ => Attributes::new(),
    }
}

/// Why parts of a plotfile are not there: what is not read, and species that cannot be.
fn missing(plotfile: Option<&Plotfile>) -> Map<String, Value> {
    let mut missing = Map::new();
    for species in plotfile.iter().flat_map(|plotfile| plotfile.species()) {
        if let Some(why) = species.missing() {
            missing.insert(format!("particles/{}", species.name), json!(why));
        }
    }
    for left in plotfile.iter().flat_map(|plotfile| plotfile.left_out()) {
        missing.insert(left.name.clone(), json!(left.why));
    }
    missing
}

/// The components to convert.
struct Chosen {
    cells: bool,
    species: Vec<String>,
}

impl Chosen {
    fn new(plotfile: Option<&Plotfile>, options: &ConvertOptions) -> Result<Self> {
        let species = plotfile.map_or(&[][..], Plotfile::species);
        let asked = options.components.as_ref();
        let wanted = |name: &str| {
            asked.is_none_or(|asked| {
                asked
                    .iter()
                    .any(|one| one.trim_start_matches("particles/") == name)
            })
        };
        for name in asked.into_iter().flatten() {
            let plain = name.trim_start_matches("particles/");
            if plain != CELLS && !species.iter().any(|species| species.name == plain) {
                let names = species.iter().map(|species| species.name.as_str());
                let known: Vec<&str> = [CELLS].into_iter().chain(names).collect();
                return Err(Error::not_found(format!(
                    "no component {name:?}; there are: {}",
                    known.join(", ")
                )));
            }
        }
        let chosen: Vec<_> = species
            .iter()
            .filter(|species| wanted(&species.name))
            .collect();
        for (name, _) in &options.compression.error_bounds {
            let owner = name.split_once('/').map(|(owner, _)| owner);
            if owner.is_some_and(|owner| !chosen.iter().any(|species| species.name == owner)) {
                return Err(Error::not_found(format!(
                    "an error bound is given for {name:?}, but no such species is converted"
                )));
            }
        }
        // What is broken is not left out silently: a store without it would look whole.
        if let Some(why) = chosen.iter().find_map(|species| species.missing()) {
            return Err(Error::corrupt(format!(
                "{why}; name the components to convert to do without"
            )));
        }
        Ok(Self {
            cells: wanted(CELLS),
            species: chosen.iter().map(|species| species.name.clone()).collect(),
        })
    }
}

/// How far the conversion is.
struct Steps {
    progress: Option<Arc<Progress<'static>>>,
}

impl Steps {
    /// A callback that reports parts of the hundredths from `start` to `end`.
    fn part(
        &self,
        start: u64,
        end: u64,
    ) -> impl Fn(u64, u64) -> Result<()> + Send + Sync + 'static {
        let progress = self.progress.clone();
        move |part, whole| match &progress {
            Some(progress) => {
                let hundredths = (end - start).saturating_mul(part) / whole.max(1);
                progress(start + hundredths, 100)
            }
            None => Ok(()),
        }
    }
}

/// What of a compression is meant for the cells.
fn of_cells(compression: &Compression) -> Compression {
    let bounds = compression.error_bounds.iter();
    Compression {
        profile: compression.profile,
        error_bounds: bounds
            .filter(|(name, _)| !name.contains('/'))
            .cloned()
            .collect(),
    }
}

/// What of a compression is meant for the columns of a species.
fn of_species(compression: &Compression, species: &str) -> Compression {
    let bounds = compression.error_bounds.iter().filter_map(|(name, bound)| {
        let (owner, column) = name.split_once('/')?;
        (owner == species).then(|| (column.to_owned(), *bound))
    });
    Compression {
        profile: compression.profile,
        error_bounds: bounds.collect(),
    }
}

fn write_cells(
    writer: &mut StoreWriter,
    source: &dyn PatchSource,
    steps: &Steps,
    end: u64,
    options: &ConvertOptions,
) -> Result<()> {
    let patches = PatchOptions {
        fields: options.fields.clone(),
        covered: options.covered,
        compression: of_cells(&options.compression),
        progress: Some(Arc::new(steps.part(0, end))),
        ..PatchOptions::default()
    };
    PatchAmr::write(writer, "/amr", source, &patches)
}

/// What is needed to write the plotfile again, as texts in arrays: they can be long.
fn write_texts(
    writer: &mut StoreWriter,
    plotfile: Option<&Plotfile>,
    about: &About,
    options: &ConvertOptions,
) -> Result<()> {
    let (path, text) = match plotfile {
        None => (
            RUN,
            serde_json::to_string(&about.run)
                .map_err(|error| Error::invalid(format!("what is told of a run: {error}")))?,
        ),
        Some(plotfile) => {
            let mut layout = plotfile.layout()?;
            let exact = options.covered != Covered::Drop
                && of_cells(&options.compression).error_bounds.is_empty();
            if !exact || options.fields.is_some() {
                layout.forget_extrema();
            }
            (LAYOUT, layout.to_json()?)
        }
    };
    let texts: Strings = [text].into_iter().collect();
    let spec = ArraySpec::new(DataType::String, &[1]).profile(options.compression.profile);
    writer.write_array(&format!("/{path}"), &spec, ArrayData::Strings(&texts))
}

/// Reads the text that `write_texts` wrote; `None` where there is none.
///
/// # Errors
/// `Corrupt` where the array is no text; `Io`.
pub(super) fn read_text(store: &Store, path: &str) -> Result<Option<String>> {
    if store.kind(path)?.is_none() {
        return Ok(None);
    }
    let array = store.array(path)?;
    let located = |message: &str| {
        Error::corrupt(message)
            .at_node(path)
            .in_file(store.location())
    };
    if *array.dtype() != DataType::String || array.shape() != [1] {
        return Err(located(
            "one text is expected here; restore the file from a copy",
        ));
    }
    let texts = array.read_strings(&[(0..1).into()])?;
    let bytes = texts.get(0).unwrap_or_default().to_vec();
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| located("the text is not UTF-8; restore the file from a copy"))
}

/// The layout that a text in a store says.
pub(super) fn layout_of(store: &Store, path: &str) -> Result<Option<Layout>> {
    let text = read_text(store, path)?;
    let layout = text.map(|text| Layout::from_json(&text)).transpose();
    layout.map_err(|error| error.at_node(path).in_file(store.location()))
}

/// The cube around the domain: its lower corner and side, for the Morton curve of particles.
fn cube(hierarchy: &PatchHierarchy) -> ([f64; 3], f64) {
    let sides = (0..hierarchy.ndim).map(|d| hierarchy.upper[d] - hierarchy.lower[d]);
    (hierarchy.lower, sides.fold(0.0, f64::max))
}

/// Writes a species along the Morton curve; gives the names of its columns.
fn write_species(
    writer: &mut StoreWriter,
    plotfile: &Plotfile,
    name: &str,
    steps: &Steps,
    (start, end): (u64, u64),
    options: &ConvertOptions,
) -> Result<Vec<String>> {
    let mut columns = plotfile.read_particles(name)?;
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let rows = columns.first().map_or(0, |(_, column)| column.rows());
    let (order, places) = places(rows, &names)?;
    columns.push((order.clone(), places));
    let ndim = plotfile.ndim();
    let (lower, side) = cube(plotfile.hierarchy());
    particles::sort_from(&mut columns, ndim, lower, side)?;
    let whole: u64 = columns
        .iter()
        .map(|(_, column)| column.bytes().len() as u64)
        .sum();
    let (part, written) = (steps.part(start, end), AtomicU64::new(0));
    writer.observe(Some(Arc::new(move |bytes| {
        let written = written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Chunks at the end are padded: never more than all.
        part(written.min(whole), whole)
    })));
    let more = object(json!({
        ORDER: order,
        "lower": &lower[..ndim],
        "species": name,
        "format": plotfile.species().iter().find(|s| s.name == name).map(|s| s.version()),
    }));
    let path = format!("/particles/{name}");
    let compression = of_species(&options.compression, name);
    compression.check_names(&names)?;
    write::particles(writer, &path, &columns, (ndim, side), more, &compression)?;
    writer.observe(None);
    Ok(names)
}

/// The column of each particle's place in the files, and a name for it that is not taken.
fn places(rows: usize, names: &[String]) -> Result<(String, Column)> {
    let mut name = "file_row".to_owned();
    while names.contains(&name) {
        name.push('_');
    }
    let column = Column::allocate(&[DataType::UInt32], rows)?.pop();
    let mut column = column.ok_or_else(|| Error::limit("no memory for particles"))?;
    // Sorting takes no more rows than fit in 32 bits.
    for (place, to) in (0u32..).zip(column.values_mut::<u32>()) {
        *to = place;
    }
    Ok((name, column))
}
