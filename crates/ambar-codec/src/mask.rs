//! Masks: which of a region's values are there, in few bytes.

use crate::binary::{BinaryDecoder, BinaryEncoder, Probability};

/// Sides of the cubes that are tried: the largest in which a mask is constant is coded with.
const SIDES: [usize; 4] = [8, 4, 2, 1];

/// Codes cubes of a mask, in their order, under the cubes before them in z, y and x.
struct Model(Vec<Probability>);

impl Model {
    fn new() -> Self {
        Self(vec![Probability::default(); 27])
    }

    fn under(
        &mut self,
        cubes: &[u8],
        [_, ny, nx]: [usize; 3],
        [z, y, x]: [usize; 3],
    ) -> &mut Probability {
        let at = (z * ny + y) * nx + x;
        let before = |there: bool, stride: usize| {
            if there {
                usize::from(cubes[at - stride])
            } else {
                2
            }
        };
        let context = before(z > 0, ny * nx) * 9 + before(y > 0, nx) * 3 + before(x > 0, 1);
        &mut self.0[context]
    }
}

/// Encodes the mask of a region of `shape` (1: there, 0: not). `known` says for which values that is
/// to be told; the others are not there. Gives the side of the cubes and the bytes.
pub(crate) fn encode(shape: [usize; 3], valid: &[u8], known: Option<&[u8]>) -> (u8, Vec<u8>) {
    let told = |at: usize| known.is_none_or(|known| known[at] == 1);
    for side in SIDES {
        let cubes = shape.map(|n| n.div_ceil(side));
        // 2: nothing to be told.
        let mut states = vec![2u8; cubes.iter().product()];
        let mut constant = true;
        for_each(shape, side, |cube, at| {
            if told(at) {
                constant &= states[cube] == 2 || states[cube] == valid[at];
                states[cube] = valid[at];
            }
        });
        if !constant {
            continue;
        }
        let (mut encoder, mut model) = (BinaryEncoder::new(), Model::new());
        places(cubes, |cube, place| {
            if states[cube] < 2 {
                let bit = states[cube] == 1;
                encoder.bit(model.under(&states, cubes, place), bit);
            }
        });
        return (side as u8, encoder.finish());
    }
    (1, Vec::new())
}

/// Undoes [`encode`].
pub(crate) fn decode(
    shape: [usize; 3],
    side: usize,
    known: Option<&[u8]>,
    bytes: &[u8],
    valid: &mut [u8],
) {
    let told = |at: usize| known.is_none_or(|known| known[at] == 1);
    let cubes = shape.map(|n| n.div_ceil(side));
    let mut states = vec![2u8; cubes.iter().product()];
    let mut ask = vec![false; states.len()];
    for_each(shape, side, |cube, at| ask[cube] |= told(at));
    let (mut decoder, mut model) = (BinaryDecoder::new(bytes), Model::new());
    places(cubes, |cube, place| {
        if ask[cube] {
            let bit = decoder.bit(model.under(&states, cubes, place));
            states[cube] = u8::from(bit);
        }
    });
    for_each(shape, side, |cube, at| {
        valid[at] = u8::from(told(at) && states[cube] == 1)
    });
}

/// Whether a side is one that masks are coded with.
pub(crate) fn is_side(side: u8) -> bool {
    SIDES.contains(&usize::from(side))
}

fn for_each([nz, ny, nx]: [usize; 3], side: usize, mut visit: impl FnMut(usize, usize)) {
    let (cy, cx) = (ny.div_ceil(side), nx.div_ceil(side));
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let cube = (z / side * cy + y / side) * cx + x / side;
                visit(cube, (z * ny + y) * nx + x);
            }
        }
    }
}

fn places([nz, ny, nx]: [usize; 3], mut visit: impl FnMut(usize, [usize; 3])) {
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                visit((z * ny + y) * nx + x, [z, y, x]);
            }
        }
    }
}
