//! Buffers that a thread reuses from chunk to chunk, so that decoding does not allocate.

use std::cell::Cell;

use crate::error::Result;
use crate::limits;

/// Larger buffers are released after use.
const KEPT_BYTES: usize = 16 << 20;

/// Buffers and contexts of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    /// A stored chunk.
    pub encoded: AlignedBuffer,
    /// The values of a chunk that cannot be decoded directly into the caller's memory.
    pub decoded: AlignedBuffer,
    /// Intermediate results of codecs.
    pub codecs: CodecScratch,
}

/// Buffers and contexts of the codecs.
#[derive(Default)]
pub(crate) struct CodecScratch {
    pub buffers: [Vec<u8>; 2],
    /// Intermediate results of array-to-array codecs.
    pub values: AlignedBuffer,
    pub zstd: Option<zstd::bulk::Decompressor<'static>>,
    pub workspaces: super::ambar::Workspaces,
    pub simplices: ambar_codec::simplices::Workspace,
}

/// Bytes aligned for every type of value.
#[derive(Default)]
pub(crate) struct AlignedBuffer(Vec<u64>);

impl AlignedBuffer {
    /// The first `len` bytes, with arbitrary content.
    ///
    /// # Errors
    /// `Limit` if there is not enough memory.
    pub fn bytes(&mut self, len: usize) -> Result<&mut [u8]> {
        limits::resize(&mut self.0, "a chunk", len.div_ceil(8))?;
        Ok(&mut bytemuck::cast_slice_mut(&mut self.0)[..len])
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's scratch buffers. A nested call gets new ones.
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
