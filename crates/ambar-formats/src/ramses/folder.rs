//! The files of an output: which there are, in the folder itself and in its `group_XXXXX` folders.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ambar::{Error, Result};

use super::request::Missing;

/// Largest text file that is read: infos, descriptors, namelists, sinks, clumps.
const TEXT_LIMIT: u64 = 1 << 30;

/// What the file system says of an output's files.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of all files in the folder.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Domains' files without content, by name.
    pub empty: Vec<String>,
    /// A hash of names, sizes and times of modification of the output's own files.
    pub fingerprint: String,
}

/// The output's folder, listed once.
#[derive(Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// The output's number as it stands in file names: five digits.
    pub number: String,
    /// File names, and in which of `places` they lie.
    names: HashMap<String, usize>,
    places: Vec<PathBuf>,
}

impl Folder {
    /// Lists the folder of an output, given itself, its info file or one of its groups.
    ///
    /// # Errors
    /// `NotFound` where it is not there or holds no info file; `Invalid` where it holds several;
    /// `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let named = |path: &Path, start: &str| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(start))
        };
        let mut root = path;
        if named(root, "info_") && root.is_file() {
            root = root.parent().unwrap_or(root);
        }
        if named(root, "group_") && root.is_dir() {
            root = root.parent().unwrap_or(root);
        }
        if root.as_os_str().is_empty() {
            root = Path::new(".");
        }
        let mut folder = Self {
            path: root.to_owned(),
            number: String::new(),
            names: HashMap::new(),
            places: vec![root.to_owned()],
        };
        let mut next = 0;
        while let Some(place) = folder.places.get(next).cloned() {
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
                self.places.push(entry.path());
            } else {
                self.names.entry(name).or_insert(index);
            }
        }
        Ok(())
    }

    /// Sizes and times of the files.
    ///
    /// # Errors
    /// `Io`.
    pub fn survey(&self) -> Result<Survey> {
        let mut names: Vec<&String> = self.names.keys().collect();
        names.sort();
        let mut survey = Survey::default();
        let mut hash = Fnv::default();
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
            if is_of_output(name) {
                let numbers = [
                    metadata.len(),
                    metadata.mtime().cast_unsigned(),
                    metadata.mtime_nsec().cast_unsigned(),
                ];
                hash.add(name.as_bytes());
                hash.add(&numbers.map(u64::to_le_bytes).concat());
                if metadata.len() == 0 && has_domain(name) {
                    survey.empty.push(name.clone());
                }
            }
        }
        survey.fingerprint = format!("{:016x}", hash.0);
        Ok(survey)
    }

    /// The output's number.
    ///
    /// # Errors
    /// `Invalid` for a number too large.
    pub fn number(&self) -> Result<u32> {
        self.number.parse().map_err(|_| {
            Error::invalid(format!(
                "the output's number {} is above {}; rename its files",
                self.number,
                u32::MAX
            ))
            .in_file(self.path.display())
        })
    }

    /// Whether there is a file `<start>_NNNNN` with any ending.
    pub fn has_any(&self, start: &str) -> bool {
        let start = format!("{start}_{}.", self.number);
        self.names.keys().any(|name| name.starts_with(&start))
    }

    fn find_number(&self, asked: &Path) -> Result<String> {
        let number = |name: &str| {
            let digits = name.strip_prefix("info_")?.strip_suffix(".txt")?;
            let valid = digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit());
            valid.then(|| digits.to_owned())
        };
        if let Some(digits) = asked
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
                "no info_NNNNN.txt here: give the folder of one RAMSES output (output_NNNNN)",
            )
            .in_file(self.path.display())),
            several => Err(Error::invalid(format!(
                "info files of several outputs ({}): give one of them instead of the folder",
                several.join(", ")
            ))
            .in_file(self.path.display())),
        }
    }

    /// The path of the file `name`, if it is there.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let place = *self.names.get(name)?;
        Some(self.places.get(place)?.join(name))
    }

    /// The path of a numbered file, `<start>_NNNNN<end>`, if it is there.
    pub fn numbered(&self, start: &str, end: &str) -> Option<PathBuf> {
        self.file(&format!("{start}_{}{end}", self.number))
    }

    /// The path of a domain's file; domains count from 0 here, from 1 in the name.
    ///
    /// # Errors
    /// `NotFound`, naming it.
    pub fn domain(&self, start: &str, domain: u64) -> Result<PathBuf> {
        self.numbered(start, &format!(".out{:05}", domain + 1))
            .ok_or_else(|| {
                Error::not_found(format!(
                    "{start}_{}.out{:05} is missing: copy the output again",
                    self.number,
                    domain + 1
                ))
                .in_file(self.path.display())
            })
    }

    /// Why a component of one file a domain cannot be read; `None` where it can.
    pub fn missing(&self, start: &str, end: &str, ncpu: u64) -> Option<Missing> {
        let name = |domain: u64| format!("{start}_{}.{end}{domain:05}", self.number);
        let there = |domain: &u64| self.names.contains_key(&name(*domain));
        let first = (1..=ncpu).find(there);
        let Some(first) = first else {
            let files = format!("{start}_{}.{end}NNNNN", self.number);
            return Some(Missing::Absent(format!("the output has no files {files}")));
        };
        let gap = (1..=ncpu).find(|domain| !there(domain))?;
        Some(Missing::Broken(format!(
            "{} is missing, though {} is there: copy the output again",
            name(gap),
            name(first)
        )))
    }

    /// Why a component of a single file, `<start>_NNNNN<end>`, cannot be read.
    pub fn missing_one(&self, start: &str, end: &str) -> Option<Missing> {
        let name = format!("{start}_{}{end}", self.number);
        let there = self.names.contains_key(&name);
        (!there).then(|| Missing::Absent(format!("the output has no file {name}")))
    }

    /// The text of the file `name`; `None` where it is not there. Bytes that are not UTF-8 are
    /// replaced.
    ///
    /// # Errors
    /// `Io`; `Limit` for a file too long to be text.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        self.file(name).map(|path| read_text(&path)).transpose()
    }

    /// As `text`, for `<start>_NNNNN<end>`.
    pub fn numbered_text(&self, start: &str, end: &str) -> Result<Option<String>> {
        self.text(&format!("{start}_{}{end}", self.number))
    }
}

/// Whether a file of this name is a part of the output, and not something a user put beside it.
fn is_of_output(name: &str) -> bool {
    const STARTS: [&str; 9] = [
        "amr_", "clump_", "grav_", "header_", "hydro_", "info_", "part_", "rt_", "sink_",
    ];
    name == "namelist.txt" || STARTS.iter().any(|start| name.starts_with(start))
}

/// Whether a name ends with the number of a domain: `amr_00001.out00002`.
fn has_domain(name: &str) -> bool {
    let (_, end) = name.rsplit_once(".out").unwrap_or_default();
    !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit())
}

/// The hash function FNV-1a of 64 bits: it tells changes apart, and is no protection.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        // The length separates what is added one after the other.
        let len = (bytes.len() as u64).to_le_bytes();
        for byte in len.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
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
