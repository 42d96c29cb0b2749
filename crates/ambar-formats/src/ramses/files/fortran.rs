//! Fortran sequential files: records between 4-byte length markers.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ambar::{Error, Result};

/// Minimum bytes of a read, so that headers and runs of short records need one call.
const WINDOW: u64 = 16 << 10;

/// A file of Fortran records, open for reading. Positions are bytes from its start.
pub struct FortranFile {
    file: File,
    path: PathBuf,
    len: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// The position of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The payload: one piece, or several if the compiler split the record into subrecords.
    pieces: Pieces,
    /// Bytes of the payload.
    pub len: u64,
    /// The position after its last marker.
    pub end: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pieces {
    One(u64),
    Many(Vec<Range<u64>>),
}

impl Record {
    /// A record of one piece.
    pub fn plain(start: u64, len: u64) -> Self {
        Self {
            pieces: Pieces::One(start),
            len,
            end: start + len + 4,
        }
    }

    /// The position of the payload's first byte.
    pub fn start(&self) -> u64 {
        match &self.pieces {
            Pieces::One(start) => *start,
            Pieces::Many(pieces) => pieces.first().map_or(0, |piece| piece.start),
        }
    }
}

impl FortranFile {
    /// Opens `path`. `buffer` is memory to reuse, from `into_buffer`.
    pub fn open(path: &Path, buffer: Vec<u8>) -> Result<Self> {
        let io = |e| Error::opening(e, path, "opening a file of the output");
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        Ok(Self {
            file,
            path: path.to_owned(),
            len,
            window: {
                let mut window = buffer;
                window.clear();
                window
            },
            window_start: 0,
        })
    }

    /// Returns the buffer for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.window
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// An error for damage at byte `at`, in the record `name`.
    pub fn damaged(&self, name: &str, at: u64, what: impl std::fmt::Display) -> Error {
        Error::corrupt(format!(
            "at byte {at} of {}: {what}; the file is damaged or truncated: copy it again from where \
             the run wrote it",
            self.len
        ))
        .at_node(format!("record {name:?}"))
        .in_file(self.path.display())
    }

    /// Reads `out.len()` bytes at `at`.
    pub fn read_at(&self, at: u64, out: &mut [u8], name: &str) -> Result<()> {
        let end = at.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            let what = format!("expected {} bytes, found the end of the file", out.len());
            return Err(self.damaged(name, at, what));
        }
        self.file.read_exact_at(out, at).map_err(|e| {
            if e.kind() == std::io::ErrorKind::UnexpectedEof {
                self.damaged(name, at, "the file was truncated while it was read")
            } else {
                Error::io(e, &self.path, "reading a record")
            }
        })
    }

    /// The `len` bytes at `at`, which must be inside the file. Reads ahead.
    pub fn bytes(&mut self, at: u64, len: u64, name: &str) -> Result<&[u8]> {
        let inside =
            |window: &[u8], start: u64| at >= start && at - start + len <= window.len() as u64;
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            let what = format!("expected {len} bytes, found the end of the file");
            return Err(self.damaged(name, at, what));
        }
        if !inside(&self.window, self.window_start) {
            // At most the file's length; callers limit `len`.
            let size = len.max(WINDOW.min(self.len - at)) as usize;
            let mut window = std::mem::take(&mut self.window);
            window.resize(size, 0);
            self.read_at(at, &mut window, name)?;
            self.window = window;
            self.window_start = at;
        }
        let from = (at - self.window_start) as usize;
        Ok(&self.window[from..from + len as usize])
    }

    /// The marker at `at`.
    pub fn marker(&mut self, at: u64, name: &str) -> Result<i32> {
        let bytes = self.bytes(at, 4, name)?;
        Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Checks that the file is not big-endian, by the markers of the first record.
    ///
    /// # Errors
    /// `Unsupported` if the markers agree as big-endian numbers.
    fn check_byte_order(&mut self, name: &str) -> Result<()> {
        let head = self.marker(0, name)?;
        let swapped = head.swap_bytes();
        let end = u64::from(swapped.unsigned_abs()) + 4;
        if swapped < 0 || end + 4 > self.len || self.marker(end, name)?.swap_bytes() != swapped {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "expected a little-endian file, found a big-endian one: its first record has {swapped} \
             bytes in big-endian order ({head} in little-endian order); write the output without \
             -fconvert=big-endian or GFORTRAN_CONVERT_UNIT, or swap the bytes of each number with \
             another program"
        ))
        .in_file(self.path.display()))
    }

    /// Locates the record whose first marker is at `at`, and checks its markers.
    pub fn locate(&mut self, at: u64, name: &str) -> Result<Record> {
        let mut pieces = Vec::new();
        let (mut at, mut total) = (at, 0u64);
        loop {
            let head = self.marker(at, name)?;
            let len = u64::from(head.unsigned_abs());
            let start = at + 4;
            if len + 4 > self.len.saturating_sub(start) {
                if at == 0 {
                    self.check_byte_order(name)?;
                }
                let what = format!(
                    "expected {len} bytes and a marker after the marker {head}, found {} bytes",
                    self.len.saturating_sub(start)
                );
                return Err(self.damaged(name, at, what));
            }
            let tail = self.marker(start + len, name)?;
            let is_first = pieces.is_empty();
            let expected = if is_first {
                i64::from(len as u32)
            } else {
                -i64::from(len as u32)
            };
            if i64::from(tail) != expected {
                let what = format!("expected the closing marker {expected}, found {tail}");
                return Err(self.damaged(name, start + len, what));
            }
            at = start + len + 4;
            total += len;
            if head >= 0 && is_first {
                return Ok(Record::plain(start, len));
            }
            if len == 0 && head < 0 {
                return Err(self.damaged(
                    name,
                    at,
                    "expected a subrecord with content, found an empty one",
                ));
            }
            pieces.push(start..start + len);
            if head >= 0 {
                let pieces = Pieces::Many(pieces);
                return Ok(Record {
                    pieces,
                    len: total,
                    end: at,
                });
            }
        }
    }

    /// Reads the bytes `range` of a record's payload into `out`, which has the same length.
    pub fn read_part(
        &self,
        record: &Record,
        range: Range<u64>,
        out: &mut [u8],
        name: &str,
    ) -> Result<()> {
        let pieces = match &record.pieces {
            Pieces::One(start) => return self.read_at(start + range.start, out, name),
            Pieces::Many(pieces) => pieces,
        };
        let (mut passed, mut done) = (0u64, 0usize);
        for piece in pieces {
            let size = piece.end - piece.start;
            let from = range.start.clamp(passed, passed + size) - passed;
            let to = range.end.clamp(passed, passed + size) - passed;
            if to > from {
                let end = done + (to - from) as usize;
                self.read_at(piece.start + from, &mut out[done..end], name)?;
                done = end;
            }
            passed += size;
        }
        if done == out.len() {
            return Ok(());
        }
        Err(self.damaged(name, record.end, "expected a longer record"))
    }
}

/// Reads a file's records in order.
pub struct Cursor<'f> {
    /// The file.
    pub file: &'f mut FortranFile,
    /// Position of the next record's first marker.
    pub at: u64,
    joined: Vec<u8>,
}

impl<'f> Cursor<'f> {
    /// A cursor at the position `at`.
    pub fn new(file: &'f mut FortranFile, at: u64) -> Self {
        let joined = Vec::new();
        Self { file, at, joined }
    }

    /// True if no record follows.
    pub fn at_end(&self) -> bool {
        self.at >= self.file.len
    }

    /// Skips a record, and checks its markers.
    pub fn skip(&mut self, name: &str) -> Result<Record> {
        let record = self.file.locate(self.at, name)?;
        self.at = record.end;
        Ok(record)
    }

    /// The payload of the next record, of at most `most` bytes.
    pub fn record(&mut self, name: &str, most: u64) -> Result<&[u8]> {
        let at = self.at;
        let record = self.skip(name)?;
        if record.len > most {
            let what = format!("expected at most {most} bytes, found {}", record.len);
            return Err(self.file.damaged(name, at, what));
        }
        if let Pieces::One(start) = record.pieces {
            return self.file.bytes(start, record.len, name);
        }
        let mut joined = std::mem::take(&mut self.joined);
        // `locate` checks that every piece is inside the file, which bounds this length.
        joined.resize(record.len as usize, 0);
        self.file
            .read_part(&record, 0..record.len, &mut joined, name)?;
        self.joined = joined;
        Ok(&self.joined)
    }

    /// The payload of the next record as `count` integers of 4 or (`LONGINT`) 8 bytes.
    pub fn integers(&mut self, name: &str, count: u64) -> Result<Vec<i64>> {
        let at = self.at;
        let bytes = self.record(name, count.saturating_mul(8))?;
        let (quads, rest) = bytes.as_chunks::<4>();
        if rest.is_empty() && quads.len() as u64 == count {
            let values = quads.iter().map(|b| i64::from(i32::from_le_bytes(*b)));
            return Ok(values.collect());
        }
        let (octs, rest) = bytes.as_chunks::<8>();
        if rest.is_empty() && octs.len() as u64 == count {
            return Ok(octs.iter().map(|b| i64::from_le_bytes(*b)).collect());
        }
        let what = format!(
            "expected {count} integers of 4 or 8 bytes, found {} bytes",
            bytes.len()
        );
        Err(self.file.damaged(name, at, what))
    }

    /// The payload of the next record as one integer, which must be in `allowed`.
    pub fn integer(&mut self, name: &str, allowed: Range<i64>) -> Result<i64> {
        let at = self.at;
        let value = self.integers(name, 1)?[0];
        if allowed.contains(&value) {
            return Ok(value);
        }
        let what = format!(
            "expected a number from {} to {}, found {value}",
            allowed.start,
            allowed.end - 1
        );
        Err(self.file.damaged(name, at, what))
    }

    /// The payload of the next record as one real, and its size in bytes.
    pub fn real(&mut self, name: &str) -> Result<(f64, u8)> {
        let at = self.at;
        let bytes = self.record(name, 8)?;
        if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
            return Ok((f64::from_le_bytes(bytes), 8));
        }
        if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
            return Ok((f64::from(f32::from_le_bytes(bytes)), 4));
        }
        let what = format!(
            "expected a real of 4 or 8 bytes, found {} bytes",
            bytes.len()
        );
        Err(self.file.damaged(name, at, what))
    }

    /// Checks that the next record is one integer equal to `expected`, which comes from `source`.
    pub fn expect(&mut self, name: &str, expected: i64, source: &str) -> Result<()> {
        let at = self.at;
        let value = self.integers(name, 1)?[0];
        if value == expected {
            return Ok(());
        }
        let what = format!("expected {expected} as in {source}, found {value}");
        Err(self.file.damaged(name, at, what))
    }
}
