//! The list of a commit's entries, as the text in `.ambar/commit`.

use crc_fast::crc32_iscsi as crc32c;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use super::super::{CommitId, file, key};
use crate::error::{Error, Result};
use crate::limits::{Limits, zeroed};

/// The format of the list of a directory of files.
const FILES: u64 = 1;

/// The format of the list of objects with a common prefix, and the newest that this code reads.
const OBJECTS: u64 = 2;

/// The end of the number of an entry that is not at its key.
const STAGED: char = '+';

/// Length of the last line: `crc32c 01234567` and a newline.
const LAST_LINE: usize = 16;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Length in bytes.
    pub len: u64,
    /// CRC-32 of the bytes.
    pub crc32: u32,
    /// The entry's seal, where it has one.
    pub seal: Option<u32>,
    /// Number of the `put` that wrote it; never used twice in a store.
    pub number: u64,
    /// Whether its object has the name that follows from the number, instead of the key. Files may have either.
    pub is_staged: bool,
}

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Whether the entries are objects, rather than files.
    pub is_of_objects: bool,
    /// The commit's number, from 1; 0 before the first.
    pub sequence: u64,
    /// The number of the next `put`.
    pub next: u64,
    /// The entries by key.
    pub entries: HashMap<Box<str>, FileRecord>,
    /// The keys whose files this commit removes.
    pub removed: Vec<Box<str>>,
}

impl List {
    /// Reads the list in `file`, which has `path`.
    ///
    /// # Errors
    /// `Corrupt` if the list is damaged; `Unsupported` if its format is newer; `Limit`; `Io`.
    pub fn read(file: &File, path: &Path, limits: &Limits) -> Result<Self> {
        let len = file::length(file, path)?;
        let mut bytes = zeroed(
            "the list of entries",
            Limits::check("the list of entries", len, limits.directory_bytes)?,
        )?;
        file::read_exact(file, path, 0, &mut bytes)?;
        Self::parse(&bytes).map_err(|error| error.in_file(path.display()))
    }

    /// The list's text.
    pub fn encode(&self) -> Vec<u8> {
        let mut keys: Vec<&str> = self.entries.keys().map(AsRef::as_ref).collect();
        keys.sort_unstable();
        let format = match self.is_of_objects {
            true => OBJECTS,
            false => FILES,
        };
        let mut out = format!(
            "ambar directory {format:03} commit {} next {} entries {} removed {}\n",
            self.sequence,
            self.next,
            keys.len(),
            self.removed.len()
        );
        for key in keys {
            let FileRecord {
                len,
                crc32,
                seal,
                number,
                is_staged,
            } = self.entries[key];
            let seal = seal.map_or("-".to_owned(), |seal| format!("{seal:08x}"));
            let mark = if is_staged { "+" } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{crc32:08x} {seal} {len} {number}{mark} {key}");
        }
        for key in &self.removed {
            let _ = writeln!(out, "removed {key}");
        }
        let crc = crc32c(out.as_bytes());
        let _ = writeln!(out, "crc32c {crc:08x}");
        out.into_bytes()
    }

    /// The same commit as a list of files, each of which is at its key.
    pub fn of_files(mut self) -> Self {
        self.is_of_objects = false;
        for record in self.entries.values_mut() {
            record.is_staged = false;
        }
        self
    }

    /// Identifies this commit.
    pub fn commit_id(&self) -> CommitId {
        CommitId {
            number: self.sequence,
            checksum: crc32c(&self.encode()),
        }
    }

    /// Parses the text of a list.
    ///
    /// # Errors
    /// `Corrupt` if the list is damaged; `Unsupported` if its format is newer.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let body_len = bytes.len().saturating_sub(LAST_LINE);
        let (body, last) = bytes.split_at(body_len);
        let expected = format!("crc32c {:08x}\n", crc32c(body));
        let text = std::str::from_utf8(body).ok();
        let (Some(text), true) = (text, last == expected.as_bytes()) else {
            return Err(damaged("it does not match its checksum"));
        };
        let mut lines = text.split_terminator('\n');
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [
            "ambar",
            "directory",
            format,
            "commit",
            sequence,
            "next",
            next,
            "entries",
            entries,
            "removed",
            removed,
        ] = first[..]
        else {
            return Err(damaged("its first line is not as expected"));
        };
        let format = number(format)?;
        if format > OBJECTS {
            return Err(Error::unsupported(format!(
                "the directory has format {format}, this version of ambar reads up to {OBJECTS}; \
                 use a newer version"
            )));
        }
        let mut list = Self {
            is_of_objects: format == OBJECTS,
            sequence: number(sequence)?,
            next: number(next)?,
            entries: HashMap::new(),
            removed: Vec::new(),
        };
        let counts = (number(entries)?, number(removed)?);
        list.parse_lines(lines, counts)?;
        Ok(list)
    }

    /// Parses the lines after the first; `entries` and `removed` are the counts that the first line gives.
    fn parse_lines<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a str>,
        (entries, removed): (u64, u64),
    ) -> Result<()> {
        let mut last = "";
        for line in lines {
            let first_removed = self.removed.is_empty();
            let key = match line.strip_prefix("removed ") {
                Some(key) => {
                    self.removed.push(checked(key)?.into());
                    key
                }
                None if first_removed => self.parse_entry(line)?,
                None => return Err(damaged("an entry follows a removed key")),
            };
            let starts = first_removed && !self.removed.is_empty();
            if !starts && key <= last {
                return Err(damaged("its keys are not in order"));
            }
            last = key;
        }
        if (self.entries.len() as u64, self.removed.len() as u64) != (entries, removed) {
            return Err(damaged(&format!(
                "expected {entries} entries and {removed} removed keys, found {} and {}",
                self.entries.len(),
                self.removed.len()
            )));
        }
        if self
            .removed
            .iter()
            .any(|key| self.entries.contains_key(key))
        {
            return Err(damaged("a removed key is an entry"));
        }
        self.check_numbers()
    }

    /// Checks that the numbers of puts are unique and below `next`, and that the commit is counted from 1.
    fn check_numbers(&self) -> Result<()> {
        let mut numbers: Vec<u64> = self.entries.values().map(|record| record.number).collect();
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(damaged("two entries have the same number"));
        }
        if numbers.last().is_some_and(|last| *last >= self.next) || self.sequence == 0 {
            return Err(damaged(&format!(
                "expected a commit number above 0 and numbers of puts below {}",
                self.next
            )));
        }
        Ok(())
    }

    /// Parses the line of an entry, and returns its key.
    fn parse_entry<'a>(&mut self, line: &'a str) -> Result<&'a str> {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let [crc32, seal, len, put, key] = words[..] else {
            return Err(damaged("a line has too few words"));
        };
        let staged = put.strip_suffix(STAGED).filter(|_| self.is_of_objects);
        let record = FileRecord {
            len: number(len)?,
            crc32: checksum(crc32)?,
            seal: (seal != "-").then(|| checksum(seal)).transpose()?,
            number: number(staged.unwrap_or(put))?,
            is_staged: staged.is_some(),
        };
        self.entries.insert(checked(key)?.into(), record);
        Ok(key)
    }
}

fn checked(name: &str) -> Result<&str> {
    match key::broken_rule(name) {
        None => Ok(name),
        Some(rule) => Err(damaged(&format!("the key {name:?} {rule}"))),
    }
}

fn number(text: &str) -> Result<u64> {
    // `parse` alone would accept a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| damaged(&format!("expected a number, found {text:?}")))
}

fn checksum(text: &str) -> Result<u32> {
    let digits = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let checksum = (digits && text.len() == 8)
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten();
    checksum.ok_or_else(|| {
        damaged(&format!(
            "expected a checksum of 8 hexadecimal digits, found {text:?}"
        ))
    })
}

fn damaged(how: &str) -> Error {
    Error::corrupt(format!(
        "the list of entries is damaged ({how}); restore it from a copy, or recreate it with \
         `ambar repair`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(is_of_objects: bool) -> List {
        let record = |number| FileRecord {
            len: 10 * number,
            crc32: 7,
            seal: (number == 2).then_some(0xab),
            number,
            is_staged: is_of_objects && number == 8,
        };
        List {
            is_of_objects,
            sequence: 3,
            next: 9,
            entries: HashMap::from([
                ("zarr.json".into(), record(8)),
                ("a b/c/0".into(), record(2)),
            ]),
            removed: vec!["old/c/0".into()],
        }
    }

    #[test]
    fn lists_survive_their_text_and_no_flipped_bit() {
        for is_of_objects in [false, true] {
            let text = list(is_of_objects).encode();
            assert_eq!(List::parse(&text).unwrap(), list(is_of_objects));
            for bit in 0..text.len() * 8 {
                let mut flipped = text.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(List::parse(&flipped).is_err(), "bit {bit}");
            }
            for len in 0..text.len() {
                assert!(List::parse(&text[..len]).is_err(), "{len} bytes");
            }
        }
    }

    #[test]
    fn hostile_lists_are_errors() {
        let head = "ambar directory 001 commit 1 next 1";
        let two = "ambar directory 001 commit 1 next 2";
        for body in [
            format!("{head} entries 1 removed 0\n00000000 - 1 0 ../escape\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 0 /etc/passwd\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 0 .ambar/lock\n"),
            format!("{head} entries 0 removed 1\nremoved ../escape\n"),
            format!("{two} entries 2 removed 0\n00000000 - 1 0 a\n00000000 - 1 1 a\n"),
            format!("{head} entries 9 removed 0\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 1 a\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 +0 a\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 0+ a\n"),
            format!("{head} entries 1 removed 0\n000000000 - 1 0 a\n"),
            format!("{head} entries 1 removed 0\n0000000A - 1 0 a\n"),
            format!("{head} entries 1 removed 0\n00000000 - 1 0 a\r\n"),
            format!("{head} entries 1 removed 1\n00000000 - 1 0 a\nremoved a\n"),
            format!("{head} entries 1 removed 1\nremoved b\n00000000 - 1 0 a\n"),
            format!("{head} entries 0 removed 2\nremoved b\nremoved a\n"),
            format!("{two} entries 2 removed 0\n00000000 - 1 0 a\n00000000 - 1 0 b\n"),
            format!("{two} entries 2 removed 0\n00000000 - 1 0 b\n00000000 - 1 1 a\n"),
            "ambar directory 001 commit 0 next 0 entries 0 removed 0\n".to_owned(),
            format!("{head} entries 1 removed 0\n00000000 - -1 0 a\n"),
            format!("{head} entries 1 removed 0\n00000000\n"),
            format!("{head} entries 1 removed 0\n00000000 1 0 a\n"),
            format!("{head} entries 1 removed 0\n00000000 0000000A 1 0 a\n"),
            format!("{head} entries 1 removed 0\n00000000 -- 1 0 a\n"),
            format!("{head}\n"),
            String::new(),
        ] {
            let text = format!("{body}crc32c {:08x}\n", crc32c(body.as_bytes()));
            let error = List::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{body}");
        }
        let newer = list(true).encode();
        let body = String::from_utf8(newer).unwrap().replace(" 002 ", " 003 ");
        let body = &body[..body.len() - LAST_LINE];
        let text = format!("{body}crc32c {:08x}\n", crc32c(body.as_bytes()));
        let error = List::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }
}
