//! What lies in a plotfile's folder beside the levels: texts, particles, and what is left out.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ambar::{Error, Result};

use super::header::Header;

/// Longest text that is kept.
const KEPT_TEXT: u64 = 1 << 20;

/// Deepest folder that is counted.
const DEPTH: usize = 16;

/// A file or folder that is no part of what is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name in the plotfile's folder.
    pub name: String,
    /// Why it is left out.
    pub why: String,
}

/// The entries of a plotfile's folder.
#[derive(Debug, Default)]
pub struct Contents {
    /// Texts by name.
    pub texts: BTreeMap<String, String>,
    /// Folders of particles.
    pub species: Vec<String>,
    /// The rest.
    pub left_out: Vec<LeftOut>,
    /// Files and bytes, of everything.
    pub usage: (u64, u64),
}

impl Contents {
    /// Lists the folder of a plotfile.
    ///
    /// # Errors
    /// `Io`.
    pub fn list(path: &Path, header: &Header) -> Result<Self> {
        let mut contents = Self::default();
        let io = |e| Error::io(e, path, "listing a plotfile's folder");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            let entry = entry.map_err(io)?;
            contents.count(&entry.path(), 0)?;
            names.push(entry.file_name());
        }
        names.sort();
        let levels: Vec<_> = header
            .levels
            .iter()
            .filter_map(|level| level.path.split('/').next())
            .collect();
        for name in names {
            let Some(name) = name.to_str() else {
                contents.leave_out(&name.to_string_lossy(), "its name is not UTF-8".into());
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

    fn leave_out(&mut self, name: &str, why: String) {
        self.left_out.push(LeftOut {
            name: name.to_owned(),
            why,
        });
    }

    fn add_folder(&mut self, path: &Path, name: &str) {
        match first_bytes(&path.join("Header"), 8) {
            Ok(start) if start == b"Version_" => self.species.push(name.to_owned()),
            // Of particles without a `Header` their reader says what is wrong.
            _ if path.join("Level_0/Particle_H").is_file() => self.species.push(name.to_owned()),
            Ok(_) => self.leave_out(name, "a folder whose Header is not one of particles".into()),
            Err(_) => self.leave_out(name, "a folder that holds no particles".into()),
        }
    }

    fn add_text(&mut self, path: &Path, name: &str) {
        match first_bytes(path, KEPT_TEXT as usize + 1) {
            Ok(bytes) if bytes.len() as u64 > KEPT_TEXT => {
                self.leave_out(name, "a file of more than 1 MiB".into());
            }
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => {
                    self.texts.insert(name.to_owned(), text);
                }
                Err(_) => self.leave_out(name, "a file that is not a text".into()),
            },
            Err(error) => self.leave_out(name, format!("it cannot be read: {error}")),
        }
    }

    /// Counts a file, or those of a folder; links are not followed.
    fn count(&mut self, path: &Path, depth: usize) -> Result<()> {
        let io = |e| Error::io(e, path, "sizing a plotfile");
        let metadata = std::fs::symlink_metadata(path).map_err(io)?;
        if metadata.is_file() {
            self.usage = (self.usage.0 + 1, self.usage.1 + metadata.len());
        } else if metadata.is_dir() && depth < DEPTH {
            for entry in std::fs::read_dir(path).map_err(io)? {
                self.count(&entry.map_err(io)?.path(), depth + 1)?;
            }
        }
        Ok(())
    }
}

/// A text of at most 1 MiB; `None` for anything else.
pub fn small_text(path: &Path) -> Option<String> {
    let bytes = first_bytes(path, KEPT_TEXT as usize + 1).ok()?;
    if bytes.len() as u64 > KEPT_TEXT {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The first `most` bytes of a file, or all there are.
pub fn first_bytes(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
