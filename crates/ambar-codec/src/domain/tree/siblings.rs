//! Cells by their parents, and the regions of a level in which they are predicted together.

use super::node::Node;
use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use std::cell::OnceCell;

/// A region is cut in two while less than this part of it is filled.
const FILLED: f64 = 0.125;

/// Cells of one level that have the same parent.
#[derive(Clone, Debug)]
pub(crate) struct Siblings {
    /// The parent's index, in z, y, x: on its level, or in its region.
    pub place: [u64; 3],
    /// Which of the children are there; bit 0 of a child's number is that of x.
    pub mask: u8,
    /// The children's rows.
    pub rows: [u32; 8],
}

/// Puts cells that come along the curve to their siblings.
pub(super) struct Collector {
    levels: Vec<Vec<Siblings>>,
}

impl Collector {
    pub fn new(depth: u32) -> Self {
        Self {
            levels: vec![Vec::new(); depth as usize + 1],
        }
    }

    /// Adds a cell, which is that of a row.
    #[inline(always)]
    pub fn add(&mut self, cell: &Node, row: usize) {
        let (parent, child) = (cell.place.map(|n| n >> 1), cell.child());
        let level = &mut self.levels[cell.level as usize];
        // Between siblings there are none but their descendants.
        match level.last_mut().filter(|last| last.place == parent) {
            Some(last) => {
                last.mask |= 1 << child;
                last.rows[child] = row as u32;
            }
            None => {
                let mut rows = [0; 8];
                rows[child] = row as u32;
                level.push(Siblings {
                    place: parent,
                    mask: 1 << child,
                    rows,
                });
            }
        }
    }

    /// Adds the first children of a node, which are those of as many rows.
    #[inline(always)]
    pub fn add_children(&mut self, parent: &Node, count: usize, row: usize) {
        self.levels[parent.level as usize + 1].push(Siblings {
            place: parent.place,
            mask: (0xff_u16 >> (8 - count)) as u8,
            rows: std::array::from_fn(|child| (row + child) as u32),
        });
    }

    /// The regions, those of coarse levels first; `side` is that of siblings.
    pub fn regions(self, side: [usize; 3]) -> Vec<CellRegion> {
        let mut regions = Vec::new();
        for level in self.levels {
            cut(level, side, &mut regions);
        }
        regions
    }
}

/// A region: a cuboid of places for siblings, and those in it.
#[derive(Clone, Debug)]
pub(crate) struct CellRegion {
    /// Cells of siblings in z, y, x: 2, or 1 in dimensions that are not used.
    pub side: [usize; 3],
    /// Places for siblings, z, y, x.
    pub places: [usize; 3],
    /// The siblings, by their places in the region.
    pub siblings: Vec<Siblings>,
    /// Cells.
    cells: usize,
    /// The numbers of the siblings at all places, once they were asked for.
    numbers: OnceCell<Vec<u32>>,
}

impl CellRegion {
    /// Points in z, y, x.
    pub fn shape(&self) -> [usize; 3] {
        std::array::from_fn(|d| self.places[d] * self.side[d])
    }

    /// Calls `visit(row, z, y and x in the region)` for the cells.
    #[inline(always)]
    pub fn for_each_cell(&self, mut visit: impl FnMut(usize, [usize; 3])) {
        for siblings in &self.siblings {
            let corner: [usize; 3] =
                std::array::from_fn(|d| siblings.place[d] as usize * self.side[d]);
            let mut left = siblings.mask;
            while left != 0 {
                let child = left.trailing_zeros() as usize;
                left &= left - 1;
                let at = std::array::from_fn(|d| corner[d] + (child >> (2 - d) & 1));
                visit(siblings.rows[child] as usize, at);
            }
        }
    }

    /// Fills the rows of the cells from the phases of the region's lattice.
    pub fn fill<T: Element>(&self, phases: &Phases, from: &[&[T]; 8], out: &mut [T]) {
        for siblings in &self.siblings {
            let [z, y, x] = siblings.place.map(|n| n as usize);
            let at = phases.row(z, y) + x;
            let mut left = siblings.mask;
            while left != 0 {
                let child = left.trailing_zeros() as usize;
                left &= left - 1;
                // Phases count the bits of z, y and x from the lowest, children those of x, y and z.
                let phase = child >> 2 | child & 2 | (child & 1) << 2;
                out[siblings.rows[child] as usize] = from[phase][at];
            }
        }
    }

    /// The row of the cell that is the point with an index in the region.
    pub fn row_at(&self, at: usize) -> Option<usize> {
        let [_, ny, nx] = self.shape();
        let place = [at / (ny * nx), at / nx % ny, at % nx];
        let parent = std::array::from_fn(|d| place[d] / self.side[d]);
        let child = (0..3).fold(0, |child, d| child | (place[d] % self.side[d]) << (2 - d));
        let numbers = self.numbers.get_or_init(|| self.numbers());
        let number = numbers[self.number_at(parent)];
        Some(self.siblings.get(number as usize)?.rows[child] as usize)
    }

    /// The number of a place for siblings.
    fn number_at(&self, [z, y, x]: [usize; 3]) -> usize {
        (z * self.places[1] + y) * self.places[2] + x
    }

    /// The numbers of the siblings at all places.
    fn numbers(&self) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.places.iter().product()];
        for (number, siblings) in self.siblings.iter().enumerate() {
            numbers[self.number_at(siblings.place.map(|n| n as usize))] = number as u32;
        }
        numbers
    }

    /// Which points are cells; `None` for all.
    pub fn present(&self) -> Option<Bitmap> {
        let shape = self.shape();
        if self.cells == shape.iter().product::<usize>() {
            return None;
        }
        let mut valid = Bitmap::new(shape);
        for siblings in &self.siblings {
            let [z, y, x]: [usize; 3] =
                std::array::from_fn(|d| siblings.place[d] as usize * self.side[d]);
            let mut left = siblings.mask;
            for row in 0..4 {
                if left & 3 != 0 {
                    valid.join([z + row / 2, y + row % 2], x, u64::from(left & 3));
                }
                left >>= 2;
            }
        }
        Some(valid)
    }
}

/// Cuts the siblings of a level, which come along the curve, into regions that are well filled.
fn cut(siblings: Vec<Siblings>, side: [usize; 3], regions: &mut Vec<CellRegion>) {
    let mut open = vec![(0, siblings.len())];
    let points: usize = side.iter().product();
    while let Some((first, end)) = open.pop() {
        let part = &siblings[first..end];
        let Some((one, all)) = part.split_first() else {
            continue;
        };
        let (mut lo, mut hi) = (one.place, one.place);
        for siblings in all {
            for d in 0..3 {
                lo[d] = lo[d].min(siblings.place[d]);
                hi[d] = hi[d].max(siblings.place[d]);
            }
        }
        let cells: usize = part.iter().map(|s| s.mask.count_ones() as usize).sum();
        let volume: f64 = (0..3).map(|d| (hi[d] - lo[d] + 1) as f64).product();
        if (cells as f64) < FILLED * volume * points as f64 && part.len() > 1 {
            let middle = first + halved(part);
            open.extend([(middle, end), (first, middle)]);
            continue;
        }
        regions.push(CellRegion {
            side,
            places: std::array::from_fn(|d| (hi[d] - lo[d]) as usize + 1),
            siblings: part
                .iter()
                .map(|siblings| Siblings {
                    place: std::array::from_fn(|d| siblings.place[d] - lo[d]),
                    ..siblings.clone()
                })
                .collect(),
            cells,
            numbers: OnceCell::new(),
        });
    }
}

/// The first of the siblings that lie in the second half of the smallest half of the curve that holds all.
fn halved(part: &[Siblings]) -> usize {
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return 0;
    };
    let bits = |d: usize| u64::BITS - (first.place[d] ^ last.place[d]).leading_zeros();
    let d = (0..3).rev().max_by_key(|d| bits(*d)).unwrap_or(0);
    let bit = bits(d).saturating_sub(1);
    part.partition_point(|siblings| siblings.place[d] >> bit & 1 == 0)
}
