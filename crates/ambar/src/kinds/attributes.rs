//! The attributes under the key `ambar` that state the kind of a group.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::metadata::Attributes;
use crate::store::Store;

/// The key of the attributes of this library among the attributes of a group.
pub const KEY: &str = "ambar";

/// The version of the kinds that this library writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// Attributes of a group of `kind`: `{"ambar": {"version", "kind", ...more}}`.
pub(crate) fn group(kind: &str, more: Attributes) -> Attributes {
    let mut own = Attributes::new();
    own.insert("version".into(), json!(VERSION));
    own.insert("kind".into(), json!(kind));
    own.extend(more);
    let mut attributes = Attributes::new();
    attributes.insert(KEY.into(), Value::Object(own));
    attributes
}

/// The kind of the group at `path`: `snapshot`, `series`, `amr`, `particles`, `table`; `None` for a
/// plain group.
///
/// # Errors
/// `NotFound`, `Corrupt`, `Io`.
pub fn kind(store: &Store, path: &str) -> Result<Option<String>> {
    let group = store.group(path)?;
    let kind = group.attributes().get(KEY).and_then(|own| own.get("kind"));
    Ok(kind.and_then(Value::as_str).map(str::to_owned))
}

/// The `ambar` attributes of the group at `path`, which must be one of `kinds`.
///
/// # Errors
/// `NotFound` if the group does not exist; `Invalid` if it is of another kind; `Unsupported`
/// if a newer version wrote it; `Corrupt`, `Io`.
pub fn of_kind(store: &Store, path: &str, kinds: &[&str]) -> Result<Attributes> {
    let group = store.group(path)?;
    let located = |error: Error| Err(error.at_node(path).in_file(store.location()));
    let expected = kinds.join(" or ");
    let Some(Value::Object(own)) = group.attributes().get(KEY) else {
        return located(Error::invalid(format!(
            "expected a group of the kind {expected}, found a plain group"
        )));
    };
    let found = own.get("kind").and_then(Value::as_str).unwrap_or("?");
    if !kinds.contains(&found) {
        return located(Error::invalid(format!(
            "expected a group of the kind {expected}, found {found:?}"
        )));
    }
    match own.get("version").and_then(Value::as_u64) {
        Some(1..=VERSION) => Ok(own.clone()),
        version => located(Error::unsupported(format!(
            "expected a version of the kind {found:?} up to {VERSION}, found {version:?}; use a newer \
             version of ambar"
        ))),
    }
}

/// The list of names under `key`.
pub(crate) fn names(attributes: &Attributes, key: &str) -> Result<Vec<String>> {
    let list = attributes.get(key).and_then(Value::as_array);
    let names = list.and_then(|list| {
        list.iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect()
    });
    names.ok_or_else(|| {
        Error::corrupt(format!(
            "expected a list of names in the attribute {key:?}; restore the file from a copy"
        ))
    })
}
