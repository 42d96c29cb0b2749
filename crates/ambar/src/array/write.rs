//! Writes arrays: encodes chunks in parallel, assembles them into shards, and appends these to the container.

use super::chunk_source::ChunkSource;
use super::shard::{ChunkRecord, ExistingEntry, tag, with_index};
use super::spec::{ArrayData, ArraySpec, Region};
use crate::buffers;
use crate::codec::CodecChain;
use crate::container::ContainerWriter;
use crate::error::Result;
use crate::limits::Limits;
use crate::metadata::ArrayMetadata;
use crate::parallel;

/// Raw bytes that are encoded before the result is appended, which bounds the memory used.
const BATCH_BYTES: usize = 256 << 20;

/// Called with the raw bytes of each encoded chunk; an error ends the write.
pub type Observer = dyn Fn(u64) -> Result<()> + Send + Sync;

/// An array to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewArray<'a> {
    /// The node's path.
    pub path: &'a str,
    /// Its type, shape, division and codecs.
    pub spec: &'a ArraySpec,
    /// Its values.
    pub data: ArrayData<'a>,
}

/// The metadata document of a written array, and the keys of its entries.
pub(crate) struct WrittenArray {
    pub document: String,
    pub keys: Vec<String>,
}

impl WrittenArray {
    /// An array of which nothing is written.
    pub(super) fn of(source: &ChunkSource<'_>) -> Result<Self> {
        let document = source.metadata.to_json();
        Ok(Self {
            document: document
                .map_err(|error| error.at_node(source.name))?
                .to_string(),
            keys: vec![],
        })
    }
}

/// Arrays that are ready to be written together: checked, with their codecs chosen.
pub(crate) struct WriteBatch<'a> {
    sources: Vec<ChunkSource<'a>>,
    /// The limits for existing chunks, with which regions are merged; `None` for new arrays.
    merge: Option<Limits>,
}

impl<'a> WriteBatch<'a> {
    /// Several new arrays; paths have no leading `/`.
    ///
    /// # Errors
    /// `Invalid` if data and spec do not fit.
    pub fn new(arrays: &[NewArray<'a>]) -> Result<Self> {
        let sources = parallel::try_map(arrays.len(), |index| {
            let NewArray { path, spec, data } = arrays[index];
            ChunkSource::new(path, spec, data).map_err(|error| error.at_node(path))
        })?;
        Ok(Self {
            sources,
            merge: None,
        })
    }

    /// A region of an existing array; with `spec` for an array without chunks. Existing chunks are read
    /// within `limits`.
    ///
    /// # Errors
    /// `Invalid` if data and region do not fit.
    pub fn region(
        name: &'a str,
        metadata: ArrayMetadata,
        spec: Option<&ArraySpec>,
        region: Region,
        data: ArrayData<'a>,
        limits: Limits,
    ) -> Result<Self> {
        let source = ChunkSource::region(name, metadata, spec, region, data, limits);
        Ok(Self {
            sources: vec![source.map_err(|error| error.at_node(name))?],
            merge: Some(limits),
        })
    }

    /// A part of a new array.
    pub(super) fn of(source: ChunkSource<'a>) -> Self {
        Self {
            sources: vec![source],
            merge: None,
        }
    }

    /// Encodes and appends all chunks, in batches; `observer` is called for each.
    ///
    /// # Errors
    /// `Io`; `Invalid` if a codec does not support a chunk; errors of `observer`. Some chunks may
    /// have been appended.
    pub fn write(
        self,
        container: &mut dyn ContainerWriter,
        observer: Option<&Observer>,
    ) -> Result<Vec<WrittenArray>> {
        let written = self.sources.iter().map(WrittenArray::of);
        let mut written: Vec<WrittenArray> = written.collect::<Result<_>>()?;
        let shards: Vec<(usize, Vec<u64>)> = self
            .sources
            .iter()
            .enumerate()
            .flat_map(|(index, source)| source.shards().into_iter().map(move |s| (index, s)))
            .collect();
        let mut rest = shards.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fit = rest.iter().take_while(|(index, _)| {
                let first = bytes == 0;
                bytes += self.sources[*index]
                    .grid
                    .shard_bytes(&self.sources[*index].metadata);
                first || bytes <= BATCH_BYTES
            });
            let (batch, later) = rest.split_at(fit.count().max(1));
            for shard in self.encode_batch(batch, container, observer)? {
                let parts: Vec<&[u8]> = shard.parts.iter().map(Vec::as_slice).collect();
                container.put_sealed(&shard.key, &parts, Some(shard.seal))?;
                written[shard.array].keys.push(shard.key);
                buffers::give_back(shard.parts);
            }
            rest = later;
        }
        buffers::release();
        Ok(written)
    }

    /// Encodes every chunk of some shards in parallel.
    fn encode_batch(
        &self,
        batch: &[(usize, Vec<u64>)],
        container: &mut dyn ContainerWriter,
        observer: Option<&Observer>,
    ) -> Result<Vec<EncodedShard>> {
        let mut shards = Vec::with_capacity(batch.len());
        let mut tasks = Vec::new();
        for (index, coordinates) in batch {
            let source = &self.sources[*index];
            let chunks = source.grid.chunks_of(coordinates);
            tasks.extend((0..chunks.len()).map(|chunk| (shards.len(), chunk)));
            shards.push(OpenShard {
                source,
                old: self.old(source, coordinates, container)?,
                key: source.metadata.keys.key(source.name, coordinates),
                chunks,
            });
        }
        let encoded = parallel::try_map(tasks.len(), |task| {
            let (shard, chunk) = tasks[task];
            shards[shard].encode(chunk, observer)
        })?;
        let mut encoded = encoded.into_iter();
        let assembled = shards.into_iter().zip(batch).map(|(shard, (array, _))| {
            let chunks: Vec<_> = encoded.by_ref().take(shard.chunks.len()).collect();
            let (parts, seal) = assemble(&shard.source.metadata, chunks)?;
            Ok(EncodedShard {
                array: *array,
                key: shard.key,
                parts,
                seal,
            })
        });
        assembled.collect()
    }

    /// The existing entry of a shard, if the source does not replace all of it.
    fn old(
        &self,
        source: &ChunkSource<'_>,
        coordinates: &[u64],
        container: &mut dyn ContainerWriter,
    ) -> Result<Option<ExistingEntry>> {
        let Some(limits) = self.merge.filter(|_| !source.covers(coordinates)) else {
            return Ok(None);
        };
        let key = source.metadata.keys.key(source.name, coordinates);
        match container.read_back(&key, limits.array_bytes)? {
            None => Ok(None),
            Some(bytes) => ExistingEntry::new(bytes, &source.metadata, &limits)
                .map(Some)
                .map_err(|error| error.at_node(&key)),
        }
    }
}

/// A shard whose chunks are being encoded.
struct OpenShard<'a, 'b> {
    source: &'b ChunkSource<'a>,
    old: Option<ExistingEntry>,
    key: String,
    /// The chunks in the order of the index; `None` for those outside of the array.
    chunks: Vec<Option<Vec<u64>>>,
}

impl OpenShard<'_, '_> {
    /// Encodes the chunk number `index` of the shard, or returns its existing bytes.
    fn encode(&self, index: usize, observer: Option<&Observer>) -> Result<Option<Vec<u8>>> {
        let Some(chunk) = &self.chunks[index] else {
            return Ok(None);
        };
        if !self.source.overlaps(chunk) {
            let old = self.old.as_ref().and_then(|old| old.chunk(index));
            return Ok(old.map(<[u8]>::to_vec));
        }
        let encoded = self.source.encode(chunk, self.old.as_ref());
        let encoded = encoded.map_err(|error| error.at_node(self.source.name))?;
        let bytes = self.source.grid.chunk_bytes(&self.source.metadata);
        observer.map_or(Ok(()), |observer| observer(bytes))?;
        Ok(Some(encoded))
    }
}

/// An entry to be appended: the index of its array, its key, its bytes in parts, and its seal.
struct EncodedShard {
    array: usize,
    key: String,
    parts: Vec<Vec<u8>>,
    seal: u32,
}

/// The parts of an entry (chunks, and for shards the index and the table of tags), and its seal.
fn assemble(metadata: &ArrayMetadata, chunks: Vec<Option<Vec<u8>>>) -> Result<(Vec<Vec<u8>>, u32)> {
    let Some(sharding) = &metadata.sharding else {
        let parts: Vec<Vec<u8>> = chunks.into_iter().flatten().collect();
        let seal = tag(parts.iter().map(Vec::as_slice));
        return Ok((parts, seal));
    };
    let record = |chunk: &Option<Vec<u8>>| Some(ChunkRecord::of([chunk.as_deref()?].into_iter()));
    let records: Vec<_> = chunks.iter().map(record).collect();
    with_index(sharding, &records, chunks.into_iter().flatten(), |index| {
        index
    })
}

/// Chooses codecs by sample values of the shape of `spec`, with the chunks of arrays that ranks write.
///
/// # Errors
/// `Invalid` if data and spec do not fit.
pub fn choose_codecs(spec: &ArraySpec, data: ArrayData<'_>) -> Result<CodecChain> {
    let mut spec = spec.clone().whole(true);
    spec.chunk_shape = Some(super::chunk_grid::chunk_shape_of(&spec)?);
    ChunkSource::new("sample", &spec, data).map(|source| source.metadata.chain)
}

/// Chooses codecs by sample values of the shape of `spec`, as those of an array that is written in regions.
///
/// # Errors
/// As `choose_codecs`.
pub(crate) fn choose_region_codecs(spec: &ArraySpec, data: ArrayData<'_>) -> Result<CodecChain> {
    let metadata = super::chunk_source::metadata_of(spec)?;
    let region = Region::all(&spec.shape);
    let limits = Limits::default();
    ChunkSource::region("sample", metadata, Some(spec), region, data, limits)
        .map(|source| source.metadata.chain)
}

/// The bytes and the seal of a shard (or chunk) of an array without written values.
pub(crate) fn empty_entry(metadata: &ArrayMetadata) -> Result<(Vec<u8>, u32)> {
    let grid = super::chunk_grid::ChunkGrid::of(metadata);
    if metadata.sharding.is_some() {
        let count = grid.per_shard().iter().product::<u64>() as usize;
        let (parts, seal) = assemble(metadata, vec![None; count])?;
        return Ok((parts.concat(), seal));
    }
    let values = grid.chunk_shape.iter().product::<u64>() as usize;
    if metadata.dtype.size().is_none() {
        let strings = vec![&metadata.fill_value[..]; values];
        return metadata
            .chain
            .encode_strings(strings.into_iter())
            .map(sealed);
    }
    let raw = metadata.fill_value.repeat(values);
    let geometry = crate::codec::ChunkGeometry::array(&grid.chunk_shape);
    crate::codec::with_scratch(|scratch| {
        metadata
            .chain
            .encode(&metadata.dtype, &raw, &geometry, &mut scratch.codecs)
    })
    .map(sealed)
}

/// A chunk that is an entry, and its seal.
fn sealed(chunk: Vec<u8>) -> (Vec<u8>, u32) {
    let seal = tag([&chunk[..]].into_iter());
    (chunk, seal)
}

/// Keys of all entries of the array `name` that `metadata` describes.
pub(crate) fn entries(name: &str, metadata: &ArrayMetadata) -> Vec<String> {
    let shards = super::chunk_grid::ChunkGrid::of(metadata).shards();
    let key = |shard: &Vec<u64>| metadata.keys.key(name, shard);
    shards.iter().map(key).collect()
}
