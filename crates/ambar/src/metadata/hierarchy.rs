//! The metadata documents of all nodes of a hierarchy in one string, indexed by node and parsed on
//! demand.

use crc_fast::crc32_iscsi as crc32c;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::NodeKind;
use super::documents::{GroupDocument, KindDocument};
use super::{Attributes, name};
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
    text: String,
    /// Names (such as `amr/density`, without the root) and the ranges of their documents, in the order of
    /// the file.
    nodes: Vec<(Box<str>, Range<usize>)>,
    /// Indices into `nodes`, sorted by name.
    sorted: Vec<u32>,
    root: Root,
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
    /// The store is a single array, whose document is the text.
    Array,
}

impl Hierarchy {
    /// Reads the documents in `container`: the root's, if it has consolidated metadata, otherwise the documents of
    /// all nodes.
    ///
    /// # Errors
    /// `NotFound` if it is not a Zarr v3 hierarchy; `Corrupt`, `Unsupported`, `Limit`, `Io`.
    pub fn read(container: &dyn Container, limits: &Limits) -> Result<Self> {
        let Some(text) = read_text(container, "zarr.json", limits)? else {
            return Err(Error::not_found(
                "expected a Zarr v3 hierarchy; zarr.json does not exist at the root",
            ));
        };
        let (hierarchy, is_complete) = Self::parse(text)?;
        if is_complete {
            return Ok(hierarchy);
        }
        hierarchy.with_nodes_of(container, limits)
    }

    /// Parses the root's document `text` and verifies its checksum if it has one. Returns whether it has the documents
    /// of all nodes, too.
    fn parse(text: String) -> Result<(Self, bool)> {
        let document: GroupDocument<'_> = serde_json::from_str(&text)
            .map_err(|error| Error::corrupt(format!("invalid metadata of the root: {error}")))?;
        if document.zarr_format != 3 {
            return Err(Error::unsupported(format!(
                "Zarr format {}",
                document.zarr_format
            )));
        }
        if document.node_type == "array" {
            let hierarchy = Self {
                text,
                nodes: Vec::new(),
                sorted: Vec::new(),
                root: Root::Array,
                tags: Tags::new(),
                ours: false,
            };
            return Ok((hierarchy, true));
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
        let (documents, is_consolidated) = match document.consolidated {
            Some(consolidated) => (consolidated.metadata.0, true),
            None => (Vec::new(), false),
        };
        let is_complete = if ours {
            is_consolidated
        } else {
            !documents.is_empty()
        };
        let nodes = documents
            .into_iter()
            .map(|(name, document)| (Box::from(name), place(&text, document.get())))
            .collect();
        let hierarchy = Self {
            text: String::new(),
            nodes,
            sorted: Vec::new(),
            root: Root::Group(attributes),
            tags,
            ours,
        }
        .sorted(text)?;
        if ours {
            hierarchy.check_nodes()?;
        }
        Ok((hierarchy, is_complete))
    }

    /// Adds the documents of all nodes in `container` to a root without consolidated metadata.
    fn with_nodes_of(mut self, container: &dyn Container, limits: &Limits) -> Result<Self> {
        let mut text = std::mem::take(&mut self.text);
        let keys = container.keys()?;
        let mut names: Vec<&str> = keys
            .iter()
            .filter_map(|key| key.strip_suffix("/zarr.json"))
            .collect();
        // A group precedes what it contains.
        names.sort_unstable();
        for name in names {
            let key = format!("{name}/zarr.json");
            let Some(document) = read_text(container, &key, limits)? else {
                continue;
            };
            let start = text.len();
            text.push_str(&document);
            Limits::check("metadata", text.len() as u64, limits.metadata_bytes)?;
            self.nodes.push((name.into(), start..text.len()));
        }
        let hierarchy = self.sorted(text)?;
        if hierarchy.ours {
            hierarchy.check_nodes()?;
        }
        Ok(hierarchy)
    }

    fn sorted(mut self, text: String) -> Result<Self> {
        self.text = text;
        let count = u32::try_from(self.nodes.len())
            .map_err(|_| Error::limit("a hierarchy has at most 2^32 nodes"))?;
        self.sorted = (0..count).collect();
        let nodes = &self.nodes;
        let name = |index: &u32| &*nodes[*index as usize].0;
        self.sorted.sort_by(|a, b| name(a).cmp(name(b)));
        if let Some(duplicate) = self
            .sorted
            .windows(2)
            .find(|pair| name(&pair[0]) == name(&pair[1]))
        {
            return Err(Error::corrupt("two documents of one node").at_node(name(&duplicate[0])));
        }
        Ok(self)
    }

    /// Checks that every node has a valid name and follows its parent group.
    fn check_nodes(&self) -> Result<()> {
        // The parent of the previous node: most often it is also the parent of this one.
        let mut group = "";
        for (order, (name, _)) in self.nodes.iter().enumerate() {
            if let Some(rule) = name::broken_rule(name) {
                return Err(Error::corrupt(format!("the name of a node {rule}")).at_node(name));
            }
            let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
            let is_group = parent == group
                || parent.is_empty()
                || (self.find(parent).is_some_and(|found| found < order)
                    && self.kind(parent)? == Some(NodeKind::Group));
            if !is_group {
                return Err(
                    Error::corrupt("expected the group of the node before the node").at_node(name),
                );
            }
            group = parent;
        }
        Ok(())
    }

    /// True if this library wrote it. Its writers write all chunks: a missing chunk was lost.
    pub fn is_ours(&self) -> bool {
        self.ours
    }

    /// Names of commits.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Names of all nodes except the root, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|(name, _)| &**name)
    }

    /// Names of the children of `name`, in the order of the file.
    pub fn children(&self, name: &str) -> Vec<&str> {
        let prefix = if name.is_empty() {
            String::new()
        } else {
            format!("{name}/")
        };
        let node = |index: &u32| &*self.nodes[*index as usize].0;
        let first = self
            .sorted
            .partition_point(|index| node(index) < prefix.as_str());
        let mut children: Vec<u32> = self.sorted[first..]
            .iter()
            .copied()
            .take_while(|index| node(index).starts_with(&prefix))
            .filter(|index| !node(index)[prefix.len()..].contains('/'))
            .collect();
        children.sort_unstable();
        children
            .iter()
            .map(|index| &*self.nodes[*index as usize].0)
            .collect()
    }

    /// The document of the node `name`. For the root, only if it is an array.
    pub fn document(&self, name: &str) -> Option<&str> {
        if name.is_empty() {
            return matches!(self.root, Root::Array).then_some(self.text.as_str());
        }
        let (_, place) = &self.nodes[self.find(name)?];
        self.text.get(place.clone())
    }

    /// The index in `nodes` of the node `name`.
    fn find(&self, name: &str) -> Option<usize> {
        let node = |index: &u32| &*self.nodes[*index as usize].0;
        let found = self
            .sorted
            .binary_search_by(|index| node(index).cmp(name))
            .ok()?;
        Some(self.sorted[found] as usize)
    }

    /// The kind of the node `name`; `None` if it does not exist.
    pub fn kind(&self, name: &str) -> Result<Option<NodeKind>> {
        let document = match (&self.root, name) {
            (Root::Group(_), "") => return Ok(Some(NodeKind::Group)),
            _ => self.document(name),
        };
        let Some(document) = document else {
            return Ok(None);
        };
        let KindDocument { node_type } = serde_json::from_str(document)
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
    pub fn attributes(&self, name: &str) -> Result<Option<Attributes>> {
        if let (Root::Group(attributes), "") = (&self.root, name) {
            return Ok(Some(attributes.clone()));
        }
        let Some(document) = self.document(name) else {
            return Ok(None);
        };
        let group: GroupDocument<'_> = serde_json::from_str(document).map_err(|error| {
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

fn read_text(container: &dyn Container, key: &str, limits: &Limits) -> Result<Option<String>> {
    let Some(bytes) = container.read_whole(key, limits.metadata_bytes)? else {
        return Ok(None);
    };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Error::corrupt(format!("{key} is not UTF-8; restore the file from a copy")))
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
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
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
