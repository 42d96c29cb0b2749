//! Cells grouped by their parents, and the regions of a level in which they are predicted together.

use super::node::Node;
use crate::domain::bitmap::Bitmap;
use crate::domain::lattice::Phases;
use crate::element::Element;
use std::cell::OnceCell;

/// Minimum part of a region that is filled; less filled regions are split.
const MIN_FILL: f64 = 0.125;

/// Cells with the same parent.
#[derive(Clone, Debug)]
pub(crate) struct Siblings {
    /// The indices of the parent in z, y, x: on its level, or in its region.
    pub place: [u64; 3],
    /// A bit for each present child. Bit 0 of the number of a child is the parity of x.
    pub mask: u8,
    /// The rows of the children: their indices among all cells.
    pub rows: [u32; 8],
}

/// Groups cells, which come in the order of the Morton curve, by their parents.
pub(super) struct SiblingCollector {
    levels: Vec<Vec<Siblings>>,
}

impl SiblingCollector {
    pub fn new(depth: u32) -> Self {
        Self {
            levels: vec![Vec::new(); depth as usize + 1],
        }
    }

    /// Adds the cell of a row.
    #[inline(always)]
    pub fn add(&mut self, cell: &Node, row: usize) {
        let (parent, child) = (cell.place.map(|n| n >> 1), cell.child());
        let level = &mut self.levels[cell.level as usize];
        // Between siblings, the curve has only descendants of their parent, which are on other levels.
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

    /// Adds the first `count` children of a node, which are the cells of consecutive rows.
    #[inline(always)]
    pub fn add_children(&mut self, parent: &Node, count: usize, row: usize) {
        self.levels[parent.level as usize + 1].push(Siblings {
            place: parent.place,
            mask: (0xff_u16 >> (8 - count)) as u8,
            rows: std::array::from_fn(|child| (row + child) as u32),
        });
    }

    /// The regions, those of coarse levels first. `side` is the number of siblings in z, y, x.
    pub fn regions(self, side: [usize; 3]) -> Vec<CellRegion> {
        let mut regions = Vec::new();
        for level in self.levels {
            split(level, side, &mut regions);
        }
        regions
    }
}

/// A region: a cuboid of parents, some of which have cells.
#[derive(Clone, Debug)]
pub(crate) struct CellRegion {
    /// The number of siblings in z, y, x: 2, or 1 in unused dimensions.
    pub side: [usize; 3],
    /// The number of parents in z, y, x.
    pub places: [usize; 3],
    /// The siblings, with positions in the region.
    pub siblings: Vec<Siblings>,
    /// The number of cells.
    cells: usize,
    /// The index of the siblings of each parent, computed on first use.
    numbers: OnceCell<Vec<u32>>,
}

impl CellRegion {
    /// The number of points in z, y, x.
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

    /// Copies the phases of the finest lattice to the rows of the cells.
    pub fn fill<T: Element>(&self, phases: &Phases, from: &[&[T]; 8], out: &mut [T]) {
        for siblings in &self.siblings {
            let [z, y, x] = siblings.place.map(|n| n as usize);
            let at = phases.row(z, y) + x;
            let mut left = siblings.mask;
            while left != 0 {
                let child = left.trailing_zeros() as usize;
                left &= left - 1;
                // Bit 0 is the parity of z in the number of a phase, and of x in that of a child.
                let phase = child >> 2 | child & 2 | (child & 1) << 2;
                out[siblings.rows[child] as usize] = from[phase][at];
            }
        }
    }

    /// The row of the cell at an index in the region; `None` for holes.
    pub fn row_at(&self, at: usize) -> Option<usize> {
        let [_, ny, nx] = self.shape();
        let place = [at / (ny * nx), at / nx % ny, at % nx];
        let parent = std::array::from_fn(|d| place[d] / self.side[d]);
        let child = (0..3).fold(0, |child, d| child | (place[d] % self.side[d]) << (2 - d));
        let numbers = self.numbers.get_or_init(|| self.numbers());
        let number = numbers[self.parent_index(parent)];
        Some(self.siblings.get(number as usize)?.rows[child] as usize)
    }

    /// The index of a parent in the region.
    fn parent_index(&self, [z, y, x]: [usize; 3]) -> usize {
        (z * self.places[1] + y) * self.places[2] + x
    }

    /// The index of the siblings of each parent; `u32::MAX` without cells.
    fn numbers(&self) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.places.iter().product()];
        for (number, siblings) in self.siblings.iter().enumerate() {
            numbers[self.parent_index(siblings.place.map(|n| n as usize))] = number as u32;
        }
        numbers
    }

    /// The points that are cells; `None` for all.
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
                    valid.set_bits([z + row / 2, y + row % 2], x, u64::from(left & 3));
                }
                left >>= 2;
            }
        }
        Some(valid)
    }
}

/// Splits the siblings of a level, in the order of the curve, into regions.
fn split(siblings: Vec<Siblings>, side: [usize; 3], regions: &mut Vec<CellRegion>) {
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
        if (cells as f64) < MIN_FILL * volume * points as f64 && part.len() > 1 {
            let middle = first + self::middle(part);
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

/// The index of the first siblings in the second half of the smallest node that contains all.
fn middle(part: &[Siblings]) -> usize {
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return 0;
    };
    let bits = |d: usize| u64::BITS - (first.place[d] ^ last.place[d]).leading_zeros();
    let d = (0..3).rev().max_by_key(|d| bits(*d)).unwrap_or(0);
    let bit = bits(d).saturating_sub(1);
    part.partition_point(|siblings| siblings.place[d] >> bit & 1 == 0)
}
