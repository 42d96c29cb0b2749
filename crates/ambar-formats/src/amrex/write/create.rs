//! Creating files of a plotfile, and checks of names in its headers.

use std::fs;
use std::path::Path;

use ambar::{Error, Result};

/// Checks the name of a field or component, which must be a line of text.
///
/// # Errors
/// `Invalid` for any other name.
pub fn check_line(name: &str) -> Result<()> {
    if name.trim() != name || name.is_empty() || name.contains(['\n', '\r']) {
        return Err(Error::invalid(format!(
            "invalid name of a field or component: {name:?}; expected a non-empty line of text \
             without blanks around it; rename it"
        )));
    }
    Ok(())
}

/// Creates a text file, and makes it durable.
///
/// # Errors
/// `Io`, also if the file exists.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let mut file = create(path)?;
    let io = |e| Error::io(e, path, "writing a text of the plotfile");
    file.write_all(text.as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)
}

/// Creates a file and its parent folders.
///
/// # Errors
/// `Io`, also if the file exists.
pub fn create(path: &Path) -> Result<fs::File> {
    let io = |e| Error::io(e, path, "creating a file of the plotfile");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io)?;
    }
    fs::File::create_new(path).map_err(io)
}
