//! The mesh that an encoder knows: the ranks of its corners, and which cells share a facet.

use super::facets::{Facet, sort};
use super::free_indices::FreeIndices;
use super::traversal::{Extent, Mesh, NONE, Row};

/// The mesh of an array of cells.
pub(super) struct EncoderMesh<'a, const F: usize> {
    /// The ranks of the corners of all cells.
    ranks: &'a [u32],
    /// The number of each point, by rank; `NONE` for points that have not been visited.
    numbers: Vec<u32>,
    /// For each corner of each cell: the first corner whose opposite facet has the same corners as that of this one.
    first: Vec<u32>,
    /// For each such first corner: the head of the list of equal facets whose cells may not have been visited.
    lists: Vec<u32>,
    /// For each corner, the next one of its list.
    next: Vec<u32>,
}

impl<'a, const F: usize> EncoderMesh<'a, F> {
    /// Corners of a cell.
    const WIDTH: usize = F + 1;

    /// Finds the cells that share facets. `ranks` are below `points`.
    pub fn new(ranks: &'a [u32], points: usize) -> Self {
        let mut known = Self {
            ranks,
            numbers: vec![NONE; points],
            first: vec![NONE; ranks.len()],
            lists: vec![NONE; ranks.len()],
            next: vec![NONE; ranks.len()],
        };
        let bits = (2 * ranks.len()).max(64).next_power_of_two().ilog2();
        let mut table = vec![NONE; 1 << bits];
        for corner in (0..ranks.len() as u32).rev() {
            let facet = known.facet(corner);
            let mixed = facet.iter().fold(0u64, |sum, rank| {
                (sum ^ u64::from(*rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
            let mut slot = (mixed >> (64 - bits)) as usize;
            let first = loop {
                match table[slot] {
                    NONE => {
                        table[slot] = corner;
                        break corner;
                    }
                    other if known.facet(other) == facet => break other,
                    _ => slot = (slot + 1) & ((1 << bits) - 1),
                }
            };
            known.first[corner as usize] = first;
            known.next[corner as usize] = known.lists[first as usize];
            known.lists[first as usize] = corner;
        }
        known
    }

    /// The sorted ranks of the facet opposite of a corner.
    #[inline(always)]
    fn facet(&self, corner: u32) -> [u32; F] {
        let (row, missing) = (corner as usize / Self::WIDTH, corner as usize % Self::WIDTH);
        let row = &self.ranks[row * Self::WIDTH..][..Self::WIDTH];
        let mut facet = std::array::from_fn(|i| row[if i < missing { i } else { i + 1 }]);
        sort(&mut facet);
        facet
    }

    /// The size of the mesh, and whether neighbours are scattered: on average at least a sixth of all apart, where random
    /// positions are a third apart.
    pub fn extent(&self) -> Extent {
        let (cells, points) = (self.ranks.len() / Self::WIDTH, self.numbers.len());
        let (mut touching, mut apart) = (0u64, 0u64);
        for (corner, next) in self.next.iter().enumerate() {
            if *next != NONE {
                touching += 1;
                apart += (corner.abs_diff(*next as usize) / Self::WIDTH) as u64;
            }
        }
        let steps = self
            .ranks
            .windows(2)
            .map(|pair| u64::from(pair[0].abs_diff(pair[1])));
        let steps: u64 = steps.sum();
        Extent {
            cells,
            points,
            has_scattered_cells: apart / touching.max(1) > cells as u64 / 6,
            has_scattered_points: steps / self.ranks.len().max(1) as u64 > points as u64 / 6,
        }
    }
}

impl<const F: usize> Mesh<F> for EncoderMesh<'_, F> {
    fn cell_behind(&mut self, facet: &Facet<F>, cells: &FreeIndices) -> Option<u32> {
        let corner = facet.cell as usize * Self::WIDTH + usize::from(facet.missing);
        let list = &mut self.lists[self.first[corner] as usize];
        // Visited cells are removed from the list for good.
        while *list != NONE && !cells.is_free(*list as usize / Self::WIDTH) {
            *list = self.next[*list as usize];
        }
        (*list != NONE).then(|| *list / Self::WIDTH as u32)
    }

    #[inline(always)]
    fn row(&self, row: u32) -> Row {
        let mut found = Row::default();
        let ranks = &self.ranks[row as usize * Self::WIDTH..][..Self::WIDTH];
        for (place, rank) in ranks.iter().enumerate() {
            found.ranks[place] = *rank;
            found.numbers[place] = self.numbers[*rank as usize];
        }
        found
    }

    fn visit_point(&mut self, rank: u32, number: u32) {
        self.numbers[rank as usize] = number;
    }

    fn visit_cell(&mut self, _: usize, _: &[u32]) {}
}
