//! Reading cells: first the tree of wanted leaves, then the values of each component.

use std::ops::Range;

use ambar::kinds::amr::Leaves;
use ambar::kinds::streamed::StreamedColumns;
use ambar::{Column, Result};
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::gather::{self, ComponentReader, SharedColumn};
use super::leaf_tree::{self, FirstPass, LeafTree, RowRange};
use super::plan::{ComponentPlan, ReadPlan};
use super::request::{CellsRequest, LeafCells};
use crate::progress::ProgressCounter;
use crate::ramses::output::Output;

impl Output {
    /// Reads leaf cells, on the threads of the current rayon pool.
    ///
    /// # Errors
    /// `NotFound` for a field or component that does not exist; `Invalid` for a region of other
    /// dimensions, or a first level above the last; `Corrupt` if a file is damaged, truncated or
    /// contradicts another, or cells are missing; `Limit` if the columns do not fit into memory;
    /// `Io`.
    pub fn read_cells(&self, request: &CellsRequest<'_>) -> Result<LeafCells> {
        let cells = LeafCellReader::new(self, request)?;
        let rows = cells.rows();
        let mut columns = Column::allocate(&cells.plan.dtypes, rows)?;
        let all: Vec<usize> = (0..columns.len()).collect();
        cells.read(&all, 0..rows, &mut columns, &cells.counter)?;
        Ok(LeafCells {
            leaves: cells.leaves,
            columns: cells.plan.names.into_iter().zip(columns).collect(),
        })
    }
}

/// Leaf cells whose tree is in memory, and whose values can be read in parts.
pub struct LeafCellReader<'a> {
    /// Positions and levels of the cells.
    pub leaves: Leaves,
    output: &'a Output,
    plan: ReadPlan<'a>,
    tree: LeafTree,
    has_domain: bool,
    counter: ProgressCounter<'a>,
}

impl<'a> LeafCellReader<'a> {
    /// Reads the tree.
    ///
    /// # Errors
    /// As `Output::read_cells`.
    pub fn new(output: &'a Output, request: &CellsRequest<'a>) -> Result<Self> {
        let plan = ReadPlan::new(output, request)?;
        let files = output.mesh.ncpu * (1 + plan.components.len() as u64);
        let counter = ProgressCounter::new(request.progress, files);
        let FirstPass { tree, leaves } = leaf_tree::read(output, request, &counter)?;
        Ok(Self {
            leaves,
            output,
            plan,
            tree,
            has_domain: request.domain,
            counter,
        })
    }

    fn rows(&self) -> usize {
        self.leaves.levels.rows()
    }

    /// The columns, which are read while they are written.
    pub fn columns(&self) -> StreamedColumns<'_> {
        let names = self.plan.names.iter().cloned();
        StreamedColumns {
            columns: names.zip(self.plan.dtypes.iter().cloned()).collect(),
            rows: self.rows(),
            read: Box::new(|columns, rows, out| {
                self.read(columns, rows, out, &ProgressCounter::new(None, 0))
            }),
        }
    }

    /// Reads rows of `columns` into `out`.
    ///
    /// # Errors
    /// As `Output::read_cells`.
    fn read(
        &self,
        columns: &[usize],
        rows: Range<usize>,
        out: &mut [Column],
        counter: &ProgressCounter<'_>,
    ) -> Result<()> {
        let rows = RowRange::new(rows, self.rows());
        let domain = self.has_domain.then(|| self.plan.names.len() - 1);
        if let Some(place) = columns.iter().position(|column| Some(*column) == domain) {
            gather::write_domain_numbers(&self.tree, &rows, &mut out[place]);
        }
        let components = self.plan.components_of(columns);
        read_values(self.output, &self.tree, &components, &rows, out, counter)
    }
}

/// Reads the tree alone. `read_fields` reads fields of its leaves later.
///
/// # Errors
/// As `Output::read_cells`.
pub fn read_leaves(output: &Output, request: &CellsRequest<'_>) -> Result<(LeafTree, Leaves)> {
    let counter = ProgressCounter::new(request.progress, output.mesh.ncpu);
    let read = leaf_tree::read(output, request, &counter)?;
    Ok((read.tree, read.leaves))
}

/// Reads fields of the `rows` leaves of `tree`.
///
/// # Errors
/// As `Output::read_cells`.
pub fn read_fields(
    output: &Output,
    tree: &LeafTree,
    rows: usize,
    names: &[&str],
) -> Result<Vec<Column>> {
    let request = CellsRequest {
        fields: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..CellsRequest::default()
    };
    let plan = ReadPlan::new(output, &request)?;
    let mut columns = Column::allocate(&plan.dtypes, rows)?;
    let files = output.mesh.ncpu * plan.components.len() as u64;
    let counter = ProgressCounter::new(None, files);
    let rows = RowRange::new(0..rows, rows);
    read_values(
        output,
        tree,
        &plan.components,
        &rows,
        &mut columns,
        &counter,
    )?;
    Ok(columns)
}

/// The second pass: reads the values of every component and domain into `rows` of the columns.
fn read_values(
    output: &Output,
    tree: &LeafTree,
    components: &[ComponentPlan<'_>],
    rows: &RowRange,
    columns: &mut [Column],
    counter: &ProgressCounter<'_>,
) -> Result<()> {
    let targets: Vec<SharedColumn> = columns.iter_mut().map(SharedColumn::new).collect();
    let readers: Vec<ComponentReader> = components
        .iter()
        .map(|plan| ComponentReader::new(output, plan.files, &plan.variables))
        .collect();
    let tasks: Vec<(usize, u64)> = (0..output.mesh.ncpu)
        .filter(|domain| tree.domains[*domain as usize].touches(rows))
        .flat_map(|domain| (0..readers.len()).map(move |reader| (reader, domain)))
        .collect();
    let skipped = output.mesh.ncpu * readers.len() as u64 - tasks.len() as u64;
    if skipped > 0 {
        counter.add(skipped)?;
    }
    tasks
        .into_par_iter()
        .try_for_each_init(ReadBuffers::default, |buffers, (reader, domain)| {
            // SAFETY: `targets` borrow the columns until the end of this function. Each column
            // belongs to one component, each cell to one domain, and `CellOrder` has a distinct row
            // for every cell: no two tasks write the same bytes.
            unsafe { readers[reader].read(tree, domain, rows, &targets, buffers)? };
            counter.add(1)
        })
}
