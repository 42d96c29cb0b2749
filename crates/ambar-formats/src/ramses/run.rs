//! A run's folder of outputs into a series: a step for each output, committed one by one.

use std::path::{Path, PathBuf};

use ambar::container;
use ambar::kinds::attributes::{self, VERSION};
use ambar::store::{Store, StoreWriter};
use ambar::{Error, ErrorKind, Result};
use serde_json::json;

use super::complete::FileKinds;
use super::convert::{
    ConvertOptions, Converted, Found, OnError, Steps, create, object, step_name, write_snapshot,
};
use super::folder::Folder;

/// Converts `outputs`, folders in the order of their numbers, to a series at `target`.
///
/// # Errors
/// As `super::convert`.
pub fn convert(outputs: &[PathBuf], target: &Path, options: &ConvertOptions) -> Result<Converted> {
    let mut series = Series::open(target, options)?;
    let mut report = Converted::default();
    let mut first_error = None;
    for (done, path) in outputs.iter().enumerate() {
        let steps = Steps {
            options,
            done: done as u64,
            outputs: outputs.len() as u64,
        };
        let is_newest = done + 1 == outputs.len();
        let before = outputs[..done].last().filter(|_| is_newest);
        let before = before.and_then(|path| Folder::open(path).ok());
        let before = before.map(|folder| FileKinds::of(&folder));
        match convert_step(&mut series, path, before.as_ref(), &steps, &mut report) {
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
        steps.report(100)?;
        series.compact_when_mostly_dead()?;
    }
    series.checked_bytes = 0;
    series.compact_when_mostly_dead()?;
    let stored = [&report.converted, &report.replaced, &report.skipped];
    match first_error {
        Some(error) if stored.iter().all(|names| names.is_empty()) => Err(error),
        _ => Ok(report),
    }
}

/// Whether an error has nothing to do with the output: the user ended the conversion, or the store
/// cannot be written.
fn is_final(error: &Error, target: &Path) -> bool {
    let target = target.to_string_lossy();
    error.kind() == ErrorKind::Interrupted || error.file().starts_with(&*target)
}

/// Converts one output, unless the series has it and its files are the same as they were.
fn convert_step(
    series: &mut Series<'_>,
    path: &Path,
    before: Option<&FileKinds>,
    steps: &Steps<'_>,
    report: &mut Converted,
) -> Result<()> {
    let found = Found::in_folder(Folder::open(path)?)?;
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
        let source = found.check(steps.options, before)?;
        let writer = series.writer()?;
        if stored.is_some() {
            writer.remove(&step)?;
        }
        write_snapshot(writer, &step, &source, steps)?;
        writer.commit()?;
        series.is_committed = true;
    }
    names.push(name);
    report.source_bytes += bytes;
    Ok(())
}

/// The store of a series while steps are added.
struct Series<'a> {
    target: &'a Path,
    options: &'a ConvertOptions,
    /// `None` only while it is opened again.
    writer: Option<StoreWriter>,
    /// Whether the store has steps to keep: of earlier calls, or of this one.
    is_committed: bool,
    /// Bytes of the store when its dead bytes were last counted.
    checked_bytes: u64,
}

impl<'a> Series<'a> {
    /// A new series, or one that is continued.
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
            checked_bytes: 0,
        };
        series.discard()?;
        Ok(series)
    }

    fn writer(&mut self) -> Result<&mut StoreWriter> {
        self.writer
            .as_mut()
            .ok_or_else(|| Error::invalid("the series is not open for writing; convert it again"))
    }

    /// Opens the store as of the last commit: what was written since is dropped.
    fn discard(&mut self) -> Result<()> {
        // The old writer holds the store's lock.
        self.writer = None;
        let writer = if self.is_committed {
            StoreWriter::append(self.target, self.options.durability)?
        } else {
            let mut writer = create(self.target, self.options)?;
            let own = json!({"ambar": {"version": VERSION, "kind": "series"}});
            writer.group("/", object(own))?;
            writer
        };
        self.writer = Some(writer);
        Ok(())
    }

    /// Compacts the store where more of its bytes are dead than live.
    ///
    /// Each commit leaves the list of entries and the metadata of the commit before as dead bytes. Both
    /// grow with the number of steps, so that a series of many small outputs would consist of them. Dead
    /// bytes are counted each time the store has doubled: between two compactions as many bytes are
    /// written as one of them copies.
    fn compact_when_mostly_dead(&mut self) -> Result<()> {
        let bytes = |target: &Path| std::fs::metadata(target).map_or(0, |found| found.len());
        if !self.is_committed || bytes(self.target) <= 2 * self.checked_bytes {
            return Ok(());
        }
        let usage = Store::open(self.target)?.usage()?;
        if usage.dead > usage.live {
            // The old writer holds the store's lock.
            self.writer = None;
            container::compact(self.target)?;
            self.discard()?;
        }
        self.checked_bytes = bytes(self.target);
        Ok(())
    }

    /// The fingerprint of a step; `None` where there is no such step, empty where it has none.
    fn fingerprint(&mut self, step: &str) -> Result<Option<String>> {
        let attributes = self.writer()?.attributes(step)?;
        Ok(attributes.map(|attributes| {
            let source = attributes.get("ambar").and_then(|own| own.get("source"));
            let fingerprint = source.and_then(|source| source.get("fingerprint"));
            let text = fingerprint.and_then(|fingerprint| fingerprint.as_str());
            text.unwrap_or_default().to_owned()
        }))
    }
}
