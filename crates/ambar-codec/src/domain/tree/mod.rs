//! Leaf cells of trees: their places in a stream, and the regions in which they are predicted.

mod neighbours;
mod node;
mod siblings;
#[cfg(test)]
mod tests;
mod topology;

pub(crate) use siblings::CellRegion;

use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Invalid, Result};
use node::{Node, Tree};
use siblings::Collector;

/// Levels between the coarsest and the finest cell, at most.
const DEPTH: u32 = 42;

/// The cells of a chunk, for a stream and for its regions.
pub(crate) struct Cells {
    /// How the stream says where they are.
    pub header: Vec<u8>,
    pub regions: Vec<CellRegion>,
}

impl Cells {
    /// From levels, and indices on these in z, y, x.
    ///
    /// # Errors
    /// `Invalid` where the cells are not sorted along the curve, or lie too far out.
    pub(crate) fn new(dimensions: usize, levels: &[u8], origins: &[[i64; 3]]) -> Result<Self> {
        let coarsest = levels.iter().copied().min().unwrap_or(0);
        let depth = u32::from(levels.iter().copied().max().unwrap_or(0) - coarsest);
        if !(1..=3).contains(&dimensions) || depth > DEPTH {
            return Err(Invalid(
                "invalid tree; expected 1 to 3 dimensions and at most 43 levels",
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
        let mut collector = Collector::new(depth);
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

/// The cells as a stream says them, still encoded.
#[derive(Clone, Copy)]
pub(crate) struct Coded<'a> {
    tree: Tree,
    pub count: usize,
    bytes: &'a [u8],
}

impl<'a> Coded<'a> {
    /// Of a stream of as many values.
    pub(crate) fn parse(cursor: &mut Cursor<'a>, values: usize) -> Result<Self> {
        let (dimensions, depth) = (usize::from(cursor.byte()?), u32::from(cursor.byte()?));
        if !(1..=3).contains(&dimensions) || depth > DEPTH {
            return Err(Corrupt(
                "invalid tree; expected 1 to 3 dimensions and at most 43 levels",
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

    /// The regions of the cells.
    fn regions(&self) -> Result<Vec<CellRegion>> {
        let mut collector = Collector::new(self.tree.depth);
        topology::decode(&self.tree, self.bytes, self.count, &mut collector)?;
        Ok(collector.regions(side(self.tree.dimensions)))
    }
}

/// The regions of the stream decoded last: those of a chunk's next field are most often the same.
#[derive(Default)]
pub(crate) struct RegionCache {
    tree: Option<(Tree, usize)>,
    bytes: Vec<u8>,
    regions: Vec<CellRegion>,
}

impl RegionCache {
    /// The regions of a stream's cells.
    pub(crate) fn regions(&mut self, coded: &Coded<'_>) -> Result<&[CellRegion]> {
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

/// Cells of siblings in z, y, x.
fn side(dimensions: usize) -> [usize; 3] {
    std::array::from_fn(|d| if d + dimensions >= 3 { 2 } else { 1 })
}
