//! Predicted holes: the points of holes between unit blocks that are coded, and the values an encoder gives them.
//!
//! A hole's points are predicted like all others, and their residuals are 0. Only the faces of a hole directly
//! after a block are coded, because the block's last points are interpolated from them.

use crate::domain::bitmap::Bitmap;
use crate::domain::blocks::BlockRegion;
use crate::domain::padding::{Padding, PaddingValue, finite_or_zero};
use crate::domain::regions::{RegionBuffer, present_first_rows};
use crate::element::Element;

/// The coded points of a region with holes: the first one, those in blocks, and the faces of holes directly
/// after a block.
pub(crate) fn coded(region: &BlockRegion, side: [usize; 3]) -> Option<Bitmap> {
    let mut coded = present_first_rows(region, side)?;
    for_each_face(region, side, |[z, y, x], _, d| {
        if d == 2 {
            coded.set([z, y], x, x + 1);
        }
    });
    coded.repeat([side[0], side[1]]);
    for_each_face(region, side, |[z, y, x], shape, d| {
        // Faces after blocks along x were set above, and repeated for all rows of a block.
        if d == 2 {
            return;
        }
        for z in z..z + shape[0] {
            for y in y..y + shape[1] {
                coded.set([z, y], x, x + shape[2]);
            }
        }
    });
    coded.set([0; 2], 0, 1);
    Some(coded)
}

/// Gives the coded points outside blocks values and a tolerance: the mean of the linear extrapolations from the
/// blocks before them. These values are padding, so any value within the tolerance serves. Marks these points as
/// present.
pub(crate) fn extrapolate_hole_faces<T: Element>(
    region: &BlockRegion,
    side: [usize; 3],
    dense: &mut RegionBuffer<'_, T>,
) {
    let Some((present, coded)) = dense.valid.take().zip(coded(region, side)) else {
        return;
    };
    let mut padding = Padding::new(coded.clone().without(&present));
    let strides = [dense.shape[1] * dense.shape[2], dense.shape[2], 1];
    let values = dense.values.to_mut();
    if !present.get([0; 3])
        && let Some((_, place)) = region.blocks.first()
    {
        let first: usize = (0..3).map(|d| place[d] * side[d] * strides[d]).sum();
        values[0] = finite_or_zero(values[first].to_f64());
        let index = padding.index([0; 3]);
        *padding.value_mut(index) = PaddingValue::exact(values[0]);
    }
    // The number of extrapolations of each point, at most one along each dimension.
    let mut counts = vec![0; padding.len()];
    for_each_face(region, side, |origin, shape, d| {
        for_each_point(origin, shape, |place| {
            let at: usize = (0..3).map(|d| place[d] * strides[d]).sum();
            let index = padding.index(place);
            let near = [1, 2, 3].map(|k: usize| values[at - k.min(side[d]) * strides[d]].to_f64());
            let padding = padding.value_mut(index);
            padding.join_extrapolation(near, counts[index]);
            values[at] = padding.value;
            counts[index] += 1;
        });
    });
    (dense.valid, dense.padding) = (Some(coded), Some(padding));
}

/// Calls `visit(origin, shape, dimension)` for the faces of a region's holes directly after a block along a
/// dimension.
fn for_each_face(
    region: &BlockRegion,
    side: [usize; 3],
    mut visit: impl FnMut([usize; 3], [usize; 3], usize),
) {
    let [nz, ny, nx] = region.places;
    let mut filled = vec![false; nz * ny * nx];
    let index = |[z, y, x]: [usize; 3]| (z * ny + y) * nx + x;
    for (_, place) in &region.blocks {
        filled[index(*place)] = true;
    }
    for (_, place) in &region.blocks {
        for d in 0..3 {
            let mut next = *place;
            next[d] += 1;
            if next[d] < region.places[d] && !filled[index(next)] {
                let mut shape = side;
                shape[d] = 1;
                visit(std::array::from_fn(|d| next[d] * side[d]), shape, d);
            }
        }
    }
}

/// Calls `visit` for each point of a cuboid.
fn for_each_point([z, y, x]: [usize; 3], shape: [usize; 3], mut visit: impl FnMut([usize; 3])) {
    for z in z..z + shape[0] {
        for y in y..y + shape[1] {
            (x..x + shape[2]).for_each(|x| visit([z, y, x]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::blocks;
    use crate::domain::lattice::Phases;
    use crate::domain::regions::Layout;
    use crate::entropy::bitio::Cursor;
    use crate::stream::encode::Workspace;
    use crate::stream::header::{Header, Mode};
    use crate::stream::params::EncoderParams;
    use crate::{decode, encode};

    const SIDE: [usize; 3] = [2, 4, 8];

    /// The origins of 2 x 2 x 3 blocks except the missing ones, in the order of their keys.
    fn origins(missing: &[[i64; 3]]) -> Vec<[i64; 3]> {
        let mut places: Vec<[i64; 3]> = (0..12).map(|i| [i / 6, i / 3 % 2, i % 3]).collect();
        places.retain(|place| !missing.contains(place));
        let origin = |place: [i64; 3]| [0, 1, 2].map(|d| place[d] * SIDE[d] as i64);
        let mut origins: Vec<[i64; 3]> = places.into_iter().map(origin).collect();
        origins.sort_by_key(|origin| blocks::key_of(origin, SIDE).unwrap());
        origins
    }

    fn region(missing: &[[i64; 3]]) -> BlockRegion {
        let keys = blocks::keys(&origins(missing), SIDE).unwrap();
        blocks::regions(&keys, blocks::MIN_FILL).pop().unwrap()
    }

    #[test]
    fn faces_after_blocks_are_coded() {
        assert_eq!(coded(&region(&[]), SIDE), None);
        let cells: usize = SIDE.iter().product();
        // The missing blocks, and the number of their coded points.
        let cases: [(&[[i64; 3]], usize); 5] = [
            (&[[0, 0, 0]], 1),
            (&[[0, 0, 2]], 8),
            (&[[0, 0, 1], [0, 0, 2]], 8),
            (&[[1, 1, 1]], 32 + 16 + 8 - 8 - 4 - 2 + 1),
            (&[[1, 1, 1], [1, 1, 2]], 64 - 21 + 32 + 16 - 8),
        ];
        for (missing, faces) in cases {
            let region = region(missing);
            let coded = coded(&region, SIDE).unwrap();
            let present = crate::domain::regions::present_points(&region, SIDE).unwrap();
            let count = |bits: &Bitmap| -> usize {
                let [nz, ny, _] = bits.shape();
                let rows = (0..nz * ny).flat_map(|row| bits.row(row / ny, row % ny));
                rows.map(|word| word.count_ones() as usize).sum()
            };
            assert_eq!(count(&present), (12 - missing.len()) * cells);
            assert_eq!(count(&coded) - count(&present), faces, "{missing:?}");
        }
    }

    /// Encoder and decoder must compute the same values in blocks and holes, the sign of 0 included.
    #[test]
    fn encoder_and_decoder_compute_the_same_values() {
        let value = |i: usize| match i % 241 {
            3 => 1e301,
            7 => -1e-320,
            11 => f64::INFINITY,
            // Different NaN, because equal ones would be masked.
            21 => f64::from_bits(f64::NAN.to_bits() + i as u64),
            29 => 1e299,
            // With more literals, the encoder would try a lossless stream.
            40..90 => -0.0,
            _ => (i as f64 * 0.37).sin() * 1e3 + (i % 7) as f64,
        };
        let missing: [&[[i64; 3]]; 3] = [&[[0, 0, 0]], &[[0, 1, 2], [1, 1, 1]], &[[1, 0, 0]]];
        for (missing, params) in missing.iter().flat_map(|m| (64..192).map(move |p| (m, p))) {
            let params = EncoderParams::numbered(params);
            let origins = origins(missing);
            let values: Vec<f64> = (0..64 * origins.len()).map(value).collect();
            let layout = Layout::Blocks {
                side: SIDE,
                origins: &origins,
            };
            let [mut one, mut two] = [Workspace::default(), Workspace::default()];
            let stream = encode(&values, &layout, 2.0, Some(params), &mut one).unwrap();
            let header = Header::parse(&mut Cursor(&stream)).unwrap();
            assert!(matches!(header.mode, Mode::EntropyCoded(coding) if coding.predicts_holes));
            let mut out = vec![0.0; values.len()];
            decode(&stream, &mut out, &mut two).unwrap();
            let phases = Phases::new([4, 8, 24]);
            for (t, row) in (0..8).flat_map(|t| (0..8).map(move |row| (t, row))) {
                let row = phases.row(row / 4, row % 4);
                let [a, b] = [&one, &two].map(|w| &w.traversal.values[t][row..row + 12]);
                let same = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{missing:?} {params:?} {t} {row}");
            }
            for (a, b) in values.iter().zip(&out) {
                let near = (a - b).abs() <= 2.0 && a.is_finite();
                assert!(near || a.to_bits() == b.to_bits(), "{params:?} {a} {b}");
            }
        }
    }
}
