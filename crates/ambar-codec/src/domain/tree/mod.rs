//! Leaf cells of trees: their encoding, and the regions in which they are predicted.

mod neighbours;
mod node;
mod siblings;
#[cfg(test)]
mod tests;
mod topology;

pub(crate) use siblings::CellRegion;

use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Result, corrupt, invalid};
use node::{Node, Tree};
use siblings::SiblingCollector;

/// Maximum difference of the levels of the finest and the coarsest cell.
const MAX_DEPTH: u32 = 42;

/// The cells of a chunk: their encoding, and their regions.
pub(crate) struct TreeCells {
    /// The encoded tree.
    pub header: Vec<u8>,
    pub regions: Vec<CellRegion>,
}

impl TreeCells {
    /// Encodes cells with these levels, and indices on their levels in z, y, x.
    ///
    /// # Errors
    /// `Invalid` if the cells are not sorted along the Morton curve, or are out of range.
    pub(crate) fn new(dimensions: usize, levels: &[u8], origins: &[[i64; 3]]) -> Result<Self> {
        let coarsest = levels.iter().copied().min().unwrap_or(0);
        let depth = u32::from(levels.iter().copied().max().unwrap_or(0) - coarsest);
        if !(1..=3).contains(&dimensions) || depth > MAX_DEPTH {
            return Err(invalid!(
                "found a tree of {dimensions} dimensions and {} levels; expected 1 to 3 dimensions and at most {} \
                 levels",
                depth + 1,
                MAX_DEPTH + 1
            ));
        }
        let tree = Tree { dimensions, depth };
        let cells: Vec<Node> = levels
            .iter()
            .zip(origins)
            .map(|(level, origin)| Node {
                level: u32::from(level - coarsest),
                place: origin.map(|n| n as u64),
            })
            .collect();
        let mut collector = SiblingCollector::new(depth);
        let coded = topology::encode(&tree, &cells, &mut collector)?;
        let mut header = vec![dimensions as u8, depth as u8];
        write_number(levels.len() as u64, &mut header);
        write_number(coded.len() as u64, &mut header);
        header.extend(coded);
        Ok(Self {
            header,
            regions: collector.regions(side(dimensions)),
        })
    }
}

/// The encoded tree of a stream.
#[derive(Clone, Copy)]
pub(crate) struct CodedTree<'a> {
    tree: Tree,
    pub count: usize,
    bytes: &'a [u8],
}

impl<'a> CodedTree<'a> {
    /// Reads the tree of a stream with this number of values.
    pub(crate) fn parse(cursor: &mut Cursor<'a>, values: usize) -> Result<Self> {
        let (dimensions, depth) = (usize::from(cursor.byte()?), u32::from(cursor.byte()?));
        if !(1..=3).contains(&dimensions) || depth > MAX_DEPTH {
            return Err(corrupt!(
                "found a tree of {dimensions} dimensions and depth {depth}; expected 1 to 3 dimensions and a depth \
                 of at most {MAX_DEPTH}"
            ));
        }
        let count = cursor.number_to(values)?;
        let length = cursor.number_to(cursor.0.len())?;
        Ok(Self {
            tree: Tree { dimensions, depth },
            count,
            bytes: cursor.bytes(length)?,
        })
    }

    /// Decodes the tree.
    fn regions(&self) -> Result<Vec<CellRegion>> {
        let mut collector = SiblingCollector::new(self.tree.depth);
        topology::decode(&self.tree, self.bytes, self.count, &mut collector)?;
        Ok(collector.regions(side(self.tree.dimensions)))
    }
}

/// The regions of the last decoded tree, because consecutive fields usually have equal trees.
#[derive(Default)]
pub(crate) struct RegionCache {
    tree: Option<(Tree, usize)>,
    bytes: Vec<u8>,
    regions: Vec<CellRegion>,
}

impl RegionCache {
    /// The regions of an encoded tree.
    pub(crate) fn regions(&mut self, coded: &CodedTree<'_>) -> Result<&[CellRegion]> {
        let tree = Some((coded.tree, coded.count));
        if self.tree != tree || self.bytes != coded.bytes {
            self.tree = None;
            self.regions = coded.regions()?;
            self.bytes.clear();
            self.bytes.extend_from_slice(coded.bytes);
            self.tree = tree;
        }
        Ok(&self.regions)
    }
}

/// The number of siblings in z, y, x.
fn side(dimensions: usize) -> [usize; 3] {
    std::array::from_fn(|d| if d + dimensions >= 3 { 2 } else { 1 })
}
