//! The traits of containers, [`Container`] and [`ContainerWriter`], and the types that both use.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::read_ahead::ReadAhead;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// One commit of a container. Any number of threads can read it without a lock.
///
/// Later commits are not visible: open the container again to see them.
pub trait Container: Send + Sync + fmt::Debug {
    /// The path that the container was opened with, for messages.
    fn location(&self) -> &str;

    /// Finds the entry of `key`; `None` if it does not exist, and for the root's document of a commit that was read from
    /// its record: `read_whole` returns that.
    ///
    /// # Errors
    /// `Corrupt` if the container's records of the entry are inconsistent; `Io`.
    fn entry(&self, key: &str) -> Result<Option<Entry>>;

    /// Fills `out` with the entry's bytes from `offset` on. No checksum is verified: the caller must verify
    /// the bytes.
    ///
    /// # Errors
    /// `Corrupt` if the range exceeds the entry, or the file has become shorter; `Busy`
    /// if a later commit has replaced the entry (only in a directory); `Io`.
    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Reads `parts` with few calls or requests, and caches their bytes for `read_at` and `read_whole` until
    /// the result is dropped. Parts are read together across gaps of at most `gap` bytes, or fewer if the
    /// container has a smaller limit. This is a hint: uncached parts are read on demand. The caller ensures
    /// that the parts fit in memory.
    ///
    /// # Errors
    /// As `read_at`.
    fn read_ahead(&self, _parts: &[EntryRange], _gap: u64) -> Result<ReadAhead> {
        Ok(ReadAhead::default())
    }

    /// Whether each read is a request to another machine, so that reading ahead is faster.
    fn is_remote(&self) -> bool {
        false
    }

    /// Reads all bytes of `key` and verifies their CRC-32 if the container has one; `None` if the key does
    /// not exist.
    ///
    /// # Errors
    /// `Limit` if it is longer than `limit` bytes; `Corrupt` if the checksum differs; else as
    /// `read_at`.
    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Reads all of `key` and verifies its CRC-32, and in a ZIP its local header. `progress` is called with the
    /// number of bytes of each piece read.
    ///
    /// # Errors
    /// `NotFound` if the key does not exist; `Corrupt` if anything differs; `Io`.
    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()>;

    /// Verifies the container's records that this library does not need for reading: in a ZIP that ambar
    /// wrote, the second commit slot and the end records that other ZIP readers use.
    ///
    /// Returns the bytes of an unfinished write after the last commit, which a killed writer left; 0 while a writer
    /// is at work.
    ///
    /// # Errors
    /// `Corrupt` if one is damaged; `Io`.
    fn verify_records(&self) -> Result<u64>;

    /// All keys, sorted.
    ///
    /// # Errors
    /// `Io`, in directories that another program wrote.
    fn keys(&self) -> Result<Vec<String>>;

    /// Calls `consume` with each key that begins with `prefix`, sorted. Its first error is returned. Unlike those of
    /// `keys`, the keys of a hostile file can be invalid.
    ///
    /// # Errors
    /// As `keys`, and those of `consume`.
    fn for_each_key(
        &self,
        prefix: &str,
        consume: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let keys = self.keys()?;
        let mut found = keys.iter().filter(|key| key.starts_with(prefix));
        found.try_for_each(|key| consume(key))
    }

    /// Whether `for_each_key` finds the keys of a prefix without listing all keys.
    fn has_sorted_keys(&self) -> bool {
        false
    }

    /// The number of entries, if it is known without a call to the file system or a server.
    fn entry_count(&self) -> Option<u64> {
        None
    }

    /// The size of the container on disk.
    ///
    /// # Errors
    /// `Io`.
    fn usage(&self) -> Result<Usage>;

    /// The identity of the commit; `None` if another program wrote the container.
    fn commit_id(&self) -> Option<CommitId> {
        None
    }

    /// This commit and all commits before that the container still has, the newest first.
    ///
    /// # Errors
    /// `Unsupported` in a directory and in containers of other programs; `Corrupt`, `Limit`, `Io`.
    fn commits(&self) -> Result<Vec<CommitInfo>> {
        Err(without_history(self.location()))
    }

    /// Opens the commit of this number.
    ///
    /// # Errors
    /// `NotFound` if the container does not have it; otherwise as `commits`.
    fn at_commit(&self, _number: u64) -> Result<Arc<dyn Container>> {
        Err(without_history(self.location()))
    }
}

/// The error for earlier commits of containers that do not have them.
pub(super) fn without_history(location: &str) -> Error {
    Error::unsupported(HISTORY).in_file(location)
}

/// The message for earlier commits of containers that do not have them.
const HISTORY: &str =
    "only a store in a single file that ambar wrote keeps its earlier commits; write it as a file";

/// A commit of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The number of the commit, counted from 1.
    pub number: u64,
    /// The time of the commit in microseconds since 1970-01-01 UTC.
    pub time: i64,
    /// The message that its writer gave; can be empty.
    pub message: String,
    /// The number of entries that it wrote.
    pub written: u64,
    /// The number of entries that it removed.
    pub removed: u64,
    /// The file offset after its last byte that no later commit overwrites.
    pub end: u64,
}

/// The only writer of a container. Dropping it without a commit leaves the last commit unchanged.
///
/// After any error but `Invalid` the writer is poisoned: every further call fails. A forked child must not
/// use the writer: every call fails, and dropping it changes nothing.
pub trait ContainerWriter: Send + fmt::Debug {
    /// Returns an error if every other call would: after an error, and in a forked child of the process that
    /// opened the writer.
    ///
    /// # Errors
    /// `Io` after an error; `Invalid` in a forked child.
    fn check(&self) -> Result<()>;

    /// Writes the concatenated `parts` as the entry `key`. The next commit makes it visible and replaces an
    /// older entry of this key. The root's `zarr.json` is always written last, so that opening reads it
    /// together with the list of entries.
    ///
    /// # Errors
    /// `Invalid` if `key` is not valid (see [`validate_key`]); `Io`, which poisons.
    fn put(&mut self, key: &str, parts: &[&[u8]]) -> Result<()> {
        self.put_sealed(key, parts, None)
    }

    /// As `put`, with the seal that [`Entry::seal`] returns.
    ///
    /// # Errors
    /// As `put`.
    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()>;

    /// Copies `entry` of another container, whose key there is `from`, as the entry `key`, with its seal. Its CRC-32 is
    /// verified.
    ///
    /// # Errors
    /// `Corrupt` if the entry is damaged, which poisons; otherwise as `put`, and as `read_whole` of `source`.
    fn put_copy(
        &mut self,
        key: &str,
        source: &dyn Container,
        from: &str,
        entry: &Entry,
    ) -> Result<()> {
        let content = existing_content(source, from)?;
        self.put_sealed(key, &[&content], entry.seal)
    }

    /// Reads all bytes of `key`, committed or not, and verifies their CRC-32; `None` if the key does not
    /// exist. The root's `zarr.json` is not read back.
    ///
    /// # Errors
    /// `Limit` if it is longer than `limit` bytes; `Corrupt` if the checksum differs; `Io`.
    /// The last two poison.
    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Removes `key` with the next commit. A key that does not exist is not an error.
    ///
    /// # Errors
    /// `Invalid` if `key` is not valid.
    fn remove(&mut self, key: &str) -> Result<()>;

    /// Writes the root's `zarr.json`. `alone` is the same document without those of other nodes: readers of earlier
    /// commits get it.
    ///
    /// # Errors
    /// As `put`.
    fn put_root(&mut self, document: &[u8], _alone: &[u8]) -> Result<()> {
        self.put("zarr.json", &[document])
    }

    /// Replaces all entries by those of the commit `number`, without copying them.
    ///
    /// # Errors
    /// `NotFound` if the container does not have the commit; `Unsupported` in a directory; `Corrupt`, `Io`.
    fn restore(&mut self, _number: u64) -> Result<()> {
        Err(Error::unsupported(HISTORY))
    }

    /// Sets the message of the next commit, of at most 4096 bytes.
    ///
    /// # Errors
    /// `Invalid` if it is longer.
    fn set_message(&mut self, _message: &str) -> Result<()> {
        Ok(())
    }

    /// Makes all changes visible atomically: after a crash, all or none of them are visible.
    /// When it returns, the commit is on the disk (with [`Durability::Full`]). The commits of an upload to an object
    /// store become visible with `finish`.
    ///
    /// # Errors
    /// `Exists` if another program has created a file of the new container's name; `Io`, which poisons. After
    /// an error readers find this commit or the last one.
    fn commit(&mut self) -> Result<()>;

    /// Ends writing. An upload to an object store becomes visible with its last commit; an upload that is dropped
    /// without this call leaves nothing. Other containers need no such call.
    ///
    /// # Errors
    /// `Exists` if another program has created the object meanwhile; `Io`.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// The information that other processes need to write into the container, after its `end`. Nothing may
    /// be put until their entries are adopted.
    ///
    /// # Errors
    /// `Unsupported` in a directory; `Io`.
    fn share(&mut self) -> Result<SharedFileInfo> {
        let message = "one process writes a directory store; choose the path of a single file";
        Err(Error::unsupported(message))
    }

    /// The information that other processes need to put objects of the container, if it consists of objects; otherwise
    /// `None`. `names` are the names of the arrays whose entries they write.
    ///
    /// # Errors
    /// `Io`.
    fn share_objects(&mut self, _names: &[&str]) -> Result<Option<SharedObjectsInfo>> {
        Ok(None)
    }

    /// Adopts entries that other processes have written; the next commit makes them visible. Processes may still write
    /// into the bytes of a file before `end`.
    ///
    /// # Errors
    /// `Invalid` for a key that is not valid, or an entry of another kind of container; `Unsupported` in a directory of
    /// files; `Io`.
    fn adopt(&mut self, _entries: Vec<SharedEntry>, _end: u64) -> Result<()> {
        Err(Error::unsupported(
            "one process writes a directory store; choose the path of a single file",
        ))
    }

    /// Opens the last commit for reading.
    ///
    /// # Errors
    /// `Invalid` if nothing has been committed yet; otherwise as [`open`].
    fn reader(&self) -> Result<Arc<dyn Container>>;
}

/// The content of an entry that exists.
pub(super) fn existing_content(container: &dyn Container, key: &str) -> Result<Vec<u8>> {
    container.read_whole(key, u64::MAX)?.ok_or_else(|| {
        Error::corrupt("the entry does not exist; restore the store from a copy")
            .at_node(key)
            .in_file(container.location())
    })
}

/// The location of an entry's bytes. Valid only for its container; keeps no file open.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) len: u64,
    pub(super) crc32: Option<u32>,
    pub(super) seal: Option<u32>,
    pub(super) location: EntryLocation,
}

/// An entry to be written.
#[derive(Debug)]
pub struct NewEntry<'a> {
    /// Its key.
    pub key: String,
    /// Its bytes, in consecutive parts.
    pub parts: Vec<Cow<'a, [u8]>>,
    /// The seal that [`Entry::seal`] returns.
    pub seal: Option<u32>,
}

/// The location of an entry in its container.
#[derive(Clone, Debug)]
pub(super) enum EntryLocation {
    /// The file offset of the first byte.
    Offset(u64),
    /// The key, in a directory.
    Key(Arc<str>),
}

impl Entry {
    /// The entry's length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The CRC-32 of the part of the entry that describes its other parts, as the writer of the entry
    /// defines it (for arrays: section 2.3 of the format); `None` if the writer gave no seal. The
    /// container's checksum protects the seal, which detects entries of another key or commit.
    pub fn seal(&self) -> Option<u32> {
        self.seal
    }

    /// The CRC-32 of the entry's bytes, if the container has one.
    pub fn crc32(&self) -> Option<u32> {
        self.crc32
    }

    /// The offset of the first byte in the container's file; `None` in a directory.
    pub fn file_offset(&self) -> Option<u64> {
        match self.location {
            EntryLocation::Offset(offset) => Some(offset),
            EntryLocation::Key(_) => None,
        }
    }

    /// The key of the file or object that has the bytes.
    ///
    /// # Errors
    /// `Invalid` for an entry of a ZIP.
    pub(super) fn key(&self) -> Result<&Arc<str>> {
        match &self.location {
            EntryLocation::Key(key) => Ok(key),
            EntryLocation::Offset(_) => Err(Self::foreign()),
        }
    }

    /// The error for an entry of another container.
    pub(super) fn foreign() -> Error {
        Error::invalid("the entry belongs to another container; look it up in this one")
    }

    /// Checks that `len` bytes from `offset` on are in the entry.
    pub(super) fn check_range(&self, offset: u64, len: usize) -> Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Error::corrupt(format!(
                "a read of {len} bytes at {offset} exceeds the entry of {} bytes; restore the file from a \
                 copy",
                self.len
            ))),
        }
    }

    /// Whether the entry has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A part of an entry.
#[derive(Clone, Debug)]
pub struct EntryRange {
    /// The entry.
    pub entry: Entry,
    /// The offset in the entry.
    pub offset: u64,
    /// The part's length in bytes.
    pub len: u64,
}

/// The size of a container on disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All bytes.
    pub total: u64,
    /// Bytes of the commit: its entries and the container's records.
    pub live: u64,
    /// Other bytes: replaced and removed entries, and those of killed writers.
    pub dead: u64,
    /// The number of entries.
    pub entries: u64,
    /// The number of the commit, counted from 1; 0 if another program wrote the container.
    pub commit: u64,
}

/// Identifies a commit: two commits of the same number differ in their checksums, unless they have the
/// same entries with the same contents at the same offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitId {
    /// The number of the commit, counted from 1. `compact` and a new store begin anew.
    pub number: u64,
    /// CRC-32C of the list of entries, which has each entry's own checksum.
    pub checksum: u32,
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It does: commits survive the loss of power.
    #[default]
    Full,
    /// It does not: commits survive the end of the process, but not the loss of power. For scratch files.
    None,
}

/// How to create a container.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Whether a commit waits for the disk.
    pub durability: Durability,
    /// Whether the first commit replaces an existing store of this name.
    pub overwrite: bool,
    /// Whether to create a directory rather than a ZIP file.
    pub directory: bool,
    /// Limits for reading entries back.
    pub limits: Limits,
}

/// The result of [`repair`](super::repair).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The number of the last commit after the repair.
    pub commit: u64,
    /// The number of bytes cut off after it.
    pub cut: u64,
    /// Other changes, as messages for users. Empty if the container was intact.
    pub notes: Vec<String>,
}

/// The result of [`compact`](super::compact): bytes on disk before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

/// The information that another process needs to write into a container that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFileInfo {
    /// The current path of the file.
    pub(super) file: PathBuf,
    /// The path after the first commit, for messages.
    pub(super) path: PathBuf,
    /// The file's inode number, which identifies it.
    pub(super) inode: u64,
    /// The first free byte.
    pub(crate) end: u64,
    /// Whether writes wait for the disk.
    pub(super) durable: bool,
}

/// The information that another process needs to put objects of a container.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedObjectsInfo {
    /// The identity of the commit, which names an object that exists until the commit ends.
    pub(crate) id: String,
    /// Whether the container has no commit yet.
    pub(super) is_new: bool,
    /// The names of arrays of which the last commit has entries.
    pub(super) existing: Vec<String>,
    pub(super) url: String,
    /// The options of the service, which can have secrets.
    pub(super) storage: BTreeMap<String, String>,
}

impl fmt::Debug for SharedObjectsInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedObjectsInfo({})", self.id)
    }
}

/// An entry that another process has written, to be adopted by the next commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedEntry {
    /// Its key.
    pub key: String,
    /// Where its bytes are.
    pub location: SharedLocation,
    /// Its length in bytes.
    pub len: u64,
    /// CRC-32 of its bytes.
    pub crc32: u32,
    /// Its seal.
    pub seal: Option<u32>,
}

/// The location of an entry that another process has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedLocation {
    /// In a file.
    File {
        /// The offset of its local header.
        header: u64,
        /// The offset of its first byte.
        data: u64,
    },
    /// In an object.
    Object {
        /// The number of the put.
        number: u64,
        /// Whether the name of the object follows from the number, instead of the key.
        is_staged: bool,
    },
}

/// Puts entries of a container whose commit another process makes.
pub trait EntryPutter: Send {
    /// The path or URL of the container, for messages.
    fn location(&self) -> &str;

    /// Checks that the commit has not ended.
    ///
    /// # Errors
    /// `Invalid` if it has; `Io`.
    fn check(&self) -> Result<()>;

    /// Puts an entry; it may be written later. `following` entries of its length are expected after it.
    ///
    /// # Errors
    /// `Invalid` if the commit has ended; `Io`, of this entry or an earlier one.
    fn put(&mut self, entry: NewEntry<'_>, following: u64) -> Result<()>;

    /// Waits until all entries are stored, and returns those that were put since the last call.
    ///
    /// # Errors
    /// `Io`.
    fn finish(&mut self) -> Result<Vec<SharedEntry>>;
}
