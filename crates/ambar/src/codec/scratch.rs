//! Memory that a thread keeps from one chunk to the next, so that decoding allocates nothing.

use std::cell::Cell;

use crate::error::Result;
use crate::limits;

/// What is kept at most; larger buffers are given back after use.
const KEPT_BYTES: usize = 16 << 20;

/// Buffers and contexts of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    /// A chunk as it is stored.
    pub encoded: Words,
    /// A chunk's values, where they do not go straight to the caller.
    pub decoded: Words,
    /// What codecs hand to each other.
    pub codecs: CodecScratch,
}

/// Buffers and contexts of the codecs.
#[derive(Default)]
pub(crate) struct CodecScratch {
    pub buffers: [Vec<u8>; 2],
    /// Values on their way through codecs from values to values.
    pub values: Words,
    pub zstd: Option<zstd::bulk::Decompressor<'static>>,
    pub workspaces: super::ambar::Workspaces,
    pub simplices: ambar_codec::simplices::Workspace,
}

/// Bytes aligned for every type of value.
#[derive(Default)]
pub(crate) struct Words(Vec<u64>);

impl Words {
    /// The first `len` bytes, of any content.
    ///
    /// # Errors
    /// `Limit` where there is no memory for them.
    pub fn bytes(&mut self, len: usize) -> Result<&mut [u8]> {
        limits::resize(&mut self.0, "a chunk", len.div_ceil(8))?;
        Ok(&mut bytemuck::cast_slice_mut(&mut self.0)[..len])
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's scratch. A call within a call gets one of its own.
pub(crate) fn with_scratch<T>(f: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = f(&mut scratch);
    let codecs: usize = scratch.codecs.buffers.iter().map(Vec::capacity).sum();
    let words = [&scratch.encoded, &scratch.decoded, &scratch.codecs.values];
    let words: usize = words.iter().map(|words| words.0.capacity()).sum();
    if words * 8 + codecs <= KEPT_BYTES {
        SCRATCH.set(Some(scratch));
    }
    result
}
