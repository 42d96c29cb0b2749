//! Values of leaf cells: copied from the blocks of a domain's file into rows of columns.

use std::marker::PhantomData;
use std::ops::Range;

use ambar::{Column, Error, Result};

use super::buffers::ReadBuffers;
use super::leaf_tree::{LeafTree, RowRange};
use super::plan::VariableColumn;
use crate::ramses::files::blocks::{BlockFile, BlockShape, Tile};
use crate::ramses::files::cell_files::CellFiles;
use crate::ramses::files::fortran::FortranFile;
use crate::ramses::output::Output;

/// A column that several threads write, each to different rows.
#[derive(Clone, Copy)]
pub struct SharedColumn<'a> {
    start: *mut u8,
    bytes: usize,
    column: PhantomData<&'a mut Column>,
}

// SAFETY: the pointer comes from a `&mut [u8]` whose borrow lives as long as `'a`, and bytes can be
// sent to another thread. All access goes through `rows`, whose callers promise that no other thread
// uses the same rows.
unsafe impl Send for SharedColumn<'_> {}
// SAFETY: a shared reference gives access only through the unsafe `rows`, whose callers promise that
// no two threads use the same rows. Safe code can only copy the pointer and the length.
unsafe impl Sync for SharedColumn<'_> {}

impl<'a> SharedColumn<'a> {
    /// Borrows the column.
    pub fn new(column: &'a mut Column) -> Self {
        let bytes = column.bytes_mut();
        Self {
            start: bytes.as_mut_ptr(),
            bytes: bytes.len(),
            column: PhantomData,
        }
    }

    /// The `count` values of `N` bytes from `row` on; `None` if they exceed the column.
    ///
    /// # Safety
    /// No other reference to these rows may be used while the slice lives.
    #[inline]
    pub unsafe fn rows<const N: usize>(&self, row: u64, count: usize) -> Option<&'a mut [[u8; N]]> {
        let from = usize::try_from(row).ok()?.checked_mul(N)?;
        if from.checked_add(count * N)? > self.bytes {
            return None;
        }
        // SAFETY: the bytes from `from` to `from + count * N` are inside the column, which the check
        // above establishes. `[u8; N]` has alignment 1 and no invalid values. The caller promises
        // that the rows are not used otherwise while the slice lives.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(from).cast(), count) })
    }
}

/// Reads variables of one component.
pub struct ComponentReader<'a> {
    output: &'a Output,
    files: &'a CellFiles,
    shape: BlockShape,
    /// Indices of the wanted records in a block: cell by cell, variable by variable.
    records: Vec<usize>,
    /// The column of each variable.
    columns: Vec<usize>,
}

impl<'a> ComponentReader<'a> {
    /// A reader of `variables` (ascending) of `files`.
    pub fn new(output: &'a Output, files: &'a CellFiles, variables: &[VariableColumn]) -> Self {
        let cells = 1 << output.mesh.ndim;
        let indices = variables.iter().map(|variable| variable.variable);
        Self {
            output,
            files,
            shape: files.shape(output.mesh.ndim, output.fields(files.kind)),
            records: (0..cells)
                .flat_map(|cell| indices.clone().map(move |v| cell * files.nvar + v))
                .collect(),
            columns: variables.iter().map(|variable| variable.column).collect(),
        }
    }

    /// Reads the values of those of a domain's wanted cells that are among `rows` into `targets`, whose first
    /// row is the first of `rows`.
    ///
    /// # Safety
    /// Until this returns, no other reference to the rows of this domain's cells in the component's
    /// columns may be used.
    ///
    /// # Errors
    /// `Corrupt` for an unexpected record; `NotFound`; `Io`.
    pub unsafe fn read(
        &self,
        tree: &LeafTree,
        domain: u64,
        rows: &RowRange,
        targets: &[SharedColumn<'_>],
        buffers: &mut ReadBuffers,
    ) -> Result<()> {
        let at = &tree.domains[domain as usize];
        let has_rows = |ids: Range<usize>| {
            let mut runs = ids.flat_map(|id| tree.order.rows.runs(id, tree.masks[id]));
            runs.any(|run| !rows.overlap(run.row, run.count).is_empty())
        };
        let mut first = at.first;
        let mut blocks_with_rows = Vec::new();
        for (index, (level, parts)) in at.levels.iter().zip(&at.parts).enumerate() {
            let ids = first..first + level.own as usize;
            first = ids.end;
            if parts.touch(rows) && has_rows(ids.clone()) {
                blocks_with_rows.push((index, ids.start));
            }
        }
        if blocks_with_rows.is_empty() {
            return Ok(());
        }
        let path = self
            .output
            .folder
            .domain(self.files.kind.file_prefix(), domain)?;
        let mut file = FortranFile::open(&path, std::mem::take(&mut buffers.window))?;
        let start = self.files.start(&mut file, &self.output.mesh)?;
        let mut blocks = BlockFile::new(file, &self.shape, start, &at.levels, None)?;
        for (index, first) in blocks_with_rows {
            blocks.read(index, &self.records, &mut buffers.block, &mut |tile| {
                // SAFETY: the rows of these octs belong to this domain, whose rows the caller promises
                // not to use otherwise until this returns.
                let done = unsafe {
                    match self.files.real_bytes {
                        8 => self.scatter::<8>(tree, first, tile, rows, targets),
                        _ => self.scatter::<4>(tree, first, tile, rows, targets),
                    }
                };
                done.ok_or_else(|| {
                    Error::corrupt(
                        "the file holds more cells than its header counts; copy the output again",
                    )
                })
            })?;
        }
        buffers.window = blocks.file.into_buffer();
        Ok(())
    }

    /// Copies those values of a tile that are among `range` to their rows; `None` if a row exceeds its column.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn scatter<const N: usize>(
        &self,
        tree: &LeafTree,
        first: usize,
        tile: &Tile<'_>,
        range: &RowRange,
        targets: &[SharedColumn<'_>],
    ) -> Option<()> {
        let cells = 1usize << self.output.mesh.ndim;
        let full = ((1u16 << cells) - 1) as u8;
        for (variable, column) in self.columns.iter().enumerate() {
            let target = &targets[*column];
            let values: [&[[u8; N]]; 8] = std::array::from_fn(|cell| {
                let record = (cell % cells) * self.columns.len() + variable;
                tile.record(record).as_chunks().0
            });
            for (i, oct) in tile.octs.clone().enumerate() {
                let id = first + oct;
                let mask = tree.masks[id];
                let row = tree.order.rows.single_run(id);
                let is_within = row >= range.rows.start && row + cells as u64 <= range.rows.end;
                if mask == full && is_within {
                    // SAFETY: these are the `cells` rows of this oct, which the caller promises not to use
                    // otherwise; the slice dies in this iteration.
                    let rows = unsafe { target.rows::<N>(row - range.rows.start, cells)? };
                    for (row, values) in rows.iter_mut().zip(&values) {
                        *row = values[i];
                    }
                    continue;
                }
                for run in tree.order.rows.runs(id, mask) {
                    let common = range.overlap(run.row, run.count);
                    if common.is_empty() {
                        continue;
                    }
                    let cell = run.cell + (common.start - run.row) as usize;
                    let count = (common.end - common.start) as usize;
                    let first = common.start - range.rows.start;
                    // SAFETY: runs of an oct are disjoint rows of its wanted cells, which the caller
                    // promises not to use otherwise; the slice dies in this iteration.
                    let rows = unsafe { target.rows::<N>(first, count)? };
                    for (row, values) in rows.iter_mut().zip(&values[cell..]) {
                        *row = values[i];
                    }
                }
            }
        }
        Some(())
    }
}

/// Writes the number of the domain (from 1) of each of the cells `rows` to `column` of `uint32`.
pub fn write_domain_numbers(tree: &LeafTree, rows: &RowRange, column: &mut Column) {
    let column = column.values_mut::<u32>();
    for (number, domain) in (1..).zip(&tree.domains) {
        if !domain.touches(rows) {
            continue;
        }
        let end = tree
            .domains
            .get(number as usize)
            .map_or(tree.masks.len(), |next| next.first);
        for id in domain.first..end {
            for run in tree.order.rows.runs(id, tree.masks[id]) {
                let common = rows.overlap(run.row, run.count);
                if !common.is_empty() {
                    let first = (common.start - rows.rows.start) as usize;
                    column[first..][..(common.end - common.start) as usize].fill(number);
                }
            }
        }
    }
}
