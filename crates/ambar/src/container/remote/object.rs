//! An object as the source of a ZIP: its end is fetched when it is opened, other ranges when they are read.

use std::ops::Range;
use std::sync::Arc;

use super::super::read_ahead::{ReadAhead, Segment, SegmentCache};
use super::super::source::ByteSource;
use super::super::{file, ranges};
use super::client::{self, JOINED_GAP, PIECE_BYTES, RangeRequest, Version};
use super::service::Service;
use crate::error::Result;

/// Bytes at the end of an object that are fetched to open it: central directory and metadata of a store of
/// some hundred arrays.
pub const TAIL: u64 = 512 << 10;

/// An open object.
#[derive(Debug)]
pub struct Object {
    service: Arc<Service>,
    version: Version,
    /// File offset of `tail`.
    tail_start: u64,
    tail: Vec<u8>,
    cache: Arc<SegmentCache>,
    /// The empty key of the only object.
    key: Arc<str>,
}

impl Object {
    /// Opens the object at the URL of `service` and fetches its end.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported` if the server does not serve ranges, `Io`.
    pub fn open(service: Arc<Service>) -> Result<Self> {
        let (tail, version) = client::tail(&service, TAIL)?;
        Ok(Self {
            service,
            tail_start: version.size - tail.len() as u64,
            version,
            tail,
            cache: Arc::default(),
            key: "".into(),
        })
    }

    fn request(&self, range: Range<u64>) -> RangeRequest {
        RangeRequest {
            key: Arc::clone(&self.key),
            range,
            version: Some(self.version.clone()),
        }
    }

    fn fetch(&self, joined: Vec<Range<u64>>, least: u64) -> Result<Vec<Vec<u8>>> {
        let wanted = joined
            .into_iter()
            .map(|range| self.request(range))
            .collect();
        let found = client::fetch(&self.service, wanted, least)?;
        Ok(found.into_iter().map(|(bytes, _)| bytes).collect())
    }
}

impl ByteSource for Object {
    fn location(&self) -> &str {
        &self.service.location
    }

    fn length(&self) -> Result<u64> {
        Ok(self.version.size)
    }

    fn read_exact(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        if end > self.version.size {
            return Err(file::cut_short(end, self.location()));
        }
        if out.is_empty() || self.cache.fill(&self.key, offset, out) {
            return Ok(());
        }
        // Bytes in the tail are not fetched again.
        let mut missing = out;
        if end > self.tail_start {
            let known = self.tail_start.max(offset);
            let from = (known - self.tail_start) as usize;
            let (before, inside) = missing.split_at_mut((known - offset) as usize);
            inside.copy_from_slice(&self.tail[from..from + inside.len()]);
            missing = before;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let range = offset..offset + missing.len() as u64;
        for bytes in self.fetch(vec![range], client::PIECE_BYTES)? {
            missing.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn read_ahead(&self, parts: &[Range<u64>], gap: u64) -> Result<ReadAhead> {
        if let Some(part) = parts.iter().find(|part| part.end > self.version.size) {
            return Err(file::cut_short(part.end, self.location()));
        }
        let known = |part: &Range<u64>| {
            part.start >= self.tail_start || self.cache.contains(&self.key, part)
        };
        let parts: Vec<Range<u64>> = parts.iter().filter(|part| !known(part)).cloned().collect();
        let joined = ranges::join(&parts, JOINED_GAP.min(gap), PIECE_BYTES);
        let starts: Vec<u64> = joined.iter().map(|range| range.start).collect();
        let found = self.fetch(joined, client::SMALL_PIECE_BYTES)?;
        let segments = starts.into_iter().zip(found);
        let key = &self.key;
        Ok(self.cache.insert(segments.map(|(offset, bytes)| Segment {
            name: Arc::clone(key),
            offset,
            bytes,
        })))
    }

    fn is_remote(&self) -> bool {
        true
    }
}
