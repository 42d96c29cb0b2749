//! Unit blocks: cubes of equal size that contain the stored cells of a level, along the Morton curve.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::hierarchy::IndexBox;
use super::hierarchy::nest::{CellSet, Nest};
use crate::error::{Error, Result};
use crate::kinds::morton;

/// Possible sides of unit blocks, the largest first. Larger blocks improve the prediction of values
/// from their neighbours, but have more padding cells.
const SIDES: [usize; 3] = [16, 8, 4];

/// Minimum ratio of the cells of the boxes to padding cells; otherwise the next smaller side is used.
const PADDING: u64 = 10;

/// Maximum number of unit blocks of a level. Each takes 40 bytes of memory.
pub(crate) const MAX_BLOCKS: u64 = 1 << 28;

/// The unit blocks of one level.
///
/// Block `i` contains the cells from `origins()[i]`, `side()` in each dimension; origins are
/// multiples of the side. Arrays over blocks have the cells of a block x fastest. Cells of a block
/// that are in no box are padding. The side depends on the boxes, not on which cells are stored.
pub struct Blocks {
    nest: Arc<Nest>,
    level: usize,
    side: usize,
    per_chunk: usize,
    keys: Vec<u128>,
    origins: Vec<[i64; 3]>,
}

impl Blocks {
    /// The blocks that contain `cells` of a level, in chunks of `chunk_cells` if given.
    ///
    /// # Errors
    /// `Limit` for more blocks than can be handled.
    pub(crate) fn choose(
        nest: &Arc<Nest>,
        level: usize,
        cells: CellSet,
        chunk_cells: Option<usize>,
    ) -> Result<Self> {
        // The side depends only on the boxes: the order of cells does not depend on dropped cells.
        let kept = nest.cells(level, CellSet::All);
        let mut chosen = (1, Vec::new());
        for side in SIDES {
            let keys = keys(nest, level, side, CellSet::All)?;
            let held = keys.len() as u64 * side.pow(nest.ndim() as u32) as u64;
            let fits = (held - kept).saturating_mul(PADDING) <= kept;
            chosen = (side, keys);
            if fits {
                break;
            }
        }
        let (side, mut keys) = chosen;
        if cells == CellSet::Leaves {
            keys = self::keys(nest, level, side, cells)?;
        }
        let block_cells = side.pow(nest.ndim() as u32);
        let wanted = chunk_cells.unwrap_or_else(|| chunk_cells_of(keys.len() * block_cells));
        // A level that fits in one chunk is not padded.
        let per_chunk = (wanted / block_cells).max(1).min(keys.len().max(1));
        Ok(Self::from_keys(nest, level, (side, per_chunk), keys))
    }

    /// The blocks of `side` that contain `cells` of a level.
    ///
    /// # Errors
    /// `Limit` for more blocks than can be handled.
    pub(crate) fn of_side(
        nest: &Arc<Nest>,
        level: usize,
        (side, per_chunk): (usize, usize),
        cells: CellSet,
    ) -> Result<Self> {
        let keys = keys(nest, level, side, cells)?;
        Ok(Self::from_keys(nest, level, (side, per_chunk), keys))
    }

    fn from_keys(
        nest: &Arc<Nest>,
        level: usize,
        (side, per_chunk): (usize, usize),
        keys: Vec<u128>,
    ) -> Self {
        let first = first_place(nest, level, side);
        let origin = |key: &u128| {
            let place = morton::point(nest.ndim(), *key);
            std::array::from_fn(|d| match d < nest.ndim() {
                true => (place[d] as i64 + first[d]) * side as i64,
                false => 0,
            })
        };
        Self {
            origins: keys.iter().map(origin).collect(),
            per_chunk,
            nest: Arc::clone(nest),
            level,
            side,
            keys,
        }
    }

    /// The blocks with the origins in a store.
    ///
    /// # Errors
    /// `Corrupt` if an origin is not a multiple of the side, or outside of the domain; if the blocks do not
    /// follow the Morton curve, or a leaf cell is outside of all blocks.
    pub(crate) fn from_origins(
        nest: &Arc<Nest>,
        level: usize,
        (side, per_chunk): (usize, usize),
        origins: Vec<[i64; 3]>,
    ) -> Result<Self> {
        let domain = nest.level(level).domain;
        let first = first_place(nest, level, side);
        let mut keys: Vec<u128> = Vec::with_capacity(origins.len());
        for (i, origin) in origins.iter().enumerate() {
            let inside = (0..nest.ndim()).all(|d| {
                let end = origin[d].checked_add(side as i64);
                origin[d].rem_euclid(side as i64) == 0
                    && end.is_some_and(|end| end > domain.lo[d])
                    && origin[d] < domain.hi[d]
            });
            if !inside {
                return Err(Error::corrupt(format!(
                    "expected unit blocks at multiples of {side} in the domain {domain}, found block \
                     {i} at {origin:?}; restore the file from a copy"
                )));
            }
            let key = key(nest.ndim(), side, first, origin);
            if keys.last().is_some_and(|last| *last >= key) {
                return Err(Error::corrupt(format!(
                    "the unit block {i} at {origin:?} is out of order; restore the file from a copy"
                )));
            }
            keys.push(key);
        }
        let blocks = Self {
            nest: Arc::clone(nest),
            level,
            side,
            per_chunk,
            keys,
            origins,
        };
        let count = |block| nest.count(level, &blocks.extent(block), CellSet::Leaves);
        let held: u64 = (0..blocks.origins.len()).into_par_iter().map(count).sum();
        let leaves = nest.cells(level, CellSet::Leaves);
        if held != leaves {
            return Err(Error::corrupt(format!(
                "expected all {leaves} leaf cells of level {level} in unit blocks, found {held}; restore \
                 the file from a copy"
            )));
        }
        Ok(blocks)
    }

    /// The origins of the blocks in the form of the codecs: indices z, y, x of their first cells,
    /// relative to the block at the lower corner of the domain.
    pub(crate) fn relative_origins(&self) -> Arc<[[i64; 3]]> {
        let first = first_place(&self.nest, self.level, self.side);
        let relative = |origin: &[i64; 3]| {
            std::array::from_fn(|d| match 2 - d {
                d if d < self.nest.ndim() => origin[d] - first[d] * self.side as i64,
                _ => 0,
            })
        };
        self.origins.iter().map(relative).collect()
    }

    /// The level.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Cells of a block in each dimension.
    pub fn side(&self) -> usize {
        self.side
    }

    /// The first cell of each block, in the level's cell indices; 0 in dimensions that are not used.
    pub fn origins(&self) -> &[[i64; 3]] {
        &self.origins
    }

    /// Cells of a block, including padding.
    pub fn block_cells(&self) -> usize {
        self.side.pow(self.nest.ndim() as u32)
    }

    /// Blocks of a chunk.
    pub fn per_chunk(&self) -> usize {
        self.per_chunk
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.origins.len().div_ceil(self.per_chunk)
    }

    /// The blocks of a chunk.
    pub fn chunk(&self, chunk: usize) -> Range<usize> {
        let start = chunk.saturating_mul(self.per_chunk).min(self.origins.len());
        start..start.saturating_add(self.per_chunk).min(self.origins.len())
    }

    /// The cells of a block.
    pub fn extent(&self, block: usize) -> IndexBox {
        let lo = self.origins[block];
        let side = |d: usize| if d < self.nest.ndim() { self.side } else { 1 };
        IndexBox {
            lo,
            hi: std::array::from_fn(|d| lo[d] + side(d) as i64),
        }
    }

    /// The smallest box that contains all blocks; `None` without blocks.
    pub fn bounding_box(&self) -> Option<IndexBox> {
        let extents = (0..self.origins.len()).map(|block| self.extent(block));
        extents.reduce(|a, b| a.hull(&b))
    }

    /// A flag for each cell of some consecutive blocks: whether it is in the subset `cells`.
    pub fn mask(&self, blocks: Range<usize>, cells: CellSet) -> Vec<bool> {
        let size = self.block_cells();
        let mut mask = vec![false; blocks.len() * size];
        for (block, mask) in blocks.zip(mask.chunks_exact_mut(size)) {
            self.nest.mask(self.level, &self.extent(block), cells, mask);
        }
        mask
    }

    /// The blocks that overlap `region`, in order.
    pub(crate) fn meeting(&self, region: &IndexBox) -> Vec<usize> {
        let side = self.side as i64;
        let ndim = self.nest.ndim();
        let size = |d: usize| if d < ndim { side } else { 1 };
        let places = region.coarsened(std::array::from_fn(size));
        let count = places.shape().iter().map(|n| *n as u128).product::<u128>();
        // If the region has more places than the level has blocks, a loop over all blocks is faster.
        if count >= self.origins.len() as u128 {
            let meets = |block: &usize| !self.extent(*block).intersection(region).is_empty();
            return (0..self.origins.len()).filter(meets).collect();
        }
        let first = first_place(&self.nest, self.level, self.side);
        let mut found = Vec::new();
        for z in places.lo[2]..places.hi[2] {
            for y in places.lo[1]..places.hi[1] {
                for x in places.lo[0]..places.hi[0] {
                    let origin = [x * size(0), y * size(1), z * size(2)];
                    if (0..ndim).any(|d| origin[d] / side < first[d]) {
                        continue;
                    }
                    let key = key(ndim, self.side, first, &origin);
                    found.extend(self.keys.binary_search(&key).ok());
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// The bounding box of the cells of each chunk in the subset `cells`; empty for no cells.
    pub(crate) fn extents(&self, cells: CellSet) -> Vec<IndexBox> {
        let chunks = (0..self.chunks()).into_par_iter();
        chunks
            .map(|chunk| {
                let mut lo = [i64::MAX; 3];
                let mut hi = [i64::MIN; 3];
                for block in self.chunk(chunk) {
                    let extent = self.extent(block);
                    let shape = extent.shape();
                    let mask = self.mask(block..block + 1, cells);
                    for (i, _) in mask.iter().enumerate().filter(|(_, meant)| **meant) {
                        let inside = [
                            i % shape[0],
                            i / shape[0] % shape[1],
                            i / shape[0] / shape[1],
                        ];
                        for d in 0..3 {
                            let at = extent.lo[d] + inside[d] as i64;
                            lo[d] = lo[d].min(at);
                            hi[d] = hi[d].max(at + 1);
                        }
                    }
                }
                if lo[0] > hi[0] {
                    (lo, hi) = ([0; 3], [0; 3]);
                }
                IndexBox { lo, hi }
            })
            .collect()
    }
}

/// The index of the block at the lower corner of the domain, in units of the side. Keys are relative
/// to it: they are not negative.
fn first_place(nest: &Nest, level: usize, side: usize) -> [i64; 3] {
    let lo = nest.level(level).domain.lo;
    lo.map(|x| x.div_euclid(side as i64))
}

/// The key of a block on the Morton curve.
fn key(ndim: usize, side: usize, first: [i64; 3], origin: &[i64; 3]) -> u128 {
    let place = std::array::from_fn(|d| {
        let place = origin[d].div_euclid(side as i64) - first[d];
        if d < ndim { place.max(0) as u64 } else { 0 }
    });
    morton::key(ndim, &place)
}

/// The keys of the blocks of `side` that contain `cells`, in order.
fn keys(nest: &Nest, level: usize, side: usize, cells: CellSet) -> Result<Vec<u128>> {
    let ndim = nest.ndim();
    let ratio = std::array::from_fn(|d| if d < ndim { side as i64 } else { 1 });
    let first = first_place(nest, level, side);
    let boxes = &nest.level(level).boxes;
    let places = |index_box: &IndexBox| index_box.coarsened(ratio);
    let count = boxes.iter().fold(0u64, |sum, index_box| {
        sum.saturating_add(places(index_box).cells() as u64)
    });
    if count > MAX_BLOCKS {
        return Err(Error::limit(format!(
            "level {level}: expected at most {MAX_BLOCKS} unit blocks, found {count}"
        )));
    }
    let of_box = |index_box: &IndexBox| {
        let places = places(index_box);
        let mut keys = Vec::with_capacity(places.cells());
        for z in places.lo[2]..places.hi[2] {
            for y in places.lo[1]..places.hi[1] {
                for x in places.lo[0]..places.hi[0] {
                    let place = IndexBox {
                        lo: [x, y, z],
                        hi: [x + 1, y + 1, z + 1],
                    };
                    let part = place.refined(ratio).intersection(index_box);
                    if cells == CellSet::All || nest.count(level, &part, cells) > 0 {
                        keys.push(key(ndim, side, first, &place.refined(ratio).lo));
                    }
                }
            }
        }
        keys
    };
    let mut keys: Vec<u128> = boxes.par_iter().flat_map_iter(of_box).collect();
    keys.par_sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Cells of a chunk of a level with this number of cells: about 256 chunks of 64 Ki to 256 Ki cells. A
/// box of 32^3 cells overlaps at most eight chunks, a small part of a large level. Levels of at most
/// 512 Ki cells are usually read as a whole. Their chunks have 256 Ki cells: within an error bound
/// this saves 5 % of their size, and they decode at the same speed.
fn chunk_cells_of(cells: usize) -> usize {
    const SMALL: usize = 512 << 10;
    const LARGEST: usize = 256 << 10;
    if cells <= SMALL {
        return LARGEST;
    }
    (cells / 256).next_power_of_two().clamp(64 << 10, LARGEST)
}
