//! The probabilities of a walk: what they depend on.

use super::places::Distances;
use super::side::{Coder, Magnitudes};
use crate::entropy::range_coder::Probability;

/// Corners of a cell at most.
pub(super) const MOST: usize = 4;
/// Numbers of cells around a ridge that are told apart.
const AROUND: usize = 8;
/// Probabilities of the orders of a row's corners: a tree for the first, one for the second behind each
/// first one, and so on.
const ORDERS: usize = 64;
/// Candidates at most among the corners that are two facets away.
pub(super) const AWAY: usize = MOST * MOST;

/// A candidate for the corner of a cell behind a facet: across how many ridges it lies, how many cells
/// are around one of these at most, and the corner. The likelier is the greater.
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

/// The probabilities of all that a walk codes.
pub(super) struct Models {
    walls: [Probability; (MOST + 1) * 2 * AROUND],
    candidates: Box<[Probability; MOST * MOST * AROUND * AROUND]>,
    new: [Probability; AROUND],
    away: [Probability; AWAY],
    orders: Box<[[Probability; ORDERS]; MOST * MOST * MOST]>,
    /// How many points were met since.
    since: Magnitudes,
    /// Of a cell that lies behind no facet: whether corners are new, and how long ago they were met.
    first_new: [Probability; MOST],
    first_since: Magnitudes,
    pub points: Distances,
    /// Of cells from the last one with the same highest point, and from the one before the facet.
    pub cells: [Distances; 2],
    wall_before: bool,
}

fn capped(around: u8) -> usize {
    usize::from(around).min(AROUND - 1)
}

impl Models {
    pub fn new(cells: usize, points: usize) -> Self {
        let fresh = Probability::default();
        Self {
            walls: [fresh; _],
            candidates: Box::new([fresh; _]),
            new: [fresh; _],
            away: [fresh; _],
            orders: Box::new([[fresh; _]; _]),
            since: Magnitudes::new(points as u64),
            first_new: [fresh; _],
            first_since: Magnitudes::new(points as u64),
            points: Distances::new(points),
            cells: [Distances::new(cells), Distances::new(cells)],
            wall_before: false,
        }
    }

    /// Whether a facet is a wall, by how many of those it touches are, and the cells around its ridges.
    #[inline(always)]
    pub fn wall<C: Coder>(&mut self, coder: &mut C, walls: usize, around: u8, wall: bool) -> bool {
        let context = (2 * walls + usize::from(self.wall_before)) * AROUND + capped(around);
        self.wall_before = coder.bit(&mut self.walls[context], wall);
        self.wall_before
    }

    /// Which of the candidates, the likeliest first, the corner is, if it is one of them.
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
            let context = number * MOST + candidate.ridges();
            let context = (context * AROUND + capped(candidate.around())) * AROUND + capped(next);
            if coder.bit(&mut self.candidates[context], candidate.corner() == corner) {
                return Some(candidate.corner());
            }
        }
        None
    }

    /// Whether the corner behind a facet, which is no candidate, was never met before.
    #[inline(always)]
    pub fn new_corner<C: Coder>(&mut self, coder: &mut C, around: u8, new: bool) -> bool {
        coder.bit(&mut self.new[capped(around)], new)
    }

    /// Which of the corners two facets away the corner is, if it is one of them.
    #[inline(always)]
    pub fn away<C: Coder>(&mut self, coder: &mut C, corners: &[u32], corner: u32) -> Option<u32> {
        for (found, probability) in corners.iter().zip(&mut self.away) {
            if coder.bit(probability, *found == corner) {
                return Some(*found);
            }
        }
        None
    }

    /// How many points were met since the corner behind a facet.
    pub fn since<C: Coder>(&mut self, coder: &mut C, since: u64) -> u64 {
        self.since.code(coder, since)
    }

    /// How many points were met since corner number `place` of a cell that lies behind no facet; `None`
    /// where it is new.
    pub fn first_since<C: Coder>(
        &mut self,
        coder: &mut C,
        place: usize,
        since: Option<u64>,
    ) -> Option<u64> {
        let new = coder.bit(&mut self.first_new[place], since.is_none());
        (!new).then(|| self.first_since.code(coder, since.unwrap_or(0)))
    }

    /// Which of `width` corners stands at which place of a row.
    #[inline(always)]
    pub fn order<C: Coder>(
        &mut self,
        coder: &mut C,
        width: usize,
        context: [usize; 3],
        order: [u8; MOST],
    ) -> [u8; MOST] {
        let context = context.iter().fold(0, |sum, part| sum * MOST + part);
        let probabilities = &mut self.orders[context];
        // Half bytes: the corners that are left, and those found.
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
