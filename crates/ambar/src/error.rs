//! The one error type: what went wrong, in which file and node, and what the caller can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible function of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure, which determines what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are damaged, cut short or hostile: restore them from a copy.
    Corrupt,
    /// The file is sound but needs something this version lacks: use a newer version.
    Unsupported,
    /// The caller asked for something that is invalid: change the call.
    Invalid,
    /// There is no such file, node, field or component: ask for another.
    NotFound,
    /// The file exists: choose another name, or permit to replace it.
    Exists,
    /// Another writer has the file open, or it changed while it was read: wait, or open it again.
    Busy,
    /// A limit on memory or size was passed: raise the limit or ask for less.
    Limit,
    /// A progress callback asked to stop.
    Interrupted,
    /// The operating system refused: see the source.
    Io,
}

/// An error with its place. Boxed, so that a `Result` stays one word wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    file: String,
    node: String,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    /// An error of `kind`; `message` says what was expected, what was found and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            file: String::new(),
            node: String::new(),
            message: message.into(),
            source: None,
        }))
    }

    /// Damaged, cut short or hostile bytes.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Something this version cannot read or write.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A call that is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// A `what` (a column, a field) that does not exist; `known` are those that do. The message
    /// names the most similar one.
    pub fn unknown<S: AsRef<str>>(what: &str, name: &str, known: &[S]) -> Self {
        let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
        Self::not_found(format!(
            "{what} {name:?} does not exist; {}available: {}",
            hint(closest(name, &known).as_slice()),
            known.join(", ")
        ))
    }

    /// A file that does not exist, as the operating system would report it.
    pub fn missing_file(message: impl Into<String>) -> Self {
        Self::from_os(ErrorKind::NotFound, libc::ENOENT, message)
    }

    /// A file that exists but must not be replaced, as the operating system would report it.
    pub fn exists(message: impl Into<String>) -> Self {
        Self::from_os(ErrorKind::Exists, libc::EEXIST, message)
    }

    fn from_os(kind: ErrorKind, number: i32, message: impl Into<String>) -> Self {
        let mut error = Self::new(kind, message);
        error.0.source = Some(io::Error::from_raw_os_error(number));
        error
    }

    /// A file that another writer has open, or that changed while it was read.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    /// A limit that would be passed.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// An error of the operating system while opening `path`. `action` is as of [`io`](Self::io); the
    /// message for a path that does not exist omits it.
    pub fn opening(source: io::Error, path: &Path, action: &str) -> Self {
        if source.kind() != io::ErrorKind::NotFound {
            return Self::io(source, path, action);
        }
        let mut error = Self::not_found(source.to_string()).in_file(path.display());
        error.0.source = Some(source);
        error
    }

    /// An error of the operating system while doing `action` (a gerund: "reading the header").
    pub fn io(source: io::Error, path: &Path, action: &str) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("{action}: {source}")).in_file(path.display());
        error.0.source = Some(source);
        error
    }

    /// A folder in which no file can be created. `source` is the error of the operating system.
    pub(crate) fn not_writable(source: &Self, folder: &Path) -> Self {
        let message =
            "expected a writable folder; change its permissions, or choose another folder";
        let number = source.raw_os_error().unwrap_or(libc::EACCES);
        Self::from_os(ErrorKind::Io, number, message).in_file(folder.display())
    }

    /// Names `target` in an error about `temporary`, its name until the first commit, or a file in it. The message then
    /// names that file, relative to the folder of `target`.
    #[must_use]
    pub(crate) fn for_target(mut self, temporary: &Path, target: &Path) -> Self {
        // `file` is lossy, too.
        let named = PathBuf::from(temporary.to_string_lossy().as_ref());
        let file = Path::new(&self.0.file);
        if temporary != target && file.starts_with(&named) {
            let folder = named.parent().unwrap_or(Path::new(""));
            let name = file.strip_prefix(folder).unwrap_or(file);
            self.0.message = format!("{}: {}", name.display(), self.0.message);
            self.0.file = target.display().to_string();
        }
        self
    }

    /// The error with the error of a caller's function that caused it, as its source.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(io::Error::other(cause));
        self
    }

    /// The cause of type `T` that [`caused_by`](Self::caused_by) added.
    pub fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.0.source.as_ref()?.get_ref()?.downcast_ref()
    }

    /// Names the file, unless an inner call named one already.
    #[must_use]
    pub fn in_file(mut self, file: impl fmt::Display) -> Self {
        if self.0.file.is_empty() {
            self.0.file = file.to_string();
        }
        self
    }

    /// Names the node (a group, an array, a record), unless an inner call named one already.
    #[must_use]
    pub fn at_node(mut self, node: impl fmt::Display) -> Self {
        if self.0.node.is_empty() {
            self.0.node = node.to_string();
        }
        self
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file it happened in; empty if none was involved.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The node it happened at; empty if none was involved.
    pub fn node(&self) -> &str {
        &self.0.node
    }

    /// What was expected, what was found, what to do; without file and node.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The operating system's error number, where there was one.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.source.as_ref().and_then(io::Error::raw_os_error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.file.is_empty() {
            write!(f, "{}: ", self.0.file)?;
        }
        if !self.0.node.is_empty() {
            write!(f, "{}: ", self.0.node)?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

/// The hint that names similar names; empty without similar names.
pub(crate) fn hint(similar: &[&str]) -> String {
    match similar {
        [] => String::new(),
        names => format!("did you mean {}? ", names.join(", ")),
    }
}

/// The name in `known` that is most similar to `name`; `None` if all differ too much.
pub(crate) fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|other| (distance(name, other), *other))
        .filter(|(distance, _)| is_similar(*distance, name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Whether a name at this distance is similar to `name`: a third of its letters may differ, but not all.
pub(crate) fn is_similar(distance: usize, name: &str) -> bool {
    let letters = name.chars().count();
    distance <= letters.div_ceil(3) && distance < letters
}

/// The Levenshtein distance of two names.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_most_similar_one() {
        let known = ["density", "pressure"];
        assert_eq!(
            Error::unknown("column", "densty", &known).to_string(),
            "column \"densty\" does not exist; did you mean density? available: density, pressure"
        );
        assert_eq!(
            Error::unknown("column", "x", &["y", "z"]).to_string(),
            "column \"x\" does not exist; available: y, z"
        );
    }

    #[test]
    fn message_names_file_and_node_once() {
        let error = Error::corrupt("chunk 3: checksum differs; restore the file from a copy")
            .at_node("/amr/density")
            .at_node("/outer")
            .in_file("run.ambar");
        assert_eq!(
            error.to_string(),
            "run.ambar: /amr/density: chunk 3: checksum differs; restore the file from a copy"
        );
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.cause::<fmt::Error>().is_none());
        let error = Error::invalid("a function failed").caused_by(fmt::Error);
        assert!(error.cause::<fmt::Error>().is_some() && error.raw_os_error().is_none());
    }

    #[test]
    fn errors_about_temporary_files_name_the_target() {
        let [temporary, target] = ["d/.x.ambar-new", "d/x"].map(Path::new);
        for (file, expected) in [
            ("d/.x.ambar-new", "d/x: .x.ambar-new: m"),
            ("d/.x.ambar-new/a/b", "d/x: .x.ambar-new/a/b: m"),
            ("d/x/a", "d/x/a: m"),
            ("", "m"),
        ] {
            let error = Error::busy("m").in_file(file);
            assert_eq!(error.for_target(temporary, target).to_string(), expected);
        }
        let error = Error::busy("m").in_file("d/x");
        assert_eq!(error.for_target(target, target).to_string(), "d/x: m");
    }

    #[test]
    fn io_errors_keep_their_number() {
        let error = Error::io(io::Error::from_raw_os_error(28), Path::new("x"), "writing");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.raw_os_error(), Some(28));
    }
}
