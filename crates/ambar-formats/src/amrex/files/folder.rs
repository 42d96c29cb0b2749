//! The entries of a plotfile's folder besides the levels: text files, particles, and entries that are not
//! read.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io::Read;
use std::path::Path;

use ambar::{Error, Result};

use super::header::PlotfileHeader;
use crate::series::Fingerprint;

/// Maximum bytes of a text that is read.
const TEXT_LIMIT: u64 = 1 << 20;

/// Depth of folders up to which files are counted.
const DEPTH: usize = 16;

/// A part of a plotfile that is not read: a file or folder, or its ghost cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredEntry {
    /// Its name in the plotfile's folder, or "ghost cells".
    pub name: String,
    /// Why it is not read.
    pub why: String,
}

/// The files of a plotfile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileUsage {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Changes with their names, sizes and modification times.
    pub fingerprint: String,
}

impl FileUsage {
    /// Sizes a file, or all files below a folder. Symbolic links in a folder are not followed.
    ///
    /// # Errors
    /// `Io`.
    pub fn of(path: &Path) -> Result<Self> {
        let io = |e| Error::io(e, path, "sizing a plotfile");
        let mut usage = Self::default();
        let mut fingerprint = Fingerprint::default();
        let metadata = std::fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            usage.add_folder(path, "", 0, &mut fingerprint)?;
        } else {
            usage.add("", &metadata, &mut fingerprint);
        }
        usage.fingerprint = fingerprint.text();
        Ok(usage)
    }

    fn add(&mut self, name: &str, metadata: &Metadata, fingerprint: &mut Fingerprint) {
        self.files += 1;
        self.bytes += metadata.len();
        fingerprint.add_file(name, metadata);
    }

    /// Adds the files below a folder, whose names begin with `prefix`.
    fn add_folder(
        &mut self,
        path: &Path,
        prefix: &str,
        depth: usize,
        fingerprint: &mut Fingerprint,
    ) -> Result<()> {
        let io = |e| Error::io(e, path, "sizing a plotfile");
        let entries = std::fs::read_dir(path).map_err(io)?;
        let mut entries: Vec<DirEntry> = entries.collect::<std::io::Result<_>>().map_err(io)?;
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let metadata = entry.metadata().map_err(io)?;
            if metadata.is_file() {
                self.add(&name, &metadata, fingerprint);
            } else if metadata.is_dir() && depth < DEPTH {
                self.add_folder(&entry.path(), &format!("{name}/"), depth + 1, fingerprint)?;
            }
        }
        Ok(())
    }
}

/// The entries of a plotfile's folder.
#[derive(Debug, Default)]
pub struct FolderContents {
    /// Contents of text files, by name.
    pub text_files: BTreeMap<String, String>,
    /// Names of the folders of particles.
    pub species: Vec<String>,
    /// Entries that are not read.
    pub ignored: Vec<IgnoredEntry>,
    /// All files below the folder.
    pub usage: FileUsage,
}

impl FolderContents {
    /// Lists the folder of a plotfile.
    ///
    /// # Errors
    /// `Io`.
    pub fn list(path: &Path, header: &PlotfileHeader) -> Result<Self> {
        let mut contents = Self {
            usage: FileUsage::of(path)?,
            ..Self::default()
        };
        let io = |e| Error::io(e, path, "listing a plotfile's folder");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            names.push(entry.map_err(io)?.file_name());
        }
        names.sort();
        let levels: Vec<_> = header
            .levels
            .iter()
            .filter_map(|level| level.path.split('/').next())
            .collect();
        for name in names {
            let Some(name) = name.to_str() else {
                contents.ignore(&name.to_string_lossy(), "its name is not UTF-8".into());
                continue;
            };
            if name == "Header" || levels.contains(&name) {
                continue;
            }
            let entry = path.join(name);
            if entry.is_dir() {
                contents.add_folder(&entry, name);
            } else {
                contents.add_text(&entry, name);
            }
        }
        Ok(contents)
    }

    /// Adds an entry to those that are not read.
    pub fn ignore(&mut self, name: &str, why: String) {
        self.ignored.push(IgnoredEntry {
            name: name.to_owned(),
            why,
        });
    }

    fn add_folder(&mut self, path: &Path, name: &str) {
        match first_bytes(&path.join("Header"), 8) {
            Ok(start) if start == b"Version_" => self.species.push(name.to_owned()),
            // Opening the species reports the missing `Header`.
            _ if path.join("Level_0/Particle_H").is_file() => self.species.push(name.to_owned()),
            Ok(_) => self.ignore(
                name,
                "a folder whose Header is not a particle header".into(),
            ),
            Err(_) => self.ignore(name, "a folder without particles".into()),
        }
    }

    fn add_text(&mut self, path: &Path, name: &str) {
        match first_bytes(path, TEXT_LIMIT as usize + 1) {
            Ok(bytes) if bytes.len() as u64 > TEXT_LIMIT => {
                self.ignore(name, "a file of more than 1 MiB".into());
            }
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => {
                    self.text_files.insert(name.to_owned(), text);
                }
                Err(_) => self.ignore(name, "a file that is not UTF-8 text".into()),
            },
            Err(error) => self.ignore(name, format!("it cannot be read: {error}")),
        }
    }
}

/// A text of at most 1 MiB; `None` for any other file.
pub fn small_text(path: &Path) -> Option<String> {
    let bytes = first_bytes(path, TEXT_LIMIT as usize + 1).ok()?;
    if bytes.len() as u64 > TEXT_LIMIT {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The first `most` bytes of a file, or all if it is shorter.
pub fn first_bytes(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other(
            "expected a file, found another entry",
        ));
    }
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
