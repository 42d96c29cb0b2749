//! The state of a writer, which decides whether further calls are allowed.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::process::Process;

/// The state of a writer.
pub struct State {
    phase: Phase,
    /// The process that opened the writer. A forked child must neither use the writer nor clean up.
    process: Process,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Intact,
    /// A call failed before the commit could have become valid.
    Failed,
    /// The commit may have become valid on the disk already.
    InDoubt,
}

impl State {
    /// The state of a new writer.
    pub fn new() -> Self {
        Self {
            phase: Phase::Intact,
            process: Process::current(),
        }
    }

    /// Returns an error in a forked child, which shares the file and its lock with its parent, and after a
    /// failed call: after a failed write or fsync the system may have dropped cached bytes, so a later
    /// success would not prove that they are on the disk.
    pub fn check(&self, path: &Path) -> Result<()> {
        self.process
            .check()
            .map_err(|error| error.in_file(path.display()))?;
        if self.phase == Phase::Intact {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Io,
            "an earlier write failed, so this writer has stopped; open the store again",
        )
        .in_file(path.display()))
    }

    /// Records that the commit may become valid on the disk from now on.
    pub fn doubt(&mut self) {
        self.phase = Phase::InDoubt;
    }

    /// Records that the commit is valid.
    pub fn succeed(&mut self) {
        self.phase = Phase::Intact;
    }

    /// Records that a call has failed.
    pub fn fail(&mut self) {
        if self.phase == Phase::Intact {
            self.phase = Phase::Failed;
        }
    }

    /// Whether a failed commit may nevertheless be valid, so that its bytes must stay.
    pub fn is_in_doubt(&self) -> bool {
        self.phase == Phase::InDoubt
    }

    /// Whether this process opened the writer.
    pub fn is_owner(&self) -> bool {
        self.process.is_current()
    }
}

/// The error for reading the new container at `path` before its first commit.
pub fn nothing_committed(path: &Path) -> Error {
    Error::invalid("nothing has been committed yet; commit first").in_file(path.display())
}

#[cfg(test)]
mod tests {
    use super::super::{CreateOptions, Durability, append, create, open};
    use crate::error::ErrorKind;
    use crate::limits::Limits;
    use crate::process::succeeds_in_child;

    #[test]
    fn a_forked_child_cannot_use_its_parents_writer_and_dropping_it_changes_nothing() {
        for directory in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.ambar");
            let options = CreateOptions {
                directory,
                ..CreateOptions::default()
            };
            let mut writer = create(&path, &options).unwrap();
            writer.put("zarr.json", &[b"1"]).unwrap();
            writer.put("a", &[&[1; 1 << 21]]).unwrap();
            for new in [true, false] {
                let mut inherited = Some(writer);
                assert!(succeeds_in_child(|| {
                    let mut writer = inherited.take().unwrap();
                    for refused in [
                        writer.check(),
                        writer.put("child", &[b"x"]),
                        writer.remove("a"),
                        writer.commit(),
                        writer.read_back("a", 1 << 30).map(drop),
                        writer.reader().map(drop),
                    ] {
                        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
                    }
                    drop(writer);
                }));
                writer = inherited.unwrap();
                if !new {
                    let busy = append(&path, Durability::Full, &Limits::default()).unwrap_err();
                    assert_eq!(busy.kind(), ErrorKind::Busy);
                }
                writer.commit().unwrap();
                drop(writer);
                let store = open(&path).unwrap();
                store.verify("a", &mut |_| {}).unwrap();
                assert!(store.entry("child").unwrap().is_none());
                writer = append(&path, Durability::Full, &Limits::default()).unwrap();
                writer.put("a", &[&[2; 1 << 21]]).unwrap();
            }
        }
    }
}
