//! Ranges of values that all ranks report, and that rank 0 writes.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ranks::message::ReportedRange;
use crate::store::StoreWriter;

/// Writes the unions of the reported ranges, by index; `[inf, -inf]` if no rank reported one.
pub(crate) type Finish = Box<dyn FnOnce(&mut StoreWriter, &[[f64; 2]]) -> Result<()> + Send>;

/// Identifies ranges that were declared since the last commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangesId(pub usize);

/// Ranges of one declaration.
pub(in crate::ranks) struct GatheredRanges {
    pub places: usize,
    pub own: BTreeMap<u64, [f64; 2]>,
    /// Writes the unions; `Some` only on rank 0.
    pub finish: Option<Finish>,
}

/// The range of no values.
pub(in crate::ranks) const NONE: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

/// The smallest range that contains both.
pub(in crate::ranks) fn union(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

impl GatheredRanges {
    /// Writes the unions of the ranges that the ranks `reported`.
    pub fn finish<'a>(
        self,
        store: &mut StoreWriter,
        reported: impl Iterator<Item = &'a [ReportedRange]>,
    ) -> Result<()> {
        let mut all = vec![NONE; self.places];
        for range in reported.flatten() {
            if let Some(known) = usize::try_from(range.index)
                .ok()
                .and_then(|at| all.get_mut(at))
            {
                *known = union(*known, range.bits.map(f64::from_bits));
            }
        }
        match self.finish {
            Some(finish) => finish(store, &all),
            None => Ok(()),
        }
    }
}
