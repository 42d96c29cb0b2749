//! Chunk grids: the division of an array into chunks, the unit of decoding, and shards, the unit of storage.

use super::read_plan::advance;
use super::spec::{ArrayData, ArraySpec};
use crate::codec::CodecChain;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::limits::checked_product;
use crate::metadata::{ArrayMetadata, IndexLocation, KeyEncoding, Sharding};

/// Raw bytes of a chunk of a column.
const COLUMN_CHUNK: u64 = 256 << 10;

/// Raw bytes of a chunk of several dimensions: smaller, because selections cut such chunks in every
/// dimension, and values outside of the selection are decoded in vain.
const BLOCK_CHUNK: u64 = 64 << 10;

/// Maximum length of a row in arrays that are divided only along the first dimension: corners of cells,
/// coordinates, components.
const SHORT_ROW: u64 = 32;

/// Raw bytes of a chunk within an error bound: larger, because its stored bytes are few and prediction
/// improves with the number of neighbours.
const BOUNDED_CHUNK: u64 = 512 << 10;

/// Number of chunks from which on the last one may be a small remainder.
const MANY_CHUNKS: u64 = 8;

/// Maximum raw bytes of a shard.
const SHARD: u64 = 64 << 20;

/// The chunks and shards of an array.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChunkGrid {
    pub chunk_shape: Vec<u64>,
    /// `None` for an array of at most one chunk.
    pub shard_shape: Option<Vec<u64>>,
    /// Number of chunks in each dimension.
    pub counts: Vec<u64>,
}

impl ChunkGrid {
    /// The metadata of a new array with these chunks; its codec chain is chosen later.
    pub fn describe(&self, spec: &ArraySpec) -> ArrayMetadata {
        let sharding = self.shard_shape.clone().map(|shape| Sharding {
            shape,
            location: IndexLocation::End,
            index_chain: CodecChain::raw(),
        });
        let fill_value = spec.fill_value.clone();
        ArrayMetadata {
            dtype: spec.dtype.clone(),
            shape: spec.shape.clone(),
            chunk_shape: self.chunk_shape.clone(),
            sharding,
            keys: KeyEncoding::DEFAULT,
            chain: CodecChain::raw(),
            fill_value: fill_value.unwrap_or_else(|| ArrayMetadata::default_fill(&spec.dtype)),
            dimension_names: spec.dimension_names.clone(),
            attributes: spec.attributes.clone(),
        }
    }

    /// The caller's chunks, or the default ones.
    pub fn new(spec: &ArraySpec, data: ArrayData<'_>) -> Result<Self> {
        let size = value_bytes(spec, data);
        let chunk_shape = match &spec.chunk_shape {
            Some(chunk_shape) => chunk_shape.clone(),
            None => {
                let bounded = spec.lossy_bound().is_some();
                let planes = spec.whole && !bounded && spec.dtype.size().is_some();
                let target = |lossless: u64| if bounded { BOUNDED_CHUNK } else { lossless };
                match spec.shape[..] {
                    [rows] if planes => vec![plane_chunk(rows_for_chunks(rows), 1)],
                    [rows, row @ 1..=SHORT_ROW] if planes => {
                        vec![plane_chunk(rows_for_chunks(rows), row), row]
                    }
                    [rows] => vec![column_chunk(
                        rows_for_chunks(rows),
                        size,
                        target(COLUMN_CHUNK),
                    )],
                    [rows, row @ 1..=SHORT_ROW] => {
                        vec![
                            column_chunk(rows_for_chunks(rows), size * row, target(COLUMN_CHUNK)),
                            row,
                        ]
                    }
                    _ => block_chunk(&spec.shape, size, target(BLOCK_CHUNK)),
                }
            }
        };
        if chunk_shape.len() != spec.shape.len() || chunk_shape.contains(&0) {
            return Err(Error::invalid(format!(
                "the chunk shape {chunk_shape:?} does not fit an array of {:?}; give {} lengths of at least 1, \
                 one for each dimension",
                spec.shape,
                spec.shape.len()
            )));
        }
        let chunk_bytes = checked_product(&chunk_shape, size).unwrap_or(u64::MAX);
        Limits::check("a chunk", chunk_bytes, Limits::default().chunk_bytes)?;
        let mut grid = Self::cut(&spec.shape, chunk_shape, size);
        if let Some(shards) = &spec.shard_shape {
            grid.shard_shape = Some(given_shards(shards, &grid.chunk_shape)?);
        }
        Ok(grid)
    }

    /// Chunks of at most `bytes` bytes, each of consecutive values.
    pub fn long(spec: &ArraySpec, bytes: u64) -> Self {
        let size = spec.dtype.size().unwrap_or(1) as u64;
        let mut room = (bytes / size.max(1)).max(1);
        let mut chunk_shape = vec![1; spec.shape.len()];
        for (chunk, length) in chunk_shape.iter_mut().zip(&spec.shape).rev() {
            // Divided evenly, so that no chunk is a small remainder.
            *chunk = length.div_ceil(length.div_ceil(room).max(1)).max(1);
            room /= *length.max(&1);
            if room == 0 {
                break;
            }
        }
        Self::cut(&spec.shape, chunk_shape, size)
    }

    /// Chunks of a shape, and shards if there are several chunks.
    fn cut(shape: &[u64], chunk_shape: Vec<u64>, size: u64) -> Self {
        let chunk_bytes = checked_product(&chunk_shape, size).unwrap_or(u64::MAX);
        let lengths = shape.iter().zip(&chunk_shape);
        let counts: Vec<u64> = lengths
            .map(|(length, chunk)| length.div_ceil(*chunk))
            .collect();
        let has_shards = checked_product(&counts, 1).unwrap_or(u64::MAX) > 1;
        Self {
            shard_shape: has_shards.then(|| shard_shape(&chunk_shape, &counts, chunk_bytes)),
            chunk_shape,
            counts,
        }
    }

    /// The chunks and shards of an existing array.
    pub fn of(metadata: &ArrayMetadata) -> Self {
        let lengths = metadata.shape.iter().zip(&metadata.chunk_shape);
        Self {
            counts: lengths
                .map(|(length, chunk)| length.div_ceil(*chunk))
                .collect(),
            chunk_shape: metadata.chunk_shape.clone(),
            shard_shape: metadata
                .sharding
                .as_ref()
                .map(|sharding| sharding.shape.clone()),
        }
    }

    /// Chunks of a shard in each dimension.
    pub fn per_shard(&self) -> Vec<u64> {
        let shard = self.shard_shape.as_ref().unwrap_or(&self.chunk_shape);
        let lengths = shard.iter().zip(&self.chunk_shape);
        lengths.map(|(shard, chunk)| shard / chunk).collect()
    }

    /// Raw bytes of a chunk; an estimate for strings.
    pub fn chunk_bytes(&self, metadata: &ArrayMetadata) -> u64 {
        let size = metadata.dtype.size().unwrap_or(64) as u64;
        self.chunk_shape.iter().product::<u64>() * size
    }

    /// Raw bytes of a shard; an estimate for strings.
    pub fn shard_bytes(&self, metadata: &ArrayMetadata) -> usize {
        let chunks: u64 = self.per_shard().iter().product();
        (chunks * self.chunk_bytes(metadata)) as usize
    }

    /// The chunks of a shard in the order of its index; `None` for those outside of the array.
    pub fn chunks_of(&self, shard: &[u64]) -> Vec<Option<Vec<u64>>> {
        let per_shard = self.per_shard();
        let mut inside = vec![0; shard.len()];
        let mut chunks = Vec::new();
        loop {
            let chunk: Vec<u64> = (0..shard.len())
                .map(|d| shard[d] * per_shard[d] + inside[d])
                .collect();
            let exists = chunk
                .iter()
                .zip(&self.counts)
                .all(|(index, count)| index < count);
            chunks.push(exists.then_some(chunk));
            if !advance(&mut inside, &per_shard) {
                return chunks;
            }
        }
    }

    /// The index of a chunk in its shard.
    pub fn index_in_shard(&self, chunk: &[u64]) -> usize {
        let lengths = chunk.iter().zip(self.per_shard());
        lengths.fold(0, |index, (chunk, per)| index * per + chunk % per) as usize
    }

    /// Coordinates of all shards.
    pub fn shards(&self) -> Vec<Vec<u64>> {
        let lengths = self.counts.iter().zip(self.per_shard());
        let grid: Vec<u64> = lengths.map(|(n, per)| n.div_ceil(per)).collect();
        let mut shards = Vec::new();
        let mut shard = vec![0; grid.len()];
        if !grid.contains(&0) {
            loop {
                shards.push(shard.clone());
                if !advance(&mut shard, &grid) {
                    break;
                }
            }
        }
        shards
    }
}

/// The caller's shard shape, checked to be a multiple of the chunk shape.
fn given_shards(shards: &[u64], chunk_shape: &[u64]) -> Result<Vec<u64>> {
    let fits = shards.len() == chunk_shape.len()
        && (shards.iter().zip(chunk_shape)).all(|(shard, chunk)| *shard > 0 && shard % chunk == 0);
    if fits {
        return Ok(shards.to_vec());
    }
    Err(Error::invalid(format!(
        "the shard shape {shards:?} is not a multiple of the chunk shape {chunk_shape:?}; give multiples"
    )))
}

/// Bytes of a value; for strings, the average.
fn value_bytes(spec: &ArraySpec, data: ArrayData<'_>) -> u64 {
    match (spec.dtype.size(), data) {
        (Some(size), _) => (size as u64).max(1),
        (None, ArrayData::Strings(strings)) => {
            4 + strings.bytes.len() as u64 / (strings.len() as u64).max(1)
        }
        // Unknown lengths: those of short names.
        (None, _) => 32,
    }
}

/// The number of rows for which chunks of a column are chosen: many if it has none, because rows will be appended.
fn rows_for_chunks(rows: u64) -> u64 {
    if rows == 0 { 1 << 40 } else { rows }
}

/// Rows of a chunk of a column: an even division, rounded up to a multiple of 64.
fn column_chunk(rows: u64, size: u64, bytes: u64) -> u64 {
    let target = (bytes / size).max(64);
    // Rounded to the nearest count, so that no chunk is a small remainder.
    let chunks = (rows.saturating_add(target / 2) / target).max(1);
    let even = rows.div_ceil(chunks).max(1);
    // A single chunk is not padded.
    if chunks == 1 {
        even
    } else {
        even.next_multiple_of(64)
    }
}

/// Rows of a chunk whose byte planes (the first bytes of all values, the second ones, ...) are one zstd block each.
fn plane_chunk(rows: u64, row: u64) -> u64 {
    let most = (crate::codec::PLANE_VALUES / row).max(1);
    if rows / most >= MANY_CHUNKS {
        return most;
    }
    // With few chunks none should be a small remainder.
    let chunks = (rows.saturating_add(most / 2) / most).max(1);
    rows.div_ceil(chunks).max(1)
}

/// A chunk shape of at most `bytes` bytes, by repeatedly halving the longest dimension.
fn block_chunk(shape: &[u64], size: u64, bytes: u64) -> Vec<u64> {
    let mut pieces = vec![1u64; shape.len()];
    loop {
        let chunk: Vec<u64> = shape
            .iter()
            .zip(&pieces)
            .map(|(length, n)| length.div_ceil(*n).max(1))
            .collect();
        // Of equal ones the first: the last dimension should stay long, because it is contiguous in memory.
        let longest = (0..chunk.len()).rev().max_by_key(|d| chunk[*d]);
        match longest {
            Some(d) if chunk[d] > 1 && checked_product(&chunk, size).is_none_or(|b| b > bytes) => {
                pieces[d] *= 2;
            }
            _ => return chunk,
        }
    }
}

/// Shards of at most `SHARD` bytes that span whole trailing dimensions, divided evenly.
fn shard_shape(chunk_shape: &[u64], counts: &[u64], chunk_bytes: u64) -> Vec<u64> {
    let mut room = (SHARD / chunk_bytes.max(1)).max(1);
    let mut shard = vec![0; counts.len()];
    for d in (0..counts.len()).rev() {
        let shards = counts[d].div_ceil(room).max(1);
        let per_shard = counts[d].div_ceil(shards).max(1);
        shard[d] = per_shard * chunk_shape[d];
        room = (room / per_shard).max(1);
    }
    shard
}

/// Rows of a chunk for the columns of a table of `rows` rows: about 32,768 (256 KiB of 8-byte
/// values), an even division, rounded up to a multiple of 64 if there are several chunks.
pub fn table_chunk_rows(rows: u64) -> u64 {
    column_chunk(rows, 8, COLUMN_CHUNK)
}

/// The chunk shape of an array to be written: the caller's or the default.
///
/// # Errors
/// `Invalid` if it does not fit the array; `Limit` for chunks that are too large.
pub(crate) fn chunk_shape_of(spec: &ArraySpec) -> Result<Vec<u64>> {
    ChunkGrid::new(spec, ArrayData::Fixed(&[])).map(|grid| grid.chunk_shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DataType;

    fn grid(shape: &[u64]) -> ChunkGrid {
        let spec = ArraySpec::new(DataType::Float64, shape);
        ChunkGrid::new(&spec, ArrayData::Fixed(&[])).unwrap()
    }

    #[test]
    fn tables_are_divided_evenly() {
        assert_eq!(table_chunk_rows(204_667), 34_112);
        assert_eq!(table_chunk_rows(0), 1);
        assert_eq!(table_chunk_rows(1), 1);
        for rows in [100, 40_000, 50_000, 1_000_003, 500_000_000] {
            let chunk = table_chunk_rows(rows);
            let last = (rows - 1) % chunk + 1;
            assert!(last * 2 > chunk, "{rows} rows end in a chunk of {last}");
        }
    }

    #[test]
    fn columns_without_rows_have_chunks_of_many() {
        for (shape, chunks) in [(&[0][..], &[32_768][..]), (&[0, 2], &[16_384, 2])] {
            assert_eq!(grid(shape).chunk_shape, chunks);
        }
    }

    #[test]
    fn small_arrays_are_one_chunk_without_shards() {
        for shape in [&[][..], &[0], &[1], &[30_000], &[20, 20, 20], &[5, 0, 3]] {
            let grid = grid(shape);
            assert_eq!(grid.shard_shape, None, "{shape:?}");
            assert!(grid.chunk_shape.iter().all(|length| *length > 0));
        }
    }

    #[test]
    fn arrays_read_as_a_whole_have_long_chunks() {
        let whole = |shape: &[u64]| ArraySpec::new(DataType::Float64, shape).whole(true);
        let cut = |shape: &[u64]| ChunkGrid::new(&whole(shape), ArrayData::Fixed(&[])).unwrap();
        assert_eq!(cut(&[1 << 20]).chunk_shape, [1 << 17]);
        assert_eq!(cut(&[150_000]).chunk_shape, [150_000]);
        assert_eq!(cut(&[200_000]).chunk_shape, [100_000]);
        assert_eq!(cut(&[1 << 20, 3]).chunk_shape, [43_690, 3]);
        assert_eq!(cut(&[200_000, 3]).chunk_shape, [40_000, 3]);
        assert_eq!(cut(&[512, 512, 512]).chunk_shape, [16, 16, 32]);
        let long = |shape: &[u64]| ChunkGrid::long(&whole(shape), 4 << 20).chunk_shape;
        assert_eq!(long(&[100, 100, 100]), [50, 100, 100]);
        assert_eq!(long(&[10, 1 << 20]), [1, 1 << 19]);
        assert_eq!(long(&[7]), [7]);
        let cut = ChunkGrid::long(&whole(&[400, 512, 512]), 4 << 20);
        assert_eq!(cut.shard_shape.unwrap(), [32, 512, 512]);
    }

    #[test]
    fn blocks_are_balanced_and_shards_are_bounded() {
        let cube = grid(&[512, 512, 512]);
        assert_eq!(cube.chunk_shape, [16, 16, 32]);
        let shard = cube.shard_shape.unwrap();
        assert_eq!(shard, [32, 512, 512]);
        assert_eq!(grid(&[1 << 30]).shard_shape.unwrap(), [8 << 20]);
        let thin = grid(&[10_000_000, 3]);
        assert_eq!(thin.chunk_shape, [10_944, 3]);
        assert_eq!(grid(&[100_000, 33]).chunk_shape, [196, 33]);
    }
}
