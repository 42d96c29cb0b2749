//! One ZIP written by many processes: each writes entries into extents of its own.
//!
//! One of them holds the container's writer, and with it the lock; the others open the same file by
//! its [`Share`]. No process sees what they write until the holder has adopted the entries and committed.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::super::{Durability, NewEntry, Share, SharedEntry, file};
use super::append::Appender;
use super::records::LocalHeader;
use crate::buffers;
use crate::error::{Error, ErrorKind, Result};
use crate::process::Process;

/// Entries that wait to be written at most, one in the making and one on its way to the file apart:
/// encoding continues while the file takes what is encoded.
const WAITING: usize = 1;

/// An entry on its way to the file.
struct Job {
    offset: u64,
    key: String,
    parts: Vec<Vec<u8>>,
    seal: Option<u32>,
}

/// The file that is written, its path, and whether to wait for the disk.
type Target = (Arc<File>, PathBuf, Durability);

/// A process' end of a shared file. What was encoded for it goes through a thread of its own.
pub struct SharedFile {
    path: PathBuf,
    file: Arc<File>,
    durability: Durability,
    /// A forked child has none of this process' threads.
    process: Process,
    /// What did not go through the thread, since the last call of `finish`.
    written: Vec<SharedEntry>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<Result<Vec<SharedEntry>>>>,
}

impl Share {
    pub(super) fn new(
        file: &File,
        name: PathBuf,
        path: PathBuf,
        end: u64,
        durability: Durability,
    ) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|source| Error::io(source, &name, "asking for the file's number"))?;
        Ok(Self {
            file: name,
            path,
            inode: metadata.ino(),
            end,
            durable: durability == Durability::Full,
        })
    }
}

/// Bytes that an entry takes in the file: its local header and content.
pub fn entry_bytes(key: &str, len: u64) -> u64 {
    header(key, len, 0).len() as u64 + len
}

fn header(key: &str, len: u64, crc32: u32) -> Vec<u8> {
    let mut header = Vec::new();
    LocalHeader {
        name: key,
        len,
        crc32,
    }
    .encode(&mut header);
    header
}

impl SharedFile {
    /// Opens the file that another process writes, too.
    ///
    /// # Errors
    /// `NotFound` where this machine does not see it; `Invalid` where another file has its name; `Io`.
    pub fn open(share: &Share) -> Result<Self> {
        let file = file::open_for_writing(&share.file)?;
        let metadata = file
            .metadata()
            .map_err(|source| Error::io(source, &share.file, "asking for the file's number"))?;
        if metadata.ino() != share.inode {
            let message = "another file has the name of the one that is being written; all ranks \
                           must see the same file system";
            return Err(Error::invalid(message).in_file(share.path.display()));
        }
        Ok(Self {
            path: share.path.clone(),
            file: Arc::new(file),
            durability: if share.durable {
                Durability::Full
            } else {
                Durability::None
            },
            process: Process::current(),
            written: Vec::new(),
            jobs: None,
            thread: None,
        })
    }

    /// The name that the file has, or will get.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Has an entry written from `offset` on, where `entry_bytes` of it must be free. Waits while
    /// others are on their way; one with parts of the caller's memory is written before it returns.
    ///
    /// # Errors
    /// `Io`, of this entry or one before; nothing more can be written then. `Invalid` in a forked child.
    pub fn write(&mut self, offset: u64, entry: NewEntry<'_>) -> Result<()> {
        self.check()?;
        let NewEntry { key, parts, seal } = entry;
        if parts.iter().any(|part| matches!(part, Cow::Borrowed(_))) {
            let slices: Vec<&[u8]> = parts.iter().map(Cow::as_ref).collect();
            let written = write_entry(&self.target(), (offset, key, seal), &slices)?;
            self.written.push(written);
            return Ok(());
        }
        let parts = parts.into_iter().map(Cow::into_owned).collect();
        let jobs = self.start()?;
        if jobs
            .send(Job {
                offset,
                key,
                parts,
                seal,
            })
            .is_ok()
        {
            return Ok(());
        }
        // The thread ends before its sender only with an error.
        self.finish().map(|_| ())
    }

    /// What was written since the last call, once all of it is in the file and, if it has to be, on
    /// the disk.
    ///
    /// # Errors
    /// `Io`; `Invalid` in a forked child.
    pub fn finish(&mut self) -> Result<Vec<SharedEntry>> {
        self.check()?;
        self.jobs = None;
        let mut written = std::mem::take(&mut self.written);
        if let Some(thread) = self.thread.take() {
            written.extend(thread.join().map_err(|_| {
                Error::new(ErrorKind::Io, "writing has panicked").in_file(self.path.display())
            })??);
        }
        if !written.is_empty() {
            file::sync(&self.file, &self.path, self.durability)?;
        }
        buffers::release();
        Ok(written)
    }

    fn check(&self) -> Result<()> {
        let checked = self.process.check();
        checked.map_err(|error| error.in_file(self.path.display()))
    }

    fn target(&self) -> Target {
        (Arc::clone(&self.file), self.path.clone(), self.durability)
    }

    fn start(&mut self) -> Result<&SyncSender<Job>> {
        if self.thread.is_none() {
            let (sender, receiver) = sync_channel(WAITING);
            let target = self.target();
            let thread = std::thread::Builder::new()
                .name("ambar-write".into())
                .spawn(move || drain(&receiver, target))
                .map_err(|source| Error::io(source, &self.path, "starting a thread"))?;
            self.thread = Some(thread);
            self.jobs = Some(sender);
        }
        self.jobs.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Io, "writing has failed before").in_file(self.path.display())
        })
    }
}

/// Writes what comes, until nothing more can.
fn drain(jobs: &Receiver<Job>, target: Target) -> Result<Vec<SharedEntry>> {
    let mut written = Vec::new();
    for Job {
        offset,
        key,
        parts,
        seal,
    } in jobs
    {
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        written.push(write_entry(&target, (offset, key, seal), &slices)?);
        buffers::give_back(parts);
    }
    Ok(written)
}

/// Writes an entry with this key and seal from `offset` on.
fn write_entry(
    (file, path, durability): &Target,
    (offset, key, seal): (u64, String, Option<u32>),
    parts: &[&[u8]],
) -> Result<SharedEntry> {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    let crc32 = hasher.finalize();
    let len = parts.iter().map(|part| part.len() as u64).sum();
    let header = header(&key, len, crc32);
    let mut out = Appender::new(Arc::clone(file), path.clone(), *durability, offset);
    out.write(&header)?;
    out.write_parts(parts)?;
    out.flush()?;
    Ok(SharedEntry {
        key,
        header_offset: offset,
        data_offset: offset + header.len() as u64,
        len,
        crc32,
        seal,
    })
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The thread is not there, and the channel may be locked by it.
            std::mem::forget((self.jobs.take(), self.thread.take()));
            return;
        }
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Dropped before the end: discard what was written.
            let _ = thread.join();
        }
        buffers::release();
    }
}

impl std::fmt::Debug for SharedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedFile({})", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{CreateOptions, create};
    use crate::process::succeeds_in_child;

    #[test]
    fn a_forked_child_is_refused_and_waits_for_no_thread_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = create(&path, &CreateOptions::default()).unwrap();
        let share = writer.share().unwrap();
        let mut file = SharedFile::open(&share).unwrap();
        let entry = |key: &str| NewEntry {
            key: key.to_owned(),
            parts: vec![Cow::Owned(vec![1; 100])],
            seal: None,
        };
        file.write(share.end, entry("a")).unwrap();
        let mut inherited = Some(file);
        assert!(succeeds_in_child(|| {
            let mut file = inherited.take().unwrap();
            let refused = file.write(share.end, entry("b"));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(file.finish().unwrap_err().kind(), ErrorKind::Invalid);
            drop(file);
        }));
        let written = inherited.unwrap().finish().unwrap();
        assert_eq!(written.len(), 1);
        writer.adopt(written).unwrap();
        writer.put("zarr.json", &[b"{}"]).unwrap();
        writer.commit().unwrap();
    }
}
