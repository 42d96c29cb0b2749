//! Masks: which of a region's values are present, entropy coded as cubes.

use crate::domain::bitmap::Bitmap;
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Probability};
use crate::error::Result;

/// Sides of cubes. A mask is coded with the largest for which every cube is constant.
const SIDES: [usize; 4] = [8, 4, 2, 1];
/// The state of a cube without known points; the other states are 0 and 1.
const UNKNOWN: u8 = 2;

/// The context model of cubes: the states of the cubes before them in z, y and x.
struct Model(Vec<Probability>);

impl Model {
    fn new() -> Self {
        Self(vec![Probability::default(); 27])
    }

    fn probability(
        &mut self,
        cubes: &[u8],
        [_, ny, nx]: [usize; 3],
        [z, y, x]: [usize; 3],
    ) -> &mut Probability {
        let at = (z * ny + y) * nx + x;
        let before = |exists: bool, stride: usize| {
            if exists {
                usize::from(cubes[at - stride])
            } else {
                usize::from(UNKNOWN)
            }
        };
        let context = before(z > 0, ny * nx) * 9 + before(y > 0, nx) * 3 + before(x > 0, 1);
        &mut self.0[context]
    }
}

/// Encodes the mask of a region: `valid` are the present points, `known` the points whose presence is coded (all
/// others are absent). Returns the side of the cubes and the bytes.
pub(crate) fn encode(valid: &Bitmap, known: &Bitmap) -> (u8, Vec<u8>) {
    for side in SIDES {
        let Some((cubes, states)) = states(valid, known, side) else {
            continue;
        };
        let (mut encoder, mut model) = (BinaryEncoder::new(), Model::new());
        for_each_cube(cubes, |cube, place| {
            if states[cube] != UNKNOWN {
                let bit = states[cube] == 1;
                encoder.bit(model.probability(&states, cubes, place), bit);
            }
        });
        return (side as u8, encoder.finish());
    }
    (1, Vec::new())
}

/// Undoes [`encode`].
///
/// # Errors
/// `Corrupt` where bytes follow the last cube.
pub(crate) fn decode(side: usize, known: &Bitmap, bytes: &[u8]) -> Result<Bitmap> {
    let shape = known.shape();
    let cubes = shape.map(|n| n.div_ceil(side));
    let mut states = vec![UNKNOWN; cubes.iter().product()];
    let mut valid = Bitmap::new(shape);
    let (mut decoder, mut model) = (BinaryDecoder::new(bytes), Model::new());
    for_each_cube(cubes, |cube, place| {
        let mut known_bits = 0;
        for_each_row(shape, side, place, |row, x| {
            known_bits |= known.bits_of(row, x, side)
        });
        if known_bits != 0 {
            let bit = decoder.bit(model.probability(&states, cubes, place));
            states[cube] = u8::from(bit);
            if bit {
                for_each_row(shape, side, place, |row, x| {
                    valid.set_bits(row, x, known.bits_of(row, x, side));
                });
            }
        }
    });
    decoder.finish()?;
    Ok(valid)
}

/// The states of the cubes of a mask, and their number in z, y, x; `None` where one is not constant.
fn states(valid: &Bitmap, known: &Bitmap, side: usize) -> Option<([usize; 3], Vec<u8>)> {
    let shape = known.shape();
    let cubes = shape.map(|n| n.div_ceil(side));
    let mut states = vec![UNKNOWN; cubes.iter().product()];
    let mut constant = true;
    for_each_cube(cubes, |cube, place| {
        let (mut present_bits, mut absent_bits) = (0, 0);
        for_each_row(shape, side, place, |row, x| {
            let (known, valid) = (known.bits_of(row, x, side), valid.bits_of(row, x, side));
            present_bits |= known & valid;
            absent_bits |= known & !valid;
        });
        constant &= present_bits == 0 || absent_bits == 0;
        if present_bits | absent_bits != 0 {
            states[cube] = u8::from(present_bits != 0);
        }
    });
    constant.then_some((cubes, states))
}

/// Whether masks are coded with cubes of this side.
pub(crate) fn is_valid_side(side: u8) -> bool {
    SIDES.contains(&usize::from(side))
}

/// Calls `visit` for the rows of a cube: their z and y, and the cube's first x.
#[inline(always)]
fn for_each_row(
    shape: [usize; 3],
    side: usize,
    place: [usize; 3],
    mut visit: impl FnMut([usize; 2], usize),
) {
    let [z, y, x] = place.map(|n| n * side);
    for z in z..(z + side).min(shape[0]) {
        for y in y..(y + side).min(shape[1]) {
            visit([z, y], x);
        }
    }
}

fn for_each_cube([nz, ny, nx]: [usize; 3], mut visit: impl FnMut(usize, [usize; 3])) {
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                visit((z * ny + y) * nx + x, [z, y, x]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_last_cube_are_refused() {
        let known = Bitmap::full([3, 4, 70]);
        let mut valid = Bitmap::new([3, 4, 70]);
        valid.set([1, 2], 5, 66);
        let (side, mut bytes) = encode(&valid, &known);
        let side = usize::from(side);
        assert_eq!(decode(side, &known, &bytes), Ok(valid));
        bytes.extend([0; 9]);
        assert!(decode(side, &known, &bytes).is_err());
    }
}
