//! Encodes single shards of an array whose values arrive in regions, one after the other.

use crc_fast::crc32_iscsi as crc32c;
use std::borrow::Cow;
use std::sync::Arc;

use ambar_codec::ErrorBound;

use super::chunk_grid::ChunkGrid;
use super::chunk_source::ChunkSource;
use super::read_plan::Span;
use super::row_pieces::RowPieces;
use super::shard::{ChunkRecord, tag, with_index};
use super::spec::{ArrayData, Region};
use crate::container::NewEntry;
use crate::error::{Error, Result};
use crate::metadata::ArrayMetadata;
use crate::parallel;

/// The division of an array into entries.
#[derive(Clone, Debug)]
pub(crate) struct EntryGrid {
    shape: Vec<u64>,
    /// Lengths of an entry: a shard, or a chunk without shards.
    lengths: Vec<u64>,
}

impl EntryGrid {
    /// The entries of the array that `metadata` describes.
    pub fn of(metadata: &ArrayMetadata) -> Self {
        let grid = ChunkGrid::of(metadata);
        Self {
            lengths: grid.shard_shape.unwrap_or(grid.chunk_shape),
            shape: metadata.shape.clone(),
        }
    }

    /// The lengths of an entry.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// The region of an entry, cut at the end of the array.
    pub fn region(&self, shard: &[u64]) -> Region {
        let start: Vec<u64> = shard
            .iter()
            .zip(&self.lengths)
            .map(|(i, n)| i * n)
            .collect();
        let ends = start.iter().zip(&self.lengths).zip(&self.shape);
        let shape = ends.map(|((start, length), all)| (*length).min(all.saturating_sub(*start)));
        Region {
            shape: shape.collect(),
            start,
        }
    }

    /// Calls `f` with the coordinates of each entry that overlaps `region`.
    pub fn try_for_each(
        &self,
        region: &Region,
        mut f: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        if region.shape.contains(&0) {
            return Ok(());
        }
        let first: Vec<u64> = (0..self.lengths.len())
            .map(|d| region.start[d] / self.lengths[d])
            .collect();
        let counts: Vec<u64> = (0..self.lengths.len())
            .map(|d| (region.stop(d) - 1) / self.lengths[d] - first[d] + 1)
            .collect();
        let mut inside = vec![0; counts.len()];
        loop {
            let shard: Vec<u64> = first.iter().zip(&inside).map(|(a, b)| a + b).collect();
            f(&shard)?;
            if !super::read_plan::advance(&mut inside, &counts) {
                return Ok(());
            }
        }
    }
}

/// Copies the intersection of two regions of an array, from `values` of `from` to `out` of `to`, both in C
/// order, with values of `size` bytes.
pub(crate) fn copy_intersection(
    from: &Region,
    values: &[u8],
    to: &Region,
    out: &mut [u8],
    size: usize,
) -> Result<()> {
    let Some(common) = from.intersection(to) else {
        return Ok(());
    };
    let spans: Vec<Span> = (0..common.start.len())
        .map(|d| Span {
            inside: (common.start[d] - to.start[d]) as usize,
            count: common.shape[d] as usize,
            outside: (common.start[d] - from.start[d]) as usize,
            step: 1,
        })
        .collect();
    RowPieces::one(values).copy(out, &spans, &to.shape, &from.shape, size)
}

/// Encodes the shards of a region.
pub(crate) struct ShardEncoder<'a>(ChunkSource<'a>);

impl<'a> ShardEncoder<'a> {
    /// Takes the values of `region`, in C order; unit blocks are at `origins`.
    ///
    /// # Errors
    /// `Invalid` if data and region do not fit.
    pub fn new(
        name: &'a str,
        metadata: &ArrayMetadata,
        origins: Option<&[[i64; 3]]>,
        region: Region,
        values: &'a [u8],
    ) -> Result<Self> {
        let size = metadata.dtype.size().ok_or_else(|| {
            let message = format!(
                "values of {} cannot be written in parts; write the array whole",
                metadata.dtype
            );
            Error::unsupported(message).at_node(name)
        })?;
        if region.values().checked_mul(size as u64) != Some(values.len() as u64) {
            let message = format!(
                "the data have {} bytes; expected {:?} values of {size} bytes",
                values.len(),
                region.shape
            );
            return Err(Error::invalid(message).at_node(name));
        }
        let data = ArrayData::Fixed(values);
        let source = ChunkSource::part(name, metadata.clone(), origins, region, data);
        Ok(Self(source.map_err(|error| error.at_node(name))?))
    }

    /// Sets the error bounds by chunk, as [`ArraySpec::chunk_bounds`](super::spec::ArraySpec::chunk_bounds).
    pub fn chunk_bounds(mut self, bounds: Option<Arc<[ErrorBound]>>) -> Self {
        self.0.chunk_bounds = bounds;
        self
    }

    /// Encodes a shard as an entry, chunks in parallel; raw chunks are borrowed from the caller's values.
    /// Values outside of the region are the array's fill value.
    ///
    /// # Errors
    /// `Invalid` if a codec does not support a chunk.
    pub fn encode(&self, shard: &[u64]) -> Result<NewEntry<'_>> {
        let source = &self.0;
        let chunks = source.grid.chunks_of(shard);
        let encoded = parallel::try_map(chunks.len(), |index| {
            let chunk = chunks[index]
                .as_ref()
                .filter(|chunk| source.overlaps(chunk));
            chunk
                .map(|chunk| encode_in_place(source, chunk))
                .transpose()
        });
        let encoded = encoded.map_err(|error| error.at_node(source.name))?;
        let key = source.metadata.keys.key(source.name, shard);
        let record = |parts: &Vec<Cow<'_, [u8]>>| ChunkRecord::of(parts.iter().map(AsRef::as_ref));
        let records = encoded.iter().map(|parts| parts.as_ref().map(record));
        let records: Vec<_> = records.collect();
        let parts = encoded.into_iter().flatten().flatten();
        let (parts, seal) = match &source.metadata.sharding {
            Some(sharding) => with_index(sharding, &records, parts, Cow::Owned)?,
            None => {
                let parts: Vec<_> = parts.collect();
                let seal = tag(parts.iter().map(AsRef::as_ref));
                (parts, seal)
            }
        };
        Ok(NewEntry {
            key,
            parts,
            seal: Some(seal),
        })
    }
}

/// Encodes a chunk in parts: if it is stored verbatim, the caller's values and a checksum.
fn encode_in_place<'a>(source: &'a ChunkSource<'_>, chunk: &[u64]) -> Result<Vec<Cow<'a, [u8]>>> {
    if source.metadata.chain.is_plain(&source.metadata.dtype)
        && let Some(raw) = source.whole_chunk(chunk)
    {
        let checksum = crc32c(raw).to_le_bytes().to_vec();
        return Ok(vec![Cow::Borrowed(raw), Cow::Owned(checksum)]);
    }
    Ok(vec![Cow::Owned(source.encode(chunk, None)?)])
}
