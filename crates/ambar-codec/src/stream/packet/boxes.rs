//! Chunks of consecutive boxes of cells, as AMReX writes them. The boxes are split into unit blocks, so that prediction
//! crosses their faces.

use super::padding::pad;
use super::{BOXES, Head, Value, ValueType, Workspaces, with_values};
use crate::bound::ErrorBound;
use crate::domain::blocks::{MAX_BLOCK_POSITION, key_of};
use crate::domain::regions::{Layout, volume};
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Result, corrupt, invalid};
use crate::stream::compress::encode as encode_stream;
use crate::stream::decode::decode as decode_stream;
use crate::stream::encode::Workspace;

/// Maximum side of a unit block.
const MAX_SIDE: usize = 16;
/// Minimum number of cells of a unit block.
const MIN_CELLS: usize = 16;

/// A box of cells in the index space of its level, z, y, x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellBox {
    /// The first cell.
    pub first: [i64; 3],
    /// The number of cells in each dimension.
    pub lengths: [usize; 3],
}

/// Encodes a chunk that holds the values of consecutive boxes, x fastest, and padding, which repeats one value. Returns
/// `None` if the boxes cannot be split into equal unit blocks of at least 16 cells, or if they overlap: encode such
/// chunks as arrays.
///
/// # Errors
/// `Invalid` if the bytes are fewer than the cells of the boxes, if the padding varies, or if the type or the bound is
/// invalid.
pub fn encode(
    bytes: &[u8],
    dtype: ValueType,
    boxes: &[CellBox],
    bound: impl Into<ErrorBound>,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    let bound = bound.into();
    match dtype {
        ValueType::Float32 => encode_values::<f32>(bytes, dtype, boxes, bound, workspaces),
        ValueType::Float64 => encode_values::<f64>(bytes, dtype, boxes, bound, workspaces),
        ValueType::Other(size) => Err(invalid!(
            "expected boxes of float32 or float64 values; found another type of {size} bytes"
        )),
    }
}

fn encode_values<T: Value>(
    bytes: &[u8],
    dtype: ValueType,
    boxes: &[CellBox],
    bound: ErrorBound,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    let is_big_endian = cfg!(target_endian = "big");
    with_values::<T, _>(bytes, is_big_endian, |values| {
        let cells = boxes.iter().try_fold(0usize, |sum, one| {
            sum.checked_add(volume(one.lengths).filter(|n| *n > 0)?)
        });
        let Some((cells, rest)) = cells.and_then(|n| Some((n, values.get(n..)?))) else {
            return Err(invalid!(
                "the chunk has {} values; expected one for each cell of its {} boxes, none of which is empty",
                values.len(),
                boxes.len()
            ));
        };
        let pad = rest.last().map_or(0, |value| value.to_word());
        if rest.iter().any(|value| value.to_word() != pad) {
            return Err(invalid!(
                "the padding after the boxes must repeat one value"
            ));
        }
        let Some((side, boxes)) = split_into_blocks(boxes) else {
            return Ok(None);
        };
        let Ok(locations) = BlockLocations::new(&boxes, side) else {
            return Ok(None);
        };
        let mut sorted = vec![T::default(); cells];
        locations.for_each_row(|from, to, length| {
            sorted[to..to + length].copy_from_slice(&values[from..from + length]);
        });
        let layout = Layout::Blocks {
            side,
            origins: &locations.origins,
        };
        let stream = encode_stream(&sorted, &layout, bound, None, T::workspace(workspaces))?;
        let mut content = Vec::new();
        content.extend_from_slice(&pad.to_le_bytes()[..T::SIZE]);
        side.iter()
            .for_each(|n| write_number(*n as u64, &mut content));
        write_number(boxes.len() as u64, &mut content);
        for one in &boxes {
            for n in one.first.iter().chain(&one.lengths) {
                write_number(*n as u64, &mut content);
            }
        }
        let head = Head {
            form: BOXES,
            dtype,
            is_big_endian,
            length: bytes.len(),
        };
        Ok(Some(head.packet(&content, &stream)))
    })
}

/// A box in units of unit blocks, relative to the lowest corner of all boxes.
struct BoxOfBlocks {
    first: [usize; 3],
    lengths: [usize; 3],
}

/// The sides of the largest unit blocks into which all boxes can be split, and the boxes in units of these.
fn split_into_blocks(boxes: &[CellBox]) -> Option<([usize; 3], Vec<BoxOfBlocks>)> {
    let mut side = [0; 3];
    let mut lowest = [0; 3];
    for d in 0..3 {
        lowest[d] = boxes.iter().map(|one| one.first[d]).min()?;
        let highest = boxes.iter().map(|one| one.first[d]).max()?;
        if highest.checked_sub(lowest[d])? >= MAX_BLOCK_POSITION {
            return None;
        }
        let common = boxes.iter().fold(0, |common, one| {
            let far = (one.first[d] - lowest[d]) as usize;
            divisor(divisor(common, far), one.lengths[d])
        });
        side[d] = (1..=MAX_SIDE.min(common))
            .rev()
            .find(|n| common.is_multiple_of(*n))?;
    }
    let counted = boxes.iter().map(|one| BoxOfBlocks {
        first: std::array::from_fn(|d| (one.first[d] - lowest[d]) as usize / side[d]),
        lengths: std::array::from_fn(|d| one.lengths[d] / side[d]),
    });
    (side.iter().product::<usize>() >= MIN_CELLS).then(|| (side, counted.collect()))
}

/// The greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The locations of all unit blocks in space and in the chunk, along the Morton curve.
struct BlockLocations {
    side: [usize; 3],
    /// The first cell of each block.
    origins: Vec<[i64; 3]>,
    /// The rows of each block.
    rows: Vec<BlockRows>,
}

/// The rows of a unit block in a chunk.
#[derive(Clone, Copy)]
struct BlockRows {
    /// The index of the first value.
    start: usize,
    /// The distance of rows in z and y.
    strides: [usize; 2],
}

impl BlockLocations {
    /// # Errors
    /// `Corrupt` if boxes overlap, or if a block is out of range.
    fn new(boxes: &[BoxOfBlocks], side: [usize; 3]) -> Result<Self> {
        let mut blocks = Vec::new();
        let mut begin = 0;
        for one in boxes {
            let [nz, ny, nx] = one.lengths;
            let strides = [ny * side[1] * nx * side[2], nx * side[2]];
            for block in 0..nz * ny * nx {
                let at = [block / nx / ny, block / nx % ny, block % nx];
                let origin = std::array::from_fn(|d| ((one.first[d] + at[d]) * side[d]) as i64);
                let key = key_of(&origin, side)
                    .map_err(|error| corrupt!("the origin of a box is out of range: {error}"))?;
                let row = begin + at[0] * side[0] * strides[0] + at[1] * side[1] * strides[1];
                let start = row + at[2] * side[2];
                blocks.push((key, (origin, BlockRows { start, strides })));
            }
            begin += nz * side[0] * strides[0];
        }
        blocks.sort_unstable_by_key(|block| block.0);
        if blocks.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(corrupt!("boxes overlap; expected every cell in one box"));
        }
        Ok(Self {
            side,
            origins: blocks.iter().map(|(_, (origin, _))| *origin).collect(),
            rows: blocks.iter().map(|(_, (_, rows))| *rows).collect(),
        })
    }

    /// Calls `visit(index in the chunk, index in the blocks, length)` for all rows of all blocks.
    fn for_each_row(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [sz, sy, sx] = self.side;
        for (number, rows) in self.rows.iter().enumerate() {
            let [dz, dy] = rows.strides;
            for z in 0..sz {
                for y in 0..sy {
                    let block = ((number * sz + z) * sy + y) * sx;
                    visit(rows.start + z * dz + y * dy, block, sx);
                }
            }
        }
    }
}

/// Decodes a chunk of boxes.
pub(super) fn decode<T: Value>(
    mut rest: Cursor<'_>,
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let pad: T = pad(&mut rest)?;
    let side = three(&mut rest, out.len())?;
    // This limits the memory for the locations of blocks to that of their values.
    if volume(side).is_none_or(|cells| cells < MIN_CELLS) {
        return Err(corrupt!(
            "the unit blocks have the sides {side:?}; expected at least {MIN_CELLS} cells"
        ));
    }
    let count = rest.number_to(out.len())?;
    let most = (MAX_BLOCK_POSITION - 1) as usize;
    let (mut boxes, mut cells) = (Vec::new(), 0usize);
    for _ in 0..count {
        let (first, lengths) = (three(&mut rest, most)?, three(&mut rest, most)?);
        let sides = std::array::from_fn(|d| lengths[d].saturating_mul(side[d]));
        let more = volume(sides).filter(|n| *n > 0);
        cells = more
            .and_then(|more| cells.checked_add(more))
            .filter(|cells| *cells <= out.len())
            .ok_or_else(|| {
                corrupt!(
                    "the boxes have 0 cells, or more than the chunk's {} values",
                    out.len()
                )
            })?;
        boxes.push(BoxOfBlocks { first, lengths });
    }
    if !rest.0.is_empty() {
        return Err(corrupt!(
            "expected the end of the chunk's header; found {} more bytes",
            rest.0.len()
        ));
    }
    let locations = BlockLocations::new(&boxes, side)?;
    let mut sorted = vec![T::default(); cells];
    decode_stream(stream, &mut sorted, workspace)?;
    locations.for_each_row(|to, from, length| {
        out[to..to + length].copy_from_slice(&sorted[from..from + length]);
    });
    out[cells..].fill(pad);
    Ok(())
}

fn three(rest: &mut Cursor<'_>, most: usize) -> Result<[usize; 3]> {
    Ok([
        rest.number_to(most)?,
        rest.number_to(most)?,
        rest.number_to(most)?,
    ])
}
