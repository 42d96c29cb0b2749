//! Memory that a thread reuses for every file it reads.

/// Buffers of one thread.
#[derive(Default)]
pub struct ReadBuffers {
    /// For headers and single records.
    pub window: Vec<u8>,
    /// For blocks of records.
    pub block: Vec<u8>,
}
