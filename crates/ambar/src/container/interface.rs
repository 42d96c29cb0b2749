//! The traits of containers, [`Container`] and [`ContainerWriter`], and the types that both use.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use crate::error::{Error, Result};

/// One commit of a container, to be read from any number of threads without a lock.
///
/// What a writer does meanwhile is not seen: open again to see a later commit.
pub trait Container: Send + Sync + fmt::Debug {
    /// The path that the container was opened with, for messages.
    fn location(&self) -> &str;

    /// The entry of `key`, found in O(1); `None` where there is none.
    ///
    /// # Errors
    /// `Corrupt` where the container contradicts itself about it; `Io`.
    fn entry(&self, key: &str) -> Result<Option<Entry>>;

    /// Fills `out` with the entry's bytes from `offset` on. No checksum is verified: any caller that reads
    /// a part must know how to check it.
    ///
    /// # Errors
    /// `Corrupt` where the range passes the entry's end, or the file has become shorter; `Busy`
    /// where a later commit has replaced the entry (in a directory only); `Io`.
    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Reads `parts` with as few calls or requests as makes sense, and keeps their bytes for
    /// `read_at` and `read_whole` until the result is dropped. Parts are read together across gaps of
    /// at most `gap` bytes, unless the container limits gaps to fewer. It is a hint: what is not kept is
    /// read when it is asked for. The caller sees to it that the parts fit in memory.
    ///
    /// # Errors
    /// As `read_at`.
    fn read_ahead(&self, _parts: &[EntryRange], _gap: u64) -> Result<Ahead> {
        Ok(Ahead::default())
    }

    /// Whether each read takes a request to another machine, so that reading ahead pays.
    fn is_remote(&self) -> bool {
        false
    }

    /// All bytes of `key`, verified against their CRC-32 where the container has one; `None` where
    /// there is no such key.
    ///
    /// # Errors
    /// `Limit` where it is longer than `limit` bytes; `Corrupt` where the checksum differs; else as
    /// `read_at`.
    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Reads all of `key` and verifies all that the container knows about it: its CRC-32, and in a
    /// ZIP the local header. `progress` is called with the number of bytes after each piece read.
    ///
    /// # Errors
    /// `NotFound` where the key does not exist; `Corrupt` where something differs; `Io`.
    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()>;

    /// Verifies the container's own records that reading does not need: in a ZIP that ambar made the
    /// second commit slot and the end records that other ZIP readers go by.
    ///
    /// # Errors
    /// `Corrupt` where one is damaged; `Io`.
    fn verify_records(&self) -> Result<()>;

    /// All keys, sorted.
    ///
    /// # Errors
    /// `Io`, in directories that another program made.
    fn keys(&self) -> Result<Vec<String>>;

    /// The number of entries, where it is known without asking the file system or a server.
    fn entry_count(&self) -> Option<u64> {
        None
    }

    /// What the container takes on disk.
    ///
    /// # Errors
    /// `Io`.
    fn usage(&self) -> Result<Usage>;

    /// Which commit this is; `None` where another program made the container.
    fn commit_id(&self) -> Option<CommitId> {
        None
    }
}

/// A writer, the only one of its container. Dropped without a commit, it leaves the last commit.
///
/// After any error but `Invalid` the writer is poisoned: every further call fails. A forked child must not
/// use the writer: every call fails, and dropping it changes nothing.
pub trait ContainerWriter: Send + fmt::Debug {
    /// Fails where every other call would: after an error, and in a forked child of the process that
    /// opened the writer.
    ///
    /// # Errors
    /// `Io` after an error; `Invalid` in a forked child.
    fn check(&self) -> Result<()>;

    /// Writes the bytes of `parts`, one after the other, as the entry `key`, to be visible (in the
    /// place of any older one) from the next commit on. Whenever it is put, the root's `zarr.json`
    /// is written last, so that opening reads it together with the list of entries.
    ///
    /// # Errors
    /// `Invalid` where `key` is not valid (see [`validate_key`]); `Io`, which poisons.
    fn put(&mut self, key: &str, parts: &[&[u8]]) -> Result<()> {
        self.put_sealed(key, parts, None)
    }

    /// As `put`, with the seal that [`Entry::seal`] returns from then on.
    ///
    /// # Errors
    /// As `put`.
    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()>;

    /// All bytes of what a commit now would have under `key`, verified against their CRC-32; `None`
    /// where that is nothing. The root's `zarr.json` is not read back.
    ///
    /// # Errors
    /// `Limit` where it is longer than `limit` bytes; `Corrupt` where the checksum differs; `Io`.
    /// The last two poison.
    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Removes `key` with the next commit. It is no error if there is none.
    ///
    /// # Errors
    /// `Invalid` where `key` is not valid.
    fn remove(&mut self, key: &str) -> Result<()>;

    /// Makes everything put and removed so far visible, all of it or, after a crash, nothing.
    /// When it returns, the commit is on the disk (with [`Durability::Full`]).
    ///
    /// # Errors
    /// `Exists` where a file with a new container's name appeared meanwhile; `Io`, which poisons. After an
    /// error the last commit, or this one, is what readers find.
    fn commit(&mut self) -> Result<()>;

    /// What other processes need to write into the container, too, from its `end` on. Until their
    /// entries are adopted nothing may be put.
    ///
    /// # Errors
    /// `Unsupported` in a directory; `Io`.
    fn share(&mut self) -> Result<Share> {
        let message = "many processes write into a single file; choose a path that is no directory";
        Err(Error::unsupported(message))
    }

    /// Takes entries that others have written over, to be visible from the next commit on.
    ///
    /// # Errors
    /// `Invalid` for a key that is not valid; `Unsupported` in a directory; `Io`.
    fn adopt(&mut self, _entries: Vec<SharedEntry>) -> Result<()> {
        Err(Error::unsupported("a directory adopts no entries"))
    }

    /// The last commit, to be read.
    ///
    /// # Errors
    /// `Invalid` where nothing has been committed yet; else as [`open`].
    fn reader(&self) -> Result<Arc<dyn Container>>;
}

/// Where an entry's bytes lie. Valid for the container that gave it; cheap, holds nothing open.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) len: u64,
    pub(super) crc32: Option<u32>,
    pub(super) seal: Option<u32>,
    pub(super) place: EntryLocation,
}

/// An entry to be written.
#[derive(Debug)]
pub struct NewEntry<'a> {
    /// Its key.
    pub key: String,
    /// Its bytes, in consecutive parts.
    pub parts: Vec<Cow<'a, [u8]>>,
    /// What [`Entry::seal`] is to return.
    pub seal: Option<u32>,
}

/// Where the bytes of an entry are.
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
    /// defined it (for arrays: section 2.3 of the format); `None` where the writer gave none. The
    /// container's own checksum protects it, so it ties that part to this key and this commit.
    pub fn seal(&self) -> Option<u32> {
        self.seal
    }

    /// Where its first byte is in the container's single file; `None` in a directory.
    pub fn file_offset(&self) -> Option<u64> {
        match self.place {
            EntryLocation::Offset(offset) => Some(offset),
            EntryLocation::Key(_) => None,
        }
    }

    /// Checks that `len` bytes from `offset` on are in the entry.
    pub(super) fn check_range(&self, offset: u64, len: usize) -> Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Error::corrupt(format!(
                "{len} bytes from {offset} on are asked of an entry of {}; restore the file from a \
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
    /// Where the part begins in it.
    pub offset: u64,
    /// The part's length in bytes.
    pub len: u64,
}

/// What a container takes on disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Everything.
    pub total: u64,
    /// What the commit needs: its entries and the container's own records.
    pub live: u64,
    /// The rest: replaced and removed entries, and what killed writers left behind.
    pub dead: u64,
    /// The number of entries.
    pub entries: u64,
    /// The number of the commit, counted from 1; 0 where another program made the container.
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

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The disk: a commit survives the loss of power.
    #[default]
    Full,
    /// Nothing: a commit survives the end of the process, not the loss of power. For scratch files.
    None,
}

/// How to create a container.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// What a commit waits for.
    pub durability: Durability,
    /// Whether a store of that name may be replaced, at the first commit.
    pub overwrite: bool,
    /// Whether to make a directory rather than a ZIP file.
    pub directory: bool,
}

/// What [`repair`](super::repair) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The number of the commit that the container now opens with.
    pub commit: u64,
    /// The bytes cut off behind it.
    pub cut: u64,
    /// What else was done, for people. Empty where the container was sound.
    pub notes: Vec<String>,
}

/// What [`compact`](super::compact) did: the bytes on disk before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

/// What another process needs to know to write into a container that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The file, under the name that it has now.
    pub(super) file: PathBuf,
    /// The name that it has, or will have after the first commit, for messages.
    pub(super) path: PathBuf,
    /// The file's inode number, which tells it from another file of the same name.
    pub(super) inode: u64,
    /// The first byte that is free.
    pub(crate) end: u64,
    /// Whether what is written waits for the disk.
    pub(super) durable: bool,
}

/// An entry that was written into a shared file, to be adopted by the next commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedEntry {
    /// Its key.
    pub key: String,
    /// The offset of its local header.
    pub header_offset: u64,
    /// The offset of its first byte.
    pub data_offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// CRC-32 of its bytes.
    pub crc32: u32,
    /// Its seal.
    pub seal: Option<u32>,
}
