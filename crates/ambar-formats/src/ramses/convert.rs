//! Outputs into stores: one output a snapshot, a run's folder of outputs a series.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability};
use ambar::kinds::amr::AmrTree;
use ambar::kinds::attributes::VERSION;
use ambar::kinds::bound::{Compression, ErrorBound};
use ambar::kinds::{particles, write};
use ambar::metadata::Attributes;
use ambar::store::{Store, StoreWriter};
use ambar::{Column, Error, Result};
use serde_json::{Map, Value, json};

use super::complete::{self, FileKinds};
use super::folder::{Folder, Survey};
use super::{CellsRequest, ComponentKind, Missing, Output, ParticlesRequest, Progress, json, run};

/// What to convert, and how.
#[derive(Clone, Default)]
pub struct ConvertOptions {
    /// Components to keep; `None` for all there are.
    pub components: Option<Vec<ComponentKind>>,
    /// Names (or aliases) of the fields to keep, of cells and particles; `None` for all.
    pub fields: Option<Vec<String>>,
    /// First and last level of the leaf cells to keep, as `CellsRequest::levels`.
    pub levels: Option<(u8, u8)>,
    /// The level at which the tree ends, as `CellsRequest::max_level`.
    pub max_level: Option<u8>,
    /// How the arrays are compressed. Names of error bounds are those (or aliases) of fields of cells
    /// or of columns of particles; `*` stands for the fields of cells only.
    pub compression: Compression,
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// Whether a store that exists is replaced. Without it a series is continued, a single
    /// output's store is an error.
    pub overwrite: bool,
    /// What happens where one of several outputs cannot be converted.
    pub on_error: OnError,
    /// Told of the work done: hundredths of an output, of all outputs.
    pub progress: Option<Arc<Progress<'static>>>,
}

/// What a conversion of several outputs does where one of them cannot be converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It ends with the error. Outputs that are committed stay.
    #[default]
    Stop,
    /// It lists the output with the reason, and converts the others.
    Skip,
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Names of the outputs converted that the store did not have.
    pub converted: Vec<String>,
    /// Names of those converted again, because their files have changed.
    pub replaced: Vec<String>,
    /// Names of those that the store had already.
    pub skipped: Vec<String>,
    /// Names of the folders that could not be converted, and why.
    pub failed: Vec<(String, String)>,
    /// Bytes of all files of the outputs, converted, replaced and skipped.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub stored_bytes: u64,
}

/// Converts an output, or a folder with `output_NNNNN` folders in it, to a store at `target`.
///
/// One output becomes a snapshot: the store appears when it is complete. A folder becomes a series,
/// committed output by output, so that an interrupted conversion goes on where it stopped. Outputs
/// of the series whose files have changed since are converted again. An output that RAMSES has not
/// finished writing is an error.
///
/// # Errors
/// As `Output::open`, `Output::read_cells` and `Output::read_particles`; `Corrupt` where an output
/// is not complete; `Invalid` where `target` is a store of another kind; `Busy` where it exists or
/// another writer has it; `Io`. With `OnError::Skip` the errors of outputs are listed instead,
/// unless none of several can be converted.
pub fn convert(path: &Path, target: &Path, options: &ConvertOptions) -> Result<Converted> {
    let outputs = outputs_in(path)?;
    let mut report = if outputs.is_empty() {
        convert_one(path, target, options)?
    } else {
        run::convert(&outputs, target, options)?
    };
    report.stored_bytes = Store::open(target)?.usage()?.total;
    Ok(report)
}

fn convert_one(path: &Path, target: &Path, options: &ConvertOptions) -> Result<Converted> {
    let found = Found::in_folder(Folder::open(path)?)?;
    let source = found.check(options, None)?;
    let mut writer = create(target, options)?;
    let steps = Steps {
        options,
        done: 0,
        outputs: 1,
    };
    write_snapshot(&mut writer, "/", &source, &steps)?;
    writer.commit()?;
    steps.report(100)?;
    Ok(Converted {
        converted: vec![source.name()],
        source_bytes: source.survey.bytes,
        ..Converted::default()
    })
}

/// An output's folder, not yet opened as an output.
pub struct Found {
    /// The folder.
    pub folder: Folder,
    /// Its files.
    pub survey: Survey,
}

impl Found {
    /// Surveys an output's files.
    pub fn in_folder(folder: Folder) -> Result<Self> {
        let survey = folder.survey()?;
        Ok(Self { folder, survey })
    }

    /// Opens the output, which must be complete; `before` is as for `complete::check`.
    pub fn check(self, options: &ConvertOptions, before: Option<&FileKinds>) -> Result<Source> {
        let info = super::read_info(&self.folder)?;
        let asked = options.components.as_deref();
        complete::check(&self.folder, &info, &self.survey, asked, before)?;
        Ok(Source {
            output: Output::of(self.folder)?,
            survey: self.survey,
        })
    }
}

/// An output to convert.
pub struct Source {
    /// The output.
    pub output: Output,
    /// Its files as they were before they were read.
    pub survey: Survey,
}

impl Source {
    /// Its name as a step: `output_NNNNN`.
    pub fn name(&self) -> String {
        step_name(self.output.info().number)
    }
}

/// The name of an output as a step of a series.
pub fn step_name(number: u32) -> String {
    format!("output_{number:05}")
}

/// The outputs that lie in a folder, by number; none where it is an output itself.
fn outputs_in(path: &Path) -> Result<Vec<PathBuf>> {
    let io = |e| Error::io(e, path, "listing a run's folder");
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("output_"));
        let number = number.and_then(|digits| digits.parse::<u32>().ok());
        if let Some(number) = number.filter(|_| entry.path().is_dir()) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// A writer of a new store.
pub fn create(target: &Path, options: &ConvertOptions) -> Result<StoreWriter> {
    let (durability, overwrite) = (options.durability, options.overwrite);
    StoreWriter::create(
        target,
        &CreateOptions {
            durability,
            overwrite,
            directory: false,
        },
    )
}

/// A JSON object's members; none where it is not an object.
pub fn object(value: Value) -> Attributes {
    match value {
        Value::Object(members) => members,
        _ => Attributes::new(),
    }
}

/// How far the conversion is.
pub struct Steps<'a> {
    /// The options.
    pub options: &'a ConvertOptions,
    /// Outputs done.
    pub done: u64,
    /// All outputs.
    pub outputs: u64,
}

impl Steps<'_> {
    /// Reports `hundredths` of the current output.
    pub fn report(&self, hundredths: u64) -> Result<()> {
        self.part(hundredths, hundredths)(0, 1)
    }

    /// A callback that reports parts of the hundredths from `start` to `end`.
    fn part(
        &self,
        start: u64,
        end: u64,
    ) -> impl Fn(u64, u64) -> Result<()> + Send + Sync + 'static {
        let (done, total) = (self.done * 100, self.outputs * 100);
        let progress = self.options.progress.clone();
        move |part, whole| match &progress {
            Some(progress) => {
                let hundredths = (end - start).saturating_mul(part) / whole.max(1);
                progress(done + start + hundredths, total)
            }
            None => Ok(()),
        }
    }

    /// Has the writer report the hundredths from `start` to `end` while it encodes `columns`.
    fn watch(
        &self,
        writer: &mut StoreWriter,
        columns: &[(String, Column)],
        (start, end): (u64, u64),
    ) {
        let whole: u64 = columns
            .iter()
            .map(|(_, column)| column.bytes().len() as u64)
            .sum();
        let (part, written) = (self.part(start, end), AtomicU64::new(0));
        writer.observe(Some(Arc::new(move |bytes| {
            let written = written.fetch_add(bytes, Ordering::Relaxed) + bytes;
            // Chunks at the end are padded: never more than all.
            part(written.min(whole), whole)
        })));
    }
}

/// Writes one output as a snapshot in the group at `path`.
pub fn write_snapshot(
    writer: &mut StoreWriter,
    path: &str,
    source: &Source,
    steps: &Steps<'_>,
) -> Result<()> {
    let Source { output, survey } = source;
    let wanted = Wanted::new(output, steps.options)?;
    let mut written = Map::new();
    writer.group(path, Attributes::new())?;
    let below = path.trim_end_matches('/');
    let info = json::info(output)?;
    if !wanted.cells.is_empty() {
        write_cells(writer, &format!("{below}/amr"), output, &wanted, steps)?;
        for kind in &wanted.cells {
            written.insert(kind.name().into(), json!(wanted.names(output, *kind)));
        }
    }
    for kind in &wanted.tables {
        let group = format!("{below}/{}", kind.name());
        if let Some(names) = write_table(writer, &group, output, *kind, &wanted, steps)? {
            written.insert(kind.name().into(), json!(names));
        }
    }
    let source = json!({
        "format": "ramses",
        "output": output.info().number,
        "files": survey.files,
        "bytes": survey.bytes,
        "fingerprint": survey.fingerprint,
    });
    let own = json!({"ambar": {
        "version": VERSION,
        "kind": "snapshot",
        "source": source,
        "info": info,
        "components": written,
        "missing": json::missing(output.components()),
    }});
    writer.set_attributes(path, object(own))?;
    steps.report(99)
}

/// Writes the leaf cells with the fields of all components on them.
fn write_cells(
    writer: &mut StoreWriter,
    path: &str,
    output: &Output,
    wanted: &Wanted,
    steps: &Steps<'_>,
) -> Result<()> {
    let mut names = Vec::new();
    let mut components = Map::new();
    for kind in &wanted.cells {
        let fields = wanted.names(output, *kind);
        components.insert(kind.name().into(), json!(fields));
        names.extend(fields);
    }
    let reading = steps.part(0, 40);
    let request = CellsRequest {
        components: Some(wanted.cells.clone()),
        fields: Some(names),
        levels: steps.options.levels,
        max_level: steps.options.max_level,
        domain: wanted.fields.is_none(),
        progress: Some(&reading),
        ..CellsRequest::default()
    };
    let cells = output.read_cells(&request)?;
    let more = object(json!({"components": components}));
    let names = cells.columns.iter().map(|(name, _)| name.clone()).collect();
    let compression = wanted.compression(steps.options.compression.profile, names, true);
    steps.watch(writer, &cells.columns, (40, 80));
    AmrTree::write(
        writer,
        path,
        &cells.leaves,
        &cells.columns,
        more,
        &compression,
    )
}

/// Writes particles (along the Morton curve), sinks or clumps. Gives the names of the columns;
/// `None` where none of the fields that are asked for is among them.
fn write_table(
    writer: &mut StoreWriter,
    path: &str,
    output: &Output,
    kind: ComponentKind,
    wanted: &Wanted,
    steps: &Steps<'_>,
) -> Result<Option<Vec<String>>> {
    let names = wanted.names(output, kind);
    if names.is_empty() {
        return Ok(None);
    }
    let (ndim, boxlen) = (output.info().ndim, output.info().boxlen);
    let more = Attributes::new();
    let profile = steps.options.compression.profile;
    if kind == ComponentKind::Particles {
        let reading = steps.part(80, 90);
        let request = ParticlesRequest {
            fields: wanted
                .fields
                .is_some()
                .then(|| with_positions(&names, ndim)),
            domain: wanted.fields.is_none(),
            progress: Some(&reading),
            ..ParticlesRequest::default()
        };
        let mut columns = output.read_particles(&request)?;
        particles::sort(&mut columns, ndim, boxlen)?;
        steps.watch(writer, &columns, (90, 99));
        let compression = wanted.compression(profile, own(&columns), false);
        write::particles(writer, path, &columns, (ndim, boxlen), more, &compression)?;
        return Ok(Some(own(&columns)));
    }
    let columns = match kind {
        ComponentKind::Sinks => output.read_sinks()?,
        _ => output.read_clumps()?,
    };
    let mut columns = columns.unwrap_or_default();
    columns.retain(|(name, _)| names.contains(name));
    write::table(writer, path, &columns, more, &profile.into())?;
    Ok(Some(own(&columns)))
}

/// Names of columns, without `domain`, which is no field of the output.
fn own(columns: &[(String, Column)]) -> Vec<String> {
    let names = columns.iter().map(|(name, _)| name.clone());
    names.filter(|name| name != "domain").collect()
}

/// `names` and the positions, which particles cannot do without.
fn with_positions(names: &[String], ndim: usize) -> Vec<String> {
    let positions = particles::position_names(ndim);
    let missing = positions
        .into_iter()
        .filter(|position| !names.contains(position));
    missing.chain(names.iter().cloned()).collect()
}

/// The components and fields to convert, checked against what the output has.
struct Wanted {
    /// Components on cells.
    cells: Vec<ComponentKind>,
    /// Particles, sinks, clumps.
    tables: Vec<ComponentKind>,
    /// Their own names of the fields asked for; `None` for all.
    fields: Option<Vec<String>>,
    /// Error bounds by the fields' own names.
    bounds: Vec<(String, ErrorBound)>,
}

impl Wanted {
    fn new(output: &Output, options: &ConvertOptions) -> Result<Self> {
        let mut kinds = Vec::new();
        for component in output.components() {
            let asked = options.components.as_ref();
            match &component.missing {
                None if asked.is_none_or(|asked| asked.contains(&component.kind)) => {
                    kinds.push(component.kind);
                }
                Some(missing) if asked.is_some_and(|asked| asked.contains(&component.kind)) => {
                    return Err(output.cannot_read(component.kind, missing));
                }
                // What is broken is not left out silently: a store without it would look whole.
                Some(missing @ Missing::Broken(_)) if asked.is_none() => {
                    return Err(output.cannot_read(component.kind, missing));
                }
                _ => {}
            }
        }
        let fields = options
            .fields
            .as_ref()
            .map(|names| own_names(output, &kinds, names));
        let mut bounds = Vec::new();
        for (name, bound) in &options.compression.error_bounds {
            if name == "*" {
                bounds.push((name.clone(), *bound));
            } else {
                let own = own_names(output, &kinds, std::slice::from_ref(name))?;
                bounds.extend(own.into_iter().map(|name| (name, *bound)));
            }
        }
        let (cells, tables) = kinds.into_iter().partition(|kind| kind.on_cells());
        Ok(Self {
            cells,
            tables,
            fields: fields.transpose()?,
            bounds,
        })
    }

    /// The compression of a group with these columns; `star`: what has no bound of its own gets that
    /// of `*`.
    fn compression(&self, profile: Profile, names: Vec<String>, star: bool) -> Compression {
        let bounds = self.bounds.iter();
        let of_group = bounds.filter(|(name, _)| {
            if name == "*" {
                star
            } else {
                names.contains(name)
            }
        });
        Compression {
            profile,
            error_bounds: of_group.cloned().collect(),
        }
    }

    /// The names of a component's fields that are kept.
    fn names(&self, output: &Output, kind: ComponentKind) -> Vec<String> {
        let component = output
            .components()
            .iter()
            .find(|component| component.kind == kind);
        let fields = component.map_or(&[][..], |component| &component.fields);
        let kept = |name: &String| {
            self.fields
                .as_ref()
                .is_none_or(|wanted| wanted.contains(name))
        };
        fields
            .iter()
            .map(|field| field.name.clone())
            .filter(kept)
            .collect()
    }
}

/// The outputs' own names of the fields asked for by name or alias.
fn own_names(output: &Output, kinds: &[ComponentKind], names: &[String]) -> Result<Vec<String>> {
    let components = output.components().iter();
    let fields: Vec<_> = components
        .filter(|component| kinds.contains(&component.kind))
        .flat_map(|component| &component.fields)
        .collect();
    let own = |name: &String| {
        let named = fields.iter().filter(|field| {
            field.name == *name || field.alias.as_ref().is_some_and(|alias| alias == name)
        });
        let found: Vec<String> = named.map(|field| field.name.clone()).collect();
        if found.is_empty() {
            let known: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("no field {name:?}; there are: {}", known.join(", "));
            return Err(Error::not_found(message).in_file(output.path().display()));
        }
        Ok(found)
    };
    Ok(names.iter().map(own).collect::<Result<Vec<_>>>()?.concat())
}
