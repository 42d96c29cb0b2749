//! Allocation of the file: the extents into which each rank may write.

use crate::error::{Error, Result};

/// How extents are assigned to the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// From one counter that all share: the file has hardly a gap, at the price of a fetch-and-add
    /// for each extent.
    #[default]
    Counter,
    /// Reserved when an array is declared, as many bytes as the rank's shards hold raw: nobody asks
    /// anybody, but the file has holes where values became smaller.
    Reserved,
}

/// Adds the number it is given to the counter that all ranks share, and returns what it was before.
pub type Reserve = dyn FnMut(u64) -> Result<u64> + Send;

/// Bytes that a rank takes from the counter at least, so that small entries lie side by side: `FIRST` after a
/// commit, and then twice as many each time up to `LEAST`. So a store of few values is a short file.
const FIRST: u64 = 16 << 10;
const LEAST: u64 = 1 << 20;

/// Bytes that a rank takes from the counter at most for entries that do not exist yet.
const MOST: u64 = 256 << 20;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    /// Takes `bytes` from its start, if there are so many.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let start = self.start;
        let next = start.checked_add(bytes).filter(|next| *next <= self.end)?;
        self.start = next;
        Some(start)
    }
}

/// What a rank has of the file.
pub(super) struct Extents {
    alignment: u64,
    /// What a rank takes next from the counter, from what on it grows, and up to what.
    least: u64,
    first: u64,
    most: u64,
    /// Extents with room left: of the counter one, of reserved ones those of each array.
    own: Vec<Extent>,
    source: ExtentSource,
}

enum ExtentSource {
    /// The only rank counts by itself.
    Alone(u64),
    /// The ranks' counter, and where it counts from.
    Counter(Box<Reserve>, u64),
    /// What is reserved ends here.
    Reserved(u64),
    /// A counter is wanted, but not there yet; where it will count from.
    Missing(u64),
}

impl Extents {
    /// The extents of a file that is free from `end` on.
    pub fn new(ranks: u32, placement: Placement, end: u64, alignment: u64, least: u64) -> Self {
        // Nothing is to be kept apart where there is one writer.
        let alignment = if ranks == 1 { 1 } else { alignment.max(1) };
        let end = end.next_multiple_of(alignment);
        Self {
            alignment,
            least: if least == 0 { FIRST } else { least },
            first: if least == 0 { FIRST } else { least },
            most: if least == 0 { LEAST } else { least },
            own: Vec::new(),
            source: match (ranks, placement) {
                (1, _) => ExtentSource::Alone(end),
                (_, Placement::Counter) => ExtentSource::Missing(end),
                (_, Placement::Reserved) => ExtentSource::Reserved(end),
            },
        }
    }

    /// Uses a counter, which was 0 when the ranks came together.
    pub fn count_with(&mut self, reserve: Box<Reserve>) {
        if let ExtentSource::Missing(base) | ExtentSource::Counter(_, base) = &self.source {
            self.source = ExtentSource::Counter(reserve, *base);
        }
    }

    /// Where all ranks are to go on after a commit, behind which the file is free from `end` on: what
    /// the counter counts from, or what is to be reserved next.
    pub fn next_base(&mut self, end: u64) -> Result<u64> {
        let end = end
            .checked_next_multiple_of(self.alignment)
            .ok_or_else(too_long)?;
        match &mut self.source {
            ExtentSource::Counter(counter, base) => {
                let counted = counter(0)?;
                // What was counted lies before `end`, or is given up.
                Ok(end.saturating_sub(counted).max(*base))
            }
            ExtentSource::Alone(_) | ExtentSource::Missing(_) | ExtentSource::Reserved(_) => {
                Ok(end)
            }
        }
    }

    /// Continues from there.
    pub fn rebase(&mut self, next: u64) {
        self.own.clear();
        self.least = self.first;
        match &mut self.source {
            ExtentSource::Alone(base)
            | ExtentSource::Missing(base)
            | ExtentSource::Reserved(base)
            | ExtentSource::Counter(_, base) => *base = next,
        }
    }

    /// Whether places are reserved when an array is declared.
    pub fn reserves(&self) -> bool {
        matches!(self.source, ExtentSource::Reserved(_))
    }

    /// Reserves room for all ranks, `bytes` by rank; all must call it with the same numbers.
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

    /// A place for `bytes`, with room for `more` entries of that length behind it where it comes from a
    /// counter; `None` where what was reserved is used up.
    ///
    /// # Errors
    /// `Invalid` where the ranks' counter is missing; what the counter returns.
    pub fn place(&mut self, bytes: u64, more: u64) -> Result<Option<u64>> {
        if let Some(place) = self.own.iter_mut().find_map(|extent| extent.take(bytes)) {
            return Ok(Some(place));
        }
        match &mut self.source {
            ExtentSource::Alone(end) => {
                let start = *end;
                *end = start.checked_add(bytes).ok_or_else(too_long)?;
                Ok(Some(start))
            }
            ExtentSource::Reserved(_) => Ok(None),
            ExtentSource::Missing(_) => Err(Error::invalid(
                "the ranks share no counter; give one, or have places reserved",
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
                // What has most room left serves the next small entries.
                match self.own.first_mut() {
                    Some(kept) if kept.end - kept.start >= extent.end - extent.start => {}
                    Some(kept) => *kept = extent,
                    None => self.own.push(extent),
                }
                Ok(place)
            }
        }
    }

    /// A place for the entry number `index` of those for which nothing was reserved, of `longest`
    /// bytes at most. All ranks must say the same `longest`.
    pub fn behind(&self, (rank, ranks): (u32, u32), index: u64, longest: u64) -> Result<u64> {
        let ExtentSource::Reserved(end) = &self.source else {
            return Err(Error::invalid(
                "nothing is reserved where a counter is used",
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
    Error::limit("the file would pass 2^64 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_entries_share_an_extent_and_large_ones_get_their_own() {
        let mut extents = Extents::new(4, Placement::Counter, 1000, 4096, 0);
        assert!(extents.place(10, 0).is_err());
        let mut counter = 0;
        extents.count_with(Box::new(move |bytes| {
            let before = counter;
            counter += bytes;
            Ok(before)
        }));
        assert_eq!(extents.place(10, 0).unwrap(), Some(4096));
        assert_eq!(extents.place(10, 0).unwrap(), Some(4106));
        assert_eq!(extents.place(5 << 20, 0).unwrap(), Some(4096 + FIRST));
        assert_eq!(extents.place(10, 0).unwrap(), Some(4116));
        let next = extents.next_base(4096 + (6 << 20) + 100).unwrap();
        assert_eq!(next, 8192 + LEAST - FIRST);
        extents.rebase(next);
        assert_eq!(extents.place(10, 0).unwrap(), Some(8192 + (6 << 20)));
    }

    #[test]
    fn extents_grow_with_what_a_rank_writes() {
        let mut extents = Extents::new(2, Placement::Counter, 0, 4096, 0);
        let taken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let list = std::sync::Arc::clone(&taken);
        extents.count_with(Box::new(move |bytes| {
            let mut list = list.lock().unwrap();
            list.push(bytes);
            Ok(list.iter().sum::<u64>() - bytes)
        }));
        for _ in 0..9 {
            extents.place(9000, 0).unwrap();
        }
        assert_eq!(*taken.lock().unwrap(), [FIRST, 2 * FIRST, 4 * FIRST]);
        extents.rebase(0);
        extents.place(9000, 0).unwrap();
        assert_eq!(taken.lock().unwrap()[3], FIRST);
    }

    #[test]
    fn reserved_extents_do_not_meet() {
        let mut places = Vec::new();
        for rank in 0..3 {
            let mut extents = Extents::new(3, Placement::Reserved, 1000, 512, 0);
            extents.reserve(rank, &[100, 600, 0]).unwrap();
            let mut late = 0;
            for bytes in [90, 600] {
                let place = extents.place(bytes, 0).unwrap().unwrap_or_else(|| {
                    late += 1;
                    extents.behind((rank, 3), late - 1, 700).unwrap()
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
    fn entries_that_are_announced_lie_behind_each_other() {
        let mut extents = Extents::new(2, Placement::Counter, 0, 4096, 0);
        let mut counter = 0;
        extents.count_with(Box::new(move |bytes| {
            let before = counter;
            counter += bytes + (64 << 20); // as if another rank were served in between
            Ok(before)
        }));
        let long = 24 << 20;
        let first = extents.place(long, 2).unwrap().unwrap();
        assert_eq!(extents.place(long, 1).unwrap(), Some(first + long));
        assert_eq!(extents.place(long, 0).unwrap(), Some(first + 2 * long));
        let apart = extents.place(long, u64::MAX).unwrap().unwrap();
        assert!(apart > first + 3 * long);
        let most = extents.place(MOST - long, 0).unwrap();
        assert_eq!(most, Some(apart + long), "no more is taken ahead than this");
        assert!(extents.place(long, 0).unwrap().unwrap() > apart + MOST);
    }

    #[test]
    fn one_rank_leaves_no_gaps() {
        let mut extents = Extents::new(1, Placement::Counter, 1000, 4096, 0);
        assert_eq!(extents.place(10, 0).unwrap(), Some(1000));
        assert_eq!(extents.place(5, 0).unwrap(), Some(1010));
    }
}
