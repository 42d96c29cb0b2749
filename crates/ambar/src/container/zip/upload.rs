//! Writes a ZIP to an object store: in order, in one upload that appears when it is complete.
//!
//! The bytes are those of a file with the same commits. A tail that the next commit overwrites is not sent before the
//! end, and the header, which has the commit slots, is sent last.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use super::super::interface::existing_content;
use super::super::state::State;
use super::super::{Container, ContainerWriter, Entry, key};
use super::next_commit::{NextCommit, Output, now};
use super::records::ROOT;
use super::slot::{self, SLOT_LEN, SLOT_OFFSETS, Slot};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Bytes of recent entries that are kept in memory, to be read back.
const MAX_RECENT: usize = 32 << 20;

/// An object that is written in order, once. Dropping it before it is complete leaves nothing.
pub trait Upload: Send {
    /// Appends `bytes`.
    ///
    /// # Errors
    /// `Io`; `Limit` if the service allows no longer objects.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Replaces the first bytes by `head`, and makes the object visible.
    ///
    /// # Errors
    /// `Exists` if the object exists and must not be replaced; `Io`.
    fn complete(&mut self, head: &[u8]) -> Result<()>;

    /// Opens the complete object.
    ///
    /// # Errors
    /// As [`super::super::open_url`].
    fn reader(&self, limits: &Limits) -> Result<Arc<dyn Container>>;
}

/// The writer of a ZIP as an object.
pub struct UploadWriter {
    out: UploadOutput,
    url: String,
    next: NextCommit,
    recent: RecentEntries,
    /// The slots of the header.
    slots: [Slot; 2],
    /// The tail of the last commit, if it was not sent.
    tail: Vec<u8>,
    is_complete: bool,
    state: State,
    limits: Limits,
}

impl UploadWriter {
    /// The writer of a new container at `url`.
    ///
    /// # Errors
    /// `Io`.
    pub fn new(upload: Box<dyn Upload>, url: &str, limits: Limits) -> Result<Self> {
        let mut out = UploadOutput {
            upload,
            position: 0,
        };
        out.write(&slot::header())?;
        let mut next = NextCommit::default();
        next.require();
        Ok(Self {
            out,
            url: url.to_owned(),
            next,
            recent: RecentEntries::default(),
            slots: [Slot::default(); 2],
            tail: Vec::new(),
            is_complete: false,
            state: State::new(),
            limits,
        })
    }

    /// Runs `action`; after an error the writer is poisoned.
    fn guarded<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check()?;
        let result = action(self);
        if result.is_err() {
            self.state.fail();
        }
        result.map_err(|error| error.in_file(&self.url))
    }

    fn write_commit(&mut self) -> Result<()> {
        let position = self.out.position;
        let mut commit = self.next.encode(now(), position, &self.limits)?;
        self.out.write(&commit.record)?;
        self.tail = std::mem::take(&mut commit.tail);
        if !commit.slot.has_temporary_tail {
            self.send_tail()?;
        }
        self.slots[commit.slot.index()] = commit.slot;
        self.next.committed(&commit);
        Ok(())
    }

    fn send_tail(&mut self) -> Result<()> {
        let tail = std::mem::take(&mut self.tail);
        self.out.write(&tail)
    }

    fn complete(&mut self) -> Result<()> {
        if Some(self.out.position) == self.next.last().permanent_end() {
            self.send_tail()?;
        } else {
            // Entries without a commit were sent after the last one, whose tail must end the object.
            self.next.discard();
            self.next.require_full();
            self.write_commit()?;
        }
        let mut head = slot::header();
        for (slot, offset) in self.slots.iter().zip(SLOT_OFFSETS) {
            head[offset..offset + SLOT_LEN].copy_from_slice(&slot.encode());
        }
        self.out.upload.complete(&head)?;
        self.is_complete = true;
        Ok(())
    }
}

impl ContainerWriter for UploadWriter {
    fn check(&self) -> Result<()> {
        self.state.check(Path::new(&self.url))?;
        if self.is_complete {
            let message = "the upload is complete, so nothing can be added; write it again, or write to a URL that \
                           ends with `/`";
            return Err(Error::invalid(message).in_file(&self.url));
        }
        Ok(())
    }

    fn put_sealed(&mut self, key: &str, parts: &[&[u8]], seal: Option<u32>) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(&self.url))?;
        if key == ROOT {
            let document = parts.concat();
            return self.put_root(&document, &document);
        }
        self.guarded(|writer| {
            writer
                .next
                .append_parts(&mut writer.out, key, parts, seal)?;
            writer.recent.insert(key, parts);
            Ok(())
        })
    }

    fn put_copy(
        &mut self,
        key: &str,
        source: &dyn Container,
        from: &str,
        entry: &Entry,
    ) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(&self.url))?;
        let Some(crc32) = entry.crc32 else {
            let content = existing_content(source, from)?;
            return self.put_sealed(key, &[&content], entry.seal);
        };
        self.guarded(|writer| {
            writer.recent.remove(key);
            let source = (source, from);
            writer
                .next
                .append_copy(&mut writer.out, key, source, (entry, crc32))
        })
    }

    fn put_root(&mut self, document: &[u8], alone: &[u8]) -> Result<()> {
        self.check()?;
        self.next.put_root(document, alone);
        Ok(())
    }

    fn set_message(&mut self, message: &str) -> Result<()> {
        let set = self.next.set_message(message);
        set.map_err(|error| error.in_file(&self.url))
    }

    fn read_back(&mut self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.check()?;
        let Some(record) = self.next.get(key) else {
            return Ok(None);
        };
        let len = Limits::check("an entry", record.len, limit);
        len.map_err(|error| error.at_node(key).in_file(&self.url))?;
        if let Some(content) = self.recent.get(key) {
            return Ok(Some(content.to_vec()));
        }
        let message = "the chunk was uploaded, so values cannot be added to it; write whole chunks, or write to a URL \
                       that ends with `/`";
        Err(Error::unsupported(message).at_node(key).in_file(&self.url))
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        key::validate_key(key).map_err(|error| error.in_file(&self.url))?;
        self.check()?;
        self.recent.remove(key);
        self.next.remove(key);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.check()?;
        if !self.next.has_changes() {
            return Ok(());
        }
        self.guarded(Self::write_commit)
    }

    fn finish(&mut self) -> Result<()> {
        self.state.check(Path::new(&self.url))?;
        if self.is_complete || self.next.last().sequence == 0 {
            return Ok(());
        }
        self.guarded(Self::complete)
    }

    fn reader(&self) -> Result<Arc<dyn Container>> {
        self.state.check(Path::new(&self.url))?;
        if self.is_complete {
            return self.out.upload.reader(&self.limits);
        }
        let message = "an upload cannot be read before it is complete; close the writer first, or write to a URL that \
                       ends with `/`";
        Err(Error::unsupported(message).in_file(&self.url))
    }
}

impl std::fmt::Debug for UploadWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let commit = self.next.last().sequence;
        write!(f, "UploadWriter({}, commit {commit})", self.url)
    }
}

/// The upload as the output of a commit.
struct UploadOutput {
    upload: Box<dyn Upload>,
    position: u64,
}

impl Output for UploadOutput {
    fn position(&self) -> u64 {
        self.position
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.upload.append(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

/// The contents of the entries that were written last.
#[derive(Default)]
struct RecentEntries {
    /// Contents by key, with the number of the write.
    contents: HashMap<Box<str>, (u64, Vec<u8>)>,
    /// Numbers and keys in the order of writes; also of contents that were replaced.
    order: VecDeque<(u64, Box<str>)>,
    writes: u64,
    bytes: usize,
}

impl RecentEntries {
    fn get(&self, key: &str) -> Option<&[u8]> {
        self.contents.get(key).map(|(_, content)| &content[..])
    }

    fn insert(&mut self, key: &str, parts: &[&[u8]]) {
        self.remove(key);
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        if len > MAX_RECENT / 2 {
            return;
        }
        self.writes += 1;
        self.bytes += len;
        self.order.push_back((self.writes, key.into()));
        self.contents
            .insert(key.into(), (self.writes, parts.concat()));
        if self.order.len() > 2 * self.contents.len() + 1000 {
            let contents = &self.contents;
            let is_current =
                |write: u64, key: &str| contents.get(key).is_some_and(|(last, _)| *last == write);
            self.order.retain(|(write, key)| is_current(*write, key));
        }
        while self.bytes > MAX_RECENT
            && let Some((write, key)) = self.order.pop_front()
        {
            if self
                .contents
                .get(&key)
                .is_some_and(|(last, _)| *last == write)
            {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some((_, content)) = self.contents.remove(key) {
            self.bytes -= content.len();
        }
    }
}
