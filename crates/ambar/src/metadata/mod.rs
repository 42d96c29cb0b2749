//! Zarr v3 metadata documents: parsed with every bound checked, and written.

mod array;
mod base64;
mod fill;
mod hierarchy;

pub(crate) use array::{ArrayMetadata, IndexLocation, KeyEncoding, Sharding, checked_product};
pub(crate) use hierarchy::{Hierarchy, group_document, root_document};

/// Attributes of a group or an array: a JSON object.
pub type Attributes = serde_json::Map<String, serde_json::Value>;
