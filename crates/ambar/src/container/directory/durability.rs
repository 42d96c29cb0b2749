//! Tests that a commit survives the loss of power on a disk that keeps only what was made durable.
//!
//! The model: a name in a folder is durable once the folder was made durable after the name was given, and
//! so is the absence of a removed name. Any other change may be lost, in any order. A renaming is lost or kept
//! as a whole as long as neither of its folders was made durable.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::faults::{Event, take_record};
use super::super::{CreateOptions, Durability};
use super::folder::Folder;
use super::list::List;
use super::{tree, writer};
use crate::limits::Limits;

/// The number of a file or folder.
type Node = usize;

/// A name in a folder that was given to a node, or removed if `node` is `None`.
#[derive(Clone, Debug)]
struct Change {
    folder: Node,
    name: String,
    node: Option<Node>,
    durable: bool,
    /// The changes of one renaming have the same number.
    renaming: usize,
}

/// The disk: all changes of names since it was empty, and the files whose content is durable.
#[derive(Default)]
struct Disk {
    changes: Vec<Change>,
    nodes: usize,
    synced: Vec<Node>,
    /// The last node that was created under each name; it may have another name now.
    made: HashMap<String, Node>,
}

const ROOT: Node = 0;

/// The names in folders.
type Names = HashMap<(Node, String), Node>;

fn find(names: &Names, path: &Path) -> Option<Node> {
    path.iter().try_fold(ROOT, |folder, segment| {
        names
            .get(&(folder, segment.to_str().unwrap().to_owned()))
            .copied()
    })
}

impl Disk {
    /// The names after the changes for which `is_kept` returns true.
    fn names(&self, is_kept: impl Fn(&Change) -> bool) -> Names {
        let mut names = Names::new();
        for change in self.changes.iter().filter(|change| is_kept(change)) {
            let key = (change.folder, change.name.clone());
            if let Some(node) = change.node {
                names.insert(key, node);
            } else {
                names.remove(&key);
            }
        }
        names
    }

    fn change(&mut self, path: &Path, node: Option<Node>, renaming: usize) {
        let folder = find(&self.names(|_| true), path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        self.changes.push(Change {
            folder,
            name,
            node,
            durable: false,
            renaming,
        });
    }

    fn apply(&mut self, event: &Event, base: &Path) {
        let below = |path: &PathBuf| path.strip_prefix(base).unwrap().to_path_buf();
        self.nodes += 1;
        let number = self.nodes;
        let now = self.names(|_| true);
        match event {
            Event::MakeFolder(path) | Event::CreateFile(path) => {
                self.change(&below(path), Some(number), number);
                let name = path.file_name().unwrap().to_str().unwrap();
                self.made.insert(name.to_owned(), number);
            }
            Event::Remove(path) => self.change(&below(path), None, number),
            Event::Rename(from, to) => {
                let node = find(&now, &below(from));
                assert!(node.is_some(), "{from:?} is not there");
                self.change(&below(to), node, number);
                self.change(&below(from), None, number);
            }
            Event::SyncFile(path) => self.synced.extend(find(&now, &below(path))),
            Event::SyncFolder(path) => {
                let folder = find(&now, &below(path)).unwrap();
                let changes = self.changes.iter_mut();
                changes
                    .filter(|change| change.folder == folder)
                    .for_each(|change| change.durable = true);
            }
            Event::SyncAll => {
                self.changes
                    .iter_mut()
                    .for_each(|change| change.durable = true);
                self.synced.extend(0..number);
            }
        }
    }

    /// The names after a loss of power; `seed` decides which changes are lost, 0 loses all that may be.
    fn crash(&self, seed: u64) -> Names {
        self.names(|change| {
            let mixed = (seed ^ (change.renaming as u64) << 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            change.durable || (seed > 0 && mixed >> 40 & 1 == 1)
        })
    }

    /// Checks that the commit `list` of the store `name` survives any loss of power.
    fn check(&self, name: &str, list: &List) {
        for seed in 0..300 {
            let names = self.crash(seed);
            let has = |path: &str, made: &str| {
                let node = find(&names, &Path::new(name).join(path));
                node == Some(self.made[made]) && self.synced.contains(&self.made[made])
            };
            let is_whole = has(tree::LIST, "commit-next");
            assert!(is_whole, "seed {seed}: the list is lost");
            for (key, record) in &list.entries {
                let waiting = tree::staged_key(record.number);
                let made = waiting.rsplit('/').next().unwrap();
                let found = has(&waiting, made) || has(key, made);
                assert!(
                    found,
                    "commit {}, seed {seed}: {key} is lost",
                    list.sequence
                );
            }
        }
    }
}

#[test]
fn a_reported_commit_survives_any_loss_of_power() {
    let folder = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(folder.path()).unwrap();
    let path = base.join("x.ambar");
    let mut disk = Disk::default();
    take_record();
    let commits: [(&[&str], &[&str]); 4] = [
        (&["a/c/0/0", "a/zarr.json", "zarr.json"], &[]),
        (&["deep/new/folder/c/1", "a/c/0/0", "zarr.json"], &[]),
        (&["a/c/0", "zarr.json"], &["a/c/0/0", "deep/new/folder/c/1"]),
        (&["deep/new/x", "zarr.json"], &["a/zarr.json"]),
    ];
    for (number, (put, removed)) in commits.iter().enumerate() {
        let mut writer = match number {
            0 => {
                let options = CreateOptions {
                    directory: true,
                    ..CreateOptions::default()
                };
                super::super::create(&path, &options).unwrap()
            }
            _ => super::super::append(&path, Durability::Full, &Limits::default()).unwrap(),
        };
        for key in *put {
            writer.put(key, &[key.as_bytes()]).unwrap();
        }
        for key in *removed {
            writer.remove(key).unwrap();
        }
        writer.commit().unwrap();
        for event in take_record() {
            disk.apply(&event, &base);
        }
        let list = writer::read_list(&Folder::open(&path).unwrap(), &Limits::default()).unwrap();
        disk.check("x.ambar", &list);
    }
}
