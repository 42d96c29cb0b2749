//! Opens stores and finds their nodes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{NodeKind, name_of};
use crate::array::Array;
use crate::container::{self, CommitId, Container, Owner, ReadAhead, Usage};
use crate::error::{Error, Result, closest, hint};
use crate::limits::Limits;
use crate::metadata::{Attributes, Hierarchy, MetadataCache};

/// Largest number of stored bytes that are read ahead.
const MAX_AHEAD: u64 = 64 << 20;

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
pub struct Store(Arc<Inner>);

struct Inner {
    container: Arc<dyn Container>,
    hierarchy: Hierarchy,
    cache: MetadataCache,
    limits: Limits,
}

impl Store {
    /// Opens the last commit of the store at `path`: a single file or a directory.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Unsupported` (a newer version), `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with_limits(path, Limits::default())
    }

    /// Opens the last commit of the store at `path`; reading it uses no more memory than `limits` allow.
    ///
    /// # Errors
    /// As `open`, and `Limit`.
    pub fn open_with_limits(path: &Path, limits: Limits) -> Result<Self> {
        Self::from_container(container::open_with_limits(path, &limits)?, limits)
    }

    /// Opens the last commit of the store at `url`, on an object store or HTTP server; reading it uses no
    /// more memory than `limits` allow.
    ///
    /// # Errors
    /// As [`container::open_url`], and as `open`.
    pub fn open_url(url: &str, options: &BTreeMap<String, String>, limits: Limits) -> Result<Self> {
        Self::from_container(container::open_url(url, options, &limits)?, limits)
    }

    /// Opens the last commit of the store whose file is in memory; messages call it `location`. Reading it
    /// uses no more memory than `limits` allow.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_bytes(bytes: Owner, location: &str, limits: Limits) -> Result<Self> {
        Self::from_container(container::open_bytes(bytes, location, &limits)?, limits)
    }

    /// Opens the store in `container`; reading it uses no more memory than `limits` allow.
    ///
    /// # Errors
    /// As `open`, and `Limit`.
    pub fn from_container(container: Arc<dyn Container>, limits: Limits) -> Result<Self> {
        let hierarchy = Hierarchy::read(Arc::clone(&container), &limits)
            .map_err(|error| error.in_file(container.location()))?;
        Ok(Self(Arc::new(Inner {
            container,
            hierarchy,
            cache: MetadataCache::default(),
            limits,
        })))
    }

    /// The location of the store, for messages.
    pub fn location(&self) -> &str {
        self.0.container.location()
    }

    /// Paths and kinds of all nodes except the root (such as `/amr`, `/amr/density`), in the order of the
    /// file: in stores of this library each group is followed by what it contains, in the order of creation.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn nodes(&self) -> Result<Vec<(String, NodeKind)>> {
        let names = self.0.hierarchy.names();
        let names = names.map_err(|error| self.with_location(error))?;
        self.with_kinds(names.map(|name| (name.to_owned(), false)))
    }

    /// The kind of the node at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn kind(&self, path: &str) -> Result<Option<NodeKind>> {
        self.0
            .hierarchy
            .kind(name_of(path))
            .map_err(|error| self.with_location(error))
    }

    /// Paths and kinds of the children of the group at `path`; empty if the group does not exist.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn children(&self, path: &str) -> Result<Vec<(String, NodeKind)>> {
        let children = self.0.hierarchy.children(name_of(path));
        let children = children.map_err(|error| self.with_location(error))?;
        self.with_kinds(children.into_iter())
    }

    /// Paths and kinds of nodes, given by their names, and whether they are known to have children.
    fn with_kinds(
        &self,
        names: impl Iterator<Item = (String, bool)>,
    ) -> Result<Vec<(String, NodeKind)>> {
        let mut nodes = Vec::new();
        for (name, has_children) in names {
            // A group's document is not read for its kind: there can be thousands of steps.
            let kind = match has_children && self.0.hierarchy.is_ours() {
                true => Some(NodeKind::Group),
                false => self.kind(&name)?,
            };
            nodes.extend(kind.map(|kind| (format!("/{name}"), kind)));
        }
        Ok(nodes)
    }

    /// The group at `path` (`/` or empty: the root).
    ///
    /// # Errors
    /// `NotFound`, `Invalid` if it is an array, `Corrupt`.
    pub fn group(&self, path: &str) -> Result<Group> {
        let name = name_of(path);
        let attributes = self
            .0
            .hierarchy
            .attributes(name)
            .map_err(|error| self.with_location(error))?;
        match attributes {
            Some(attributes) => Ok(Group {
                path: format!("/{name}"),
                attributes,
            }),
            None => Err(self.missing("group", name)),
        }
    }

    /// The array at `path`. Parses its metadata, and reads no values.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` if it is a group, `Unsupported`, `Corrupt`, `Limit`.
    pub fn array(&self, path: &str) -> Result<Array> {
        let name = name_of(path);
        match self.kind(name)? {
            Some(NodeKind::Array) => {}
            Some(NodeKind::Group) => {
                return Err(self.with_location(
                    Error::invalid("this node is a group; expected an array").at_node(name),
                ));
            }
            None => return Err(self.missing("array or group", name)),
        }
        let document = self.document(name)?;
        let metadata = self.0.cache.parse(&document, &self.0.limits);
        let metadata = metadata.map_err(|error| self.with_location(error.at_node(name)))?;
        Ok(Array::new(
            Arc::clone(&self.0.container),
            name,
            metadata,
            self.0.hierarchy.is_ours(),
            self.0.limits,
        ))
    }

    /// Reads the stored bytes of the arrays at `paths` with few requests, and caches them for later reads
    /// until the result is dropped. Meant for small arrays that are close to each other: arrays that take
    /// more than 64 MiB together are not read ahead.
    ///
    /// # Errors
    /// As [`Store::array`]; `Io`.
    pub fn read_ahead(&self, paths: &[&str]) -> Result<ReadAhead> {
        let mut parts = Vec::new();
        for path in paths {
            parts.append(&mut self.array(path)?.parts()?);
        }
        let bytes = parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(part.len));
        if bytes > MAX_AHEAD {
            return Ok(ReadAhead::default());
        }
        self.container()
            .read_ahead(&parts, u64::MAX)
            .map_err(|error| self.with_location(error))
    }

    /// The JSON text of the `zarr.json` of the array at `path`.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`, `Limit`, `Io`.
    pub fn document(&self, path: &str) -> Result<Cow<'_, str>> {
        let name = name_of(path);
        let document = self.0.hierarchy.document(name);
        let document = document.map_err(|error| self.with_location(error))?;
        document.ok_or_else(|| self.missing("array", name))
    }

    /// The size of the store: all, live and dead bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn usage(&self) -> Result<Usage> {
        self.0.container.usage()
    }

    /// The identity of this commit; `None` if another program wrote the store.
    pub fn commit_id(&self) -> Option<CommitId> {
        self.0.container.commit_id()
    }

    /// The limits of memory for reading the store.
    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn container(&self) -> &dyn Container {
        &*self.0.container
    }

    pub(super) fn hierarchy(&self) -> &Hierarchy {
        &self.0.hierarchy
    }

    fn with_location(&self, error: Error) -> Error {
        error.in_file(self.location())
    }

    /// An error that names the existing nodes.
    fn missing(&self, what: &str, name: &str) -> Error {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        // The missing node is reported even if its siblings cannot be listed.
        let siblings = self.0.hierarchy.children(parent).unwrap_or_default();
        let shown: Vec<&str> = siblings.iter().take(20).map(|(path, _)| &**path).collect();
        let more = if siblings.len() > shown.len() {
            ", ..."
        } else {
            ""
        };
        let names: Vec<&str> = siblings.iter().map(|(path, _)| last_of(path)).collect();
        let message = format!(
            "{what} /{name} does not exist; {}available: {}{more}",
            hint(closest(last_of(name), &names).as_slice()),
            shown.join(", ")
        );
        self.with_location(Error::not_found(message))
    }
}

/// The last segment of a path.
fn last_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.location())
    }
}
