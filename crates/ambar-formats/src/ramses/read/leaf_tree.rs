//! The first pass of a read of cells: the octs of all domains, sorted into one tree of wanted leaves.

use std::ops::Range;

use ambar::kinds::amr::Leaves;
use ambar::{Column, DataType, Error, Result};
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::domain::{DomainOcts, read_domain};
use super::plan;
use super::request::CellsRequest;
use super::root::root_cells;
use crate::progress::ProgressCounter;
use crate::ramses::files::amr;
use crate::ramses::files::blocks::LevelBlocks;
use crate::ramses::output::Output;
use crate::ramses::tree::cell_order::{self, CellOrder};
use crate::ramses::tree::hilbert::{self, HilbertDomains};
use crate::ramses::tree::lattice::Lattice;
use crate::ramses::tree::morton_key::MortonKey;
use crate::ramses::tree::octs::{CellFilter, Oct, RegionFilter};
use crate::ramses::tree::region_bounds::RegionBounds;

/// One domain after the first pass.
pub struct TreeDomain {
    /// For each level, where the domain's own block is.
    pub levels: Vec<LevelBlocks>,
    /// The id of its first oct.
    pub first: usize,
    /// For each level, the parts of all rows that have wanted cells of the domain's own block.
    pub parts: Vec<RowParts>,
}

impl TreeDomain {
    /// True if any of the domain's cells may be among `rows`.
    pub fn touches(&self, rows: &RowRange) -> bool {
        self.parts.iter().any(|parts| parts.touch(rows))
    }
}

/// Parts of the rows of a read: a bit for each 64th of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowParts(u64);

impl RowParts {
    /// Adds the rows from `row` on.
    pub fn add(&mut self, row: u64, count: usize, total: u64) {
        let (first, last) = (part(row, total), part(row + count as u64 - 1, total));
        self.0 |= u64::MAX << first & u64::MAX >> (63 - last);
    }

    /// False if none of `rows` is in these parts.
    pub fn touch(self, rows: &RowRange) -> bool {
        self.0 & rows.parts.0 != 0
    }
}

/// The part of a row.
fn part(row: u64, total: u64) -> u32 {
    (row / total.div_ceil(64).max(1)).min(63) as u32
}

/// Consecutive rows of a read.
#[derive(Clone, Debug)]
pub struct RowRange {
    /// The rows.
    pub rows: Range<u64>,
    parts: RowParts,
}

impl RowRange {
    /// Some of `total` rows.
    pub fn new(rows: Range<usize>, total: usize) -> Self {
        let mut parts = RowParts::default();
        if !rows.is_empty() {
            parts.add(rows.start as u64, rows.len(), total as u64);
        }
        let rows = rows.start as u64..rows.end as u64;
        Self { rows, parts }
    }

    /// The common rows of this range and the `count` rows from `row` on.
    #[inline]
    pub fn overlap(&self, row: u64, count: usize) -> Range<u64> {
        row.max(self.rows.start)..(row + count as u64).min(self.rows.end)
    }
}

/// The tree of wanted cells.
pub struct LeafTree {
    /// The domains, in order.
    pub domains: Vec<TreeDomain>,
    /// For each oct by its id, a bit mask of its wanted cells.
    pub masks: Vec<u8>,
    /// The rows of the wanted cells.
    pub order: CellOrder,
}

/// The result of the first pass.
pub struct FirstPass {
    /// The tree.
    pub tree: LeafTree,
    /// Positions and levels of the leaves.
    pub leaves: Leaves,
}

/// Reads the tree of wanted cells.
///
/// # Errors
/// As `Output::read_cells`.
pub fn read(
    output: &Output,
    request: &CellsRequest<'_>,
    counter: &ProgressCounter<'_>,
) -> Result<FirstPass> {
    let mesh = &output.mesh;
    if let Some(region) = &request.region {
        region.check(mesh.ndim)?;
    }
    let levels = plan::levels(output, request)?;
    let lattice = lattice(output, levels.last)?;
    let filter = CellFilter {
        levels,
        region: request.region.as_ref().map(|region| RegionFilter {
            region,
            bounds: RegionBounds::new(region, &lattice),
        }),
    };
    let bits = mesh.ndim as u32 * lattice.coordinate_bits();
    let (mut tree, levels) = if bits <= u64::BITS {
        read_with_keys::<u64>(output, &lattice, &filter, counter)?
    } else if bits <= u128::BITS && lattice.coordinate_bits() <= 62 {
        read_with_keys::<u128>(output, &lattice, &filter, counter)?
    } else {
        return Err(Error::unsupported(format!(
            "level {} in {} dimensions needs Morton keys of {bits} bits; expected at most 128 (62 \
             in each dimension); set a lower maximum level",
            lattice.level, mesh.ndim
        )));
    };
    let leaves = leaves(&lattice, &mut tree.order, levels, mesh.boxlen);
    Ok(FirstPass { tree, leaves })
}

/// The lattice whose cells are those of `level`.
fn lattice(output: &Output, level: u8) -> Result<Lattice> {
    let mesh = &output.mesh;
    let root = root_cells(output)?;
    Ok(Lattice {
        ndim: mesh.ndim,
        root: root.count,
        shift: root.first,
        level,
        side: mesh.boxlen / root.count[0] as f64,
    })
}

/// The first pass with Morton keys of type `K`. Returns the tree and the levels of the leaves.
fn read_with_keys<K: MortonKey>(
    output: &Output,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
    counter: &ProgressCounter<'_>,
) -> Result<(LeafTree, Column)> {
    let mut needed = domains_needed(output, lattice, filter);
    let read = loop {
        let read: Vec<_> = read_domains::<K>(output, lattice, filter, needed.as_deref(), counter)?;
        let covered = read.iter().map(|domain| domain.octs.covered).sum();
        match check_coverage(output, filter, covered) {
            Ok(()) => break read,
            // The Hilbert curve excluded a domain that holds cells of the region: read all domains.
            Err(error) => {
                needed.take().ok_or(error)?;
                counter.extend_total(output.mesh.ncpu);
            }
        }
    };
    let total: usize = read.iter().map(|domain| domain.octs.masks.len()).sum();
    if u32::try_from(total).is_err() {
        return Err(Error::limit(format!(
            "the selection has {total} octs; expected at most {}; read a region or fewer levels",
            u32::MAX
        )));
    }
    let kept = read.iter().map(|domain| domain.octs.octs.len()).sum();
    let mut all: Vec<Oct<K>> = Vec::with_capacity(kept);
    let mut masks = Vec::with_capacity(total);
    let mut domains = Vec::with_capacity(read.len());
    for DomainOcts { octs, levels } in read {
        let first = masks.len();
        let renumbered = octs.octs.into_iter().map(|oct| Oct {
            id: oct.id + first as u32,
            ..oct
        });
        all.extend(renumbered);
        masks.extend(octs.masks);
        domains.push(TreeDomain {
            levels,
            first,
            parts: Vec::new(),
        });
    }
    if needed.is_none() {
        check_totals(output, &domains, filter)?;
    }
    all.par_sort_unstable_by_key(|oct| (oct.key, oct.level));
    let rows = masks.iter().map(|mask| mask.count_ones() as usize).sum();
    let mut levels = Column::allocate(&[DataType::UInt8], rows)?.remove(0);
    let is_complete = filter.region.is_none();
    let order = cell_order::assign_rows(&all, &masks, lattice, is_complete, levels.bytes_mut())
        .map_err(|error| error.in_file(output.folder.path.display()))?;
    drop(all);
    domains.par_iter_mut().for_each(|domain| {
        let mut first = domain.first;
        let last = usize::from(filter.levels.last);
        for level in domain.levels.iter().take(last) {
            let mut parts = RowParts::default();
            let ids = first..first + level.own as usize;
            first = ids.end;
            for id in ids {
                for run in order.rows.runs(id, masks[id]) {
                    parts.add(run.row, run.count, rows as u64);
                }
            }
            domain.parts.push(parts);
        }
    });
    let tree = LeafTree {
        domains,
        masks,
        order,
    };
    Ok((tree, levels))
}

/// A flag for each domain: whether it can hold cells of the region. `None` to read all domains.
fn domains_needed(
    output: &Output,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
) -> Option<Vec<bool>> {
    let mesh = &output.mesh;
    let region = filter.region.as_ref()?.region;
    if mesh.coarse != [1; 3] || output.bounds.len() as u64 != mesh.ncpu + 1 {
        return None;
    }
    let levels = u32::try_from(mesh.nlevelmax + 1).ok()?;
    // A level whose cells are all refined has no leaves, unless it is the last one read.
    let is_refined = |octs: &&[u64]| octs[1] == octs[0].saturating_mul(1 << mesh.ndim);
    let refined = mesh.totals.windows(2).take_while(is_refined).count() as u32;
    let domains = HilbertDomains {
        bounds: &output.bounds,
        ndim: mesh.ndim,
        levels,
        coarsest: (refined + 1).min(u32::from(filter.levels.last)),
        side: lattice.side,
    };
    hilbert::domains_touching(region, &domains)
}

/// The octs that every domain needed owns; the others get an empty entry.
fn read_domains<K: MortonKey>(
    output: &Output,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
    needed: Option<&[bool]>,
    counter: &ProgressCounter<'_>,
) -> Result<Vec<DomainOcts<K>>> {
    let shape = amr::block_shape(&output.mesh);
    let domains = (0..output.mesh.ncpu).into_par_iter();
    let read = domains.map_init(ReadBuffers::default, |buffers, domain| {
        let read = if needed.is_none_or(|needed| needed[domain as usize]) {
            read_domain(output, domain, &shape, lattice, filter, buffers)?
        } else {
            DomainOcts::default()
        };
        counter.add(1)?;
        Ok(read)
    });
    read.collect()
}

/// Checks that the domains' octs add up to the totals in the headers.
fn check_totals(output: &Output, domains: &[TreeDomain], filter: &CellFilter<'_>) -> Result<()> {
    for (index, total) in output.mesh.totals.iter().enumerate() {
        let own: u64 = domains.iter().map(|domain| domain.levels[index].own).sum();
        if own != *total && index < usize::from(filter.levels.last) {
            return Err(Error::corrupt(format!(
                "expected {total} octs of level {} according to the headers, found {own} in the \
                 amr files: files of different outputs are mixed, or one is damaged; copy the \
                 output again",
                index + 1
            ))
            .in_file(output.folder.path.display()));
        }
    }
    Ok(())
}

/// Checks that the leaves cover the bounds of the region.
fn check_coverage(output: &Output, filter: &CellFilter<'_>, covered: u128) -> Result<()> {
    let region = filter.region.as_ref();
    let expected = region.map_or(0, |filter| filter.bounds.volume());
    if covered == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the leaf cells do not fill the region: expected {expected} cells of the finest level, \
         found {covered}; files of the output are missing or damaged: copy it again"
    ))
    .in_file(output.folder.path.display()))
}

fn leaves(lattice: &Lattice, order: &mut CellOrder, levels: Column, boxlen: f64) -> Leaves {
    let finest = if order.finest == 0 {
        lattice.level
    } else {
        order.finest
    };
    let coarser = lattice.level - finest;
    let mut jumps = std::mem::take(&mut order.jumps);
    for jump in &mut jumps {
        jump.corner = jump.corner.map(|x| x >> coarser);
    }
    Leaves {
        ndim: lattice.ndim,
        root: lattice.root,
        boxlen,
        lattice_level: finest,
        levels,
        jumps,
    }
}
