//! Conversion to stores: one output to a snapshot, a folder of outputs to a series.

mod completeness;
mod options;
mod run;
mod snapshot;

use std::path::{Path, PathBuf};

use ambar::{Error, Result};

use super::files::folder::Folder;
use crate::progress::ConversionProgress;
use crate::series::{self, ConvertReport};
use run::RamsesRun;
use snapshot::{SurveyedOutput, write_snapshot};

pub use options::ConvertOptions;

/// Converts an output, or a folder with `output_NNNNN` folders in it, to a store at `target`.
///
/// One output becomes a snapshot; the store appears when it is complete. A folder becomes a series that
/// is committed output by output, so that an interrupted conversion can be resumed. Outputs whose files
/// have changed since their conversion are converted again. An output that RAMSES has not finished
/// writing is an error.
///
/// # Errors
/// As `Output::open`, `Output::read_cells` and `Output::read_particles`; `Corrupt` if an output is
/// incomplete; `Invalid` if `target` is a store of another kind; `Exists` if it exists, `Busy` if it is open for
/// writing elsewhere; `Io`. With `OnError::Skip` the errors of outputs are listed instead, unless all
/// outputs fail.
pub fn convert(path: &Path, target: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    let found = outputs_in(path)?;
    let mut report = if found.is_empty() {
        convert_one(path, target, options)?
    } else {
        let run = RamsesRun {
            outputs: &found,
            options,
        };
        series::convert(&run, target, &options.store)?
    };
    report.stored_bytes = options.store.open(target)?.usage()?.total;
    Ok(report)
}

fn convert_one(path: &Path, target: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    let found = SurveyedOutput::new(Folder::open(path)?)?;
    let identity = found.identity()?;
    let source = found.open(options, None)?;
    let mut writer = options.store.create(target)?;
    let progress = ConversionProgress::new(options.store.progress.clone(), 0, 1);
    write_snapshot(&mut writer, "/", &source, options, &progress)?;
    writer.commit()?;
    writer.finish()?;
    progress.report(100)?;
    Ok(ConvertReport {
        converted: vec![identity.name],
        source_bytes: identity.bytes,
        ..ConvertReport::default()
    })
}

/// The outputs in a folder, ordered by number; empty if the folder is itself an output.
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
