//! The distinct values of corners in ascending order, and the ranks of corners among them.

use super::Workspace;
use super::coder::{Coder, Magnitudes};
use crate::error::{Result, corrupt};

/// Ranks are looked up in a table if the range of values is at most this many times the number of corners.
const SPARSE: u64 = 16;

/// The integer type of corners, the indices of points. Signed types are encoded as their unsigned bits.
pub trait Corner: Copy + Default + Send + Sync + 'static {
    /// Bytes of a value.
    const SIZE: usize;

    /// The value of a word, unless it overflows.
    fn from_word(word: u64) -> Option<Self>;

    /// The value as a word.
    fn to_word(self) -> u64;

    /// Encodes cells, as [`super::encode`].
    ///
    /// # Errors
    /// As [`super::encode`].
    fn encode(corners: &[Self], width: usize, workspace: &mut Workspace) -> Result<Vec<u8>>;

    /// Decodes cells, as [`super::decode`].
    ///
    /// # Errors
    /// As [`super::decode`].
    fn decode(stream: &[u8], out: &mut [Self], workspace: &mut Workspace) -> Result<()>;
}

macro_rules! corner {
    ($type:ty, $size:expr) => {
        impl Corner for $type {
            const SIZE: usize = $size;

            fn from_word(word: u64) -> Option<Self> {
                Self::try_from(word).ok()
            }

            fn to_word(self) -> u64 {
                self as u64
            }

            // Instantiated in this crate, so that all calls per corner are inlined.
            fn encode(
                corners: &[Self],
                width: usize,
                workspace: &mut Workspace,
            ) -> Result<Vec<u8>> {
                super::encode_rows(corners, width, workspace)
            }

            fn decode(stream: &[u8], out: &mut [Self], workspace: &mut Workspace) -> Result<()> {
                super::decode_rows(stream, out, workspace)
            }
        }
    };
}

corner!(u32, 4);
corner!(u64, 8);

/// The distinct values in ascending order, and the rank of each corner.
pub(super) fn ranked<T: Corner>(corners: &[T]) -> (Vec<u64>, Vec<u32>) {
    let words = || corners.iter().map(|corner| corner.to_word());
    let (lowest, highest) = words().fold((u64::MAX, 0), |(low, high), word| {
        (low.min(word), high.max(word))
    });
    if corners.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let range = highest - lowest;
    if range > SPARSE * corners.len() as u64 {
        let mut values: Vec<u64> = words().collect();
        values.sort_unstable();
        values.dedup();
        let rank = |word| values.partition_point(|value| *value < word) as u32;
        let ranks = words().map(rank).collect();
        return (values, ranks);
    }
    let mut table = vec![0u32; range as usize + 1];
    for word in words() {
        table[(word - lowest) as usize] = 1;
    }
    let mut values = Vec::new();
    for (place, rank) in table.iter_mut().enumerate() {
        if *rank == 1 {
            *rank = values.len() as u32;
            values.push(lowest + place as u64);
        }
    }
    let ranks = words()
        .map(|word| table[(word - lowest) as usize])
        .collect();
    (values, ranks)
}

/// Codes `count` ascending values, which an encoder passes as `values`. Writes them to `found`.
///
/// # Errors
/// `Corrupt` if a decoded value overflows.
pub(super) fn code<T: Corner, C: Coder>(
    coder: &mut C,
    values: &[u64],
    count: usize,
    found: &mut Vec<T>,
) -> Result<()> {
    let mut gaps = Magnitudes::new(u64::MAX);
    let mut least = Some(0u64);
    found.clear();
    for number in 0..count {
        let overflow = || {
            corrupt!(
                "corner value {number} exceeds the largest value of {} bytes",
                T::SIZE
            )
        };
        let lowest = least.ok_or_else(overflow)?;
        let gap = values.get(number).map_or(0, |value| value - lowest);
        let value = lowest.checked_add(gaps.code(coder, gap));
        let corner = value.and_then(T::from_word);
        found.push(corner.ok_or_else(overflow)?);
        least = value.and_then(|value| value.checked_add(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_among_all_values() {
        let values = [7u64, 3, u64::MAX, 3, 0, 7];
        assert_eq!(
            ranked(&values),
            (vec![0, 3, 7, u64::MAX], vec![2, 1, 3, 1, 0, 2])
        );
        assert_eq!(ranked(&[9u32, 5, 5, 6]), (vec![5, 6, 9], vec![2, 0, 0, 1]));
        assert_eq!(ranked::<u32>(&[]), (vec![], vec![]));
    }
}
