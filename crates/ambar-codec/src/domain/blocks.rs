//! Unit blocks: where they lie, and the regions in which those that touch are predicted together.

use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Numbers};
use crate::error::{Corrupt, Invalid, Result};

/// Blocks lie at multiples of their side, less than this many from the origin.
pub(crate) const REACH: i64 = 1 << 20;
/// A region is cut in two while less than this part of it is filled.
const FILLED: f64 = 0.4;
/// The same where time counts: what is there is predicted from less, and less that is not there is gone
/// over.
const WELL_FILLED: f64 = 0.7;
/// Cuts behind each other from which on regions are cut through the middle, however they are filled:
/// so much of the work is bounded, wherever the blocks lie.
const CUTS: u32 = 48;

/// A region: a cuboid of places for blocks, and the blocks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Places for blocks, z, y, x.
    pub places: [usize; 3],
    /// Number of the block, and its place.
    pub blocks: Vec<(usize, [usize; 3])>,
}

/// The blocks' numbers along the Morton curve, x lowest, from the origins z, y, x (in values).
///
/// # Errors
/// `Invalid` where an origin is no multiple of the side or too far out, or the blocks are not sorted.
pub(crate) fn keys(origins: &[[i64; 3]], side: [usize; 3]) -> Result<Vec<u64>> {
    let mut keys: Vec<u64> = Vec::with_capacity(origins.len());
    for origin in origins {
        let key = key_of(origin, side)?;
        if keys.last().is_some_and(|last| *last >= key) {
            return Err(Invalid(
                "blocks are sorted along the Morton curve, x quickest",
            ));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The number of the block with this origin along the Morton curve.
///
/// # Errors
/// `Invalid` where the origin is no multiple of the side, or too far out.
pub(crate) fn key_of(origin: &[i64; 3], side: [usize; 3]) -> Result<u64> {
    let mut key = 0;
    for d in 0..3 {
        let side = side[d] as i64;
        let place = origin[d] / side;
        if origin[d].rem_euclid(side) != 0 || !(-REACH..REACH).contains(&place) {
            return Err(Invalid(
                "blocks lie at multiples of their side, at most 2^20 of them out",
            ));
        }
        key |= spread((place + REACH) as u64) << (2 - d);
    }
    Ok(key)
}

/// The places (z, y, x, not negative) of keys.
fn place(key: u64) -> [i64; 3] {
    std::array::from_fn(|d| gather(key >> (2 - d)) as i64)
}

/// Puts two zeros behind each of 21 bits.
fn spread(x: u64) -> u64 {
    (0..21).fold(0, |key, bit| key | (x >> bit & 1) << (3 * bit))
}

/// Undoes [`spread`].
fn gather(key: u64) -> u64 {
    (0..21).fold(0, |x, bit| x | (key >> (3 * bit) & 1) << bit)
}

/// Keys as bytes: the first, then the gaps.
pub(crate) fn encode_keys(keys: &[u64]) -> Vec<u8> {
    let (mut encoder, mut numbers) = (BinaryEncoder::new(), Numbers::new());
    let mut last = 0;
    for key in keys {
        numbers.write(&mut encoder, key - last);
        last = *key;
    }
    encoder.finish()
}

/// Undoes [`encode_keys`].
pub(crate) fn decode_keys(bytes: &[u8], count: usize) -> Result<Vec<u64>> {
    let (mut decoder, mut numbers) = (BinaryDecoder::new(bytes), Numbers::new());
    let mut keys: Vec<u64> = Vec::with_capacity(count);
    for _ in 0..count {
        let gap = numbers.read(&mut decoder);
        let key = match keys.last() {
            None => Some(gap),
            Some(last) => last.checked_add(gap).filter(|key| key > last),
        };
        keys.push(
            key.filter(|key| key >> 63 == 0)
                .ok_or(Corrupt("the block keys are not strictly increasing"))?,
        );
    }
    decoder.finish()?;
    Ok(keys)
}

/// Cuts the blocks into regions that are filled, or filled `well`.
pub(crate) fn regions(keys: &[u64], well: bool) -> Vec<Region> {
    let least = if well { WELL_FILLED } else { FILLED };
    let places: Vec<[i64; 3]> = keys.iter().map(|key| place(*key)).collect();
    let mut regions = Vec::new();
    let mut open = vec![(0, (0..places.len()).collect::<Vec<usize>>())];
    while let Some((cuts, blocks)) = open.pop() {
        let bounds = Bounds::of(&places, &blocks);
        let filled = blocks.len() as f64 / bounds.volume();
        if filled < least && blocks.len() > 1 {
            let (d, at) = (cuts < CUTS)
                .then(|| best_cut(&places, &blocks, bounds))
                .flatten()
                .unwrap_or_else(|| bounds.middle());
            let (one, two) = blocks.iter().partition(|block| places[**block][d] < at);
            open.extend([(cuts + 1, two), (cuts + 1, one)]);
        } else if !blocks.is_empty() {
            regions.push(Region {
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

/// A cuboid of places.
#[derive(Clone, Copy, PartialEq)]
struct Bounds {
    lo: [i64; 3],
    /// Behind the last.
    hi: [i64; 3],
}

impl Bounds {
    /// Around nothing.
    const NONE: Self = Self {
        lo: [i64::MAX; 3],
        hi: [i64::MIN; 3],
    };

    fn of(places: &[[i64; 3]], blocks: &[usize]) -> Self {
        let mut bounds = Self::NONE;
        blocks.iter().for_each(|block| bounds.add(places[*block]));
        bounds
    }

    /// Extends them to a place.
    fn add(&mut self, place: [i64; 3]) {
        for (d, at) in place.into_iter().enumerate() {
            self.lo[d] = self.lo[d].min(at);
            self.hi[d] = self.hi[d].max(at + 1);
        }
    }

    /// Extends them to others.
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

    /// The cut through the middle of the longest dimension, the last of several.
    fn middle(&self) -> (usize, i64) {
        let length = |d: usize| self.hi[d] - self.lo[d];
        let longest = (0..3).max_by_key(|d| length(*d)).unwrap_or(0);
        (longest, self.lo[longest] + length(longest) / 2)
    }
}

/// The cut, dimension and first place behind it, that leaves the least volume around both halves;
/// `None` where none leaves less than there is.
fn best_cut(places: &[[i64; 3]], blocks: &[usize], all: Bounds) -> Option<(usize, i64)> {
    let mut best: Option<(f64, usize, i64)> = None;
    for d in 0..3 {
        let slabs = slabs(places, blocks, d, all);
        // Volumes around the first slabs, and around the others, for each number of first slabs.
        let after = around(slabs.iter().rev());
        let before = around(slabs.iter());
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

/// What is around the blocks of each index along dimension `d`, in the order of the indices.
fn slabs(places: &[[i64; 3]], blocks: &[usize], d: usize, all: Bounds) -> Vec<Bounds> {
    // As long as it is not much longer than the blocks are many, a list of all indices is quickest.
    let length = (all.hi[d] - all.lo[d]) as usize;
    if length <= 64 + 4 * blocks.len() {
        let mut slabs = vec![Bounds::NONE; length];
        for place in blocks.iter().map(|block| places[*block]) {
            slabs[(place[d] - all.lo[d]) as usize].add(place);
        }
        slabs.retain(|slab| *slab != Bounds::NONE);
        return slabs;
    }
    let mut sorted = blocks.to_vec();
    sorted.sort_unstable_by_key(|block| places[*block][d]);
    let alike = sorted.chunk_by(|a, b| places[*a][d] == places[*b][d]);
    alike.map(|blocks| Bounds::of(places, blocks)).collect()
}

/// The volumes around the first of these, the first two, and so on.
fn around<'a>(slabs: impl Iterator<Item = &'a Bounds>) -> Vec<f64> {
    let mut bounds = Bounds::NONE;
    slabs
        .map(|slab| {
            bounds.join(slab);
            bounds.volume()
        })
        .collect()
}

/// Calls `visit(place in the values, z, y and x in the region, length)` for the rows of a region's
/// blocks, which lie behind each other in the values.
#[inline(always)]
pub(crate) fn for_each_row(
    region: &Region,
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

/// Copies a row, which is most often one of a few short lengths.
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
