//! Parallel loops, and the pools of threads that run them.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::error::{Error, Result};
use crate::process::{PerProcess, start_threads};

/// Maximum number of cached pools.
const CACHED_POOLS: usize = 4;

/// Maximum number of threads of a request.
pub const MAX_THREADS: usize = 1024;
/// Maximum threads of a pool for each processor: more only wait, and thousands of idle threads of rayon, which
/// look for work in turn, keep all processors busy.
const THREADS_PER_PROCESSOR: usize = 4;

/// Pools, the most recently used at the end. A forked child does not have its parent's
/// threads, so it creates its own pools.
static POOLS: PerProcess<Mutex<Vec<Arc<ThreadPool>>>> = PerProcess::new();

/// The default number of threads: the number of processors that this process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Checks a requested number of threads.
///
/// # Errors
/// `Invalid` if it is not in the range from 1 to [`MAX_THREADS`].
pub fn check_threads(threads: usize) -> Result<()> {
    if (1..=MAX_THREADS).contains(&threads) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "invalid number of threads: {threads}; expected an integer from 1 to {MAX_THREADS}"
    )))
}

/// Runs `f` on a pool of `threads` threads (`None`: [`default_threads`]), so that every parallel
/// loop in it, rayon's own included, uses just those. `Some(1)` uses one thread, truly. The pool
/// has at most four threads for each processor.
///
/// The last [`CACHED_POOLS`] pools are kept for the next call, by number of threads.
///
/// # Errors
/// As [`check_threads`]; `Io` if the system gives no more threads; otherwise what `f` returns.
pub fn with_threads<T: Send>(
    threads: Option<usize>,
    f: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let threads = threads.unwrap_or_else(|| default_threads().min(MAX_THREADS));
    check_threads(threads)?;
    let most = default_threads().saturating_mul(THREADS_PER_PROCESSOR);
    pool(threads.min(most))?.install(f)
}

thread_local! {
    /// Whether loops run on this thread.
    static IS_SEQUENTIAL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, and [`try_for_each`] and [`try_map`] in it, on the calling thread: faster for work that takes
/// no longer than waking another thread.
pub fn on_this_thread<T>(f: impl FnOnce() -> T) -> T {
    /// Restores the flag, after a panic as well.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_SEQUENTIAL.set(self.0);
        }
    }
    let _restore = Restore(IS_SEQUENTIAL.replace(true));
    f()
}

/// Whether a loop of `count` calls runs on the calling thread.
fn is_sequential(count: usize) -> bool {
    count <= 1 || IS_SEQUENTIAL.get() || (in_a_pool() && rayon::current_num_threads() == 1)
}

/// Whether this thread belongs to a pool, of this library or of the program.
///
/// Other threads must not call rayon: it would start its global pool, for whose threads a
/// forked child would wait forever.
fn in_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// The pool of `threads` threads. The lock is held while a new pool is built, so that concurrent calls share it.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let mut pools = POOLS.lock();
    let cached = (pools.iter()).position(|pool| pool.current_num_threads() == threads);
    let pool = match cached {
        Some(index) => pools.remove(index),
        None => Arc::new(build(threads)?),
    };
    pools.push(Arc::clone(&pool));
    // The threads of a pool end with its last call.
    let dropped = (pools.len() > CACHED_POOLS).then(|| pools.remove(0));
    drop(pools);
    drop(dropped);
    Ok(pool)
}

fn build(threads: usize) -> Result<ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("ambar-{index}"));
    start_threads(|| builder.build()).map_err(|error| {
        let message = format!("starting {threads} threads: {error}; use fewer threads");
        Error::new(crate::ErrorKind::Io, message)
    })
}

/// Calls `f` with each of `0..count`, in parallel on the current pool, or outside of a pool on that of
/// [`with_threads`]. With a single thread or a single call, it runs in order on the calling thread.
///
/// # Errors
/// One of the errors of `f`, after which no more calls start. `Io` if the system cannot start threads.
pub fn try_for_each(count: usize, f: impl Fn(usize) -> Result<()> + Send + Sync) -> Result<()> {
    if is_sequential(count) {
        (0..count).try_for_each(f)
    } else if !in_a_pool() {
        with_threads(None, || try_for_each(count, f))
    } else {
        (0..count).into_par_iter().with_max_len(1).try_for_each(f)
    }
}

/// The results of `f` for each of `0..count`, in order; computed as by [`try_for_each`].
///
/// # Errors
/// One of the errors of `f`. `Io` if the system cannot start threads.
pub fn try_map<T: Send>(
    count: usize,
    f: impl Fn(usize) -> Result<T> + Send + Sync,
) -> Result<Vec<T>> {
    if is_sequential(count) {
        (0..count).map(f).collect()
    } else if !in_a_pool() {
        with_threads(None, || try_map(count, f))
    } else {
        (0..count).into_par_iter().with_max_len(1).map(f).collect()
    }
}

/// The results of `a` and `b`, which run concurrently if [`try_map`] would use two threads,
/// otherwise one after the other.
///
/// # Errors
/// The error of `a` or of `b`. `Io` if the system cannot start threads.
pub fn try_join<A: Send, B: Send>(
    a: impl FnOnce() -> Result<A> + Send,
    b: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    if is_sequential(2) {
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
    fn loops_use_the_requested_number_of_threads() {
        for threads in [1, 2, 3] {
            let seen = with_threads(Some(threads), || Ok(rayon::current_num_threads())).unwrap();
            assert_eq!(seen, threads);
        }
        assert!(with_threads(Some(0), || Ok(())).is_err());
        assert!(with_threads(Some(MAX_THREADS + 1), || Ok(())).is_err());
    }

    #[test]
    fn pools_have_at_most_four_threads_for_each_processor() {
        let most = THREADS_PER_PROCESSOR * default_threads();
        let threads = with_threads(Some(MAX_THREADS), || Ok(rayon::current_num_threads())).unwrap();
        assert_eq!(threads, most.min(MAX_THREADS));
    }

    #[test]
    fn a_child_forked_while_a_pool_is_built_creates_its_own_pools() {
        // In the child, a thread of the parent holds the lock forever.
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
    fn the_least_recently_used_pools_are_dropped() {
        for threads in 1..=CACHED_POOLS + 3 {
            with_threads(Some(threads), || Ok(())).unwrap();
            assert!(POOLS.lock().len() <= CACHED_POOLS);
        }
    }

    #[test]
    fn on_this_thread_uses_no_other_thread() {
        let here = std::thread::current().id();
        let seen = on_this_thread(|| try_map(50, |_| Ok(std::thread::current().id())));
        assert!(seen.unwrap().iter().all(|id| *id == here));
        assert!(std::panic::catch_unwind(|| on_this_thread(|| panic!("out"))).is_err());
        assert!(!IS_SEQUENTIAL.get());
    }

    #[test]
    fn loops_outside_of_a_pool_do_not_use_the_global_one() {
        let names = || std::thread::current().name().map(str::to_owned);
        let name_of = |_| Ok(names());
        let (a, b) = try_join(|| name_of(0), || name_of(1)).unwrap();
        let mut seen = try_map(20, name_of).unwrap();
        seen.extend([a, b]);
        let ours = |name: &Option<String>| name.as_ref().is_some_and(|n| n.starts_with("ambar-"));
        assert!(default_threads() == 1 || seen.iter().all(ours), "{seen:?}");
        let (a, b) = on_this_thread(|| try_join(|| name_of(0), || name_of(1))).unwrap();
        assert_eq!([a, b], [names(), names()]);
    }

    #[test]
    fn every_index_is_visited_once_and_errors_are_returned() {
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
