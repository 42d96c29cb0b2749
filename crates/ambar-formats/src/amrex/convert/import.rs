//! Converting a plotfile to a store: a snapshot with its cells, its particles and its layout.

use std::path::Path;
use std::sync::Arc;

use ambar::array::{ArrayData, ArraySpec, Strings};
use ambar::kinds::amr::PatchAmr;
use ambar::kinds::amr::patches::{Covered, PatchHierarchy, PatchOptions, PatchSource};
use ambar::kinds::attributes::VERSION;
use ambar::kinds::bound::{Compression, missing_target};
use ambar::kinds::{particles, write};
use ambar::metadata::Attributes;
use ambar::store::StoreWriter;
use ambar::{Column, DataType, Error, Result};
use serde_json::{Map, Value, json};

use super::observed_extrema::ObservedExtrema;
use super::options::{ConvertOptions, SourceInfo};
use super::stored::{LAYOUT, ORDER, RUN};
use crate::amrex::json;
use crate::amrex::plotfile::Plotfile;
use crate::progress::{ConversionProgress, Phase};
use crate::series::{ConvertReport, name_of};

/// The name of the component with the fields of cells.
const CELLS: &str = "cells";

/// A plotfile to convert.
pub enum Input {
    /// A native plotfile.
    Native(Box<Plotfile>),
    /// Patches without particles, such as those of an HDF5 plotfile.
    Patches(Arc<dyn PatchSource>, Box<SourceInfo>),
}

impl Input {
    /// Opens a native plotfile.
    ///
    /// # Errors
    /// As `Plotfile::open`.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::Native(Box::new(Plotfile::open(path)?)))
    }

    fn plotfile(&self) -> Option<&Plotfile> {
        match self {
            Self::Native(plotfile) => Some(plotfile),
            Self::Patches(..) => None,
        }
    }

    fn patches(&self) -> &dyn PatchSource {
        match self {
            Self::Native(plotfile) => &**plotfile,
            Self::Patches(patches, _) => &**patches,
        }
    }

    fn info(&self) -> SourceInfo {
        match self {
            Self::Native(plotfile) => SourceInfo {
                name: name_of(plotfile.path()),
                info: json::info(plotfile),
                run: plotfile.run(),
                usage: plotfile.usage().clone(),
            },
            Self::Patches(_, info) => (**info).clone(),
        }
    }
}

/// Converts a plotfile to a store at `target`, which appears when it is complete.
///
/// # Errors
/// `NotFound` for a component or field that does not exist; `Corrupt` for a damaged
/// species among the components; `Exists` if `target` exists; `Io`.
pub fn convert(input: &Input, target: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    let selection = ComponentSelection::new(input.plotfile(), options)?;
    let mut writer = options.store.create(target)?;
    let progress = ConversionProgress::new(options.store.progress.clone(), 0, 1);
    let mut report = ConvertReport::default();
    let snapshot = SnapshotWriter {
        input,
        info: input.info(),
        selection,
        options,
        progress: &progress,
    };
    snapshot.write(&mut writer, "/", &mut report)?;
    writer.commit()?;
    writer.finish()?;
    progress.report(100)?;
    report.source_bytes = snapshot.info.usage.bytes;
    report.stored_bytes = options.store.open(target)?.usage()?.total;
    report.converted.push(snapshot.info.name);
    Ok(report)
}

/// Writes a plotfile whose files have the fingerprint `fingerprint` as a step of a series, in the group at
/// `path`.
///
/// # Errors
/// As `convert`.
pub fn write_step(
    (input, fingerprint): &(Input, String),
    (writer, path): (&mut StoreWriter, &str),
    options: &ConvertOptions,
    progress: &ConversionProgress,
    report: &mut ConvertReport,
) -> Result<()> {
    let mut info = input.info();
    info.usage.fingerprint.clone_from(fingerprint);
    let snapshot = SnapshotWriter {
        input,
        info,
        selection: ComponentSelection::new(input.plotfile(), options)?,
        options,
        progress,
    };
    snapshot.write(writer, path, report)
}

/// Writes one plotfile as a snapshot.
struct SnapshotWriter<'a> {
    input: &'a Input,
    info: SourceInfo,
    selection: ComponentSelection,
    options: &'a ConvertOptions,
    progress: &'a ConversionProgress,
}

impl SnapshotWriter<'_> {
    /// Writes the group at `path`, and adds the files that it lacks to the report.
    fn write(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        report: &mut ConvertReport,
    ) -> Result<()> {
        let Self {
            info,
            selection,
            options,
            progress,
            ..
        } = self;
        let (source, plotfile) = (self.input.patches(), self.input.plotfile());
        let below = path.trim_end_matches('/');
        progress.report(0)?;
        let mut components = Map::new();
        writer.group(path, Attributes::new())?;
        if selection.cells {
            let end = if selection.species.is_empty() { 99 } else { 70 };
            let fields = options.fields.as_deref().unwrap_or(source.fields());
            components.insert(CELLS.into(), json!(fields));
            let phase = progress.phase(Phase::new(0, end));
            let observed = ObservedExtrema::new(source);
            write_cells(writer, &format!("{below}/amr"), &observed, phase, options)?;
            write_texts(
                writer,
                below,
                plotfile.map(|p| (p, &observed)),
                info,
                options,
            )?;
        }
        if let Some(plotfile) = plotfile {
            let count = selection.species.len() as u64;
            for (place, name) in (0u64..).zip(&selection.species) {
                let phase = Phase::new(70 + 29 * place / count, 70 + 29 * (place + 1) / count);
                let species = SpeciesImport {
                    plotfile,
                    name,
                    options,
                };
                let group = format!("{below}/particles/{name}");
                let columns = species.write(writer, &group, progress, phase)?;
                components.insert(format!("particles/{name}"), json!(columns));
            }
        }
        let usage = &info.usage;
        let mut source = json!({
            "format": "amrex",
            "name": info.name,
            "files": usage.files,
            "fingerprint": usage.fingerprint,
        });
        if !options.selects_part() {
            source["bytes"] = json!(usage.bytes);
        }
        let attributes = json!({"ambar": {
            "version": VERSION,
            "kind": "snapshot",
            "source": source,
            "info": info.info,
            "components": components,
            "missing": missing(plotfile),
        }});
        writer.set_attributes(path, object(attributes))?;
        for entry in plotfile.iter().flat_map(|plotfile| plotfile.ignored()) {
            report.leave_out(&entry.name, &entry.why);
        }
        progress.report(99)
    }
}

fn object(value: Value) -> Attributes {
    match value {
        Value::Object(members) => members,
        _ => Attributes::new(),
    }
}

/// The parts of a plotfile that are not in the store, with the reasons: entries that are not read, and
/// species that cannot be read.
fn missing(plotfile: Option<&Plotfile>) -> Map<String, Value> {
    let mut missing = Map::new();
    for species in plotfile.iter().flat_map(|plotfile| plotfile.species()) {
        if let Some(why) = species.missing() {
            missing.insert(format!("particles/{}", species.name), json!(why));
        }
    }
    for entry in plotfile.iter().flat_map(|plotfile| plotfile.ignored()) {
        missing.insert(entry.name.clone(), json!(entry.why));
    }
    missing
}

/// The components to convert.
struct ComponentSelection {
    cells: bool,
    species: Vec<String>,
}

impl ComponentSelection {
    fn new(plotfile: Option<&Plotfile>, options: &ConvertOptions) -> Result<Self> {
        let species = plotfile.map_or(&[][..], Plotfile::species);
        let requested = options.components.as_ref();
        let is_wanted = |name: &str| {
            requested.is_none_or(|components| {
                let mut names = components.iter();
                names.any(|other| other.trim_start_matches("particles/") == name)
            })
        };
        for name in requested.into_iter().flatten() {
            let plain = name.trim_start_matches("particles/");
            if plain != CELLS && !species.iter().any(|species| species.name == plain) {
                let names = species.iter().map(|species| species.name.as_str());
                let known: Vec<&str> = [CELLS].into_iter().chain(names).collect();
                return Err(Error::not_found(format!(
                    "component {name:?} does not exist; available: {}",
                    known.join(", ")
                )));
            }
        }
        let chosen: Vec<_> = species
            .iter()
            .filter(|species| is_wanted(&species.name))
            .collect();
        let cells = is_wanted(CELLS);
        let names: Vec<&str> = chosen.iter().map(|species| &species.name[..]).collect();
        for (target, _) in &options.compression.error_bounds {
            match species_column(target) {
                Some((owner, _)) if !names.contains(&owner) => {
                    return Err(missing_target("such a species", owner, &names));
                }
                None if !cells && target != "*" => {
                    return Err(Error::not_found(format!(
                        "an error bound is given for {target:?}, but the component \"cells\" is not converted"
                    )));
                }
                _ => {}
            }
        }
        // Damaged species are not skipped silently: the store would look complete.
        if let Some(why) = chosen.iter().find_map(|species| species.missing()) {
            return Err(Error::corrupt(format!(
                "{why}; name the components to convert without it"
            )));
        }
        Ok(Self {
            cells,
            species: chosen.iter().map(|species| species.name.clone()).collect(),
        })
    }
}

/// The part of a compression that applies to the cells.
fn of_cells(compression: &Compression) -> Compression {
    let bounds = compression.error_bounds.iter();
    Compression {
        profile: compression.profile,
        error_bounds: bounds
            .filter(|(target, _)| species_column(target).is_none())
            .cloned()
            .collect(),
    }
}

/// The species and the column of a target such as `DM/mass` or `particles/DM/mass`; `None` for targets of cells.
///
/// In `particles/mass`, "particles" is the name of a species.
fn species_column(target: &str) -> Option<(&str, &str)> {
    let (first, rest) = target.split_once('/')?;
    match rest.split_once('/') {
        Some(named) if first == "particles" => Some(named),
        _ => Some((first, rest)),
    }
}

/// The part of a compression that applies to the columns of a species.
fn of_species(compression: &Compression, species: &str) -> Compression {
    let bounds = compression.error_bounds.iter().filter_map(|(name, bound)| {
        let (owner, column) = species_column(name)?;
        (owner == species).then(|| (column.to_owned(), *bound))
    });
    Compression {
        profile: compression.profile,
        error_bounds: bounds.collect(),
    }
}

fn write_cells(
    writer: &mut StoreWriter,
    path: &str,
    source: &dyn PatchSource,
    progress: impl Fn(u64, u64) -> Result<()> + Send + Sync + 'static,
    options: &ConvertOptions,
) -> Result<()> {
    let patches = PatchOptions {
        fields: options.fields.clone(),
        covered: options.covered,
        compression: of_cells(&options.compression),
        progress: Some(Arc::new(progress)),
        ..PatchOptions::default()
    };
    PatchAmr::write(writer, path, source, &patches)
}

/// Writes what is needed to export the plotfile, as text in an array, which can be long.
fn write_texts(
    writer: &mut StoreWriter,
    group: &str,
    plotfile: Option<(&Plotfile, &ObservedExtrema<'_>)>,
    info: &SourceInfo,
    options: &ConvertOptions,
) -> Result<()> {
    let (path, text) = match plotfile {
        None => (
            RUN,
            serde_json::to_string(&info.run).map_err(|error| {
                Error::invalid(format!("cannot write the run information as JSON: {error}"))
            })?,
        ),
        Some((plotfile, observed)) => {
            let mut layout = plotfile.layout()?;
            let is_exact = options.covered != Covered::Drop
                && of_cells(&options.compression).error_bounds.is_empty();
            if !is_exact || options.fields.is_some() {
                layout.clear_extrema();
            } else {
                layout.omit_extrema(plotfile, |level, is_total| {
                    observed.of_level(level, is_total)
                });
            }
            (LAYOUT, layout.to_json()?)
        }
    };
    let texts: Strings = [text].into_iter().collect();
    let spec = ArraySpec::new(DataType::String, &[1]).profile(options.compression.profile);
    writer.write_array(
        &format!("{group}/{path}"),
        &spec,
        ArrayData::Strings(&texts),
    )
}

/// The cube around the domain (lower corner and side), for the Morton curve of particles.
fn cube(hierarchy: &PatchHierarchy) -> ([f64; 3], f64) {
    let sides = (0..hierarchy.ndim).map(|d| hierarchy.upper[d] - hierarchy.lower[d]);
    (hierarchy.lower, sides.fold(0.0, f64::max))
}

/// A species to convert.
struct SpeciesImport<'a> {
    plotfile: &'a Plotfile,
    name: &'a str,
    options: &'a ConvertOptions,
}

impl SpeciesImport<'_> {
    /// Writes the species along the Morton curve to the group at `path`, and returns the names of its columns.
    fn write(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        progress: &ConversionProgress,
        phase: Phase,
    ) -> Result<Vec<String>> {
        let Self { plotfile, name, .. } = *self;
        let mut columns = plotfile.read_particles(name)?;
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        let (order, file_rows) = file_rows(rows, &names)?;
        columns.push((order.clone(), file_rows));
        let ndim = plotfile.ndim();
        let (lower, side) = cube(plotfile.hierarchy());
        particles::sort_from(&mut columns, ndim, lower, side)?;
        let bytes = columns
            .iter()
            .map(|(_, column)| column.bytes().len() as u64);
        progress.observe(writer, bytes.sum(), phase);
        let mut species = plotfile.species().iter();
        let version = species.find(|species| species.name == name);
        let more = object(json!({
            ORDER: order,
            "lower": &lower[..ndim],
            "species": name,
            "format": version.map(|species| species.version()),
        }));
        let compression = of_species(&self.options.compression, name);
        compression.check_names(&names)?;
        write::particles(writer, path, &columns, ndim, side, more, &compression)?;
        writer.observe(None);
        Ok(names)
    }
}

/// The column of each particle's row in the files, and an unused name for it.
fn file_rows(rows: usize, names: &[String]) -> Result<(String, Column)> {
    let mut name = "file_row".to_owned();
    while names.contains(&name) {
        name.push('_');
    }
    let column = Column::allocate(&[DataType::UInt32], rows)?.pop();
    let mut column =
        column.ok_or_else(|| Error::limit("the column of file rows was not allocated"))?;
    // Sorting rejects more rows than 32 bits can count.
    for (row, value) in (0u32..).zip(column.values_mut::<u32>()) {
        *value = row;
    }
    Ok((name, column))
}

#[cfg(test)]
mod tests {
    use super::species_column;

    #[test]
    fn targets_name_species_and_columns() {
        for (target, expected) in [
            ("density", None),
            ("DM/mass", Some(("DM", "mass"))),
            ("particles/DM/mass", Some(("DM", "mass"))),
            ("particles/mass", Some(("particles", "mass"))),
            ("particles/*", Some(("particles", "*"))),
            ("particles/particles/mass", Some(("particles", "mass"))),
        ] {
            assert_eq!(species_column(target), expected, "{target}");
        }
    }
}
