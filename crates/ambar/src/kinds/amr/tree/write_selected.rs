//! Writes selected cells of a tree as a tree.

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::{Jump, following_corner};
use crate::kinds::amr::{AmrTree, LEVEL, Leaves};
use crate::kinds::bound::Compression;
use crate::kinds::select::{Selection, chunk_lengths};
use crate::kinds::selected_rows::SelectedRows;
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

impl AmrTree {
    /// Writes the cells of `selection` with some fields as a group of kind `amr`, layout `tree`, at `path`, and `more`
    /// `ambar` attributes (`components`). Cells are read while they are written.
    ///
    /// # Errors
    /// As `cells` and `write`; `Invalid` if no cell is selected.
    pub fn write_selected(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        fields: &[&str],
        selection: &Selection,
        more: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        let mut columns = Vec::new();
        for field in fields {
            columns.push(((*field).to_owned(), self.dtype(field)?));
        }
        let read = |names: &[&str], selection: &Selection| self.cells(names, selection);
        let mut selected = SelectedLeaves::default();
        let names = ["level", "ix", "iy", "iz"];
        let rows = SelectedRows::new(
            selection,
            &chunk_lengths(&**self.source()),
            &read,
            &names[..=self.shape.ndim],
            |columns| {
                selected.add(self, columns);
                Ok(())
            },
        )?;
        if rows.len() == 0 {
            return Err(Error::invalid(
                "no cell is selected; choose a larger region, or other levels",
            ));
        }
        let leaves = selected.into_leaves(self)?;
        let columns = rows.columns(columns);
        Self::write_streamed(writer, path, &leaves, &columns, more, compression)
    }
}

/// Levels of selected cells, and the gaps between them along the curve.
#[derive(Default)]
struct SelectedLeaves {
    levels: Vec<u8>,
    jumps: Vec<Jump>,
    /// The corner at which the next cell is expected.
    next: [u64; 3],
}

impl SelectedLeaves {
    /// Adds cells, given by their levels and their indices on these.
    fn add(&mut self, tree: &AmrTree, columns: &[(String, Column)]) {
        let Some(((_, levels), indices)) = columns.split_first() else {
            return;
        };
        let indices: Vec<&[i64]> = indices.iter().map(|(_, index)| index.values()).collect();
        for (row, level) in levels.values::<i32>().iter().enumerate() {
            // The tree has been read with these levels, so they are in 0 to the level of the lattice.
            let level = u8::try_from(*level).unwrap_or(0);
            let shift = u32::from(tree.shape.lattice_level.saturating_sub(level));
            let index = |d: usize| indices.get(d).map_or(0, |index| index[row] as u64);
            let corner = [0, 1, 2].map(|d| index(d) << shift);
            if corner != self.next {
                let row = self.levels.len() as u64;
                self.jumps.push(Jump { row, corner });
            }
            self.next = following_corner(tree.shape.ndim, corner, shift);
            self.levels.push(level);
        }
    }

    /// The cells as leaves on the lattice of their finest level.
    fn into_leaves(mut self, tree: &AmrTree) -> Result<Leaves> {
        let shape = &tree.shape;
        let finest = self.levels.iter().max().copied().unwrap_or(0);
        let shift = shape.lattice_level.saturating_sub(finest);
        for jump in &mut self.jumps {
            jump.corner = jump.corner.map(|x| x >> shift);
        }
        let levels = Column::allocate(&[DataType::UInt8], self.levels.len())?.pop();
        let mut levels =
            levels.ok_or_else(|| Error::limit(format!("cannot allocate the column {LEVEL:?}")))?;
        levels.bytes_mut().copy_from_slice(&self.levels);
        Ok(Leaves {
            ndim: shape.ndim,
            root: shape.root,
            boxlen: shape.boxlen,
            lattice_level: finest,
            levels,
            jumps: self.jumps,
        })
    }
}
