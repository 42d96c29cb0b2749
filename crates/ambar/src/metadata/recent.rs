//! Array metadata parsed lately, by text: the arrays of a table mostly share theirs to the letter.

use std::sync::{Arc, Mutex};

use super::ArrayMetadata;
use crate::error::Result;
use crate::limits::Limits;

/// Texts that are kept. Comparing with all of them takes far less time than parsing one.
const KEPT: usize = 8;

/// The metadata parsed last, the latest at the end.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Vec<(String, Arc<ArrayMetadata>)>>);

impl Recent {
    /// The metadata that `document` describes.
    ///
    /// # Errors
    /// As [`ArrayMetadata::parse`]; what is wrong is not kept.
    pub(crate) fn parse(&self, document: &str, limits: &Limits) -> Result<Arc<ArrayMetadata>> {
        // Never waits, and a poisoned lock is no reason to fail: parsing anew is always right.
        if let Ok(kept) = self.0.try_lock()
            && let Some((_, metadata)) = kept.iter().find(|(text, _)| text == document)
        {
            return Ok(Arc::clone(metadata));
        }
        let metadata = Arc::new(ArrayMetadata::parse(document, limits)?);
        if let Ok(mut kept) = self.0.try_lock() {
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push((document.to_owned(), Arc::clone(&metadata)));
        }
        Ok(metadata)
    }
}
