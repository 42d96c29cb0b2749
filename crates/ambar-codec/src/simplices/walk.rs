//! The walk through a mesh, from cell to cell across facets, that writer and reader take alike.

use std::collections::VecDeque;

use super::facets::{Facet, Facets, State, end, sort};
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
            return Err(Corrupt(
                "a point belongs to no cell; expected every point in a cell",
            ));
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
        for (place, corner) in corners[..Self::WIDTH].iter_mut().enumerate() {
            let known = if C::WRITES {
                mesh.row(row as u32)
            } else {
                Row::default()
            };
            let met = self.ranks.len() as u32;
            let number = known.numbers[place];
            let since = (C::WRITES && number != NONE).then(|| u64::from(met - 1 - number));
            *corner = match models.first_since(coder, place, since) {
                Some(since) => self.met_since(since)?,
                None => {
                    let near = self.ranks.last().copied().unwrap_or(0);
                    self.meet_point(coder, mesh, models, extent, near, known.ranks[place])?
                }
            };
        }
        self.meet_cell(mesh, row, &corners[..Self::WIDTH]);
        let mut facets = [0; MOST];
        for facet in &mut facets[..Self::WIDTH] {
            *facet = self.facets.reserve();
        }
        for missing in 0..Self::WIDTH {
            let new = &mut self.facets[facets[missing]];
            new.begin(row as u32, missing as u8);
            for place in (0..Self::WIDTH).filter(|place| *place != missing) {
                let ridge = place - usize::from(place > missing);
                new.corners[ridge] = corners[place];
                new.ends[ridge] = end(facets[place], missing - usize::from(missing > place));
            }
        }
        for facet in &facets[..Self::WIDTH] {
            self.enter(*facet);
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
        let (mut ends, mut touching, mut walls) = ([NONE; F], [(NONE, NONE); F], 0);
        for ridge in 0..F {
            if let Some(other) = self.facets.other(end(gate, ridge)) {
                ends[ridge] = other;
                touching[ridge] = self.facets.apex(other);
                let state = self.facets[touching[ridge].0].state;
                walls += usize::from(state == State::Wall);
            }
        }
        let around = facet.around.iter().copied().fold(0, u8::max);
        if models.wall(coder, walls, around, behind.is_none()) {
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
        corners[F] = self.apex(coder, mesh, models, extent, (&facet, &touching), corner)?;
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
        let of_row = order.map(|corner| corners[usize::from(corner)]);
        self.latest[corners[highest] as usize] = row as u32;
        mesh.met_cell(row, &of_row[..Self::WIDTH]);
        let mut places = [0; MOST];
        for (place, which) in order[..Self::WIDTH].iter().enumerate() {
            places[usize::from(*which)] = place;
        }
        self.facets.meet(gate);
        self.advance((&facet, &ends), row, &corners, &places);
        self.facets.release(gate);
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
        (facet, touching): (&Facet<F>, &[(u32, u32); F]),
        (number, rank): (u32, u32),
    ) -> Result<u32> {
        let candidates = likeliest(facet, touching);
        if let Some(corner) = models.candidate(coder, &candidates, number) {
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
        for (other, _) in touching.iter().filter(|(other, _)| *other != NONE) {
            for ridge in 0..F {
                let Some(beyond) = self.facets.other(end(*other, ridge)) else {
                    continue;
                };
                let (_, corner) = self.facets.apex(beyond);
                let known = facet.corners.contains(&corner)
                    || touching.iter().any(|(_, known)| *known == corner)
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

    /// The point that was met so many points ago.
    fn met_since(&self, since: u64) -> Result<u32> {
        let met = self.ranks.len();
        match usize::try_from(since) {
            Ok(since) if since < met => Ok((met - 1 - since) as u32),
            _ => Err(Corrupt(
                "a corner refers to a point that has not been decoded",
            )),
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

    /// Puts the facets of a cell that was met behind `facet` in its place. The cell's corners are those
    /// of the facet, and the one behind it; `places` are those in the row.
    #[inline(always)]
    fn advance(
        &mut self,
        (facet, ends): (&Facet<F>, &[u32; F]),
        row: usize,
        corners: &[u32; MOST],
        places: &[usize; MOST],
    ) {
        // New facet number i is without the facet's corner number i.
        let mut facets = [0; F];
        for facet in &mut facets {
            *facet = self.facets.reserve();
        }
        // The number of a corner among those of the facet without another.
        let number = |corner: usize, without: usize| {
            places[corner] - usize::from(places[corner] > places[without])
        };
        for i in 0..F {
            // Written in place: to copy what was written in parts has to wait for all writes before.
            let new = &mut self.facets[facets[i]];
            new.begin(row as u32, places[i] as u8);
            for other in (0..=F).filter(|other| *other != i) {
                let ridge = number(other, i);
                new.corners[ridge] = corners[other];
                new.ends[ridge] = match facets.get(other) {
                    Some(other_facet) => end(*other_facet, number(i, other)),
                    None => NONE,
                };
            }
            if ends[i] != NONE {
                let around = facet.around[i].saturating_add(1);
                self.facets
                    .touch(end(facets[i], number(F, i)), ends[i], around);
            }
        }
        for (new, across) in facets.iter().zip(ends) {
            let (other, apex) = self.facets.apex(*across);
            if *across != NONE && apex == corners[F] && self.facets[other].state == State::Open {
                self.facets.leave(other);
                self.facets.join(*new, other);
            } else {
                self.enter(*new);
            }
        }
        self.open(&facets);
    }

    /// Enters a new facet into the table, or joins it with the one that is there of the same corners.
    #[inline(always)]
    fn enter(&mut self, facet: u32) {
        let corners = self.facets[facet].corners;
        if let Some(other) = self.facets.find(&corners) {
            self.facets.leave(other);
            self.facets.join(facet, other);
        } else {
            self.facets.enter(facet);
        }
    }

    /// Queues the new facets of a cell that are open.
    #[inline(always)]
    fn open(&mut self, facets: &[u32]) {
        for facet in facets {
            if self.facets[*facet].state == State::Open {
                self.queue.push_back(*facet);
            } else {
                self.facets.release(*facet);
            }
        }
    }
}

/// The corners behind the ridges of a facet, the likeliest first.
#[inline(always)]
fn likeliest<const F: usize>(facet: &Facet<F>, touching: &[(u32, u32); F]) -> [Candidate; F] {
    let mut candidates = [Candidate::NONE; F];
    for ridge in 0..F {
        let (other, corner) = touching[ridge];
        if other == NONE {
            continue;
        }
        let mut candidate = Candidate::new(corner, facet.around[ridge]);
        for known in &mut candidates[..ridge] {
            if known.corner() == corner && *known != Candidate::NONE {
                candidate = candidate.with(*known);
                *known = Candidate::NONE;
            }
        }
        candidates[ridge] = candidate;
    }
    for end in (1..F).rev() {
        for i in 0..end {
            let (a, b) = (candidates[i], candidates[i + 1]);
            (candidates[i], candidates[i + 1]) = (a.max(b), a.min(b));
        }
    }
    candidates
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
