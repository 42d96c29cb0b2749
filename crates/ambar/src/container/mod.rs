//! Containers: where the entries of a store lie, a single file or a directory.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Where an entry's data lies.
#[derive(Clone, Debug)]
pub struct Entry {
    len: u64,
}

impl Entry {
    /// Bytes of the entry.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What a container takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All bytes.
    pub total: u64,
}

/// One commit, open for reading.
pub trait Container: Send + Sync {
    /// For messages.
    fn location(&self) -> &str;
    /// The entry `key`.
    ///
    /// # Errors
    /// `Io`.
    fn entry(&self, key: &str) -> Result<Option<Entry>>;
    /// Reads exactly `out`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()>;
    /// A whole entry, verified.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>>;
    /// All keys.
    ///
    /// # Errors
    /// `Io`.
    fn keys(&self) -> Result<Vec<String>>;
    /// What it takes.
    ///
    /// # Errors
    /// `Io`.
    fn usage(&self) -> Result<Usage>;
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It does.
    #[default]
    Full,
    /// It does not.
    None,
}

/// How a container is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// Whether one that exists is replaced.
    pub overwrite: bool,
    /// A directory rather than a single file.
    pub directory: bool,
}

/// Opens what is at `path`.
///
/// # Errors
/// `NotFound`.
pub fn open(path: &Path) -> Result<Arc<dyn Container>> {
    Err(Error::not_found("no container yet").in_file(path.display()))
}
