//! The documents of the nodes below the root: together in the root's document, or each in its own entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::name;
use crate::container::Container;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::process::{PerProcess, SetOnce};

/// Number of documents of [`SeparateDocuments`] that are cached.
const CACHED: usize = 4096;

/// The end of the key of a node's document.
const DOCUMENT: &str = "/zarr.json";

/// The documents of all nodes except the root.
#[derive(Debug)]
pub(super) enum NodeDocuments {
    /// The consolidated metadata of the root.
    Together(ConsolidatedDocuments),
    /// The entries of the nodes, read when they are needed.
    Separate(Box<SeparateDocuments>),
}

impl NodeDocuments {
    /// The names of all nodes (such as `amr/density`), each after its parents.
    ///
    /// # Errors
    /// `Corrupt` if a name is invalid or a parent is missing; `Io`.
    pub fn names(&self) -> Result<&Names> {
        match self {
            Self::Together(documents) => Ok(&documents.names),
            Self::Separate(documents) => documents.names(),
        }
    }

    /// The document of the node `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn get(&self, name: &str) -> Result<Option<Cow<'_, str>>> {
        match self {
            Self::Together(documents) => Ok(documents.get(name).map(Cow::Borrowed)),
            Self::Separate(documents) => {
                let document = documents.get(name)?;
                Ok(document.map(|document| Cow::Owned(document.to_string())))
            }
        }
    }
}

/// Documents that are parts of one text.
#[derive(Debug)]
pub(super) struct ConsolidatedDocuments {
    text: String,
    names: Names,
    /// The ranges of the documents in `text`, in the order of `names`.
    ranges: Vec<Range<usize>>,
}

impl ConsolidatedDocuments {
    /// The nodes `(name, range of the document in text)`.
    ///
    /// # Errors
    /// `Corrupt` if two nodes have one name; `Limit`.
    pub fn new(text: String, nodes: Vec<(Box<str>, Range<usize>)>) -> Result<Self> {
        let (names, ranges) = nodes.into_iter().unzip();
        Ok(Self {
            text,
            names: Names::new(names)?,
            ranges,
        })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.text.get(self.ranges[self.names.find(name)?].clone())
    }
}

/// Documents that are entries of the container.
#[derive(Debug)]
pub(super) struct SeparateDocuments {
    container: Arc<dyn Container>,
    limits: Limits,
    /// Whether this library wrote the store, so that the names of nodes follow its rules.
    ours: bool,
    names: SetOnce<Names>,
    read: PerProcess<Mutex<HashMap<Box<str>, Arc<str>>>>,
}

impl SeparateDocuments {
    pub fn new(container: Arc<dyn Container>, limits: Limits, ours: bool) -> Self {
        Self {
            container,
            limits,
            ours,
            names: SetOnce::new(),
            read: PerProcess::new(),
        }
    }

    fn names(&self) -> Result<&Names> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let mut names = self.container.keys()?;
        names.retain_mut(|key| match key.strip_suffix(DOCUMENT) {
            Some(name) => {
                key.truncate(name.len());
                true
            }
            None => false,
        });
        // A group precedes what it contains.
        names.sort_unstable();
        let names = Names::new(names.into_iter().map(Box::from).collect())?;
        if self.ours {
            names.check(|name| Ok(names.find(name).is_some()))?;
        }
        Ok(self.names.get_or_set(names))
    }

    fn get(&self, name: &str) -> Result<Option<Arc<str>>> {
        if let Some(document) = self.read.lock().get(name) {
            return Ok(Some(Arc::clone(document)));
        }
        let key = format!("{name}{DOCUMENT}");
        let Some(text) = read_text(&*self.container, &key, &self.limits)? else {
            return Ok(None);
        };
        let document: Arc<str> = text.into();
        let mut read = self.read.lock();
        if read.len() >= CACHED {
            read.clear();
        }
        read.insert(name.into(), Arc::clone(&document));
        Ok(Some(document))
    }
}

/// The names of nodes.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<Box<str>>,
    /// Indices into `names`, sorted by name.
    sorted: Vec<u32>,
}

impl Names {
    fn new(names: Vec<Box<str>>) -> Result<Self> {
        let count = u32::try_from(names.len())
            .map_err(|_| Error::limit("a hierarchy has at most 2^32 nodes"))?;
        let mut sorted: Vec<u32> = (0..count).collect();
        let name = |index: u32| &*names[index as usize];
        sorted.sort_by(|a, b| name(*a).cmp(name(*b)));
        let duplicate = sorted
            .windows(2)
            .find(|pair| name(pair[0]) == name(pair[1]));
        if let Some(duplicate) = duplicate {
            return Err(Error::corrupt("two documents of one node").at_node(name(duplicate[0])));
        }
        Ok(Self { names, sorted })
    }

    /// All names, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The names of the nodes in the group `name`, in the order of the file.
    pub fn children(&self, name: &str) -> Vec<&str> {
        let prefix = match name {
            "" => String::new(),
            _ => format!("{name}/"),
        };
        let mut children = Vec::new();
        let mut rest = self.below(&prefix);
        while let [index, others @ ..] = rest {
            let name = self.name(*index);
            let Some(child) = name.strip_prefix(&prefix) else {
                break;
            };
            if !child.contains('/') {
                children.push(*index);
            }
            rest = others;
        }
        children.sort_unstable();
        children.iter().map(|index| self.name(*index)).collect()
    }

    /// Whether a node is in the node `name`, which is a group then.
    pub fn has_children(&self, name: &str) -> bool {
        let prefix = format!("{name}/");
        let first = self.below(&prefix).first();
        first.is_some_and(|index| self.name(*index).starts_with(&prefix))
    }

    /// The sorted indices from the first name that begins with `prefix` on.
    fn below(&self, prefix: &str) -> &[u32] {
        let first = self
            .sorted
            .partition_point(|index| self.name(*index) < prefix);
        &self.sorted[first..]
    }

    fn name(&self, index: u32) -> &str {
        &self.names[index as usize]
    }

    /// The index of the node `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        let found = self
            .sorted
            .binary_search_by(|index| self.name(*index).cmp(name))
            .ok()?;
        Some(self.sorted[found] as usize)
    }

    /// Checks that every node has a valid name, and follows its parent, for which `is_group` holds.
    ///
    /// # Errors
    /// `Corrupt`, and errors of `is_group`.
    pub fn check(&self, is_group: impl Fn(&str) -> Result<bool>) -> Result<()> {
        // The parent of the previous node: most often it is also the parent of this one.
        let mut group = "";
        for (order, name) in self.iter().enumerate() {
            if let Some(rule) = name::broken_rule(name) {
                return Err(Error::corrupt(format!("the name of a node {rule}")).at_node(name));
            }
            let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
            let follows = parent == group
                || parent.is_empty()
                || (self.find(parent).is_some_and(|found| found < order) && is_group(parent)?);
            if !follows {
                return Err(
                    Error::corrupt("expected the group of the node before the node").at_node(name),
                );
            }
            group = parent;
        }
        Ok(())
    }
}

/// Reads the document of `key`; `None` if it does not exist.
///
/// # Errors
/// `Corrupt` if it is not UTF-8; `Limit`, `Io`.
pub(super) fn read_text(
    container: &dyn Container,
    key: &str,
    limits: &Limits,
) -> Result<Option<String>> {
    let Some(bytes) = container.read_whole(key, limits.metadata_bytes)? else {
        return Ok(None);
    };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Error::corrupt(format!("{key} is not UTF-8; restore the file from a copy")))
}
