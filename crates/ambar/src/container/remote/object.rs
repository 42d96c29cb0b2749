//! An object as the source of a ZIP: its end is fetched when it is opened, ranges when they are read.

use std::ops::Range;
use std::sync::Arc;

use super::super::ahead::{Ahead, Cache};
use super::super::source::ByteSource;
use super::super::{file, ranges};
use super::client::{self, NEAR, PIECE, Version, Wanted};
use super::service::Service;
use crate::error::Result;

/// What is fetched of the end of an object to open it: central directory and metadata of a store of
/// some hundred arrays.
pub const TAIL: u64 = 512 << 10;

/// An object, as it was when it was opened.
#[derive(Debug)]
pub struct Object {
    service: Arc<Service>,
    version: Version,
    /// File offset of `tail`.
    tail_start: u64,
    tail: Vec<u8>,
    ahead: Arc<Cache>,
    /// The key of the only object there is.
    key: Arc<str>,
}

impl Object {
    /// The object at the URL of `service`, its end fetched.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported` where the server does not serve ranges, `Io`.
    pub fn open(service: Arc<Service>) -> Result<Self> {
        let (tail, version) = client::tail(&service, TAIL)?;
        Ok(Self {
            service,
            tail_start: version.size - tail.len() as u64,
            version,
            tail,
            ahead: Arc::default(),
            key: "".into(),
        })
    }

    fn wanted(&self, range: Range<u64>) -> Wanted {
        Wanted {
            key: Arc::clone(&self.key),
            range,
            version: Some(self.version.clone()),
        }
    }

    fn fetch(&self, joined: Vec<Range<u64>>, least: u64) -> Result<Vec<Vec<u8>>> {
        let wanted = joined.into_iter().map(|range| self.wanted(range)).collect();
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
        if out.is_empty() || self.ahead.fill(&self.key, offset, out) {
            return Ok(());
        }
        // What the tail has of it is not fetched again.
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
        for bytes in self.fetch(vec![range], client::PIECE)? {
            missing.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn read_ahead(&self, parts: &[Range<u64>], gap: u64) -> Result<Ahead> {
        if let Some(part) = parts.iter().find(|part| part.end > self.version.size) {
            return Err(file::cut_short(part.end, self.location()));
        }
        let known =
            |part: &Range<u64>| part.start >= self.tail_start || self.ahead.holds(&self.key, part);
        let parts: Vec<Range<u64>> = parts.iter().filter(|part| !known(part)).cloned().collect();
        let joined = ranges::joined(&parts, NEAR.min(gap), PIECE);
        let starts: Vec<u64> = joined.iter().map(|range| range.start).collect();
        let found = self.fetch(joined, client::SMALL_PIECE)?;
        let segments = starts.into_iter().zip(found);
        let key = &self.key;
        Ok(self
            .ahead
            .keep(segments.map(|(start, bytes)| (Arc::clone(key), start, bytes))))
    }

    fn is_remote(&self) -> bool {
        true
    }
}
