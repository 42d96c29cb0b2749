//! Blocks of up to 1024 words: differences, packed in groups with one bit width each.

use super::differences;
use super::lanes::{self, GROUP};
use super::word::Word;
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Result, corrupt};
use crate::simd::dispatch::vectorised;

/// Maximum number of words of a block.
pub(super) const BLOCK: usize = 1024;

/// The number of groups of `count` words.
fn groups(count: usize) -> usize {
    count.div_ceil(GROUP)
}

vectorised! {
    /// The middle of the range of words, from which differences have both signs and few bits.
    pub(super) fn middle [W: Word] of [W] (words: &[W]) -> W {
        let first = words.first().map_or(W::default(), |word| word.ordered());
        let (mut least, mut most) = (first, first);
        for word in words {
            let word = word.ordered();
            least = if word < least { word } else { least };
            most = if word > most { word } else { most };
        }
        least.plus(most.minus(least).half()).ordered()
    }
}

vectorised! {
    /// The number of bits of the widest folded word.
    pub(super) fn width [W: Word] of [W] (folded: &[W]) -> u32 {
        folded
            .iter()
            .fold(W::default(), |all, word| all.or(*word))
            .width()
    }
}

/// Buffers for a block.
pub(super) struct Buffers<W> {
    pub words: [W; BLOCK],
    pub other: [W; BLOCK],
    pub halves: Halves,
}

/// Buffers for the low and high halves of the words of a group.
pub(super) struct Halves {
    low: [u32; GROUP],
    high: [u32; GROUP],
    packed: [u8; lanes::MAX_BYTES],
}

impl Default for Halves {
    fn default() -> Self {
        Self {
            low: [0; GROUP],
            high: [0; GROUP],
            packed: [0; lanes::MAX_BYTES],
        }
    }
}

impl<W: Word> Default for Buffers<W> {
    fn default() -> Self {
        Self {
            words: [W::default(); BLOCK],
            other: [W::default(); BLOCK],
            halves: Halves::default(),
        }
    }
}

vectorised! {
    /// Appends the first `count` words of the buffers, which are overwritten. `order` is below `count`.
    pub(super) fn write [W: Word] of [W] (
        buffers: &mut Buffers<W>,
        count: usize,
        order: usize,
        out: &mut Vec<u8>,
    ) {
        let Buffers {
            words,
            other,
            halves,
        } = buffers;
        let mut heads = [W::default(); differences::ORDERS];
        if order == 0 {
            heads[0] = middle(&words[..count]);
            for word in &mut words[..count] {
                *word = word.minus(heads[0]);
            }
        } else {
            differences::take(&mut words[..count], &mut other[..count], order);
            heads[..order].copy_from_slice(&words[..order]);
            words[..order].fill(W::default());
        }
        // The last group is padded with zeros.
        words[count..groups(count) * GROUP].fill(W::default());
        let mut widths = [0; BLOCK / GROUP];
        for (width_of, group) in widths.iter_mut().zip(words.chunks_exact_mut(GROUP)) {
            for word in group.iter_mut() {
                *word = word.folded();
            }
            *width_of = width(group);
        }
        let widths = &widths[..groups(count)];
        out.extend(widths.iter().map(|width| *width as u8));
        for head in &heads[..order.max(1)] {
            write_head(*head, out);
        }
        for (number, (width, group)) in widths.iter().zip(words.chunks_exact(GROUP)).enumerate() {
            let count = (count - number * GROUP).min(GROUP);
            write_group(group, count, *width, halves, out);
        }
    }
}

vectorised! {
    /// Appends a group, whose words after the first `count` are padding.
    fn write_group [W: Word] of [W] (
        group: &[W],
        count: usize,
        width: u32,
        halves: &mut Halves,
        out: &mut Vec<u8>,
    ) {
        let Halves { low, high, packed } = halves;
        let mut write = |half: &[u32; GROUP], width: u32| {
            lanes::pack(half, width, packed);
            out.extend_from_slice(&packed[..lanes::bytes(count, width)]);
        };
        if width > 0 {
            for (low, word) in low.iter_mut().zip(group) {
                *low = word.low();
            }
            write(low, width.min(32));
        }
        if width > 32 {
            for (high, word) in high.iter_mut().zip(group) {
                *high = word.high();
            }
            write(high, width - 32);
        }
    }
}

fn write_head<W: Word>(head: W, out: &mut Vec<u8>) {
    if W::BITS == 64 {
        out.extend_from_slice(&head.to_bits().to_le_bytes());
    } else {
        write_number(head.folded().to_bits(), out);
    }
}

fn read_head<W: Word>(cursor: &mut Cursor<'_>) -> Result<W> {
    if W::BITS == 64 {
        return cursor.word().map(W::from_bits);
    }
    match cursor.number()? {
        bits if bits >> W::BITS == 0 => Ok(W::from_bits(bits).unfolded()),
        bits => Err(corrupt!(
            "the first word of a block is {bits:#x}; expected at most 32 bits"
        )),
    }
}

/// Reads a block of `words.len()` words, at most [`BLOCK`].
pub(super) fn read<W: Word>(
    cursor: &mut Cursor<'_>,
    order: usize,
    words: &mut [W],
    halves: &mut Halves,
) -> Result<()> {
    let count = words.len();
    if order > differences::ORDERS || order >= count {
        return Err(corrupt!(
            "the order of differences in a block of {count} values is {order}; expected at most {}",
            differences::ORDERS.min(count - 1)
        ));
    }
    let widths = cursor.bytes(groups(count))?;
    let mut heads = [W::default(); differences::ORDERS];
    for head in &mut heads[..order.max(1)] {
        *head = read_head(cursor)?;
    }
    for (width, group) in widths.iter().zip(words.chunks_mut(GROUP)) {
        read_group(cursor, u32::from(*width), group, halves)?;
    }
    if order == 0 {
        for word in words {
            *word = word.plus(heads[0]);
        }
    } else {
        words[..order].copy_from_slice(&heads[..order]);
        differences::add(words, order);
    }
    Ok(())
}

vectorised! {
    fn read_group [W: Word] of [W] (
        cursor: &mut Cursor<'_>,
        width: u32,
        group: &mut [W],
        halves: &mut Halves,
    ) -> Result<()> {
        if width > W::BITS {
            return Err(corrupt!("the bit width of a group is {width}; expected at most {}", W::BITS));
        }
        let Halves { low, high, packed } = halves;
        match width {
            0 => group.fill(W::default()),
            1..=32 => {
                read_half(cursor, width, group.len(), low, packed)?;
                for (word, low) in group.iter_mut().zip(low) {
                    *word = W::join(*low, 0).unfolded();
                }
            }
            _ => {
                read_half(cursor, 32, group.len(), low, packed)?;
                read_half(cursor, width - 32, group.len(), high, packed)?;
                for ((word, low), high) in group.iter_mut().zip(low).zip(high) {
                    *word = W::join(*low, *high).unfolded();
                }
            }
        }
        Ok(())
    }
}

fn read_half(
    cursor: &mut Cursor<'_>,
    width: u32,
    count: usize,
    half: &mut [u32; GROUP],
    copy: &mut [u8; lanes::MAX_BYTES],
) -> Result<()> {
    let length = lanes::bytes(count, width);
    let rest = cursor.0;
    let packed = cursor.bytes(length)?;
    if let Some(from) = rest.first_chunk() {
        lanes::unpack(from, width, half);
    } else {
        // `unpack` reads more bytes than it uses.
        copy[..length].copy_from_slice(packed);
        lanes::unpack(copy, width, half);
    }
    Ok(())
}
