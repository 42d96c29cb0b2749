//! Blocks of records: the octs of one level and one domain (or boundary region) in a file.
//!
//! A domain's file holds the octs that it owns, and copies of its neighbours' octs. Only the domain's
//! own block of each level is read. Its position follows from the numbers of octs alone, unless a record
//! is split into subrecords. If the records at the computed position are not the expected ones, the file
//! is scanned record by record, which finds split records, or the damage.

use std::ops::Range;

use ambar::Result;

use super::fortran::{FortranFile, Record};

/// Own blocks up to this many bytes are read with one call.
const WHOLE: u64 = 1 << 20;
/// Unwanted bytes for each record up to which reading the whole block is cheaper than skipping.
const SPARE: u64 = 16 << 10;
/// Bytes read with one call from larger blocks.
const TILE: u64 = 2 << 20;

/// The records of a block, in files of one component.
#[derive(Clone, Debug)]
pub struct BlockShape {
    /// True if each block, even an empty one, begins with the records `ilevel` and `ncache`.
    has_head: bool,
    /// Bytes of an oct in each record.
    sizes: Vec<u64>,
    /// For each record, the sum of `sizes` of the records before it.
    before: Vec<u64>,
    /// Names of the records, for messages.
    names: Vec<String>,
}

impl BlockShape {
    /// Blocks of these records: names, and bytes for each oct.
    pub fn new(has_head: bool, records: impl IntoIterator<Item = (String, u64)>) -> Self {
        let (names, sizes): (_, Vec<u64>) = records.into_iter().unzip();
        let sums = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        let before = std::iter::once(0).chain(sums).collect();
        Self {
            has_head,
            sizes,
            before,
            names,
        }
    }

    fn head_bytes(&self) -> u64 {
        if self.has_head { 24 } else { 0 }
    }

    /// Bytes of the blocks that `tally` sums up.
    pub fn bytes(&self, tally: BlockTally) -> u64 {
        let records = self.sizes.len();
        let octs = self.before[records].saturating_mul(tally.octs);
        let markers = (8 * records as u64).saturating_mul(tally.filled);
        let heads = self.head_bytes().saturating_mul(tally.blocks);
        octs.saturating_add(markers).saturating_add(heads)
    }

    /// The position of a record in a regular block of `octs` octs that begins at `start`.
    fn locate(&self, start: u64, octs: u64, record: usize) -> Record {
        let before = self.head_bytes() + octs * self.before[record] + 8 * record as u64;
        Record::plain(start + before + 4, octs * self.sizes[record])
    }
}

/// Sums over consecutive blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTally {
    /// Number of octs.
    pub octs: u64,
    /// Number of blocks with octs.
    pub filled: u64,
    /// Number of blocks.
    pub blocks: u64,
}

impl BlockTally {
    /// The sums over blocks with these numbers of octs.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = Self::default();
        for octs in numbers {
            sum.octs = sum.octs.saturating_add(octs);
            sum.filled += u64::from(octs > 0);
            sum.blocks += 1;
        }
        sum
    }
}

/// The blocks of one level in a domain's files: the domain's own block, and sums over the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelBlocks {
    /// The blocks before the domain's own block.
    pub before: BlockTally,
    /// Octs of the domain's own block.
    pub own: u64,
    /// The blocks after the domain's own block.
    pub after: BlockTally,
}

/// A file of blocks, and what is needed to locate them.
pub struct BlockFile<'a> {
    /// The file.
    pub file: FortranFile,
    /// The records of its blocks.
    pub shape: &'a BlockShape,
    /// Where the first block begins.
    pub start: u64,
    /// The levels, from 1 on.
    pub levels: &'a [LevelBlocks],
    /// Octs of each block, level by level; `None` if the blocks have heads with this number.
    pub octs: Option<&'a [u64]>,
    /// Positions of the own blocks' records, if the file had to be scanned.
    scanned: Option<Vec<Vec<Record>>>,
}

/// Some octs of a block: the bytes of the requested records.
pub struct Tile<'a> {
    /// Indices of the octs in the block.
    pub octs: Range<usize>,
    bytes: &'a [u8],
    parts: &'a [Range<usize>],
}

impl<'a> Tile<'a> {
    /// The bytes of the requested record of this index.
    pub fn record(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.parts[index].clone()]
    }
}

impl<'a> BlockFile<'a> {
    /// A file whose first block begins at `start`. It is scanned immediately if its length differs from
    /// the one that follows from the numbers of octs.
    ///
    /// # Errors
    /// As `read`.
    pub fn new(
        file: FortranFile,
        shape: &'a BlockShape,
        start: u64,
        levels: &'a [LevelBlocks],
        octs: Option<&'a [u64]>,
    ) -> Result<Self> {
        let scanned = None;
        let mut blocks = Self {
            file,
            shape,
            start,
            levels,
            octs,
            scanned,
        };
        if blocks.own_start(levels.len()) != blocks.file.len() {
            blocks.scan()?;
        }
        Ok(blocks)
    }

    /// The position of the own block of a level (an index) in a regular file; for the index after the
    /// last level, the end of the file.
    fn own_start(&self, level: usize) -> u64 {
        let bytes = |sum: u64, tally| sum.saturating_add(self.shape.bytes(tally));
        let passed = self.levels[..level].iter().fold(self.start, |sum, level| {
            let own = BlockTally::of([level.own]);
            bytes(bytes(bytes(sum, level.before), own), level.after)
        });
        match self.levels.get(level) {
            Some(level) => bytes(passed, level.before),
            None => passed,
        }
    }

    /// Passes the `wanted` records (ascending) of the own block of a level (an index) to `each`, some
    /// octs at a time.
    ///
    /// # Errors
    /// `Corrupt`, naming the unexpected record; `Io`; those of `each`.
    pub fn read(
        &mut self,
        level: usize,
        wanted: &[usize],
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&Tile<'_>) -> Result<()>,
    ) -> Result<()> {
        let octs = self.levels[level].own;
        if octs == 0 || wanted.is_empty() {
            return Ok(());
        }
        if self.scanned.is_none() {
            let start = self.own_start(level);
            let places: Vec<_> = wanted
                .iter()
                .map(|&record| self.shape.locate(start, octs, record))
                .collect();
            let end = places.last().map_or(start, |last| last.end);
            let bytes: u64 = places.iter().map(|place| place.len).sum();
            let spare = (end - start).saturating_sub(bytes);
            let regular = if end - start <= WHOLE && spare <= SPARE * wanted.len() as u64 {
                self.read_whole(level, start..end, &places, buffer, each)?
            } else {
                let regular = self.is_regular(level, start, &places)?;
                if regular {
                    self.read_tiles(octs, wanted, &places, buffer, each)?;
                }
                regular
            };
            if regular {
                return Ok(());
            }
            self.scan()?;
        }
        let Some(records) = self.scanned.as_ref().and_then(|levels| levels.get(level)) else {
            return Ok(());
        };
        let places: Vec<_> = wanted.iter().map(|&r| records[r].clone()).collect();
        self.read_tiles(octs, wanted, &places, buffer, each)
    }

    /// Reads the block with one call; false if its markers are not the expected ones.
    fn read_whole(
        &self,
        level: usize,
        span: Range<u64>,
        places: &[Record],
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&Tile<'_>) -> Result<()>,
    ) -> Result<bool> {
        buffer.resize((span.end - span.start) as usize, 0);
        let name = format!("block of level {}", level + 1);
        self.file.read_at(span.start, buffer, &name)?;
        let number = |at: u64| {
            let at = (at - span.start) as usize;
            buffer[at..]
                .first_chunk()
                .map_or(-1, |b| i32::from_le_bytes(*b))
        };
        let octs = self.levels[level].own;
        let has_head = !self.shape.has_head || {
            let heads = [4, level as i64 + 1, 4, 4, octs as i64, 4];
            (0..)
                .step_by(4)
                .zip(heads)
                .all(|(at, head)| i64::from(number(span.start + at)) == head)
        };
        let has_markers = places.iter().all(|place| {
            let marker = place.len as i64;
            i64::from(number(place.start() - 4)) == marker
                && i64::from(number(place.end - 4)) == marker
        });
        if !(has_head && has_markers) {
            return Ok(false);
        }
        let parts: Vec<_> = places
            .iter()
            .map(|place| {
                let from = (place.start() - span.start) as usize;
                from..from + place.len as usize
            })
            .collect();
        each(&Tile {
            octs: 0..octs as usize,
            bytes: buffer,
            parts: &parts,
        })?;
        Ok(true)
    }

    /// True if the markers around the records at `places` are the expected ones.
    fn is_regular(&self, level: usize, start: u64, places: &[Record]) -> Result<bool> {
        let mut heads = [0; 24];
        if self.shape.has_head {
            self.file.read_at(start, &mut heads, "ilevel, ncache")?;
            let octs = self.levels[level].own;
            let expected = [4, level as u64 + 1, 4, 4, octs, 4];
            let found = heads.as_chunks::<4>().0.iter();
            let found = found.map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
            if !found.eq(expected) {
                return Ok(false);
            }
        }
        for place in places {
            for at in [place.start() - 4, place.end - 4] {
                let mut marker = [0; 4];
                self.file.read_at(at, &mut marker, "a record's marker")?;
                if i64::from(i32::from_le_bytes(marker)) != place.len as i64 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn read_tiles(
        &self,
        octs: u64,
        wanted: &[usize],
        places: &[Record],
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&Tile<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut parts = Vec::with_capacity(wanted.len());
        let oct: u64 = wanted.iter().map(|&record| self.shape.sizes[record]).sum();
        let tile = (TILE / oct.max(1)).max(256);
        for first in (0..octs).step_by(tile as usize) {
            let last = (first + tile).min(octs);
            parts.clear();
            let mut end = 0;
            for &record in wanted {
                let size = ((last - first) * self.shape.sizes[record]) as usize;
                parts.push(end..end + size);
                end += size;
            }
            buffer.resize(end, 0);
            for ((&record, place), part) in wanted.iter().zip(places).zip(&parts) {
                let size = self.shape.sizes[record];
                let range = first * size..last * size;
                let out = &mut buffer[part.clone()];
                self.file
                    .read_part(place, range, out, &self.shape.names[record])?;
            }
            each(&Tile {
                octs: first as usize..last as usize,
                bytes: buffer,
                parts: &parts,
            })?;
        }
        Ok(())
    }

    /// Scans the whole file, checks every marker, and stores the positions of the own blocks' records.
    fn scan(&mut self) -> Result<()> {
        let mut at = self.start;
        let mut scanned = Vec::with_capacity(self.levels.len());
        let mut counts = self.octs.map(|octs| octs.iter());
        for (index, level) in self.levels.iter().enumerate() {
            let own = level.before.blocks;
            let mut records = Vec::new();
            for block in 0..own + 1 + level.after.blocks {
                let known = counts.as_mut().and_then(|counts| counts.next().copied());
                let octs = match known {
                    Some(octs) => octs,
                    None => self.scan_head(&mut at, index, (block == own).then_some(level.own))?,
                };
                let found = self.scan_block(&mut at, index, block, octs)?;
                if block == own {
                    records = found;
                }
            }
            scanned.push(records);
        }
        if at != self.file.len() {
            let rest = self.file.len().saturating_sub(at);
            let what = format!(
                "expected the end of the file after the last block, found {rest} more bytes"
            );
            return Err(self.file.damaged("end of file", at, what));
        }
        self.scanned = Some(scanned);
        Ok(())
    }

    /// Reads the records `ilevel` and `ncache` at `at`, and returns `ncache`.
    fn scan_head(&mut self, at: &mut u64, index: usize, own: Option<u64>) -> Result<u64> {
        let level = index as u64 + 1;
        self.scan_number(at, "ilevel", level, Some(level))?;
        self.scan_number(at, "ncache", level, own)
    }

    fn scan_number(
        &mut self,
        at: &mut u64,
        name: &str,
        level: u64,
        expected: Option<u64>,
    ) -> Result<u64> {
        let name = format!("{name} of level {level}");
        let record = self.file.locate(*at, &name)?;
        if record.len != 4 {
            let what = format!("expected an integer of 4 bytes, found {} bytes", record.len);
            return Err(self.file.damaged(&name, *at, what));
        }
        let found = self.file.marker(record.start(), &name)?;
        match u64::try_from(found) {
            Ok(number) if expected.is_none_or(|expected| expected == number) => {
                *at = record.end;
                Ok(number)
            }
            _ => {
                let expected = expected.map_or("a number of octs".into(), |e| e.to_string());
                let what = format!("expected {expected} as in the amr file, found {found}");
                Err(self.file.damaged(&name, *at, what))
            }
        }
    }

    fn scan_block(
        &mut self,
        at: &mut u64,
        index: usize,
        block: u64,
        octs: u64,
    ) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        if octs == 0 {
            return Ok(records);
        }
        for (record, size) in self.shape.sizes.iter().enumerate() {
            let name = &self.shape.names[record];
            let name = match (index, block) {
                (0, 0) if self.levels.len() == 1 => name.clone(),
                _ => format!("{name} of level {}, domain {}", index + 1, block + 1),
            };
            let found = self.file.locate(*at, &name)?;
            let expected = octs.saturating_mul(*size);
            if found.len != expected {
                let what = format!("expected {expected} bytes, found {}", found.len);
                return Err(self.file.damaged(&name, *at, what));
            }
            *at = found.end;
            records.push(found);
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file of one level with two blocks of three records; the values are consecutive.
    fn write(octs: [u64; 2], path: &std::path::Path) {
        let mut bytes = Vec::new();
        let mut value = 0u64;
        for octs in octs {
            for _ in 0..3 {
                let marker = (8 * octs as u32).to_le_bytes();
                bytes.extend(marker);
                for _ in 0..octs {
                    bytes.extend(value.to_le_bytes());
                    value += 1;
                }
                bytes.extend(marker);
            }
        }
        std::fs::write(path, bytes).unwrap();
    }

    /// Small blocks are read whole, large ones in tiles, sparse records one by one; results are equal.
    #[test]
    fn blocks_of_every_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let shape = BlockShape::new(false, (1..=3).map(|i| (format!("record {i}"), 8)));
        for (before, own) in [(1, 1), (5, 4000), (7, 100_000), (90_000, 300_000)] {
            write([before, own], &path);
            let levels = [LevelBlocks {
                before: BlockTally::of([before]),
                own,
                after: BlockTally::default(),
            }];
            for wanted in [&[0, 1, 2][..], &[1], &[0, 2], &[2]] {
                let file = FortranFile::open(&path, Vec::new()).unwrap();
                let mut blocks = BlockFile::new(file, &shape, 0, &levels, None).unwrap();
                let mut found = vec![Vec::new(); wanted.len()];
                let mut next = 0;
                let each = &mut |tile: &Tile<'_>| {
                    assert_eq!(tile.octs.start, next);
                    next = tile.octs.end;
                    for (i, values) in found.iter_mut().enumerate() {
                        let (numbers, rest) = tile.record(i).as_chunks::<8>();
                        assert!(rest.is_empty() && numbers.len() == tile.octs.len());
                        values.extend(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)));
                    }
                    Ok(())
                };
                blocks.read(0, wanted, &mut Vec::new(), each).unwrap();
                for (record, values) in wanted.iter().zip(&found) {
                    let first = 3 * before + *record as u64 * own;
                    assert!(
                        (first..first + own).eq(values.iter().copied()),
                        "{own} {record}"
                    );
                }
            }
        }
    }
}
