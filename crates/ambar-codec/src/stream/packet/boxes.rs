//! Boxes of cells one behind the other in a chunk, as AMReX writes them: predicted where they lie.

use super::padding::pad;
use super::{BOXES, Head, Type, Value, Workspaces, with_values};
use crate::bound::ErrorBound;
use crate::domain::blocks::{REACH, key_of};
use crate::domain::regions::{Layout, volume};
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Invalid, Result};
use crate::stream::compress::encode as encode_stream;
use crate::stream::decode::decode as decode_stream;
use crate::stream::encode::Workspace;

/// The longest side of a unit block, and the fewest cells that are worth one.
const SIDE: usize = 16;
const CELLS: usize = 16;

/// A box of cells in the index space of its level, z, y, x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxOfCells {
    /// The first cell.
    pub first: [i64; 3],
    /// The number of cells in each dimension.
    pub lengths: [usize; 3],
}

/// Encodes a chunk that begins with the values of boxes, one behind the other, x quickest; what
/// follows has the bits of the chunk's last value. `None` where the boxes have no unit block in
/// common of some cells at least, or some cell is in two of them: such chunks are encoded as arrays.
///
/// # Errors
/// `Invalid` where the bytes are not as many as the boxes need, what follows is not one value over
/// and over, or the type or the bound is none.
pub fn encode(
    bytes: &[u8],
    dtype: Type,
    boxes: &[BoxOfCells],
    bound: impl Into<ErrorBound>,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    let bound = bound.into();
    match dtype {
        Type::Float32 => encode_values::<f32>(bytes, dtype, boxes, bound, workspaces),
        Type::Float64 => encode_values::<f64>(bytes, dtype, boxes, bound, workspaces),
        Type::Other(_) => Err(Invalid("expected boxes of float32 or float64 values")),
    }
}

fn encode_values<T: Value>(
    bytes: &[u8],
    dtype: Type,
    boxes: &[BoxOfCells],
    bound: ErrorBound,
    workspaces: &mut Workspaces,
) -> Result<Option<Vec<u8>>> {
    let big_endian = cfg!(target_endian = "big");
    with_values::<T, _>(bytes, big_endian, |values| {
        let cells = boxes.iter().try_fold(0usize, |sum, one| {
            sum.checked_add(volume(one.lengths).filter(|n| *n > 0)?)
        });
        let Some((cells, rest)) = cells.and_then(|n| Some((n, values.get(n..)?))) else {
            return Err(Invalid(
                "the chunk has fewer values than its boxes have cells",
            ));
        };
        let pad = rest.last().map_or(0, |value| value.to_word());
        if rest.iter().any(|value| value.to_word() != pad) {
            return Err(Invalid("the padding after the boxes must repeat one value"));
        }
        let Some((side, boxes)) = in_blocks(boxes) else {
            return Ok(None);
        };
        let Ok(places) = Places::new(&boxes, side) else {
            return Ok(None);
        };
        let mut sorted = vec![T::default(); cells];
        places.for_each_row(|from, to, length| {
            sorted[to..to + length].copy_from_slice(&values[from..from + length]);
        });
        let layout = Layout::Blocks {
            side,
            origins: &places.origins,
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
            big_endian,
            length: bytes.len(),
        };
        Ok(Some(head.packet(&content, &stream)))
    })
}

/// A box counted in unit blocks, from the lowest one of all boxes on.
struct Counted {
    first: [usize; 3],
    lengths: [usize; 3],
}

/// The largest unit blocks that all boxes consist of, and the boxes counted in them.
fn in_blocks(boxes: &[BoxOfCells]) -> Option<([usize; 3], Vec<Counted>)> {
    let mut side = [0; 3];
    let mut lowest = [0; 3];
    for d in 0..3 {
        lowest[d] = boxes.iter().map(|one| one.first[d]).min()?;
        let highest = boxes.iter().map(|one| one.first[d]).max()?;
        if highest.checked_sub(lowest[d])? >= REACH {
            return None;
        }
        let common = boxes.iter().fold(0, |common, one| {
            let far = (one.first[d] - lowest[d]) as usize;
            divisor(divisor(common, far), one.lengths[d])
        });
        side[d] = (1..=SIDE.min(common))
            .rev()
            .find(|n| common.is_multiple_of(*n))?;
    }
    let counted = boxes.iter().map(|one| Counted {
        first: std::array::from_fn(|d| (one.first[d] - lowest[d]) as usize / side[d]),
        lengths: std::array::from_fn(|d| one.lengths[d] / side[d]),
    });
    (side.iter().product::<usize>() >= CELLS).then(|| (side, counted.collect()))
}

/// The greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Where the unit blocks of boxes lie: in space, and in the chunk.
struct Places {
    side: [usize; 3],
    /// First cells along the Morton curve.
    origins: Vec<[i64; 3]>,
    /// For each of them, where its first row begins in the chunk, and how far apart rows are in z
    /// and y.
    rows: Vec<[usize; 3]>,
}

impl Places {
    /// # Errors
    /// `Corrupt` where a block is in two boxes, or too far out.
    fn new(boxes: &[Counted], side: [usize; 3]) -> Result<Self> {
        let mut blocks = Vec::new();
        let mut begin = 0;
        for one in boxes {
            let [nz, ny, nx] = one.lengths;
            let steps = [ny * side[1] * nx * side[2], nx * side[2]];
            for block in 0..nz * ny * nx {
                let at = [block / nx / ny, block / nx % ny, block % nx];
                let origin = std::array::from_fn(|d| ((one.first[d] + at[d]) * side[d]) as i64);
                let key = key_of(&origin, side)
                    .map_err(|_| Corrupt("the origin of a box is out of range"))?;
                let row = begin + at[0] * side[0] * steps[0] + at[1] * side[1] * steps[1];
                blocks.push((key, origin, [row + at[2] * side[2], steps[0], steps[1]]));
            }
            begin += nz * side[0] * steps[0];
        }
        blocks.sort_unstable_by_key(|block| block.0);
        if blocks.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Corrupt("boxes overlap; expected every cell in one box"));
        }
        Ok(Self {
            side,
            origins: blocks.iter().map(|block| block.1).collect(),
            rows: blocks.iter().map(|block| block.2).collect(),
        })
    }

    /// Calls `visit(place in the chunk, place in the blocks, length)` for all rows of all blocks.
    fn for_each_row(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [sz, sy, sx] = self.side;
        for (number, [first, dz, dy]) in self.rows.iter().enumerate() {
            for z in 0..sz {
                for y in 0..sy {
                    let block = ((number * sz + z) * sy + y) * sx;
                    visit(first + z * dz + y * dy, block, sx);
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
    // As encoders have it: so the tables of blocks are smaller than what they hold.
    if volume(side).is_none_or(|cells| cells < CELLS) {
        return Err(Corrupt("the side of unit blocks is below its minimum"));
    }
    let count = rest.number_to(out.len())?;
    let most = (REACH - 1) as usize;
    let (mut boxes, mut cells) = (Vec::new(), 0usize);
    for _ in 0..count {
        let (first, lengths) = (three(&mut rest, most)?, three(&mut rest, most)?);
        let sides = std::array::from_fn(|d| lengths[d].saturating_mul(side[d]));
        let more = volume(sides).filter(|n| *n > 0);
        cells = more
            .and_then(|more| cells.checked_add(more))
            .filter(|cells| *cells <= out.len())
            .ok_or(Corrupt(
                "the cells of the boxes differ in number from the values",
            ))?;
        boxes.push(Counted { first, lengths });
    }
    if !rest.0.is_empty() {
        return Err(Corrupt("expected the end of the chunk; found more bytes"));
    }
    let places = Places::new(&boxes, side)?;
    let mut sorted = vec![T::default(); cells];
    decode_stream(stream, &mut sorted, workspace)?;
    places.for_each_row(|to, from, length| {
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
