//! Values of leaf cells: copied from the blocks of a domain's file into rows of columns.

use std::marker::PhantomData;

use ambar::{Column, Error, Result};

use super::buffers::ReadBuffers;
use super::leaf_tree::LeafTree;
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
    unsafe fn rows<const N: usize>(&self, row: u64, count: usize) -> Option<&'a mut [[u8; N]]> {
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

    /// Reads the values of a domain's wanted cells into `targets`.
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
        targets: &[SharedColumn<'_>],
        buffers: &mut ReadBuffers,
    ) -> Result<()> {
        let at = &tree.domains[domain as usize];
        if !at.has_wanted {
            return Ok(());
        }
        let path = self
            .output
            .folder
            .domain(self.files.kind.file_prefix(), domain)?;
        let mut file = FortranFile::open(&path, std::mem::take(&mut buffers.window))?;
        let start = self.files.start(&mut file, &self.output.mesh)?;
        let mut blocks = BlockFile::new(file, &self.shape, start, &at.levels, None)?;
        let mut first = at.first;
        for (index, level) in at.levels.iter().take(usize::from(tree.last)).enumerate() {
            let ids = first..first + level.own as usize;
            first = ids.end;
            if tree.masks[ids.clone()].iter().all(|mask| *mask == 0) {
                continue;
            }
            blocks.read(index, &self.records, &mut buffers.block, &mut |tile| {
                // SAFETY: the rows of these octs belong to this domain, whose rows the caller promises
                // not to use otherwise until this returns.
                let done = unsafe {
                    match self.files.real_bytes {
                        8 => self.scatter::<8>(tree, ids.start, tile, targets),
                        _ => self.scatter::<4>(tree, ids.start, tile, targets),
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

    /// Copies the values of a tile to their rows; `None` if a row exceeds its column.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn scatter<const N: usize>(
        &self,
        tree: &LeafTree,
        first: usize,
        tile: &Tile<'_>,
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
                if mask == full {
                    // SAFETY: `single_run` is the first of the `cells` rows of this oct, which the
                    // caller promises not to use otherwise; the slice dies in this iteration.
                    let rows = unsafe { target.rows::<N>(tree.order.rows.single_run(id), cells)? };
                    for (row, values) in rows.iter_mut().zip(&values) {
                        *row = values[i];
                    }
                    continue;
                }
                for run in tree.order.rows.runs(id, mask) {
                    // SAFETY: runs of an oct are disjoint rows of its wanted cells, which the caller
                    // promises not to use otherwise; the slice dies in this iteration.
                    let rows = unsafe { target.rows::<N>(run.row, run.count)? };
                    for (row, values) in rows.iter_mut().zip(&values[run.cell..]) {
                        *row = values[i];
                    }
                }
            }
        }
        Some(())
    }
}

/// Writes the number of each cell's domain (from 1) to `column` of `uint32`.
pub fn write_domain_numbers(tree: &LeafTree, column: &mut Column) {
    let column = column.values_mut::<u32>();
    for (number, domain) in (1..).zip(&tree.domains) {
        let end = tree
            .domains
            .get(number as usize)
            .map_or(tree.masks.len(), |next| next.first);
        for id in domain.first..end {
            for run in tree.order.rows.runs(id, tree.masks[id]) {
                column[run.row as usize..][..run.count].fill(number);
            }
        }
    }
}
