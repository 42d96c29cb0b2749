//! A folder of outputs, as a run to convert to a series.

use std::path::PathBuf;

use ambar::Result;
use ambar::store::StoreWriter;

use super::completeness::FileKinds;
use super::options::ConvertOptions;
use super::snapshot::{CompleteOutput, SurveyedOutput, write_snapshot};
use crate::progress::ConversionProgress;
use crate::ramses::files::folder::Folder;
use crate::series::{ConvertReport, OutputIdentity, Run};

/// The outputs of a run, ordered by number.
pub struct RamsesRun<'a> {
    /// Their folders.
    pub outputs: &'a [PathBuf],
    /// How they are converted.
    pub options: &'a ConvertOptions,
}

impl RamsesRun<'_> {
    /// The kinds of files of the preceding output, if an output is the newest.
    fn previous(&self, index: usize) -> Option<FileKinds> {
        if index + 1 != self.outputs.len() {
            return None;
        }
        let path = self.outputs[..index].last()?;
        let folder = Folder::open(path).ok()?;
        Some(FileKinds::in_folder(&folder))
    }
}

impl Run for RamsesRun<'_> {
    type Surveyed = SurveyedOutput;
    type Opened = CompleteOutput;

    fn paths(&self) -> &[PathBuf] {
        self.outputs
    }

    fn survey(&self, index: usize) -> Result<(OutputIdentity, SurveyedOutput)> {
        let found = SurveyedOutput::new(Folder::open(&self.outputs[index])?)?;
        Ok((found.identity()?, found))
    }

    fn open(&self, index: usize, found: SurveyedOutput) -> Result<CompleteOutput> {
        found.open(self.options, self.previous(index).as_ref())
    }

    fn write(
        &self,
        output: &CompleteOutput,
        writer: &mut StoreWriter,
        path: &str,
        progress: &ConversionProgress,
        _: &mut ConvertReport,
    ) -> Result<()> {
        write_snapshot(writer, path, output, self.options, progress)
    }
}
