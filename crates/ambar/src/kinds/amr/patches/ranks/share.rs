//! Decomposition of a level's unit blocks: whole blocks where one rank owns all cells, otherwise parts.

use std::ops::Range;
use std::sync::Arc;

use crate::array::Region;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::ranks::Decomposition;

/// One rank's part of a level.
pub(super) struct Share {
    /// The parts of all ranks.
    pub held: Arc<Decomposition>,
    /// The blocks in which this rank has cells, in order; its values of a field are those of these
    /// blocks, one after another.
    pub local: Vec<usize>,
    /// The parts of these blocks to write.
    pub pieces: Vec<WritePart>,
}

/// A part of the local blocks that is written in one call.
pub(super) enum WritePart {
    /// A range of the list of local blocks; the blocks are consecutive on the level, too.
    Whole(Range<usize>),
    /// The index of a local block, and those of this rank's cells in it that are in one box.
    Part(usize, IndexBox),
}

impl Share {
    /// The share of `rank` of the blocks of a level whose boxes have these owners.
    pub fn new(nest: &Nest, blocks: &Blocks, owners: &[u32], rank: u32) -> Self {
        let boxes = &nest.level(blocks.level()).boxes;
        let mut touching: Vec<(usize, u32, usize)> = Vec::new();
        for (place, (index_box, owner)) in boxes.iter().zip(owners).enumerate() {
            let met = blocks.meeting(index_box).into_iter();
            touching.extend(met.map(|block| (block, *owner, place)));
        }
        touching.sort_unstable();
        let mut regions: Vec<(u32, Region)> = Vec::new();
        let (mut local, mut pieces) = (Vec::new(), Vec::new());
        let mut last: Option<(u32, usize)> = None;
        for of_block in touching.chunk_by(|a, b| a.0 == b.0) {
            let (block, owner, _) = of_block[0];
            let shared = of_block.iter().any(|(_, other, _)| *other != owner);
            if of_block.iter().any(|(_, owner, _)| *owner == rank) {
                local.push(block);
            }
            if shared {
                last = None;
                for (_, owner, place) in of_block {
                    let part = boxes[*place].intersection(&blocks.extent(block));
                    regions.push((*owner, part_of(nest, blocks, block, &part)));
                    if *owner == rank {
                        pieces.push(WritePart::Part(local.len() - 1, part));
                    }
                }
                continue;
            }
            let continues = last == Some((owner, block));
            last = Some((owner, block + 1));
            match regions.last_mut().filter(|_| continues) {
                Some((_, region)) => region.shape[0] += 1,
                None => regions.push((owner, whole(nest, blocks, block..block + 1))),
            }
            if owner == rank {
                let place = local.len() - 1;
                match pieces.last_mut().filter(|_| continues) {
                    Some(WritePart::Whole(places)) => places.end = place + 1,
                    _ => pieces.push(WritePart::Whole(place..place + 1)),
                }
            }
        }
        let held = Decomposition::new(&shape(nest, blocks, blocks.origins().len()), regions);
        Self {
            held: Arc::new(held),
            local,
            pieces,
        }
    }
}

/// The shape of the values of `count` blocks.
fn shape(nest: &Nest, blocks: &Blocks, count: usize) -> Vec<u64> {
    let sides = std::iter::repeat_n(blocks.side() as u64, nest.ndim());
    std::iter::once(count as u64).chain(sides).collect()
}

/// Whole blocks as a region of a field's array.
pub(super) fn whole(nest: &Nest, blocks: &Blocks, range: Range<usize>) -> Region {
    let mut start = vec![0; nest.ndim() + 1];
    start[0] = range.start as u64;
    Region {
        start,
        shape: shape(nest, blocks, range.len()),
    }
}

/// Some cells of a block as a region of a field's array.
pub(super) fn part_of(nest: &Nest, blocks: &Blocks, block: usize, part: &IndexBox) -> Region {
    let first = blocks.extent(block).lo;
    let axes = (0..nest.ndim()).rev();
    let start = axes.clone().map(|d| (part.lo[d] - first[d]) as u64);
    let lengths = axes.map(|d| part.shape()[d] as u64);
    Region {
        start: std::iter::once(block as u64).chain(start).collect(),
        shape: std::iter::once(1).chain(lengths).collect(),
    }
}
