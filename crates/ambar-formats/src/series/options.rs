//! Options and report of a conversion of one or several outputs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ambar::container::{CreateOptions, Durability, is_url};
use ambar::metadata::Attributes;
use ambar::store::{Store, StoreWriter};
use ambar::{Error, ErrorKind, Limits, Result};

use crate::progress::Progress;

/// What a conversion of several outputs does if one of them cannot be converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Stops, and returns the error. Committed outputs stay in the store.
    #[default]
    Stop,
    /// Lists the output with the reason, and converts the others.
    Skip,
}

/// How a store of outputs is written.
#[derive(Clone, Default)]
pub struct StoreOptions {
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// Replaces an existing store. Without it, an existing series is extended, and the existing store of
    /// a single output is an error.
    pub overwrite: bool,
    /// Options of the service of a store at a URL.
    pub storage: BTreeMap<String, String>,
    /// What happens if one of several outputs cannot be converted.
    pub on_error: OnError,
    /// Options that all outputs of a series have in common, stored in the attribute `ambar.conversion` of a new
    /// series.
    pub settings: Attributes,
    /// Called with the work done and the total work, in hundredths of an output.
    pub progress: Option<Arc<Progress<'static>>>,
}

impl StoreOptions {
    /// Creates a store at a path or URL.
    ///
    /// # Errors
    /// `Exists` if it exists and is not to be replaced; `Io`.
    pub fn create(&self, target: &Path) -> Result<StoreWriter> {
        let options = CreateOptions {
            durability: self.durability,
            overwrite: self.overwrite,
            ..CreateOptions::default()
        };
        match url_of(target) {
            Some(url) => StoreWriter::create_url(url, &self.storage, &options),
            None => StoreWriter::create(target, &options),
        }
    }

    /// Checks that outputs that cannot be converted can be skipped, if they are to be: what was written of them is
    /// discarded, and an upload cannot take back what was sent.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(super) fn check_skipping(&self, target: &Path) -> Result<()> {
        if self.on_error == OnError::Stop || !is_upload(target) {
            return Ok(());
        }
        let message = "on_error=\"skip\" does not apply to an object, which is written in one upload; write to a URL \
                       that ends with `/`, or to a local file";
        Err(Error::unsupported(message).in_file(target.display()))
    }

    /// Whether there is a store at `target` that outputs are added to.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) fn extends(&self, target: &Path) -> Result<bool> {
        if self.overwrite || url_of(target).is_none() {
            return Ok(!self.overwrite && target.exists());
        }
        match self.open(target) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens an existing store to add to it.
    ///
    /// # Errors
    /// As [`StoreWriter::append`] and [`StoreWriter::append_url`].
    pub(super) fn append(&self, target: &Path) -> Result<StoreWriter> {
        match url_of(target) {
            Some(url) => StoreWriter::append_url(url, &self.storage, Limits::default()),
            None => StoreWriter::append(target, self.durability),
        }
    }

    /// Opens the store at a path or URL.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Store::open_url`].
    pub fn open(&self, target: &Path) -> Result<Store> {
        match url_of(target) {
            Some(url) => Store::open_url(url, &self.storage, Limits::default()),
            None => Store::open(target),
        }
    }
}

/// The URL that `target` is; `None` for a path.
fn url_of(target: &Path) -> Option<&str> {
    target.to_str().filter(|text| is_url(text))
}

/// Whether the store is one object, which is written in one upload.
pub(super) fn is_upload(target: &Path) -> bool {
    url_of(target).is_some_and(|url| !url.ends_with('/'))
}

/// The outputs that were converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// Names of converted outputs that were not in the store before.
    pub converted: Vec<String>,
    /// Names of outputs converted again because their files have changed.
    pub replaced: Vec<String>,
    /// Names of outputs that were already in the store.
    pub skipped: Vec<String>,
    /// Names of outputs that could not be converted, and the reasons.
    pub failed: Vec<(String, String)>,
    /// Names of unfinished outputs, and of files of outputs, that are not in the store, and the reasons.
    pub left_out: Vec<(String, String)>,
    /// Bytes of all files of the converted and replaced outputs.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub stored_bytes: u64,
}

impl ConvertReport {
    /// Adds a name to `left_out`, unless it is there.
    pub fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.iter().all(|(other, _)| other != name) {
            self.left_out.push((name.to_owned(), why.to_owned()));
        }
    }
}
