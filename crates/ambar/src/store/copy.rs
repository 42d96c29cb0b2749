//! Copies nodes of a store into another one: encoded chunks are copied verbatim.

use std::collections::{HashMap, HashSet};

use super::writer::StoreWriter;
use super::{NodeKind, Store, name_of};
use crate::container::{Entry, EntryRange, ReadAhead};
use crate::error::{Error, Result};
use crate::limits;
use crate::metadata::group_document;

/// Most stored bytes that are read ahead, unless one entry is longer.
const BATCH_BYTES: u64 = 64 << 20;

/// Entries are read together across gaps of at most this many bytes.
const GAP_BYTES: u64 = 64 << 10;

/// A node to copy with everything below it: its path in the source, and its path in the target.
#[derive(Clone, Copy, Debug)]
pub struct CopiedNode<'a> {
    /// The path in the source.
    pub from: &'a str,
    /// The path in the target.
    pub to: &'a str,
}

/// An entry to copy.
struct CopiedEntry {
    key: String,
    target: String,
    entry: Entry,
}

impl StoreWriter {
    /// Copies nodes of `store`, each with everything below it. Documents and encoded chunks do not change, and nothing
    /// is decoded. Checksums of entries are verified before they are written. Entries are read in the order of the
    /// file, from other machines up to 64 MiB in a request. `progress` is called with the bytes copied and all bytes.
    ///
    /// # Errors
    /// `NotFound` if a node does not exist; `Invalid` if the target has a node of the new path; `Corrupt` if a checksum
    /// differs; `Io`; those of `progress`.
    pub fn copy_nodes(
        &mut self,
        store: &Store,
        nodes: &[CopiedNode<'_>],
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        self.container.check()?;
        self.check_targets(store, nodes)?;
        // If this fails, chunks of some arrays are missing.
        self.failed = true;
        let mut entries = Vec::new();
        self.copy_documents(store, nodes, &mut entries)?;
        entries.sort_by_key(|entry| entry.entry.file_offset());
        let total = entries.iter().map(|entry| entry.entry.len()).sum();
        let mut done = 0;
        progress(done, total)?;
        let mut rest = &entries[..];
        while !rest.is_empty() {
            let mut bytes = 0u64;
            let fitting = rest.iter().take_while(|entry| {
                bytes = bytes.saturating_add(entry.entry.len());
                bytes <= BATCH_BYTES
            });
            let (batch, later) = rest.split_at(fitting.count().max(1));
            done += self.copy_entries(store, batch)?;
            progress(done, total)?;
            rest = later;
        }
        self.failed = false;
        Ok(())
    }

    /// Checks that the nodes exist, and that their new paths are valid and free.
    fn check_targets(&self, store: &Store, nodes: &[CopiedNode<'_>]) -> Result<()> {
        let mut names = HashSet::new();
        for node in nodes {
            let kind = match store.kind(node.from)? {
                Some(kind) => kind,
                // The error lists the nodes that exist.
                None => store.array(node.from).map(|_| NodeKind::Array)?,
            };
            let name = name_of(node.to);
            match (name.is_empty(), kind) {
                (true, NodeKind::Group) => {}
                (true, NodeKind::Array) => {
                    let message = "an array cannot be copied to the root; choose a path for it";
                    return Err(Error::invalid(message).at_node(node.from));
                }
                (false, kind) => self.check_name(name, kind)?,
            }
            // The root exists; all nodes of the target are below it.
            let exists = match name.is_empty() {
                true => !self.nodes.is_empty(),
                false => self.nodes.contains_key(name),
            };
            if exists || !names.insert(name) {
                return Err(Error::invalid(format!(
                    "/{name} exists already; remove it, or choose another path"
                )));
            }
        }
        Ok(())
    }

    /// Inserts the documents of the nodes and of those below, and lists the entries of arrays.
    fn copy_documents(
        &mut self,
        store: &Store,
        nodes: &[CopiedNode<'_>],
        entries: &mut Vec<CopiedEntry>,
    ) -> Result<()> {
        let targets: HashMap<&str, &str> = nodes
            .iter()
            .map(|node| (name_of(node.from), name_of(node.to)))
            .collect();
        if let Some(target) = targets.get("") {
            let attributes = store.group("/")?.attributes().clone();
            if target.is_empty() {
                self.set_attributes("/", attributes)?;
            } else {
                self.make_parents(target);
                let document = group_document(&attributes).to_string();
                self.insert(target, NodeKind::Group, document);
            }
        }
        let hierarchy = store.hierarchy();
        for name in hierarchy.names()? {
            let Some(target) = target_of(&targets, name) else {
                continue;
            };
            let (Some(kind), Some(document)) = (hierarchy.kind(name)?, hierarchy.document(name)?)
            else {
                continue;
            };
            if target.is_empty() {
                self.set_attributes("/", store.group(name)?.attributes().clone())?;
                continue;
            }
            self.make_parents(&target);
            self.insert(&target, kind, document.into_owned());
            if kind == NodeKind::Group {
                continue;
            }
            if !hierarchy.is_ours() {
                // Other programs do not write chunks of fill values.
                self.fill_later(&target);
            }
            let prefix = format!("{name}/");
            store.container().for_each_key(&prefix, &mut |key| {
                let part = &key[prefix.len()..];
                if part != "zarr.json"
                    && let Some(entry) = store.container().entry(key)?
                {
                    entries.push(CopiedEntry {
                        key: key.to_owned(),
                        target: format!("{target}/{part}"),
                        entry,
                    });
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Copies entries, and returns the number of bytes.
    fn copy_entries(&mut self, store: &Store, batch: &[CopiedEntry]) -> Result<u64> {
        let container = store.container();
        let parts: Vec<EntryRange> = batch
            .iter()
            .map(|copied| EntryRange {
                entry: copied.entry.clone(),
                offset: 0,
                len: copied.entry.len(),
            })
            .collect();
        let bytes = parts.iter().map(|part| part.len).sum();
        let mut ahead = ReadAhead::default();
        if container.is_remote() {
            limits::check_memory("entries of the store", bytes)?;
            ahead = container.read_ahead(&parts, GAP_BYTES)?;
        }
        for copied in batch {
            let CopiedEntry { key, target, entry } = copied;
            self.container.put_copy(target, container, key, entry)?;
            self.keys.insert(target.clone());
        }
        drop(ahead);
        Ok(bytes)
    }
}

/// The new path of the node `name`, which is one of the copied nodes or below one.
fn target_of(targets: &HashMap<&str, &str>, name: &str) -> Option<String> {
    let ends = name.rmatch_indices('/').map(|(end, _)| end);
    for end in [name.len()].into_iter().chain(ends).chain([0]) {
        if let Some(target) = targets.get(&name[..end]) {
            let below = name[end..].trim_start_matches('/');
            return Some(match (target.is_empty(), below.is_empty()) {
                (true, _) => below.to_owned(),
                (false, true) => (*target).to_owned(),
                (false, false) => format!("{target}/{below}"),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::array::{ArrayData, ArraySpec};
    use crate::container::CreateOptions;
    use crate::dtype::DataType;
    use crate::error::ErrorKind;

    fn store(path: &Path) -> Store {
        let mut writer = StoreWriter::create(path, &CreateOptions::default()).unwrap();
        let values: Vec<u8> = (0..1 << 16).map(|n| (n % 251) as u8).collect();
        let mut spec = ArraySpec::new(DataType::UInt8, &[values.len() as u64]);
        spec.chunk_shape = Some(vec![1 << 13]);
        spec.shard_shape = Some(vec![1 << 14]);
        let mut attributes = crate::metadata::Attributes::new();
        attributes.insert("time".into(), json!(0.5));
        writer.group("/run/step", attributes).unwrap();
        for name in ["run/step/a", "run/step/b", "run/stepwise"] {
            writer
                .write_array(name, &spec, ArrayData::Fixed(&values))
                .unwrap();
        }
        writer.commit().unwrap();
        Store::open(path).unwrap()
    }

    fn copy(from: &Store, to: &Path, nodes: &[(&str, &str)]) -> Result<Store> {
        let mut writer = StoreWriter::create(to, &CreateOptions::default())?;
        let nodes: Vec<_> = nodes
            .iter()
            .map(|(from, to)| CopiedNode { from, to })
            .collect();
        let mut last = (0, 0);
        writer.copy_nodes(from, &nodes, &mut |done, total| {
            last = (done, total);
            Ok(())
        })?;
        assert_eq!(last.0, last.1);
        writer.commit()?;
        Store::open(to)
    }

    #[test]
    fn nodes_are_copied_verbatim() {
        let folder = tempfile::tempdir().unwrap();
        let source = store(&folder.path().join("a.ambar"));
        let target = folder.path().join("b.ambar");
        let made = copy(&source, &target, &[("/run/step", "/x/y")]).unwrap();
        let names: Vec<String> = made
            .nodes()
            .unwrap()
            .into_iter()
            .map(|node| node.0)
            .collect();
        assert_eq!(names, ["/x", "/x/y", "/x/y/a", "/x/y/b"]);
        assert_eq!(made.group("/x/y").unwrap().attributes()["time"], json!(0.5));
        for (from, to) in [("run/step/a", "x/y/a"), ("run/step/b", "x/y/b")] {
            assert_eq!(source.document(from).unwrap(), made.document(to).unwrap());
            for part in ["c/0", "c/3"] {
                let keys = (format!("{from}/{part}"), format!("{to}/{part}"));
                let old = source.container().entry(&keys.0).unwrap().unwrap();
                let new = made.container().entry(&keys.1).unwrap().unwrap();
                assert_eq!((old.len(), old.crc32()), (new.len(), new.crc32()));
                assert!(new.seal().is_some() && old.seal() == new.seal());
            }
        }
        assert!(made.verify(&|_, _| true).unwrap().damage.is_empty());
        // All of a store, into a group and to the root.
        let whole = copy(&source, &folder.path().join("c.ambar"), &[("/", "/")]).unwrap();
        assert!(source.differences(&whole).unwrap().is_empty());
        let moved = copy(&source, &folder.path().join("d.ambar"), &[("/", "/in")]).unwrap();
        assert!(moved.array("/in/run/stepwise").is_ok());
        let up = copy(
            &source,
            &folder.path().join("e.ambar"),
            &[("/run/step", "/")],
        )
        .unwrap();
        assert_eq!(up.group("/").unwrap().attributes()["time"], json!(0.5));
        assert!(up.array("/b").is_ok());
    }

    #[test]
    fn damage_and_conflicts_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ambar");
        let source = store(&path);
        let target = folder.path().join("b.ambar");
        let error = copy(&source, &target, &[("/run/none", "/x")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let entry = source.container().entry("run/step/b/c/1").unwrap().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[entry.file_offset().unwrap() as usize + 5] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let damaged = Store::open(&path).unwrap();
        let error = copy(&damaged, &target, &[("/run/step", "/x")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("run/step/b/c/1"), "{error}");
        assert!(!target.exists());
        let mut writer = StoreWriter::create(&target, &CreateOptions::default()).unwrap();
        let node = CopiedNode {
            from: "/run/step/a",
            to: "/a",
        };
        writer
            .copy_nodes(&damaged, &[node], &mut |_, _| Ok(()))
            .unwrap();
        let error = writer
            .copy_nodes(&damaged, &[node], &mut |_, _| Ok(()))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        // Nothing was written, so the writer is still usable.
        writer.commit().unwrap();
    }
}
