//! The folder of an output: its files, including those in `group_XXXXX` folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ambar::{Error, Result};

use crate::ramses::component::MissingReason;
use crate::series::Fingerprint;

/// Maximum bytes of a text file (info, descriptor, namelist, sinks, clumps).
const TEXT_LIMIT: u64 = 1 << 30;

/// Sizes and modification times of an output's files.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of files in the folder.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Names of domain files without content.
    pub empty: Vec<String>,
    /// A hash of names, sizes and modification times of the files that RAMSES wrote.
    pub fingerprint: String,
}

/// The folder of an output, listed once.
#[derive(Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// The output's number as in file names: five digits or more.
    pub number: String,
    /// File names, and the index of their folder in `folders`.
    names: HashMap<String, usize>,
    /// The folder itself, then its groups.
    folders: Vec<PathBuf>,
}

impl Folder {
    /// Lists the folder of an output. `path` is the folder, its info file or one of its groups.
    ///
    /// # Errors
    /// `NotFound` if the folder or an info file in it does not exist; `Invalid` if it has several info
    /// files; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let has_prefix = |path: &Path, start: &str| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(start))
        };
        let mut root = path;
        if has_prefix(root, "info_") && root.is_file() {
            root = root.parent().unwrap_or(root);
        }
        if has_prefix(root, "group_") && root.is_dir() {
            root = root.parent().unwrap_or(root);
        }
        if root.as_os_str().is_empty() {
            root = Path::new(".");
        }
        let mut folder = Self {
            path: root.to_owned(),
            number: String::new(),
            names: HashMap::new(),
            folders: vec![root.to_owned()],
        };
        let mut next = 0;
        while let Some(place) = folder.folders.get(next).cloned() {
            folder.list(&place, next)?;
            next += 1;
        }
        folder.number = folder.find_number(path)?;
        Ok(folder)
    }

    fn list(&mut self, place: &Path, index: usize) -> Result<()> {
        let io = |e| Error::io(e, place, "listing an output's folder");
        for entry in std::fs::read_dir(place).map_err(io)? {
            let entry = entry.map_err(io)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let is_group = index == 0 && name.starts_with("group_");
            if is_group && entry.file_type().map_err(io)?.is_dir() {
                self.folders.push(entry.path());
            } else {
                self.names.entry(name).or_insert(index);
            }
        }
        Ok(())
    }

    /// Reads sizes and modification times of the files.
    ///
    /// # Errors
    /// `Io`.
    pub fn survey(&self) -> Result<Survey> {
        let mut names: Vec<&String> = self.names.keys().collect();
        names.sort();
        let mut survey = Survey::default();
        let mut fingerprint = Fingerprint::default();
        for name in names {
            let Some(path) = self.file(name) else {
                continue;
            };
            let metadata = std::fs::metadata(&path).map_err(|e| Error::io(e, &path, "sizing"))?;
            if !metadata.is_file() {
                continue;
            }
            survey.files += 1;
            survey.bytes += metadata.len();
            if is_output_file(name) {
                fingerprint.add_file(name, &metadata);
                if metadata.len() == 0 && has_domain(name) {
                    survey.empty.push(name.clone());
                }
            }
        }
        survey.fingerprint = fingerprint.text();
        Ok(survey)
    }

    /// The output's number.
    ///
    /// # Errors
    /// `Invalid` for a number above `u32::MAX`.
    pub fn number(&self) -> Result<u32> {
        self.number.parse().map_err(|_| {
            Error::invalid(format!(
                "expected an output number of at most {}, found {}; rename its files",
                u32::MAX,
                self.number
            ))
            .in_file(self.path.display())
        })
    }

    /// True if a file `<start>_NNNNN` with any suffix exists.
    pub fn has_any(&self, start: &str) -> bool {
        let start = format!("{start}_{}.", self.number);
        self.names.keys().any(|name| name.starts_with(&start))
    }

    fn find_number(&self, requested: &Path) -> Result<String> {
        let number = |name: &str| {
            let digits = name.strip_prefix("info_")?.strip_suffix(".txt")?;
            let valid = digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit());
            valid.then(|| digits.to_owned())
        };
        if let Some(digits) = requested
            .file_name()
            .and_then(|name| number(&name.to_string_lossy()))
        {
            return Ok(digits);
        }
        let mut found: Vec<_> = self.names.keys().filter_map(|name| number(name)).collect();
        found.sort();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Error::not_found(
                "expected info_NNNNN.txt, found no such file; give the folder of one RAMSES output \
                 (output_NNNNN)",
            )
            .in_file(self.path.display())),
            several => Err(Error::invalid(format!(
                "expected the info file of one output, found several ({}); give one of them instead \
                 of the folder",
                several.join(", ")
            ))
            .in_file(self.path.display())),
        }
    }

    /// The path of the file `name`, if it exists.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let folder = *self.names.get(name)?;
        Some(self.folders.get(folder)?.join(name))
    }

    /// The path of the file `<start>_NNNNN<end>`, if it exists.
    pub fn numbered(&self, start: &str, end: &str) -> Option<PathBuf> {
        self.file(&format!("{start}_{}{end}", self.number))
    }

    /// The path of a domain's file. `domain` counts from 0; file names count from 1.
    ///
    /// # Errors
    /// `NotFound`, naming the file.
    pub fn domain(&self, start: &str, domain: u64) -> Result<PathBuf> {
        let name = format!("{start}_{}.out{:05}", self.number, domain + 1);
        self.file(&name).ok_or_else(|| {
            Error::missing_file(
                "the output is not complete: this file does not exist; copy the output again",
            )
            .in_file(self.path.join(name).display())
        })
    }

    /// Why a component with one file per domain cannot be read; `None` if it can.
    pub fn missing(&self, start: &str, end: &str, ncpu: u64) -> Option<MissingReason> {
        let name = |domain: u64| format!("{start}_{}.{end}{domain:05}", self.number);
        let exists = |domain: &u64| self.names.contains_key(&name(*domain));
        let first = (1..=ncpu).find(exists);
        let Some(first) = first else {
            let files = format!("{start}_{}.{end}NNNNN", self.number);
            return Some(MissingReason::Absent(format!(
                "the output has no files {files}"
            )));
        };
        let gap = (1..=ncpu).find(|domain| !exists(domain))?;
        Some(MissingReason::Broken(format!(
            "expected {} beside {}, which does not exist; copy the output again",
            name(gap),
            name(first)
        )))
    }

    /// Why a component with a single file, `<start>_NNNNN<end>`, cannot be read; `None` if it can.
    pub fn missing_single_file(&self, start: &str, end: &str) -> Option<MissingReason> {
        let name = format!("{start}_{}{end}", self.number);
        let exists = self.names.contains_key(&name);
        (!exists).then(|| MissingReason::Absent(format!("the output has no file {name}")))
    }

    /// The text of the file `name`; `None` if it does not exist. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// `Io`; `Limit` for a file above `TEXT_LIMIT`.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        self.file(name).map(|path| read_text(&path)).transpose()
    }

    /// As `text`, for `<start>_NNNNN<end>`.
    pub fn numbered_text(&self, start: &str, end: &str) -> Result<Option<String>> {
        self.text(&format!("{start}_{}{end}", self.number))
    }
}

/// True for names of files that RAMSES writes; users may add others.
fn is_output_file(name: &str) -> bool {
    const STARTS: [&str; 9] = [
        "amr_", "clump_", "grav_", "header_", "hydro_", "info_", "part_", "rt_", "sink_",
    ];
    name == "namelist.txt" || STARTS.iter().any(|start| name.starts_with(start))
}

/// True for names that end with the number of a domain: `amr_00001.out00002`.
fn has_domain(name: &str) -> bool {
    let (_, end) = name.rsplit_once(".out").unwrap_or_default();
    !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String> {
    let io = |e| Error::io(e, path, "reading a text file of the output");
    let len = std::fs::metadata(path).map_err(io)?.len();
    ambar::Limits::check("a text file", len, TEXT_LIMIT).map_err(|e| e.in_file(path.display()))?;
    let bytes = std::fs::read(path).map_err(io)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
