//! The sections of an entropy-coded stream: masks, frequency tables, symbols and raw bits.

use crate::domain::mask;
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::entropy::bitio::Cursor;
use crate::entropy::frequencies::Frequencies;
use crate::entropy::tables::Tables;
use crate::entropy::token_groups::{self, TokenCoder};
use crate::error::{Result, corrupt};
use crate::stream::header::Coding;

/// The frequency tables and the level packets of a stream.
pub(super) struct SymbolSections<'a> {
    /// Tokens of a group; 1 if tokens are coded one by one.
    pub size: usize,
    /// The number and the bytes of the tables of single tokens, and of those of groups.
    pub tables: [(usize, &'a [u8]); 2],
    /// The symbols and the raw bits of each packet.
    pub packets: Vec<[&'a [u8]; 2]>,
}

impl<'a> SymbolSections<'a> {
    /// Reads the tables, and the symbols and raw bits if `packets` is empty.
    pub(super) fn parse(
        mut cursor: Cursor<'a>,
        coding: Coding,
        mut packets: Vec<[&'a [u8]; 2]>,
    ) -> Result<Self> {
        let mut tables = || -> Result<_> {
            let count = usize::from(cursor.byte()?);
            Ok((count, section(&mut cursor)?))
        };
        let groups = match coding.group_size {
            1 => (0, &[][..]),
            _ => tables()?,
        };
        let single = match coding.coder {
            TokenCoder::Rans { .. } => tables()?,
            TokenCoder::Adaptive => (0, &[][..]),
        };
        if coding.packets == 1 {
            packets.push([section(&mut cursor)?, section(&mut cursor)?]);
        }
        let sections = Self {
            size: coding.group_size,
            tables: [single, groups],
            packets,
        };
        if cursor.0.is_empty() {
            Ok(sections)
        } else {
            Err(corrupt!(
                "expected the end of the stream; found {} more bytes",
                cursor.0.len()
            ))
        }
    }

    /// The frequencies of all tables, and the table of each context of tokens and of groups.
    pub(super) fn tables(&self) -> Result<(Vec<Frequencies>, [u8; 2 * CONTEXTS])> {
        let [single, grouped] = self.tables.map(|(count, bytes)| match count {
            // A stream without tables has no symbols, which `Decoder::finish` checks.
            0 if bytes.is_empty() => Ok(Tables::empty()),
            _ => Tables::decode(bytes, count),
        });
        let (single, grouped) = (single?, grouped?);
        let most = usize::from(token_groups::escape(self.size));
        let beyond = |table: &Frequencies| table[most + 1..].iter().any(|n| *n > 0);
        if grouped.frequencies.iter().any(beyond) {
            return Err(corrupt!(
                "a frequency table of groups of {} tokens has symbols above {most}",
                self.size
            ));
        }
        Ok(token_groups::concat_tables(&single, &grouped))
    }
}

/// Reads a section: its length and its bytes.
fn section<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.number_to(cursor.0.len())?;
    cursor.bytes(length)
}

/// The side of the cubes and the bytes of the mask of each region.
pub(super) type Masks<'a> = Vec<(usize, &'a [u8])>;

/// Reads the bits of the fill value, and the masks.
pub(super) fn masks<'a, T: Element>(
    cursor: &mut Cursor<'a>,
    regions: usize,
) -> Result<(u64, Masks<'a>)> {
    let mut word = [0; 8];
    word[..T::SIZE].copy_from_slice(cursor.bytes(T::SIZE)?);
    let mut masks = Vec::new();
    for _ in 0..regions {
        let side = cursor.byte()?;
        let length = cursor.number_to(cursor.0.len())?;
        if !mask::is_valid_side(side) {
            return Err(corrupt!(
                "the cubes of a mask have side {side}; expected 1, 2, 4 or 8"
            ));
        }
        masks.push((usize::from(side), cursor.bytes(length)?));
    }
    Ok((u64::from_le_bytes(word), masks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tables::{EncodedTables, Histogram};

    /// A valid table may have a symbol that is not a group.
    #[test]
    fn symbols_above_the_escape_are_refused() {
        for (size, symbol) in [
            (4, 81),
            (4, 82),
            (3, 125),
            (3, 126),
            (2, 121),
            (2, 122),
            (1, 1),
        ] {
            let tables = Histogram::new(&[0, 0], &[0, symbol]).tables(None);
            let EncodedTables { count, bytes } = tables.encode();
            let sections = SymbolSections {
                size,
                tables: [(0, &[]), (count, &bytes)],
                packets: Vec::new(),
            };
            let is_valid = size > 1 && symbol <= token_groups::escape(size);
            assert_eq!(sections.tables().is_ok(), is_valid, "{size} {symbol}");
        }
    }
}
