//! Writes patches to a store: for each level the boxes, the origins of unit blocks, the fields, and
//! the index.

pub(super) mod covered;
pub(super) mod decision;
pub(super) mod fields;
pub(super) mod gather;
mod level_arrays;
mod options;
pub(super) mod plan;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::{PatchAmr, PatchSource};
use crate::kinds::attributes;
use crate::memory;
use crate::store::StoreWriter;
use fields::chosen_fields;
use plan::PatchWritePlan;

pub use covered::Covered;
pub use options::{PatchOptions, Progress};

impl PatchAmr {
    /// Writes a group of kind `amr`, layout `patches`, at `path`. Boxes are read in parallel and
    /// encoded on the current rayon pool; one window of a field is in memory at a time, and
    /// boxes at the border of two windows are read in parts. With [`Covered::Auto`] covered cells and the cells
    /// that cover them are read twice.
    ///
    /// # Errors
    /// As `from_source`; `NotFound` for a field that does not exist; `Invalid` for an error bound of values
    /// that are not floats; the errors of the source; `Io`.
    pub fn write(
        writer: &mut StoreWriter,
        path: &str,
        source: &dyn PatchSource,
        options: &PatchOptions,
    ) -> Result<()> {
        let path = path.trim_end_matches('/');
        let nest = Arc::new(Nest::new(source.hierarchy().clone())?);
        let fields = chosen_fields(&nest, source, options)?;
        let plan = PatchWritePlan::new(&nest, source, fields, options)?;
        writer.group(
            path,
            attributes::group("amr", plan.attributes(&options.more)),
        )?;
        if let Some(progress) = &options.progress {
            let (progress, total) = (Arc::clone(progress), plan.bytes());
            let done = AtomicU64::new(0);
            writer.observe(Some(Arc::new(move |bytes| {
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                // Index arrays and boxes are not counted in the total.
                progress(done.min(total), total)
            })));
        }
        for level in 0..nest.levels() {
            plan.write_level(
                writer,
                &format!("{path}/level_{level}"),
                source,
                level,
                options,
            )?;
        }
        // The buffers of the windows are larger than those of later reads.
        memory::release_cached();
        if options.progress.is_some() {
            writer.observe(None);
        }
        Ok(())
    }
}
