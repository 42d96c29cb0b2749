//! The probabilities of the decisions of a traversal, and their contexts.

use super::coder::{Coder, Magnitudes};
use super::free_indices::Distances;
use crate::entropy::range_coder::Probability;

/// Maximum number of corners of a cell.
pub(super) const MAX_CORNERS: usize = 4;
/// The number of distinguished counts of cells around a ridge.
const MAX_CELLS_AROUND: usize = 8;
/// The number of probabilities for the order of the corners of a cell: a tree for the first corner, one for the second after
/// each first, and so on.
const ORDERS: usize = 64;
/// Maximum number of candidates that are two facets away.
pub(super) const MAX_AWAY: usize = MAX_CORNERS * MAX_CORNERS;

/// A candidate for the further corner of the cell behind a facet: the number of ridges across which it is, the largest number
/// of cells around one of these, and the corner. More likely candidates are larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    pub const NONE: Self = Self(0);
    const RIDGE: u64 = 1 << 40;

    #[inline(always)]
    pub fn new(corner: u32, around: u8) -> Self {
        Self(Self::RIDGE | u64::from(around) << 32 | u64::from(corner))
    }

    /// The same corner across the ridges of both.
    #[inline(always)]
    pub fn with(self, other: Self) -> Self {
        let ridges = other.ridges() as u64 * Self::RIDGE;
        Self(
            (self.0 % Self::RIDGE).max(other.0 % Self::RIDGE)
                + self.0 / Self::RIDGE * Self::RIDGE
                + ridges,
        )
    }

    #[inline(always)]
    pub fn corner(self) -> u32 {
        self.0 as u32
    }

    fn around(self) -> u8 {
        (self.0 >> 32) as u8
    }

    fn ridges(self) -> usize {
        (self.0 / Self::RIDGE) as usize
    }
}

/// The probabilities of all decisions of a traversal.
pub(super) struct Models {
    boundaries: [Probability; (MAX_CORNERS + 1) * 2 * MAX_CELLS_AROUND],
    candidates: Box<[Probability; MAX_CORNERS * MAX_CORNERS * MAX_CELLS_AROUND * MAX_CELLS_AROUND]>,
    new: [Probability; MAX_CELLS_AROUND],
    away: [Probability; MAX_AWAY],
    orders: Box<[[Probability; ORDERS]; MAX_CORNERS * MAX_CORNERS * MAX_CORNERS]>,
    /// The age of a corner: the number of points visited since.
    since: Magnitudes,
    /// For cells that are not behind a facet: whether each corner is new, and the age of others.
    first_new: [Probability; MAX_CORNERS],
    first_since: Magnitudes,
    pub points: Distances,
    /// The distances of cells: from the last cell with the same highest point, or from the cell of the facet.
    pub cells: [Distances; 2],
    was_boundary: bool,
}

fn capped(around: u8) -> usize {
    usize::from(around).min(MAX_CELLS_AROUND - 1)
}

impl Models {
    pub fn new(cells: usize, points: usize) -> Self {
        let fresh = Probability::default();
        Self {
            boundaries: [fresh; _],
            candidates: Box::new([fresh; _]),
            new: [fresh; _],
            away: [fresh; _],
            orders: Box::new([[fresh; _]; _]),
            since: Magnitudes::new(points as u64),
            first_new: [fresh; _],
            first_since: Magnitudes::new(points as u64),
            points: Distances::new(points),
            cells: [Distances::new(cells), Distances::new(cells)],
            was_boundary: false,
        }
    }

    /// Codes whether a facet is part of the boundary. The context is the number of its contacts that are, and of cells around
    /// its ridges.
    #[inline(always)]
    pub fn is_boundary<C: Coder>(
        &mut self,
        coder: &mut C,
        boundaries: usize,
        around: u8,
        is_boundary: bool,
    ) -> bool {
        let context =
            (2 * boundaries + usize::from(self.was_boundary)) * MAX_CELLS_AROUND + capped(around);
        self.was_boundary = coder.bit(&mut self.boundaries[context], is_boundary);
        self.was_boundary
    }

    /// Codes whether the corner is one of the candidates, which are sorted by likelihood. Returns it, if it is.
    #[inline(always)]
    pub fn candidate<C: Coder>(
        &mut self,
        coder: &mut C,
        candidates: &[Candidate],
        corner: u32,
    ) -> Option<u32> {
        for (number, candidate) in candidates.iter().enumerate() {
            if *candidate == Candidate::NONE {
                break;
            }
            let next = candidates.get(number + 1).map_or(0, |next| next.around());
            let context = number * MAX_CORNERS + candidate.ridges();
            let context = (context * MAX_CELLS_AROUND + capped(candidate.around()))
                * MAX_CELLS_AROUND
                + capped(next);
            if coder.bit(&mut self.candidates[context], candidate.corner() == corner) {
                return Some(candidate.corner());
            }
        }
        None
    }

    /// Codes whether the corner behind a facet, which is not a candidate, is new.
    #[inline(always)]
    pub fn new_corner<C: Coder>(&mut self, coder: &mut C, around: u8, new: bool) -> bool {
        coder.bit(&mut self.new[capped(around)], new)
    }

    /// Codes whether the corner is one of those two facets away. Returns it, if it is.
    #[inline(always)]
    pub fn away<C: Coder>(&mut self, coder: &mut C, corners: &[u32], corner: u32) -> Option<u32> {
        for (found, probability) in corners.iter().zip(&mut self.away) {
            if coder.bit(probability, *found == corner) {
                return Some(*found);
            }
        }
        None
    }

    /// Codes the age of the corner behind a facet.
    pub fn since<C: Coder>(&mut self, coder: &mut C, since: u64) -> u64 {
        self.since.code(coder, since)
    }

    /// Codes the age of corner number `place` of a cell that is not behind a facet; `None` for new corners.
    pub fn first_since<C: Coder>(
        &mut self,
        coder: &mut C,
        place: usize,
        since: Option<u64>,
    ) -> Option<u64> {
        let new = coder.bit(&mut self.first_new[place], since.is_none());
        (!new).then(|| self.first_since.code(coder, since.unwrap_or(0)))
    }

    /// Codes the order of the `width` corners of a cell.
    #[inline(always)]
    pub fn order<C: Coder>(
        &mut self,
        coder: &mut C,
        width: usize,
        context: [usize; 3],
        order: [u8; MAX_CORNERS],
    ) -> [u8; MAX_CORNERS] {
        let context = context.iter().fold(0, |sum, part| sum * MAX_CORNERS + part);
        let probabilities = &mut self.orders[context];
        // The remaining corners, four bits each, and those found, eight bits each.
        let (mut left, mut found) = (0x3210u32, 0);
        let (mut begin, mut path, mut paths) = (0, 0, 1);
        for (place, known) in order[..width - 1].iter().enumerate() {
            let count = width - place;
            let bits = usize::BITS - (count - 1).leading_zeros();
            let tree = &mut probabilities[begin + (path << bits)..][..1 << bits];
            let mut number = 0;
            if C::WRITES {
                let is_it = |n: &usize| (left >> (4 * n) & 0xf) as u8 == *known;
                number = (0..count).find(is_it).unwrap_or(0);
            }
            let number = coder.tree(tree, number as u32, bits) as usize;
            let number = number.min(count - 1);
            found |= (left >> (4 * number) & 0xf) << (8 * place);
            let before = (1 << (4 * number)) - 1;
            left = left & before | left >> 4 & !before;
            begin += paths << bits;
            path = path * count + number;
            paths *= count;
        }
        found |= (left & 0xf) << (8 * (width - 1));
        found.to_le_bytes()
    }
}
