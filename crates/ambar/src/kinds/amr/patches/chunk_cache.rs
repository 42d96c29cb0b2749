//! A cache of decoded chunks, for boxes that are read one after another.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::memory::Column;
use crate::process::PerProcess;

/// Maximum bytes of decoded chunks in the cache: neighbouring boxes are in the same chunks.
const MAX_BYTES: usize = 256 << 20;

/// Which chunk of which field.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChunkKey {
    pub level: usize,
    pub field: usize,
    pub chunk: usize,
}

/// Decoded chunks, first in, first out.
#[derive(Default)]
pub(crate) struct ChunkCache(PerProcess<Mutex<Chunks>>);

#[derive(Default)]
struct Chunks {
    chunks: HashMap<ChunkKey, Arc<Column>>,
    /// The oldest first.
    order: VecDeque<ChunkKey>,
    bytes: usize,
}

impl ChunkCache {
    pub fn get(&self, key: ChunkKey, read: impl FnOnce() -> Result<Column>) -> Result<Arc<Column>> {
        let lock = || self.0.lock();
        if let Some(chunk) = lock().chunks.get(&key) {
            return Ok(Arc::clone(chunk));
        }
        // Decoded without the lock: two threads may decode the same chunk, with equal results.
        let chunk = Arc::new(read()?);
        let mut cached = lock();
        if cached.chunks.insert(key, Arc::clone(&chunk)).is_none() {
            cached.order.push_back(key);
            cached.bytes += chunk.bytes().len();
        }
        while cached.bytes > MAX_BYTES {
            let oldest = cached.order.pop_front();
            let Some(gone) = oldest.and_then(|key| cached.chunks.remove(&key)) else {
                break;
            };
            cached.bytes -= gone.bytes().len();
        }
        Ok(chunk)
    }
}
