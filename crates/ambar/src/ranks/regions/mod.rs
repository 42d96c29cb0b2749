//! Arrays that any processes write in regions, for one commit.
//!
//! Unlike ranks, the processes do not know of each other, and their number is open. The coordinator begins a [`SharedCommit`] and
//! passes its invitation to tasks. Each task writes whole shards with a [`RegionWriter`], and returns a receipt: the entries that it has
//! written. The coordinator adopts the entries of the receipts. A task can run twice: each run writes its own bytes, and the
//! last receipt of a shard is valid. `docs/decisions/0045-writers-of-regions.md` gives the reasons.

mod commit_place;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use self::commit_place::CommitPlace;
use super::message;
use crate::array::{EntryGrid, Region, ShardEncoder};
use crate::container::{EntryPutter, SharedEntry, SharedLocation};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::metadata::ArrayMetadata;
use crate::parallel;
use crate::process::Process;
use crate::store::{StoreWriter, name_of};

/// The invitation to write regions.
#[derive(Debug, Serialize, Deserialize)]
struct Invitation {
    /// The version of the library.
    version: String,
    place: CommitPlace,
    /// The names and documents of the arrays.
    arrays: Vec<(String, String)>,
}

/// The entries that a task has written.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    /// The identity of the commit.
    commit: String,
    /// The entries, and the numbers of their arrays in the invitation.
    entries: Vec<(usize, SharedEntry)>,
}

/// An array that tasks write.
#[derive(Debug)]
struct SharedArray {
    name: String,
    metadata: ArrayMetadata,
    shards: EntryGrid,
}

impl SharedArray {
    fn parse(name: &str, document: &str) -> Result<Self> {
        let metadata = ArrayMetadata::parse(document, &Limits::default())?;
        let dtype = &metadata.dtype;
        if dtype.size().is_none() {
            let message = format!(
                "values of {dtype} have no fixed size, so tasks cannot write them; write them in the coordinator"
            );
            return Err(Error::unsupported(message).at_node(name));
        }
        Ok(Self {
            name: name.to_owned(),
            shards: EntryGrid::of(&metadata),
            metadata,
        })
    }

    /// Checks that a region consists of whole shards.
    fn check(&self, region: &Region) -> Result<()> {
        if !region.is_inside(&self.metadata.shape) {
            return Err(Error::invalid(format!(
                "the region of {:?} at {:?} is outside of the array of {:?}; expected a start and a length for each \
                 dimension",
                region.shape, region.start, self.metadata.shape
            )));
        }
        let lengths = self.shards.lengths();
        let is_end = |at: u64, d: usize| {
            at.is_multiple_of(lengths[d].max(1)) || at == self.metadata.shape[d]
        };
        let is_whole = (0..lengths.len())
            .all(|d| is_end(region.start[d], d) && is_end(region.start[d] + region.shape[d], d));
        if is_whole {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the region of {:?} at {:?} has parts of chunks; regions begin and end at multiples of {lengths:?}, or at \
             the end of the array; create the array with chunks of the regions, or write other regions",
            region.shape, region.start
        )))
    }

    /// The coordinates of the shard of a key.
    fn coordinates(&self, key: &str) -> Option<Vec<u64>> {
        let lengths = self.shards.lengths().iter();
        let counts: Vec<u64> = (self.metadata.shape.iter().zip(lengths))
            .map(|(all, length)| all.div_ceil((*length).max(1)))
            .collect();
        self.metadata.keys.coordinates(&self.name, key, &counts)
    }
}

/// A region of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayRegion {
    /// The path of the array.
    pub path: String,
    /// The region.
    pub region: Region,
}

/// An entry of a receipt.
struct ReceivedEntry {
    /// The number of its array.
    array: usize,
    /// The coordinates of its shard.
    coordinates: Vec<u64>,
    entry: SharedEntry,
}

/// A commit whose arrays tasks write. Dropping it ends it: tasks cannot write any more.
#[derive(Debug)]
pub struct SharedCommit {
    place: CommitPlace,
    arrays: Vec<SharedArray>,
    invitation: Vec<u8>,
    /// A forked child must not end the commit.
    process: Process,
    has_ended: bool,
}

impl SharedCommit {
    /// Begins a commit with tasks that write the arrays at `paths`. Their codecs are final. Until the tasks' entries are
    /// adopted, `store` must write nothing.
    ///
    /// # Errors
    /// `NotFound` if an array does not exist; `Unsupported` for values without a fixed size and for directories; `Io`.
    pub fn begin(store: &mut StoreWriter, paths: &[&str], alignment: u64) -> Result<Self> {
        let arrays = paths.iter().map(|path| {
            let name = name_of(path);
            Ok((name.to_owned(), store.final_document(name)?))
        });
        let documents: Vec<(String, String)> = arrays.collect::<Result<_>>()?;
        let arrays = documents
            .iter()
            .map(|(name, document)| SharedArray::parse(name, document))
            .collect::<Result<_>>()?;
        let names: Vec<&str> = documents.iter().map(|(name, _)| &**name).collect();
        let place = CommitPlace::begin(store, &names, alignment)?;
        let invitation = message::encode(&Invitation {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            place: place.clone(),
            arrays: documents,
        })?;
        Ok(Self {
            place,
            arrays,
            invitation,
            process: Process::current(),
            has_ended: false,
        })
    }

    /// The invitation for tasks.
    pub fn invitation(&self) -> &[u8] {
        &self.invitation
    }

    /// The parts of `expected`, whole shards, that no receipt has.
    ///
    /// # Errors
    /// `Invalid` if a receipt is not one of this commit; `NotFound` for an array that tasks do not write.
    pub fn missing(
        &self,
        receipts: &[&[u8]],
        expected: &[ArrayRegion],
    ) -> Result<Vec<ArrayRegion>> {
        let entries = self.entries(receipts)?;
        let written: HashSet<(usize, Vec<u64>)> = entries
            .into_values()
            .map(|received| (received.array, received.coordinates))
            .collect();
        let mut missing = Vec::new();
        for ArrayRegion { path, region } in expected {
            let (number, array) = find(&self.arrays, path)?;
            array.check(region).map_err(|error| error.at_node(path))?;
            array.shards.try_for_each(region, |shard| {
                if !written.contains(&(number, shard.to_vec())) {
                    missing.push(ArrayRegion {
                        path: path.clone(),
                        region: array.shards.region(shard),
                    });
                }
                Ok(())
            })?;
        }
        Ok(missing)
    }

    /// Ends the tasks, and adopts the entries of their receipts: the last one of each shard. The next commit of `store`
    /// makes them visible.
    ///
    /// # Errors
    /// As `missing`; `Io`.
    pub fn adopt(&mut self, store: &mut StoreWriter, receipts: &[&[u8]]) -> Result<()> {
        let entries = self.entries(receipts)?;
        let entries = entries.into_values().map(|received| received.entry);
        let entries: Vec<SharedEntry> = entries.collect();
        check_disjoint(&entries)?;
        // Other tasks may still write into the bytes that they have claimed.
        let end = self.place.end()?;
        self.has_ended = true;
        store.adopt(entries, end)
    }

    /// The last entry of each key of the receipts.
    fn entries(&self, receipts: &[&[u8]]) -> Result<HashMap<String, ReceivedEntry>> {
        let mut entries = HashMap::new();
        for (position, bytes) in receipts.iter().enumerate() {
            let receipt: Receipt = message::decode(bytes, "receipt of a task")
                .map_err(|error| error.at_node(format!("receipt {position}")))?;
            if receipt.commit != self.place.id() {
                let message = format!(
                    "receipt {position} is of another commit; give the receipts of tasks with this invitation"
                );
                return Err(Error::invalid(message));
            }
            for (number, entry) in receipt.entries {
                let array = self.arrays.get(number);
                let coordinates = array.and_then(|array| array.coordinates(&entry.key));
                let coordinates = coordinates.ok_or_else(|| {
                    Error::invalid(format!(
                        "receipt {position} has an entry {:?} of no array; pass receipts unchanged",
                        entry.key
                    ))
                })?;
                let received = ReceivedEntry {
                    array: number,
                    coordinates,
                    entry,
                };
                entries.insert(received.entry.key.clone(), received);
            }
        }
        Ok(entries)
    }
}

impl Drop for SharedCommit {
    fn drop(&mut self) {
        if self.process.is_current() && !self.has_ended {
            // Errors cannot be reported; the next writer ends the claims, too.
            let _ = self.place.end();
        }
    }
}

/// Checks that no two entries have bytes of the file in common.
fn check_disjoint(entries: &[SharedEntry]) -> Result<()> {
    let places = entries.iter().filter_map(|entry| match entry.location {
        SharedLocation::File { header, data } => {
            Some((header, data.saturating_add(entry.len), &entry.key))
        }
        SharedLocation::Object { .. } => None,
    });
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((_, end, first), (start, _, second)) = (&pair[0], &pair[1]);
        if start < end {
            let message = format!(
                "expected tasks to write different bytes of the file, found {first:?} and {second:?} at the same \
                 place; nothing is committed; check that the file system of the store creates symbolic links atomically"
            );
            return Err(Error::corrupt(message));
        }
    }
    Ok(())
}

/// The array at `path`, and its number.
fn find<'a>(arrays: &'a [SharedArray], path: &str) -> Result<(usize, &'a SharedArray)> {
    let name = name_of(path);
    let mut numbered = arrays.iter().enumerate();
    numbered
        .find(|(_, array)| array.name == name)
        .ok_or_else(|| {
            let known: Vec<&String> = arrays.iter().map(|array| &array.name).collect();
            Error::unknown("array", name, &known)
        })
}

/// The writer of one task.
pub struct RegionWriter {
    arrays: Vec<SharedArray>,
    /// The identity of the commit.
    commit: String,
    output: Box<dyn EntryPutter>,
    threads: Option<usize>,
    /// The numbers of the arrays of the keys that were written.
    owners: HashMap<String, usize>,
    entries: HashMap<String, SharedEntry>,
}

impl RegionWriter {
    /// Joins a commit with its invitation. `threads` encode; all cores by default.
    ///
    /// # Errors
    /// `Invalid` if the bytes are not an invitation, the commit has ended, or another version of the library wrote them;
    /// `NotFound` if the file does not exist on this machine; `Io`.
    pub fn join(invitation: &[u8], threads: Option<usize>) -> Result<Self> {
        let invitation: Invitation = message::decode(invitation, "invitation to write")?;
        let ours = env!("CARGO_PKG_VERSION");
        if invitation.version != ours {
            let message = format!(
                "the coordinator has version {} of ambar, this task has {ours}; use one version",
                invitation.version
            );
            return Err(Error::invalid(message));
        }
        let arrays = invitation.arrays.iter();
        let arrays = arrays.map(|(name, document)| SharedArray::parse(name, document));
        Ok(Self {
            arrays: arrays.collect::<Result<_>>()?,
            commit: invitation.place.id().to_owned(),
            output: invitation.place.join()?,
            threads,
            owners: HashMap::new(),
            entries: HashMap::new(),
        })
    }

    /// The data type of an array.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn dtype_of(&self, path: &str) -> Result<&DataType> {
        let (_, array) = find(&self.arrays, path)?;
        Ok(&array.metadata.dtype)
    }

    /// Writes a region of whole shards; `values` in C order, native byte order. Values that are written again replace
    /// those before.
    ///
    /// # Errors
    /// `NotFound` if tasks do not write this array; `Invalid` if data and region do not fit, the region has parts of shards,
    /// or the commit has ended; `Io`.
    pub fn write(&mut self, path: &str, region: &Region, values: &[u8]) -> Result<()> {
        let written = self.write_here(path, region, values);
        written.map_err(|error| error.at_node(name_of(path)).in_file(self.output.location()))
    }

    fn write_here(&mut self, path: &str, region: &Region, values: &[u8]) -> Result<()> {
        let (number, array) = find(&self.arrays, path)?;
        array.check(region)?;
        self.output.check()?;
        let encoder =
            ShardEncoder::new(&array.name, &array.metadata, None, region.clone(), values)?;
        let mut shards = Vec::new();
        array.shards.try_for_each(region, |shard| {
            shards.push(shard.to_vec());
            Ok(())
        })?;
        for (done, shard) in shards.iter().enumerate() {
            let encode = || encoder.encode(shard);
            // Pools are shared: tasks in threads of one process would wait for each other.
            let entry = match self.threads {
                Some(1) => parallel::on_this_thread(encode),
                threads => parallel::with_threads(threads, encode),
            }?;
            self.owners.insert(entry.key.clone(), number);
            // Later shards should be adjacent. At most as much space is allocated as was used already.
            let more = done.min(shards.len() - 1 - done) as u64;
            self.output.put(entry, more)?;
        }
        Ok(())
    }

    /// Makes the values durable that were written so far, and returns the receipt for the coordinator.
    ///
    /// # Errors
    /// `Invalid` if the commit has ended; `Io`.
    pub fn receipt(&mut self) -> Result<Vec<u8>> {
        let written = self.output.finish()?;
        self.output.check()?;
        let written = written.into_iter().map(|entry| (entry.key.clone(), entry));
        self.entries.extend(written);
        let owned = |entry: &SharedEntry| Some((*self.owners.get(&entry.key)?, entry.clone()));
        let mut entries: Vec<_> = self.entries.values().filter_map(owned).collect();
        entries.sort_unstable_by(|(_, a), (_, b)| a.key.cmp(&b.key));
        message::encode(&Receipt {
            commit: self.commit.clone(),
            entries,
        })
    }
}

impl std::fmt::Debug for RegionWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "RegionWriter({}, {} arrays)",
            self.output.location(),
            self.arrays.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{ArraySpec, Slice};
    use crate::container::{CreateOptions, Durability, NewEntry, SharedFile};
    use crate::error::ErrorKind;
    use crate::store::Store;

    fn rows(start: u64, count: u64) -> Region {
        Region {
            start: vec![start],
            shape: vec![count],
        }
    }

    fn values(start: u64, count: u64, factor: f64) -> Vec<u8> {
        let values = (start..start + count).map(|at| at as f64 * factor);
        values.flat_map(f64::to_ne_bytes).collect()
    }

    #[test]
    fn the_last_receipt_of_a_shard_is_valid_and_claimed_bytes_stay_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut store = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let mut spec = ArraySpec::new(DataType::Float64, &[250]);
        spec.chunk_shape = Some(vec![100]);
        spec.shard_shape = Some(vec![100]);
        store.declare("x", &spec).unwrap();
        let mut shared = SharedCommit::begin(&mut store, &["x"], 4096).unwrap();
        let join =
            |shared: &SharedCommit| RegionWriter::join(shared.invitation(), Some(1)).unwrap();
        let receipt = |start: u64, count: u64, factor: f64| {
            let mut writer = join(&shared);
            let region = rows(start, count);
            writer
                .write("/x", &region, &values(start, count, factor))
                .unwrap();
            writer.receipt().unwrap()
        };
        let (lost, first, again) = (
            receipt(0, 100, 1.0),
            receipt(0, 100, 2.0),
            receipt(0, 100, 3.0),
        );
        let second = receipt(200, 50, 3.0);
        drop(lost);

        let mut writer = join(&shared);
        for (region, count) in [
            (rows(0, 50), 50),
            (rows(50, 100), 100),
            (rows(200, 100), 100),
        ] {
            let error = writer
                .write("x", &region, &values(0, count, 1.0))
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
        assert!(writer.write("y", &rows(0, 100), &[]).is_err());

        let expected = [ArrayRegion {
            path: "x".into(),
            region: rows(0, 250),
        }];
        let given = [&first[..], &again, &second];
        let missing = shared.missing(&given, &expected).unwrap();
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].region, rows(100, 100));
        let third = receipt(100, 100, 3.0);
        let given = [&first[..], &again, &second, &third];
        assert!(shared.missing(&given, &expected).unwrap().is_empty());

        shared.adopt(&mut store, &given).unwrap();
        let late = writer.write("x", &rows(0, 100), &values(0, 100, 9.0));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Invalid);
        assert!(RegionWriter::join(shared.invitation(), None).is_err());
        store.commit().unwrap();
        drop((shared, store));
        let opened = Store::open(&path).unwrap();
        assert!(opened.verify(&|_, _| true).unwrap().damage.is_empty());
        let mut out = vec![0; 250 * 8];
        opened
            .array("x")
            .unwrap()
            .read(&[Slice::all(250)], &mut out)
            .unwrap();
        assert_eq!(out, values(0, 250, 3.0));
        assert!(opened.usage().unwrap().dead > 0);
        let files = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(files.count(), 1);

        // A coordinator that was killed has left its claims.
        let mut store = StoreWriter::append(&path, Durability::Full).unwrap();
        let shared = SharedCommit::begin(&mut store, &["x"], 1).unwrap();
        let mut zombie = join(&shared);
        std::mem::forget(shared);
        drop(store);
        drop(StoreWriter::append(&path, Durability::Full).unwrap());
        let late = zombie.write("x", &rows(0, 100), &values(0, 100, 9.0));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn slow_tasks_of_commits_that_did_not_succeed_damage_no_later_commit() {
        for (overwrite, is_killed) in [(false, false), (false, true), (true, false), (true, true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.ambar");
            let begin = |overwrite| {
                let options = CreateOptions {
                    overwrite: true,
                    ..CreateOptions::default()
                };
                let mut store = match overwrite {
                    true => StoreWriter::create(&path, &options).unwrap(),
                    false => StoreWriter::append(&path, Durability::None).unwrap(),
                };
                let mut spec = ArraySpec::new(DataType::Float64, &[250]);
                spec.chunk_shape = Some(vec![100]);
                store.declare("x", &spec).unwrap();
                store
            };
            begin(true).commit().unwrap();

            let mut store = begin(overwrite);
            let shared = SharedCommit::begin(&mut store, &["x"], 1).unwrap();
            let invitation: Invitation = message::decode(shared.invitation(), "").unwrap();
            let CommitPlace::File {
                share, mut claims, ..
            } = invitation.place
            else {
                panic!("expected a file");
            };
            let mut slow = SharedFile::open(&share).unwrap();
            claims.reserve(10_000).unwrap();
            match is_killed {
                true => std::mem::forget(shared),
                false => drop(shared),
            }
            drop(store);
            let end = claims.end().unwrap();
            begin(overwrite).commit().unwrap();
            let entry = NewEntry {
                key: "x/c/0".into(),
                parts: vec![vec![0xff; 9_000].into()],
                seal: None,
            };
            slow.write(end - 10_000, entry).unwrap();
            slow.finish().unwrap();
            let opened = Store::open(&path).unwrap();
            assert!(opened.verify(&|_, _| true).unwrap().damage.is_empty());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
