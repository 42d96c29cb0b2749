//! The decomposition of an array into blocks of the ranks.

use crate::array::Region;
use crate::error::{Error, Result};
use crate::ranks::digest;

/// The magic number of encoded blocks.
const MAGIC: &[u8; 8] = b"ambarblk";

/// Largest number of dimensions.
const MAX_DIMENSIONS: u64 = 64;

/// The blocks of all ranks, for arrays of one shape. The same on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decomposition {
    shape: Vec<u64>,
    /// The owner and region of each block, in the order of ranks; without empty blocks.
    blocks: Vec<(u32, Region)>,
    /// A description for messages, equal for equal decompositions.
    summary: String,
}

impl Decomposition {
    /// Encodes one rank's blocks, to be gathered from all ranks.
    ///
    /// # Errors
    /// `Invalid` for a block that is not inside an array of `shape`.
    pub fn encode(shape: &[u64], blocks: &[Region]) -> Result<Vec<u8>> {
        check_count(shape.len() as u64, blocks.len() as u64)?;
        let mut words = vec![shape.len() as u64, blocks.len() as u64];
        words.extend(shape);
        for block in blocks {
            if !block.is_inside(shape) {
                return Err(outside(block, shape));
            }
            words.extend(block.start.iter().chain(&block.shape));
        }
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        Ok(MAGIC.iter().copied().chain(words).collect())
    }

    /// Decodes the blocks of all ranks, in the order of the ranks.
    ///
    /// # Errors
    /// `Invalid` if the shapes of two ranks differ, or bytes were not encoded by `encode`.
    pub fn gather(parts: &[&[u8]]) -> Result<Self> {
        let mut all = Vec::new();
        let mut first: Option<Vec<u64>> = None;
        for (rank, part) in parts.iter().enumerate() {
            let (shape, blocks) = parse(part)?;
            all.extend(blocks.into_iter().map(|block| (rank as u32, block)));
            let first = first.get_or_insert_with(|| shape.clone());
            if *first != shape {
                return Err(Error::invalid(format!(
                    "the blocks of rank {rank} are of an array of {shape:?}, those of rank 0 of {first:?}; \
                     use one shape on all ranks"
                )));
            }
        }
        let shape = first.ok_or_else(|| {
            Error::invalid("the blocks of 0 ranks were given; expected 1 or more")
        })?;
        Ok(Self::new(&shape, all))
    }

    /// The decomposition in which rank 0 owns all of an array.
    pub fn whole(shape: &[u64]) -> Self {
        Self::new(shape, vec![(0, Region::all(shape))])
    }

    /// These blocks, which must be in an array of `shape`.
    pub(crate) fn new(shape: &[u64], mut blocks: Vec<(u32, Region)>) -> Self {
        blocks.retain(|(_, block)| block.values() > 0);
        blocks.sort_by_key(|(rank, _)| *rank);
        let words = blocks
            .iter()
            .map(|(rank, block)| (rank, &block.start, &block.shape));
        let digest = digest(&words.collect::<Vec<_>>());
        Self {
            shape: shape.to_vec(),
            summary: format!("{} blocks, digest {digest}", blocks.len()),
            blocks,
        }
    }

    /// A description for messages, equal for equal decompositions.
    pub(in crate::ranks) fn summary(&self) -> &str {
        &self.summary
    }

    /// The arrays' shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The owners and regions of all blocks.
    pub fn blocks(&self) -> &[(u32, Region)] {
        &self.blocks
    }

    /// Whether a region is in one of a rank's blocks.
    pub fn owns(&self, rank: u32, region: &Region) -> bool {
        let first = self.blocks.partition_point(|(owner, _)| *owner < rank);
        let own = self.blocks[first..].iter();
        let mut own = own.take_while(|(owner, _)| *owner == rank);
        region.values() == 0 || own.any(|(_, block)| block.contains(region))
    }
}

fn outside(block: &Region, shape: &[u64]) -> Error {
    Error::invalid(format!(
        "the block of {:?} at {:?} is outside of an array of {shape:?}",
        block.shape, block.start
    ))
}

/// Rejects more than one block of an array of one value: the length of the bytes would not bound their number.
fn check_count(dimensions: u64, blocks: u64) -> Result<()> {
    if dimensions == 0 && blocks > 1 {
        return Err(Error::invalid(format!(
            "{blocks} blocks of an array of one value; expected 0 or 1"
        )));
    }
    Ok(())
}

/// Decodes the shape and the blocks.
fn parse(bytes: &[u8]) -> Result<(Vec<u64>, Vec<Region>)> {
    let damaged = || {
        Error::invalid(
            "expected the encoded blocks of a rank, found other bytes; pass the messages unchanged",
        )
    };
    let words = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
    let words: Vec<u64> = words
        .chunks_exact(8)
        .map(|word| {
            word.iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        })
        .collect();
    let [dimensions, count, rest @ ..] = &words[..] else {
        return Err(damaged());
    };
    let expected = (count.checked_mul(2)).and_then(|n| n.checked_add(1)?.checked_mul(*dimensions));
    if *dimensions > MAX_DIMENSIONS
        || expected != Some(rest.len() as u64)
        || bytes.len() != MAGIC.len() + 8 * words.len()
    {
        return Err(damaged());
    }
    check_count(*dimensions, *count)?;
    let dimensions = *dimensions as usize;
    let (shape, rest) = rest.split_at(dimensions);
    let mut blocks = Vec::new();
    for index in 0..*count as usize {
        let block = &rest[2 * dimensions * index..][..2 * dimensions];
        let (start, lengths) = block.split_at(dimensions);
        let block = Region {
            start: start.to_vec(),
            shape: lengths.to_vec(),
        };
        if !block.is_inside(shape) {
            return Err(outside(&block, shape));
        }
        blocks.push(block);
    }
    Ok((shape.to_vec(), blocks))
}
