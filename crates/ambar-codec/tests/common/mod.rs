//! Helpers of the tests of damaged streams: a counting allocator, and pseudorandom numbers.

use std::alloc::{GlobalAlloc, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An allocator that counts allocated bytes.
struct Counting;
/// The number of allocated bytes.
pub static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
/// The maximum of `ALLOCATED` since it was last reset.
pub static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        PEAK.fetch_max(
            ALLOCATED.fetch_add(layout.size(), Relaxed) + layout.size(),
            Relaxed,
        );
        // SAFETY: the caller fulfils the contract of `alloc`, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller fulfils the contract of `dealloc`, which is that of the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reproducible pseudorandom numbers.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}
