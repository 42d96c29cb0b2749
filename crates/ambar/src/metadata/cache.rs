//! A cache of recently parsed array metadata, by document: the arrays of a table mostly have equal documents.

use std::sync::{Arc, Mutex};

use super::ArrayMetadata;
use crate::error::Result;
use crate::limits::Limits;

/// Number of cached strings. Comparing with all of them takes far less time than parsing one.
const CACHED: usize = 8;

/// The most recently parsed metadata, the latest at the end.
#[derive(Default)]
pub(crate) struct MetadataCache(Mutex<Vec<(String, Arc<ArrayMetadata>)>>);

impl MetadataCache {
    /// The metadata that `document` describes.
    ///
    /// # Errors
    /// As [`ArrayMetadata::parse`]; invalid documents are not cached.
    pub(crate) fn parse(&self, document: &str, limits: &Limits) -> Result<Arc<ArrayMetadata>> {
        // This never waits, and ignores a poisoned lock: parsing again is always correct.
        if let Ok(cached) = self.0.try_lock()
            && let Some((_, metadata)) = cached.iter().find(|(key, _)| key == document)
        {
            return Ok(Arc::clone(metadata));
        }
        let metadata = Arc::new(ArrayMetadata::parse(document, limits)?);
        if let Ok(mut cached) = self.0.try_lock() {
            if cached.len() == CACHED {
                cached.remove(0);
            }
            cached.push((document.to_owned(), Arc::clone(&metadata)));
        }
        Ok(metadata)
    }
}
