//! Limits on the sizes that a file declares, checked before memory is allocated for them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::process::SetOnce;

/// Upper bounds on sizes read from files. The defaults fit every store this library writes.
///
/// Independently of these limits, no single allocation exceeds [`memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one metadata document (the root's holds the metadata of every node).
    pub metadata_bytes: u64,
    /// Bytes of one ZIP central directory.
    pub directory_bytes: u64,
    /// Bytes of one chunk, decoded or encoded.
    pub chunk_bytes: u64,
    /// Bytes of one shard's index.
    pub shard_index_bytes: u64,
    /// Bytes of one array as its metadata declares it, even if only a part is read.
    pub array_bytes: u64,
    /// Dimensions of an array.
    pub dimensions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            metadata_bytes: 4 << 30,
            directory_bytes: 4 << 30,
            chunk_bytes: 1 << 30,
            shard_index_bytes: 1 << 28,
            array_bytes: 1 << 46,
            dimensions: 32,
        }
    }
}

/// The memory limit of this process in bytes; 0 for the default.
static MEMORY: AtomicU64 = AtomicU64::new(0);

/// The largest size in bytes of an allocation whose size a file determines, such as the values that one
/// read returns. [`set_memory`] sets it; the default is the memory of the machine or of the container.
pub fn memory() -> u64 {
    match MEMORY.load(Ordering::Relaxed) {
        0 => machine_memory(),
        set => set,
    }
}

/// Sets the limit that [`memory`] returns, for the whole process; `None` for the default. Returns the
/// previous limit, `None` if it was the default.
pub fn set_memory(bytes: Option<u64>) -> Option<u64> {
    let set = bytes.map_or(0, |bytes| bytes.max(1));
    let before = MEMORY.swap(set, Ordering::Relaxed);
    (before != 0).then_some(before)
}

/// Checks that `bytes`, the size of `what`, does not exceed the memory limit.
///
/// # Errors
/// `Limit`.
pub fn check_memory(what: &str, bytes: u64) -> Result<usize> {
    let limit = memory();
    match usize::try_from(bytes) {
        Ok(size) if bytes <= limit => Ok(size),
        _ => Err(Error::limit(format!(
            "{what} would take {bytes} bytes, more than the memory limit of {limit}; read a part of it, or \
             raise the limit (in Python: ambar.limits(memory={bytes}))"
        ))),
    }
}

/// Allocates `len` zeros for `what`, or returns an error if the system has no memory for them.
///
/// # Errors
/// `Limit`.
pub(crate) fn zeroed<T: bytemuck::Zeroable + Copy>(what: &str, len: usize) -> Result<Vec<T>> {
    // Unlike a buffer that is resized, memory that the system has cleared is not written here.
    match bytemuck::allocation::try_zeroed_slice_box(len) {
        Ok(zeros) => Ok(zeros.into_vec()),
        Err(()) => Err(no_memory::<T>(what, len)),
    }
}

/// Extends `buffer` to at least `len` elements, or returns an error if the system has no memory for them.
///
/// # Errors
/// `Limit`.
pub(crate) fn resize<T: bytemuck::Zeroable + Copy>(
    buffer: &mut Vec<T>,
    what: &str,
    len: usize,
) -> Result<()> {
    if buffer
        .try_reserve(len.saturating_sub(buffer.len()))
        .is_err()
    {
        return Err(no_memory::<T>(what, len));
    }
    if buffer.len() < len {
        buffer.resize(len, T::zeroed());
    }
    Ok(())
}

fn no_memory<T>(what: &str, len: usize) -> Error {
    let bytes = len.saturating_mul(size_of::<T>());
    Error::limit(format!(
        "cannot allocate {bytes} bytes of memory for {what}; free memory, or read or write less in one call"
    ))
}

/// Bytes of memory that this process may use: those of the machine, or less if its container or the shell
/// (`ulimit -v`) sets a limit.
fn machine_memory() -> u64 {
    // Not a `OnceLock`: a child forked while another thread asks the system would wait for that thread.
    static FOUND: SetOnce<u64> = SetOnce::new();
    *FOUND.get().unwrap_or_else(|| {
        let limits = [physical_memory(), address_space(), cgroup_memory()];
        FOUND.get_or_set(limits.into_iter().flatten().min().unwrap_or(u64::MAX))
    })
}

fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf takes no pointers.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    // SAFETY: as for the call before.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let bytes = u64::try_from(pages)
        .ok()?
        .checked_mul(page.try_into().ok()?)?;
    (bytes > 0).then_some(bytes)
}

fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writes until the call returns.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The smallest limit of this process's control groups; `None` without a limit, or on other systems than Linux.
fn cgroup_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the path may be the host's; then only the root exists.
        let folders = Path::new(path).ancestors().map(|folder| {
            let inside = folder.strip_prefix("/").unwrap_or(folder);
            Path::new(root).join(inside).join(file)
        });
        let limits = folders.filter_map(|file| {
            let limit = std::fs::read_to_string(file).ok()?;
            limit.trim().parse::<u64>().ok()
        });
        limits.min()
    });
    limits.min()
}

impl Limits {
    /// Converts `size` to `usize`, or returns an error if `what`, of that size, exceeds `limit` or [`memory`].
    pub fn check(what: &str, size: u64, limit: u64) -> Result<usize> {
        if size > limit {
            return Err(Error::limit(format!(
                "{what} is {size} bytes, over the limit of {limit}"
            )));
        }
        check_memory(what, size)
    }
}

/// The product of `lengths` and `size`; `None` if it exceeds 2^64 - 1.
pub(crate) fn checked_product(lengths: &[u64], size: u64) -> Option<u64> {
    // The product is 0 even if the other lengths alone overflow.
    if lengths.contains(&0) {
        return Some(0);
    }
    lengths
        .iter()
        .try_fold(size, |product, length| product.checked_mul(*length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_over_the_limit_are_refused() {
        assert_eq!(Limits::check("a chunk", 5, 5).ok(), Some(5));
        assert!(Limits::check("a chunk", 6, 5).is_err());
    }

    #[test]
    fn the_default_is_the_memory_that_there_is() {
        let found = machine_memory();
        assert!((1 << 20..u64::MAX).contains(&found), "{found}");
        assert!(found <= physical_memory().unwrap());
        assert!(check_memory("an array", u64::MAX).is_err());
        assert_eq!(check_memory("an array", 1000).ok(), Some(1000));
    }

    #[test]
    fn what_cannot_be_allocated_is_an_error() {
        assert!(zeroed::<u64>("an index", usize::MAX / 16).is_err());
        assert_eq!(zeroed::<u64>("an index", 2).unwrap(), [0, 0]);
    }
}
