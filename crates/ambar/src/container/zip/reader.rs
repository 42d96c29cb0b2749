//! Reading one commit of a ZIP: two reads open it, and one `pread` each fetches what is asked for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Container, Entry, Place, Usage, file};
use super::index::Index;
use super::locate::{self, Last};
use super::parse::{Maker, Record};
use super::records::{self, LOCAL_LEN, LocalHeader, u16_at, u32_at};
use super::slot::{self, HEADER_LEN, Slot, TRAILER_LEN};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// One commit of a ZIP.
pub struct ZipReader {
    file: Arc<File>,
    path: PathBuf,
    location: String,
    index: Index,
    /// The commit; `None` in a ZIP that another program made.
    slot: Option<Slot>,
    /// Length of the central directory and what follows it.
    directory_len: u64,
}

impl ZipReader {
    /// Opens the last commit of the ZIP at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io(source, path, "opening"))?;
        Self::of(Arc::new(file), path).map_err(|error| error.in_file(path.display()))
    }

    fn of(file: Arc<File>, path: &Path) -> Result<Self> {
        let header = locate::read_header(&file, path)?;
        if !slot::is_header(&header) {
            return Self::foreign(file, path);
        }
        let last = locate::last_commit(&file, path, &header)?;
        Self::at(file, path, &last.slot)
    }

    /// Opens the commit `slot` of `file`, which has `path`.
    pub fn at(file: Arc<File>, path: &Path, slot: &Slot) -> Result<Self> {
        let limit = Limits::default().directory_bytes;
        let len = Limits::check("the central directory", slot.directory_len, limit)?;
        let mut directory = vec![0; len];
        file::read_exact(&file, path, slot.directory_offset, &mut directory)?;
        if crc32c::crc32c(&directory) != slot.directory_crc {
            return Err(Error::corrupt(format!(
                "the central directory of commit {} does not match its checksum; restore the file \
                 from a copy",
                slot.sequence
            )));
        }
        let index = Index::new(directory, slot.entries, slot.directory_offset, Maker::Ambar)?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            location: path.display().to_string(),
            index,
            slot: Some(*slot),
            directory_len: slot.directory_len + TRAILER_LEN as u64,
        })
    }

    /// Opens a ZIP that another program made.
    fn foreign(file: Arc<File>, path: &Path) -> Result<Self> {
        if locate::trailer_at(&file, path, file::length(&file, path)?)?.is_some() {
            return Err(slot::damaged_header());
        }
        let found = locate::foreign(&file, path)?;
        let limit = Limits::default().directory_bytes;
        let len = Limits::check("the central directory", found.len, limit)?;
        let mut directory = vec![0; len];
        file::read_exact(&file, path, found.offset, &mut directory)?;
        let index = Index::new(directory, found.entries, found.offset, Maker::Other)?;
        Ok(Self {
            directory_len: file::length(&file, path)? - found.offset,
            file,
            path: path.to_path_buf(),
            location: path.display().to_string(),
            index,
            slot: None,
        })
    }

    /// All entries.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// File offset of the content of `record`, which in ZIPs of others its local header tells.
    fn data_offset(&self, key: &str, record: &Record) -> Result<u64> {
        if let Some(offset) = record.data_offset {
            return Ok(offset);
        }
        let mut header = [0; LOCAL_LEN];
        file::read_exact(&self.file, &self.path, record.header_offset, &mut header)?;
        let behind = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let offset = record.header_offset + LOCAL_LEN as u64 + behind;
        let file_len = file::length(&self.file, &self.path)?;
        let inside = offset
            .checked_add(record.len)
            .is_some_and(|end| end <= file_len);
        if u32_at(&header, 0) != records::LOCAL_SIGNATURE || !inside {
            return Err(local_header_differs(key));
        }
        Ok(offset)
    }

    /// Checks that the local header says what the central directory says.
    fn verify_local_header(&self, key: &str, record: &Record) -> Result<()> {
        let mut expected = Vec::new();
        let header = LocalHeader {
            name: key,
            len: record.len,
            crc32: record.crc32,
        };
        header.encode(&mut expected);
        let fixed = LOCAL_LEN + key.len();
        let known = match self.slot {
            Some(_) => expected.len(),
            None => fixed,
        };
        let mut found = vec![0; known];
        file::read_exact(&self.file, &self.path, record.header_offset, &mut found)?;
        let same = match self.slot {
            Some(_) => found == expected,
            // Other programs choose flags, times and extra fields of their own.
            None => {
                u32_at(&found, 0) == records::LOCAL_SIGNATURE
                    && found[LOCAL_LEN..] == expected[LOCAL_LEN..fixed]
                    && (record.streamed || found[14..18] == expected[14..18])
            }
        };
        if same {
            Ok(())
        } else {
            Err(local_header_differs(key))
        }
    }

    /// Calls `take` with the content of `record`, piece by piece, and verifies its CRC-32.
    pub fn stream(
        &self,
        key: &str,
        record: &Record,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let start = self.data_offset(key, record)?;
        let found = file::stream(&self.file, &self.path, start, record.len, take)?;
        file::check_crc32(found, Some(record.crc32)).map_err(|error| error.at_node(key))
    }

    fn placed<T>(&self, result: Result<T>, key: &str) -> Result<T> {
        result.map_err(|error| error.at_node(key).in_file(&self.location))
    }

    fn verify_entry(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let record = self
            .index
            .get(key)
            .ok_or_else(|| Error::not_found("there is no such entry"))?;
        self.verify_local_header(key, &record)?;
        self.stream(key, &record, &mut |piece| {
            progress(piece.len() as u64);
            Ok(())
        })
    }

    /// Checks header, slots and trailer of a ZIP that ambar made.
    fn verify_own_records(&self, slot: &Slot) -> Result<()> {
        let header = locate::read_header(&self.file, &self.path)?;
        let Last { slots, .. } = locate::last_commit(&self.file, &self.path, &header)?;
        if slots.iter().any(Option::is_none) {
            return Err(Error::corrupt(
                "one of the two commit slots is damaged; let `ambar repair` restore it",
            ));
        }
        let position = slot.directory_offset + slot.directory_len;
        let mut trailer = [0; TRAILER_LEN];
        file::read_exact(&self.file, &self.path, position, &mut trailer)?;
        if slot.trailer() != trailer {
            return Err(Error::corrupt(
                "the end of central directory is damaged, other ZIP readers cannot open the file; \
                 let `ambar repair` restore it",
            ));
        }
        Ok(())
    }
}

impl Container for ZipReader {
    fn location(&self) -> &str {
        &self.location
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        let Some(record) = self.index.get(key) else {
            return Ok(None);
        };
        let offset = self.placed(self.data_offset(key, &record), key)?;
        Ok(Some(Entry {
            len: record.len,
            crc32: Some(record.crc32),
            place: Place::Offset(offset),
        }))
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        let Place::Offset(start) = entry.place else {
            return Err(Error::invalid("the entry is another container's").in_file(&self.location));
        };
        entry
            .check_range(offset, out.len())
            .map_err(|error| error.in_file(&self.location))?;
        // An entry lies inside the file, so that its offsets do not overflow.
        file::read_exact(&self.file, &self.path, start + offset, out)
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(key)? else {
            return Ok(None);
        };
        let read = || {
            let mut bytes = vec![0; Limits::check("the entry", entry.len, limit)?];
            self.read_at(&entry, 0, &mut bytes)?;
            file::check_crc32(crc32fast::hash(&bytes), entry.crc32)?;
            Ok(Some(bytes))
        };
        self.placed(read(), key)
    }

    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.placed(self.verify_entry(key, progress), key)
    }

    fn verify_records(&self) -> Result<()> {
        match &self.slot {
            None => Ok(()),
            Some(slot) => self
                .verify_own_records(slot)
                .map_err(|error| error.in_file(&self.location)),
        }
    }

    fn keys(&self) -> Result<Vec<String>> {
        let mut keys: Vec<String> = self.index.iter().map(|(key, _)| key.to_owned()).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn usage(&self) -> Result<Usage> {
        let total = file::length(&self.file, &self.path)?;
        let header = self.slot.map_or(0, |_| HEADER_LEN as u64);
        let entries = self.index.iter().map(|(key, record)| {
            let least = (LOCAL_LEN + key.len()) as u64;
            let header = record
                .data_offset
                .map_or(least, |data| data - record.header_offset);
            header + record.len
        });
        // Entries of a hostile file may all claim the same bytes.
        let live = entries.fold(header + self.directory_len, u64::saturating_add);
        Ok(Usage {
            total,
            live,
            dead: total.saturating_sub(live),
            entries: self.index.len() as u64,
            commit: self.slot.map_or(0, |slot| slot.sequence),
        })
    }
}

impl std::fmt::Debug for ZipReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ZipReader({}, {} entries)",
            self.location,
            self.index.len()
        )
    }
}

fn local_header_differs(key: &str) -> Error {
    Error::corrupt(
        "the entry's local header differs from the central directory; restore the file from a copy",
    )
    .at_node(key)
}
