//! The lengths of a stream's head and level packets, which the beginning of the stream states.

use crate::entropy::bitio::{Cursor, truncated};
use crate::entropy::symbols::MAX_PACKETS;
use crate::error::{Result, corrupt};
use std::ops::Range;

/// Maximum number of bytes of a stream up to the end of the lengths of its level packets.
pub const LENGTHS_BYTES: usize = 4 + MAX_NUMBER_BYTES * (1 + 2 * MAX_PACKETS);
/// Maximum number of bytes of a variable-length number.
const MAX_NUMBER_BYTES: usize = 9;
/// Bytes of a checksum.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Where the head and the level packets of a stream are.
pub(super) struct PacketLengths {
    /// The bytes from the end of the lengths to the checksum of the head.
    head: Range<usize>,
    /// The length of each packet's symbols.
    symbols: Vec<usize>,
    /// The end of each packet, its checksum included.
    pub ends: Vec<usize>,
}

impl PacketLengths {
    /// Reads the lengths of `count` packets. `cursor` is at these lengths in `stream`, which may be truncated.
    pub(super) fn parse(stream: &[u8], cursor: &mut Cursor<'_>, count: usize) -> Result<Self> {
        let head = cursor.number_to(usize::MAX)?;
        let mut packets = [[0; 2]; MAX_PACKETS];
        for packet in &mut packets[..count] {
            for length in packet {
                *length = cursor.number_to(usize::MAX)?;
            }
        }
        let begin = stream.len() - cursor.0.len();
        let plus = |a: usize, b: usize| {
            a.checked_add(b)
                .ok_or_else(|| corrupt!("the lengths {a} and {b} of a stream overflow"))
        };
        let head = begin..plus(begin, head)?;
        let mut end = plus(head.end, CHECKSUM_BYTES)?;
        let mut lengths = Self {
            head,
            symbols: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
        };
        for [symbols, raw] in &packets[..count] {
            end = plus(plus(end, *symbols)?, plus(*raw, CHECKSUM_BYTES)?)?;
            lengths.symbols.push(*symbols);
            lengths.ends.push(end);
        }
        Ok(lengths)
    }

    /// The rest of the head. Its checksum is verified.
    pub(super) fn head<'a>(&self, stream: &'a [u8]) -> Result<Cursor<'a>> {
        let end = self.head.end + CHECKSUM_BYTES;
        let head = stream.get(..end);
        let head = Cursor::verified(head.ok_or_else(|| truncated(end, stream.len()))?)?;
        Ok(Cursor(&head.0[self.head.start..]))
    }

    /// The symbols and raw bits of the first `count` packets. Their checksums are verified.
    pub(super) fn packets<'a>(&self, stream: &'a [u8], count: usize) -> Result<Vec<[&'a [u8]; 2]>> {
        let mut begin = self.head.end + CHECKSUM_BYTES;
        let mut packets = Vec::with_capacity(count);
        for (end, symbols) in self.ends.iter().zip(&self.symbols).take(count) {
            let packet = stream.get(begin..*end);
            let packet = Cursor::verified(packet.ok_or_else(|| truncated(*end, stream.len()))?)?;
            packets.push(packet.0.split_at(*symbols).into());
            begin = *end;
        }
        Ok(packets)
    }
}
