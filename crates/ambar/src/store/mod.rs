//! Stores: hierarchies of groups and arrays in a container, opened, written and verified.

use std::path::Path;
use std::sync::Arc;

use crate::array::{Array, ArrayData, ArraySpec};
use crate::container::{Container, CreateOptions, Durability, Usage};
use crate::error::Result;
use crate::metadata::Attributes;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A group of nodes.
    Group,
    /// An array.
    Array,
}

/// A group: its path and attributes.
#[derive(Clone, Debug)]
pub struct Group {
    path: String,
    attributes: Attributes,
}

impl Group {
    /// The node's path, `/` for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }
}

/// One commit of a store, open for reading. Cheap to clone; any number of threads may read.
#[derive(Clone)]
pub struct Store {
    container: Arc<dyn Container>,
}

impl Store {
    /// Opens the last commit of the store at `path`: a single file or a directory.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Unsupported` (not a Zarr v3 hierarchy), `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_container(crate::container::open(path)?)
    }

    /// Opens the store in `container`.
    ///
    /// # Errors
    /// As `open`.
    pub fn from_container(container: Arc<dyn Container>) -> Result<Self> {
        Ok(Self { container })
    }

    /// Where the store is, for messages.
    pub fn location(&self) -> &str {
        self.container.location()
    }

    /// Paths of all nodes but the root (`/amr`, `/amr/density`), parents before children, with
    /// what they are; siblings in the order they were written.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn nodes(&self) -> Result<Vec<(String, NodeKind)>> {
        Ok(Vec::new())
    }

    /// What the node at `path` is; `None` where there is none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn kind(&self, _path: &str) -> Result<Option<NodeKind>> {
        Ok(None)
    }

    /// Names of the nodes right below the group at `path`, with what they are.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Io`.
    pub fn children(&self, _path: &str) -> Result<Vec<(String, NodeKind)>> {
        Ok(Vec::new())
    }

    /// The group at `path` (`/` or empty: the root).
    ///
    /// # Errors
    /// `NotFound`, `Invalid` where it is an array, `Corrupt`, `Io`.
    pub fn group(&self, path: &str) -> Result<Group> {
        Ok(Group {
            path: path.to_owned(),
            attributes: Attributes::new(),
        })
    }

    /// The array at `path`.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` where it is a group, `Unsupported`, `Corrupt`, `Io`.
    pub fn array(&self, path: &str) -> Result<Array> {
        Err(crate::Error::not_found(path))
    }

    /// Bytes in all, live and dead.
    ///
    /// # Errors
    /// `Io`.
    pub fn usage(&self) -> Result<Usage> {
        self.container.usage()
    }

    /// Checks every checksum of the store, on the threads of the current pool, and gives what was
    /// found. `progress` is called with (bytes checked, bytes in all), from any thread, and ends
    /// the work where it returns `false`.
    ///
    /// # Errors
    /// `Io`; damage is not an error here but in the report.
    pub fn verify(&self, _progress: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Report> {
        Ok(Report::default())
    }
}

/// What [`Store::verify`] found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bytes read and checked.
    pub bytes: u64,
    /// Entries of the container checked.
    pub entries: u64,
    /// Chunks whose checksum was checked.
    pub chunks: u64,
    /// What is damaged, one sentence each; empty for a sound store.
    pub damage: Vec<String>,
}

/// A store open for writing. What is written becomes visible with [`StoreWriter::commit`].
pub struct StoreWriter {}

impl StoreWriter {
    /// Creates a store at `path`; it appears there with the first commit.
    ///
    /// # Errors
    /// `Busy` where it exists and is not to be overwritten, or another writer creates it; `Io`.
    pub fn create(_path: &Path, _options: &CreateOptions) -> Result<Self> {
        Ok(Self {})
    }

    /// Opens the store at `path` to add to it.
    ///
    /// # Errors
    /// `NotFound`, `Busy` where another writer has it, `Corrupt`, `Io`.
    pub fn append(_path: &Path, _durability: Durability) -> Result<Self> {
        Ok(Self {})
    }

    /// Makes a group with these attributes, and the groups above it where there are none; the
    /// attributes of a group that exists are replaced. `/` is the root.
    ///
    /// # Errors
    /// `Invalid` for a path that is not allowed, or that runs through an array.
    pub fn group(&mut self, _path: &str, _attributes: Attributes) -> Result<()> {
        Ok(())
    }

    /// Replaces the attributes of a group or an array.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_attributes(&mut self, _path: &str, _attributes: Attributes) -> Result<()> {
        Ok(())
    }

    /// Writes an array, and the groups above it where there are none; an array that exists is
    /// replaced. Chunks are encoded on the threads of the current pool.
    ///
    /// # Errors
    /// `Invalid` where data and spec do not fit, or the path runs through an array; `Io`.
    pub fn write_array(&mut self, path: &str, spec: &ArraySpec, data: ArrayData<'_>) -> Result<()> {
        self.write_arrays(&[(path, spec, data)])
    }

    /// Writes several arrays at once: many small ones are encoded in parallel too.
    ///
    /// # Errors
    /// As `write_array`.
    pub fn write_arrays(&mut self, _arrays: &[(&str, &ArraySpec, ArrayData<'_>)]) -> Result<()> {
        Ok(())
    }

    /// Removes a node and all below it.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for the root.
    pub fn remove(&mut self, _path: &str) -> Result<()> {
        Ok(())
    }

    /// Makes everything written so far visible, at once and durably.
    ///
    /// # Errors
    /// `Io`; the writer is then of no further use and the last commit stands.
    pub fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}
