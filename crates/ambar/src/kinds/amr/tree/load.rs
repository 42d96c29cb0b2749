//! Loads cells of a tree into memory, as a tree again.

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::{AXES, AmrTree, Jump, LEVEL, Leaves, TreeShape};
use crate::kinds::morton;
use crate::kinds::select::{Selection, chunk_lengths};
use crate::memory::Column;

impl AmrTree {
    /// The number of cells of each chunk.
    pub fn chunk_lengths(&self) -> Vec<u64> {
        chunk_lengths(&*self.source)
    }

    /// The selected cells with some of the fields, as a tree in memory.
    ///
    /// # Errors
    /// As `cells`.
    pub fn load(&self, fields: &[&str], selection: &Selection) -> Result<Self> {
        if selection.is_all() {
            let leaves = self.leaves()?;
            return Self::from_leaves(leaves, self.cells(fields, selection)?);
        }
        let ndim = self.shape.ndim;
        let mut names = vec![LEVEL.to_owned()];
        names.extend(AXES[..ndim].iter().map(|axis| format!("i{axis}")));
        let columns = names
            .iter()
            .map(String::as_str)
            .chain(fields.iter().copied());
        let mut places = self.cells(&columns.collect::<Vec<_>>(), selection)?;
        let values = places.split_off(1 + ndim);
        let leaves = leaves_at(&self.shape, &places)?;
        Self::from_leaves(leaves, values)
    }

    /// The levels of all cells, and the gaps between them.
    fn leaves(&self) -> Result<Leaves> {
        let rows = self.source.rows();
        let mut levels = allocate(rows as usize)?;
        let chunk = self.source.chunk_rows().max(1);
        let parts = levels.bytes_mut().par_chunks_mut(chunk as usize);
        parts.enumerate().try_for_each(|(index, part)| {
            let start = index as u64 * chunk;
            self.source
                .read(LEVEL, start..start + part.len() as u64, part)
        })?;
        Ok(Leaves {
            ndim: self.shape.ndim,
            root: self.shape.root,
            boxlen: self.shape.boxlen,
            lattice_level: self.shape.lattice_level,
            levels,
            jumps: self.geometry()?.jumps.clone(),
        })
    }
}

fn allocate(rows: usize) -> Result<Column> {
    let column = Column::allocate(&[DataType::UInt8], rows)?.pop();
    column.ok_or_else(|| Error::limit("cannot allocate memory for levels"))
}

/// Leaves from their levels (int32) and indices on their levels (int64), in the order of the curve.
fn leaves_at(shape: &TreeShape, places: &[(String, Column)]) -> Result<Leaves> {
    let found = places[0].1.values::<i32>();
    let finest = found.par_iter().max().copied().unwrap_or(0) as u8;
    let mut levels = allocate(found.len())?;
    let mut jumps = Vec::new();
    let mut next = 0;
    for (row, to) in levels.bytes_mut().iter_mut().enumerate() {
        *to = found[row] as u8;
        let shift = u32::from(finest - *to);
        let corner = std::array::from_fn(|d| {
            let index = places
                .get(1 + d)
                .map_or(0, |(_, axis)| axis.values::<i64>()[row]);
            (index as u64) << shift
        });
        let key = morton::key(shape.ndim, &corner);
        if key != next {
            let row = row as u64;
            jumps.push(Jump { row, corner });
        }
        next = key + (1 << (shift as usize * shape.ndim));
    }
    Ok(Leaves {
        ndim: shape.ndim,
        root: shape.root,
        boxlen: shape.boxlen,
        lattice_level: finest,
        levels,
        jumps,
    })
}
