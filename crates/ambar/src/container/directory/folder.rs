//! A store's open folder: files below it are opened, renamed and removed without following symbolic links.
//!
//! A hostile store may contain links to files of its victim, or FIFOs and devices where files are expected.
//! So names below the folder are never resolved as paths of the process. Each name is resolved relative to
//! the open folder, by `openat2` where the system has it, otherwise segment by segment.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(test)]
use super::super::faults::{Event, record};
use super::super::{Durability, file};
use crate::error::{Error, Result};

/// Flags to open intermediate folders; on Linux this does not need the permission to list them.
#[cfg(target_os = "linux")]
const SEARCH: libc::c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const SEARCH: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// Flags to open folders that are listed or made durable.
const LIST: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// Whether the system lacks `openat2`.
static LACKS_OPENAT2: AtomicBool = AtomicBool::new(false);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    root: File,
    path: PathBuf,
}

/// The type of the file that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file, with its length in bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A symbolic link, which is never followed.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Folder {
    /// Opens the folder at `path`, which may be a symbolic link.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, LIST)
    }

    /// Makes the folder at `path`, unless it exists, and opens it. It must not be a symbolic link.
    pub fn make(path: &Path) -> Result<Self> {
        match fs::create_dir(path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(source, path, "making the folder"));
            }
            _ => {}
        }
        #[cfg(test)]
        record(Event::MakeFolder(path.to_path_buf()));
        Self::open_with(path, LIST | libc::O_NOFOLLOW)
    }

    fn open_with(path: &Path, flags: libc::c_int) -> Result<Self> {
        let name = c_name(path.as_os_str());
        let root = name.and_then(|name| open_at(libc::AT_FDCWD, &name, flags, 0));
        let root = root.map_err(|source| Error::opening(source, path, "opening the folder"))?;
        Ok(Self {
            root: root.into(),
            path: path.to_path_buf(),
        })
    }

    /// Gives the folder the mode and, where permitted, the owner of the folder that it replaces.
    pub fn inherit(&self, replaced: &Metadata) -> Result<()> {
        file::inherit(&self.root, replaced, &self.path)
    }

    /// The path that the folder was opened with, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name`, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Sets the path of the folder after it was renamed.
    pub fn renamed(&mut self, path: &Path) {
        self.path = path.to_path_buf();
    }

    /// Converts an error of the system about `name`; `action` is what failed.
    pub fn failed(&self, source: io::Error, name: &str, action: &str) -> Error {
        let path = self.path_of(name);
        if source.raw_os_error() == Some(libc::ELOOP) {
            return file::refused_link(&path);
        }
        file::failed_opening(source, &path, action)
    }

    /// Opens the regular file `name` for reading.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let file = File::from(self.open_below(name, file::READ, 0)?);
        file::require_regular(&file)?;
        Ok(file)
    }

    /// Creates the file `name`, which must not exist, and opens it for writing.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let file = self.open_below(name, flags, 0o666).map(File::from);
        #[cfg(test)]
        record(Event::CreateFile(self.path_of(name)));
        file
    }

    /// Opens or creates the file `name`, and locks it.
    ///
    /// # Errors
    /// `Busy` if another writer holds the lock.
    pub fn create_locked(&self, name: &str) -> Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NONBLOCK | libc::O_CLOEXEC;
        loop {
            let file = self.open_below(name, flags, 0o666).map(File::from);
            let file = file.and_then(|file| file::require_regular(&file).map(|()| file));
            let file = file.map_err(|source| self.failed(source, name, "opening for writing"))?;
            file::lock(&file, &self.path_of(name))?;
            // Another writer may have replaced the file before it was locked.
            let named = self.identity(name).ok();
            if named.is_some() && named == file::identity(&file).ok() {
                return Ok(file);
            }
        }
    }

    /// The numbers that identify the file `name`, as [`file::identity`] returns them.
    #[allow(clippy::unnecessary_cast)] // the types differ between systems
    pub fn identity(&self, name: &str) -> io::Result<(u64, u64)> {
        let status = self.parent(name)?.status()?;
        Ok((status.st_dev as u64, status.st_ino as u64))
    }

    /// The type of the file `name`; `None` if it does not exist.
    pub fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        let found = self.parent(name).and_then(|parent| parent.status());
        match found {
            Ok(status) => Ok(Some(kind_of(&status))),
            Err(source) if is_absence(&source) => Ok(None),
            Err(source) => Err(source),
        }
    }

    /// Whether `name` is a folder.
    pub fn has_folder(&self, name: &str) -> bool {
        matches!(self.kind(name), Ok(Some(Kind::Folder)))
    }

    /// Makes the folder `name`.
    pub fn make_folder(&self, name: &str) -> io::Result<()> {
        let parent = self.parent(name)?;
        // SAFETY: the descriptor is open and the name ends with NUL, until the call returns.
        succeeded(unsafe { libc::mkdirat(parent.descriptor(), parent.last.as_ptr(), 0o777) })?;
        #[cfg(test)]
        record(Event::MakeFolder(self.path_of(name)));
        Ok(())
    }

    /// Removes the file, link or special file `name`.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        self.unlink(name, 0)
    }

    /// Removes the folder `name`, which must be empty.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &str, flags: libc::c_int) -> io::Result<()> {
        let parent = self.parent(name)?;
        // SAFETY: the descriptor is open and the name ends with NUL, until the call returns.
        succeeded(unsafe { libc::unlinkat(parent.descriptor(), parent.last.as_ptr(), flags) })?;
        #[cfg(test)]
        record(Event::Remove(self.path_of(name)));
        Ok(())
    }

    /// Renames the file `from` to `to`, replacing a file of that name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        #[cfg(test)]
        let event = Event::Rename(self.path_of(from), self.path_of(to));
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        // SAFETY: the descriptors are open and the names end with NUL, until the call returns.
        succeeded(unsafe {
            libc::renameat(
                from.descriptor(),
                from.last.as_ptr(),
                to.descriptor(),
                to.last.as_ptr(),
            )
        })?;
        #[cfg(test)]
        record(event);
        Ok(())
    }

    /// Lists names and kinds of the files in the folder `name`; an empty name is this folder.
    pub fn list(&self, name: &str) -> Result<Vec<(OsString, Kind)>> {
        let listed = || -> io::Result<_> {
            let folder = self.open_below(if name.is_empty() { "." } else { name }, LIST, 0)?;
            let descriptor = folder.as_raw_fd();
            let mut found = Vec::new();
            for item in names(&folder)? {
                let status = FolderEntry {
                    parent: None,
                    root: descriptor,
                    last: c_name(&item)?,
                }
                .status();
                match status {
                    Ok(status) => found.push((item, kind_of(&status))),
                    // Removed meanwhile.
                    Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(source),
                }
            }
            Ok(found)
        };
        listed().map_err(|source| self.failed(source, name, "listing the folder"))
    }

    /// Makes the names in the folder `name` durable; an empty name is this folder.
    pub fn sync(&self, name: &str, durability: Durability) -> Result<()> {
        if durability == Durability::None {
            return Ok(());
        }
        #[cfg(test)]
        super::super::faults::step(&self.path_of(name))?;
        #[cfg(test)]
        record(Event::SyncFolder(match name {
            "" => self.path.clone(),
            name => self.path_of(name),
        }));
        self.open_below(if name.is_empty() { "." } else { name }, LIST, 0)
            .and_then(|folder| File::from(folder).sync_all())
            .map_err(|source| self.failed(source, name, "making the folder durable"))
    }

    /// Makes all data durable that was written to the folder's file system. Returns false if the system
    /// cannot do this.
    pub fn sync_file_system(&self) -> Result<bool> {
        file::sync_file_system(&self.root, &self.path)
    }

    /// Opens the parent folder of `name`.
    fn parent(&self, name: &str) -> io::Result<FolderEntry> {
        let (parent, last) = match name.rsplit_once('/') {
            Some((folder, last)) => (Some(self.open_below(folder, SEARCH, 0)?), last),
            None => (None, name),
        };
        Ok(FolderEntry {
            parent,
            root: self.root.as_raw_fd(),
            last: c_name(OsStr::new(last))?,
        })
    }

    /// Opens `name` through no symbolic link; the error for one is `ELOOP`.
    fn open_below(
        &self,
        name: &str,
        flags: libc::c_int,
        mode: libc::mode_t,
    ) -> io::Result<OwnedFd> {
        if !LACKS_OPENAT2.load(Ordering::Relaxed) {
            match open_at2(self.root.as_raw_fd(), name, flags, mode) {
                Err(source) if source.raw_os_error() == Some(libc::ENOSYS) => {
                    LACKS_OPENAT2.store(true, Ordering::Relaxed);
                }
                // Filters of system calls often return this error for calls that they do not know.
                Err(source) if source.raw_os_error() == Some(libc::EPERM) => {}
                opened => return opened,
            }
        }
        self.open_stepwise(name, flags, mode)
    }

    /// As `open_below`, segment by segment.
    fn open_stepwise(
        &self,
        name: &str,
        flags: libc::c_int,
        mode: libc::mode_t,
    ) -> io::Result<OwnedFd> {
        let mut folder: Option<OwnedFd> = None;
        let mut segments = name.split('/').peekable();
        while let Some(segment) = segments.next() {
            let at = folder
                .as_ref()
                .map_or(self.root.as_raw_fd(), AsRawFd::as_raw_fd);
            let segment = c_name(OsStr::new(segment))?;
            let is_last = segments.peek().is_none();
            let (flags, mode) = if is_last { (flags, mode) } else { (SEARCH, 0) };
            let opened = open_at(at, &segment, flags | libc::O_NOFOLLOW, mode);
            let opened = opened.map_err(|source| {
                let place = FolderEntry {
                    parent: None,
                    root: at,
                    last: segment,
                };
                match place.status() {
                    Ok(status) if kind_of(&status) == Kind::Link => {
                        io::Error::from_raw_os_error(libc::ELOOP)
                    }
                    _ => source,
                }
            })?;
            if is_last {
                return Ok(opened);
            }
            folder = Some(opened);
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A name in an open folder.
struct FolderEntry {
    /// The folder; `None` for `root`.
    parent: Option<OwnedFd>,
    root: RawFd,
    last: CString,
}

impl FolderEntry {
    fn descriptor(&self) -> RawFd {
        self.parent.as_ref().map_or(self.root, AsRawFd::as_raw_fd)
    }

    /// The status of the file that has the name; of a link itself, not of its target.
    fn status(&self) -> io::Result<libc::stat> {
        // SAFETY: `stat` holds numbers only, which may all be 0.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        let (descriptor, name) = (self.descriptor(), self.last.as_ptr());
        // SAFETY: the descriptor is open, the name ends with NUL and `status` lives, until it returns.
        let result =
            unsafe { libc::fstatat(descriptor, name, &raw mut status, libc::AT_SYMLINK_NOFOLLOW) };
        succeeded(result).map(|()| status)
    }
}

fn kind_of(status: &libc::stat) -> Kind {
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => Kind::File(u64::try_from(status.st_size).unwrap_or(0)),
        libc::S_IFDIR => Kind::Folder,
        libc::S_IFLNK => Kind::Link,
        _ => Kind::Special,
    }
}

fn c_name(name: &OsStr) -> io::Result<CString> {
    Ok(CString::new(name.as_bytes())?)
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens `name` in the folder of a descriptor.
fn open_at(
    folder: RawFd,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with NUL and lives until the call returns.
    let descriptor =
        unsafe { libc::openat(folder, name.as_ptr(), flags, libc::c_uint::from(mode)) };
    match descriptor {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is new, so nothing else owns it.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
    }
}

#[cfg(target_os = "linux")]
fn open_at2(
    folder: RawFd,
    name: &str,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    let name = c_name(OsStr::new(name))?;
    // SAFETY: `open_how` holds numbers only, which may all be 0.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::try_from(flags).unwrap_or(0);
    how.mode = u64::from(mode);
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    let size = size_of::<libc::open_how>();
    // SAFETY: the name ends with NUL, and it and `how`, of that size, live until the call returns.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            folder,
            name.as_ptr(),
            &raw const how,
            size,
        )
    };
    match RawFd::try_from(descriptor) {
        // SAFETY: the descriptor is new, so nothing else owns it.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_at2(_: RawFd, _: &str, _: libc::c_int, _: libc::mode_t) -> io::Result<OwnedFd> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// The names in an open folder.
fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    /// Closes the stream.
    struct Stream(*mut libc::DIR);
    impl Drop for Stream {
        fn drop(&mut self) {
            // SAFETY: the stream is open and used no more.
            unsafe { libc::closedir(self.0) };
        }
    }
    let copy = std::os::fd::IntoRawFd::into_raw_fd(folder.try_clone()?);
    // SAFETY: the descriptor is an open folder's, and the stream owns it from now on.
    let stream = Stream(unsafe { libc::fdopendir(copy) });
    if stream.0.is_null() {
        std::mem::forget(stream);
        let error = io::Error::last_os_error();
        // SAFETY: the call has failed, so the descriptor is still ours.
        drop(unsafe { OwnedFd::from_raw_fd(copy) });
        return Err(error);
    }
    let mut found = Vec::new();
    loop {
        clear_error_number();
        // SAFETY: the stream is open, and no other thread uses it.
        let item = unsafe { libc::readdir(stream.0) };
        if item.is_null() {
            break;
        }
        // SAFETY: the name ends with NUL, and lives until the next call.
        let name = unsafe { CStr::from_ptr((*item).d_name.as_ptr()) }.to_bytes();
        if name != b"." && name != b".." {
            found.push(OsString::from_vec(name.to_vec()));
        }
    }
    // The end of the folder is not an error.
    match io::Error::last_os_error().raw_os_error() {
        None | Some(0) => Ok(found),
        Some(number) => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Sets the thread's error number to 0: `readdir` reports errors by this number alone.
fn clear_error_number() {
    #[cfg(target_os = "linux")]
    // SAFETY: the system returns a valid pointer to a number of this thread.
    unsafe {
        *libc::__errno_location() = 0;
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: the system returns a valid pointer to a number of this thread.
    unsafe {
        *libc::__error() = 0;
    }
}

/// Whether the error means that the file does not exist, or that a parent of it is not a folder.
pub fn is_absence(source: &io::Error) -> bool {
    matches!(
        source.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn code(result: io::Result<impl Sized>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn nothing_is_reached_through_links() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("diary"), b"mine").unwrap();
        let inside = tempfile::tempdir().unwrap();
        fs::create_dir(inside.path().join("a")).unwrap();
        fs::write(inside.path().join("a/file"), b"yours").unwrap();
        symlink(outside.path(), inside.path().join("link")).unwrap();
        symlink(outside.path().join("diary"), inside.path().join("a/diary")).unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let open = libc::O_RDONLY | libc::O_CLOEXEC;
        for name in ["link/diary", "a/diary"] {
            assert_eq!(code(folder.open_file(name)), Some(libc::ELOOP), "{name}");
            let stepwise = folder.open_stepwise(name, open, 0);
            assert_eq!(code(stepwise), Some(libc::ELOOP), "{name}");
        }
        assert_eq!(code(folder.remove_file("link/diary")), Some(libc::ELOOP));
        assert_eq!(
            code(folder.rename("a/file", "link/diary")),
            Some(libc::ELOOP)
        );
        assert_eq!(code(folder.create_file("link/new")), Some(libc::ELOOP));
        assert_eq!(code(folder.make_folder("link/new")), Some(libc::ELOOP));
        assert_eq!(folder.kind("a/diary").unwrap(), Some(Kind::Link));
        assert_eq!(folder.kind("a/file").unwrap(), Some(Kind::File(5)));
        assert_eq!(folder.kind("a/none").unwrap(), None);
        assert_eq!(folder.kind("none/none").unwrap(), None);
        assert!(folder.open_stepwise("a/file", open, 0).is_ok());
        assert_eq!(fs::read(outside.path().join("diary")).unwrap(), b"mine");
        let mut found = folder.list("a").unwrap();
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let expected = [("diary", Kind::Link), ("file", Kind::File(5))];
        assert_eq!(found, expected.map(|(name, kind)| (name.into(), kind)));
    }
}
