//! The root cells of the box: RAMSES's coarse cells without those of boundary regions.

use ambar::Result;
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::domain::read_domain;
use crate::ramses::files::amr;
use crate::ramses::output::{Output, RootCells};
use crate::ramses::tree::lattice::{Lattice, LevelRange};
use crate::ramses::tree::morton_key::MortonKey;
use crate::ramses::tree::octs::CellFilter;

impl Output {
    /// For each dimension, whether the box is periodic: it is if no boundary cells surround it.
    ///
    /// # Errors
    /// As `root`.
    pub fn periodic(&self) -> Result<Vec<bool>> {
        let root = self.root()?;
        let is_periodic = |d: usize| self.mesh.coarse[d] == root[d];
        Ok((0..self.mesh.ndim).map(is_periodic).collect())
    }

    /// Root cells in each dimension: RAMSES's coarse cells without those of boundary regions.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the octs of level 1 must be read to find them, and cannot be.
    pub fn root(&self) -> Result<[u64; 3]> {
        Ok(root_cells(self)?.count)
    }
}

/// The root cells. Runs with boundary regions need level 1 of every amr file; the result is kept.
///
/// # Errors
/// As `Output::root`.
pub fn root_cells(output: &Output) -> Result<RootCells> {
    if output.mesh.coarse == [1; 3] {
        return Ok(RootCells {
            count: [1; 3],
            first: [0; 3],
        });
    }
    if let Some(found) = output.root.get() {
        return Ok(*found);
    }
    let found = find_root_cells(output)?;
    Ok(*output.root.get_or_set(found))
}

/// The coarse cells that hold the octs of level 1 which domains own.
fn find_root_cells(output: &Output) -> Result<RootCells> {
    let mesh = &output.mesh;
    let coarse = Lattice {
        ndim: mesh.ndim,
        root: mesh.coarse,
        shift: [0; 3],
        level: 1,
        side: 1.0,
    };
    let filter = CellFilter {
        levels: LevelRange {
            first: 1,
            last: 1,
            deepest: 1,
        },
        region: None,
    };
    let shape = amr::block_shape(mesh);
    let domains =
        (0..mesh.ncpu)
            .into_par_iter()
            .map_init(ReadBuffers::default, |buffers, domain| {
                let read = read_domain::<u128>(output, domain, &shape, &coarse, &filter, buffers)?;
                let octs = read.octs.octs.iter();
                Ok(octs
                    .map(|oct| oct.key.shift_down(mesh.ndim as u32).decode(mesh.ndim))
                    .collect())
            });
    let domains: Vec<Vec<[u64; 3]>> = domains.collect::<Result<_>>()?;
    let corners = || domains.iter().flatten();
    let first: [u64; 3] =
        std::array::from_fn(|d| corners().map(|at| at[d]).min().unwrap_or_default());
    let last: [u64; 3] =
        std::array::from_fn(|d| corners().map(|at| at[d]).max().unwrap_or_default());
    Ok(RootCells {
        count: std::array::from_fn(|d| last[d] - first[d] + 1),
        first,
    })
}
