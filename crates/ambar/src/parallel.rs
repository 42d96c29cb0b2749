//! Threads: how many a call may use, and the pools behind it.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::error::{Error, Result};
use crate::process::PerProcess;

/// Pools that are kept for the next call.
const KEPT_POOLS: usize = 4;

/// Pools, the last used at the end. A forked child has none of its parent's
/// threads, so it makes its own.
static POOLS: PerProcess<Mutex<Vec<Arc<ThreadPool>>>> = PerProcess::new();

/// Threads used where the caller does not say: as many as this process may run on.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `f` on a pool of `threads` threads (`None`: [`default_threads`]), so that every parallel
/// loop in it, rayon's own included, uses just those. `Some(1)` uses one thread, truly.
///
/// The last [`KEPT_POOLS`] pools are kept for the next call, by number of threads.
///
/// # Errors
/// `Invalid` for 0 threads; `Io` where the system gives no more threads; else what `f` returns.
pub fn with_threads<T: Send>(
    threads: Option<usize>,
    f: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let threads = threads.unwrap_or_else(default_threads);
    if threads == 0 {
        return Err(Error::invalid(
            "0 threads cannot do anything; ask for 1 or more",
        ));
    }
    pool(threads)?.install(f)
}

thread_local! {
    /// Whether loops are to stay on this thread.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on the calling thread, and [`try_for_each`] and [`try_map`] in it too: what takes no longer
/// than waking another thread is done sooner so.
pub fn alone<T>(f: impl FnOnce() -> T) -> T {
    /// Sets the flag back, after a panic too.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    f()
}

/// Whether a loop of `count` calls runs on the calling thread only.
fn stays_here(count: usize) -> bool {
    count <= 1 || ALONE.get() || (in_a_pool() && rayon::current_num_threads() == 1)
}

/// Whether this thread belongs to a pool, ours or the program's own.
///
/// Other threads may not ask rayon for anything: it would start its global pool, whose threads a
/// forked child would wait for in vain.
fn in_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// The pool of so many threads. The lock is held while a new one is built, so that threads that ask for the
/// same one at the same time share it.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let mut pools = POOLS.lock();
    let kept = (pools.iter()).position(|pool| pool.current_num_threads() == threads);
    let pool = match kept {
        Some(index) => pools.remove(index),
        None => Arc::new(build(threads)?),
    };
    pools.push(Arc::clone(&pool));
    // The threads of a pool end with its last call.
    let dropped = (pools.len() > KEPT_POOLS).then(|| pools.remove(0));
    drop(pools);
    drop(dropped);
    Ok(pool)
}

fn build(threads: usize) -> Result<ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("ambar-{index}"))
        .build()
        .map_err(|error| Error::new(crate::ErrorKind::Io, format!("starting threads: {error}")))
}

/// Calls `f` with each of `0..count`, in parallel on the current pool (or, outside of one, on that of
/// [`with_threads`]) where there is more than one thread and more than one call to make; else in
/// order, on the calling thread.
///
/// # Errors
/// One of the errors that `f` returned; calls not yet begun are then left out. `Io` where the system
/// gives no threads.
pub fn try_for_each(count: usize, f: impl Fn(usize) -> Result<()> + Send + Sync) -> Result<()> {
    if stays_here(count) {
        (0..count).try_for_each(f)
    } else if !in_a_pool() {
        with_threads(None, || try_for_each(count, f))
    } else {
        (0..count).into_par_iter().with_max_len(1).try_for_each(f)
    }
}

/// What `f` gives for each of `0..count`, in order; computed as by [`try_for_each`].
///
/// # Errors
/// One of the errors that `f` returned. `Io` where the system gives no threads.
pub fn try_map<T: Send>(
    count: usize,
    f: impl Fn(usize) -> Result<T> + Send + Sync,
) -> Result<Vec<T>> {
    if stays_here(count) {
        (0..count).map(f).collect()
    } else if !in_a_pool() {
        with_threads(None, || try_map(count, f))
    } else {
        (0..count).into_par_iter().with_max_len(1).map(f).collect()
    }
}

/// What `a` and `b` give, which are called at the same time where [`try_map`] would use two threads;
/// else one after the other.
///
/// # Errors
/// The error that `a` returned, or that `b` did. `Io` where the system gives no threads.
pub fn try_join<A: Send, B: Send>(
    a: impl FnOnce() -> Result<A> + Send,
    b: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    if stays_here(2) {
        Ok((a()?, b()?))
    } else if !in_a_pool() {
        with_threads(None, || try_join(a, b))
    } else {
        let (a, b) = rayon::join(a, b);
        Ok((a?, b?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn loops_use_the_threads_asked_for() {
        for threads in [1, 2, 3] {
            let seen = with_threads(Some(threads), || Ok(rayon::current_num_threads())).unwrap();
            assert_eq!(seen, threads);
        }
        assert!(with_threads(Some(0), || Ok(())).is_err());
    }

    #[test]
    fn a_child_forked_while_a_pool_is_built_has_pools_of_its_own() {
        // A thread of the parent holds the lock for good, as far as the child can see.
        let held = POOLS.lock();
        assert!(crate::process::succeeds_in_child(|| {
            let sum = AtomicUsize::new(0);
            let add = |index| {
                sum.fetch_add(index, Ordering::Relaxed);
                Ok(())
            };
            with_threads(Some(2), || try_for_each(100, add)).unwrap();
            assert_eq!(sum.into_inner(), 99 * 50);
        }));
        drop(held);
    }

    #[test]
    fn pools_that_were_not_used_lately_are_dropped() {
        for threads in 1..=KEPT_POOLS + 3 {
            with_threads(Some(threads), || Ok(())).unwrap();
            assert!(POOLS.lock().len() <= KEPT_POOLS);
        }
    }

    #[test]
    fn alone_means_on_this_thread() {
        let here = std::thread::current().id();
        let seen = alone(|| try_map(50, |_| Ok(std::thread::current().id())));
        assert!(seen.unwrap().iter().all(|id| *id == here));
        assert!(std::panic::catch_unwind(|| alone(|| panic!("out"))).is_err());
        assert!(!ALONE.get());
    }

    #[test]
    fn loops_outside_of_a_pool_use_ours_and_not_the_global_one() {
        let names = || std::thread::current().name().map(str::to_owned);
        let name_of = |_| Ok(names());
        let (a, b) = try_join(|| name_of(0), || name_of(1)).unwrap();
        let mut seen = try_map(20, name_of).unwrap();
        seen.extend([a, b]);
        let ours = |name: &Option<String>| name.as_ref().is_some_and(|n| n.starts_with("ambar-"));
        assert!(default_threads() == 1 || seen.iter().all(ours), "{seen:?}");
        let (a, b) = alone(|| try_join(|| name_of(0), || name_of(1))).unwrap();
        assert_eq!([a, b], [names(), names()]);
    }

    #[test]
    fn every_index_is_visited_once_and_errors_come_out() {
        let sum = AtomicUsize::new(0);
        with_threads(Some(2), || {
            try_for_each(1000, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(sum.into_inner(), 999 * 500);
        let failed = try_for_each(10, |i| {
            if i == 7 {
                Err(Error::invalid("seven"))
            } else {
                Ok(())
            }
        });
        assert_eq!(failed.unwrap_err().message(), "seven");
    }
}
