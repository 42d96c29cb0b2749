//! Vector instructions, which are chosen at run time by the abilities of the processor.

pub(crate) mod compact;
#[cfg(target_arch = "x86_64")]
mod compact_avx512;
pub(crate) mod dispatch;

/// Points of a group: rows are computed in whole groups. Buffers have space after the last point, whose content is never
/// used.
pub(crate) const LANES: usize = 16;

/// The mask of a row, used to compact per-point bytes.
#[derive(Clone, Copy)]
pub(crate) struct RowMask<'a> {
    /// The index of its first point.
    pub start: usize,
    /// A bit for each present point.
    pub bits: &'a [u64],
    /// The number of set bits.
    pub count: usize,
}
