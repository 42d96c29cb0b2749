//! Writing one output as a snapshot.

use ambar::codec::Profile;
use ambar::kinds::amr::AmrTree;
use ambar::kinds::attributes::VERSION;
use ambar::kinds::bound::{
    BoundTarget, Compression, ErrorBound, FieldBounds, Selected, missing_target,
};
use ambar::kinds::steps::output_name;
use ambar::kinds::streamed::StreamedColumns;
use ambar::kinds::{particles, write};
use ambar::metadata::Attributes;
use ambar::store::StoreWriter;
use ambar::{DataType, Error, Result};
use serde_json::{Map, Value, json};

use super::completeness::{self, FileKinds};
use super::options::ConvertOptions;
use crate::progress::{ConversionProgress, Phase};
use crate::ramses::component::{ComponentKind, Field, MissingReason};
use crate::ramses::files::folder::{Folder, Survey};
use crate::ramses::json;
use crate::ramses::output::{Output, read_info};
use crate::ramses::read::cells::LeafCellReader;
use crate::ramses::read::request::{CellsRequest, ParticlesRequest};
use crate::ramses::read::sorted_particles::SortedParticles;
use crate::series::OutputIdentity;

/// An output's folder, listed but not opened as an output.
pub struct SurveyedOutput {
    /// The folder.
    pub folder: Folder,
    /// Sizes and modification times of its files.
    pub survey: Survey,
}

impl SurveyedOutput {
    /// Surveys the files of an output.
    ///
    /// # Errors
    /// `Io`.
    pub fn new(folder: Folder) -> Result<Self> {
        let survey = folder.survey()?;
        Ok(Self { folder, survey })
    }

    /// What identifies the output.
    ///
    /// # Errors
    /// `Invalid` for a number above `u32::MAX`.
    pub fn identity(&self) -> Result<OutputIdentity> {
        let number = self.folder.number()?;
        Ok(OutputIdentity {
            name: output_name(number),
            number,
            bytes: self.survey.bytes,
            fingerprint: self.survey.fingerprint.clone(),
        })
    }

    /// Opens the output, which must be complete; `previous` is as for `completeness::check`.
    ///
    /// # Errors
    /// As `completeness::check` and `Output::open`.
    pub fn open(
        self,
        options: &ConvertOptions,
        previous: Option<&FileKinds>,
    ) -> Result<CompleteOutput> {
        let info = read_info(&self.folder)?;
        let requested = options.components.as_deref();
        completeness::check(&self.folder, &info, &self.survey, requested, previous)?;
        Ok(CompleteOutput {
            output: Output::from_folder(self.folder)?,
            survey: self.survey,
        })
    }
}

/// A complete output to convert.
pub struct CompleteOutput {
    /// The output.
    pub output: Output,
    /// Its files before they were read.
    pub survey: Survey,
}

/// The members of a JSON object; empty for any other value.
pub fn object(value: Value) -> Attributes {
    match value {
        Value::Object(members) => members,
        _ => Attributes::new(),
    }
}

/// Writes one output as a snapshot in the group at `path`.
///
/// # Errors
/// As `convert`.
pub fn write_snapshot(
    writer: &mut StoreWriter,
    path: &str,
    source: &CompleteOutput,
    options: &ConvertOptions,
    progress: &ConversionProgress,
) -> Result<()> {
    let CompleteOutput { output, survey } = source;
    let selection = ComponentSelection::new(output, options)?;
    let snapshot = SnapshotWriter {
        output,
        options,
        selection,
        progress,
    };
    let mut written = Map::new();
    writer.group(path, Attributes::new())?;
    let below = path.trim_end_matches('/');
    let info = json::info(output)?;
    let selection = &snapshot.selection;
    if !selection.cells.is_empty() {
        snapshot.write_cells(writer, &format!("{below}/amr"))?;
        for kind in &selection.cells {
            written.insert(kind.name().into(), json!(selection.names(output, *kind)));
        }
    }
    for kind in &selection.tables {
        let group = format!("{below}/{}", kind.name());
        if let Some(names) = snapshot.write_table(writer, &group, *kind)? {
            written.insert(kind.name().into(), json!(names));
        }
    }
    let mut source = json!({
        "format": "ramses",
        "output": output.info().number,
        "files": survey.files,
        "fingerprint": survey.fingerprint,
    });
    if !options.selects_part() {
        source["bytes"] = json!(survey.bytes);
    }
    let attributes = json!({"ambar": {
        "version": VERSION,
        "kind": "snapshot",
        "source": source,
        "info": info,
        "components": written,
        "missing": json::missing(output.components()),
    }});
    writer.set_attributes(path, object(attributes))?;
    progress.report(99)
}

/// Writes the parts of one snapshot.
struct SnapshotWriter<'a> {
    output: &'a Output,
    options: &'a ConvertOptions,
    selection: ComponentSelection,
    progress: &'a ConversionProgress,
}

impl SnapshotWriter<'_> {
    /// Writes the leaf cells with the fields of all selected components on them.
    fn write_cells(&self, writer: &mut StoreWriter, path: &str) -> Result<()> {
        let selection = &self.selection;
        let mut names = Vec::new();
        let mut components = Map::new();
        for kind in &selection.cells {
            let fields = selection.names(self.output, *kind);
            components.insert(kind.name().into(), json!(fields));
            names.extend(fields);
        }
        let reading = self.progress.phase(Phase::new(0, 40));
        let request = CellsRequest {
            components: Some(selection.cells.clone()),
            fields: Some(names),
            levels: self.options.levels,
            max_level: self.options.max_level,
            domain: selection.fields.is_none(),
            progress: Some(&reading),
            ..CellsRequest::default()
        };
        let cells = LeafCellReader::new(self.output, &request)?;
        let more = object(json!({"components": components}));
        let profile = self.options.compression.profile;
        let compression = selection.compression(profile, &selection.cells);
        let columns = cells.columns();
        self.observe(writer, &columns, Phase::new(20, 80));
        AmrTree::write_streamed(writer, path, &cells.leaves, &columns, more, &compression)
    }

    /// Makes `writer` report `phase` while it writes these columns.
    fn observe(&self, writer: &mut StoreWriter, columns: &StreamedColumns<'_>, phase: Phase) {
        let sizes = columns.columns.iter().map(|(_, dtype)| dtype.size());
        let row: usize = sizes.flatten().sum();
        let bytes = (row as u64).saturating_mul(columns.rows as u64);
        self.progress.observe(writer, bytes, phase);
    }

    /// Writes particles (along the Morton curve), sinks or clumps. Returns the names of the columns;
    /// `None` if the component has none of the selected fields.
    fn write_table(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        kind: ComponentKind,
    ) -> Result<Option<Vec<String>>> {
        let names = self.selection.names(self.output, kind);
        if names.is_empty() {
            return Ok(None);
        }
        let (ndim, boxlen) = (self.output.info().ndim, self.output.info().boxlen);
        let more = Attributes::new();
        let profile = self.options.compression.profile;
        let has_all_fields = self.selection.fields.is_none();
        if kind == ComponentKind::Particles {
            let reading = self.progress.phase(Phase::new(80, 90));
            let request = ParticlesRequest {
                fields: (!has_all_fields).then(|| with_positions(&names, ndim)),
                domain: has_all_fields,
                progress: Some(&reading),
                ..ParticlesRequest::default()
            };
            let particles = SortedParticles::new(self.output, &request)?;
            let columns = particles.columns();
            self.observe(writer, &columns, Phase::new(90, 99));
            let names = field_names(columns.columns.iter().map(|(name, _)| name));
            let compression = self.selection.compression(profile, &[kind]);
            write::streamed_particles(writer, path, &columns, ndim, boxlen, more, &compression)?;
            return Ok(Some(names));
        }
        let columns = match kind {
            ComponentKind::Sinks => self.output.read_sinks()?,
            _ => self.output.read_clumps()?,
        };
        let mut columns = columns.unwrap_or_default();
        columns.retain(|(name, _)| names.contains(name));
        let compression = self.selection.compression(profile, &[kind]);
        write::table(writer, path, &columns, more, &compression)?;
        Ok(Some(field_names(columns.iter().map(|(name, _)| name))))
    }
}

/// Names of the columns that are fields of the output: all except `domain`.
fn field_names<'a>(columns: impl Iterator<Item = &'a String>) -> Vec<String> {
    columns.filter(|name| *name != "domain").cloned().collect()
}

/// `names` and the positions, which stored particles need.
fn with_positions(names: &[String], ndim: usize) -> Vec<String> {
    let positions = particles::position_names(ndim);
    let missing = positions
        .into_iter()
        .filter(|position| !names.contains(position));
    missing.chain(names.iter().cloned()).collect()
}

/// Error bounds of the fields of a component, by target.
struct ComponentBounds {
    kind: ComponentKind,
    bounds: Vec<(String, ErrorBound)>,
}

/// The components and fields to convert, checked against the output.
struct ComponentSelection {
    /// Components on cells.
    cells: Vec<ComponentKind>,
    /// Particles, sinks, clumps.
    tables: Vec<ComponentKind>,
    /// Names of the fields requested; `None` for all.
    fields: Option<Vec<String>>,
    /// Error bounds of the fields.
    bounds: Vec<ComponentBounds>,
}

impl ComponentSelection {
    fn new(output: &Output, options: &ConvertOptions) -> Result<Self> {
        let mut kinds = Vec::new();
        for component in output.components() {
            let requested = options.components.as_ref();
            match &component.missing {
                None if requested.is_none_or(|kinds| kinds.contains(&component.kind)) => {
                    kinds.push(component.kind);
                }
                Some(missing) if requested.is_some_and(|kinds| kinds.contains(&component.kind)) => {
                    return Err(output.missing_error(component.kind, missing));
                }
                // Broken components are not skipped silently: the store would look complete.
                Some(missing @ MissingReason::Broken(_)) if requested.is_none() => {
                    return Err(output.missing_error(component.kind, missing));
                }
                _ => {}
            }
        }
        if kinds.is_empty() {
            let message = "expected hydro, gravity, rt, particles, sinks or clumps, found only the tree of cells, without \
                           values; copy the missing files";
            return Err(Error::not_found(message).in_file(output.path().display()));
        }
        let fields = options
            .fields
            .as_ref()
            .map(|names| resolve_aliases(output, &kinds, names));
        let (cells, tables): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| kind.is_on_cells());
        let mut selection = Self {
            cells,
            tables,
            fields: fields.transpose()?,
            bounds: Vec::new(),
        };
        selection.bounds = selection.error_bounds(output, &kinds, options)?;
        Ok(selection)
    }

    /// Selects the error bounds of all fields that are converted.
    fn error_bounds(
        &self,
        output: &Output,
        kinds: &[ComponentKind],
        options: &ConvertOptions,
    ) -> Result<Vec<ComponentBounds>> {
        let info = output.info();
        let finest = options
            .max_level
            .unwrap_or(info.levelmax)
            .min(info.levelmax);
        let levels = [info.levelmin.min(finest), finest].map(u64::from);
        let rules = options.compression.rules()?;
        let mut is_used: Vec<bool> = rules.iter().map(|(target, _)| target.name == "*").collect();
        let mut bounds = Vec::new();
        let mut known = Vec::new();
        for kind in kinds {
            // Without a component, patterns and levels apply only to cells.
            let applies = |target: &BoundTarget| {
                let is_general = kind.is_on_cells() || target.name.contains('/');
                is_general
                    || !target.name.contains('*')
                        && target.part.levels.is_none()
                        && (*kind == ComponentKind::Particles || target.part.region.is_none())
            };
            let (places, own): (Vec<usize>, Vec<_>) = rules
                .iter()
                .enumerate()
                .filter(|(_, (target, _))| applies(target))
                .map(|(place, rule)| (place, rule.clone()))
                .unzip();
            let mut of_kind = Vec::new();
            for field in self.fields_of(output, *kind) {
                let names = [Some(&field.name), field.alias.as_ref()];
                let names: Vec<String> = names
                    .into_iter()
                    .flatten()
                    .flat_map(|name| [name.clone(), format!("{}/{name}", kind.name())])
                    .collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                for (place, (target, _)) in places.iter().zip(&own) {
                    is_used[*place] |= target.applies_to(&names);
                }
                known.push(
                    if kind.is_on_cells() {
                        names[0]
                    } else {
                        names[1]
                    }
                    .to_owned(),
                );
                let is_float = matches!(field.dtype, DataType::Float32 | DataType::Float64);
                match FieldBounds::select(&own, &names)? {
                    Selected {
                        bounds: Some(bounds),
                        is_named,
                    } if is_float || is_named => of_kind.extend(bounds.named(&field.name)),
                    _ => {}
                }
            }
            bounds.push(ComponentBounds {
                kind: *kind,
                bounds: of_kind,
            });
        }
        if let Some(place) = is_used.iter().position(|is_used| !is_used) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let target = &rules[place].0;
            let what = match target.part.is_all() {
                true => "such a field",
                false => "such a field of cells (or of particles, with a box)",
            };
            let error = missing_target(what, &target.name, &known);
            return Err(error.in_file(output.path().display()));
        }
        options.compression.check_parts(info.ndim, Some(levels))?;
        Ok(bounds)
    }

    /// The compression of a group with the fields of these components.
    fn compression(&self, profile: Profile, kinds: &[ComponentKind]) -> Compression {
        let bounds = self.bounds.iter();
        let of_group = bounds.filter(|component| kinds.contains(&component.kind));
        Compression {
            profile,
            error_bounds: of_group
                .flat_map(|component| &component.bounds)
                .cloned()
                .collect(),
        }
    }

    /// A component's fields that are converted.
    fn fields_of<'a>(
        &'a self,
        output: &'a Output,
        kind: ComponentKind,
    ) -> impl Iterator<Item = &'a Field> {
        let mut components = output.components().iter();
        let component = components.find(|component| component.kind == kind);
        let fields = component.map_or(&[][..], |component| &component.fields);
        fields.iter().filter(|field| {
            self.fields
                .as_ref()
                .is_none_or(|fields| fields.contains(&field.name))
        })
    }

    /// Names of a component's fields that are converted.
    fn names(&self, output: &Output, kind: ComponentKind) -> Vec<String> {
        let fields = self.fields_of(output, kind);
        fields.map(|field| field.name.clone()).collect()
    }
}

/// The names of fields requested by name or alias.
fn resolve_aliases(
    output: &Output,
    kinds: &[ComponentKind],
    names: &[String],
) -> Result<Vec<String>> {
    let components = output.components().iter();
    let fields: Vec<_> = components
        .filter(|component| kinds.contains(&component.kind))
        .flat_map(|component| &component.fields)
        .collect();
    let resolve = |name: &String| {
        let named = fields.iter().filter(|field| {
            field.name == *name || field.alias.as_ref().is_some_and(|alias| alias == name)
        });
        let found: Vec<String> = named.map(|field| field.name.clone()).collect();
        if found.is_empty() {
            let known: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(Error::unknown("field", name, &known).in_file(output.path().display()));
        }
        Ok(found)
    };
    Ok(names
        .iter()
        .map(resolve)
        .collect::<Result<Vec<_>>>()?
        .concat())
}
