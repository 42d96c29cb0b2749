//! Free indices: each index of a cell or rank of a point is used once, and coded among the free ones.

use super::coder::{Coder, Magnitudes};
use crate::entropy::token::{fold, unfold};
use crate::error::{Result, corrupt};

/// Indices of a block.
const BLOCK: usize = 64;

/// The set of free indices.
///
/// An index is coded as its block and its position among the free ones of the block. If all blocks have equally many, this
/// takes as few bits as the position among all free indices, and only the bits of one word are counted.
#[derive(Default)]
pub(super) struct FreeIndices {
    /// A word for each block, with a bit for each of its indices: 1 if it is free.
    free: Vec<u64>,
    /// All blocks before this one have no free index.
    first: usize,
}

/// Probabilities of the distances of indices.
pub(super) struct Distances {
    blocks: Magnitudes,
    /// The number of free indices between two indices of a block.
    near: Magnitudes,
    /// The number of free indices from the near end of the block before, and of the block after.
    beside: [Magnitudes; 2],
}

impl Distances {
    /// The probabilities for `places` indices.
    pub fn new(places: usize) -> Self {
        let most = 2 * BLOCK as u64;
        Self {
            blocks: Magnitudes::new(2 * places.div_ceil(BLOCK) as u64),
            near: Magnitudes::new(most),
            beside: [Magnitudes::new(most), Magnitudes::new(most)],
        }
    }
}

impl FreeIndices {
    /// Resets to `count` free indices.
    pub fn reset(&mut self, count: usize) {
        self.free.clear();
        self.free.resize(count.div_ceil(BLOCK), u64::MAX);
        if let (Some(last), rest @ 1..) = (self.free.last_mut(), count % BLOCK) {
            *last = (1 << rest) - 1;
        }
        self.first = 0;
    }

    /// Whether an index is free.
    pub fn is_free(&self, place: usize) -> bool {
        self.free[place / BLOCK] >> (place % BLOCK) & 1 == 1
    }

    /// Uses the first free index, if one exists.
    pub fn take_first(&mut self) -> Option<usize> {
        let blocks = &mut self.free[self.first..];
        let skipped = blocks.iter().position(|free| *free != 0)?;
        self.first += skipped;
        let free = &mut blocks[skipped];
        let place = BLOCK * self.first + free.trailing_zeros() as usize;
        *free &= *free - 1;
        Some(place)
    }

    /// Codes the free index `place` by its distance from `near`. Uses and returns it.
    ///
    /// # Errors
    /// `Corrupt` if the decoded index is not free.
    #[inline(always)]
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        distances: &mut Distances,
        near: usize,
        place: usize,
    ) -> Result<usize> {
        let from = near / BLOCK;
        let away = (place / BLOCK) as i64 - from as i64;
        let away = unfold(distances.blocks.code(coder, fold(away)));
        let block = from.wrapping_add_signed(away as isize);
        let blocks = self.free.len();
        let Some(free) = self.free.get_mut(block).filter(|free| **free != 0) else {
            return Err(corrupt!(
                "a corner or cell is in block {block} of {blocks}, which has no free index"
            ));
        };
        let count = free.count_ones();
        let below = |place: usize| (*free & ((1 << (place % BLOCK)) - 1)).count_ones();
        // The position among the free indices of the block.
        let number = if C::WRITES { below(place) } else { 0 };
        let number = match away {
            0 => {
                let before = i64::from(below(near));
                let found = fold(i64::from(number) - before);
                (before + unfold(distances.near.code(coder, found))) as u32
            }
            -1 => {
                let found = distances.beside[0].code(coder, u64::from(count - 1 - number));
                (count - 1).wrapping_sub(found as u32)
            }
            1 => distances.beside[1].code(coder, u64::from(number)) as u32,
            _ => coder.uniform(number, count),
        };
        if number >= count {
            return Err(corrupt!(
                "a corner or cell has free index {number} of a block with {count}"
            ));
        }
        let bit = nth(*free, number);
        *free &= !(1 << bit);
        Ok(BLOCK * block + bit as usize)
    }
}

/// The position of the set bit of a word that has `number` set bits below it.
fn nth(word: u64, number: u32) -> u32 {
    let (mut word, mut number, mut place) = (word, number, 0);
    for half in [32, 16, 8, 4, 2, 1] {
        let below = (word & ((1 << half) - 1)).count_ones();
        if number >= below {
            number -= below;
            word >>= half;
            place += half;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder};

    #[test]
    fn bits_are_found() {
        for word in [1, 1 << 63, u64::MAX, 0x8421_0000_1357_9bdf] {
            let all = (0..64).filter(|bit| word >> bit & 1 == 1);
            for (number, bit) in all.enumerate() {
                assert_eq!(nth(word, number as u32), bit);
            }
        }
    }

    /// Indices in an irregular order, until all are used.
    #[test]
    fn indices_round_trip_until_all_are_used() {
        let count = 700;
        let order: Vec<usize> = (0..count)
            .map(|i| if i % 3 == 0 { i } else { (i * 211) % count })
            .collect();
        let mut encoder = BinaryEncoder::new();
        let (mut places, mut distances) = (FreeIndices::default(), Distances::new(count));
        places.reset(count);
        let mut taken = vec![places.take_first().unwrap()];
        for place in order {
            if places.is_free(place) {
                let near = taken[taken.len() / 2];
                let coded = places.code(&mut encoder, &mut distances, near, place);
                assert_eq!(coded.unwrap(), place);
                taken.push(place);
            }
        }
        while let Some(place) = places.take_first() {
            taken.push(place);
        }
        assert_eq!(taken.len(), count);
        let bytes = encoder.finish();
        let mut decoder = BinaryDecoder::new(&bytes);
        let mut distances = Distances::new(count);
        places.reset(count);
        let mut found = vec![places.take_first().unwrap()];
        let coded = taken
            .iter()
            .filter(|place| order_has(count, **place))
            .count();
        while found.len() < coded.max(2) {
            let near = found[found.len() / 2];
            found.push(places.code(&mut decoder, &mut distances, near, 0).unwrap());
        }
        assert_eq!(found, taken[..found.len()]);
    }

    fn order_has(count: usize, place: usize) -> bool {
        place == 0 || (0..count).any(|i| (if i % 3 == 0 { i } else { i * 211 % count }) == place)
    }
}
