//! Reading ahead: bytes that are fetched before they are needed, several parts in one request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::process::PerProcess;

/// The start of a segment. The field order is the order of the segments in the cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SegmentKey {
    /// The file or object; empty if the container has only one.
    name: Arc<str>,
    offset: u64,
    /// Distinguishes segments that start at the same offset.
    number: usize,
}

/// Bytes of a file or object.
pub struct Segment {
    /// The file or object; empty if the container has only one.
    pub name: Arc<str>,
    /// The offset of the first byte.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// The segments that have been read ahead and are not released yet.
#[derive(Debug, Default)]
pub struct SegmentCache {
    segments: PerProcess<RwLock<BTreeMap<SegmentKey, Vec<u8>>>>,
    /// The number of segments, which makes reads from an empty cache cheap.
    count: AtomicUsize,
    /// An upper bound of the segments' lengths: segments that start farther before a byte do not contain it.
    longest: AtomicUsize,
    next: AtomicUsize,
}

/// Keeps the bytes that were read ahead in memory until it is dropped.
#[derive(Debug, Default)]
#[must_use = "the bytes that were read ahead are released when this is dropped"]
pub struct ReadAhead {
    cache: Option<Arc<SegmentCache>>,
    keys: Vec<SegmentKey>,
}

impl SegmentCache {
    /// Keeps `segments` until the result is dropped.
    pub fn insert(self: &Arc<Self>, segments: impl IntoIterator<Item = Segment>) -> ReadAhead {
        let mut cached = self
            .segments
            .get()
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut keys = Vec::new();
        for segment in segments {
            let key = SegmentKey {
                name: segment.name,
                offset: segment.offset,
                number: self.next.fetch_add(1, Ordering::Relaxed),
            };
            keys.push(key.clone());
            let bytes = segment.bytes;
            self.longest.fetch_max(bytes.len(), Ordering::Relaxed);
            cached.insert(key, bytes);
        }
        self.count.store(cached.len(), Ordering::Release);
        ReadAhead {
            cache: Some(Arc::clone(self)),
            keys,
        }
    }

    /// Fills `out` from `offset` of `name`, if all of it is in one segment.
    pub fn fill(&self, name: &Arc<str>, offset: u64, out: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(out.len() as u64) else {
            return false;
        };
        self.with(name, offset, |start, bytes| {
            let found = bytes.get((offset - start) as usize..(end - start) as usize);
            found.map(|found| out.copy_from_slice(found)).is_some()
        })
    }

    /// Whether all of `range` of `name` is in one segment.
    pub fn contains(&self, name: &Arc<str>, range: &Range<u64>) -> bool {
        self.with(name, range.start, |start, bytes| {
            range.end - start <= bytes.len() as u64
        })
    }

    /// Calls `f` with the segments that start at or before `offset`, last one first, until it returns
    /// true. Segments may overlap.
    fn with(&self, name: &Arc<str>, offset: u64, mut f: impl FnMut(u64, &[u8]) -> bool) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let cached = self
            .segments
            .get()
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let longest = self.longest.load(Ordering::Relaxed) as u64;
        let last = SegmentKey {
            name: Arc::clone(name),
            offset,
            number: usize::MAX,
        };
        let before = cached.range(..=last).rev();
        before
            .take_while(|(key, _)| key.name == *name && offset - key.offset < longest)
            .any(|(key, bytes)| f(key.offset, bytes))
    }
}

impl ReadAhead {
    /// Keeps the bytes of `other` as well; both must be of one container.
    pub fn and(mut self, mut other: Self) -> Self {
        self.cache = self.cache.take().or_else(|| other.cache.clone());
        self.keys.append(&mut other.keys);
        self
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let Some(cache) = self.cache.as_ref().filter(|_| !self.keys.is_empty()) else {
            return;
        };
        let mut cached = cache
            .segments
            .get()
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            cached.remove(key);
        }
        if cached.is_empty() {
            cache.longest.store(0, Ordering::Relaxed);
        }
        cache.count.store(cached.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_until_they_are_released() {
        let cache = Arc::new(SegmentCache::default());
        let segment = |name: &Arc<str>, offset, bytes| Segment {
            name: Arc::clone(name),
            offset,
            bytes,
        };
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let read = |name, offset, len| {
            let mut out = vec![0; len];
            cache.fill(name, offset, &mut out).then_some(out)
        };
        assert_eq!(read(&a, 10, 1), None);
        let first = cache.insert([
            segment(&a, 10, vec![1, 2, 3, 4]),
            segment(&b, 12, vec![9; 2]),
        ]);
        assert_eq!(read(&a, 10, 4), Some(vec![1, 2, 3, 4]));
        assert_eq!(read(&a, 12, 1), Some(vec![3]));
        assert_eq!(read(&b, 13, 1), Some(vec![9]));
        for (offset, len) in [(9, 1), (9, 2), (13, 2), (14, 1), (u64::MAX, 2)] {
            assert_eq!(read(&a, offset, len), None, "{offset}, {len}");
        }
        assert!(cache.contains(&a, &(11..14)) && !cache.contains(&a, &(11..15)));
        let inside = cache.insert([segment(&a, 11, vec![2])]);
        assert_eq!(
            read(&a, 11, 3),
            Some(vec![2, 3, 4]),
            "a segment that starts earlier"
        );
        drop(inside);
        let second = cache.insert([segment(&a, 10, vec![7; 9])]);
        drop(first);
        assert_eq!(read(&a, 10, 9), Some(vec![7; 9]));
        assert_eq!(read(&b, 12, 1), None);
        drop(second);
        assert_eq!(read(&a, 10, 1), None);
    }
}
