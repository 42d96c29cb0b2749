//! Claims: processes without a common memory divide the free bytes of a file that they write together.
//!
//! A claim is a symbolic link in a folder beside the file. Its name is a number, and its target has the offset in the
//! file of the end of all bytes that are claimed so far. The creation of a link is atomic on local and network file
//! systems, needs no lock, and fails if another process has created the link of this number; that process has the
//! bytes, and the next number is tried.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::file;
use super::interface::SharedFileInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::random;

/// The target of the last link, after which nothing can be claimed.
const CLOSED: &str = "closed";

/// Time after which a link is read again that a network file system does not show yet.
const PATIENCE: Duration = Duration::from_millis(10);

/// The claims of one commit, as any of its processes sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    folder: PathBuf,
    /// The name of a file that exists until the commit ends, and the beginning of the names of links.
    id: String,
    /// The offset in the file of the first byte that can be claimed.
    first: u64,
    /// The number of a link that exists.
    last: u64,
}

impl Claims {
    /// Begins the claims on the bytes of a shared file from the offset `first` on. The caller has locked the file,
    /// and `first` is after the claims of earlier commits that did not succeed; their claims remain.
    ///
    /// # Errors
    /// `Io`.
    pub fn create(share: &SharedFileInfo, first: u64) -> Result<Self> {
        let claims = Self {
            folder: folder_of(&share.path)?,
            id: random_id()?,
            first,
            last: 0,
        };
        let made = match fs::create_dir(&claims.folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        let made = made
            .and_then(|()| File::create_new(claims.marker()))
            .and_then(|_| symlink(first.to_string(), claims.link(0)));
        made.map_err(|source| claims.error(source, "creating the claims of a commit"))?;
        Ok(claims)
    }

    /// The identity of the commit.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Claims `bytes` and returns their offset from the first byte that can be claimed.
    ///
    /// # Errors
    /// `Invalid` if the commit has ended; `Limit`; `Io`.
    pub fn reserve(&mut self, bytes: u64) -> Result<u64> {
        let owner = random_id()?;
        let offset = self.add(|end| {
            let end = end
                .checked_add(bytes)
                .ok_or_else(|| Error::limit("the file would exceed 2^64 bytes; write less"))?;
            Ok(format!("{end}:{owner}"))
        })?;
        let relative = offset.checked_sub(self.first);
        relative.ok_or_else(|| self.damaged(&format!("the offset {offset}")))
    }

    /// Ends the commit: nothing can be claimed any more, and processes stop writing. Returns the end of the claimed
    /// bytes, into which a process may still be writing. They must not be written by another commit. Can be repeated.
    ///
    /// # Errors
    /// `Corrupt` if the claims are damaged; `Io`.
    pub fn end(&mut self) -> Result<u64> {
        let end = match self.add(|_| Ok(CLOSED.to_owned())) {
            Err(error) if error.kind() == ErrorKind::Invalid && self.last > 0 => {
                self.last -= 1;
                self.claimed()?.ok_or(error)
            }
            ended => ended,
        };
        match fs::remove_file(self.marker()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.error(error, "removing the marker of a commit"))
            }
            _ => end,
        }
    }

    /// Checks that the commit has not ended.
    ///
    /// # Errors
    /// `Invalid` if it has; `Io`.
    pub fn check(&self) -> Result<()> {
        // Network file systems validate their caches when a file is opened.
        match File::open(self.marker()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.ended()),
            Err(error) => Err(self.error(error, "opening the marker of a commit")),
        }
    }

    /// Adds a link after the last one, with the target that `target` makes of the end of all claims, which is returned.
    fn add(&mut self, target: impl Fn(u64) -> Result<String>) -> Result<u64> {
        self.find_last();
        loop {
            let Some(end) = self.claimed()? else {
                std::thread::sleep(PATIENCE);
                self.check()?;
                continue;
            };
            let (target, link) = (target(end)?, self.link(self.last + 1));
            match symlink(&target, &link) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // NFS repeats a request whose answer was lost.
                    let is_own =
                        fs::read_link(&link).is_ok_and(|found| found == Path::new(&target));
                    if !is_own {
                        self.last += 1;
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.ended()),
                Err(error) => return Err(self.error(error, "creating a claim")),
            }
            self.last += 1;
            return Ok(end);
        }
    }

    /// Finds the last link by steps of growing, then of shrinking lengths.
    fn find_last(&mut self) {
        let exists = |number: u64| self.link(number).symlink_metadata().is_ok();
        let (mut last, mut step) = (self.last, 1);
        while exists(last + step) {
            last += step;
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            if exists(last + step) {
                last += step;
            }
        }
        self.last = last;
    }

    /// The end of all bytes that are claimed by the links up to the last one; `None` if the link is not visible yet.
    fn claimed(&self) -> Result<Option<u64>> {
        let target = match fs::read_link(self.link(self.last)) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(error, "reading a claim")),
        };
        let text = target.to_string_lossy();
        if text == CLOSED {
            return Err(self.ended());
        }
        let end = text.split(':').next().and_then(|end| end.parse().ok());
        end.map(Some)
            .ok_or_else(|| self.damaged(&format!("{text:?}")))
    }

    fn damaged(&self, found: &str) -> Error {
        let message = format!(
            "expected the end of a claim, found {found}; remove the folder when no task is running"
        );
        Error::corrupt(message).in_file(self.link(self.last).display())
    }

    fn marker(&self) -> PathBuf {
        self.folder.join(&self.id)
    }

    fn link(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}.{number}", self.id))
    }

    fn ended(&self) -> Error {
        let message = "the commit has ended or was cancelled, or this machine does not see its files; open another \
                       commit on a file system that all tasks see, and use its invitation";
        Error::invalid(message).in_file(self.folder.display())
    }

    fn error(&self, source: io::Error, doing: &'static str) -> Error {
        Error::io(source, &self.folder, doing)
    }
}

/// Ends the commits on a file that did not succeed: those of killed processes, and those that were cancelled. Returns the
/// end of the bytes that were claimed; `None` if there are no claims. The caller has locked the file.
///
/// # Errors
/// As [`Claims::end`].
pub fn end_of(path: &Path) -> Result<Option<u64>> {
    let folder = folder_of(path)?;
    let mut end = None;
    for id in ids_in(&folder).map_err(|source| failed(source, &folder))? {
        let mut claims = Claims {
            folder: folder.clone(),
            id,
            first: 0,
            last: 0,
        };
        end = end.max(Some(claims.end()?));
    }
    Ok(end)
}

/// The identities of the commits whose claims are in a folder; none if it does not exist.
fn ids_in(folder: &Path) -> io::Result<BTreeSet<String>> {
    let files = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        files => files?,
    };
    let mut ids = BTreeSet::new();
    for file in files {
        // The marker, without a number, was created before the first link.
        if let Some((id, _)) = file?.file_name().to_string_lossy().split_once('.') {
            ids.insert(id.to_owned());
        }
    }
    Ok(ids)
}

/// Removes the claims on a file, if there are any. Its bytes must be written no more, or all claims be before the end of the
/// last commit.
///
/// # Errors
/// `Io`.
pub fn remove_of(path: &Path) -> Result<()> {
    let folder = folder_of(path)?;
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error, &folder)),
        _ => Ok(()),
    }
}

fn failed(source: io::Error, folder: &Path) -> Error {
    Error::io(source, folder, "ending the claims of a commit")
}

fn folder_of(path: &Path) -> Result<PathBuf> {
    file::temporary(path, ".ambar-claims")
}

/// A name that no other claim and no other commit has.
fn random_id() -> Result<String> {
    Ok(format!(
        "{:016x}{:016x}",
        random::number()?,
        random::number()?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{CreateOptions, create};

    #[test]
    fn claims_of_many_processes_do_not_overlap_and_end_with_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = create(&path, &CreateOptions::default()).unwrap();
        let mut first = Claims::create(&writer.share().unwrap(), 1000).unwrap();
        let places = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let mut claims = first.clone();
                    scope.spawn(move || {
                        let lengths = (0..50).map(|n| 1 + n % 7 + thread);
                        let claim = |length| (claims.reserve(length).unwrap(), length);
                        lengths.map(claim).collect::<Vec<_>>()
                    })
                })
                .collect();
            let places = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            let mut places: Vec<_> = places.collect();
            places.sort_unstable();
            places
        });
        let mut end = 0;
        for (start, length) in places {
            assert_eq!(start, end);
            end += length;
        }
        let mut late = first.clone();
        late.check().unwrap();
        for _ in 0..2 {
            assert_eq!(end_of(&path).unwrap(), Some(1000 + end));
            assert_eq!(first.end().unwrap(), 1000 + end);
        }
        assert_eq!(late.check().unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(late.reserve(1).unwrap_err().kind(), ErrorKind::Invalid);
        remove_of(&path).unwrap();
        assert_eq!(late.reserve(1).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(end_of(&path).unwrap(), None);
    }
}
