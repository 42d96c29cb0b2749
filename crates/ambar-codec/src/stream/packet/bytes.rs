//! Packets of values of other types: byte-shuffled, as one zstd frame.

use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Invalid, Result};

/// About as fast as the codec for floats.
const LEVEL: i32 = 3;
/// Values of more bytes are records, which are not shuffled.
const WIDEST: usize = 16;

pub(super) fn encode(bytes: &[u8], size: usize, packet: &mut Vec<u8>) -> Result<()> {
    let size = if size <= WIDEST { size } else { 1 };
    write_number(size as u64, packet);
    let mut shuffled = bytes.to_vec();
    transpose(bytes, size, &mut shuffled);
    let frame = zstd::bulk::compress(&shuffled, LEVEL)
        .map_err(|_| Invalid("zstd failed to allocate memory for the chunk"))?;
    packet.extend_from_slice(&frame);
    Ok(())
}

pub(super) fn decode(mut rest: Cursor<'_>, out: &mut [u8]) -> Result<()> {
    let size = rest.number_to(WIDEST)?;
    if size == 0 || !out.len().is_multiple_of(size) {
        return Err(Corrupt(
            "the chunk's size is not a multiple of the value size",
        ));
    }
    let mut shuffled = vec![0; out.len()];
    match zstd::bulk::decompress_to_buffer(rest.0, &mut shuffled[..]) {
        Ok(length) if length == out.len() => {}
        _ => return Err(Corrupt("the chunk is not one complete zstd frame")),
    }
    transpose(&shuffled, out.len() / size, out);
    Ok(())
}

/// Turns rows of `width` bytes into columns.
fn transpose(from: &[u8], width: usize, to: &mut [u8]) {
    if width <= 1 || width >= from.len() {
        to.copy_from_slice(from);
        return;
    }
    let rows = from.len() / width;
    for (number, column) in to.chunks_exact_mut(rows).enumerate() {
        for (to, row) in column.iter_mut().zip(from.chunks_exact(width)) {
            *to = row[number];
        }
    }
}
