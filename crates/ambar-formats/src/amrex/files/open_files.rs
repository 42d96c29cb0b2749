//! Data files, opened once: the most recently used ones are kept open.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ambar::process::PerProcess;
use ambar::{Error, Result};

/// Maximum number of files kept open.
const MAX_OPEN: usize = 64;

/// A file open for positioned reads.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    path: PathBuf,
    /// Its bytes when it was opened.
    pub len: u64,
}

impl DataFile {
    /// Opens a file.
    ///
    /// # Errors
    /// `Corrupt` if the file does not exist, since the plotfile refers to it; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt("expected this file, which does not exist; copy the plotfile again")
                    .in_file(path.display())
            }
            _ => Error::io(e, path, "opening a file of the plotfile"),
        };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Error::corrupt(
                "expected a file, found another entry; copy the plotfile again",
            )
            .in_file(path.display()));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            len: metadata.len(),
        })
    }

    /// Reads `out.len()` bytes at `offset`; `what` names them in errors.
    ///
    /// # Errors
    /// `Corrupt` if the file ends before; `Io`.
    pub fn read(&self, offset: u64, out: &mut [u8], what: &str) -> Result<()> {
        let wanted = out.len() as u64;
        let ended = |len: u64| {
            Error::corrupt(format!(
                "{what}: expected {wanted} bytes at byte {offset}, found a file of {len} bytes: it is \
                 truncated; copy the plotfile again"
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

    /// Up to `most` bytes at `offset`; fewer at the end of the file.
    ///
    /// # Errors
    /// As `read`.
    pub fn start(&self, offset: u64, most: usize, what: &str) -> Result<Vec<u8>> {
        let available = self.len.saturating_sub(offset).min(most as u64);
        let mut bytes = vec![0; available as usize];
        self.read(offset, &mut bytes, what)?;
        Ok(bytes)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Open files, the most recently used one last.
#[derive(Debug, Default)]
pub struct OpenFiles {
    files: PerProcess<Mutex<Vec<Arc<DataFile>>>>,
}

impl OpenFiles {
    /// The file of this path; opens it if necessary.
    ///
    /// # Errors
    /// As `DataFile::open`.
    pub fn get(&self, path: &Path) -> Result<Arc<DataFile>> {
        let open = || self.files.lock();
        {
            let mut files = open();
            if let Some(place) = files.iter().rposition(|file| file.path == path) {
                let file = files.remove(place);
                files.push(Arc::clone(&file));
                return Ok(file);
            }
        }
        let file = Arc::new(DataFile::open(path)?);
        let mut files = open();
        files.push(Arc::clone(&file));
        if files.len() > MAX_OPEN {
            files.remove(0);
        }
        Ok(file)
    }
}
