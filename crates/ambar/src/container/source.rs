//! Sources of a ZIP's bytes: a local file, memory, or an object of an object store.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::read_ahead::{ReadAhead, Segment, SegmentCache};
use super::{file, ranges};
use crate::error::Result;

/// Maximum gap between parts of a file that are read together: copying the gap from the page cache takes about
/// as long as another call.
const JOINED_GAP: u64 = 16 << 10;

/// Maximum bytes of a file that are read ahead with one call.
const READ_BYTES: u64 = 8 << 20;

/// Bytes that can be read from any offset, by any number of threads.
pub trait ByteSource: Send + Sync + fmt::Debug {
    /// The path or URL, for messages.
    fn location(&self) -> &str;

    /// The length in bytes; a file can have grown since it was opened.
    ///
    /// # Errors
    /// `Io`.
    fn length(&self) -> Result<u64>;

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// `Corrupt` if the source is too short; `Busy` if an object was replaced since it was opened; `Io`.
    fn read_exact(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Reads `parts`, close ones together, and caches them for `read_exact` until the result is dropped.
    ///
    /// # Errors
    /// As `read_exact`.
    fn read_ahead(&self, parts: &[Range<u64>], gap: u64) -> Result<ReadAhead>;

    /// Whether each read is a request to another machine.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether a writer is known to have it open.
    fn is_locked(&self) -> bool {
        false
    }
}

/// A local file.
#[derive(Debug)]
pub struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
    location: String,
    cache: Arc<SegmentCache>,
    /// The empty name of the only file.
    name: Arc<str>,
}

impl LocalFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if it is a FIFO, a socket or a device; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(Arc::new(file::open_regular(path)?), path))
    }

    /// The open `file`, which has `path`.
    pub fn new(file: Arc<File>, path: &Path) -> Self {
        Self {
            file,
            path: path.to_path_buf(),
            location: path.display().to_string(),
            cache: Arc::default(),
            name: "".into(),
        }
    }
}

impl ByteSource for LocalFile {
    fn location(&self) -> &str {
        &self.location
    }

    fn length(&self) -> Result<u64> {
        file::length(&self.file, &self.path)
    }

    fn read_exact(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if self.cache.fill(&self.name, offset, out) {
            return Ok(());
        }
        file::read_exact(&self.file, &self.path, offset, out)
    }

    fn is_locked(&self) -> bool {
        file::is_locked(&self.path)
    }

    fn read_ahead(&self, parts: &[Range<u64>], gap: u64) -> Result<ReadAhead> {
        let length = self.length()?;
        let is_cached = |part: &Range<u64>| self.cache.contains(&self.name, part);
        let parts = parts.iter().filter(|part| !is_cached(part)).cloned();
        let parts: Vec<Range<u64>> = parts.collect();
        let joined = ranges::join(&parts, JOINED_GAP.min(gap), READ_BYTES);
        let segments = joined.into_iter().map(|range| {
            if range.end > length {
                return Err(file::cut_short(range.end, &self.location));
            }
            let mut bytes = vec![0; (range.end - range.start) as usize];
            self.read_exact(range.start, &mut bytes)?;
            Ok(Segment {
                name: Arc::clone(&self.name),
                offset: range.start,
                bytes,
            })
        });
        Ok(self.cache.insert(segments.collect::<Result<Vec<_>>>()?))
    }
}

/// The owner of the bytes of a store in memory.
pub type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A file in memory.
pub struct InMemory {
    owner: Owner,
    location: String,
}

impl InMemory {
    /// The bytes of `owner`, which messages call `location`.
    pub fn new(owner: Owner, location: &str) -> Self {
        let location = location.to_owned();
        Self { owner, location }
    }
}

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InMemory({})", self.location)
    }
}

impl ByteSource for InMemory {
    fn location(&self) -> &str {
        &self.location
    }

    fn length(&self) -> Result<u64> {
        Ok((*self.owner).as_ref().len() as u64)
    }

    fn read_exact(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let found = range.and_then(|(start, end)| (*self.owner).as_ref().get(start..end));
        out.copy_from_slice(found.ok_or_else(|| file::cut_short(end, &self.location))?);
        Ok(())
    }

    /// Does nothing: the bytes are in memory.
    fn read_ahead(&self, _parts: &[Range<u64>], _gap: u64) -> Result<ReadAhead> {
        Ok(ReadAhead::default())
    }
}

/// Calls `consume` with the `len` bytes of `source` from `start` on, piece by piece. Returns their CRC-32.
///
/// # Errors
/// As [`ByteSource::read_exact`], and errors of `consume`.
pub fn stream(
    source: &dyn ByteSource,
    start: u64,
    len: u64,
    consume: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u32> {
    let piece = if source.is_remote() {
        READ_BYTES
    } else {
        file::PIECE
    };
    let read = |at: u64, out: &mut [u8]| source.read_exact(start + at, out);
    file::stream_pieces(len, piece, &read, consume)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;
    use crate::array::{ArrayData, ArraySpec, Slice};
    use crate::container::CreateOptions;
    use crate::limits::Limits;
    use crate::store::{Store, StoreWriter};

    #[test]
    fn bytes_in_memory_are_read_like_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let values: Vec<u64> = (0..3000).collect();
        let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
        let spec = ArraySpec::new(DataType::UInt64, &[3000]);
        writer.write_array("a", &spec, data).unwrap();
        writer.commit().unwrap();
        drop(writer);

        let bytes = std::fs::read(&path).unwrap();
        let owner: Owner = Arc::new(bytes.clone());
        let store = Store::open_bytes(owner, "memory", Limits::default()).unwrap();
        let mut out = vec![0u64; 3000];
        let array = store.array("a").unwrap();
        array
            .read(&[Slice::all(3000)], bytemuck::cast_slice_mut(&mut out))
            .unwrap();
        assert_eq!(out, values);
        let cut: Owner = Arc::new(bytes[..bytes.len() - 1].to_vec());
        let error = Store::open_bytes(cut, "memory", Limits::default()).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");

        let source = InMemory::new(Arc::new(vec![1, 2, 3]), "memory");
        let mut out = [0; 2];
        source.read_exact(1, &mut out).unwrap();
        assert_eq!(out, [2, 3]);
        for offset in [2, 3, 4, u64::MAX] {
            let error = source.read_exact(offset, &mut out).unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Corrupt, "{offset}");
        }
    }

    #[test]
    fn a_catalogue_takes_three_reads_with_opening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let names = ["catalogue/name", "catalogue/size", "catalogue/place"];
        let values: Vec<u64> = (0..3000).map(|i| i * i).collect();
        let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
        let spec = ArraySpec::new(DataType::UInt64, &[3000]);
        for name in ["before", names[0], names[1], names[2], "after"] {
            writer.write_array(name, &spec, data).unwrap();
        }
        writer.commit().unwrap();
        drop(writer);

        file::READS.set(0);
        let store = Store::open(&path).unwrap();
        assert_eq!(
            file::READS.get(),
            2,
            "the header, and all that opening needs"
        );
        let ahead = store.read_ahead(&names).unwrap();
        for name in names {
            let mut out = vec![0u64; 3000];
            let bytes = bytemuck::cast_slice_mut(&mut out);
            store
                .array(name)
                .unwrap()
                .read(&[Slice::all(3000)], bytes)
                .unwrap();
            assert_eq!(out, values);
        }
        assert_eq!(file::READS.get(), 3);
        drop(ahead);
        let after = store.array("after").unwrap();
        after.read(&[Slice::all(3000)], &mut [0; 8 * 3000]).unwrap();
        assert_eq!(file::READS.get(), 4);
    }
}
