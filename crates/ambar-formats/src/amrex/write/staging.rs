//! The temporary folder in which a plotfile is written.

use std::fs;
use std::path::{Path, PathBuf};

use ambar::{Error, Result};

/// A temporary folder beside the plotfile, renamed to it when complete and removed otherwise.
pub struct StagingFolder {
    /// The temporary folder.
    pub folder: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl StagingFolder {
    /// Creates the temporary folder for a plotfile at `path`.
    ///
    /// # Errors
    /// `Exists` if `path` or the temporary folder exists; `Invalid` if `path` has no name; `Io`.
    pub fn new(path: &Path) -> Result<Self> {
        check_free(path)?;
        let name = path.file_name().ok_or_else(|| {
            Error::invalid(format!(
                "expected the name of a folder, found {:?}; give a path that ends with a name",
                path.display()
            ))
        })?;
        let name = format!(
            ".{}.ambar-new-{}",
            name.to_string_lossy(),
            std::process::id()
        );
        let folder = path.with_file_name(name);
        match fs::create_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::exists(
                "a folder of an unfinished write exists; remove it if no other process is writing",
            )
            .in_file(folder.display())),
            Err(e) => Err(Error::io(e, &folder, "creating the plotfile's folder")),
            Ok(()) => Ok(Self {
                folder,
                path: path.to_owned(),
                is_finished: false,
            }),
        }
    }

    /// Renames the folder to the plotfile, and makes the name durable.
    ///
    /// # Errors
    /// `Exists` if something appeared at the plotfile's path meanwhile; `Io`.
    pub fn finish(mut self) -> Result<()> {
        check_free(&self.path)?;
        let io = |e| Error::io(e, &self.path, "renaming the plotfile's folder");
        fs::rename(&self.folder, &self.path).map_err(io)?;
        self.is_finished = true;
        let parent = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::File::open(parent.unwrap_or(Path::new(".")));
        parent.and_then(|parent| parent.sync_all()).map_err(io)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            // The error that ended the write matters more than one of cleaning up.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Checks that nothing exists at `path`.
fn check_free(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io(e, path, "looking for the plotfile")),
        Ok(_) => Err(Error::exists(
            "expected a new name, found one that exists; choose another name, or remove it",
        )
        .in_file(path.display())),
    }
}
