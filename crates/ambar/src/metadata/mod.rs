//! Zarr v3 metadata documents: parsed with every bound checked, and written.

/// Attributes of a group or an array: a JSON object.
pub type Attributes = serde_json::Map<String, serde_json::Value>;
