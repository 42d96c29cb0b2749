//! Files that values are read from: opened once, the last ones used kept open.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ambar::process::PerProcess;
use ambar::{Error, Result};

/// Files that are kept open.
const KEPT: usize = 64;

/// A file open for positioned reads.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    path: PathBuf,
    /// Its length when it was opened.
    pub len: u64,
}

impl DataFile {
    /// Opens a file.
    ///
    /// # Errors
    /// `Corrupt` where it is missing: the plotfile says that it is there; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt("this file is missing: copy the plotfile again")
                    .in_file(path.display())
            }
            _ => Error::io(e, path, "opening a file of the plotfile"),
        };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(
                Error::corrupt("a file expected, something else found").in_file(path.display())
            );
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            len: metadata.len(),
        })
    }

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// `Corrupt` where the file ends before; `Io`.
    pub fn read(&self, offset: u64, out: &mut [u8], what: &str) -> Result<()> {
        let wanted = out.len() as u64;
        let ended = |len: u64| {
            Error::corrupt(format!(
                "{what}: {wanted} bytes at {offset} expected, but the file has {len}: it was cut \
                 short; copy the plotfile again"
            ))
            .in_file(self.path.display())
        };
        if offset.checked_add(wanted).is_none_or(|end| end > self.len) {
            return Err(ended(self.len));
        }
        match self.file.read_exact_at(out, offset) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                let len = self.file.metadata().map_or(0, |metadata| metadata.len());
                Err(ended(len))
            }
            Err(e) => Err(Error::io(e, &self.path, "reading a file of the plotfile")),
        }
    }

    /// The first `most` bytes from `offset` on, or as many as there are.
    ///
    /// # Errors
    /// As `read`.
    pub fn start(&self, offset: u64, most: usize, what: &str) -> Result<Vec<u8>> {
        let there = self.len.saturating_sub(offset).min(most as u64);
        let mut bytes = vec![0; there as usize];
        self.read(offset, &mut bytes, what)?;
        Ok(bytes)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Open files, the last used at the end.
#[derive(Debug, Default)]
pub struct OpenFiles {
    files: PerProcess<Mutex<Vec<Arc<DataFile>>>>,
}

impl OpenFiles {
    /// The file of that path, opened if it is not.
    ///
    /// # Errors
    /// As `DataFile::open`.
    pub fn get(&self, path: &Path) -> Result<Arc<DataFile>> {
        let kept = || self.files.lock();
        {
            let mut files = kept();
            if let Some(place) = files.iter().rposition(|file| file.path == path) {
                let file = files.remove(place);
                files.push(Arc::clone(&file));
                return Ok(file);
            }
        }
        let file = Arc::new(DataFile::open(path)?);
        let mut files = kept();
        files.push(Arc::clone(&file));
        if files.len() > KEPT {
            files.remove(0);
        }
        Ok(file)
    }
}
