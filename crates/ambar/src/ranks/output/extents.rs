//! Allocation of the file: the extents into which each rank may write.

use crate::error::{Error, Result};

/// How extents are assigned to the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// By a counter that all ranks share: the file has few gaps, and each extent needs an atomic fetch-and-add.
    #[default]
    Counter,
    /// Reserved when an array is declared, with the raw bytes of the rank's shards: without communication, but
    /// the file has holes where values are compressed.
    Reserved,
}

/// Adds a number to the counter that all ranks share, and returns its previous value.
pub type Reserve = dyn FnMut(u64) -> Result<u64> + Send;

/// Minimum bytes of an extent from the counter, so that small entries are adjacent: `FIRST` after a
/// commit, doubled for each extent up to `LEAST`. So a store of few values is a short file.
const FIRST: u64 = 16 << 10;
const LEAST: u64 = 1 << 20;

/// Maximum bytes of an extent from the counter for future entries.
const MOST: u64 = 256 << 20;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    /// Removes `bytes` from its start; `None` if it is too short.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let start = self.start;
        let next = start.checked_add(bytes).filter(|next| *next <= self.end)?;
        self.start = next;
        Some(start)
    }
}

/// The extents of a rank.
pub(in crate::ranks) struct Extents {
    alignment: u64,
    /// The minimum bytes of the next extent from the counter, of the first one, and the largest minimum.
    least: u64,
    first: u64,
    most: u64,
    /// Extents with free bytes: at most one from the counter, or those reserved for each array.
    own: Vec<Extent>,
    source: ExtentSource,
}

enum ExtentSource {
    /// The first free byte of the only rank.
    SingleRank(u64),
    /// The ranks' counter, and the offset of its zero.
    Counter(Box<Reserve>, u64),
    /// The end of all reserved extents.
    Reserved(u64),
    /// No counter was set yet; the offset of its zero.
    Unset(u64),
}

impl Extents {
    /// The extents of a file whose bytes from `end` on are free.
    pub fn new(ranks: u32, placement: Placement, end: u64, alignment: u64, least: u64) -> Self {
        // A single writer needs no alignment.
        let alignment = if ranks == 1 { 1 } else { alignment.max(1) };
        let end = end.next_multiple_of(alignment);
        Self {
            alignment,
            least: if least == 0 { FIRST } else { least },
            first: if least == 0 { FIRST } else { least },
            most: if least == 0 { LEAST } else { least },
            own: Vec::new(),
            source: match (ranks, placement) {
                (1, _) => ExtentSource::SingleRank(end),
                (_, Placement::Counter) => ExtentSource::Unset(end),
                (_, Placement::Reserved) => ExtentSource::Reserved(end),
            },
        }
    }

    /// Sets the counter, which must be 0 when the ranks join.
    pub fn count_with(&mut self, reserve: Box<Reserve>) {
        if let ExtentSource::Unset(base) | ExtentSource::Counter(_, base) = &self.source {
            self.source = ExtentSource::Counter(reserve, *base);
        }
    }

    /// The offset from which ranks continue after a commit that ends at `end`: the zero of the counter, or the
    /// start of the next reserved extent.
    pub fn next_base(&mut self, end: u64) -> Result<u64> {
        let end = end
            .checked_next_multiple_of(self.alignment)
            .ok_or_else(too_long)?;
        match &mut self.source {
            ExtentSource::Counter(counter, base) => {
                let counted = counter(0)?;
                // Extents from the counter are before `end`, or unused.
                Ok(end.saturating_sub(counted).max(*base))
            }
            ExtentSource::SingleRank(_) | ExtentSource::Unset(_) | ExtentSource::Reserved(_) => {
                Ok(end)
            }
        }
    }

    /// Continues at `next`, the result of `next_base`.
    pub fn rebase(&mut self, next: u64) {
        self.own.clear();
        self.least = self.first;
        match &mut self.source {
            ExtentSource::SingleRank(base)
            | ExtentSource::Unset(base)
            | ExtentSource::Reserved(base)
            | ExtentSource::Counter(_, base) => *base = next,
        }
    }

    /// Whether extents are reserved when an array is declared.
    pub fn reserves(&self) -> bool {
        matches!(self.source, ExtentSource::Reserved(_))
    }

    /// Reserves an extent for each rank, `bytes` by rank; all ranks must pass the same numbers.
    pub fn reserve(&mut self, rank: u32, bytes: &[u64]) -> Result<()> {
        let ExtentSource::Reserved(end) = &mut self.source else {
            return Ok(());
        };
        for (other, bytes) in (0..).zip(bytes) {
            let start = *end;
            let next = start.checked_add(*bytes);
            *end = next
                .and_then(|next| next.checked_next_multiple_of(self.alignment))
                .ok_or_else(too_long)?;
            if other == rank {
                self.own.push(Extent { start, end: *end });
            }
        }
        Ok(())
    }

    /// Allocates `bytes` and returns their offset, with space for `more` entries of that length after them if
    /// it takes a new extent from the counter; `None` if the reserved extents are too short.
    ///
    /// # Errors
    /// `Invalid` if no counter was set; errors of the counter.
    pub fn allocate(&mut self, bytes: u64, more: u64) -> Result<Option<u64>> {
        if let Some(place) = self.own.iter_mut().find_map(|extent| extent.take(bytes)) {
            return Ok(Some(place));
        }
        match &mut self.source {
            ExtentSource::SingleRank(end) => {
                let start = *end;
                *end = start.checked_add(bytes).ok_or_else(too_long)?;
                Ok(Some(start))
            }
            ExtentSource::Reserved(_) => Ok(None),
            ExtentSource::Unset(_) => Err(Error::invalid(
                "no counter was set that the ranks share; set one, or use reserved extents",
            )),
            ExtentSource::Counter(counter, base) => {
                let run = bytes.saturating_mul(more.saturating_add(1)).min(MOST);
                let wanted = run
                    .max(bytes)
                    .max(self.least)
                    .checked_next_multiple_of(self.alignment);
                let wanted = wanted.ok_or_else(too_long)?;
                self.least = self.least.saturating_mul(2).min(self.most);
                let start = base.checked_add(counter(wanted)?).ok_or_else(too_long)?;
                let end = start.checked_add(wanted).ok_or_else(too_long)?;
                let mut extent = Extent { start, end };
                let place = extent.take(bytes);
                // The extent with more free bytes is kept for the next small entries.
                match self.own.first_mut() {
                    Some(kept) if kept.end - kept.start >= extent.end - extent.start => {}
                    Some(kept) => *kept = extent,
                    None => self.own.push(extent),
                }
                Ok(place)
            }
        }
    }

    /// The offset, after all reserved extents, of the entry number `index` for which these were too short, of
    /// at most `longest` bytes. All ranks must pass the same `longest` and `ranks`.
    pub fn overflow(&self, rank: u32, ranks: u32, index: u64, longest: u64) -> Result<u64> {
        let ExtentSource::Reserved(end) = &self.source else {
            return Err(Error::invalid(
                "extents are allocated by a counter, so none are reserved",
            ));
        };
        let longest = longest.checked_next_multiple_of(self.alignment);
        let slot = index
            .checked_mul(u64::from(ranks))
            .and_then(|slot| slot.checked_add(u64::from(rank)));
        longest
            .zip(slot)
            .and_then(|(longest, slot)| slot.checked_mul(longest)?.checked_add(*end))
            .ok_or_else(too_long)
    }
}

fn too_long() -> Error {
    Error::limit("the file would exceed 2^64 bytes; write less")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_entries_share_an_extent_and_large_ones_get_their_own() {
        let mut extents = Extents::new(4, Placement::Counter, 1000, 4096, 0);
        assert!(extents.allocate(10, 0).is_err());
        let mut counter = 0;
        extents.count_with(Box::new(move |bytes| {
            let before = counter;
            counter += bytes;
            Ok(before)
        }));
        assert_eq!(extents.allocate(10, 0).unwrap(), Some(4096));
        assert_eq!(extents.allocate(10, 0).unwrap(), Some(4106));
        assert_eq!(extents.allocate(5 << 20, 0).unwrap(), Some(4096 + FIRST));
        assert_eq!(extents.allocate(10, 0).unwrap(), Some(4116));
        let next = extents.next_base(4096 + (6 << 20) + 100).unwrap();
        assert_eq!(next, 8192 + LEAST - FIRST);
        extents.rebase(next);
        assert_eq!(extents.allocate(10, 0).unwrap(), Some(8192 + (6 << 20)));
    }

    #[test]
    fn extents_grow_with_the_bytes_that_a_rank_writes() {
        let mut extents = Extents::new(2, Placement::Counter, 0, 4096, 0);
        let taken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let list = std::sync::Arc::clone(&taken);
        extents.count_with(Box::new(move |bytes| {
            let mut list = list.lock().unwrap();
            list.push(bytes);
            Ok(list.iter().sum::<u64>() - bytes)
        }));
        for _ in 0..9 {
            extents.allocate(9000, 0).unwrap();
        }
        assert_eq!(*taken.lock().unwrap(), [FIRST, 2 * FIRST, 4 * FIRST]);
        extents.rebase(0);
        extents.allocate(9000, 0).unwrap();
        assert_eq!(taken.lock().unwrap()[3], FIRST);
    }

    #[test]
    fn reserved_extents_do_not_overlap() {
        let mut places = Vec::new();
        for rank in 0..3 {
            let mut extents = Extents::new(3, Placement::Reserved, 1000, 512, 0);
            extents.reserve(rank, &[100, 600, 0]).unwrap();
            let mut late = 0;
            for bytes in [90, 600] {
                let place = extents.allocate(bytes, 0).unwrap().unwrap_or_else(|| {
                    late += 1;
                    extents.overflow(rank, 3, late - 1, 700).unwrap()
                });
                places.push((place, place + bytes));
            }
        }
        places.sort_unstable();
        assert!(
            places.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "{places:?}"
        );
    }

    #[test]
    fn announced_entries_are_adjacent() {
        let mut extents = Extents::new(2, Placement::Counter, 0, 4096, 0);
        let mut counter = 0;
        extents.count_with(Box::new(move |bytes| {
            let before = counter;
            counter += bytes + (64 << 20); // as if another rank took an extent in between
            Ok(before)
        }));
        let long = 24 << 20;
        let first = extents.allocate(long, 2).unwrap().unwrap();
        assert_eq!(extents.allocate(long, 1).unwrap(), Some(first + long));
        assert_eq!(extents.allocate(long, 0).unwrap(), Some(first + 2 * long));
        let apart = extents.allocate(long, u64::MAX).unwrap().unwrap();
        assert!(apart > first + 3 * long);
        let most = extents.allocate(MOST - long, 0).unwrap();
        assert_eq!(most, Some(apart + long), "larger extents are not taken");
        assert!(extents.allocate(long, 0).unwrap().unwrap() > apart + MOST);
    }

    #[test]
    fn one_rank_leaves_no_gaps() {
        let mut extents = Extents::new(1, Placement::Counter, 1000, 4096, 0);
        assert_eq!(extents.allocate(10, 0).unwrap(), Some(1000));
        assert_eq!(extents.allocate(5, 0).unwrap(), Some(1010));
    }
}
