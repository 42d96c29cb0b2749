//! Parses the metadata documents of groups, including the root.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// The fields of a document that state the kind of its node.
#[derive(Deserialize)]
pub(super) struct KindDocument<'a> {
    #[serde(borrow)]
    pub node_type: Cow<'a, str>,
}

/// The fields of a group's document. If the root is an array, only the kind is read.
pub(super) struct GroupDocument<'a> {
    pub zarr_format: u64,
    pub node_type: Cow<'a, str>,
    pub attributes: Option<&'a RawValue>,
    pub consolidated: Option<Consolidated<'a>>,
    /// The fields of arrays.
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Consolidated metadata: the documents of all nodes, inside the root's document.
#[derive(Deserialize)]
pub(super) struct Consolidated<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    must_understand: bool,
    #[serde(borrow)]
    pub metadata: Documents<'a>,
}

/// The entries of a JSON object, unparsed, in order.
pub(super) struct Documents<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key of a JSON object, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl GroupDocument<'_> {
    /// The attributes' JSON.
    pub fn attributes(&self) -> &str {
        self.attributes.map_or("{}", RawValue::get)
    }

    /// Rejects unknown fields that must be understood.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn check_fields(&self) -> Result<()> {
        #[derive(Deserialize)]
        struct Extension {
            must_understand: bool,
        }
        for (name, value) in &self.others {
            let extension: Option<Extension> = serde_json::from_str(value.get()).ok();
            if extension.is_none_or(|extension| extension.must_understand) {
                return Err(Error::unsupported(format!(
                    "expected a group without unknown fields, found {name:?}, which must be understood; use a \
                     newer version of ambar"
                )));
            }
        }
        match &self.consolidated {
            Some(all) if all.kind != "inline" || all.must_understand => {
                let kind = &all.kind;
                Err(Error::unsupported(format!(
                    "expected consolidated metadata of the kind \"inline\", found {kind:?}; use a newer version \
                     of ambar"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for GroupDocument<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = GroupDocument<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a metadata document")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let (mut zarr_format, mut node_type) = (None, None);
        let (mut attributes, mut consolidated) = (None, None);
        let mut others = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            let twice = match &*key {
                "zarr_format" => zarr_format.replace(map.next_value()?).is_some(),
                "node_type" => {
                    let Key(kind) = map.next_value()?;
                    node_type.replace(kind).is_some()
                }
                "attributes" => attributes.replace(map.next_value()?).is_some(),
                "consolidated_metadata" => consolidated.replace(map.next_value()?).is_some(),
                _ => {
                    others.push((key, map.next_value()?));
                    continue;
                }
            };
            if twice {
                return Err(A::Error::custom(format!("duplicate field {key:?}")));
            }
        }
        Ok(GroupDocument {
            zarr_format: zarr_format.ok_or_else(|| A::Error::missing_field("zarr_format"))?,
            node_type: node_type.ok_or_else(|| A::Error::missing_field("node_type"))?,
            attributes: attributes.flatten(),
            consolidated: consolidated.flatten(),
            others,
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Documents<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Documents<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of metadata documents")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    entries.push((key, value));
                }
                Ok(Documents(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
