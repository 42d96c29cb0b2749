//! What a writer may still do after what has happened to it.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// The state of a writer.
pub struct State {
    phase: Phase,
    /// The process that made the writer. A forked child has it, too, but must not clean up.
    process: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Sound,
    /// Something failed before the commit could have become valid.
    Failed,
    /// The commit may have become valid on the disk already.
    InDoubt,
}

impl State {
    /// The state of a new writer.
    pub fn new() -> Self {
        Self {
            phase: Phase::Sound,
            process: std::process::id(),
        }
    }

    /// Fails where something has failed before: after a failed write or fsync the system may have
    /// dropped what it held, so nothing that follows would prove anything.
    pub fn check(&self, path: &Path) -> Result<()> {
        if self.phase == Phase::Sound {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Io,
            "an earlier write failed, so this writer has stopped; open the store again",
        )
        .in_file(path.display()))
    }

    /// From now on the commit may become valid.
    pub fn doubt(&mut self) {
        self.phase = Phase::InDoubt;
    }

    /// The commit is valid.
    pub fn succeed(&mut self) {
        self.phase = Phase::Sound;
    }

    /// Something has failed.
    pub fn fail(&mut self) {
        if self.phase == Phase::Sound {
            self.phase = Phase::Failed;
        }
    }

    /// Whether a commit failed that may be valid all the same: what it wrote must stay.
    pub fn is_in_doubt(&self) -> bool {
        self.phase == Phase::InDoubt
    }

    /// Whether this process made the writer.
    pub fn is_owner(&self) -> bool {
        self.process == std::process::id()
    }
}
