//! The chunks of an array, or of a region of one, to be written: chooses their codecs, encodes them, and
//! merges them with existing chunks.

use ambar_codec::ErrorBound;
use std::collections::HashMap;
use std::sync::Arc;

use super::block_origins::pad_origins;
use super::chunk_grid::ChunkGrid;
use super::leaf_positions::LeafPositions;
use super::read_plan::{Runs, Span, advance};
use super::row_pieces::RowPieces;
use super::shard::ExistingEntry;
use super::spec::{ArrayData, ArraySpec, Region};
use crate::codec::{
    self, ChunkGeometry, ChunkPadding, CodecChain, CodecScratch, EncoderSettings, LeafCells,
    PaddingValues, Profile, Purpose, choose, with_scratch,
};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::{Limits, checked_product};
use crate::metadata::ArrayMetadata;
use crate::parallel;
use crate::strings::Strings;

/// Part of the bytes that prediction from neighbouring leaf cells must save to be chosen.
const NEIGHBOURS_SAVING: f64 = 0.1;

/// An array, or a region of one, to be written.
pub(super) struct ChunkSource<'a> {
    pub name: &'a str,
    pub metadata: ArrayMetadata,
    pub grid: ChunkGrid,
    values: Values<'a>,
    /// The region of the array that is written.
    region: Region,
    /// Encoder settings chosen for the array.
    pub(super) settings: EncoderSettings,
    /// The origins of unit blocks, including the padding blocks of the last chunk.
    origins: Option<Arc<[[i64; 3]]>>,
    /// The positions of a tree's leaf cells, from which values are predicted.
    pub(super) leaves: Option<Arc<dyn LeafPositions>>,
    /// Error bounds by chunk along the first dimension.
    pub(super) chunk_bounds: Option<Arc<[ErrorBound]>>,
    /// Chunks that were encoded when the codecs were chosen.
    pub(super) sampled: HashMap<Vec<u64>, Vec<u8>>,
    /// Limits for existing chunks that are decoded.
    limits: Limits,
}

enum Values<'a> {
    Fixed(RowPieces<'a>),
    Strings(&'a Strings),
}

impl<'a> ChunkSource<'a> {
    /// A new array.
    pub fn new(name: &'a str, spec: &ArraySpec, data: ArrayData<'a>) -> Result<Self> {
        super::validation::check(spec, data)?;
        let grid = ChunkGrid::new(spec, data)?;
        let metadata = grid.describe(spec);
        let region = Region::all(&spec.shape);
        let origins = spec.block_origins.as_ref();
        let origins = origins.map(|origins| pad_origins(origins, &grid).into());
        let mut source = Self::cut(name, metadata, grid, region, data)?;
        source.origins = origins;
        source.chunk_bounds.clone_from(&spec.chunk_bounds);
        source.choose(spec, false)?;
        Ok(source)
    }

    /// A new array whose values are given later, in windows along the first dimension. The codecs are chosen by
    /// `samples`: the first row and the values of the chunks `codec::samples`, in order.
    ///
    /// # Errors
    /// `Invalid` if the spec is inconsistent.
    pub fn sampled(name: &'a str, spec: &ArraySpec, samples: &[(usize, &'a [u8])]) -> Result<Self> {
        super::validation::check_spec(spec)?;
        let nothing = ArrayData::Fixed(&[]);
        let grid = ChunkGrid::new(spec, nothing)?;
        let metadata = grid.describe(spec);
        let mut source = Self::cut(name, metadata, grid, Region::all(&spec.shape), nothing)?;
        source.values = Values::Fixed(RowPieces::sparse(samples, source.row_bytes()));
        let origins = spec.block_origins.as_ref();
        source.origins = origins.map(|origins| pad_origins(origins, &source.grid).into());
        source.chunk_bounds.clone_from(&spec.chunk_bounds);
        source.choose(spec, false)?;
        Ok(source)
    }

    /// Bytes of a row: the values of the array at one index of the first dimension.
    fn row_bytes(&self) -> usize {
        let values = self.metadata.shape.iter().skip(1).product::<u64>() as usize;
        values * self.metadata.dtype.size().unwrap_or(1)
    }

    /// The rows from `first` on of the array, with the codecs that are chosen for it.
    pub fn window<'b>(&'b self, first: u64, values: &'b [u8]) -> ChunkSource<'b> {
        let mut region = Region::all(&self.metadata.shape);
        region.start[0] = first;
        region.shape[0] = (values.len() / self.row_bytes().max(1)) as u64;
        ChunkSource {
            name: self.name,
            metadata: self.metadata.clone(),
            grid: ChunkGrid::of(&self.metadata),
            values: Values::Fixed(RowPieces::one(values)),
            region,
            settings: self.settings,
            origins: self.origins.clone(),
            leaves: self.leaves.clone(),
            chunk_bounds: self.chunk_bounds.clone(),
            sampled: self.sampled.clone(),
            limits: self.limits,
        }
    }

    /// A region of the array that `metadata` describes. With `spec`, for arrays without chunks, the codecs are
    /// chosen by the region's values. Existing chunks are decoded within `limits`.
    pub fn region(
        name: &'a str,
        metadata: ArrayMetadata,
        spec: Option<&ArraySpec>,
        region: Region,
        data: ArrayData<'a>,
        limits: Limits,
    ) -> Result<Self> {
        let part = ArraySpec::new(metadata.dtype.clone(), &region.shape);
        super::validation::check(&part, data)?;
        let grid = ChunkGrid::of(&metadata);
        let mut source = Self::cut(name, metadata, grid, region, data)?;
        source.limits = limits;
        match spec {
            Some(spec) => source.choose(spec, true)?,
            None => source.tune_to_chain()?,
        }
        Ok(source)
    }

    /// A region of an array with known codecs; its unit blocks are at `origins`.
    pub fn part(
        name: &'a str,
        metadata: ArrayMetadata,
        origins: Option<&[[i64; 3]]>,
        region: Region,
        data: ArrayData<'a>,
    ) -> Result<Self> {
        let grid = ChunkGrid::of(&metadata);
        let mut source = Self::cut(name, metadata, grid, region, data)?;
        source.origins = origins.map(|origins| pad_origins(origins, &source.grid).into());
        source.tune_to_chain()?;
        Ok(source)
    }

    /// Chooses the settings of the codec `ambar`, if the array has it.
    fn tune_to_chain(&mut self) -> Result<()> {
        match self.metadata.chain.error_bound() {
            Some(bound) => self.tune(bound, self.metadata.chain.profile()),
            None => Ok(()),
        }
    }

    fn cut(
        name: &'a str,
        metadata: ArrayMetadata,
        grid: ChunkGrid,
        region: Region,
        data: ArrayData<'a>,
    ) -> Result<Self> {
        let row = region.shape.iter().skip(1).product::<u64>();
        let values = match data {
            ArrayData::Fixed(values) => Values::Fixed(RowPieces::one(values)),
            ArrayData::Pieces(pieces) => {
                let size = metadata.dtype.size().unwrap_or(1) as u64;
                Values::Fixed(RowPieces::new(pieces, row * size))
            }
            ArrayData::Strings(strings) => Values::Strings(strings),
        };
        checked_product(&grid.counts, 1)
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| {
                Error::limit("the array has more chunks than fit in memory; choose larger chunks")
            })?;
        Ok(Self {
            name,
            metadata,
            grid,
            values,
            region,
            settings: EncoderSettings::default(),
            origins: None,
            leaves: None,
            chunk_bounds: None,
            sampled: HashMap::new(),
            limits: Limits::default(),
        })
    }

    /// Chooses the codecs, and the settings of the codec `ambar` if it is a candidate.
    fn choose(&mut self, spec: &ArraySpec, streamed: bool) -> Result<()> {
        let bound = spec.lossy_bound();
        let float = matches!(spec.dtype, DataType::Float32 | DataType::Float64);
        let blocks = float && self.origins.is_some();
        if let Some(codecs) = &spec.codecs {
            self.metadata.chain = codecs.clone();
            return self.tune_to_chain();
        }
        let predicted =
            float && spec.predict && !matches!(spec.profile, Profile::Fast | Profile::Raw);
        if bound.is_some() || predicted || blocks && spec.profile == Profile::Small {
            self.tune(bound.unwrap_or(ErrorBound::Lossless), spec.profile)?;
        }
        if let Some(bound) = bound {
            self.choose_neighbours(spec, bound)?;
            self.metadata.chain = bounded(spec.profile, bound);
            return Ok(());
        }
        let mut chosen = choose(
            Purpose {
                profile: spec.profile,
                blocks,
                predict: spec.predict,
                streamed,
                whole: spec.whole,
            },
            &spec.dtype,
            &self.grid.chunk_shape,
            self.count(),
            |chain, index| self.encode_with(chain, &self.chunk_at(index), None),
        )?;
        let cut_freely = spec.chunk_shape.is_none() && spec.shard_shape.is_none();
        if spec.whole && cut_freely && !blocks && !streamed && self.count() > 1 {
            chosen = self.choose_long(spec, chosen)?;
        }
        if spec.cells && !streamed && self.count() > 0 {
            chosen = self.choose_corners(spec, chosen)?;
        }
        let encoded = chosen.encoded.values().map(Vec::as_slice);
        self.settings.pcodec = chosen.chain.known_deltas(&spec.dtype, encoded);
        let place = |(index, encoded)| (self.chunk_at(index), encoded);
        self.sampled = chosen.encoded.into_iter().map(place).collect();
        self.metadata.chain = chosen.chain;
        Ok(())
    }

    /// Chooses prediction from neighbouring leaf cells if it makes the sampled chunks a tenth smaller than
    /// prediction along the rows.
    ///
    /// # Errors
    /// As `encode`.
    fn choose_neighbours(&mut self, spec: &ArraySpec, bound: ErrorBound) -> Result<()> {
        // Decoding is more than ten times as slow, so only `small` tries it.
        let Some(leaves) = spec
            .leaves
            .as_ref()
            .filter(|_| spec.profile == Profile::Small)
        else {
            return Ok(());
        };
        let chain = CodecChain::bounded(bound);
        let chunks: Vec<Vec<u64>> = codec::samples(self.count())
            .into_iter()
            .map(|index| self.chunk_at(index))
            .collect();
        let encoded = |source: &Self| {
            parallel::try_map(chunks.len(), |i| {
                source.encode_with(&chain, &chunks[i], None)
            })
        };
        let length = |encoded: &[Vec<u8>]| encoded.iter().map(Vec::len).sum::<usize>() as f64;
        let (row, settings) = (encoded(self)?, self.settings);
        self.leaves = Some(Arc::clone(leaves));
        self.tune(bound, Profile::Small)?;
        let mut chosen = encoded(self)?;
        if length(&chosen) > (1.0 - NEIGHBOURS_SAVING) * length(&row) {
            (self.leaves, self.settings) = (None, settings);
            chosen = row;
        }
        self.sampled = chunks.into_iter().zip(chosen).collect();
        Ok(())
    }

    /// Chooses the settings of the codec `ambar` by encoding the middle chunk.
    pub(super) fn tune(&mut self, bound: ErrorBound, profile: Profile) -> Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        let chunk = self.chunk_at(self.count() / 2);
        let dtype = &self.metadata.dtype;
        let padding = ChunkPadding::of_ambar(bound, profile == Profile::Fast);
        let params = self.with_chunk(&chunk, None, padding, |raw, geometry, _| {
            codec::tune(dtype, raw, geometry, bound, profile)
        })?;
        self.settings.ambar = Some(params);
        Ok(())
    }

    /// The first chunk and the number of chunks that the region overlaps, in dimension `d`.
    fn chunk_range(&self, d: usize) -> (u64, u64) {
        let (start, length) = (self.region.start[d], self.region.shape[d]);
        let chunk = self.grid.chunk_shape[d];
        match length.checked_sub(1) {
            None => (start / chunk, 0),
            Some(last) => (start / chunk, (start + last) / chunk - start / chunk + 1),
        }
    }

    /// Number of chunks that the region overlaps.
    pub(super) fn count(&self) -> usize {
        let dimensions = 0..self.region.shape.len();
        dimensions.map(|d| self.chunk_range(d).1).product::<u64>() as usize
    }

    /// The chunk number `index` of those that the region overlaps, in C order.
    pub(super) fn chunk_at(&self, index: usize) -> Vec<u64> {
        let mut rest = index as u64;
        let mut chunk = vec![0; self.region.shape.len()];
        for (d, coordinate) in chunk.iter_mut().enumerate().rev() {
            let (first, count) = self.chunk_range(d);
            *coordinate = first + rest % count;
            rest /= count;
        }
        chunk
    }

    /// Coordinates of all shards that the region overlaps.
    pub fn shards(&self) -> Vec<Vec<u64>> {
        let per_shard = self.grid.per_shard();
        let ranges: Vec<(u64, u64)> = (per_shard.iter().enumerate())
            .map(|(d, per)| {
                let (first, count) = self.chunk_range(d);
                let shards = (first + count).div_ceil(*per) - first / per;
                (first / per, if count == 0 { 0 } else { shards })
            })
            .collect();
        let lengths: Vec<u64> = ranges.iter().map(|(_, count)| *count).collect();
        let mut shards = Vec::new();
        if lengths.contains(&0) {
            return shards;
        }
        let mut inside = vec![0; lengths.len()];
        loop {
            let shard = ranges.iter().zip(&inside).map(|((first, _), n)| first + n);
            shards.push(shard.collect());
            if !advance(&mut inside, &lengths) {
                return shards;
            }
        }
    }

    /// Whether the region contains a shard, cut at the end of the array.
    pub fn covers(&self, shard: &[u64]) -> bool {
        let per_shard = self.grid.per_shard();
        (0..shard.len()).all(|d| {
            let length = per_shard[d] * self.grid.chunk_shape[d];
            let start = shard[d] * length;
            let stop = (start + length).min(self.metadata.shape[d]);
            self.region.start[d] <= start && stop <= self.region.stop(d)
        })
    }

    /// Whether the region overlaps a chunk.
    pub fn overlaps(&self, chunk: &[u64]) -> bool {
        (0..chunk.len()).all(|d| {
            let (first, count) = self.chunk_range(d);
            (first..first + count).contains(&chunk[d])
        })
    }

    /// Encodes a chunk, merged with its existing values.
    pub fn encode(&self, chunk: &[u64], old: Option<&ExistingEntry>) -> Result<Vec<u8>> {
        if let Some(encoded) = self.sampled.get(chunk)
            && (old.is_none() || self.is_whole(chunk))
        {
            return Ok(encoded.clone());
        }
        let old = old.and_then(|old| old.chunk(self.grid.index_in_shard(chunk)));
        let chain = &self.metadata.chain;
        if old.is_some() && chain.error_bound().is_some() && !self.is_whole(chunk) {
            // Existing values are within the bound already; encoding them again could exceed it.
            return self.encode_with(&CodecChain::bounded(ErrorBound::Lossless), chunk, old);
        }
        self.encode_with(chain, chunk, old)
    }

    /// The values of a chunk if they are contiguous in the caller's memory.
    pub fn whole_chunk(&self, chunk: &[u64]) -> Option<&[u8]> {
        let Values::Fixed(pieces) = &self.values else {
            return None;
        };
        let shape = &self.grid.chunk_shape;
        let size = self.metadata.dtype.size().unwrap_or(1);
        let runs = Runs::new(&self.spans(chunk), shape, &self.region.shape, size);
        let first = runs.first().outside;
        let whole = runs.is_single() && runs.len == shape.iter().product::<u64>() as usize * size;
        pieces
            .single()?
            .get(first..first + runs.len)
            .filter(|_| whole)
    }

    pub(super) fn encode_with(
        &self,
        chain: &CodecChain,
        chunk: &[u64],
        old: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let bounds = self.chunk_bounds.as_ref().zip(chain.error_bound());
        let own = bounds.and_then(|(bounds, general)| {
            let own = bounds.get(chunk.first().copied().unwrap_or(0) as usize)?;
            (*own != general).then(|| chain.with_bound(*own))
        });
        let used = own.as_ref().unwrap_or(chain);
        match self.values {
            Values::Fixed(_) => {
                self.with_chunk(chunk, old, used.padding(), |raw, geometry, scratch| {
                    let mut geometry = *geometry;
                    if own.is_some() {
                        // The array's settings were chosen for another bound.
                        geometry.settings.ambar = None;
                    }
                    used.encode(&self.metadata.dtype, raw, &geometry, scratch)
                })
            }
            Values::Strings(strings) => self.encode_strings(chain, strings, chunk, old),
        }
    }

    /// The intersection of the region and a chunk.
    fn spans(&self, chunk: &[u64]) -> Vec<Span> {
        let span = |d: usize| {
            let length = self.grid.chunk_shape[d];
            let start = chunk[d] * length;
            let first = self.region.start[d].max(start);
            let stop = self.region.stop(d).min(start + length);
            Span {
                inside: (first - start) as usize,
                count: stop.saturating_sub(first) as usize,
                outside: (first - self.region.start[d]) as usize,
                step: 1,
            }
        };
        (0..chunk.len()).map(span).collect()
    }

    /// The length of the part of a chunk along each dimension that is in the array.
    fn held(&self, chunk: &[u64]) -> Vec<usize> {
        let held = |d: usize| {
            let length = self.grid.chunk_shape[d];
            length.min(self.metadata.shape[d] - chunk[d] * length) as usize
        };
        (0..chunk.len()).map(held).collect()
    }

    /// Whether the region contains a chunk, cut at the end of the array.
    fn is_whole(&self, chunk: &[u64]) -> bool {
        let spans = self.spans(chunk);
        spans
            .iter()
            .zip(self.held(chunk))
            .all(|(span, held)| span.inside == 0 && span.count == held)
    }

    /// Calls `f` with the values of a chunk, which have a fixed size, and their geometry. Values past the end of the array are
    /// padding.
    fn with_chunk<R>(
        &self,
        chunk: &[u64],
        old: Option<&[u8]>,
        padding: ChunkPadding,
        f: impl FnOnce(&[u8], &ChunkGeometry<'_>, &mut CodecScratch) -> Result<R>,
    ) -> Result<R> {
        let chunk_shape = &self.grid.chunk_shape;
        let Values::Fixed(pieces) = &self.values else {
            return Err(Error::invalid(
                "strings have no fixed size; write them as strings",
            ));
        };
        let dtype = &self.metadata.dtype;
        let size = dtype.size().unwrap_or(1);
        let origins = self.origins.as_ref().and_then(|origins| {
            let start = (chunk[0] * chunk_shape[0]) as usize;
            origins.get(start..start + chunk_shape[0] as usize)
        });
        let leaves = self.leaves.as_ref();
        let cells = leaves.map(|leaves| leaves.chunk(chunk[0])).transpose()?;
        let dimensions = leaves.map_or(0, |leaves| leaves.dimensions());
        let is_grid = origins.is_none() && leaves.is_none();
        let geometry = ChunkGeometry {
            shape: chunk_shape,
            origins,
            cells: cells.as_ref().map(|(levels, origins)| LeafCells {
                dimensions,
                levels,
                origins,
            }),
            settings: self.settings,
            held: None,
            finite_values: None,
        };
        let bytes = chunk_shape.iter().product::<u64>() as usize * size;
        with_scratch(|scratch| {
            if let Some(raw) = self.whole_chunk(chunk) {
                return f(raw, &geometry, &mut scratch.codecs);
            }
            let (raw, spans) = (scratch.decoded.bytes(bytes)?, self.spans(chunk));
            let is_whole = self.is_whole(chunk);
            let old = old.filter(|_| !is_whole);
            let fill = &self.metadata.fill_value;
            match old {
                Some(old) => {
                    let chain = &self.metadata.chain;
                    let limits = &self.limits;
                    chain.decode(dtype, chunk_shape, old, raw, limits, &mut scratch.codecs)?;
                }
                None => repeat(raw, fill),
            }
            pieces.copy(raw, &spans, chunk_shape, &self.region.shape, size)?;
            let mut geometry = geometry;
            if old.is_none() && padding.is_counted {
                let written: usize = spans.iter().map(|span| span.count).product();
                let others = (bytes / size - written) * codec::count_finite(dtype, fill);
                geometry.finite_values = Some(codec::count_finite(dtype, raw) - others);
            }
            let held = self.held(chunk);
            if held.iter().product::<usize>() < bytes / size {
                if is_whole {
                    let values = match is_grid {
                        true => padding.values,
                        false => PaddingValues::Repeated,
                    };
                    values.write(raw, size, chunk_shape, &held);
                }
                geometry.held = is_grid.then_some(&held[..]);
            }
            f(raw, &geometry, &mut scratch.codecs)
        })
    }

    fn encode_strings(
        &self,
        chain: &CodecChain,
        strings: &Strings,
        chunk: &[u64],
        old: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let chunk_shape = &self.grid.chunk_shape;
        let spans = self.spans(chunk);
        let runs = Runs::new(&spans, chunk_shape, &self.region.shape, 1);
        let count = chunk_shape.iter().product::<u64>() as usize;
        let old = match old.filter(|_| !self.is_whole(chunk)) {
            None => None,
            Some(old) => Some(with_scratch(|scratch| {
                let chain = &self.metadata.chain;
                chain.decode_strings(old, count, &self.limits, &mut scratch.codecs)
            })?),
        };
        let mut values: Vec<&[u8]> = (0..count)
            .map(|index| match &old {
                Some(old) => old.get(index).unwrap_or_default(),
                None => &self.metadata.fill_value,
            })
            .collect();
        runs.try_for_each(|run| {
            for i in 0..runs.len {
                values[run.inside + i] = strings.get(run.outside + i).unwrap_or_default();
            }
            Ok(())
        })?;
        chain.encode_strings(values.into_iter())
    }
}

/// Repeats `value` over `raw`.
fn repeat(raw: &mut [u8], value: &[u8]) {
    if !value.is_empty() {
        raw.chunks_exact_mut(value.len())
            .for_each(|out| out.copy_from_slice(value));
    }
}

/// The metadata of an array whose values are not known yet, with default codecs.
///
/// # Errors
/// `Invalid` if the spec is inconsistent.
pub(crate) fn metadata_of(spec: &ArraySpec) -> Result<ArrayMetadata> {
    super::validation::check_spec(spec)?;
    let mut metadata = ChunkGrid::new(spec, ArrayData::Fixed(&[]))?.describe(spec);
    let bound = spec.lossy_bound();
    let float = matches!(spec.dtype, DataType::Float32 | DataType::Float64);
    metadata.chain = match (&spec.codecs, bound) {
        (Some(codecs), _) => codecs.clone(),
        (None, Some(bound)) => bounded(spec.profile, bound),
        (None, None) if float && spec.predict && spec.profile == Profile::Fast => {
            CodecChain::fast(ErrorBound::Lossless)
        }
        (None, None) => codec::default_chain(spec.profile, &spec.dtype),
    };
    Ok(metadata)
}

/// The default chain for an error bound.
fn bounded(profile: Profile, bound: ErrorBound) -> CodecChain {
    if profile == Profile::Fast {
        CodecChain::fast(bound)
    } else {
        CodecChain::bounded(bound)
    }
}
