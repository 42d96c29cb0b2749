//! Earlier commits of a store: how they differ, and how to keep them when the store is compacted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{NodeKind, Store};
use crate::container::{self, CommitInfo, CompactReport, Container};
use crate::error::Result;
use crate::limits::Limits;

/// How a node of one store differs from the node of the same path in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the other store has it.
    Added,
    /// The other store does not have it.
    Removed,
    /// Its values differ, or its shape, data type or codecs.
    Values,
    /// Only its document differs, such as its attributes.
    Metadata,
}

impl Store {
    /// This commit and all commits before that the store still has, the newest first.
    ///
    /// # Errors
    /// `Unsupported` in a directory and in stores of other programs; `Corrupt`, `Limit`, `Io`.
    pub fn commits(&self) -> Result<Vec<CommitInfo>> {
        self.container().commits()
    }

    /// Opens the commit of this number.
    ///
    /// # Errors
    /// `NotFound` if the store does not have it; otherwise as `commits` and `open`.
    pub fn at_commit(&self, number: u64) -> Result<Self> {
        Self::from_container(self.container().at_commit(number)?, *self.limits())
    }

    /// The numbers of commits, by the names that users gave them.
    pub fn tags(&self) -> &BTreeMap<String, u64> {
        self.hierarchy().tags()
    }

    /// The nodes that differ in `other`, sorted by path. Lengths and checksums of encoded chunks are compared, no values
    /// are read: equal values that are encoded differently differ.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn differences(&self, other: &Self) -> Result<Vec<(String, Change)>> {
        let (old, new) = (self.nodes()?, other.nodes()?);
        let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (old.into_iter().collect(), new.into_iter().collect());
        let mut differences = Vec::new();
        if self.group("/")?.attributes() != other.group("/")?.attributes() {
            differences.push(("/".to_owned(), Change::Metadata));
        }
        for (path, kind) in &old {
            let change = match new.get(path) {
                None => Some(Change::Removed),
                Some(other_kind) if other_kind != kind => Some(Change::Values),
                Some(_)
                    if *kind == NodeKind::Array && self.chunks(path)? != other.chunks(path)? =>
                {
                    Some(Change::Values)
                }
                Some(_) => {
                    let name = super::name_of(path);
                    let documents = (
                        self.hierarchy().document(name)?,
                        other.hierarchy().document(name)?,
                    );
                    (documents.0 != documents.1).then_some(Change::Metadata)
                }
            };
            differences.extend(change.map(|change| (path.clone(), change)));
        }
        let added = new.keys().filter(|path| !old.contains_key(*path));
        differences.extend(added.map(|path| (path.clone(), Change::Added)));
        differences.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(differences)
    }

    /// Length and CRC-32 of each entry with chunks of the array at `path`.
    fn chunks(&self, path: &str) -> Result<Vec<(u64, Option<u32>)>> {
        let parts = self.array(path)?.parts()?;
        Ok(parts
            .iter()
            .map(|part| (part.len, part.entry.crc32()))
            .collect())
    }
}

/// Rewrites the store at `path` without its dead bytes, and verifies every entry. Tagged commits remain.
///
/// # Errors
/// As [`container::compact`].
pub fn compact(path: &Path, limits: &Limits) -> Result<CompactReport> {
    let tagged = |last: Arc<dyn Container>| {
        // A ZIP of another program need not be a hierarchy, and has no tags.
        if last.commit_id().is_none() {
            return Ok(Vec::new());
        }
        let store = Store::from_container(last, *limits)?;
        Ok(store.tags().values().copied().collect())
    };
    container::compact(path, limits, &tagged)
}
