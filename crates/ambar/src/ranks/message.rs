//! The messages between ranks, as bytes.

use serde::{Deserialize, Serialize};

use super::output::Placement;
use crate::array::Region;
use crate::container::{SharedEntry, SharedFileInfo};
use crate::error::{Error, ErrorKind, Result};

/// The invitation that rank 0 sends to the other ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Invitation {
    /// The version of the library, so that all ranks divide arrays equally.
    pub version: String,
    pub ranks: u32,
    pub share: SharedFileInfo,
    pub alignment: u64,
    pub extent: u64,
    pub reserved: bool,
    pub threads: usize,
    pub queue: Option<u64>,
}

impl Invitation {
    pub fn placement(&self) -> Placement {
        match self.reserved {
            true => Placement::Reserved,
            false => Placement::Counter,
        }
    }
}

/// A reported range of values: its index, and the bits of both ends, because JSON has no infinity.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ReportedRange {
    #[serde(rename = "i")]
    pub index: u64,
    #[serde(rename = "b")]
    pub bits: [u64; 2],
}

/// The index that a rank sends to rank 0: its entries, or its failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RankIndex {
    pub failure: Option<Failure>,
    pub entries: Vec<SharedEntry>,
    /// Number of values that the rank wrote, for each array.
    pub written: Vec<u64>,
    /// Ranges of its values, by declaration.
    pub ranges: Vec<Vec<ReportedRange>>,
}

/// The outcome that rank 0 sends to all ranks: the first free byte of the file, or a failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub failure: Option<Failure>,
    pub next: u64,
}

/// An error that is sent to other ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    kind: u8,
    text: String,
    /// Whether values from another rank caused it: then different definitions may be the reason.
    pub received: bool,
}

const KINDS: [ErrorKind; 9] = [
    ErrorKind::Corrupt,
    ErrorKind::Unsupported,
    ErrorKind::Invalid,
    ErrorKind::NotFound,
    ErrorKind::Exists,
    ErrorKind::Busy,
    ErrorKind::Limit,
    ErrorKind::Interrupted,
    ErrorKind::Io,
];

impl Failure {
    pub fn new(error: &Error) -> Self {
        let kind = KINDS.iter().position(|kind| *kind == error.kind());
        Self {
            kind: kind.unwrap_or(KINDS.len()) as u8,
            text: error.to_string(),
            received: false,
        }
    }

    /// An error in values from another rank.
    pub fn received(error: &Error) -> Self {
        let mut failure = Self::new(error);
        failure.received = true;
        failure
    }

    /// The error, of a rank if it is known.
    pub fn of_rank(mut self, rank: usize) -> Self {
        self.text = format!("rank {rank}: {}", self.text);
        self
    }

    /// The error of later calls.
    pub fn again(&self) -> Error {
        let mut error = self.clone();
        error.text = format!(
            "this writer has failed before and can only be closed; then append to the last commit. It \
             failed with: {}",
            self.text
        );
        error.error()
    }

    pub fn error(&self) -> Error {
        let kind = KINDS.get(usize::from(self.kind)).copied();
        Error::new(kind.unwrap_or(ErrorKind::Io), self.text.clone())
    }
}

impl RankIndex {
    /// Encodes the length of the rank's definitions, the definitions, and the index.
    pub fn encode(&self, definitions: &[u8]) -> Result<Vec<u8>> {
        let len = (definitions.len() as u64).to_le_bytes();
        let index = encode(self)?;
        Ok([&len[..], definitions, &index].concat())
    }

    /// Decodes the index and the definitions.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let parts = word(bytes).and_then(|(len, rest)| rest.split_at_checked(len as usize));
        let (definitions, index) = parts.ok_or_else(|| {
            Error::invalid("the index of a rank is too short; pass the messages unchanged")
        })?;
        Ok((decode(index, "index of a rank")?, definitions))
    }
}

pub(super) fn encode<T: Serialize + ?Sized>(message: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(message).map_err(|error| {
        Error::invalid(format!(
            "a message between ranks cannot be encoded: {error}"
        ))
    })
}

pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::invalid(format!(
            "not a valid {what}: {error}; pass the messages unchanged"
        ))
    })
}

/// Values of a shard that another rank owns.
pub(super) struct Piece<'a> {
    pub array: u32,
    pub region: Region,
    pub values: &'a [u8],
}

impl Piece<'_> {
    /// Appends the piece to a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let lengths = [
            u64::from(self.array),
            self.region.start.len() as u64,
            self.values.len() as u64,
        ];
        let words = lengths
            .iter()
            .chain(&self.region.start)
            .chain(&self.region.shape);
        out.extend(words.flat_map(|word| word.to_le_bytes()));
        out.extend_from_slice(self.values);
    }
}

/// The pieces of a message.
pub(super) fn pieces(mut bytes: &[u8]) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = piece(bytes).ok_or_else(|| {
            Error::invalid(
                "expected values from another rank, found other bytes; pass the messages unchanged",
            )
        })?;
        pieces.push(piece);
        bytes = rest;
    }
    Ok(pieces)
}

fn piece(bytes: &[u8]) -> Option<(Piece<'_>, &[u8])> {
    let (array, bytes) = word(bytes)?;
    let (dimensions, bytes) = word(bytes)?;
    let (len, mut bytes) = word(bytes)?;
    let mut words = Vec::new();
    for _ in 0..dimensions.checked_mul(2)? {
        let (next, rest) = word(bytes)?;
        words.push(next);
        bytes = rest;
    }
    let shape = words.split_off(dimensions as usize);
    let (values, rest) = bytes.split_at_checked(len as usize)?;
    let piece = Piece {
        array: u32::try_from(array).ok()?,
        region: Region {
            start: words,
            shape,
        },
        values,
    };
    Some((piece, rest))
}

fn word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*word), rest))
}
