//! A cache of the values of boxes.

use std::sync::{Arc, Mutex};

use super::hierarchy::IndexBox;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::memory::Column;
use crate::process::PerProcess;

/// The values of one field on the boxes of one level, each read on first access.
pub(crate) struct BoxCache {
    slots: Vec<Slot>,
}

/// A box: the size of its values in bytes, and the values once they are read.
struct Slot {
    bytes: usize,
    values: PerProcess<Mutex<Option<Arc<Column>>>>,
}

impl BoxCache {
    /// A cache for values of `size` bytes.
    pub fn new(boxes: &[IndexBox], size: usize) -> Self {
        let slot = |index_box: &IndexBox| Slot {
            bytes: index_box.cells() * size,
            values: PerProcess::new(),
        };
        Self {
            slots: boxes.iter().map(slot).collect(),
        }
    }

    /// The bytes of a box that was read.
    pub fn kept(&self, place: usize) -> Option<Arc<Column>> {
        self.slots.get(place)?.values.lock().clone()
    }

    /// The bytes of a box; on first access `read` reads them. Concurrent callers that need the same
    /// box wait.
    ///
    /// # Errors
    /// What `read` returns; `Limit` if there is no memory.
    pub fn get(
        &self,
        place: usize,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Arc<Column>> {
        let slot = self.slots.get(place);
        let slot = slot.ok_or_else(|| Error::not_found(format!("box {place} does not exist")))?;
        let mut known = slot.values.lock();
        if let Some(values) = &*known {
            return Ok(Arc::clone(values));
        }
        let column = Column::allocate(&[DataType::UInt8], slot.bytes)?.pop();
        let mut column = column.ok_or_else(|| Error::limit("cannot allocate memory for a box"))?;
        read(column.bytes_mut())?;
        let values = Arc::new(column);
        *known = Some(Arc::clone(&values));
        Ok(values)
    }
}
