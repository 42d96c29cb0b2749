//! Unit blocks: their keys on the Morton curve, and the regions in which neighbouring blocks are predicted together.

use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, NumberModel};
use crate::error::{Result, corrupt, invalid};

/// Positions of blocks, in units of their sides, are from minus this to below it.
pub(crate) const MAX_BLOCK_POSITION: i64 = 1 << 20;
/// Minimum part of a region that is filled with contexts of rows; less filled regions are split.
pub(crate) const MIN_FILL_ROW_CONTEXTS: f64 = 0.4;
/// The same with other contexts, where holes may be predicted: larger, because holes take time.
pub(crate) const MIN_FILL: f64 = 0.7;
/// After this number of nested cuts, regions are halved, which bounds the work for hostile positions.
const MAX_CUTS: u32 = 48;

/// A region: a cuboid of block positions, some of which have a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockRegion {
    /// The number of block positions in z, y, x.
    pub places: [usize; 3],
    /// The index of each block in the layout, and its position in the region.
    pub blocks: Vec<(usize, [usize; 3])>,
}

/// The keys of blocks, which are their indices on the Morton curve with x fastest, from their origins (z, y, x, in
/// values).
///
/// # Errors
/// `Invalid` if an origin is not a multiple of the sides or out of range, or if the blocks are not sorted.
pub(crate) fn keys(origins: &[[i64; 3]], side: [usize; 3]) -> Result<Vec<u64>> {
    let mut keys: Vec<u64> = Vec::with_capacity(origins.len());
    for origin in origins {
        let key = key_of(origin, side)?;
        if keys.last().is_some_and(|last| *last >= key) {
            return Err(invalid!(
                "block {} at {origin:?} does not follow the block before it on the Morton curve; sort the blocks, x \
                 fastest",
                keys.len()
            ));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The key of the block with this origin.
///
/// # Errors
/// `Invalid` if the origin is not a multiple of the sides, or out of range.
pub(crate) fn key_of(origin: &[i64; 3], sides: [usize; 3]) -> Result<u64> {
    let mut key = 0;
    for d in 0..3 {
        let side = sides[d] as i64;
        let place = origin[d] / side;
        if origin[d].rem_euclid(side) != 0
            || !(-MAX_BLOCK_POSITION..MAX_BLOCK_POSITION).contains(&place)
        {
            return Err(invalid!(
                "a block begins at {origin:?}; expected multiples of its sides {:?}, less than 2^20 of them from 0",
                sides
            ));
        }
        key |= spread((place + MAX_BLOCK_POSITION) as u64) << (2 - d);
    }
    Ok(key)
}

/// The position of a key (z, y, x), shifted so that it is not negative.
fn position(key: u64) -> [i64; 3] {
    std::array::from_fn(|d| unspread(key >> (2 - d)) as i64)
}

/// Inserts two zeros above each of 21 bits.
fn spread(x: u64) -> u64 {
    (0..21).fold(0, |key, bit| key | (x >> bit & 1) << (3 * bit))
}

/// Undoes [`spread`].
fn unspread(key: u64) -> u64 {
    (0..21).fold(0, |x, bit| x | (key >> (3 * bit) & 1) << bit)
}

/// Encodes keys: the first, then the differences of consecutive keys.
pub(crate) fn encode_keys(keys: &[u64]) -> Vec<u8> {
    let (mut encoder, mut numbers) = (BinaryEncoder::new(), NumberModel::new());
    let mut last = 0;
    for key in keys {
        numbers.write(&mut encoder, key - last);
        last = *key;
    }
    encoder.finish()
}

/// Undoes [`encode_keys`].
pub(crate) fn decode_keys(bytes: &[u8], count: usize) -> Result<Vec<u64>> {
    let (mut decoder, mut numbers) = (BinaryDecoder::new(bytes), NumberModel::new());
    let mut keys: Vec<u64> = Vec::with_capacity(count);
    for number in 0..count {
        let gap = numbers.read(&mut decoder);
        let key = match keys.last() {
            None => Some(gap),
            Some(last) => last.checked_add(gap).filter(|key| key > last),
        };
        keys.push(
            key.filter(|key| key >> 63 == 0).ok_or_else(|| {
                corrupt!(
                    "block key {number} is {gap} above the one before; expected increasing keys below 2^63"
                )
            })?,
        );
    }
    decoder.finish()?;
    Ok(keys)
}

/// Splits the blocks into regions, of which at least the part `min_fill` is filled.
pub(crate) fn regions(keys: &[u64], min_fill: f64) -> Vec<BlockRegion> {
    let places: Vec<[i64; 3]> = keys.iter().map(|key| position(*key)).collect();
    let mut regions = Vec::new();
    let mut open = vec![(0, (0..places.len()).collect::<Vec<usize>>())];
    while let Some((cuts, blocks)) = open.pop() {
        let bounds = BlockBounds::of(&places, &blocks);
        let filled = blocks.len() as f64 / bounds.volume();
        if filled < min_fill && blocks.len() > 1 {
            let (d, at) = (cuts < MAX_CUTS)
                .then(|| best_cut(&places, &blocks, bounds))
                .flatten()
                .unwrap_or_else(|| bounds.middle());
            let (one, two) = blocks.iter().partition(|block| places[**block][d] < at);
            open.extend([(cuts + 1, two), (cuts + 1, one)]);
        } else if !blocks.is_empty() {
            regions.push(BlockRegion {
                places: std::array::from_fn(|d| (bounds.hi[d] - bounds.lo[d]) as usize),
                blocks: blocks
                    .iter()
                    .map(|b| {
                        (
                            *b,
                            std::array::from_fn(|d| (places[*b][d] - bounds.lo[d]) as usize),
                        )
                    })
                    .collect(),
            });
        }
    }
    regions
}

/// A cuboid of block positions.
#[derive(Clone, Copy, PartialEq)]
struct BlockBounds {
    lo: [i64; 3],
    /// The first positions after the cuboid.
    hi: [i64; 3],
}

impl BlockBounds {
    /// The bounds of no block.
    const EMPTY: Self = Self {
        lo: [i64::MAX; 3],
        hi: [i64::MIN; 3],
    };

    fn of(places: &[[i64; 3]], blocks: &[usize]) -> Self {
        let mut bounds = Self::EMPTY;
        blocks.iter().for_each(|block| bounds.add(places[*block]));
        bounds
    }

    /// Extends the bounds to a position.
    fn add(&mut self, place: [i64; 3]) {
        for (d, at) in place.into_iter().enumerate() {
            self.lo[d] = self.lo[d].min(at);
            self.hi[d] = self.hi[d].max(at + 1);
        }
    }

    /// Extends the bounds to other bounds.
    fn join(&mut self, other: &Self) {
        for d in 0..3 {
            self.lo[d] = self.lo[d].min(other.lo[d]);
            self.hi[d] = self.hi[d].max(other.hi[d]);
        }
    }

    fn volume(&self) -> f64 {
        (0..3)
            .map(|d| self.hi[d].saturating_sub(self.lo[d]).max(0) as f64)
            .product()
    }

    /// The cut through the middle of the longest dimension, the last of equally long ones.
    fn middle(&self) -> (usize, i64) {
        let length = |d: usize| self.hi[d] - self.lo[d];
        let longest = (0..3).max_by_key(|d| length(*d)).unwrap_or(0);
        (longest, self.lo[longest] + length(longest) / 2)
    }
}

/// The cut with the smallest total volume of both parts: the dimension, and the first position after the cut. `None` if
/// no cut reduces the volume.
fn best_cut(places: &[[i64; 3]], blocks: &[usize], all: BlockBounds) -> Option<(usize, i64)> {
    let mut best: Option<(f64, usize, i64)> = None;
    for d in 0..3 {
        let slabs = slabs(places, blocks, d, all);
        // For each number of slabs before the cut, the volumes of both parts.
        let after = cumulative_volumes(slabs.iter().rev());
        let before = cumulative_volumes(slabs.iter());
        for (i, slab) in slabs.iter().enumerate().skip(1) {
            let both = before[i - 1] + after[slabs.len() - 1 - i];
            if best.is_none_or(|(least, ..)| both < least) {
                best = Some((both, d, slab.lo[d]));
            }
        }
    }
    let (both, d, at) = best?;
    (both < all.volume()).then_some((d, at))
}

/// The bounds of the blocks of each index along dimension `d` that has blocks, in the order of the indices.
fn slabs(places: &[[i64; 3]], blocks: &[usize], d: usize, all: BlockBounds) -> Vec<BlockBounds> {
    // A table of all indices is faster than sorting, unless there are few blocks for the length.
    let length = (all.hi[d] - all.lo[d]) as usize;
    if length <= 64 + 4 * blocks.len() {
        let mut slabs = vec![BlockBounds::EMPTY; length];
        for place in blocks.iter().map(|block| places[*block]) {
            slabs[(place[d] - all.lo[d]) as usize].add(place);
        }
        slabs.retain(|slab| *slab != BlockBounds::EMPTY);
        return slabs;
    }
    let mut sorted = blocks.to_vec();
    sorted.sort_unstable_by_key(|block| places[*block][d]);
    let alike = sorted.chunk_by(|a, b| places[*a][d] == places[*b][d]);
    alike
        .map(|blocks| BlockBounds::of(places, blocks))
        .collect()
}

/// The volumes of the bounds of the first slab, the first two slabs, and so on.
fn cumulative_volumes<'a>(slabs: impl Iterator<Item = &'a BlockBounds>) -> Vec<f64> {
    let mut bounds = BlockBounds::EMPTY;
    slabs
        .map(|slab| {
            bounds.join(slab);
            bounds.volume()
        })
        .collect()
}

/// Calls `visit(index in the values, z, y and x in the region, length)` for the rows of a region's blocks.
#[inline(always)]
pub(crate) fn for_each_row(
    region: &BlockRegion,
    side: [usize; 3],
    mut visit: impl FnMut(usize, [usize; 3], usize),
) {
    let cells: usize = side.iter().product();
    for (block, place) in &region.blocks {
        for z in 0..side[0] {
            for y in 0..side[1] {
                let from = block * cells + (z * side[1] + y) * side[2];
                let [z, y] = [place[0] * side[0] + z, place[1] * side[1] + y];
                visit(from, [z, y, place[2] * side[2]], side[2]);
            }
        }
    }
}

/// Copies a row, inlined for the common lengths.
#[inline(always)]
pub(crate) fn copy_row<T: Copy>(from: &[T], to: &mut [T]) {
    fn fixed<T: Copy, const N: usize>(from: &[T], to: &mut [T]) -> bool {
        match (<&[T; N]>::try_from(from), <&mut [T; N]>::try_from(to)) {
            (Ok(from), Ok(to)) => {
                *to = *from;
                true
            }
            _ => false,
        }
    }
    let done = match from.len() {
        4 => fixed::<T, 4>(from, to),
        8 => fixed::<T, 8>(from, to),
        16 => fixed::<T, 16>(from, to),
        _ => false,
    };
    if !done {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_keys_are_refused() {
        let keys = [3, 4, 1 << 40];
        let mut bytes = encode_keys(&keys);
        assert_eq!(decode_keys(&bytes, 3), Ok(keys.to_vec()));
        bytes.extend([0; 9]);
        assert!(decode_keys(&bytes, 3).is_err());
    }
}
