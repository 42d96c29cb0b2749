//! The traversal of a mesh from cell to cell across facets, which is shared by encoder and decoder.

use std::collections::VecDeque;

use super::coder::Coder;
use super::facets::{Facet, FacetState, Facets, end, sort};
use super::free_indices::FreeIndices;
use super::models::{Candidate, MAX_AWAY, MAX_CORNERS, Models};
use crate::error::{Result, corrupt};

/// The number of a point that has not been visited, and the index of no cell.
pub(super) const NONE: u32 = u32::MAX;

/// The mesh of a traversal, which an encoder knows, and a decoder reconstructs.
///
/// Points have ranks, in the order of their values, and numbers, in the order in which they are visited.
pub(super) trait Mesh<const F: usize> {
    /// A cell behind a facet that has not been visited. Not used by decoders.
    fn cell_behind(&mut self, facet: &Facet<F>, cells: &FreeIndices) -> Option<u32>;

    /// The ranks and the numbers of the corners of a cell. Not used by decoders.
    fn row(&self, row: u32) -> Row;

    /// Called for each new point.
    fn visit_point(&mut self, rank: u32, number: u32);

    /// Called for each cell, with its index and the numbers of its corners.
    fn visit_cell(&mut self, row: usize, corners: &[u32]);
}

/// The corners of a cell.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub ranks: [u32; MAX_CORNERS],
    /// `NONE` for points that have not been visited.
    pub numbers: [u32; MAX_CORNERS],
}

/// The size of a mesh, and whether neighbours are scattered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub cells: usize,
    pub points: usize,
    /// Whether neighbouring cells have distant indices.
    pub has_scattered_cells: bool,
    /// Whether the corners of a cell have distant ranks.
    pub has_scattered_points: bool,
}

/// The state of a traversal, whose buffers are reused. Facets have F corners.
pub(super) struct Traversal<const F: usize> {
    facets: Facets<F>,
    /// Open facets, in the order of the traversal.
    queue: VecDeque<u32>,
    cells: FreeIndices,
    points: FreeIndices,
    /// The rank of each point, by number.
    ranks: Vec<u32>,
    /// For each point, the last cell of which it has the highest rank.
    latest: Vec<u32>,
}

impl<const F: usize> Default for Traversal<F> {
    fn default() -> Self {
        Self {
            facets: Facets::default(),
            queue: VecDeque::new(),
            cells: FreeIndices::default(),
            points: FreeIndices::default(),
            ranks: Vec::new(),
            latest: Vec::new(),
        }
    }
}

impl<const F: usize> Traversal<F> {
    /// Corners of a cell.
    const WIDTH: usize = F + 1;

    /// Visits all cells of a mesh.
    ///
    /// # Errors
    /// `Corrupt` if a decoder reads an invalid decision.
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
                self.begin_component(coder, mesh, &mut models, extent)?;
                left -= 1;
                continue;
            };
            if self.facets[gate].state == FacetState::Closed {
                self.facets.release(gate);
            } else if self.cross(coder, mesh, &mut models, extent, gate)? {
                left -= 1;
            }
        }
        if self.ranks.len() < extent.points {
            return Err(corrupt!(
                "the cells have {} points; expected {}",
                self.ranks.len(),
                extent.points
            ));
        }
        Ok(())
    }

    /// Visits the first cell that has not been visited, which begins a component of the mesh.
    fn begin_component<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
    ) -> Result<()> {
        let row = self.cells.take_first().unwrap_or(0);
        let mut corners = [0; MAX_CORNERS];
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
                Some(since) => self.point_since(since)?,
                None => {
                    let near = self.ranks.last().copied().unwrap_or(0);
                    self.add_point(coder, mesh, models, extent, near, known.ranks[place])?
                }
            };
        }
        self.add_cell(mesh, row, &corners[..Self::WIDTH]);
        let mut facets = [0; MAX_CORNERS];
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
            self.insert(*facet);
        }
        self.enqueue(&facets[..Self::WIDTH]);
        Ok(())
    }

    /// Visits the cell behind a facet. Returns whether it exists.
    #[inline(always)]
    fn cross<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
        gate: u32,
    ) -> Result<bool> {
        let facet = self.facets[gate];
        self.facets.remove(gate);
        let behind = if C::WRITES {
            mesh.cell_behind(&facet, &self.cells)
        } else {
            None
        };
        let (mut ends, mut touching, mut boundaries) = ([NONE; F], [(NONE, NONE); F], 0);
        for ridge in 0..F {
            if let Some(other) = self.facets.other(end(gate, ridge)) {
                ends[ridge] = other;
                touching[ridge] = self.facets.apex(other);
                let state = self.facets[touching[ridge].0].state;
                boundaries += usize::from(state == FacetState::Boundary);
            }
        }
        let around = facet.around.iter().copied().fold(0, u8::max);
        if models.is_boundary(coder, boundaries, around, behind.is_none()) {
            self.facets[gate].state = FacetState::Boundary;
            return Ok(false);
        }
        let (mut known, mut order) = (Row::default(), [0; MAX_CORNERS]);
        if C::WRITES {
            known = mesh.row(behind.unwrap_or(0));
            order = arranged(&facet.corners, &known.numbers);
        }
        // The corners of the facet, then the further one.
        let mut corners = [0; MAX_CORNERS];
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
            _ if extent.has_scattered_cells => (extent.cells / 2, 0),
            NONE => (facet.cell as usize, 1),
            latest => (latest as usize, 0),
        };
        let row = behind.unwrap_or(0) as usize;
        let row = self
            .cells
            .code(coder, &mut models.cells[model], near, row)?;
        let of_row = order.map(|corner| corners[usize::from(corner)]);
        self.latest[corners[highest] as usize] = row as u32;
        mesh.visit_cell(row, &of_row[..Self::WIDTH]);
        let mut places = [0; MAX_CORNERS];
        for (place, which) in order[..Self::WIDTH].iter().enumerate() {
            places[usize::from(*which)] = place;
        }
        self.facets.close(gate);
        self.advance((&facet, &ends), row, &corners, &places);
        self.facets.release(gate);
        Ok(true)
    }

    /// Codes the further corner of the cell behind a facet, of which an encoder passes number and rank. Returns its number.
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
            return self.add_point(coder, mesh, models, extent, ranks[F / 2], rank);
        }
        let mut away = [0; MAX_AWAY];
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
        self.point_since(since)
    }

    /// The number of the point of this age.
    fn point_since(&self, since: u64) -> Result<u32> {
        let met = self.ranks.len();
        match usize::try_from(since) {
            Ok(since) if since < met => Ok((met - 1 - since) as u32),
            _ => Err(corrupt!(
                "a corner refers to the point {since} before the last of {met} decoded points"
            )),
        }
    }

    /// Visits a new point, of which an encoder passes the rank. Returns its number.
    fn add_point<C: Coder, M: Mesh<F>>(
        &mut self,
        coder: &mut C,
        mesh: &mut M,
        models: &mut Models,
        extent: Extent,
        near: u32,
        rank: u32,
    ) -> Result<u32> {
        let near = if extent.has_scattered_points {
            extent.points / 2
        } else {
            near as usize
        };
        let distances = &mut models.points;
        let rank = self.points.code(coder, distances, near, rank as usize)? as u32;
        let number = self.ranks.len() as u32;
        self.ranks.push(rank);
        self.latest.push(NONE);
        mesh.visit_point(rank, number);
        Ok(number)
    }

    /// Records a cell at its highest point, and passes it to the mesh.
    fn add_cell<M: Mesh<F>>(&mut self, mesh: &mut M, row: usize, corners: &[u32]) {
        let mut ranks = [0; MAX_CORNERS];
        for (rank, corner) in ranks.iter_mut().zip(corners) {
            *rank = self.ranks[*corner as usize];
        }
        let (highest, _) = extremes(&ranks[..Self::WIDTH]);
        self.latest[corners[highest] as usize] = row as u32;
        mesh.visit_cell(row, corners);
    }

    /// Replaces `facet` by the other facets of the cell behind it. `corners` are those of the facet, and the further one;
    /// `places` are their positions in the cell.
    #[inline(always)]
    fn advance(
        &mut self,
        (facet, ends): (&Facet<F>, &[u32; F]),
        row: usize,
        corners: &[u32; MAX_CORNERS],
        places: &[usize; MAX_CORNERS],
    ) {
        // New facet i lacks corner i.
        let mut facets = [0; F];
        for facet in &mut facets {
            *facet = self.facets.reserve();
        }
        // The position of a corner in the facet that lacks another corner.
        let number = |corner: usize, without: usize| {
            places[corner] - usize::from(places[corner] > places[without])
        };
        for i in 0..F {
            // Written in place, because copying a struct that was written in parts stalls on these writes.
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
                    .connect(end(facets[i], number(F, i)), ends[i], around);
            }
        }
        for (new, across) in facets.iter().zip(ends) {
            let (other, apex) = self.facets.apex(*across);
            if *across != NONE && apex == corners[F] && self.facets[other].state == FacetState::Open
            {
                self.facets.remove(other);
                self.facets.join(*new, other);
            } else {
                self.insert(*new);
            }
        }
        self.enqueue(&facets);
    }

    /// Inserts a new facet into the table, or joins it with the open facet that has the same corners.
    #[inline(always)]
    fn insert(&mut self, facet: u32) {
        let corners = self.facets[facet].corners;
        if let Some(other) = self.facets.find(&corners) {
            self.facets.remove(other);
            self.facets.join(facet, other);
        } else {
            self.facets.insert(facet);
        }
    }

    /// Queues the new facets of a cell that are open, and frees the others.
    #[inline(always)]
    fn enqueue(&mut self, facets: &[u32]) {
        for facet in facets {
            if self.facets[*facet].state == FacetState::Open {
                self.queue.push_back(*facet);
            } else {
                self.facets.release(*facet);
            }
        }
    }
}

/// The corners across the ridges of a facet, sorted by likelihood.
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

/// The positions of the first highest and the first lowest rank.
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

/// For each corner of a cell, its position in the facet; F for the corner that the facet lacks.
fn arranged<const F: usize>(facet: &[u32; F], row: &[u32; MAX_CORNERS]) -> [u8; MAX_CORNERS] {
    let mut order = [F as u8; MAX_CORNERS];
    for (number, corner) in facet.iter().enumerate() {
        let mut places = row[..=F].iter().zip(&mut order);
        let free = places.find(|(of_row, which)| *of_row == corner && usize::from(**which) == F);
        if let Some((_, which)) = free {
            *which = number as u8;
        }
    }
    order
}
