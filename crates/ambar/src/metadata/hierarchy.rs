//! The metadata of a hierarchy: the root's document, and the documents of its nodes, parsed on demand.

use crc_fast::crc32_iscsi as crc32c;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Attributes;
use super::NodeKind;
use super::documents::{GroupDocument, KindDocument};
use super::node_documents::{ConsolidatedDocuments, NodeDocuments, SeparateDocuments, read_text};
use crate::container::Container;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The version of the format that this library writes, and the newest that it reads.
pub(crate) const FORMAT_VERSION: u64 = 1;

/// The digits of a checksum while it is computed.
const ZEROS: &str = "00000000";

/// The prefix of a checksum.
const PREFIX: &str = "crc32c:";

/// The documents of all nodes.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    root: Root,
    nodes: NodeDocuments,
    /// Names of commits.
    tags: Tags,
    /// Whether this library wrote it.
    ours: bool,
}

/// The numbers of commits, by the names that users gave them.
pub(crate) type Tags = BTreeMap<String, u64>;

#[derive(Debug)]
enum Root {
    Group(Attributes),
    /// The store is a single array, with this document.
    Array(String),
}

impl Hierarchy {
    /// Reads the root's document in `container`. Documents of other nodes that it lacks are read when they are needed.
    ///
    /// # Errors
    /// `NotFound` if it is not a Zarr v3 hierarchy; `Corrupt`, `Unsupported`, `Limit`, `Io`.
    pub fn read(container: Arc<dyn Container>, limits: &Limits) -> Result<Self> {
        let Some(text) = read_text(&*container, "zarr.json", limits)? else {
            return Err(Error::not_found(
                "expected a Zarr v3 hierarchy; zarr.json does not exist at the root",
            ));
        };
        let document: GroupDocument<'_> = serde_json::from_str(&text)
            .map_err(|error| Error::corrupt(format!("invalid metadata of the root: {error}")))?;
        if document.zarr_format != 3 {
            return Err(Error::unsupported(format!(
                "Zarr format {}",
                document.zarr_format
            )));
        }
        if document.node_type == "array" {
            let none = ConsolidatedDocuments::new(String::new(), Vec::new())?;
            return Ok(Self {
                root: Root::Array(text),
                nodes: NodeDocuments::Together(none),
                tags: Tags::new(),
                ours: false,
            });
        }
        let raw = document.attributes();
        let ours = verify_checksum(&text, raw)?;
        let mut attributes: Attributes = serde_json::from_str(raw)
            .map_err(|error| Error::corrupt(format!("invalid attributes: {error}")))?;
        let tags = match ours {
            true => take_own(&mut attributes)?,
            false => Tags::new(),
        };
        document.check_fields()?;
        let documents = document.consolidated.map(|all| all.metadata.0);
        // Other programs write empty consolidated metadata where they have not consolidated any.
        let documents = documents.filter(|documents| ours || !documents.is_empty());
        let nodes = match documents {
            None => {
                NodeDocuments::Separate(Box::new(SeparateDocuments::new(container, *limits, ours)))
            }
            Some(documents) => {
                let nodes = documents
                    .into_iter()
                    .map(|(name, document)| (name.into_owned(), place(&text, document.get())))
                    .collect();
                NodeDocuments::Together(ConsolidatedDocuments::new(text, nodes)?)
            }
        };
        let hierarchy = Self {
            root: Root::Group(attributes),
            nodes,
            tags,
            ours,
        };
        if ours && matches!(hierarchy.nodes, NodeDocuments::Together(_)) {
            let is_group = |name: &str| Ok(hierarchy.kind(name)? == Some(NodeKind::Group));
            hierarchy.nodes.names()?.check(is_group)?;
        }
        Ok(hierarchy)
    }

    /// True if this library wrote it. Its writers write all chunks: a missing chunk was lost.
    pub fn is_ours(&self) -> bool {
        self.ours
    }

    /// Names of commits.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Names of all nodes except the root (such as `amr/density`), each after its parents.
    ///
    /// # Errors
    /// `Corrupt` if a name is invalid; `Io`.
    pub fn names(&self) -> Result<impl Iterator<Item = &str>> {
        Ok(self.nodes.names()?.iter())
    }

    /// Names of the nodes in the group `name`, and whether these contain nodes.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn children(&self, name: &str) -> Result<Vec<(String, bool)>> {
        self.nodes.children(name)
    }

    /// The document of the node `name`. For the root, only if it is an array.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn document(&self, name: &str) -> Result<Option<Cow<'_, str>>> {
        match (&self.root, name) {
            (Root::Array(document), "") => Ok(Some(Cow::Borrowed(document))),
            (Root::Group(_), "") => Ok(None),
            _ => self.nodes.get(name),
        }
    }

    /// The kind of the node `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Self::document`].
    pub fn kind(&self, name: &str) -> Result<Option<NodeKind>> {
        if let (Root::Group(_), "") = (&self.root, name) {
            return Ok(Some(NodeKind::Group));
        }
        let Some(document) = self.document(name)? else {
            return Ok(None);
        };
        let KindDocument { node_type } = serde_json::from_str(&document)
            .map_err(|error| Error::corrupt(format!("invalid metadata: {error}")).at_node(name))?;
        match &*node_type {
            "group" => Ok(Some(NodeKind::Group)),
            "array" => Ok(Some(NodeKind::Array)),
            other => Err(Error::corrupt(format!(
                "expected a node of the type \"group\" or \"array\", found {other:?}"
            ))
            .at_node(name)),
        }
    }

    /// Attributes of the group `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Self::document`], and `Invalid` if it is an array.
    pub fn attributes(&self, name: &str) -> Result<Option<Attributes>> {
        if let (Root::Group(attributes), "") = (&self.root, name) {
            return Ok(Some(attributes.clone()));
        }
        let Some(document) = self.document(name)? else {
            return Ok(None);
        };
        let group: GroupDocument<'_> = serde_json::from_str(&document).map_err(|error| {
            Error::corrupt(format!("invalid metadata of a group: {error}")).at_node(name)
        })?;
        if group.zarr_format != 3 || group.node_type != "group" {
            let message = format!(
                "expected a group of Zarr 3, found Zarr {} {}",
                group.zarr_format, group.node_type
            );
            return Err(Error::invalid(message).at_node(name));
        }
        group.check_fields().map_err(|error| error.at_node(name))?;
        serde_json::from_str(group.attributes())
            .map(Some)
            .map_err(|error| Error::corrupt(format!("invalid attributes: {error}")).at_node(name))
    }
}

/// The range of `part` in `text`, which contains it.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// The range of the checksum's digits in `attributes`, the JSON of the root's attributes.
fn locate_checksum(attributes: &str) -> Result<Option<Range<usize>>> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow, default)]
        ambar: Option<Inner<'a>>,
    }
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow, default)]
        checksum: Option<&'a RawValue>,
    }
    let outer: Outer<'_> = serde_json::from_str(attributes)
        .map_err(|error| Error::corrupt(format!("invalid attribute `ambar`: {error}")))?;
    let Some(checksum) = outer.ambar.and_then(|inner| inner.checksum) else {
        return Ok(None);
    };
    checksum
        .get()
        .strip_prefix('"')
        .and_then(|quoted| quoted.strip_prefix(PREFIX))
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|digits| digits.len() == ZEROS.len())
        .map(|digits| Some(place(attributes, digits)))
        .ok_or_else(|| {
            Error::corrupt(format!(
                "{checksum} is not a valid checksum of the metadata"
            ))
        })
}

/// Verifies the checksum in `attributes`, a part of the root's document `text`. It covers the whole
/// document with its own digits replaced by zeros. Returns whether there is one.
fn verify_checksum(text: &str, attributes: &str) -> Result<bool> {
    let Some(digits) = locate_checksum(attributes)? else {
        return match holds_checksum(text) {
            // The checksum exists, but the keys that lead to it were damaged.
            true => Err(Error::corrupt(
                "the metadata's checksum is not where it belongs; restore the store from a copy",
            )),
            false => Ok(false),
        };
    };
    let stored = &attributes[digits];
    let place = place(text, stored);
    let actual = format!(
        "{:08x}",
        checksum_of(&text[..place.start], &text[place.end..])
    );
    if actual == stored {
        return Ok(true);
    }
    Err(Error::corrupt(format!(
        "expected the checksum {stored} of the metadata, found {actual}: zarr.json is damaged, or \
         another program has changed it; restore it from a copy"
    )))
}

/// Whether `text` contains a string in the form of a checksum.
fn holds_checksum(text: &str) -> bool {
    text.match_indices("\"crc32c:").any(|(start, prefix)| {
        let rest = &text.as_bytes()[start + prefix.len()..];
        rest.get(8) == Some(&b'"') && rest[..8].iter().all(u8::is_ascii_hexdigit)
    })
}

fn checksum_of(before: &str, after: &str) -> u32 {
    crc32c([before, ZEROS, after].concat().as_bytes())
}

/// Rejects newer versions. Removes the checksum and the tags, which are not attributes of the user, and returns the
/// tags.
fn take_own(attributes: &mut Attributes) -> Result<Tags> {
    let Some(Value::Object(ambar)) = attributes.get_mut("ambar") else {
        return Ok(Tags::new());
    };
    ambar.shift_remove("checksum");
    let tags = ambar.shift_remove("tags");
    match ambar.get("version").map(Value::as_u64) {
        Some(Some(1..=FORMAT_VERSION)) => {}
        Some(Some(version)) => {
            return Err(Error::unsupported(format!(
                "format version {version}; this version of ambar reads up to {FORMAT_VERSION}: use a \
             newer one"
            )));
        }
        _ => return Err(Error::corrupt("the root does not state its format version")),
    }
    let tags = tags.map(serde_json::from_value).transpose();
    tags.map(Option::unwrap_or_default)
        .map_err(|error| Error::corrupt(format!("the tags of the root are invalid: {error}")))
}

/// The document of a group.
pub(crate) fn group_document(attributes: &Attributes) -> Value {
    let mut document = json!({"zarr_format": 3, "node_type": "group"});
    if !attributes.is_empty() {
        document["attributes"] = json!(attributes);
    }
    document
}

/// The root's document: its attributes, with version and checksum, and the documents of all nodes.
///
/// # Errors
/// `Invalid` if the attribute `ambar` is not an object.
pub(crate) fn root_document<'a>(
    attributes: &Attributes,
    tags: &Tags,
    nodes: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<String> {
    let mut documents = String::from(
        ",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{",
    );
    for (index, (name, document)) in nodes.enumerate() {
        if index > 0 {
            documents.push(',');
        }
        documents.push_str(&Value::from(name).to_string());
        documents.push(':');
        documents.push_str(document);
    }
    documents.push_str("}}");
    root_with(attributes, tags, &documents)
}

/// The root's document without the documents of other nodes.
///
/// # Errors
/// As [`root_document`].
pub(crate) fn root_document_alone(attributes: &Attributes, tags: &Tags) -> Result<String> {
    root_with(attributes, tags, "")
}

fn root_with(attributes: &Attributes, tags: &Tags, documents: &str) -> Result<String> {
    let mut attributes = attributes.clone();
    let ambar = attributes.entry("ambar").or_insert_with(|| json!({}));
    let Value::Object(ambar) = ambar else {
        return Err(Error::invalid(
            "the root's attribute `ambar` must be an object",
        ));
    };
    ambar
        .entry("version")
        .or_insert_with(|| json!(FORMAT_VERSION));
    if !tags.is_empty() {
        ambar.insert("tags".to_owned(), json!(tags));
    }
    ambar.insert("checksum".to_owned(), json!(format!("{PREFIX}{ZEROS}")));
    let attributes = Value::Object(attributes).to_string();
    let start = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":";
    let mut text = format!("{start}{attributes}{documents}}}");
    let digits = locate_checksum(&attributes)?
        .map(|place| place.start + start.len()..place.end + start.len())
        .ok_or_else(|| Error::invalid("the root's attributes do not contain a checksum"))?;
    let checksum = checksum_of(&text[..digits.start], &text[digits.end..]);
    text.replace_range(digits, &format!("{checksum:08x}"));
    Ok(text)
}
