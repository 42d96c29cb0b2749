//! Writing arrays: chunks are encoded in parallel, put together into shards, and appended.

use std::collections::HashMap;

use super::blocks::{Runs, Span, advance};
use super::layout::Layout;
use super::shard::encode_index;
use super::spec::{ArrayData, ArraySpec};
use super::strings::Strings;
use crate::codec::{
    self, Chosen, ChunkPlace, CodecChain, CodecScratch, Profile, choose, with_scratch,
};
use crate::container::ContainerWriter;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::metadata::{ArrayMetadata, IndexLocation, KeyEncoding, Sharding, checked_product};
use crate::parallel;

/// Raw bytes that are encoded before the result is appended: bounds the memory it takes.
const BATCH: usize = 256 << 20;

/// Called with the raw bytes of a chunk that was encoded; an error ends the write.
pub type Observer = dyn Fn(u64) -> Result<()> + Send + Sync;

/// What was written of an array: its document, and the keys of its chunks.
pub(crate) struct WrittenArray {
    pub document: String,
    pub keys: Vec<String>,
}

/// Arrays checked and cut, their codecs chosen; nothing is written yet.
pub(crate) struct Prepared<'a> {
    sources: Vec<Source<'a>>,
    documents: Vec<String>,
}

impl<'a> Prepared<'a> {
    /// Prepares several arrays, named without a leading `/`.
    ///
    /// # Errors
    /// `Invalid` where data and spec do not fit.
    pub fn new(arrays: &[(&'a str, &ArraySpec, ArrayData<'a>)]) -> Result<Self> {
        let sources = parallel::try_map(arrays.len(), |index| {
            let (name, spec, data) = arrays[index];
            Source::new(name, spec, data).map_err(|error| error.at_node(name))
        })?;
        let documents = sources
            .iter()
            .map(Source::document)
            .collect::<Result<_>>()?;
        Ok(Self { sources, documents })
    }

    /// Encodes and appends all chunks, in batches; `observer` is told of each.
    ///
    /// # Errors
    /// `Io`, `Invalid` where a codec refuses a chunk, and what `observer` returned. Some chunks may
    /// have been appended.
    pub fn write(
        self,
        container: &mut dyn ContainerWriter,
        observer: Option<&Observer>,
    ) -> Result<Vec<WrittenArray>> {
        let Self { sources, documents } = self;
        let written = documents.into_iter().map(|document| WrittenArray {
            document,
            keys: vec![],
        });
        let mut written: Vec<WrittenArray> = written.collect();
        let shards: Vec<(usize, Vec<u64>)> = sources
            .iter()
            .enumerate()
            .flat_map(|(index, source)| source.shards().into_iter().map(move |s| (index, s)))
            .collect();
        let mut rest = shards.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fit = rest.iter().take_while(|(index, _)| {
                let first = bytes == 0;
                bytes += sources[*index].shard_bytes();
                first || bytes <= BATCH
            });
            let (batch, later) = rest.split_at(fit.count().max(1));
            for shard in encode_batch(&sources, batch, observer)? {
                let parts: Vec<&[u8]> = shard.parts.iter().map(Vec::as_slice).collect();
                container.put(&shard.key, &parts)?;
                written[shard.array].keys.push(shard.key);
            }
            rest = later;
        }
        Ok(written)
    }
}

/// An entry ready to be appended: which array it belongs to, its key, and its bytes in parts.
struct EncodedShard {
    array: usize,
    key: String,
    parts: Vec<Vec<u8>>,
}

/// Encodes every chunk of some shards in parallel.
fn encode_batch(
    sources: &[Source<'_>],
    batch: &[(usize, Vec<u64>)],
    observer: Option<&Observer>,
) -> Result<Vec<EncodedShard>> {
    let mut chunks = Vec::new();
    let mut shards = Vec::with_capacity(batch.len());
    for (index, shard) in batch {
        let inside = sources[*index].chunks_of(shard);
        shards.push(inside.len());
        chunks.extend(inside.into_iter().map(|chunk| (*index, chunk)));
    }
    let encoded = parallel::try_map(chunks.len(), |task| {
        let (index, chunk) = &chunks[task];
        match chunk {
            None => Ok(None),
            Some(chunk) => {
                let source = &sources[*index];
                let encoded = source
                    .encode(chunk)
                    .map_err(|error| error.at_node(source.name))?;
                observer.map_or(Ok(()), |observer| observer(source.chunk_bytes()))?;
                Ok(Some(encoded))
            }
        }
    })?;
    let mut encoded = encoded.into_iter();
    batch
        .iter()
        .zip(shards)
        .map(|((index, shard), count)| {
            let source = &sources[*index];
            let chunks: Vec<Option<Vec<u8>>> = encoded.by_ref().take(count).collect();
            let key = KeyEncoding::DEFAULT.key(source.name, shard);
            let parts = source.assemble(chunks)?;
            Ok(EncodedShard {
                array: *index,
                key,
                parts,
            })
        })
        .collect()
}

/// An array on its way into a store.
struct Source<'a> {
    name: &'a str,
    data: ArrayData<'a>,
    layout: Layout,
    metadata: ArrayMetadata,
    /// Settings of the codec `ambar`.
    plan: Option<ambar_codec::Plan>,
    /// Where unit blocks lie, those included that fill the last chunk.
    origins: Option<Vec<[i64; 3]>>,
    /// Chunks that choosing the codecs has encoded already, by their position in the grid.
    sampled: HashMap<usize, Vec<u8>>,
}

impl<'a> Source<'a> {
    fn new(name: &'a str, spec: &ArraySpec, data: ArrayData<'a>) -> Result<Self> {
        super::check::check(spec, data)?;
        let layout = Layout::new(spec, data)?;
        let sharding = layout.shard_shape.clone().map(|shape| Sharding {
            shape,
            location: IndexLocation::End,
            index_chain: CodecChain::raw(),
        });
        let fill_value = spec
            .fill_value
            .clone()
            .unwrap_or_else(|| ArrayMetadata::default_fill(&spec.dtype));
        let metadata = ArrayMetadata {
            dtype: spec.dtype.clone(),
            shape: spec.shape.clone(),
            chunk_shape: layout.chunk_shape.clone(),
            sharding,
            keys: KeyEncoding::DEFAULT,
            chain: CodecChain::raw(),
            fill_value,
            dimension_names: spec.dimension_names.clone(),
            attributes: spec.attributes.clone(),
        };
        let mut source = Self {
            name,
            data,
            metadata,
            plan: None,
            origins: spec
                .block_origins
                .as_ref()
                .map(|origins| padded(origins, &layout)),
            layout,
            sampled: HashMap::new(),
        };
        let count = checked_product(&source.layout.grid, 1)
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| Error::limit("more chunks than can be counted"))?;
        let chosen = source.choose(spec, count)?;
        source.metadata.chain = chosen.chain;
        source.sampled = chosen.encoded;
        Ok(source)
    }

    /// Chooses the codecs, and the settings of the codec `ambar` where it may be used.
    fn choose(&mut self, spec: &ArraySpec, count: usize) -> Result<Chosen> {
        let bound = spec.error_bound.filter(|bound| *bound > 0.0);
        let float = matches!(spec.dtype, DataType::Float32 | DataType::Float64);
        let blocks = float && self.origins.is_some();
        if (bound.is_some() || blocks && spec.profile == Profile::Small) && count > 0 {
            let chunk = self.chunk_at(count / 2);
            let dtype = &self.metadata.dtype;
            let plan = self.with_chunk(&chunk, |raw, place, _| {
                codec::tune(dtype, raw, place, bound.unwrap_or(0.0))
            })?;
            let quick = spec.profile == Profile::Fast;
            self.plan = Some(if quick { plan.quick() } else { plan });
        }
        if let Some(bound) = bound {
            return Ok(Chosen {
                chain: CodecChain::bounded(bound),
                encoded: HashMap::new(),
            });
        }
        choose(
            (spec.profile, blocks),
            &spec.dtype,
            (
                count,
                self.layout.chunk_shape.iter().product::<u64>() as usize,
            ),
            |chain, index| self.encode_with(chain, &self.chunk_at(index)),
        )
    }

    fn document(&self) -> Result<String> {
        let document = self
            .metadata
            .to_json()
            .map_err(|error| error.at_node(self.name))?;
        Ok(document.to_string())
    }

    /// Coordinates of the chunk at position `index` of the grid, in C order.
    fn chunk_at(&self, index: usize) -> Vec<u64> {
        let mut rest = index as u64;
        let mut chunk = vec![0; self.layout.grid.len()];
        for (place, count) in chunk.iter_mut().zip(&self.layout.grid).rev() {
            *place = rest % count;
            rest /= count;
        }
        chunk
    }

    /// The position in the grid of a chunk.
    fn index_of(&self, chunk: &[u64]) -> usize {
        let grid = chunk.iter().zip(&self.layout.grid);
        grid.fold(0u64, |index, (place, count)| index * count + place) as usize
    }

    /// Chunks of a shard in each dimension.
    fn per_shard(&self) -> Vec<u64> {
        let shard = self
            .layout
            .shard_shape
            .as_ref()
            .unwrap_or(&self.layout.chunk_shape);
        shard
            .iter()
            .zip(&self.layout.chunk_shape)
            .map(|(shard, chunk)| shard / chunk)
            .collect()
    }

    /// Raw bytes of a chunk; of texts, about.
    fn chunk_bytes(&self) -> u64 {
        let size = self.metadata.dtype.size().unwrap_or(64) as u64;
        self.layout.chunk_shape.iter().product::<u64>() * size
    }

    /// Raw bytes of a shard, about.
    fn shard_bytes(&self) -> usize {
        let chunks: u64 = self.per_shard().iter().product();
        (chunks * self.chunk_bytes()) as usize
    }

    /// Coordinates of all shards.
    fn shards(&self) -> Vec<Vec<u64>> {
        let grid: Vec<u64> = self
            .layout
            .grid
            .iter()
            .zip(self.per_shard())
            .map(|(n, per)| n.div_ceil(per))
            .collect();
        let mut shards = Vec::new();
        if grid.contains(&0) {
            return shards;
        }
        let mut shard = vec![0; grid.len()];
        loop {
            shards.push(shard.clone());
            if !advance(&mut shard, &grid) {
                return shards;
            }
        }
    }

    /// The chunks of a shard in the order of its index; `None` for those outside of the array.
    fn chunks_of(&self, shard: &[u64]) -> Vec<Option<Vec<u64>>> {
        let per_shard = self.per_shard();
        let mut inside = vec![0; shard.len()];
        let mut chunks = Vec::new();
        loop {
            let chunk: Vec<u64> = (0..shard.len())
                .map(|d| shard[d] * per_shard[d] + inside[d])
                .collect();
            let exists = chunk
                .iter()
                .zip(&self.layout.grid)
                .all(|(place, count)| place < count);
            chunks.push(exists.then_some(chunk));
            if !advance(&mut inside, &per_shard) {
                return chunks;
            }
        }
    }

    /// The parts of an entry: its chunks and, in a shard, the index.
    fn assemble(&self, chunks: Vec<Option<Vec<u8>>>) -> Result<Vec<Vec<u8>>> {
        let Some(sharding) = &self.metadata.sharding else {
            return Ok(chunks.into_iter().flatten().collect());
        };
        let places: Vec<Option<&[u8]>> = chunks.iter().map(Option::as_deref).collect();
        let index = encode_index(&sharding.index_chain, &places)?;
        Ok(chunks.into_iter().flatten().chain([index]).collect())
    }

    fn encode(&self, chunk: &[u64]) -> Result<Vec<u8>> {
        match self.sampled.get(&self.index_of(chunk)) {
            Some(encoded) => Ok(encoded.clone()),
            None => self.encode_with(&self.metadata.chain, chunk),
        }
    }

    fn encode_with(&self, chain: &CodecChain, chunk: &[u64]) -> Result<Vec<u8>> {
        match self.data {
            ArrayData::Fixed(_) => self.with_chunk(chunk, |raw, place, scratch| {
                chain.encode(&self.metadata.dtype, raw, place, scratch)
            }),
            ArrayData::Strings(strings) => {
                let spans = self.spans(chunk);
                let chunk_shape = &self.layout.chunk_shape;
                let runs = Runs::new(&spans, chunk_shape, &self.metadata.shape, |_| 1, 1);
                encode_texts(
                    chain,
                    strings,
                    &runs,
                    chunk_shape,
                    &self.metadata.fill_value,
                )
            }
        }
    }

    /// Where a chunk lies in the array.
    fn spans(&self, chunk: &[u64]) -> Vec<Span> {
        let (shape, chunk_shape) = (&self.metadata.shape, &self.layout.chunk_shape);
        let span = |d: usize| {
            let start = chunk[d] * chunk_shape[d];
            let count = chunk_shape[d].min(shape[d] - start) as usize;
            Span {
                inside: 0,
                count,
                outside: start as usize,
            }
        };
        (0..shape.len()).map(span).collect()
    }

    /// Calls `f` with the values of a chunk, which are of a fixed size, and how they lie.
    fn with_chunk<R>(
        &self,
        chunk: &[u64],
        f: impl FnOnce(&[u8], &ChunkPlace<'_>, &mut CodecScratch) -> Result<R>,
    ) -> Result<R> {
        let chunk_shape = &self.layout.chunk_shape;
        let ArrayData::Fixed(values) = self.data else {
            return Err(Error::invalid("texts have no fixed size"));
        };
        let size = self.metadata.dtype.size().unwrap_or(1);
        let spans = self.spans(chunk);
        let runs = Runs::new(&spans, chunk_shape, &self.metadata.shape, |_| 1, size);
        let origins = self.origins.as_ref().and_then(|origins| {
            let start = (chunk[0] * chunk_shape[0]) as usize;
            origins.get(start..start + chunk_shape[0] as usize)
        });
        let place = ChunkPlace {
            shape: chunk_shape,
            origins,
            plan: self.plan,
        };
        let bytes = chunk_shape.iter().product::<u64>() as usize * size;
        let first = runs.first().outside;
        with_scratch(|scratch| {
            if runs.is_single() && runs.len == bytes {
                return f(&values[first..first + bytes], &place, &mut scratch.codecs);
            }
            let raw = scratch.decoded.bytes(bytes);
            // What lies outside of the array repeats a value of the chunk, which costs least.
            if size > 0 {
                let padding = &values[first..first + size];
                raw.chunks_exact_mut(size)
                    .for_each(|place| place.copy_from_slice(padding));
            }
            runs.try_for_each(|run| {
                let source = &values[run.outside..run.outside + runs.len];
                raw[run.inside..run.inside + runs.len].copy_from_slice(source);
                Ok(())
            })?;
            f(raw, &place, &mut scratch.codecs)
        })
    }
}

/// The origins of unit blocks, and of those that fill the last chunk up: behind all others on the
/// Morton curve, in a row.
fn padded(origins: &[[i64; 3]], layout: &Layout) -> Vec<[i64; 3]> {
    let chunk = layout
        .chunk_shape
        .first()
        .map_or(1, |blocks| *blocks as usize);
    let side = |d: usize| {
        let dimension = (layout.chunk_shape.len() + d)
            .checked_sub(3)
            .filter(|place| *place > 0);
        dimension.map_or(1, |place| layout.chunk_shape[place] as i64)
    };
    let farthest = origins
        .iter()
        .flat_map(|origin| (0..3).map(|d| origin[d] / side(d)))
        .max();
    // In z where blocks have a side in z, else in y or x.
    let (outer, inner) = (3 - (layout.chunk_shape.len() - 1).min(3), 2);
    let behind = (farthest.unwrap_or(0).max(0) as u64 + 1).next_power_of_two() as i64;
    let missing = origins.len().next_multiple_of(chunk) - origins.len();
    let more = (0..missing as i64).map(|number| {
        let mut origin = [0; 3];
        origin[inner] += number * side(inner);
        origin[outer] += behind * side(outer);
        origin
    });
    origins.iter().copied().chain(more).collect()
}

fn encode_texts(
    chain: &CodecChain,
    strings: &Strings,
    runs: &Runs,
    chunk_shape: &[u64],
    padding: &[u8],
) -> Result<Vec<u8>> {
    let count = chunk_shape.iter().product::<u64>() as usize;
    let mut texts = vec![padding; count];
    runs.try_for_each(|run| {
        for i in 0..runs.len {
            texts[run.inside + i] = strings.get(run.outside + i).unwrap_or_default();
        }
        Ok(())
    })?;
    chain.encode_strings(texts.into_iter())
}
