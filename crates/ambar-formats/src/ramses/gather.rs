//! Values of leaf cells: from the blocks of a domain's file straight into rows of columns.

use std::marker::PhantomData;

use ambar::{Column, Error, Result};

use super::Output;
use super::blocks::{BlockFile, Shape, Tile};
use super::cellfiles::{CellFiles, file_start};
use super::cells::{Buffers, Tree};
use super::fortran::FortranFile;

/// A column that several threads write, each to rows of its own.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    start: *mut u8,
    bytes: usize,
    column: PhantomData<&'a mut Column>,
}

// SAFETY: it stands for `&mut [u8]`; `rows` is unsafe and leaves it to its callers that no place
// is used by two threads.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl<'a> Target<'a> {
    /// Borrows the column.
    pub fn new(column: &'a mut Column) -> Self {
        let bytes = column.bytes_mut();
        Self {
            start: bytes.as_mut_ptr(),
            bytes: bytes.len(),
            column: PhantomData,
        }
    }

    /// The `count` values of `N` bytes from `row` on; `None` beyond the column's end.
    ///
    /// # Safety
    /// Nobody else may use these rows while the slice lives.
    #[inline]
    unsafe fn rows<const N: usize>(&self, row: u64, count: usize) -> Option<&'a mut [[u8; N]]> {
        let from = usize::try_from(row).ok()?.checked_mul(N)?;
        if from.checked_add(count * N)? > self.bytes {
            return None;
        }
        // SAFETY: inside the column, as just checked; arrays of bytes have no alignment; exclusive,
        // as the caller promises.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(from).cast(), count) })
    }
}

/// A component whose variables are wanted.
pub struct Source<'a> {
    output: &'a Output,
    files: &'a CellFiles,
    shape: Shape,
    /// Places of the wanted records in a block: cell by cell, variable by variable.
    records: Vec<usize>,
    /// The column of each variable.
    columns: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Reads these variables of `files`: place in the file (ascending), place of its column.
    pub fn new(output: &'a Output, files: &'a CellFiles, variables: &[(usize, usize)]) -> Self {
        let cells = 1 << output.mesh.ndim;
        let places = variables.iter().map(|(variable, _)| *variable);
        Self {
            output,
            files,
            shape: files.shape(output.mesh.ndim, output.fields_of(files.kind)),
            records: (0..cells)
                .flat_map(|cell| places.clone().map(move |v| cell * files.nvar + v))
                .collect(),
            columns: variables.iter().map(|(_, column)| *column).collect(),
        }
    }

    /// Reads the values of a domain's wanted cells into `targets`.
    ///
    /// # Safety
    /// Nobody else may use the rows of this domain's cells in the source's columns meanwhile.
    ///
    /// # Errors
    /// `Corrupt` where a record is not as expected; `NotFound`; `Io`.
    pub unsafe fn read(
        &self,
        tree: &Tree,
        domain: u64,
        targets: &[Target<'_>],
        buffers: &mut Buffers,
    ) -> Result<()> {
        let at = &tree.domains[domain as usize];
        if !at.wanted {
            return Ok(());
        }
        let path = self
            .output
            .folder
            .domain(file_start(self.files.kind), domain)?;
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
                // SAFETY: the caller's promise.
                let done = unsafe {
                    match self.files.real_bytes {
                        8 => self.scatter::<8>(tree, ids.start, tile, targets),
                        _ => self.scatter::<4>(tree, ids.start, tile, targets),
                    }
                };
                done.ok_or_else(|| Error::corrupt("more cells than counted"))
            })?;
        }
        buffers.window = blocks.file.into_buffer();
        Ok(())
    }

    /// Moves the values of a tile to their rows; `None` where a row is beyond its column.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn scatter<const N: usize>(
        &self,
        tree: &Tree,
        first: usize,
        tile: &Tile<'_>,
        targets: &[Target<'_>],
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
                    // SAFETY: the caller's promise.
                    let rows = unsafe { target.rows::<N>(tree.order.rows.only(id), cells)? };
                    for (row, values) in rows.iter_mut().zip(&values) {
                        *row = values[i];
                    }
                    continue;
                }
                for (cell, count, row) in tree.order.rows.runs(id, mask) {
                    // SAFETY: the caller's promise.
                    let rows = unsafe { target.rows::<N>(row, count)? };
                    for (row, values) in rows.iter_mut().zip(&values[cell..]) {
                        *row = values[i];
                    }
                }
            }
        }
        Some(())
    }
}

/// Writes the number of each cell's file (from 1) to `column` of `uint32`.
pub fn write_domains(tree: &Tree, column: &mut Column) {
    let column = column.values_mut::<u32>();
    for (number, domain) in (1..).zip(&tree.domains) {
        let end = tree
            .domains
            .get(number as usize)
            .map_or(tree.masks.len(), |next| next.first);
        for id in domain.first..end {
            for (_, count, row) in tree.order.rows.runs(id, tree.masks[id]) {
                column[row as usize..][..count].fill(number);
            }
        }
    }
}
