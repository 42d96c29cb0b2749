//! Writes stores: arrays go to the container immediately, metadata with the commit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{NodeKind, Store, name_of};
use crate::array::{
    ArrayData, ArraySpec, NewArray, Observer, WindowWriter, WindowedArray, WriteBatch, WrittenArray,
};
use crate::container::{self, ContainerWriter, CreateOptions, Durability};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::metadata::{
    Attributes, Tags, broken_rule_of_names, group_document, root_document, root_document_alone,
    with_loss, without_loss,
};

/// Most bytes of documents that the root's document contains, too. Opening parses them, and each commit writes them.
const MAX_CONSOLIDATED: usize = 4 << 20;

/// A store open for writing. Changes become visible with [`StoreWriter::commit`].
pub struct StoreWriter {
    pub(super) container: Box<dyn ContainerWriter>,
    root: Attributes,
    tags: Tags,
    pub(super) nodes: HashMap<String, Node>,
    /// Keys of all chunks and documents, so that those of replaced nodes can be removed.
    pub(super) keys: BTreeSet<String>,
    /// Number of nodes created so far, which is their order in the file.
    made: u64,
    /// Whether writing an array failed half-way, so that nothing can be committed.
    pub(super) failed: bool,
    pub(super) observer: Option<Arc<Observer>>,
    /// Limits for reading existing documents and chunks.
    pub(super) limits: Limits,
}

#[derive(Debug)]
pub(super) struct Node {
    order: u64,
    pub(super) kind: NodeKind,
    pub(super) document: String,
    pub(super) changed: bool,
    /// The spec of a declared array until its first values are written.
    pub(super) spec: Option<ArraySpec>,
    /// Whether chunks of the array may be missing, which the next commit writes.
    pub(super) sparse: bool,
}

impl std::fmt::Debug for StoreWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "StoreWriter({:?}, {} nodes)",
            self.container,
            self.nodes.len()
        )
    }
}

impl StoreWriter {
    /// Creates a store at `path`; it appears there with the first commit.
    ///
    /// # Errors
    /// `Exists` if it exists and must not be overwritten; `Busy` if another writer creates it; `Io`.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Self> {
        Ok(Self::empty(
            container::create(path, options)?,
            options.limits,
        ))
    }

    /// Creates a store at `url`: as one object, which appears when the writer is finished ([`StoreWriter::finish`]), or
    /// below a URL that ends with `/`, where it appears with the first commit. `storage` are the options of the
    /// service, as for [`Store::open_url`].
    ///
    /// # Errors
    /// As [`container::create_url`].
    pub fn create_url(
        url: &str,
        storage: &BTreeMap<String, String>,
        options: &CreateOptions,
    ) -> Result<Self> {
        let container = container::create_url(url, storage, options)?;
        Ok(Self::empty(container, options.limits))
    }

    /// The writer of a store without nodes.
    fn empty(container: Box<dyn ContainerWriter>, limits: Limits) -> Self {
        Self {
            container,
            root: Attributes::new(),
            tags: Tags::new(),
            nodes: HashMap::new(),
            keys: BTreeSet::new(),
            made: 0,
            failed: false,
            observer: None,
            limits,
        }
    }

    /// Opens the store at `path` to add to it.
    ///
    /// # Errors
    /// `NotFound`, `Busy` if another writer has it open, `Corrupt`, `Io`; `Unsupported` if another program
    /// wrote it.
    pub fn append(path: &Path, durability: Durability) -> Result<Self> {
        Self::append_with_limits(path, durability, Limits::default())
    }

    /// Opens the store at `path` to add to it; reading it uses no more memory than `limits` allow.
    ///
    /// # Errors
    /// As `append`, and `Limit`.
    pub fn append_with_limits(path: &Path, durability: Durability, limits: Limits) -> Result<Self> {
        Self::resume(container::append(path, durability, &limits)?, limits)
    }

    /// Opens the store at `url`, which ends with `/`, to add to it. `storage` are the options of the service, as for
    /// [`Store::open_url`].
    ///
    /// # Errors
    /// As [`container::append_url`]. `Busy` is the error of the commit if another writer has committed since.
    pub fn append_url(
        url: &str,
        storage: &BTreeMap<String, String>,
        limits: Limits,
    ) -> Result<Self> {
        Self::resume(container::append_url(url, storage, &limits)?, limits)
    }

    /// The writer of the store that `container` has.
    fn resume(container: Box<dyn ContainerWriter>, limits: Limits) -> Result<Self> {
        let store = Store::from_container(container.reader()?, limits)?;
        if !store.hierarchy().is_ours() {
            let message = "another program wrote this store, so it cannot be appended to; copy its arrays into a new one";
            return Err(Error::unsupported(message).in_file(store.location()));
        }
        let mut writer = Self::empty(container, limits);
        writer.tags.clone_from(store.hierarchy().tags());
        writer.load(&store)?;
        Ok(writer)
    }

    /// Replaces all nodes by those of `store`, whose entries the container has.
    fn load(&mut self, store: &Store) -> Result<()> {
        let hierarchy = store.hierarchy();
        self.keys = store.container().keys()?.into_iter().collect();
        self.root = hierarchy.attributes("")?.unwrap_or_default();
        self.nodes.clear();
        for (order, name) in hierarchy.names()?.enumerate() {
            if let (Some(kind), Some(document)) = (hierarchy.kind(name)?, hierarchy.document(name)?)
            {
                let document = document.into_owned();
                let node = Node {
                    order: order as u64,
                    kind,
                    document,
                    changed: false,
                    spec: None,
                    sparse: false,
                };
                self.nodes.insert(name.to_owned(), node);
            }
        }
        self.made = self.nodes.len() as u64;
        Ok(())
    }

    /// Names the commit `number`; `None` removes the name. The next commit stores the names.
    ///
    /// # Errors
    /// `Invalid` if the name does not begin with a letter, has spaces or control characters, or is longer than 255
    /// bytes; `NotFound` if the commit does not exist, or there is no such name to remove.
    pub fn tag(&mut self, name: &str, number: Option<u64>) -> Result<()> {
        let Some(number) = number else {
            return match self.tags.remove(name) {
                Some(_) => Ok(()),
                None => Err(Error::not_found(format!("the tag {name:?} does not exist"))),
            };
        };
        // Other names of commits are numbers, and times, which begin with a digit.
        let is_valid = name.starts_with(char::is_alphabetic)
            && name.len() <= 255
            && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        if !is_valid {
            return Err(Error::invalid(format!(
                "invalid tag: {name:?}; expected 1 to 255 bytes that begin with a letter, without spaces and control \
                 characters"
            )));
        }
        self.last_commit()?.at_commit(number)?;
        self.tags.insert(name.to_owned(), number);
        Ok(())
    }

    /// Replaces all nodes by those of the commit `number`; the next commit makes them visible. No values are copied. Tags
    /// remain.
    ///
    /// # Errors
    /// `NotFound` if the commit does not exist; `Unsupported` in a directory; `Corrupt`, `Io`.
    pub fn restore(&mut self, number: u64) -> Result<()> {
        let store = self.last_commit()?.at_commit(number)?;
        self.container.restore(number)?;
        self.load(&store)
    }

    /// Sets the observer, which is called with the raw bytes of each encoded chunk, from any thread. Its
    /// error ends the write, and nothing can be committed afterwards. `None` removes the observer.
    pub fn observe(&mut self, observer: Option<Arc<Observer>>) {
        self.observer = observer;
    }

    /// Creates a group with these attributes, and its missing parents; replaces the attributes of an
    /// existing group. `/` is the root.
    ///
    /// # Errors
    /// `Invalid` if the path is not valid, is an array, or passes through one.
    pub fn group(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        if name.is_empty() {
            self.root = attributes;
            return Ok(());
        }
        self.check_name(name, NodeKind::Group)?;
        self.make_parents(name);
        self.insert(
            name,
            NodeKind::Group,
            group_document(&attributes).to_string(),
        );
        Ok(())
    }

    /// The current attributes of a node; `None` if it does not exist.
    ///
    /// # Errors
    /// `Corrupt` if the node's metadata is invalid.
    pub fn attributes(&self, path: &str) -> Result<Option<Attributes>> {
        let name = name_of(path);
        if name.is_empty() {
            return Ok(Some(self.root.clone()));
        }
        let Some(node) = self.nodes.get(name) else {
            return Ok(None);
        };
        let mut document = parse_document(name, &node.document)?;
        let attributes = match document["attributes"].take() {
            Value::Object(attributes) => attributes,
            _ => Attributes::new(),
        };
        Ok(Some(match node.kind {
            NodeKind::Array => without_loss(attributes, self.array_bound(name)),
            NodeKind::Group => attributes,
        }))
    }

    /// Replaces the attributes of a group or an array.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_attributes(&mut self, path: &str, attributes: Attributes) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        if name.is_empty() {
            self.root = attributes;
            return Ok(());
        }
        let kind = self.nodes.get(name).map(|node| node.kind);
        let stored = match kind {
            Some(NodeKind::Array) => with_loss(&attributes, self.array_bound(name)),
            _ => attributes,
        };
        let Some(node) = self.nodes.get_mut(name) else {
            return Err(Error::not_found(format!(
                "node /{name} does not exist; check the path"
            )));
        };
        let mut document = parse_document(name, &node.document)?;
        document["attributes"] = Value::Object(stored);
        node.document = document.to_string();
        node.changed = true;
        Ok(())
    }

    /// Writes an array, and creates its missing parents; an existing array is replaced. Chunks are encoded
    /// on the threads of the current pool.
    ///
    /// # Errors
    /// `Invalid` if data and spec do not fit, or the path is a group or passes through an array; `Io`.
    pub fn write_array(&mut self, path: &str, spec: &ArraySpec, data: ArrayData<'_>) -> Result<()> {
        self.write_arrays(&[NewArray { path, spec, data }])
    }

    /// Writes several arrays, which are encoded in parallel: faster than one by one for small arrays.
    ///
    /// # Errors
    /// As `write_array`, and `Invalid` for two of the same path.
    pub fn write_arrays(&mut self, arrays: &[NewArray<'_>]) -> Result<()> {
        self.container.check()?;
        let arrays: Vec<_> = arrays
            .iter()
            .map(|array| NewArray {
                path: name_of(array.path),
                ..*array
            })
            .collect();
        let names: Vec<&str> = arrays.iter().map(|array| array.path).collect();
        self.check_new(&names)?;
        let batch = WriteBatch::new(&arrays)?;
        // If this fails, chunks of old and new arrays may have mixed under one name.
        self.failed = true;
        let written = batch.write(&mut *self.container, self.observer.as_deref())?;
        self.insert_written(&names, written)
    }

    /// Writes arrays whose values `fill` passes to the writer of windows.
    ///
    /// # Errors
    /// As `write_arrays`; errors of `fill`.
    pub(crate) fn write_windows(
        &mut self,
        arrays: &[WindowedArray<'_>],
        fill: impl FnOnce(&mut WindowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.container.check()?;
        let arrays: Vec<_> = arrays
            .iter()
            .map(|array| WindowedArray {
                path: name_of(array.path),
                spec: array.spec,
                samples: array.samples.clone(),
            })
            .collect();
        let names: Vec<&str> = arrays.iter().map(|array| array.path).collect();
        self.check_new(&names)?;
        // As in `write_arrays`.
        self.failed = true;
        let observer = self.observer.clone();
        let mut windows = WindowWriter::new(&arrays, &mut *self.container, observer.as_deref())?;
        fill(&mut windows)?;
        let written = windows.finish()?;
        self.insert_written(&names, written)
    }

    /// Checks that arrays with these names can be written in one call.
    fn check_new(&self, arrays: &[&str]) -> Result<()> {
        let names: HashSet<&str> = arrays.iter().copied().collect();
        for name in arrays {
            self.check_name(name, NodeKind::Array)?;
            if names.len() < arrays.len() || parents(name).any(|parent| names.contains(parent)) {
                let message = format!(
                    "/{name} occurs twice in one call, or is below an array; give each array another path"
                );
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    /// Inserts the nodes of arrays whose entries are written, and removes entries of replaced nodes.
    fn insert_written(&mut self, names: &[&str], written: Vec<WrittenArray>) -> Result<()> {
        for (written, name) in written.into_iter().zip(names) {
            let old = self.keys_below(name);
            self.keys.extend(written.keys.iter().cloned());
            for key in old.iter().filter(|key| !written.keys.contains(key)) {
                self.container.remove(key)?;
                self.keys.remove(key);
            }
            self.make_parents(name);
            self.insert(name, NodeKind::Array, written.document);
        }
        self.failed = false;
        Ok(())
    }

    /// Removes a node and its descendants.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for the root.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        if name.is_empty() {
            return Err(Error::invalid(
                "the root cannot be removed; remove the file",
            ));
        }
        if !self.nodes.contains_key(name) {
            return Err(Error::not_found(format!(
                "node /{name} does not exist; check the path"
            )));
        }
        for key in self.keys_below(name) {
            self.container.remove(&key)?;
            self.keys.remove(&key);
        }
        self.nodes
            .retain(|other, _| other != name && !is_below(other, name));
        Ok(())
    }

    /// Makes all changes visible, atomically and durably.
    ///
    /// # Errors
    /// `Io`, and `Invalid` if writing an array has failed half-way; the writer is then unusable, and the
    /// last commit remains.
    pub fn commit(&mut self) -> Result<()> {
        self.container.check()?;
        if self.failed {
            let message = "writing an array failed half-way, so nothing can be committed; open the store for \
                           writing again";
            return Err(Error::invalid(message));
        }
        self.fill_sparse()?;
        let changed = self.in_tree_order(|node| node.changed);
        for name in changed {
            if let Some(node) = self.nodes.get_mut(&name) {
                let key = format!("{name}/zarr.json");
                self.container.put(&key, &[node.document.as_bytes()])?;
                self.keys.insert(key);
                node.changed = false;
            }
        }
        let alone = root_document_alone(&self.root, &self.tags)?;
        let bytes: usize = self.nodes.values().map(|node| node.document.len()).sum();
        if bytes > MAX_CONSOLIDATED {
            self.container
                .put_root(alone.as_bytes(), alone.as_bytes())?;
            return self.container.commit();
        }
        let names = self.in_tree_order(|_| true);
        let documents = names
            .iter()
            .filter_map(|name| Some((name.as_str(), self.nodes.get(name)?.document.as_str())));
        let root = root_document(&self.root, &self.tags, documents)?;
        self.container.put_root(root.as_bytes(), alone.as_bytes())?;
        self.container.commit()
    }

    /// Ends writing: an upload to an object store becomes visible with its last commit. Without a commit it leaves
    /// nothing, like a writer that is dropped. Stores in files need no such call.
    ///
    /// # Errors
    /// `Exists` if another program has created the object meanwhile; `Io`.
    pub fn finish(&mut self) -> Result<()> {
        self.container.finish()
    }

    /// Sets the message of the next commit.
    ///
    /// # Errors
    /// `Invalid` if it has more than 4096 bytes.
    pub fn set_message(&mut self, message: &str) -> Result<()> {
        self.container.set_message(message)
    }

    /// Names of the nodes that `is_wanted` selects: each group is followed by everything in it, siblings are in the
    /// order of their creation. zarr-python takes siblings that other nodes of their depth separate for missing ones.
    fn in_tree_order(&self, is_wanted: impl Fn(&Node) -> bool) -> Vec<String> {
        let order = |name: &str| self.nodes.get(name).map_or(0, |node| node.order);
        let wanted = self.nodes.iter().filter(|(_, node)| is_wanted(node));
        let mut names: Vec<String> = wanted.map(|(name, _)| name.clone()).collect();
        names.sort_by_cached_key(|name| {
            let ends = name.match_indices('/').map(|(end, _)| end);
            let paths = ends.chain([name.len()]).map(|end| &name[..end]);
            paths.map(order).collect::<Vec<u64>>()
        });
        names
    }

    /// Opens the last commit for reading.
    ///
    /// # Errors
    /// `Invalid` if nothing has been committed yet; otherwise as [`Store::open`].
    pub fn last_commit(&self) -> Result<Store> {
        Store::from_container(self.container.reader()?, self.limits)
    }

    /// Checks that a node of `kind` may have the name `name`.
    pub(super) fn check_name(&self, name: &str, kind: NodeKind) -> Result<()> {
        if let Some(rule) = broken_rule_of_names(name) {
            return Err(Error::invalid(format!(
                "the path {name:?} {rule}; choose another name"
            )));
        }
        if self.nodes.get(name).is_some_and(|node| node.kind != kind) {
            let message = format!("/{name} exists as a node of the other kind; remove it first");
            return Err(Error::invalid(message));
        }
        for parent in parents(name) {
            if self
                .nodes
                .get(parent)
                .is_some_and(|node| node.kind == NodeKind::Array)
            {
                let message =
                    format!("/{name} cannot be below the array /{parent}; choose another path");
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    /// Creates the missing parents of `name`.
    pub(super) fn make_parents(&mut self, name: &str) {
        for parent in parents(name) {
            if !self.nodes.contains_key(parent) {
                let document = group_document(&Attributes::new()).to_string();
                self.insert(parent, NodeKind::Group, document);
            }
        }
    }

    pub(super) fn insert(&mut self, name: &str, kind: NodeKind, document: String) {
        let order = self.nodes.get(name).map_or(self.made, |node| node.order);
        self.made += 1;
        self.nodes.insert(
            name.to_owned(),
            Node {
                order,
                kind,
                document,
                changed: true,
                spec: None,
                sparse: false,
            },
        );
    }

    /// Keys of the node `name` and its descendants.
    pub(super) fn keys_below(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}/");
        let from = self.keys.range(prefix.clone()..);
        from.take_while(|key| key.starts_with(&prefix))
            .cloned()
            .collect()
    }
}

/// A node's document as JSON.
fn parse_document(name: &str, document: &str) -> Result<Value> {
    serde_json::from_str(document).map_err(|error| {
        Error::corrupt(format!(
            "invalid metadata: {error}; restore the store from a copy"
        ))
        .at_node(name)
    })
}

/// Names of the ancestors of `name`, the topmost first.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(end, _)| &name[..end])
}

/// Whether the node `name` is a descendant of `other`.
fn is_below(name: &str, other: &str) -> bool {
    name.strip_prefix(other)
        .is_some_and(|rest| rest.starts_with('/'))
}
