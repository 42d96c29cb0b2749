//! Parts of an array that come one by one: copied between regions, and encoded shard by shard.

use crc_fast::crc32_iscsi as crc32c;
use std::borrow::Cow;
use std::sync::Arc;

use ambar_codec::ErrorBound;

use super::blocks::Span;
use super::layout::Layout;
use super::pieces::Pieces;
use super::shard::{ChunkRecord, tag, with_index};
use super::source::ChunkSource;
use super::spec::{ArrayData, Region};
use crate::container::NewEntry;
use crate::error::{Error, Result};
use crate::metadata::ArrayMetadata;
use crate::parallel;

/// Division of an array into entries.
pub(crate) struct Shards {
    shape: Vec<u64>,
    /// Lengths of an entry: a shard, or a chunk where there are none.
    lengths: Vec<u64>,
}

impl Shards {
    /// The entries of the array that `metadata` describes.
    pub fn of(metadata: &ArrayMetadata) -> Self {
        let layout = Layout::of(metadata);
        Self {
            lengths: layout.shard_shape.unwrap_or(layout.chunk_shape),
            shape: metadata.shape.clone(),
        }
    }

    /// The values of an entry that are in the array.
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

    /// Calls `f` with each entry that has values of `region`.
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
            if !super::blocks::advance(&mut inside, &counts) {
                return Ok(());
            }
        }
    }
}

/// Copies what two regions of an array have in common; the values of both are in C order.
pub(crate) fn copy_common(
    (from, values): (&Region, &[u8]),
    (to, out): (&Region, &mut [u8]),
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
    Pieces::one(values).copy(out, &spans, &to.shape, &from.shape, size)
}

/// Values of an array that hold whole shards of it.
pub(crate) struct ArrayPart<'a>(ChunkSource<'a>);

impl<'a> ArrayPart<'a> {
    /// The values of `region`, in C order; unit blocks are at `origins`.
    ///
    /// # Errors
    /// `Invalid` where data and region do not fit.
    pub fn new(
        name: &'a str,
        metadata: &ArrayMetadata,
        origins: Option<&[[i64; 3]]>,
        region: Region,
        values: &'a [u8],
    ) -> Result<Self> {
        let size = metadata.dtype.size().ok_or_else(|| {
            let message = format!("values of {} are not written in parts", metadata.dtype);
            Error::unsupported(message).at_node(name)
        })?;
        if region.values().checked_mul(size as u64) != Some(values.len() as u64) {
            let message = format!(
                "{} bytes of data for {:?} values of {size} bytes",
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

    /// Encodes a shard as an entry, with raw chunks borrowed from the caller's values. Values
    /// that the part does not have are the array's fill value. Chunks are encoded in parallel.
    ///
    /// # Errors
    /// `Invalid` where a codec refuses a chunk.
    pub fn encode(&self, shard: &[u64]) -> Result<NewEntry<'_>> {
        let source = &self.0;
        let chunks = source.layout.chunks_of(shard);
        let encoded = parallel::try_map(chunks.len(), |index| {
            let chunk = chunks[index].as_ref().filter(|chunk| source.touches(chunk));
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

/// A chunk as it is to be stored, in parts: its values where they are, if nothing becomes of them but a
/// checksum behind them.
fn encode_in_place<'a>(source: &'a ChunkSource<'_>, chunk: &[u64]) -> Result<Vec<Cow<'a, [u8]>>> {
    if source.metadata.chain.is_plain(&source.metadata.dtype)
        && let Some(raw) = source.whole_chunk(chunk)
    {
        let checksum = crc32c(raw).to_le_bytes().to_vec();
        return Ok(vec![Cow::Borrowed(raw), Cow::Owned(checksum)]);
    }
    Ok(vec![Cow::Owned(source.encode(chunk, None)?)])
}
