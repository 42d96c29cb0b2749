//! The walk through a mesh, from cell to cell across facets, that writer and reader take alike.

use std::collections::VecDeque;

use super::facets::{Facet, Facets, State, sort};
use super::models::{AWAY, Candidate, MOST, Models};
use super::places::Places;
use super::side::Coder;
use crate::error::{Corrupt, Result};

/// The number of a point that was not met, and the row of no cell.
pub(super) const NONE: u32 = u32::MAX;

/// A mesh that is walked through: a writer knows it, a reader learns it.
///
/// Points have ranks, in the order of their values, and numbers, in the order in which they are met.
pub(super) trait Mesh<const F: usize> {
    /// A row with a cell behind a facet that was not met; for a reader, anything.
    fn behind(&mut self, facet: &Facet<F>, cells: &Places) -> Option<u32>;

    /// The ranks of a row's corners, and their numbers; for a reader, anything.
    fn row(&self, row: u32) -> Row;

    /// A point is met: its rank, and its number.
    fn met_point(&mut self, rank: u32, number: u32);

    /// A cell is met: its row, and the numbers of its corners.
    fn met_cell(&mut self, row: usize, corners: &[u32]);
}

/// The corners of a row.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub ranks: [u32; MOST],
    /// `NONE` where a point was not met before.
    pub numbers: [u32; MOST],
}

/// How large a mesh is, and of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub cells: usize,
    pub points: usize,
    /// Whether cells that touch have rows far from each other.
    pub cells_scattered: bool,
    /// Whether the corners of a cell have ranks far from each other.
    pub points_scattered: bool,
}

/// What is kept on the way, and its memory from one walk to the next. Facets have F corners.
pub(super) struct Walk<const F: usize> {
    facets: Facets<F>,
    /// Facets behind which nobody looked yet.
    queue: VecDeque<u32>,
    cells: Places,
    points: Places,
    /// The ranks of points, by their numbers.
    ranks: Vec<u32>,
    /// The row of the last cell of which a point has the highest rank.
    latest: Vec<u32>,
}

impl<const F: usize> Default for Walk<F> {
    fn default() -> Self {
        Self {
            facets: Facets::default(),
            queue: VecDeque::new(),
            cells: Places::default(),
            points: Places::default(),
            ranks: Vec::new(),
            latest: Vec::new(),
        }
    }
}

impl<const F: usize> Walk<F> {
    /// Corners of a cell.
    const WIDTH: usize = F + 1;

    /// Walks through all cells of a mesh.
    ///
    /// # Errors
    /// `Corrupt` where a reader finds what cannot be.
    pub fn run<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        extent: Extent,
    ) -> Result<()> {
        self.facets.reset(extent.cells);
        self.queue.clear();
        self.cells.reset(extent.cells);
        self.points.reset(extent.points);
        self.ranks.clear();
        self.latest.clear();
        let mut models = Models::new(extent.cells, extent.points);
        let mut left = extent.cells;
        while left > 0 {
            let Some(gate) = self.queue.pop_front() else {
                self.begin(coder, mesh, &mut models, extent)?;
                left -= 1;
                continue;
            };
            if self.facets[gate].state == State::Met {
                self.facets.release(gate);
            } else if self.pass(coder, mesh, &mut models, extent, gate)? {
                left -= 1;
            }
        }
        if self.ranks.len() < extent.points {
            return Err(Corrupt("a point belongs to no cell"));
        }
        Ok(())
    }

    /// Meets the cell of the first row that was not met, behind no facet.
    fn begin<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
    ) -> Result<()> {
        let row = self.cells.take_first().unwrap_or(0);
        let mut corners = [0; MOST];
        for place in 0..Self::WIDTH {
            let known = if C::WRITES {
                mesh.row(row as u32)
            } else {
                Row::default()
            };
            let met = self.ranks.len() as u32;
            let number = known.numbers[place];
            let since = (number != NONE).then(|| u64::from(met - 1 - number));
            corners[place] = match models.first_since(coder, place, since) {
                Some(since) => self.met_since(since)?,
                None => {
                    let near = self.ranks.last().copied().unwrap_or(0);
                    self.meet_point(coder, mesh, models, extent, near, known.ranks[place])?
                }
            };
        }
        let corners = &corners[..Self::WIDTH];
        self.meet_cell(mesh, row, corners);
        let mut facets = [0; MOST];
        for (missing, facet) in facets[..Self::WIDTH].iter_mut().enumerate() {
            let corners = without(corners, missing);
            *facet = self
                .facets
                .add(Facet::new(corners, row as u32, missing as u8));
        }
        for missing in 0..Self::WIDTH {
            self.facets[facets[missing]].touching = without(&facets[..Self::WIDTH], missing);
        }
        self.open(&facets[..Self::WIDTH]);
        Ok(())
    }

    /// Looks behind a facet; whether there is a cell, which is met then.
    #[inline(always)]
    fn pass<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
        gate: u32,
    ) -> Result<bool> {
        let facet = self.facets[gate];
        self.facets.leave(gate);
        let behind = if C::WRITES {
            mesh.behind(&facet, &self.cells)
        } else {
            None
        };
        let touching = facet.touching.iter();
        let walls = touching.filter(|n| self.facets[**n].state == State::Wall);
        let around = facet.around.iter().copied().fold(0, u8::max);
        if models.wall(coder, walls.count(), around, behind.is_none()) {
            self.facets[gate].state = State::Wall;
            return Ok(false);
        }
        let (mut known, mut order) = (Row::default(), [0; MOST]);
        if C::WRITES {
            known = mesh.row(behind.unwrap_or(0));
            order = arranged(&facet.corners, &known.numbers);
        }
        // The corners of the facet, then the one behind it.
        let mut corners = [0; MOST];
        corners[..F].copy_from_slice(&facet.corners);
        let place = order.iter().position(|corner| usize::from(*corner) == F);
        let place = place.unwrap_or(0);
        let corner = (known.numbers[place], known.ranks[place]);
        corners[F] = self.apex(coder, mesh, models, extent, (gate, &facet), corner)?;
        let ranks = corners.map(|corner| self.ranks[corner as usize]);
        let (highest, lowest) = extremes(&ranks[..Self::WIDTH]);
        let context = [usize::from(facet.missing), highest, lowest];
        let order = models.order(coder, Self::WIDTH, context, order);
        let latest = self.latest[corners[highest] as usize];
        let (near, model) = match latest {
            _ if extent.cells_scattered => (extent.cells / 2, 0),
            NONE => (facet.cell as usize, 1),
            latest => (latest as usize, 0),
        };
        let row = behind.unwrap_or(0) as usize;
        let row = self
            .cells
            .code(coder, &mut models.cells[model], near, row)?;
        let row_corners = order.map(|corner| corners[usize::from(corner)]);
        let row_corners = &row_corners[..Self::WIDTH];
        self.latest[corners[highest] as usize] = row as u32;
        mesh.met_cell(row, row_corners);
        self.advance((gate, &facet), row, row_corners, &order[..Self::WIDTH]);
        Ok(true)
    }

    /// The number of the corner behind a facet; a writer knows it and its rank.
    #[inline(always)]
    fn apex<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
        (gate, facet): (u32, &Facet<F>),
        (number, rank): (u32, u32),
    ) -> Result<u32> {
        let mut candidates = [Candidate::default(); F];
        let count = self.candidates((gate, facet), &mut candidates);
        let candidates = &candidates[..count];
        if let Some(corner) = models.candidate(coder, candidates, number) {
            return Ok(corner);
        }
        let around = facet.around.iter().copied().fold(0, u8::max);
        if models.new_corner(coder, around, number == NONE) {
            let mut ranks = facet.corners.map(|corner| self.ranks[corner as usize]);
            sort(&mut ranks);
            return self.meet_point(coder, mesh, models, extent, ranks[F / 2], rank);
        }
        let mut away = [0; AWAY];
        let mut count = 0;
        for other in facet.touching {
            for ridge in 0..F {
                let Some(corner) = self.facets.across(other, ridge) else {
                    continue;
                };
                let known = facet.corners.contains(&corner)
                    || candidates.iter().any(|known| known.corner == corner)
                    || away[..count].contains(&corner);
                if !known {
                    away[count] = corner;
                    count += 1;
                }
            }
        }
        if let Some(corner) = models.away(coder, &away[..count], number) {
            return Ok(corner);
        }
        let met = self.ranks.len() as u32;
        let since = models.since(coder, u64::from((met - 1).wrapping_sub(number)));
        self.met_since(since)
    }

    /// The corners behind the ridges of a facet, the likeliest first; gives their number.
    #[inline(always)]
    fn candidates(
        &self,
        (gate, facet): (u32, &Facet<F>),
        candidates: &mut [Candidate; F],
    ) -> usize {
        let mut count = 0;
        for ridge in 0..F {
            let Some(corner) = self.facets.across(gate, ridge) else {
                continue;
            };
            let around = facet.around[ridge];
            let known = &mut candidates[..count];
            if let Some(known) = known.iter_mut().find(|known| known.corner == corner) {
                known.ridges += 1;
                known.around = known.around.max(around);
            } else {
                candidates[count] = Candidate {
                    corner,
                    ridges: 1,
                    around,
                };
                count += 1;
            }
        }
        for end in (1..count).rev() {
            for i in 0..end {
                let likelihood = |n: usize| (candidates[n].ridges, candidates[n].around);
                if likelihood(i) < likelihood(i + 1) {
                    candidates.swap(i, i + 1);
                }
            }
        }
        count
    }

    /// The point that was met so many points ago.
    fn met_since(&self, since: u64) -> Result<u32> {
        let met = self.ranks.len();
        match usize::try_from(since) {
            Ok(since) if since < met => Ok((met - 1 - since) as u32),
            _ => Err(Corrupt("a corner is a point that was not met")),
        }
    }

    /// Meets a point, and gives its number; a writer knows its rank, which may be near another.
    fn meet_point<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
        near: u32,
        rank: u32,
    ) -> Result<u32> {
        let near = if extent.points_scattered {
            extent.points / 2
        } else {
            near as usize
        };
        let distances = &mut models.points;
        let rank = self.points.code(coder, distances, near, rank as usize)? as u32;
        let number = self.ranks.len() as u32;
        self.ranks.push(rank);
        self.latest.push(NONE);
        mesh.met_point(rank, number);
        Ok(number)
    }

    /// Notes the row of a cell with its highest point.
    fn meet_cell<M: Mesh<F>>(&mut self, mesh: &mut M, row: usize, corners: &[u32]) {
        let mut ranks = [0; MOST];
        for (rank, corner) in ranks.iter_mut().zip(corners) {
            *rank = self.ranks[*corner as usize];
        }
        let (highest, _) = extremes(&ranks[..Self::WIDTH]);
        self.latest[corners[highest] as usize] = row as u32;
        mesh.met_cell(row, corners);
    }

    /// Puts the facets of a cell that was met behind `facet` in its place.
    #[inline(always)]
    fn advance(
        &mut self,
        (gate, facet): (u32, &Facet<F>),
        row: usize,
        corners: &[u32],
        order: &[u8],
    ) {
        // New facet number i is without the facet's corner number i.
        let mut facets = [0; F];
        for number in &mut facets {
            *number = self.facets.add(*facet);
        }
        for (missing, which) in order.iter().enumerate() {
            let Some(&number) = facets.get(usize::from(*which)) else {
                continue;
            };
            let mut new = Facet::new(without(corners, missing), row as u32, missing as u8);
            let opposite = usize::from(*which);
            let around = facet.around[opposite].saturating_add(1);
            let mut others = order
                .iter()
                .enumerate()
                .filter(|(place, _)| *place != missing);
            for ridge in 0..F {
                let Some((_, corner)) = others.next() else {
                    break;
                };
                match facets.get(usize::from(*corner)) {
                    Some(beside) => new.touching[ridge] = *beside,
                    None => {
                        new.touching[ridge] = facet.touching[opposite];
                        new.around[ridge] = around;
                    }
                }
            }
            self.facets[number] = new;
            let across = facet.touching[opposite];
            self.facets.retouch(across, gate, number, around);
        }
        self.open(&facets);
        self.facets.release(gate);
    }

    /// Enters the new facets of a cell, or joins them with those that there are of the same corners.
    #[inline(always)]
    fn open(&mut self, facets: &[u32]) {
        for facet in facets {
            let corners = self.facets[*facet].corners;
            if let Some(other) = self.facets.find(&corners) {
                self.facets.leave(other);
                self.facets.join(*facet, other);
            } else {
                self.facets.enter(*facet);
            }
        }
        for facet in facets {
            if self.facets[*facet].state == State::Open {
                self.queue.push_back(*facet);
            } else {
                self.facets.release(*facet);
            }
        }
    }
}

/// A few numbers without that at one place.
#[inline(always)]
fn without<const F: usize>(numbers: &[u32], place: usize) -> [u32; F] {
    std::array::from_fn(|i| numbers[if i < place { i } else { i + 1 }])
}

/// Where the highest and the lowest of some ranks are, the first ones of those.
#[inline(always)]
fn extremes(ranks: &[u32]) -> (usize, usize) {
    let (mut highest, mut lowest) = (0, 0);
    for (place, rank) in ranks.iter().enumerate() {
        if *rank > ranks[highest] {
            highest = place;
        }
        if *rank < ranks[lowest] {
            lowest = place;
        }
    }
    (highest, lowest)
}

/// Which of a facet's corners stands at each place of a row, F for the one that is none of these.
fn arranged<const F: usize>(facet: &[u32; F], row: &[u32; MOST]) -> [u8; MOST] {
    let mut order = [F as u8; MOST];
    for (number, corner) in facet.iter().enumerate() {
        let mut places = row[..=F].iter().zip(&mut order);
        let free = places.find(|(of_row, which)| *of_row == corner && usize::from(**which) == F);
        if let Some((_, which)) = free {
            *which = number as u8;
        }
    }
    order
}
