//! Plotfiles of one run, to convert to a series.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ambar::store::StoreWriter;
use ambar::{Error, Result};

use super::import::{Input, write_step};
use super::options::ConvertOptions;
use crate::amrex::files::folder::FileUsage;
use crate::progress::ConversionProgress;
use crate::series::{self, ConvertReport, OutputIdentity, Run, name_of};

/// Opens a plotfile that is a file.
pub type OpenFile<'a> = dyn Fn(&Path) -> Result<Input> + Send + Sync + 'a;

/// Converts plotfiles, folders and files of HDF5, to a series at `target`: a step for each, with the number at
/// the end of its name. `open_file` opens files.
///
/// A plotfile that the run has not finished writing, the newest one only, is left out.
///
/// # Errors
/// As `convert` of one plotfile, and `series::convert`; `Invalid` if a name has no number, or two have the
/// same.
pub fn convert_run(
    paths: &[PathBuf],
    open_file: &OpenFile<'_>,
    target: &Path,
    options: &ConvertOptions,
) -> Result<ConvertReport> {
    let mut numbered = Vec::with_capacity(paths.len());
    for path in paths {
        numbered.push((number_of(path)?, path.clone()));
    }
    numbered.sort();
    if let Some([(_, one), (_, other)]) = numbered.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::invalid(format!(
            "expected plotfiles of one run, found {} and {} with the same number; convert those of \
             each run to a store of its own",
            one.display(),
            other.display()
        )));
    }
    let run = PlotfileRun {
        paths: numbered.into_iter().map(|(_, path)| path).collect(),
        open_file,
        options,
    };
    let mut report = series::convert(&run, target, &options.store)?;
    report.stored_bytes = options.store.open(target)?.usage()?.total;
    Ok(report)
}

/// The number at the end of the name of a plotfile, before a suffix of HDF5.
fn number_of(path: &Path) -> Result<u32> {
    let name = name_of(path);
    let stem = name.strip_suffix(".h5").unwrap_or(&name);
    let digits = stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem[digits..].parse().map_err(|_| {
        Error::invalid(format!(
            "expected a number of at most {} at the end of the name of a plotfile of a series, such as \
             plt00010, found {name:?}; rename it, or convert it to a store of its own",
            u32::MAX
        ))
        .in_file(path.display())
    })
}

struct PlotfileRun<'a> {
    paths: Vec<PathBuf>,
    open_file: &'a OpenFile<'a>,
    options: &'a ConvertOptions,
}

impl PlotfileRun<'_> {
    /// Why the newest plotfile seems unfinished, although it opens: an entry of the preceding one is missing.
    fn missing_entry(&self, index: usize) -> Option<String> {
        let before = index.checked_sub(1)?;
        let entries = |index: usize| -> Option<BTreeSet<String>> {
            let found = std::fs::read_dir(&self.paths[index]).ok()?;
            let names = found.filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                // Codes write these; the number of levels changes, and users add files of their own.
                let is_known = name.ends_with("Header") || name.ends_with("job_info");
                let is_folder = !name.starts_with("Level_") && entry.path().is_dir();
                (is_known || is_folder).then_some(name)
            });
            Some(names.collect())
        };
        let own = entries(index)?;
        let missing = entries(before)?
            .into_iter()
            .find(|name| !own.contains(name))?;
        Some(format!(
            "the preceding plotfile {} has {missing}, and this is the newest one",
            name_of(&self.paths[before])
        ))
    }
}

impl Run for PlotfileRun<'_> {
    type Surveyed = String;
    type Opened = (Input, String);

    fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn survey(&self, index: usize) -> Result<(OutputIdentity, String)> {
        let path = &self.paths[index];
        let usage = FileUsage::of(path)?;
        let identity = OutputIdentity {
            name: name_of(path),
            number: number_of(path)?,
            bytes: usage.bytes,
            fingerprint: usage.fingerprint.clone(),
        };
        Ok((identity, usage.fingerprint))
    }

    fn open(&self, index: usize, fingerprint: String) -> Result<Self::Opened> {
        let path = &self.paths[index];
        let input = match path.is_dir() {
            true => Input::open(path)?,
            false => (self.open_file)(path)?,
        };
        let is_newest = index + 1 == self.paths.len();
        match self.missing_entry(index).filter(|_| is_newest) {
            Some(why) => Err(Error::corrupt(why).in_file(path.display())),
            None => Ok((input, fingerprint)),
        }
    }

    fn write(
        &self,
        output: &Self::Opened,
        writer: &mut StoreWriter,
        path: &str,
        progress: &ConversionProgress,
        report: &mut ConvertReport,
    ) -> Result<()> {
        write_step(output, (writer, path), self.options, progress, report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_at_the_end_of_names() {
        let numbers = [
            ("run/plt00010", Some(10)),
            ("plt1234567", Some(1_234_567)),
            ("flash2d_plt00003.h5", Some(3)),
            ("7", Some(7)),
            ("plt", None),
            ("plt00010.old", None),
            ("plt99999999999", None),
        ];
        for (name, number) in numbers {
            assert_eq!(number_of(Path::new(name)).ok(), number, "{name}");
        }
    }
}
