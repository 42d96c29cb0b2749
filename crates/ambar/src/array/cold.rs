//! Reading what the disk has yet to give, uncompressed values of one dimension: one thread reads all chunks
//! of a shard with one call, straight to where their values belong, and others verify them meanwhile.
//!
//! Systems read far ahead of one reader that asks for much in the file's order, and less far ahead of
//! several that ask for a chunk here and a chunk there (decision 0023).

use std::ops::Range;

use super::read::{Stored, check_plain};
use super::{Array, Indices};
use crate::codec::{Scratch, with_scratch};
use crate::container::Entry;
use crate::error::Result;
use crate::parallel;

/// The bytes of a chunk's checksum.
const CHECKSUM: usize = 4;

/// What a chunk is checked by: the checksum after its values, and the tag of its place.
#[derive(Clone, Copy)]
struct Check {
    checksum: [u8; CHECKSUM],
    tag: Option<u32>,
}

/// Rows of an uncompressed array.
pub(super) struct Cold {
    rows: Range<u64>,
    /// The chunks all of whose rows are among them, one at least.
    chunks: Range<u64>,
    /// How many chunks a shard has.
    per_shard: u64,
}

impl Cold {
    /// The wanted chunks of the shard at `index` among those that hold some.
    fn in_shard(&self, index: usize) -> Range<u64> {
        let shard = self.chunks.start / self.per_shard + index as u64;
        let behind = (shard + 1).saturating_mul(self.per_shard);
        self.chunks.start.max(shard * self.per_shard)..behind.min(self.chunks.end)
    }

    /// The number of shards that hold wanted chunks.
    fn shards(&self) -> usize {
        let behind = self.chunks.end.div_ceil(self.per_shard);
        (behind - self.chunks.start / self.per_shard) as usize
    }
}

impl Array {
    /// What `selection` takes, if reading it goes through `read_cold`: rows without a step, their chunks
    /// uncompressed, the first of their shards not in the system's memory.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(super) fn cold(&self, selection: &[Indices<'_>]) -> Result<Option<Cold>> {
        // One thread alone verifies a chunk sooner while it is still in the processor's cache.
        if !parallel::uses_threads() {
            return Ok(None);
        }
        let Some(cold) = self.uncompressed_rows(selection) else {
            return Ok(None);
        };
        let shard = cold.chunks.start / cold.per_shard;
        let key = self.0.metadata.keys.key(&self.0.name, &[shard]);
        let entry = self.0.container.entry(&key)?;
        let is_cached = entry.is_none_or(|entry| self.0.container.is_cached(&entry));
        Ok((!is_cached).then_some(cold))
    }

    fn uncompressed_rows(&self, selection: &[Indices<'_>]) -> Option<Cold> {
        let metadata = &self.0.metadata;
        let (Some(sharding), [Indices::Slice(slice)]) = (&metadata.sharding, selection) else {
            return None;
        };
        let rows = self.chunk_shape().first()?;
        let chunks = slice.start.div_ceil(*rows)..slice.stop / rows;
        let plain = slice.step == 1 && metadata.chain.is_plain(self.dtype());
        (plain && !chunks.is_empty()).then(|| Cold {
            rows: slice.start..slice.stop,
            chunks,
            per_shard: self.chunks_in_shard(sharding) as u64,
        })
    }

    /// Reads the rows of `cold` into `out`, which has just their size.
    ///
    /// # Errors
    /// As `read`.
    pub(super) fn read_cold(&self, cold: &Cold, out: &mut [u8]) -> Result<()> {
        let (chunk_rows, size) = (self.chunk_shape()[0], self.value_size()?);
        let chunk_bytes = self.chunk_bytes()?;
        let place = |chunk: u64| (chunk * chunk_rows - cold.rows.start) as usize * size;
        let (before, rest) = out.split_at_mut(place(cold.chunks.start));
        let (whole, behind) = rest.split_at_mut(place(cold.chunks.end) - before.len());
        self.read_rows(cold.rows.start..cold.chunks.start * chunk_rows, before)?;
        let shards = cold.shards();
        let mut rest = whole;
        let read = |shard: usize| {
            let chunks = cold.in_shard(shard);
            let taken = std::mem::take(&mut rest);
            let (values, later) = taken.split_at_mut(place(chunks.end) - place(chunks.start));
            rest = later;
            let mut parts: Vec<&mut [u8]> = values.chunks_exact_mut(chunk_bytes).collect();
            let checks =
                with_scratch(|scratch| self.read_adjacent(chunks.start, &mut parts, scratch));
            Ok((chunks.start, parts, checks))
        };
        parallel::try_one_ahead(shards, read, |(first, parts, checks)| {
            with_scratch(|scratch| self.check_chunks(first, parts, checks, scratch))
        })?;
        self.read_rows(cold.chunks.end * chunk_rows..cold.rows.end, behind)
    }

    /// Reads whole chunks from `first` on that are adjacent, and gives what to check them by; `None`
    /// where they lie elsewhere, or that fails: reading them one by one tells which of them it is.
    fn read_adjacent(
        &self,
        first: u64,
        chunks: &mut [&mut [u8]],
        scratch: &mut Scratch,
    ) -> Option<Vec<Check>> {
        let stored: Vec<Stored> = (first..first + chunks.len() as u64)
            .map(|chunk| self.locate(&[chunk], scratch).ok().flatten())
            .collect::<Option<_>>()?;
        let (entry, offset) = adjacent(&stored, (chunks.first()?.len() + CHECKSUM) as u64)?;
        let mut checksums = vec![[0; CHECKSUM]; chunks.len()];
        let mut parts = Vec::with_capacity(2 * chunks.len());
        for (values, checksum) in chunks.iter_mut().zip(&mut checksums) {
            parts.extend([&mut **values, checksum.as_mut_slice()]);
        }
        let read = self.0.container.read_scattered(entry, offset, &mut parts);
        let checks = checksums.into_iter().zip(&stored);
        read.is_ok().then(|| {
            checks
                .map(|(checksum, stored)| Check {
                    checksum,
                    tag: stored.tag(),
                })
                .collect()
        })
    }

    /// Verifies whole chunks from `first` on, or reads them one by one.
    fn check_chunks(
        &self,
        first: u64,
        chunks: Vec<&mut [u8]>,
        checks: Option<Vec<Check>>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for (index, values) in chunks.into_iter().enumerate() {
            let chunk = first + index as u64;
            match &checks {
                Some(checks) => check_plain(values, checks[index].checksum, checks[index].tag),
                None => self.read_part(chunk, 0, values, values.len(), scratch),
            }
            .map_err(|error| self.place_chunk(error, &[chunk]))?;
        }
        Ok(())
    }
}

/// Where the first of `stored` lies, if they lie one behind the other, `len` bytes each.
fn adjacent(stored: &[Stored], len: u64) -> Option<(&Entry, u64)> {
    let (entry, first, _) = stored.first()?.place();
    let mut places = stored.iter().map(Stored::place).enumerate();
    let follow = places.all(|(index, (_, offset, found))| {
        found == len && offset.checked_sub(first) == Some(index as u64 * len)
    });
    follow.then_some((entry, first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{ArrayData, ArraySpec, Region, Slice};
    use crate::codec::CodecChain;
    use crate::container::CreateOptions;
    use crate::store::{Store, StoreWriter};
    use crate::{DataType, ErrorKind};
    use std::path::{Path, PathBuf};

    /// Three shards of four chunks of five rows; the last chunk has two.
    const ROWS: u64 = 57;

    fn spec() -> ArraySpec {
        let mut spec = ArraySpec::new(DataType::UInt64, &[ROWS]);
        spec.codecs = Some(CodecChain::raw());
        spec.chunks(&[5]).shards(&[20])
    }

    fn written(folder: &Path) -> PathBuf {
        let path = folder.join("x.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let values: Vec<u64> = (0..ROWS).map(|row| row * row).collect();
        let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
        writer.write_array("a", &spec(), data).unwrap();
        writer.commit().unwrap();
        path
    }

    fn read(path: &Path, rows: Range<u64>, threads: usize) -> Result<Vec<u64>> {
        let array = Store::open(path)?.array("a")?;
        let mut out = vec![7; (rows.end - rows.start) as usize];
        let selection = [Indices::Slice(Slice::from(rows))];
        let cold = array.uncompressed_rows(&selection).expect("whole chunks");
        let bytes = bytemuck::cast_slice_mut(&mut out);
        parallel::with_threads(Some(threads), || array.read_cold(&cold, bytes))?;
        Ok(out)
    }

    #[test]
    fn any_rows_come_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        for start in 0..ROWS {
            for end in start..=ROWS {
                if start.div_ceil(5) >= end / 5 {
                    continue;
                }
                let expected: Vec<u64> = (start..end).map(|row| row * row).collect();
                for threads in [1, 2] {
                    let found = read(&path, start..end, threads).unwrap();
                    assert_eq!(found, expected, "{start}..{end}");
                }
            }
        }
    }

    #[test]
    fn damage_is_told_with_its_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let sound = std::fs::read(&path).unwrap();
        let sought = (37u64 * 37).to_le_bytes();
        let place = sound.windows(8).position(|bytes| bytes == sought).unwrap();
        let mut flipped = sound.clone();
        flipped[place] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let error = read(&path, 0..ROWS, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("chunk 7"), "{error}");
        assert_eq!(read(&path, 0..35, 2).unwrap()[34], 34 * 34);
    }

    /// Whole chunks have right checksums wherever they are: only their tags say where they belong.
    #[test]
    fn swapped_chunks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        let sought = (35u64 * 35).to_le_bytes();
        let place = bytes.windows(8).position(|bytes| bytes == sought).unwrap();
        // Chunks 6 and 7, which are adjacent.
        bytes[place - 44..place + 44].rotate_left(44);
        std::fs::write(&path, &bytes).unwrap();
        for threads in [1, 2] {
            let error = read(&path, 0..ROWS, threads).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("written here"), "{error}");
        }
        assert_eq!(read(&path, 0..30, 2).unwrap()[29], 29 * 29);
    }

    #[test]
    fn what_was_never_written_is_filled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        writer.declare("a", &spec()).unwrap();
        let region = Region {
            start: vec![25],
            shape: vec![10],
        };
        let values: Vec<u64> = (25..35).collect();
        let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
        writer.write_region("a", &region, data).unwrap();
        writer.commit().unwrap();
        let found = read(&path, 0..ROWS, 2).unwrap();
        let filled = |row| if (25..35).contains(&row) { row } else { 0 };
        assert!(found.into_iter().eq((0..ROWS).map(filled)));
    }

    #[test]
    fn a_file_that_has_become_shorter_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let array = Store::open(&path).unwrap().array("a").unwrap();
        let mut out = vec![0u64; ROWS as usize];
        let bytes = bytemuck::cast_slice_mut(&mut out);
        let all = [Indices::Slice(Slice::all(ROWS))];
        let cold = array.uncompressed_rows(&all).unwrap();
        array.read_cold(&cold, bytes).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(600).unwrap();
        let error = array.read_cold(&cold, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("chunk "), "{error}");
    }

    #[test]
    fn what_is_in_memory_or_compressed_is_not_read_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let array = Store::open(&path).unwrap().array("a").unwrap();
        let cold = |slice: Slice| {
            let selection = [Indices::Slice(slice)];
            (
                array.uncompressed_rows(&selection).is_some(),
                array.cold(&selection).unwrap().is_some(),
            )
        };
        // Just written, it is in the system's memory.
        assert_eq!(cold(Slice::all(ROWS)), (true, false));
        assert_eq!(cold(Slice::from(1..9)), (false, false));
        let steps = Slice {
            start: 0,
            stop: ROWS,
            step: 2,
        };
        assert_eq!(cold(steps), (false, false));
    }
}
