//! Differences of words of any order, and the sums that undo them.

use super::word::Word;
use crate::simd::dispatch::vectorised;

/// Maximum order of differences.
pub(super) const ORDERS: usize = 8;

/// Replaces words by their differences of this order. The word before the first is 0. `other` is a buffer.
pub(super) fn take<W: Word>(words: &mut [W], other: &mut [W], order: usize) {
    let (mut from, mut to) = (&mut *words, &mut *other);
    for _ in 0..order {
        first_differences(from, to);
        std::mem::swap(&mut from, &mut to);
    }
    if order % 2 == 1 {
        words.copy_from_slice(&other[..words.len()]);
    }
}

vectorised! {
    /// The differences of consecutive words.
    fn first_differences [W: Word] of [W] (from: &[W], to: &mut [W]) {
        let Some(first) = from.first() else {
            return;
        };
        to[0] = *first;
        let later = from[1..].iter().zip(&mut to[1..]);
        for ((later, to), earlier) in later.zip(from) {
            *to = later.minus(*earlier);
        }
    }
}

vectorised! {
    /// Subtracts from each word the word `distance` before it in the same part of `length` words, if it exists.
    pub(super) fn subtract_at_distance [W: Word] of [W] (words: &mut [W], length: usize, distance: usize) {
        for part in words.chunks_exact_mut(length) {
            let mut first = length - distance;
            // From the last row to the first, so that the subtracted words are still the original ones.
            while first > 0 {
                let (before, row) = part[first - distance..][..2 * distance].split_at_mut(distance);
                for (word, before) in row.iter_mut().zip(before) {
                    *word = word.minus(*before);
                }
                first -= distance;
            }
        }
    }
}

vectorised! {
    /// Undoes [`subtract_at_distance`].
    pub(super) fn add_at_distance [W: Word] of [W] (words: &mut [W], length: usize, distance: usize) {
        for part in words.chunks_exact_mut(length) {
            let mut first = distance;
            while first < length {
                let (before, row) = part[first - distance..][..2 * distance].split_at_mut(distance);
                for (word, before) in row.iter_mut().zip(before) {
                    *word = word.plus(*before);
                }
                first += distance;
            }
        }
    }
}

/// Undoes [`take`], for orders up to [`ORDERS`].
pub(super) fn add<W: Word>(words: &mut [W], order: usize) {
    match order {
        1 => sums::<W, 1>(words),
        2 => sums::<W, 2>(words),
        3 => sums::<W, 3>(words),
        4 => sums::<W, 4>(words),
        5 => sums::<W, 5>(words),
        6 => sums::<W, 6>(words),
        7 => sums::<W, 7>(words),
        8 => sums::<W, 8>(words),
        _ => {}
    }
}

vectorised! {
    /// Sums of all orders in one pass over the words.
    fn sums [W: Word, const ORDER: usize] of [W, ORDER] (words: &mut [W]) {
        let mut sums = [W::default(); ORDER];
        for word in words {
            let mut carry = *word;
            for sum in &mut sums {
                *sum = sum.plus(carry);
                carry = *sum;
            }
            *word = carry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_undo_differences() {
        let words: Vec<u32> = (0..700u32).map(|i| i.pow(3).wrapping_mul(77_777)).collect();
        for order in 0..=ORDERS {
            let (mut taken, mut other) = (words.clone(), vec![0; words.len()]);
            take(&mut taken, &mut other, order);
            if order == 4 {
                assert!(
                    taken[4..].iter().all(|word| *word == 0),
                    "of a cubic polynomial"
                );
            }
            add(&mut taken, order);
            assert_eq!(taken, words);
        }
        for (length, distance) in [(700, 7), (70, 14), (35, 35)] {
            let mut taken = words.clone();
            subtract_at_distance(&mut taken, length, distance);
            assert_eq!(taken[length - 1] == words[length - 1], length == distance);
            add_at_distance(&mut taken, length, distance);
            assert_eq!(taken, words);
        }
    }
}
