//! Fork safety: a forked child inherits locks that none of its threads will release, and objects that
//! only its parent may use.
//!
//! [`Process`] distinguishes a process from its forked children. [`PerProcess`] gives a child a new value
//! in place of the inherited one. [`SetOnce`] is a `OnceLock` without a lock. [`start_threads`] starts threads
//! between two forks, never during one.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The number of forks between the process that loaded the library and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Whether the handlers of forks are registered.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Locked while this library starts threads, and while the process forks.
static STARTING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The lock of [`STARTING`], while this thread forks.
    static FORKING: Cell<Option<ManuallyDrop<MutexGuard<'static, ()>>>> = const { Cell::new(None) };
}

extern "C" fn before_fork() {
    let lock = FORKING.take().unwrap_or_else(|| {
        ManuallyDrop::new(STARTING.lock().unwrap_or_else(PoisonError::into_inner))
    });
    FORKING.set(Some(lock));
}

extern "C" fn after_fork() {
    drop(FORKING.take().map(ManuallyDrop::into_inner));
}

extern "C" fn after_fork_in_child() {
    after_fork();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Runs `start`, which starts threads, while no other thread forks. A fork waits until `start` returns. `start` must
/// not fork, call this function, or wait for another thread.
///
/// The GNU C library (up to version 2.36 or later) reuses the stacks of ended threads: it frees a part of a stack,
/// then clears the pointer to that part. A child that is forked in between frees the part again, and aborts, when it
/// starts its first thread.
pub fn start_threads<T>(start: impl FnOnce() -> T) -> T {
    register_handlers();
    let _lock = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    start()
}

/// Registers the handlers of forks.
fn register_handlers() {
    // Two threads may both register the handlers: they lock once, and a fork then counts as two, which does
    // no harm. A `Once` would be a lock that a child can inherit.
    if !IS_REGISTERED.load(Ordering::Acquire) {
        // SAFETY: the handlers do not unwind. Those in the child only release a lock that the forking thread
        // holds, and count; neither allocates, nor waits for another thread.
        let status = unsafe {
            libc::pthread_atfork(
                Some(before_fork),
                Some(after_fork),
                Some(after_fork_in_child),
            )
        };
        IS_REGISTERED.store(status == 0, Ordering::Release);
    }
}

/// The number of forks. It differs between a process and all its descendants. Process ids do not have this
/// property: a grandchild may get the id of its dead grandparent.
fn forks() -> u64 {
    register_handlers();
    FORKS.load(Ordering::Relaxed)
}

/// Initializes the values that dependencies of this crate would otherwise make once, on first use. A child
/// forked while another thread initializes such a value would wait for that thread forever. A program that
/// forks while threads run calls this before it starts them; the Python module calls it on import.
pub fn prepare() {
    register_handlers();
    crc_fast::crc32_iscsi(b"");
    crc32fast::hash(b"");
    crossbeam_epoch::pin();
}

/// The process that created an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    forks: u64,
    id: u32,
}

impl Process {
    /// The calling process.
    pub fn current() -> Self {
        Self {
            forks: forks(),
            id: std::process::id(),
        }
    }

    /// Whether the calling process is this one, and not a forked child of it.
    pub fn is_current(self) -> bool {
        self.forks == forks()
    }

    /// Fails in a forked child of this process.
    ///
    /// # Errors
    /// `Invalid`, in a forked child.
    pub fn check(self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "process {} opened this writer and process {} is a forked child of it, which must not use \
             it; open the store in the child, after the parent has closed its writer",
            self.id,
            std::process::id()
        )))
    }
}

/// A value of which each process has its own. A forked child starts with a new one: the inherited value may
/// be locked, or half changed, by a thread that does not exist in the child. The child neither uses nor frees
/// the inherited value.
pub struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
    value: PhantomData<T>,
}

struct Owned<T> {
    forks: u64,
    value: T,
}

impl<T> PerProcess<T> {
    /// No value yet; [`get`](Self::get) makes it on first use.
    pub const fn new() -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            value: PhantomData,
        }
    }
}

impl<T: Default + Send + Sync> PerProcess<T> {
    /// The value of the calling process.
    pub fn get(&self) -> &T {
        let forks = forks();
        let mut found = self.current.load(Ordering::Acquire);
        loop {
            // SAFETY: a pointer that was stored is null, or came from `Box::into_raw` and is freed by
            // `drop` only, which has exclusive access.
            if let Some(owned) = unsafe { found.as_ref() }
                && owned.forks == forks
            {
                return &owned.value;
            }
            let value = T::default();
            let new = Box::into_raw(Box::new(Owned { forks, value }));
            let stored =
                self.current
                    .compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire);
            found = match stored {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: `new` came from `Box::into_raw` above, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    other
                }
            };
        }
    }
}

impl<T: Default + Send> PerProcess<Mutex<T>> {
    /// Locks the value of the calling process.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.get().lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: as in `get`.
        if unsafe { current.as_ref() }.is_some_and(|owned| owned.forks == forks()) {
            // SAFETY: it came from `Box::into_raw`, and `&mut self` says that nothing refers to it.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PerProcess")
    }
}

/// A value that is set once and never changes, so that a forked child shares it with its parent. Unlike a
/// `OnceLock` it has no state in which a reader waits for a writer.
pub struct SetOnce<T> {
    value: AtomicPtr<T>,
    owned: PhantomData<T>,
}

impl<T> SetOnce<T> {
    /// No value yet.
    pub const fn new() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// The value, if it was set.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: a pointer that was stored is null, or came from `Box::into_raw`, and is neither
        // replaced nor freed before `drop`, which has exclusive access.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }
}

impl<T: Send + Sync> SetOnce<T> {
    /// Sets `value`, unless another value was set before; returns the value that is set.
    pub fn get_or_set(&self, value: T) -> &T {
        let new = Box::into_raw(Box::new(value));
        let none = ptr::null_mut();
        let stored = self
            .value
            .compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire);
        let found = match stored {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw` above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: as in `get`; it is not null.
        unsafe { &*found }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self {
            value: AtomicPtr::new(Box::into_raw(Box::new(value))),
            owned: PhantomData,
        }
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: it came from `Box::into_raw`, and `&mut self` says that nothing refers to it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SetOnce").field(&self.get()).finish()
    }
}

/// Runs `act` in a forked child. Returns whether it ended, within ten seconds, without a panic.
#[cfg(test)]
pub(crate) fn succeeds_in_child(act: impl FnOnce()) -> bool {
    // SAFETY: the child runs `act` on its only thread and ends without returning here.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: no handler is installed for this signal, which ends the process.
            unsafe { libc::alarm(10) };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            // SAFETY: ends the child immediately, without the exit handlers of its parent.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the child belongs to this process, and the status lives until the call returns.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            status == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_forked_child_has_new_values_and_waits_for_no_lock() {
        let value: PerProcess<Mutex<u32>> = PerProcess::new();
        let once = SetOnce::new();
        assert!(once.get().is_none());
        assert_eq!((once.get_or_set(5), once.get_or_set(6)), (&5, &5));
        let process = Process::current();
        *value.lock() = 7;
        let held = value.lock();
        assert!(succeeds_in_child(|| {
            assert_eq!(*value.lock(), 0);
            *value.lock() = 8;
            assert_eq!((*value.lock(), once.get()), (8, Some(&5)));
            assert!(process.check().is_err());
            let own = Process::current();
            assert!(own.check().is_ok());
        }));
        drop(held);
        assert_eq!(*value.lock(), 7);
        assert!(process.check().is_ok());
    }

    #[test]
    fn values_are_made_once_and_freed() {
        let counted = Arc::new(());
        let value: PerProcess<Mutex<Option<Arc<()>>>> = PerProcess::default();
        *value.lock() = Some(Arc::clone(&counted));
        let once = SetOnce::from(Arc::clone(&counted));
        assert_eq!(Arc::strong_count(once.get_or_set(Arc::clone(&counted))), 3);
        drop((value, once));
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
