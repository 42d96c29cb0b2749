//! Converting a folder of outputs to a series: one step per output, committed one by one.

use std::path::{Path, PathBuf};

use ambar::kinds::attributes::{self, VERSION};
use ambar::store::{Store, StoreWriter};
use ambar::{Error, ErrorKind, Result};
use serde_json::json;

use super::completeness::FileKinds;
use super::options::{ConvertOptions, ConvertReport, OnError};
use super::snapshot::{SurveyedOutput, create, object, step_name, write_snapshot};
use crate::progress::ConversionProgress;
use crate::ramses::files::folder::Folder;

/// Converts `outputs`, folders ordered by number, to a series at `target`.
///
/// # Errors
/// As `super::convert`.
pub fn convert(
    outputs: &[PathBuf],
    target: &Path,
    options: &ConvertOptions,
) -> Result<ConvertReport> {
    let mut series = Series::open(target, options)?;
    let mut report = ConvertReport::default();
    let mut first_error = None;
    for (done, path) in outputs.iter().enumerate() {
        let count = outputs.len() as u64;
        let progress = ConversionProgress::new(options.progress.clone(), done as u64, count);
        let is_newest = done + 1 == outputs.len();
        let previous = outputs[..done].last().filter(|_| is_newest);
        let previous = previous.and_then(|path| Folder::open(path).ok());
        let previous = previous.map(|folder| FileKinds::in_folder(&folder));
        match convert_step(&mut series, path, previous.as_ref(), &progress, &mut report) {
            Ok(()) => {}
            Err(error) if options.on_error == OnError::Stop || is_final(&error, target) => {
                return Err(error);
            }
            Err(error) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                let name = name.to_string_lossy().into_owned();
                report.failed.push((name, error.to_string()));
                first_error.get_or_insert(error);
                series.discard()?;
            }
        }
        progress.report(100)?;
    }
    let stored = [&report.converted, &report.replaced, &report.skipped];
    match first_error {
        Some(error) if stored.iter().all(|names| names.is_empty()) => Err(error),
        _ => Ok(report),
    }
}

/// True for errors that do not concern the output: the conversion was cancelled, or the store cannot be
/// written.
fn is_final(error: &Error, target: &Path) -> bool {
    let target = target.to_string_lossy();
    error.kind() == ErrorKind::Interrupted || error.file().starts_with(&*target)
}

/// Converts one output, unless the series has it and its files are unchanged.
fn convert_step(
    series: &mut Series<'_>,
    path: &Path,
    previous: Option<&FileKinds>,
    progress: &ConversionProgress,
    report: &mut ConvertReport,
) -> Result<()> {
    let found = SurveyedOutput::new(Folder::open(path)?)?;
    let bytes = found.survey.bytes;
    let name = step_name(found.folder.number()?);
    let step = format!("/{name}");
    let stored = series.fingerprint(&step)?;
    let names = match &stored {
        Some(stored) if *stored == found.survey.fingerprint => &mut report.skipped,
        Some(_) => &mut report.replaced,
        None => &mut report.converted,
    };
    if stored.as_ref() != Some(&found.survey.fingerprint) {
        let source = found.open(series.options, previous)?;
        let options = series.options;
        let writer = series.writer()?;
        if stored.is_some() {
            writer.remove(&step)?;
        }
        write_snapshot(writer, &step, &source, options, progress)?;
        writer.set_message(&name)?;
        writer.commit()?;
        series.is_committed = true;
    }
    names.push(name);
    report.source_bytes += bytes;
    Ok(())
}

/// The store of a series to which steps are added.
struct Series<'a> {
    target: &'a Path,
    options: &'a ConvertOptions,
    /// `None` only while it is reopened.
    writer: Option<StoreWriter>,
    /// True if the store has committed steps, from an earlier call or this one.
    is_committed: bool,
}

impl<'a> Series<'a> {
    /// Creates a series, or opens an existing one.
    fn open(target: &'a Path, options: &'a ConvertOptions) -> Result<Self> {
        let is_committed = !options.overwrite && target.exists();
        if is_committed {
            attributes::of_kind(&Store::open(target)?, "/", &["series"])?;
        }
        let mut series = Self {
            target,
            options,
            writer: None,
            is_committed,
        };
        series.discard()?;
        Ok(series)
    }

    fn writer(&mut self) -> Result<&mut StoreWriter> {
        self.writer.as_mut().ok_or_else(|| {
            Error::invalid(
                "expected a series open for writing, found a closed one; convert it again",
            )
        })
    }

    /// Reopens the store at the last commit, and discards later writes.
    fn discard(&mut self) -> Result<()> {
        // The old writer holds the store's lock.
        self.writer = None;
        let writer = if self.is_committed {
            StoreWriter::append(self.target, self.options.durability)?
        } else {
            let mut writer = create(self.target, self.options)?;
            let attributes = json!({"ambar": {"version": VERSION, "kind": "series"}});
            writer.group("/", object(attributes))?;
            writer
        };
        self.writer = Some(writer);
        Ok(())
    }

    /// The fingerprint of a step; `None` if the step does not exist, empty if it has no fingerprint.
    fn fingerprint(&mut self, step: &str) -> Result<Option<String>> {
        let attributes = self.writer()?.attributes(step)?;
        Ok(attributes.map(|attributes| {
            let source = attributes
                .get("ambar")
                .and_then(|attributes| attributes.get("source"));
            let fingerprint = source.and_then(|source| source.get("fingerprint"));
            let text = fingerprint.and_then(|fingerprint| fingerprint.as_str());
            text.unwrap_or_default().to_owned()
        }))
    }
}
