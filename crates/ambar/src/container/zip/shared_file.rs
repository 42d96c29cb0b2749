//! A ZIP that several processes write: each writes entries into its extents of the file.
//!
//! One process has the container's writer and the lock; the others open the file by its
//! [`SharedFileInfo`]. Their entries become visible when the writer has adopted and committed them.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::super::{Durability, NewEntry, SharedEntry, SharedFileInfo, SharedLocation, file};
use super::appender::Appender;
use super::next_commit::Output;
use super::records::LocalHeader;
use crate::buffers;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{Process, start_threads};

/// Maximum number of queued entries, besides one that is being encoded and one that is being written:
/// encoding continues during writes.
const QUEUED: usize = 1;

/// An entry to be written.
struct WriteJob<P> {
    offset: u64,
    key: String,
    seal: Option<u32>,
    parts: Vec<P>,
}

/// The file that entries are written to.
struct Target {
    file: Arc<File>,
    path: PathBuf,
    durability: Durability,
}

/// A shared file in one process. Encoded entries are written by a separate thread.
pub struct SharedFile {
    path: PathBuf,
    file: Arc<File>,
    durability: Durability,
    /// A forked child has none of this process' threads.
    process: Process,
    /// The entries written without the thread since the last call of `finish`.
    written: Vec<SharedEntry>,
    jobs: Option<SyncSender<WriteJob<Vec<u8>>>>,
    thread: Option<JoinHandle<Result<Vec<SharedEntry>>>>,
}

impl SharedFileInfo {
    /// The path after the first commit, for messages.
    pub(crate) fn location(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn new(
        file: &File,
        name: PathBuf,
        path: PathBuf,
        end: u64,
        durability: Durability,
    ) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|source| Error::io(source, &name, "reading the file's inode number"))?;
        Ok(Self {
            file: name,
            path,
            inode: metadata.ino(),
            end,
            durable: durability == Durability::Full,
        })
    }
}

/// Bytes of an entry in the file: its local header and content.
pub fn entry_bytes(key: &str, len: u64) -> u64 {
    header(key, len, 0).len() as u64 + len
}

fn header(key: &str, len: u64, crc32: u32) -> Vec<u8> {
    let mut header = Vec::new();
    LocalHeader {
        name: key,
        len,
        deflated: None,
        crc32,
    }
    .encode(&mut header);
    header
}

impl SharedFile {
    /// Opens the file that another process writes as well.
    ///
    /// # Errors
    /// `NotFound` if it does not exist on this machine; `Invalid` if another file has its name; `Io`.
    pub fn open(share: &SharedFileInfo) -> Result<Self> {
        let named = |error: Error| error.for_target(&share.file, &share.path);
        let file = file::open_for_writing(&share.file).map_err(named)?;
        let metadata = file.metadata().map_err(|source| {
            named(Error::io(
                source,
                &share.file,
                "reading the file's inode number",
            ))
        })?;
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

    /// The path of the file after the first commit.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Writes an entry at `offset`, where `entry_bytes` must be free. Entries with parts of the caller's memory
    /// are written before it returns; others are queued, and it waits while the queue is full.
    ///
    /// # Errors
    /// `Io`, of this entry or an earlier one, after which nothing can be written. `Invalid` in a forked child.
    pub fn write(&mut self, offset: u64, entry: NewEntry<'_>) -> Result<()> {
        self.check()?;
        let NewEntry { key, parts, seal } = entry;
        if parts.iter().any(|part| matches!(part, Cow::Borrowed(_))) {
            let job = WriteJob {
                offset,
                key,
                seal,
                parts,
            };
            self.written.push(self.target().write(&job)?);
            return Ok(());
        }
        let job = WriteJob {
            offset,
            key,
            seal,
            parts: parts.into_iter().map(Cow::into_owned).collect(),
        };
        if self.start()?.send(job).is_ok() {
            return Ok(());
        }
        // The thread ends before its sender only with an error.
        self.finish().map(|_| ())
    }

    /// Waits until all entries are in the file (and on the disk, if durable), and returns those written since
    /// the last call.
    ///
    /// # Errors
    /// `Io`; `Invalid` in a forked child.
    pub fn finish(&mut self) -> Result<Vec<SharedEntry>> {
        self.check()?;
        self.jobs = None;
        let mut written = std::mem::take(&mut self.written);
        if let Some(thread) = self.thread.take() {
            written.extend(thread.join().map_err(|_| {
                Error::new(
                    ErrorKind::Io,
                    "the writing thread has panicked; report this bug",
                )
                .in_file(self.path.display())
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
        Target {
            file: Arc::clone(&self.file),
            path: self.path.clone(),
            durability: self.durability,
        }
    }

    /// Starts the thread unless it runs.
    fn start(&mut self) -> Result<&SyncSender<WriteJob<Vec<u8>>>> {
        if self.thread.is_none() {
            let (sender, receiver) = sync_channel(QUEUED);
            let target = self.target();
            let builder = std::thread::Builder::new().name("ambar-write".into());
            let thread = start_threads(|| builder.spawn(move || write_all(&receiver, &target)))
                .map_err(|source| Error::io(source, &self.path, "starting a thread"))?;
            self.thread = Some(thread);
            self.jobs = Some(sender);
        }
        self.jobs.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Io,
                "an earlier write failed, so nothing more can be written; open the store again",
            )
            .in_file(self.path.display())
        })
    }
}

/// Writes all entries that are sent.
fn write_all(jobs: &Receiver<WriteJob<Vec<u8>>>, target: &Target) -> Result<Vec<SharedEntry>> {
    let mut written = Vec::new();
    for job in jobs {
        written.push(target.write(&job)?);
        buffers::give_back(job.parts);
    }
    Ok(written)
}

impl Target {
    /// Writes an entry.
    fn write<P: AsRef<[u8]>>(&self, job: &WriteJob<P>) -> Result<SharedEntry> {
        let parts: Vec<&[u8]> = job.parts.iter().map(AsRef::as_ref).collect();
        let mut hasher = crc32fast::Hasher::new();
        parts.iter().for_each(|part| hasher.update(part));
        let crc32 = hasher.finalize();
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let header = header(&job.key, len, crc32);
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        let mut out = Appender::new(file, path, self.durability, job.offset);
        out.write(&header)?;
        out.write_parts(&parts)?;
        out.flush()?;
        Ok(SharedEntry {
            key: job.key.clone(),
            location: SharedLocation::File {
                header: job.offset,
                data: job.offset + header.len() as u64,
            },
            len,
            crc32,
            seal: job.seal,
        })
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The thread does not exist in a child, and the channel may be locked by it.
            std::mem::forget((self.jobs.take(), self.thread.take()));
            return;
        }
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Dropped before `finish`: the entries are discarded.
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
    fn errors_about_a_new_file_name_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = create(&path, &CreateOptions::default()).unwrap();
        let share = writer.share().unwrap();
        drop(writer);
        let error = SharedFile::open(&share).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.file(), share.path.display().to_string());
        assert!(
            error.message().starts_with(".x.ambar.ambar-new: "),
            "{error}"
        );
    }

    #[test]
    fn a_forked_child_gets_errors_and_does_not_wait_for_threads() {
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
        writer.adopt(written, 0).unwrap();
        writer.put("zarr.json", &[b"{}"]).unwrap();
        writer.commit().unwrap();
    }
}
