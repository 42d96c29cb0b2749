//! What both containers need of the file system: exact reads, locks, temporary names, fsyncs.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Durability;
use crate::error::{Error, Result};

/// Bytes of one read when a whole file is read.
pub const PIECE: u64 = 1 << 20;

/// Slices that are read or written with one call at most; systems take 1024.
const SLICES: usize = 512;

#[cfg(test)]
thread_local! {
    /// How often this thread has read from a file.
    pub static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn count_read() {
    #[cfg(test)]
    READS.set(READS.get() + 1);
}

/// Fills `out` from `offset` of `file`; an end of the file before that is `Corrupt`.
pub fn read_exact(file: &File, path: &Path, offset: u64, out: &mut [u8]) -> Result<()> {
    count_read();
    file.read_exact_at(out, offset)
        .map_err(|source| failed_read(source, path, offset, out.len()))
}

/// The error for `len` bytes of the file at `path` that could not be read.
fn failed_read(source: io::Error, path: &Path, offset: u64, len: usize) -> Error {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            cut_short(offset.saturating_add(len as u64), path.display())
        }
        _ => Error::io(source, path, "reading"),
    }
}

/// Writes `parts`, one after the other, from `offset` of `file` on, many of them with each call.
///
/// # Errors
/// What the system says.
pub fn write_parts(file: &File, parts: &[&[u8]], offset: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = parts.iter().map(|part| part.len() as u64).sum();
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = slices.as_mut_slice();
    until_written(offset, len, |done, place| {
        IoSlice::advance_slices(&mut rest, done);
        let count = rest.len().min(SLICES) as libc::c_int;
        // SAFETY: an IoSlice is laid out as the system's iovec; `count` of them are alive and in place,
        // and the descriptor is open, until the call returns.
        unsafe { libc::pwritev(file.as_raw_fd(), rest.as_ptr().cast(), count, place) }
    })
}

/// Repeats `call` until it has written `len` bytes from `offset` on. Its arguments are the number of bytes
/// that the last call wrote and the offset to write to; a call that writes nothing is an error.
fn until_written(
    offset: u64,
    len: u64,
    mut call: impl FnMut(usize, libc::off_t) -> libc::ssize_t,
) -> io::Result<()> {
    let (mut at, end, mut done) = (offset, offset.saturating_add(len), 0);
    while at < end {
        let place = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        match usize::try_from(call(done, place)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(now) => (at, done) = (at + now as u64, now),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
                done = 0;
            }
        }
    }
    Ok(())
}

/// The error for a file that ends before byte `end`.
pub fn cut_short(end: u64, location: impl fmt::Display) -> Error {
    Error::corrupt(format!(
        "the file ends before byte {end}, where an entry should reach to: it was cut short; \
         restore it from a copy"
    ))
    .in_file(location)
}

/// Calls `take` with the `len` bytes of `file` from `start` on, piece by piece. Returns their CRC-32.
pub fn stream(
    file: &File,
    path: &Path,
    start: u64,
    len: u64,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u32> {
    let read = |at: u64, out: &mut [u8]| read_exact(file, path, start + at, out);
    stream_pieces(len, PIECE, &read, take)
}

/// Calls `take` with `len` bytes that `read` gives, `piece` bytes in each call. Returns their CRC-32.
pub fn stream_pieces(
    len: u64,
    piece: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u32> {
    let mut buffer = vec![0; len.min(piece) as usize];
    let mut hasher = crc32fast::Hasher::new();
    let mut done = 0;
    while done < len {
        let piece = &mut buffer[..(len - done).min(piece) as usize];
        read(done, piece)?;
        hasher.update(piece);
        take(piece)?;
        done += piece.len() as u64;
    }
    Ok(hasher.finalize())
}

/// Checks the CRC-32 `found` of bytes that were read, where one is `expected`.
pub fn check_crc32(found: u32, expected: Option<u32>) -> Result<()> {
    match expected {
        Some(expected) if expected != found => Err(Error::corrupt(format!(
            "the bytes sum to CRC-32 {found:08x}, not to {expected:08x}; restore the file from a \
             copy"
        ))),
        _ => Ok(()),
    }
}

/// The length of `file` in bytes.
pub fn length(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata();
    Ok(metadata
        .map_err(|source| Error::io(source, path, "asking for the length"))?
        .len())
}

/// Flags for opening files for reading. A FIFO opens without waiting for a writer, and is refused then.
pub const READ: libc::c_int = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// Fails where `file` is a folder, a FIFO, a socket or a device: reading it could wait for ever.
pub fn require_regular(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::Unsupported, NOT_REGULAR)),
    }
}

const NOT_REGULAR: &str = "a folder, FIFO, socket or device has this name, where a regular file is \
                           expected; remove it, or restore the store from a copy";

/// The error for a file that could not be opened.
pub fn failed_opening(source: io::Error, path: &Path, action: &str) -> Error {
    // A socket cannot be opened at all: Linux and macOS have different errors for it.
    let is_socket = source.raw_os_error() == Some(libc::ENXIO);
    if is_socket || source.kind() == io::ErrorKind::Unsupported {
        return not_regular(path);
    }
    Error::opening(source, path, action)
}

/// The error for an entry that is not a regular file.
pub fn not_regular(path: &Path) -> Error {
    Error::corrupt(NOT_REGULAR).in_file(path.display())
}

/// The error for a symbolic link where none is followed.
pub fn refused_link(path: &Path) -> Error {
    Error::unsupported(
        "a symbolic link is on the way to the file, and ambar follows none below a store's folder; \
         replace the link by what it points to",
    )
    .in_file(path.display())
}

/// Opens the regular file at `path`, for reading. Links are followed.
pub fn open_regular(path: &Path) -> Result<File> {
    open_without_waiting(path, OpenOptions::new().read(true), "opening")
}

/// Opens the regular file at `path`, for reading and writing. Links are followed.
pub fn open_for_writing(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    open_without_waiting(path, options.read(true).write(true), "opening for writing")
}

fn open_without_waiting(path: &Path, options: &mut OpenOptions, action: &str) -> Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK).open(path);
    file.and_then(|file| require_regular(&file).map(|()| file))
        .map_err(|source| failed_opening(source, path, action))
}

/// Opens the file at `path` for writing, with its lock held.
///
/// # Errors
/// `Busy` if another writer holds it.
pub fn open_locked(path: &Path) -> Result<File> {
    lock_current(path, OpenOptions::new().read(true).write(true), 0)
}

/// Opens or makes the file at `path`, with its lock held. Links are not followed.
///
/// # Errors
/// `Busy` if another writer holds it.
pub fn create_locked(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    lock_current(path, &mut options, libc::O_NOFOLLOW)
}

/// A process that held the lock before may have renamed the file, or put another in its place: a lock
/// counts only if the file still has its name.
fn lock_current(path: &Path, options: &mut OpenOptions, flags: libc::c_int) -> Result<File> {
    options.custom_flags(libc::O_NONBLOCK | flags);
    loop {
        let file = options
            .open(path)
            .and_then(|file| require_regular(&file).map(|()| file))
            .map_err(|source| failed_opening(source, path, "opening for writing"))?;
        lock(&file, path)?;
        if fs::metadata(path).is_ok_and(|named| is_same_file(&file, &named)) {
            return Ok(file);
        }
    }
}

/// Takes the lock of `file`; it is released with the last copy of the descriptor. Some parallel
/// file systems are mounted without locks: there two writers do not notice each other.
pub fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::busy(
            "another writer is at work on it; wait until it has finished",
        )
        .in_file(path.display())),
        Err(TryLockError::Error(source)) if has_no_locks(&source) => Ok(()),
        Err(TryLockError::Error(source)) => Err(Error::io(source, path, "locking")),
    }
}

/// Whether a writer has locked the file at `path`.
pub fn is_locked(path: &Path) -> bool {
    // A descriptor of its own: locking that of a writer of this process would change the writer's lock.
    let locked = File::open(path).map(|file| file.try_lock_shared());
    matches!(locked, Ok(Err(TryLockError::WouldBlock)))
}

fn has_no_locks(source: &io::Error) -> bool {
    let numbers = [libc::ENOSYS, libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOLCK];
    source
        .raw_os_error()
        .is_some_and(|number| numbers.contains(&number))
}

/// Whether `named` is the metadata of the file that `file` has open.
fn is_same_file(file: &File, named: &Metadata) -> bool {
    identity(file).is_ok_and(|open| open == (named.dev(), named.ino()))
}

/// Fails unless `path` still names `file`, which the writer of `store` opened under this name.
///
/// # Errors
/// `Busy`.
pub fn check_named(file: &File, path: &Path, store: &Path) -> Result<()> {
    let found = match fs::metadata(path) {
        Ok(named) if is_same_file(file, &named) => return Ok(()),
        Ok(_) => "another one",
        Err(error) if is_missing(&error) => "none",
        // A failure of the file system does not show that the name is gone.
        Err(_) => return Ok(()),
    };
    let message = format!(
        "expected the file that the writer opened, found {found}: another program deleted, renamed or replaced it or its \
         folder, so nothing was committed; open the store again and repeat the changes since the last commit"
    );
    Err(Error::busy(message).in_file(store.display()))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Fails if another program has cut off some of the first `len` bytes of `file`.
///
/// # Errors
/// `Corrupt`; the writer must not change the file any more.
pub fn check_length(file: &File, path: &Path, len: u64) -> Result<()> {
    let found = file
        .metadata()
        .map_err(|source| Error::io(source, path, "reading the length"))?
        .len();
    if found >= len {
        return Ok(());
    }
    let message = format!(
        "expected at least {len} bytes, found {found}: another program truncated the file, so nothing was committed; \
         restore it from a copy"
    );
    Err(Error::corrupt(message).in_file(path.display()))
}

/// The numbers that identify `file`.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Gives a new file or folder the mode and, where the system permits it, the owner and group of the one
/// that it replaces.
pub fn inherit(new: &File, replaced: &Metadata, path: &Path) -> Result<()> {
    use std::os::unix::fs::fchown;
    // Before the mode, some bits of which a change of the owner clears. Only root may give files away, and
    // others may at most change the group.
    let _ = fchown(new, Some(replaced.uid()), Some(replaced.gid()))
        .or_else(|_| fchown(new, None, Some(replaced.gid())));
    new.set_permissions(replaced.permissions())
        .map_err(|source| Error::io(source, path, "setting the permissions"))
}

/// The absolute path, with links resolved if there is something, so that a link's target is
/// replaced and not the link.
pub fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_path_buf())
}

/// The name under which a store is made before it gets the name `path`: always the same one, so
/// that the next writer finds and removes what a killed one left behind.
///
/// # Errors
/// `Invalid` if the path has no last segment; `NotFound` if its folder does not exist.
pub fn temporary(path: &Path, ending: &str) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        Error::invalid("the path names no file; append a name").in_file(path.display())
    })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(ending);
    let temporary = path.with_file_name(hidden);
    if path
        .as_os_str()
        .as_encoded_bytes()
        .windows(3)
        .any(|part| part == b"://")
    {
        let message = "expected a path, found a URL, which this function does not write to; use a local file, and \
                       upload it";
        return Err(Error::unsupported(message).in_file(path.display()));
    }
    let folder = temporary.parent().map(fs::metadata);
    if matches!(folder, Some(Err(error)) if error.kind() == io::ErrorKind::NotFound) {
        return Err(
            Error::missing_file("the folder to write to does not exist; create it first")
                .in_file(path.display()),
        );
    }
    Ok(temporary)
}

/// The error `error` of creating `temporary`, where `target` is written until it has its name.
pub fn failed_creating(error: Error, temporary: &Path, target: &Path) -> Error {
    let numbers = [libc::EACCES, libc::EPERM, libc::EROFS].map(Some);
    let is_refused = numbers.contains(&error.raw_os_error());
    match temporary.parent() {
        Some(folder) if is_refused && temporary.symlink_metadata().is_err() => {
            Error::not_writable(&error, folder)
        }
        _ => error.for_target(temporary, target),
    }
}

/// The error for a file that exists and must not be overwritten.
pub fn already_exists(path: &Path) -> Error {
    Error::exists("the file exists; choose another name, or replace it with `overwrite`")
        .in_file(path.display())
}

/// Makes the names in the folder of `path` durable.
pub fn sync_parent(path: &Path, durability: Durability) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if durability == Durability::None {
        return Ok(());
    }
    #[cfg(test)]
    super::faults::step(parent)?;
    #[cfg(test)]
    super::faults::record(super::faults::Event::SyncFolder(parent.to_path_buf()));
    File::open(parent)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| Error::io(source, parent, "making the folder durable"))
}

/// Makes the content of `file` durable, and as much of its metadata as reading it needs.
pub fn sync(file: &File, path: &Path, durability: Durability) -> Result<()> {
    if durability == Durability::None {
        return Ok(());
    }
    #[cfg(test)]
    super::faults::step(path)?;
    #[cfg(test)]
    super::faults::record(super::faults::Event::SyncFile(path.to_path_buf()));
    file.sync_data()
        .map_err(|source| Error::io(source, path, "making what was written durable"))
}

/// Makes everything durable that was written to the file system of `folder`: cheaper than one file
/// after the other where there are many. Returns whether the system can do it.
#[cfg(target_os = "linux")]
pub fn sync_file_system(folder: &File, path: &Path) -> Result<bool> {
    use std::os::fd::AsRawFd;
    #[cfg(test)]
    super::faults::step(path)?;
    #[cfg(test)]
    super::faults::record(super::faults::Event::SyncAll);
    // SAFETY: the descriptor is open until the call returns; the call touches no memory of ours.
    match unsafe { libc::syncfs(folder.as_raw_fd()) } {
        0 => Ok(true),
        _ => Err(Error::io(
            io::Error::last_os_error(),
            path,
            "making the file system durable",
        )),
    }
}

/// Returns that the system cannot do it.
#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_folder: &File, _path: &Path) -> Result<bool> {
    Ok(false)
}

/// Lets the system begin to bring a range of `file` to the disk, so that making it durable later
/// finds less to do. It is a hint: errors come up when it is made durable.
#[cfg(target_os = "linux")]
pub fn start_writing(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return;
    };
    let flags = libc::SYNC_FILE_RANGE_WRITE;
    // SAFETY: the descriptor is open until the call returns; the call touches no memory of ours.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
}

/// Does nothing where the system cannot do it.
#[cfg(not(target_os = "linux"))]
pub fn start_writing(_file: &File, _offset: u64, _len: u64) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn many_parts_are_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let file = File::create_new(&path).unwrap();
        // More than one call takes, some of them empty.
        let lengths: Vec<usize> = (0..3 * SLICES).map(|part| part * 7 % 11).collect();
        let parts: Vec<Vec<u8>> = (0..)
            .zip(&lengths)
            .map(|(i, n)| vec![i as u8; *n])
            .collect();
        let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        write_parts(&file, &borrowed, 5).unwrap();
        let file = File::open(&path).unwrap();
        let mut found = vec![0xee; 5 + parts.concat().len()];
        read_exact(&file, &path, 0, &mut found).unwrap();
        assert_eq!(found[5..], parts.concat());
        let error = read_exact(&file, &path, 1, &mut found).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
