//! A canonical Huffman code over 16-bit symbols, preceded by its table.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bytes::{Cursor, write_number};
use crate::schemes::{Error, Result};

/// Bits of the longest code.
const LONGEST: usize = 32;
/// Codes of at most this number of bits are decoded with one table lookup.
const QUICK: u32 = 12;
/// Bytes of the largest table of lengths.
pub(crate) const LARGEST_TABLE: usize = 4 << 16;

/// Appends the table, the length of the codes in bytes, and the codes of `symbols`.
pub(crate) fn encode(symbols: &[u16], out: &mut Vec<u8>) {
    let mut counts = vec![0u64; 1 << 16];
    for symbol in symbols {
        counts[usize::from(*symbol)] += 1;
    }
    let used: Vec<(u16, u64)> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, count)| (symbol as u16, *count))
        .collect();
    let lengths = lengths(&used);
    write_number(used.len() as u64, out);
    let mut last = 0;
    for (symbol, _) in &used {
        write_number(u64::from(symbol - last), out);
        last = *symbol;
    }
    out.extend(lengths.iter().map(|length| *length as u8));
    // The codes with their first bit lowest, as they go into the words.
    let mut codes = vec![(0u64, 0u32); 1 << 16];
    let table: Vec<(u16, usize)> = used.iter().map(|u| u.0).zip(lengths).collect();
    for (symbol, length, code) in canonical(&table) {
        let reversed = code.reverse_bits() >> (63 - length as u32) >> 1;
        codes[usize::from(symbol)] = (reversed, length as u32);
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4);
    let (mut word, mut filled) = (0u64, 0u32);
    for symbol in symbols {
        let (code, length) = codes[usize::from(*symbol)];
        word |= code << filled;
        filled += length;
        if filled >= 32 {
            bytes.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= 32;
            filled -= 32;
        }
    }
    bytes.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
    write_number(bytes.len() as u64, out);
    out.extend(bytes);
}

/// The lengths of the codes of symbols with these counts.
fn lengths(used: &[(u16, u64)]) -> Vec<usize> {
    let mut counts: Vec<u64> = used.iter().map(|(_, count)| *count).collect();
    if counts.len() < 2 {
        return vec![0; counts.len()];
    }
    loop {
        let lengths = tree(&counts);
        if lengths.iter().all(|length| *length <= LONGEST) {
            return lengths;
        }
        // A tree of more even counts is less deep.
        counts.iter_mut().for_each(|count| *count = *count / 4 + 1);
    }
}

/// The depths of the leaves of a Huffman tree.
fn tree(counts: &[u64]) -> Vec<usize> {
    let leaves = counts.len();
    let mut parents = vec![0usize; 2 * leaves - 1];
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> =
        counts.iter().copied().zip(0..).map(Reverse).collect();
    let mut next = leaves;
    while let (Some(Reverse(one)), Some(Reverse(two))) = (heap.pop(), heap.pop()) {
        parents[one.1] = next;
        parents[two.1] = next;
        if next == 2 * leaves - 2 {
            break;
        }
        heap.push(Reverse((one.0 + two.0, next)));
        next += 1;
    }
    let mut depths = vec![0usize; parents.len()];
    for node in (0..parents.len() - 1).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(leaves);
    depths
}

/// Symbols, the lengths of their codes, and the codes, shorter ones first.
fn canonical(table: &[(u16, usize)]) -> Vec<(u16, usize, u64)> {
    let mut sorted = table.to_vec();
    sorted.sort_by_key(|(symbol, length)| (*length, *symbol));
    let (mut code, mut last) = (0u64, 0);
    let mut codes = Vec::with_capacity(sorted.len());
    for (symbol, length) in sorted {
        code <<= length - last;
        codes.push((symbol, length, code));
        code += 1;
        last = length;
    }
    codes
}

/// Decodes `count` symbols.
pub(crate) fn decode(cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<u16>> {
    let table = read_table(cursor)?;
    let length = cursor.number_to(cursor.0.len())?;
    let bytes = cursor.bytes(length)?;
    match table[..] {
        [] if count == 0 => return Ok(Vec::new()),
        [] => return Err(Error(c"the code table is empty")),
        [(symbol, _)] => return Ok(vec![symbol; count]),
        _ => {}
    }
    let decoder = Decoder::new(&table)?;
    let mut bits = Bits::new(bytes);
    let mut symbols = Vec::with_capacity(count);
    for _ in 0..count {
        symbols.push(decoder.next(&mut bits)?);
    }
    bits.finish()?;
    Ok(symbols)
}

fn read_table(cursor: &mut Cursor<'_>) -> Result<Vec<(u16, usize)>> {
    let used = cursor.number_to(1 << 16)?;
    let mut symbols = Vec::with_capacity(used);
    let mut last = 0usize;
    for number in 0..used {
        let gap = cursor.number_to(1 << 16)?;
        last += gap;
        if last >= 1 << 16 || (number > 0 && gap == 0) {
            return Err(Error(c"the symbols of the code table are not ascending"));
        }
        symbols.push(last as u16);
    }
    let lengths = cursor.bytes(used)?;
    let table = symbols.into_iter().zip(lengths.iter().copied());
    Ok(table
        .map(|(symbol, length)| (symbol, usize::from(length)))
        .collect())
}

/// The tables of a code.
struct Decoder {
    /// Symbol and length of the code that bits begin with; length 0 where it is longer.
    quick: Vec<(u16, u8)>,
    symbols: Vec<u16>,
    /// By length: the first code, and its symbol's number.
    first: [(u64, usize); LONGEST + 2],
}

impl Decoder {
    fn new(table: &[(u16, usize)]) -> Result<Self> {
        let mut space = 0u64;
        for (_, length) in table {
            if !(1..=LONGEST).contains(length) {
                return Err(Error(c"a code length is not between 1 and 32"));
            }
            space += 1 << (LONGEST - length);
        }
        if space != 1 << LONGEST {
            return Err(Error(
                c"the code lengths are not those of a complete prefix code",
            ));
        }
        let codes = canonical(table);
        let mut quick = vec![(0, 0); 1 << QUICK];
        let mut first = [(0, 0); LONGEST + 2];
        let mut number = 0;
        let mut code = 0u64;
        for (length, first) in first.iter_mut().enumerate() {
            *first = (code, number);
            let same = codes[number..].iter().take_while(|c| c.1 == length).count();
            number += same;
            code = (code + same as u64) << 1;
        }
        for (symbol, length, code) in &codes {
            if *length as u32 <= QUICK {
                let start = (code.reverse_bits() >> (64 - length)) as usize;
                for slot in quick[start..].iter_mut().step_by(1 << length) {
                    *slot = (*symbol, *length as u8);
                }
            }
        }
        let symbols = codes.iter().map(|code| code.0).collect();
        Ok(Self {
            quick,
            symbols,
            first,
        })
    }

    #[inline(always)]
    fn next(&self, bits: &mut Bits<'_>) -> Result<u16> {
        bits.fill();
        let (symbol, length) = self.quick[(bits.word & ((1 << QUICK) - 1)) as usize];
        if length > 0 {
            bits.skip(u32::from(length));
            return Ok(symbol);
        }
        self.long(bits)
    }

    #[cold]
    fn long(&self, bits: &mut Bits<'_>) -> Result<u16> {
        let mut code = 0;
        for length in 1..=LONGEST {
            code = code << 1 | (bits.word >> (length - 1) & 1);
            let (first, number) = self.first[length];
            let behind = self.first[length + 1].1;
            let at = number as u64 + code.wrapping_sub(first);
            if code >= first && at < behind as u64 {
                bits.skip(length as u32);
                return Ok(self.symbols[at as usize]);
            }
        }
        Err(Error(c"invalid code"))
    }
}

/// A bit reader, lowest bit first; it reads zeros after the end.
struct Bits<'a> {
    bytes: &'a [u8],
    next: usize,
    word: u64,
    filled: u32,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            next: 0,
            word: 0,
            filled: 0,
        }
    }

    /// Ensures that at least 32 bits are loaded.
    #[inline(always)]
    fn fill(&mut self) {
        if self.filled < 32 {
            let four = self.bytes.get(self.next..self.next + 4);
            let more = match four.and_then(|four| four.first_chunk::<4>()) {
                Some(four) => u32::from_le_bytes(*four),
                None => self.last(),
            };
            self.word |= u64::from(more) << self.filled;
            self.filled += 32;
            self.next += 4;
        }
    }

    #[cold]
    fn last(&self) -> u32 {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        let mut four = [0; 4];
        four[..rest.len()].copy_from_slice(rest);
        u32::from_le_bytes(four)
    }

    #[inline(always)]
    fn skip(&mut self, width: u32) {
        self.word >>= width;
        self.filled -= width;
    }

    /// Checks that all bytes were read.
    fn finish(&self) -> Result<()> {
        let read = 8 * self.next - self.filled as usize;
        if read.div_ceil(8) == self.bytes.len() {
            Ok(())
        } else {
            Err(Error(c"the codes have another length than stated"))
        }
    }
}
