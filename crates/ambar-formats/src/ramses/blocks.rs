//! Blocks of records: for every level and every domain (or boundary), what a file holds of its octs.
//!
//! A domain's file holds its own octs and copies of its neighbours'. Only its own block of each
//! level is read; where it lies follows from the numbers of octs alone, as long as no record is
//! split into subrecords. Where the records found there are not the ones expected, the file is
//! walked record by record, which finds the places of split records, or the damage.

use std::ops::Range;

use ambar::Result;

use super::fortran::{FortranFile, Record};

/// Own blocks up to this size are read with one call.
const WHOLE: u64 = 1 << 20;
/// Bytes not wanted that are rather read along than skipped, for each record.
const SPARE: u64 = 16 << 10;
/// Bytes read at once from larger blocks.
const TILE: u64 = 2 << 20;

/// What a block is made of, in files of one kind.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Whether each block, even an empty one, begins with the records `ilevel` and `ncache`.
    headed: bool,
    /// Bytes that an oct has in each record.
    sizes: Vec<u64>,
    /// The same, summed over the records before.
    before: Vec<u64>,
    /// The records' names, for messages.
    names: Vec<String>,
}

impl Shape {
    /// Blocks of these records: name, and bytes for each oct.
    pub fn new(headed: bool, records: impl IntoIterator<Item = (String, u64)>) -> Self {
        let (names, sizes): (_, Vec<u64>) = records.into_iter().unzip();
        let sums = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        let before = std::iter::once(0).chain(sums).collect();
        Self {
            headed,
            sizes,
            before,
            names,
        }
    }

    fn heads(&self) -> u64 {
        if self.headed { 24 } else { 0 }
    }

    /// Bytes of blocks whose octs sum up to `tally`.
    pub fn bytes(&self, tally: Tally) -> u64 {
        let records = self.sizes.len();
        let octs = self.before[records].saturating_mul(tally.octs);
        let markers = (8 * records as u64).saturating_mul(tally.filled);
        let heads = self.heads().saturating_mul(tally.blocks);
        octs.saturating_add(markers).saturating_add(heads)
    }

    /// Where a record lies in a regular block of `octs` octs that begins at `start`.
    fn place(&self, start: u64, octs: u64, record: usize) -> Record {
        let before = self.heads() + octs * self.before[record] + 8 * record as u64;
        Record::plain(start + before + 4, octs * self.sizes[record])
    }
}

/// Sums over some blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Octs in them.
    pub octs: u64,
    /// Blocks that hold any.
    pub filled: u64,
    /// All blocks.
    pub blocks: u64,
}

impl Tally {
    /// The sum over blocks with these numbers of octs.
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

/// One level in a domain's files: its own octs, and the sums over the blocks before and after.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    /// The blocks before the own one.
    pub before: Tally,
    /// The own octs.
    pub own: u64,
    /// The blocks after the own one.
    pub after: Tally,
}

/// A file of blocks: what is needed to find them.
pub struct BlockFile<'a> {
    /// The file.
    pub file: FortranFile,
    /// What its blocks are made of.
    pub shape: &'a Shape,
    /// Where the first block begins.
    pub start: u64,
    /// The levels, from 1 on.
    pub levels: &'a [Level],
    /// Octs in each block, level after level; `None` where the blocks tell it themselves.
    pub numbers: Option<&'a [u64]>,
    /// The places of the own blocks' records, where the file had to be walked.
    walked: Option<Vec<Vec<Record>>>,
}

/// Some octs of a block: the bytes of the records asked for.
pub struct Tile<'a> {
    /// Which octs of the block.
    pub octs: Range<usize>,
    bytes: &'a [u8],
    parts: &'a [Range<usize>],
}

impl<'a> Tile<'a> {
    /// The bytes of the record asked for at place `index`.
    pub fn record(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.parts[index].clone()]
    }
}

impl<'a> BlockFile<'a> {
    /// A file whose first block begins at `start`. It is walked at once where its length is not
    /// the one that follows from the numbers of octs.
    ///
    /// # Errors
    /// As `read`.
    pub fn new(
        file: FortranFile,
        shape: &'a Shape,
        start: u64,
        levels: &'a [Level],
        numbers: Option<&'a [u64]>,
    ) -> Result<Self> {
        let walked = None;
        let mut blocks = Self {
            file,
            shape,
            start,
            levels,
            numbers,
            walked,
        };
        if blocks.own_start(levels.len()) != blocks.file.len() {
            blocks.walk()?;
        }
        Ok(blocks)
    }

    /// Where the own block of the level (an index) begins in a regular file; of the one behind the
    /// last: the end of the file.
    fn own_start(&self, level: usize) -> u64 {
        let bytes = |sum: u64, tally| sum.saturating_add(self.shape.bytes(tally));
        let passed = self.levels[..level].iter().fold(self.start, |sum, level| {
            let own = Tally::of([level.own]);
            bytes(bytes(bytes(sum, level.before), own), level.after)
        });
        match self.levels.get(level) {
            Some(level) => bytes(passed, level.before),
            None => passed,
        }
    }

    /// Hands `wanted` records (ascending) of the own block of a level (an index) to `each`, some
    /// octs at a time.
    ///
    /// # Errors
    /// `Corrupt` where a record is not as expected, naming it; `Io`; what `each` returns.
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
        if self.walked.is_none() {
            let start = self.own_start(level);
            let places: Vec<_> = wanted
                .iter()
                .map(|&record| self.shape.place(start, octs, record))
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
            self.walk()?;
        }
        let Some(records) = self.walked.as_ref().and_then(|levels| levels.get(level)) else {
            return Ok(());
        };
        let places: Vec<_> = wanted.iter().map(|&r| records[r].clone()).collect();
        self.read_tiles(octs, wanted, &places, buffer, each)
    }

    /// Reads the block with one call; false where its markers are not the ones expected.
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
        let headed = !self.shape.headed || {
            let heads = [4, level as i64 + 1, 4, 4, octs as i64, 4];
            (0..)
                .step_by(4)
                .zip(heads)
                .all(|(at, head)| i64::from(number(span.start + at)) == head)
        };
        let marked = places.iter().all(|place| {
            let marker = place.len as i64;
            i64::from(number(place.start() - 4)) == marker
                && i64::from(number(place.end - 4)) == marker
        });
        if !(headed && marked) {
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

    /// Whether the markers around the records at `places` are the ones expected.
    fn is_regular(&self, level: usize, start: u64, places: &[Record]) -> Result<bool> {
        let mut heads = [0; 24];
        if self.shape.headed {
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

    /// Goes through the whole file, checking every marker, and keeps the own records' places.
    fn walk(&mut self) -> Result<()> {
        let mut at = self.start;
        let mut walked = Vec::with_capacity(self.levels.len());
        let mut numbers = self.numbers.map(|numbers| numbers.iter());
        for (index, level) in self.levels.iter().enumerate() {
            let own = level.before.blocks;
            let mut records = Vec::new();
            for block in 0..own + 1 + level.after.blocks {
                let known = numbers.as_mut().and_then(|numbers| numbers.next().copied());
                let octs = match known {
                    Some(octs) => octs,
                    None => self.walk_heads(&mut at, index, (block == own).then_some(level.own))?,
                };
                let found = self.walk_block(&mut at, index, block, octs)?;
                if block == own {
                    records = found;
                }
            }
            walked.push(records);
        }
        if at != self.file.len() {
            let left = self.file.len().saturating_sub(at);
            let what = format!("the last block ends here, but {left} more bytes follow");
            return Err(self.file.damaged("end of file", at, what));
        }
        self.walked = Some(walked);
        Ok(())
    }

    /// The records `ilevel` and `ncache` at `at`; the latter is returned.
    fn walk_heads(&mut self, at: &mut u64, index: usize, own: Option<u64>) -> Result<u64> {
        let level = index as u64 + 1;
        self.walk_number(at, "ilevel", level, Some(level))?;
        self.walk_number(at, "ncache", level, own)
    }

    fn walk_number(
        &mut self,
        at: &mut u64,
        name: &str,
        level: u64,
        expected: Option<u64>,
    ) -> Result<u64> {
        let name = format!("{name} of level {level}");
        let record = self.file.locate(*at, &name)?;
        if record.len != 4 {
            let what = format!("an integer of 4 bytes expected, {} found", record.len);
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
                let what = format!("{expected} expected, as the amr file says, {found} found");
                Err(self.file.damaged(&name, *at, what))
            }
        }
    }

    fn walk_block(
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
                let what = format!("{expected} bytes expected, {} found", found.len);
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

    /// A file of one level with two blocks of three records; the values count up.
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

    /// Small blocks are read at once, large ones in tiles, sparse records one by one: all alike.
    #[test]
    fn blocks_of_every_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let shape = Shape::new(false, (1..=3).map(|i| (format!("record {i}"), 8)));
        for (before, own) in [(1, 1), (5, 4000), (7, 100_000), (90_000, 300_000)] {
            write([before, own], &path);
            let levels = [Level {
                before: Tally::of([before]),
                own,
                after: Tally::default(),
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
