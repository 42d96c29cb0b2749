//! Vector instructions: chosen when a loop is called, by what the processor has.

pub(crate) mod compact;
#[cfg(target_arch = "x86_64")]
mod compact_avx512;
pub(crate) mod dispatch;

/// Room behind rows: they are computed in whole groups of lanes, and what lies behind their end is
/// of no meaning, and never used.
pub(crate) const LANES: usize = 16;

/// A row of a batch.
pub(crate) struct RowMask<'a> {
    /// Where its points begin.
    pub from: usize,
    /// The bits of those that are there, and their number.
    pub there: &'a [u64],
    pub count: usize,
}
