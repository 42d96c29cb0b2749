//! Updates arrays in part: writes declared arrays region by region, and extends arrays.

use ambar_codec::ErrorBound;
use serde_json::{Value, json};

use super::NodeKind;
use super::name_of;
use super::writer::StoreWriter;
use crate::array::{
    ArrayData, ArraySpec, Region, UNWRITTEN, WriteBatch, choose_region_codecs, empty_entry,
    entries, metadata_of,
};
use crate::container::{SharedEntry, SharedFileInfo, SharedObjectsInfo};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::metadata::ArrayMetadata;

impl StoreWriter {
    /// Creates an array of fill values, to be written with [`StoreWriter::write_region`]. An existing array
    /// is replaced.
    ///
    /// The first region that is written determines its codecs. A commit without one stores chunks of
    /// fill values, with the default codecs of the profile.
    ///
    /// # Errors
    /// `Invalid` if the spec contradicts itself, or the path is a group or passes through an array.
    pub fn declare(&mut self, path: &str, spec: &ArraySpec) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        if spec.block_origins.is_some() {
            let message =
                "arrays of unit blocks cannot be written in regions; write all blocks in one call";
            return Err(Error::invalid(message).at_node(name));
        }
        let metadata = metadata_of(spec).map_err(|error| error.at_node(name))?;
        self.declare_as(name, &metadata)?;
        if let Some(node) = self.nodes.get_mut(name) {
            node.spec = Some(spec.clone());
        }
        Ok(())
    }

    /// Creates an array of fill values with known codecs.
    pub(crate) fn declare_as(&mut self, name: &str, metadata: &ArrayMetadata) -> Result<()> {
        self.check_name(name, NodeKind::Array)?;
        let document = metadata.to_json().map_err(|error| error.at_node(name))?;
        for key in self.keys_below(name) {
            self.container.remove(&key)?;
            self.keys.remove(&key);
        }
        self.make_parents(name);
        self.insert(name, NodeKind::Array, document.to_string());
        self.fill_later(name);
        Ok(())
    }

    /// Makes the next commit write those chunks of an array that do not exist, with fill values.
    pub(super) fn fill_later(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.sparse = true;
        }
    }

    /// The data type and the shape of an array.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if the metadata of the array are invalid.
    pub fn type_and_shape(&self, path: &str) -> Result<(DataType, Vec<u64>)> {
        let metadata = self.array_metadata(name_of(path))?;
        Ok((metadata.dtype, metadata.shape))
    }

    /// The information that other processes need to write entries of declared arrays.
    pub(crate) fn share(&mut self) -> Result<SharedFileInfo> {
        self.container.share()
    }

    /// The information that other processes need to put objects of the arrays `names`; `None` if the store does not
    /// consist of objects.
    pub(crate) fn share_objects(&mut self, names: &[&str]) -> Result<Option<SharedObjectsInfo>> {
        self.container.share_objects(names)
    }

    /// Records the number of unwritten values in the attributes of an array.
    pub(crate) fn note_unwritten(&mut self, name: &str, values: u64) -> Result<()> {
        let mut attributes = self.array_metadata(name)?.attributes;
        let own = attributes.entry("ambar").or_insert_with(|| json!({}));
        let Value::Object(own) = own else {
            let message = "the attribute `ambar` must be an object; remove it, or make it one";
            return Err(Error::invalid(message).at_node(name));
        };
        own.insert(UNWRITTEN.into(), values.into());
        self.set_attributes(name, attributes)
    }

    /// Adopts entries that other processes have written; the next commit makes them visible. Processes may still write
    /// into the bytes of a file before `end`.
    pub(crate) fn adopt(&mut self, entries: Vec<SharedEntry>, end: u64) -> Result<()> {
        let keys: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
        self.container.adopt(entries, end)?;
        self.keys.extend(keys);
        Ok(())
    }

    /// Chooses the codecs of a declared array by sample values, an array of `shape`.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the array has values, or another number of dimensions than the sample.
    pub fn choose_codecs(&mut self, path: &str, shape: &[u64], data: ArrayData<'_>) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        let metadata = self.array_metadata(name)?;
        let spec = self.nodes.get(name).and_then(|node| node.spec.clone());
        let Some(mut spec) = spec.filter(|spec| spec.shape.len() == shape.len()) else {
            let message = format!(
                "expected a sample of {} dimensions for an array without values, found {}; pass the sample first",
                metadata.shape.len(),
                shape.len()
            );
            return Err(Error::invalid(message).at_node(name));
        };
        let sample = ArraySpec {
            shape: shape.to_vec(),
            ..spec.clone()
        };
        spec.codecs =
            Some(choose_region_codecs(&sample, data).map_err(|error| error.at_node(name))?);
        self.declare(name, &spec)
    }

    /// The document of an array, whose codecs no values change any more.
    pub(crate) fn final_document(&mut self, name: &str) -> Result<String> {
        self.array_metadata(name)?;
        let node = self.nodes.get_mut(name);
        Ok(node.map_or_else(String::new, |node| {
            node.spec = None;
            node.document.clone()
        }))
    }

    /// Writes a region of an array, `data` in C order. Chunks and shards that it covers in part are read,
    /// merged and written again, so regions should cover whole ones.
    /// In an array with an error bound, merged chunks are stored without loss, so that no value changes twice.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the region is outside of the array, or the data do not fit; `Corrupt` if the
    /// merged chunks are damaged; `Io`.
    pub fn write_region(&mut self, path: &str, region: &Region, data: ArrayData<'_>) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        let metadata = self.array_metadata(name)?;
        if !region.is_inside(&metadata.shape) {
            let message = format!(
                "the region of {:?} at {:?} is outside of an array of {:?}",
                region.shape, region.start, metadata.shape
            );
            return Err(Error::invalid(message).at_node(name));
        }
        self.update(name, metadata, region.clone(), data)
    }

    /// Appends `rows` rows to an array, along its first dimension.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a single value, or if the data do not fit; `Corrupt` if the last chunk is
    /// damaged; `Io`.
    pub fn append_rows(&mut self, path: &str, rows: u64, data: ArrayData<'_>) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        let mut metadata = self.array_metadata(name)?;
        let mut region = Region::all(&metadata.shape);
        let grown = metadata.shape.first_mut().and_then(|length| {
            region.start[0] = *length;
            region.shape[0] = rows;
            *length = length.checked_add(rows)?;
            Some(())
        });
        if grown.is_none() {
            return Err(without_rows().at_node(name));
        }
        self.update(name, metadata, region, data)
    }

    /// Makes an array longer along its first dimension, by rows that are written with `write_region`.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a single value.
    pub fn extend(&mut self, path: &str, rows: u64) -> Result<()> {
        self.container.check()?;
        let name = name_of(path);
        let mut metadata = self.array_metadata(name)?;
        let length = metadata.shape.first_mut();
        let grown = length.and_then(|length| {
            *length = length.checked_add(rows)?;
            Some(())
        });
        if grown.is_none() {
            return Err(without_rows().at_node(name));
        }
        let document = metadata.to_json().map_err(|error| error.at_node(name))?;
        if let Some(node) = self.nodes.get_mut(name) {
            node.document = document.to_string();
            node.changed = true;
            node.spec = node.spec.take().map(|spec| ArraySpec {
                shape: metadata.shape,
                ..spec
            });
        }
        self.fill_later(name);
        Ok(())
    }

    fn update(
        &mut self,
        name: &str,
        metadata: ArrayMetadata,
        region: Region,
        data: ArrayData<'_>,
    ) -> Result<()> {
        let spec = self.nodes.get(name).and_then(|node| node.spec.clone());
        // A region without values cannot decide the codecs.
        let spec = spec.filter(|_| !region.shape.contains(&0));
        let limits = self.limits;
        let batch = WriteBatch::region(name, metadata, spec.as_ref(), region, data, limits)?;
        // If this fails, some chunks may be new and others old.
        self.failed = true;
        let written = batch.write(&mut *self.container, self.observer.as_deref())?;
        for written in written {
            self.keys.extend(written.keys);
            if let Some(node) = self.nodes.get_mut(name) {
                node.changed |= node.document != written.document;
                node.document = written.document;
                node.spec = node.spec.take().filter(|_| spec.is_none());
            }
        }
        self.failed = false;
        Ok(())
    }

    /// Writes the entries of declared arrays that no region overlaps, so that arrays are complete.
    pub(super) fn fill_sparse(&mut self) -> Result<()> {
        let sparse = self.nodes.iter().filter(|(_, node)| node.sparse);
        let names: Vec<String> = sparse.map(|(name, _)| name.clone()).collect();
        for name in names {
            let metadata = self.array_metadata(&name)?;
            let (empty, seal) = empty_entry(&metadata).map_err(|error| error.at_node(&name))?;
            let mut is_stored = false;
            for key in entries(&name, &metadata) {
                is_stored = true;
                if self.keys.insert(key.clone()) {
                    self.container.put_sealed(&key, &[&empty], Some(seal))?;
                }
            }
            if let Some(node) = self.nodes.get_mut(&name) {
                node.sparse = false;
                // The codecs of stored chunks are final.
                node.spec = node.spec.take().filter(|_| !is_stored);
            }
        }
        Ok(())
    }

    /// The error bound of an array; `None` if it is lossless, or if its codecs are unknown.
    pub(super) fn array_bound(&self, name: &str) -> Option<ErrorBound> {
        self.array_metadata(name).ok()?.chain.error_bound()
    }

    fn array_metadata(&self, name: &str) -> Result<ArrayMetadata> {
        match self
            .nodes
            .get(name)
            .filter(|node| node.kind == NodeKind::Array)
        {
            None => Err(Error::not_found(format!(
                "array /{name} does not exist; check the path"
            ))),
            Some(node) => ArrayMetadata::parse(&node.document, &self.limits)
                .map_err(|error| error.at_node(name)),
        }
    }
}

fn without_rows() -> Error {
    Error::invalid("the array is a single value without rows, or has more rows than fit in 64 bits")
}
