//! Writes streams: header, layout, level options, tables, packets and checksums (`docs/format.md`, 7.1).

use crate::bitpack;
use crate::element::Element;
use crate::entropy::bitio::write_number;
use crate::entropy::symbols::{MAX_PACKETS, Symbols};
use crate::entropy::tables::EncodedTables;
use crate::entropy::token_groups::{self, CodedPacket, PacketCount};
use crate::stream::header::{Arrangement, Coding, Contexts, Header, Mode};
use crate::stream::input::EncoderInput;
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use crc_fast::crc32_iscsi as crc32c;

/// Writes the parts of a bit-packed stream before its blocks.
pub(super) fn write_bit_packed_header<T: Element>(
    shape: &[usize],
    values: usize,
    bound: f64,
    prelude: &Prelude<'_>,
    out: &mut Vec<u8>,
) {
    let header = Header {
        value_size: T::SIZE,
        arrangement: Arrangement::Array,
        bound: prelude.kind(bound),
        is_masked: false,
        is_clamped: prelude.minimum.is_some(),
        has_components: prelude.components.is_some(),
        mode: Mode::BitPacked,
    };
    out.clear();
    out.reserve(bitpack::max_encoded_bytes(values * T::SIZE));
    out.extend(header.to_bytes());
    prelude.write(T::SIZE, out);
    write_number(values as u64, out);
    write_number(shape.len() as u64, out);
    shape.iter().for_each(|n| write_number(*n as u64, out));
    if bound > 0.0 {
        out.extend_from_slice(&bound.to_le_bytes());
    }
}

impl<T: Element> EncoderInput<'_, T> {
    /// The whole stream.
    pub(crate) fn stream(
        &self,
        symbols: &Symbols,
        bound: f64,
        params: EncoderParams,
        prelude: &Prelude<'_>,
    ) -> Vec<u8> {
        let packets = match (self.arrangement, params.packets()) {
            (Arrangement::Cells, _) => PacketCount::Exactly(1),
            // Coefficients belong to no level.
            _ if self.is_transformed() => PacketCount::Exactly(1),
            // Levels of separate planes or rows are not those of the array.
            (Arrangement::Array, _) if params.separate_dimensions() > 0 => PacketCount::Exactly(1),
            // Components and exceptions belong to no level.
            _ if prelude.components.is_some() || !prelude.exceptions.is_empty() => {
                PacketCount::Exactly(1)
            }
            (_, Some(count)) => PacketCount::Exactly(count),
            (_, None) => PacketCount::AtMost(MAX_PACKETS),
        };
        let contexts = match self.is_transformed() {
            true => Contexts::Row,
            false => params.contexts(),
        };
        let coded = match contexts {
            Contexts::Level => token_groups::encode(symbols, packets),
            Contexts::Row | Contexts::Plane => {
                token_groups::encode_ungrouped(symbols, packets, params.adaptive_use())
            }
        };
        let header = Header {
            value_size: T::SIZE,
            arrangement: self.arrangement,
            bound: prelude.kind(bound),
            is_masked: self.masks.is_some(),
            is_clamped: prelude.minimum.is_some(),
            has_components: prelude.components.is_some(),
            mode: Mode::EntropyCoded(Coding {
                contexts,
                predicts_holes: self.predicts_holes,
                group_size: coded.size,
                coder: coded.coder,
                packets: coded.packets.len(),
            }),
        };
        let mut out = Vec::new();
        prelude.write(T::SIZE, &mut out);
        out.extend_from_slice(&self.layout);
        if bound > 0.0 {
            out.extend_from_slice(&bound.to_le_bytes());
        } else {
            out.push(self.shift as u8);
        }
        let wavelet = self.transformed.as_ref().map(|transformed| {
            transformed.options(transformed.coefficient_bound(bound, params.bound_ratio()))
        });
        params.write(wavelet, &mut out);
        if let Some((fill, masks)) = &self.masks {
            out.extend_from_slice(&fill.to_le_bytes()[..T::SIZE]);
            out.extend_from_slice(masks);
        }
        for tables in &coded.tables {
            write_tables(tables, &mut out);
        }
        let head = out;
        let mut out = header.to_bytes().to_vec();
        if let [packet] = &coded.packets[..] {
            out.extend_from_slice(&head);
            for section in [&packet.symbols, &packet.raw] {
                write_number(section.len() as u64, &mut out);
                out.extend_from_slice(section);
            }
        } else {
            write_packets(&head, &coded.packets, &mut out);
        }
        write_checksum(0, &mut out);
        out
    }
}

/// Appends the lengths of the head and the level packets, then the head and the packets, each with a checksum.
fn write_packets(head: &[u8], packets: &[CodedPacket], out: &mut Vec<u8>) {
    write_number(head.len() as u64, out);
    for packet in packets {
        write_number(packet.symbols.len() as u64, out);
        write_number(packet.raw.len() as u64, out);
    }
    out.extend_from_slice(head);
    write_checksum(0, out);
    for packet in packets {
        let begin = out.len();
        out.extend_from_slice(&packet.symbols);
        out.extend_from_slice(&packet.raw);
        write_checksum(begin, out);
    }
}

/// Appends the CRC-32C of the bytes from `begin` on.
pub(super) fn write_checksum(begin: usize, out: &mut Vec<u8>) {
    let checksum = crc32c(&out[begin..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Appends the number of tables and the section of their bytes.
fn write_tables(tables: &EncodedTables, out: &mut Vec<u8>) {
    out.push(tables.count as u8);
    write_number(tables.bytes.len() as u64, out);
    out.extend_from_slice(&tables.bytes);
}
