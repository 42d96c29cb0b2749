//! Reading cells: first the tree of wanted leaves, then the values of each component.

use ambar::kinds::amr::Leaves;
use ambar::{Column, Result};
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::gather::{self, ComponentReader, SharedColumn};
use super::leaf_tree::{self, FirstPass, LeafTree};
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
        let ReadPlan {
            names,
            dtypes,
            components,
        } = ReadPlan::new(self, request)?;
        let files = self.mesh.ncpu * (1 + components.len() as u64);
        let counter = ProgressCounter::new(request.progress, files);
        let FirstPass {
            tree,
            leaves,
            mut columns,
        } = leaf_tree::read(self, request, dtypes, &counter)?;
        read_values(self, &tree, &components, &mut columns, &counter)?;
        if let Some(column) = columns.last_mut().filter(|_| request.domain) {
            gather::write_domain_numbers(&tree, column);
        }
        Ok(LeafCells {
            leaves,
            columns: names.into_iter().zip(columns).collect(),
        })
    }
}

/// Reads the tree alone. `read_fields` reads fields of its leaves later.
///
/// # Errors
/// As `Output::read_cells`.
pub fn read_leaves(output: &Output, request: &CellsRequest<'_>) -> Result<(LeafTree, Leaves)> {
    let counter = ProgressCounter::new(request.progress, output.mesh.ncpu);
    let read = leaf_tree::read(output, request, Vec::new(), &counter)?;
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
    read_values(output, tree, &plan.components, &mut columns, &counter)?;
    Ok(columns)
}

/// The second pass: reads the values of every component and domain into the columns.
fn read_values(
    output: &Output,
    tree: &LeafTree,
    components: &[ComponentPlan<'_>],
    columns: &mut [Column],
    counter: &ProgressCounter<'_>,
) -> Result<()> {
    let targets: Vec<SharedColumn> = columns.iter_mut().map(SharedColumn::new).collect();
    let readers: Vec<ComponentReader> = components
        .iter()
        .map(|plan| ComponentReader::new(output, plan.files, &plan.variables))
        .collect();
    let tasks: Vec<(usize, u64)> = (0..output.mesh.ncpu)
        .flat_map(|domain| (0..readers.len()).map(move |reader| (reader, domain)))
        .collect();
    tasks
        .into_par_iter()
        .try_for_each_init(ReadBuffers::default, |buffers, (reader, domain)| {
            // SAFETY: `targets` borrow the columns until the end of this function. Each column
            // belongs to one component, each cell to one domain, and `CellOrder` has a distinct row
            // for every cell: no two tasks write the same bytes.
            unsafe { readers[reader].read(tree, domain, &targets, buffers)? };
            counter.add(1)
        })
}
