//! An object that is written in order: one request, or an upload of several parts.
//!
//! The first part is kept in memory and sent last, because its bytes are known last. The object appears when the upload
//! is completed; an upload that is dropped before is aborted, so that the service stores no parts of it.

use std::collections::VecDeque;
use std::sync::Arc;

use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{MultipartId, PutMode, PutOptions, PutPayload};

use super::super::Container;
use super::super::zip::{Upload, ZipReader};
use super::client;
use super::errors;
use super::object::Object;
use super::runtime::{self, Task};
use super::service::{Completion, Service, WritableStore};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::process::Process;

/// Bytes of a part. Services accept 10,000 parts, all but the last of at least 5 MiB.
const PART_BYTES: usize = 16 << 20;

/// Parts of `PART_BYTES`. Some services want parts of one length, so that only objects of more parts than these have
/// longer ones.
const EQUAL_PARTS: usize = 5000;

/// Later parts that have one length; those after them have twice the length.
const PARTS_OF_A_LENGTH: usize = 1000;

/// Maximum number of parts.
const MAX_PARTS: usize = 10_000;

/// Bytes of parts that are sent at the same time, unless one part is longer.
const BYTES_IN_FLIGHT: usize = 4 * PART_BYTES;

/// Bytes at the end of the object that identify its content: the end records of a ZIP, with the checksum of its
/// directory.
const IDENTIFYING_BYTES: usize = 256;

/// An object that is being written.
pub struct ObjectUpload {
    service: Arc<Service>,
    store: Arc<dyn WritableStore>,
    path: Path,
    overwrite: bool,
    part_bytes: usize,
    /// The upload; `None` until it is started, and when it is complete.
    id: Option<MultipartId>,
    /// The first part.
    first: Vec<u8>,
    /// The part that bytes are appended to, after the first one.
    current: Vec<u8>,
    /// The parts that were sent.
    parts: Vec<Option<PartId>>,
    sending: VecDeque<SendingPart>,
    bytes_in_flight: usize,
    /// The last bytes that were appended, and the number of all.
    end: Vec<u8>,
    len: u64,
    process: Process,
}

/// A part that is being sent.
struct SendingPart {
    index: usize,
    len: usize,
    task: Task<object_store::Result<PartId>>,
}

impl ObjectUpload {
    /// An upload to the object at the URL of `service`.
    ///
    /// # Errors
    /// `Exists` if the object exists, and is not to be overwritten; `Unsupported` if the service cannot be written to.
    pub fn new(service: Arc<Service>, overwrite: bool) -> Result<Self> {
        Self::with_parts(service, overwrite, PART_BYTES)
    }

    /// As `new`, with parts of `part_bytes`.
    pub fn with_parts(service: Arc<Service>, overwrite: bool, part_bytes: usize) -> Result<Self> {
        let completion = match overwrite {
            true => Completion::Replace,
            false => Completion::Create,
        };
        let store = service.writable(completion)?;
        let path = service.object("")?;
        if path.as_ref().is_empty() {
            let message = "the URL has no key; expected s3://BUCKET/KEY";
            return Err(Error::invalid(message).in_file(&service.location));
        }
        let mut upload = Self {
            service,
            store,
            path,
            overwrite,
            part_bytes,
            id: None,
            first: Vec::new(),
            current: Vec::new(),
            parts: vec![None],
            sending: VecDeque::new(),
            bytes_in_flight: 0,
            end: Vec::new(),
            len: 0,
            process: Process::current(),
        };
        upload.check_free()?;
        // A missing bucket or permission is found here, and not after a conversion.
        match upload.service.features.starts_uploads {
            true => upload.id = Some(upload.start()?),
            false => client::check_bucket(&upload.service)?,
        }
        Ok(upload)
    }

    /// Checks that no object would be replaced that must not be.
    fn check_free(&self) -> Result<()> {
        if self.overwrite {
            return Ok(());
        }
        // Without a condition of the last request, this is the only check.
        let found = match self.service.features.has_conditional_completion {
            true => client::look(&self.service, "")?,
            false => client::find(&self.service, "")?,
        };
        match found {
            Some(_) => Err(self.exists()),
            None => Ok(()),
        }
    }

    fn exists(&self) -> Error {
        Error::exists("the object exists; choose another name, or replace it with `overwrite`")
            .in_file(&self.service.location)
    }

    fn failed(&self, error: &object_store::Error) -> Error {
        errors::to_write_error(error, &self.service.access, &self.service.location, "")
    }

    /// The length of the part `index`.
    fn part_len(&self, index: usize) -> usize {
        match index.checked_sub(EQUAL_PARTS) {
            None => self.part_bytes,
            Some(later) => self.part_bytes << (later / PARTS_OF_A_LENGTH + 1),
        }
    }

    /// Starts to send the current part.
    fn send_current(&mut self) -> Result<()> {
        let index = self.parts.len();
        if index == MAX_PARTS {
            let message =
                "the object would have more than 10,000 parts; write to a URL that ends with `/`";
            return Err(Error::limit(message).in_file(&self.service.location));
        }
        let part = std::mem::take(&mut self.current);
        self.parts.push(None);
        self.send(index, part)
    }

    /// Starts to send a part, when few enough parts are being sent.
    fn send(&mut self, index: usize, part: Vec<u8>) -> Result<()> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.start()?,
        };
        self.id = Some(id.clone());
        while self.bytes_in_flight > 0 && self.bytes_in_flight + part.len() > BYTES_IN_FLIGHT {
            self.wait_for_one()?;
        }
        let (store, path, len) = (Arc::clone(&self.store), self.path.clone(), part.len());
        let payload = PutPayload::from(part);
        let task = Task::start(async move { store.put_part(&path, &id, index, payload).await })?;
        self.bytes_in_flight += len;
        self.sending.push_back(SendingPart { index, len, task });
        Ok(())
    }

    fn start(&self) -> Result<MultipartId> {
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        let started = runtime::wait(async move { store.create_multipart(&path).await })?;
        started.map_err(|error| self.failed(&error))
    }

    /// Waits until the part is sent that was started first.
    fn wait_for_one(&mut self) -> Result<()> {
        let Some(SendingPart { index, len, task }) = self.sending.pop_front() else {
            return Ok(());
        };
        self.bytes_in_flight -= len;
        let sent = task.wait()?.map_err(|error| self.failed(&error))?;
        self.parts[index] = Some(sent);
        Ok(())
    }

    /// Writes the object with one request.
    fn put(&mut self) -> Result<()> {
        let mode = match self.overwrite {
            true => PutMode::Overwrite,
            false => PutMode::Create,
        };
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        let payload = PutPayload::from(std::mem::take(&mut self.first));
        let put = runtime::wait(async move {
            let put = client::put_if(&*store, &path, payload.clone(), mode).await;
            match put {
                // The user has disabled conditions, which the service does not support.
                Err(object_store::Error::NotImplemented { .. }) => {
                    store.put_opts(&path, payload, PutOptions::default()).await
                }
                put => put,
            }
        })?;
        self.settle(put.map(drop))
    }

    /// Sends the first part, and completes the upload.
    fn complete_parts(&mut self) -> Result<()> {
        if !self.current.is_empty() {
            self.send_current()?;
        }
        let first = std::mem::take(&mut self.first);
        self.send(0, first)?;
        while !self.sending.is_empty() {
            self.wait_for_one()?;
        }
        // For services that ignore the condition of the completion.
        self.check_free()?;
        let Some(id) = self.id.clone() else {
            return Ok(());
        };
        let parts: Vec<PartId> = self.parts.iter().flatten().cloned().collect();
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        let completed =
            runtime::wait(async move { store.complete_multipart(&path, &id, parts).await })?;
        self.settle(completed.map(drop))?;
        self.id = None;
        Ok(())
    }

    /// The result of the last request. If its answer was lost, or the client has repeated it, the object shows whether
    /// it took effect.
    fn settle(&self, answer: object_store::Result<()>) -> Result<()> {
        let Err(error) = answer else {
            return Ok(());
        };
        use object_store::Error as Refusal;
        match self.is_stored() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(lookup) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    format!(
                        "it is unknown whether the object was written: {}, and looking for it failed, too ({}); open \
                         it before writing it again",
                        self.failed(&error).message(),
                        lookup.message()
                    ),
                )
                .in_file(&self.service.location));
            }
        }
        match error {
            Refusal::AlreadyExists { .. }
            | Refusal::Precondition { .. }
            | Refusal::NotModified { .. } => Err(self.exists()),
            _ => Err(self.failed(&error)),
        }
    }

    /// Whether the object has the length and the end of this upload.
    fn is_stored(&self) -> Result<bool> {
        match client::tail(&self.service, self.end.len() as u64) {
            Ok((end, version)) => Ok(version.size == self.len && end == self.end),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Upload for ObjectUpload {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let is_first = self.first.len() < self.part_bytes;
            let (part, len) = match is_first {
                true => (&mut self.first, self.part_bytes),
                false => {
                    let len = self.part_len(self.parts.len());
                    (&mut self.current, len)
                }
            };
            if !is_first && part.is_empty() {
                // A buffer that grows would take up to twice the memory.
                part.reserve_exact(len);
            }
            let (now, later) = rest.split_at(rest.len().min(len - part.len()));
            part.extend_from_slice(now);
            rest = later;
            if !is_first && part.len() == len {
                self.send_current()?;
            }
        }
        self.len += bytes.len() as u64;
        let kept = bytes.len().min(IDENTIFYING_BYTES);
        self.end.extend_from_slice(&bytes[bytes.len() - kept..]);
        let surplus = self.end.len().saturating_sub(IDENTIFYING_BYTES);
        self.end.drain(..surplus);
        Ok(())
    }

    fn complete(&mut self, head: &[u8]) -> Result<()> {
        self.first[..head.len()].copy_from_slice(head);
        match self.len <= self.part_bytes as u64 {
            true => self.put(),
            false => self.complete_parts(),
        }
    }

    fn reader(&self, limits: &Limits) -> Result<Arc<dyn Container>> {
        let object = Object::open(Arc::clone(&self.service))?;
        Ok(Arc::new(ZipReader::of(Arc::new(object), limits)?))
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A forked child has none of the threads.
            std::mem::forget(std::mem::take(&mut self.sending));
            return;
        }
        self.sending.clear();
        if let Some(id) = self.id.take() {
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            // Errors cannot be reported here. A lifecycle rule of the bucket removes parts that remain.
            let _ = runtime::wait(async move { store.abort_multipart(&path, &id).await });
        }
    }
}

impl std::fmt::Debug for ObjectUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectUpload({})", self.service.location)
    }
}
