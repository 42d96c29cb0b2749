//! The place that tasks write to: extents of a file, or objects of a directory.

use serde::{Deserialize, Serialize};

use crate::container::{
    self, Claims, EntryPutter, NewEntry, SharedEntry, SharedFile, SharedFileInfo,
    SharedObjectsInfo, entry_bytes,
};
use crate::error::{Error, Result};
use crate::ranks::output::{Extents, Placement};
use crate::store::StoreWriter;

/// The place that the tasks of one commit write to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::ranks) enum CommitPlace {
    /// A file, of which tasks claim extents.
    File {
        share: SharedFileInfo,
        claims: Claims,
        alignment: u64,
    },
    /// Objects of a directory.
    Objects(SharedObjectsInfo),
}

impl CommitPlace {
    /// Begins a commit in which tasks write the arrays `names`.
    ///
    /// # Errors
    /// `Unsupported` for directories of files; `Io`.
    pub fn begin(store: &mut StoreWriter, names: &[&str], alignment: u64) -> Result<Self> {
        if let Some(info) = store.share_objects(names)? {
            return Ok(Self::Objects(info));
        }
        let share = store.share()?;
        let first = share.end.next_multiple_of(alignment.max(1));
        let claims = Claims::create(&share, first)?;
        Ok(Self::File {
            share,
            claims,
            alignment,
        })
    }

    /// The identity of the commit.
    pub fn id(&self) -> &str {
        match self {
            Self::File { claims, .. } => claims.id(),
            Self::Objects(info) => &info.id,
        }
    }

    /// Ends the commit: tasks cannot write any more. Returns the end of the bytes of the file into which a task may
    /// still be writing. Can be repeated.
    ///
    /// # Errors
    /// `Corrupt` if the claims are damaged; `Io`.
    pub fn end(&mut self) -> Result<u64> {
        match self {
            Self::File { claims, .. } => claims.end(),
            Self::Objects(info) => container::end_objects(info).map(|()| 0),
        }
    }

    /// Joins the commit in a task.
    ///
    /// # Errors
    /// `Invalid` if the commit has ended; `NotFound` if the file does not exist on this machine; `Io`.
    pub fn join(self) -> Result<Box<dyn EntryPutter>> {
        let entries: Box<dyn EntryPutter> = match self {
            Self::File {
                share,
                claims,
                alignment,
            } => {
                claims.check()?;
                let mut extents = Extents::new(2, Placement::Counter, share.end, alignment, 0);
                let mut reserving = claims.clone();
                extents.count_with(Box::new(move |bytes| reserving.reserve(bytes)));
                Box::new(FileEntries {
                    location: share.location(),
                    file: SharedFile::open(&share)?,
                    claims,
                    extents,
                })
            }
            Self::Objects(info) => container::join_objects(&info)?,
        };
        entries.check()?;
        Ok(entries)
    }
}

/// Writes entries to a file.
struct FileEntries {
    location: String,
    file: SharedFile,
    claims: Claims,
    extents: Extents,
}

impl EntryPutter for FileEntries {
    fn location(&self) -> &str {
        &self.location
    }

    fn check(&self) -> Result<()> {
        self.claims.check()
    }

    fn put(&mut self, entry: NewEntry<'_>, following: u64) -> Result<()> {
        let len = entry.parts.iter().map(|part| part.len() as u64).sum();
        let bytes = entry_bytes(&entry.key, len);
        let offset = self.extents.allocate(bytes, following)?;
        let offset = offset.ok_or_else(|| Error::invalid("no bytes were allocated"))?;
        // After the end of the commit, the bytes may belong to another writer.
        self.claims.check()?;
        self.file.write(offset, entry)
    }

    fn finish(&mut self) -> Result<Vec<SharedEntry>> {
        self.file.finish()
    }
}
