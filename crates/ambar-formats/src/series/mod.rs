//! Converting the outputs of a run to a series: one step per output, committed one by one, so that an
//! interrupted conversion can be resumed. Outputs whose files have changed are converted again.

mod fingerprint;
mod identity;
mod options;
mod target;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ambar::kinds::steps::output_name;
use ambar::store::StoreWriter;
use ambar::{Error, ErrorKind, Result};

use crate::progress::ConversionProgress;
use options::is_upload;
use target::{SeriesTarget, StoredStep};

pub use fingerprint::Fingerprint;
pub use identity::OutputIdentity;
pub use options::{ConvertReport, OnError, StoreOptions};

/// The outputs of one run, in the order of their numbers.
pub trait Run {
    /// An output whose files are listed.
    type Surveyed;
    /// An output that can be converted.
    type Opened;

    /// Paths of the outputs.
    fn paths(&self) -> &[PathBuf];

    /// Lists the files of an output.
    ///
    /// # Errors
    /// Those of the format; `Io`.
    fn survey(&self, index: usize) -> Result<(OutputIdentity, Self::Surveyed)>;

    /// Opens an output, which must be complete.
    ///
    /// # Errors
    /// `Corrupt` or `NotFound` if files are missing or cut short; others of the format; `Io`.
    fn open(&self, index: usize, surveyed: Self::Surveyed) -> Result<Self::Opened>;

    /// Writes an output as a snapshot in the group at `path`, with its fingerprint in the attribute
    /// `ambar.source.fingerprint`. Adds files that the snapshot lacks to `report.left_out`.
    ///
    /// # Errors
    /// Those of the format; `Io`.
    fn write(
        &self,
        output: &Self::Opened,
        writer: &mut StoreWriter,
        path: &str,
        progress: &ConversionProgress,
        report: &mut ConvertReport,
    ) -> Result<()>;
}

/// Converts the outputs of a run to a series at `target`, which is created or extended. The newest output is left
/// out if its files are missing or cut short: the run may be writing it.
///
/// # Errors
/// Those of the outputs; `Invalid` if `target` is a store of another kind, or has another output of the same
/// number; `Exists` if it exists, `Busy` if it is open for writing elsewhere; `Io`. With `OnError::Skip` the
/// errors of outputs are listed instead, unless all outputs fail. `Corrupt` if the only output is left out.
pub fn convert<R: Run>(run: &R, target: &Path, options: &StoreOptions) -> Result<ConvertReport> {
    let paths = run.paths();
    options.check_skipping(target)?;
    let mut series = SeriesTarget::open(target, options)?;
    let mut report = ConvertReport::default();
    let mut first_error = None;
    for (done, path) in paths.iter().enumerate() {
        let count = paths.len() as u64;
        let progress = ConversionProgress::new(options.progress.clone(), done as u64, count);
        let opened = open_output(run, done, &mut series, &mut report);
        let is_opened = opened.is_ok();
        let written = opened.and_then(|opened| match opened {
            Some(output) => write_output(run, &output, &mut series, &progress, &mut report),
            None => Ok(()),
        });
        let is_newest = done + 1 == paths.len();
        // An upload cannot take back what was written.
        let is_in_upload = is_opened && is_upload(target);
        match written {
            Ok(()) => {}
            Err(error)
                if is_newest && !is_in_upload && is_incomplete(&error, is_opened, target) =>
            {
                report.leave_out(&name_of(path), &unfinished(&error));
                if is_opened {
                    series.discard()?;
                }
            }
            Err(error) if options.on_error == OnError::Stop || is_final(&error, target) => {
                return Err(error);
            }
            Err(error) => {
                report.failed.push((name_of(path), error.to_string()));
                first_error.get_or_insert(error);
                series.discard()?;
            }
        }
        progress.report(100)?;
    }
    let stored = [&report.converted, &report.replaced, &report.skipped];
    if stored.iter().any(|names| !names.is_empty()) {
        series.finish()?;
        return Ok(report);
    }
    match (first_error, report.left_out.first()) {
        (Some(error), _) => Err(error),
        (None, Some((name, why))) => Err(Error::corrupt(why.clone()).in_file(name)),
        (None, None) => Ok(report),
    }
}

/// The name of an output's files.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// True for errors that do not concern the output: the conversion was cancelled, or the store cannot be
/// written.
fn is_final(error: &Error, target: &Path) -> bool {
    let target = target.to_string_lossy();
    error.kind() == ErrorKind::Interrupted || error.file().starts_with(&*target)
}

/// True for errors of files of the output that are missing or cut short. While an opened output is written, a field
/// may not exist, too.
fn is_incomplete(error: &Error, is_opened: bool, target: &Path) -> bool {
    let is_missing = match is_opened {
        true => error.raw_os_error() == Some(libc::ENOENT),
        false => error.kind() == ErrorKind::NotFound,
    };
    !is_final(error, target) && (is_missing || error.kind() == ErrorKind::Corrupt)
}

/// The reason for leaving out the newest output, without the advice for damaged ones after the semicolon.
fn unfinished(error: &Error) -> String {
    let error = error.to_string();
    let what = error.split("; ").next().unwrap_or(&error);
    let what = what.replace("the output is not complete: ", "");
    format!("it is not complete ({what}); convert it again when the run has written it")
}

/// An output that is to be converted.
struct OpenedOutput<T> {
    identity: OutputIdentity,
    is_replaced: bool,
    output: T,
}

/// Opens an output; `None` if the series has it and its files are unchanged.
fn open_output<R: Run>(
    run: &R,
    index: usize,
    series: &mut SeriesTarget<'_>,
    report: &mut ConvertReport,
) -> Result<Option<OpenedOutput<R::Opened>>> {
    let (identity, surveyed) = run.survey(index)?;
    let stored = series.stored(&output_name(identity.number))?;
    if let Some(other) = stored.as_ref().and_then(|stored| stored.name.as_ref())
        && *other != identity.name
    {
        return Err(Error::invalid(format!(
            "expected an output of the run in the series, whose output {} is {other:?}, found {:?}; \
             convert it to another store",
            identity.number, identity.name
        ))
        .in_file(run.paths()[index].display()));
    }
    let is_replaced = match stored {
        // A step that a running program wrote has no fingerprint, and may hold more than the files.
        Some(StoredStep { fingerprint, .. })
            if fingerprint
                .as_ref()
                .is_none_or(|known| *known == identity.fingerprint) =>
        {
            report.skipped.push(identity.name);
            return Ok(None);
        }
        stored => stored.is_some(),
    };
    Ok(Some(OpenedOutput {
        identity,
        is_replaced,
        output: run.open(index, surveyed)?,
    }))
}

/// Writes and commits an output.
fn write_output<R: Run>(
    run: &R,
    opened: &OpenedOutput<R::Opened>,
    series: &mut SeriesTarget<'_>,
    progress: &ConversionProgress,
    report: &mut ConvertReport,
) -> Result<()> {
    let mut left_out = ConvertReport::default();
    series.add(&opened.identity, |writer, path| {
        run.write(&opened.output, writer, path, progress, &mut left_out)
    })?;
    for (name, why) in &left_out.left_out {
        report.leave_out(name, why);
    }
    let names = match opened.is_replaced {
        true => &mut report.replaced,
        false => &mut report.converted,
    };
    names.push(opened.identity.name.clone());
    report.source_bytes += opened.identity.bytes;
    Ok(())
}
