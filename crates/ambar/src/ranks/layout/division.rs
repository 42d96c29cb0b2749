//! Divides an array into chunks and shards that are aligned with its decomposition: if the ranks' blocks
//! start at multiples of the chunk lengths, so do shards, and no rank needs values of another one.

use super::decomposition::Decomposition;
use crate::array::{ArraySpec, chunk_shape_of};
use crate::error::Result;

/// Maximum raw bytes of a shard. Up to three are in memory: one is encoded, one is queued and one is written;
/// together they are smaller than the pool of reused buffers.
const SHARD: u64 = 16 << 20;

/// Minimum number of shards of the largest block, so that one is encoded while another is
/// written, and the memory for both is a part of the block's.
const SHARDS_A_BLOCK: u64 = 4;

/// Completes a spec with the lengths of chunks and shards that the caller has not given.
///
/// # Errors
/// `Invalid` if the spec is inconsistent; `Limit` for chunks that are too large.
pub(in crate::ranks) fn divide(spec: &ArraySpec, held: &Decomposition) -> Result<ArraySpec> {
    let steps: Vec<u64> = (0..spec.shape.len()).map(|d| step(held, d)).collect();
    // Ranks write large arrays, which are mostly read as a whole.
    let preferred = chunk_shape_of(&spec.clone().whole(true))?;
    let mut divided = spec.clone();
    let chunk: Vec<u64> = match &spec.chunk_shape {
        Some(chunk) => chunk.clone(),
        None => (steps.iter().zip(&preferred))
            .map(|(step, wanted)| near_divisor(*step, *wanted).unwrap_or(*wanted))
            .collect(),
    };
    let grid = spec.shape.iter().zip(&chunk);
    let several = grid.clone().any(|(length, chunk)| length > chunk);
    divided.chunk_shape = Some(chunk.clone());
    if divided.shard_shape.is_none() && several && !chunk.contains(&0) {
        divided.shard_shape = Some(shards(spec, held, &steps, &chunk));
    }
    Ok(divided)
}

/// The greatest common divisor of all starts and ends of blocks inside of dimension `d`; its length if no block
/// starts or ends inside.
fn step(held: &Decomposition, d: usize) -> u64 {
    let length = held.shape()[d];
    let ends = held.blocks().iter().flat_map(|(_, block)| {
        let start = block.start[d];
        [start, start + block.shape[d]]
    });
    let inside = ends.filter(|end| *end > 0 && *end < length);
    match inside.fold(0, gcd) {
        0 => length.max(1),
        step => step,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The divisor of `step` closest to `wanted`, from 2/5 to 5/2 of it.
fn near_divisor(step: u64, wanted: u64) -> Option<u64> {
    if step <= wanted {
        return (step.saturating_mul(5) >= wanted.saturating_mul(2)).then_some(step);
    }
    let far = |divisor: u64| {
        let (a, b) = (divisor.max(wanted), divisor.min(wanted).max(1));
        (a as f64 / b as f64 * 1e6) as u64
    };
    let least = (wanted * 2 / 5).max(1);
    let most = wanted.saturating_mul(5) / 2;
    (least..=most.min(step))
        .filter(|n| step.is_multiple_of(*n))
        .min_by_key(|n| far(*n))
}

/// Shards of whole chunks, which are inside of blocks if chunks are.
fn shards(spec: &ArraySpec, held: &Decomposition, steps: &[u64], chunk: &[u64]) -> Vec<u64> {
    let size = spec.dtype.size().unwrap_or(1) as u64;
    let chunk_bytes = chunk.iter().product::<u64>().saturating_mul(size).max(1);
    let largest = held.blocks().iter().map(|(_, block)| block.values()).max();
    let block_bytes = largest.unwrap_or(0).saturating_mul(size);
    let target = (block_bytes / SHARDS_A_BLOCK).clamp(chunk_bytes, SHARD.max(chunk_bytes));
    let mut room = target / chunk_bytes;
    let mut shard = vec![0; chunk.len()];
    for d in (0..chunk.len()).rev() {
        let aligned = steps[d].is_multiple_of(chunk[d]);
        // An array without values has one chunk in that dimension as well.
        let chunks = (if aligned { steps[d] } else { spec.shape[d] })
            .div_ceil(chunk[d])
            .max(1);
        let most = chunks.min(room).max(1);
        let count = if aligned && steps[d] < spec.shape[d] {
            // The largest divisor that fits, so that shards end at the ends of blocks.
            (1..=most)
                .rev()
                .find(|n| chunks.is_multiple_of(*n))
                .unwrap_or(1)
        } else {
            chunks.div_ceil(chunks.div_ceil(most))
        };
        shard[d] = count * chunk[d];
        room = (room / count).max(1);
    }
    shard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Region;
    use crate::dtype::DataType;

    fn cut(shape: &[u64], blocks: &[(&[u64], &[u64])]) -> (Vec<u64>, Vec<u64>) {
        let blocks = (0..).zip(blocks).map(|(rank, (start, shape))| {
            let (start, shape) = (start.to_vec(), shape.to_vec());
            (rank, Region { start, shape })
        });
        let held = Decomposition::new(shape, blocks.collect());
        let spec = ArraySpec::new(DataType::Float64, shape);
        let spec = divide(&spec, &held).unwrap();
        (
            spec.chunk_shape.unwrap(),
            spec.shard_shape.unwrap_or_default(),
        )
    }

    #[test]
    fn even_blocks_contain_whole_shards() {
        let quarter: u64 = 12_000_000;
        let blocks: Vec<[u64; 1]> = (0..4).map(|rank| [rank * quarter]).collect();
        let length = [quarter];
        let blocks: Vec<(&[u64], &[u64])> = blocks
            .iter()
            .map(|start| (&start[..], &length[..]))
            .collect();
        let (chunk, shard) = cut(&[4 * quarter], &blocks);
        assert_eq!(chunk, [125_000]);
        assert!(quarter.is_multiple_of(shard[0]), "{shard:?}");
        assert!(shard[0].is_multiple_of(chunk[0]));
        assert!(shard[0] * 8 <= 64 << 20);
    }

    #[test]
    fn even_blocks_of_three_dimensions_contain_whole_shards() {
        let lengths = [64, 64, 128];
        let blocks: [(&[u64], &[u64]); 4] = [
            (&[0, 0, 0], &lengths),
            (&[0, 64, 0], &lengths),
            (&[64, 0, 0], &lengths),
            (&[64, 64, 0], &lengths),
        ];
        let (chunk, shard) = cut(&[128, 128, 128], &blocks);
        for d in 0..2 {
            assert!(64u64.is_multiple_of(shard[d]), "{shard:?}");
        }
        assert!(shard.iter().zip(&chunk).all(|(s, c)| s.is_multiple_of(*c)));
    }

    #[test]
    fn uneven_blocks_get_the_preferred_chunks() {
        let a = 1_000_003;
        let (chunk, shard) = cut(&[2 * a], &[(&[0], &[a]), (&[a], &[a])]);
        let preferred = ArraySpec::new(DataType::Float64, &[2 * a]).whole(true);
        assert_eq!(chunk, chunk_shape_of(&preferred).unwrap());
        assert!(shard[0] >= chunk[0] && shard[0] <= a / 2);
    }

    #[test]
    fn small_arrays_have_no_shards() {
        let (chunk, shard) = cut(&[10], &[(&[0], &[10])]);
        assert_eq!((chunk, shard), (vec![10], vec![]));
        let (_, shard) = cut(&[0], &[]);
        assert!(shard.is_empty());
    }
}
