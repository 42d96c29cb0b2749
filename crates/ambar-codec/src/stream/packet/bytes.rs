//! Chunks of other types than floats: byte-shuffled, as one zstd frame.

use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Result, corrupt, invalid};

/// The zstd level: about as fast as the codec for floats.
const LEVEL: i32 = 3;
/// Maximum size of values that are shuffled. Larger values are usually records.
const MAX_SIZE: usize = 16;

pub(super) fn encode(bytes: &[u8], size: usize, packet: &mut Vec<u8>) -> Result<()> {
    let size = if size <= MAX_SIZE { size } else { 1 };
    write_number(size as u64, packet);
    let mut shuffled = bytes.to_vec();
    transpose(bytes, size, &mut shuffled);
    let frame = zstd::bulk::compress(&shuffled, LEVEL).map_err(|error| {
        invalid!(
            "zstd failed to compress a chunk of {} bytes: {error}",
            bytes.len()
        )
    })?;
    packet.extend_from_slice(&frame);
    Ok(())
}

pub(super) fn decode(mut rest: Cursor<'_>, out: &mut [u8]) -> Result<()> {
    let size = rest.number_to(MAX_SIZE)?;
    if size == 0 || !out.len().is_multiple_of(size) {
        return Err(corrupt!(
            "the chunk has {} bytes; expected a multiple of the value size, {size}",
            out.len()
        ));
    }
    let mut shuffled = vec![0; out.len()];
    match zstd::bulk::decompress_to_buffer(rest.0, &mut shuffled[..]) {
        Ok(length) if length == out.len() => {}
        Ok(length) => {
            return Err(corrupt!(
                "the zstd frame of the chunk has {length} bytes; expected {}",
                out.len()
            ));
        }
        Err(error) => {
            return Err(corrupt!(
                "the chunk is not one complete zstd frame: {error}"
            ));
        }
    }
    transpose(&shuffled, out.len() / size, out);
    Ok(())
}

/// Transposes rows of `width` bytes.
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
