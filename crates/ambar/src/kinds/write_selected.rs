//! Writes selected rows of tables and particles, encoded again.

use crate::error::Result;
use crate::kinds::bound::Compression;
use crate::kinds::particles::Particles;
use crate::kinds::select::Selection;
use crate::kinds::selected_rows::SelectedRows;
use crate::kinds::table::Table;
use crate::kinds::write;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

impl Table {
    /// Writes columns of the selected rows as a group of kind `table` at `path`, and `more` `ambar` attributes.
    ///
    /// # Errors
    /// As `read` and `write::table`.
    pub fn write_selected(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        columns: &[&str],
        selection: &Selection,
        more: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        let values = self.read(columns, selection)?;
        write::table(writer, path, &values, more, compression)
    }
}

impl Particles {
    /// Writes columns of the selected particles, which include the positions, as a group of kind `particles` at `path`,
    /// and `more` `ambar` attributes. Particles are read while they are written.
    ///
    /// # Errors
    /// As `read` and `write::particles`.
    pub fn write_selected(
        &self,
        writer: &mut StoreWriter,
        path: &str,
        columns: &[&str],
        selection: &Selection,
        more: Attributes,
        compression: &Compression,
    ) -> Result<()> {
        let mut types = Vec::new();
        for name in columns {
            types.push(((*name).to_owned(), self.dtype(name)?));
        }
        let read = |names: &[&str], selection: &Selection| self.read(names, selection);
        // One column is enough to count the selected rows.
        let counted = &columns[..columns.len().min(1)];
        let lengths = self.table().chunk_lengths();
        let rows = SelectedRows::new(selection, &lengths, &read, counted, |_| Ok(()))?;
        let columns = rows.columns(types);
        let (ndim, boxlen) = (self.ndim(), self.boxlen());
        write::streamed_particles(writer, path, &columns, ndim, boxlen, more, compression)
    }
}
