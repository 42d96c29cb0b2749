//! The small arrays of a level besides its fields: boxes, origins of unit blocks, and the index.

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::write::IndexArray;
use crate::store::StoreWriter;

/// A small array of a level besides its fields, always read as a whole.
pub(crate) struct LevelArray {
    pub name: &'static str,
    pub shape: Vec<u64>,
    pub dimensions: &'static [&'static str],
    pub values: LevelArrayValues,
}

pub(crate) enum LevelArrayValues {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

impl LevelArray {
    /// Writes it into the group of its level.
    pub fn write(&self, writer: &mut StoreWriter, group: &str) -> Result<()> {
        let path = format!("{group}/{}", self.name);
        let (dtype, bytes): (_, &[u8]) = match &self.values {
            LevelArrayValues::Integers(values) => (DataType::Int64, bytemuck::cast_slice(values)),
            LevelArrayValues::Floats(values) => (DataType::Float64, bytemuck::cast_slice(values)),
        };
        let array = IndexArray {
            dtype,
            shape: &self.shape,
            dimensions: self.dimensions,
            bytes,
        };
        array.write(writer, &path)
    }
}

/// Lower and upper corners, consecutive.
pub(super) fn corners(boxes: &[IndexBox], ndim: usize) -> Vec<i64> {
    let corners = boxes.iter().flat_map(|b| [b.lo, b.hi]);
    corners
        .flat_map(|corner| corner.into_iter().take(ndim))
        .collect()
}
