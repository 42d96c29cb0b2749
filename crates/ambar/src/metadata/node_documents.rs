//! The documents of the nodes below the root: together in the root's document, or each in its own entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::{bare_numbers, name};
use crate::container::Container;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::process::{PerProcess, SetOnce};

/// Number of documents of [`SeparateDocuments`] that are cached.
const CACHED: usize = 4096;

/// The end of the key of a node's document.
const DOCUMENT: &str = "/zarr.json";

/// The key of the root's document.
const ROOT_DOCUMENT: &str = "zarr.json";

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

    /// The names of the nodes in the group `name`, and whether these contain nodes.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn children(&self, name: &str) -> Result<Vec<(String, bool)>> {
        let names = match self {
            Self::Together(documents) => &documents.names,
            Self::Separate(documents) if documents.container.has_sorted_keys() => {
                return documents.children(name);
            }
            Self::Separate(documents) => documents.names()?,
        };
        let children = names.children(name).into_iter();
        Ok(children
            .map(|(child, has_nodes)| (child.to_owned(), has_nodes))
            .collect())
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
    pub fn new(text: String, nodes: Vec<(String, Range<usize>)>) -> Result<Self> {
        let names = Names::new(nodes.iter().map(|(name, _)| &**name))?;
        Ok(Self {
            text,
            names,
            ranges: nodes.into_iter().map(|(_, range)| range).collect(),
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
        let mut names = Names::default();
        self.container
            .for_each_key("", &mut |key| match key.strip_suffix(DOCUMENT) {
                Some(name) => names.push(name),
                None => Ok(()),
            })?;
        names.sort()?;
        // The order of keys is that of names, except where other characters than a `/` follow the name of a group.
        let names = match names.sorted.is_sorted() {
            true => names,
            false => Names::new(names.sorted.iter().map(|index| names.name(*index)))?,
        };
        if self.ours {
            names.check(|name| Ok(names.find(name).is_some()))?;
        }
        Ok(self.names.get_or_set(names))
    }

    /// The nodes in the group `name`, from the keys of the group alone.
    fn children(&self, name: &str) -> Result<Vec<(String, bool)>> {
        let prefix = match name {
            "" => String::new(),
            _ => format!("{name}/"),
        };
        let mut children = Vec::new();
        // The keys of a node are consecutive: its own document among those of its chunks and nodes.
        let mut node = NodeKeys::default();
        self.container.for_each_key(&prefix, &mut |key| {
            if node.below(key).is_none() {
                let Some((child, _)) = key[prefix.len()..].split_once('/') else {
                    return Ok(());
                };
                let name = key[..prefix.len() + child.len()].to_owned();
                let next = NodeKeys {
                    name,
                    ..NodeKeys::default()
                };
                children.extend(std::mem::replace(&mut node, next).into_child());
            }
            let below = node.below(key).unwrap_or_default();
            node.has_document |= below == ROOT_DOCUMENT;
            node.has_nodes = node.has_nodes || below.ends_with(DOCUMENT);
            Ok(())
        })?;
        children.extend(node.into_child());
        if self.ours {
            children.iter().try_for_each(|(name, _)| check_name(name))?;
        }
        children.sort_unstable();
        Ok(children)
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

/// A node, and what its keys reveal.
#[derive(Debug, Default)]
struct NodeKeys {
    name: String,
    has_document: bool,
    has_nodes: bool,
}

impl NodeKeys {
    /// The end of a key of the node, after its name; `None` if it is a key of another node.
    fn below<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(&*self.name)?.strip_prefix('/')
    }

    /// The node as a child of its group; `None` if it has no document.
    fn into_child(self) -> Option<(String, bool)> {
        self.has_document.then_some((self.name, self.has_nodes))
    }
}

/// The names of nodes, in one string.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    /// The end of each name in `text`.
    ends: Vec<u32>,
    /// Indices of names, sorted by name.
    sorted: Vec<u32>,
}

impl Names {
    /// # Errors
    /// `Corrupt` if two nodes have one name; `Limit`.
    fn new<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut all = Self::default();
        for name in names {
            all.push(name)?;
        }
        all.sort()?;
        Ok(all)
    }

    fn push(&mut self, name: &str) -> Result<()> {
        self.text.push_str(name);
        let end = u32::try_from(self.text.len())
            .map_err(|_| Error::limit("the names of all nodes have more than 4 GiB"))?;
        self.ends.push(end);
        Ok(())
    }

    fn sort(&mut self) -> Result<()> {
        let mut sorted: Vec<u32> = (0..self.ends.len() as u32).collect();
        // Nearly sorted names, as those of entries, are sorted in linear time.
        sorted.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
        let twice = |pair: &&[u32]| self.name(pair[0]) == self.name(pair[1]);
        if let Some(pair) = sorted.windows(2).find(twice) {
            return Err(Error::corrupt("two documents of one node").at_node(self.name(pair[0])));
        }
        self.sorted = sorted;
        Ok(())
    }

    fn name(&self, index: u32) -> &str {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[index] as usize]
    }

    /// All names, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|index| self.name(index))
    }

    /// The names of the nodes in the group `name`, in the order of the file, and whether nodes are in them.
    pub fn children(&self, name: &str) -> Vec<(&str, bool)> {
        let prefix = match name {
            "" => String::new(),
            _ => format!("{name}/"),
        };
        let first = self
            .sorted
            .partition_point(|index| self.name(*index) < prefix.as_str());
        let mut children: Vec<(u32, bool)> = Vec::new();
        let mut parent = "";
        for index in &self.sorted[first..] {
            let Some(path) = self.name(*index).strip_prefix(&prefix) else {
                break;
            };
            let Some((group, _)) = path.split_once('/') else {
                children.push((*index, false));
                continue;
            };
            if group != parent {
                parent = group;
                // Only names that begin with that of the group are between it and its nodes.
                let is_parent = |index: u32| self.name(index).strip_prefix(&prefix) == Some(group);
                let begins = |index: u32| self.name(index)[prefix.len()..].starts_with(group);
                let mut between = children
                    .iter_mut()
                    .rev()
                    .take_while(|(index, _)| begins(*index));
                let found = between.find(|(index, _)| is_parent(*index));
                if let Some((_, has_nodes)) = found {
                    *has_nodes = true;
                }
            }
        }
        children.sort_unstable();
        let named = children.iter();
        named
            .map(|(index, has_nodes)| (self.name(*index), *has_nodes))
            .collect()
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
            check_name(name)?;
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

fn check_name(name: &str) -> Result<()> {
    match name::broken_rule(name) {
        None => Ok(()),
        Some(rule) => Err(Error::corrupt(format!("the name of a node {rule}")).at_node(name)),
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
        .map(|text| Some(bare_numbers::replace_bare_numbers(text)))
        .map_err(|_| Error::corrupt(format!("{key} is not UTF-8; restore the file from a copy")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_listed_in_the_order_of_the_file() {
        let names = ["b", "a", "a-b", "a/x", "a/x/y", "b/z", "c"];
        let names = Names::new(names.into_iter()).unwrap();
        let root = [("b", true), ("a", true), ("a-b", false), ("c", false)];
        assert_eq!(names.children(""), root);
        assert_eq!(names.children("a"), [("a/x", true)]);
        assert_eq!(names.children("a/x"), [("a/x/y", false)]);
        assert!(names.children("c").is_empty());
        assert_eq!(names.find("a-b"), Some(2));
        assert_eq!(names.find("a/"), None);
        assert!(names.check(|_| Ok(true)).is_ok());
        let orphan = Names::new(["a/x"].into_iter()).unwrap();
        assert!(orphan.check(|_| Ok(true)).is_err());
        assert!(Names::new(["a", "a"].into_iter()).is_err());
    }
}
