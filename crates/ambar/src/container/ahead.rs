//! Bytes that were read before they are asked for, several parts with one read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::process::PerProcess;

/// Where a segment begins: the file or object (empty where there is but one), the offset there, and
/// a number that tells segments of the same place apart.
type SegmentKey = (Arc<str>, u64, usize);

/// What has been read ahead and not been released yet.
#[derive(Debug, Default)]
pub struct Cache {
    segments: PerProcess<RwLock<BTreeMap<SegmentKey, Vec<u8>>>>,
    /// How many there are, so that a read from an empty cache costs next to nothing.
    count: AtomicUsize,
    /// The length of the longest of them, or longer: one that begins farther away ends before.
    longest: AtomicUsize,
    next: AtomicUsize,
}

/// Keeps in memory what was read ahead; dropped, it releases it.
#[derive(Debug, Default)]
#[must_use = "what was read ahead is released when this is dropped"]
pub struct Ahead {
    cache: Option<Arc<Cache>>,
    places: Vec<SegmentKey>,
}

impl Cache {
    /// Keeps `segments` (file or object, offset, bytes) until the result is dropped.
    pub fn keep(
        self: &Arc<Self>,
        segments: impl IntoIterator<Item = (Arc<str>, u64, Vec<u8>)>,
    ) -> Ahead {
        let mut kept = self
            .segments
            .get()
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut places = Vec::new();
        for (name, offset, bytes) in segments {
            let place = (name, offset, self.next.fetch_add(1, Ordering::Relaxed));
            places.push(place.clone());
            self.longest.fetch_max(bytes.len(), Ordering::Relaxed);
            kept.insert(place, bytes);
        }
        self.count.store(kept.len(), Ordering::Release);
        Ahead {
            cache: Some(Arc::clone(self)),
            places,
        }
    }

    /// Fills `out` from `offset` of `name`, if all of it is in one segment.
    pub fn fill(&self, name: &Arc<str>, offset: u64, out: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(out.len() as u64) else {
            return false;
        };
        self.with(name, offset, |start, bytes| {
            let held = bytes.get((offset - start) as usize..(end - start) as usize);
            held.map(|held| out.copy_from_slice(held)).is_some()
        })
    }

    /// Whether all of `range` of `name` is in one segment.
    pub fn holds(&self, name: &Arc<str>, range: &Range<u64>) -> bool {
        self.with(name, range.start, |start, bytes| {
            range.end - start <= bytes.len() as u64
        })
    }

    /// Calls `f` with the segments that begin at `offset` or before, the last one first, up to the
    /// first for which it gives true: segments may overlap.
    fn with(&self, name: &Arc<str>, offset: u64, mut f: impl FnMut(u64, &[u8]) -> bool) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let kept = self
            .segments
            .get()
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let longest = self.longest.load(Ordering::Relaxed) as u64;
        let last = (Arc::clone(name), offset, usize::MAX);
        let before = kept.range(..=last).rev();
        before
            .take_while(|((found, start, _), _)| found == name && offset - start < longest)
            .any(|((_, start, _), bytes)| f(*start, bytes))
    }
}

impl Ahead {
    /// Keeps what `other` keeps, too; both are of one container.
    pub fn and(mut self, mut other: Self) -> Self {
        self.cache = self.cache.take().or_else(|| other.cache.clone());
        self.places.append(&mut other.places);
        self
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let Some(cache) = self.cache.as_ref().filter(|_| !self.places.is_empty()) else {
            return;
        };
        let mut kept = cache
            .segments
            .get()
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for place in &self.places {
            kept.remove(place);
        }
        if kept.is_empty() {
            cache.longest.store(0, Ordering::Relaxed);
        }
        cache.count.store(kept.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_until_it_is_released() {
        let cache = Arc::new(Cache::default());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let read = |name, offset, len| {
            let mut out = vec![0; len];
            cache.fill(name, offset, &mut out).then_some(out)
        };
        assert_eq!(read(&a, 10, 1), None);
        let first = cache.keep([
            (a.clone(), 10, vec![1, 2, 3, 4]),
            (b.clone(), 12, vec![9; 2]),
        ]);
        assert_eq!(read(&a, 10, 4), Some(vec![1, 2, 3, 4]));
        assert_eq!(read(&a, 12, 1), Some(vec![3]));
        assert_eq!(read(&b, 13, 1), Some(vec![9]));
        for (offset, len) in [(9, 1), (9, 2), (13, 2), (14, 1), (u64::MAX, 2)] {
            assert_eq!(read(&a, offset, len), None, "{offset}, {len}");
        }
        assert!(cache.holds(&a, &(11..14)) && !cache.holds(&a, &(11..15)));
        let inside = cache.keep([(a.clone(), 11, vec![2])]);
        assert_eq!(
            read(&a, 11, 3),
            Some(vec![2, 3, 4]),
            "of a segment that begins before"
        );
        drop(inside);
        let second = cache.keep([(a.clone(), 10, vec![7; 9])]);
        drop(first);
        assert_eq!(read(&a, 10, 9), Some(vec![7; 9]));
        assert_eq!(read(&b, 12, 1), None);
        drop(second);
        assert_eq!(read(&a, 10, 1), None);
    }
}
