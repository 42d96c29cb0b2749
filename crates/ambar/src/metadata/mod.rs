//! Zarr v3 metadata documents: parsed with every bound checked, and written.

mod array;
mod bare_numbers;
mod base64;
mod cache;
mod documents;
mod fill;
mod hierarchy;
mod lossy;
mod name;
mod node_documents;

pub(crate) use array::{ArrayMetadata, IndexLocation, KeyEncoding, Sharding};
pub(crate) use cache::MetadataCache;
pub(crate) use hierarchy::{Hierarchy, Tags, group_document, root_document, root_document_alone};
pub use lossy::lossy_attributes;
pub(crate) use lossy::{with_loss, without_loss};
pub(crate) use name::broken_rule as broken_rule_of_names;

/// Attributes of a group or an array: a JSON object.
pub type Attributes = serde_json::Map<String, serde_json::Value>;

/// The kind of a node of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A group, which contains other nodes.
    Group,
    /// An array.
    Array,
}
