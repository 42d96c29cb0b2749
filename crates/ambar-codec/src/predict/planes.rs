//! Rows behind the first plane of a phase: their classes follow from earlier phases and the plane
//! before, so that the tokens of all rows of a batch are known at once.

use crate::element::Element;
use crate::predict::batch::{Pass, RowScratch};
use crate::predict::batch_geometry::Batch;
use crate::predict::reconstruct::add_and_mark;
use crate::predict::row::RowCoder;
use crate::simd::LANES;
use crate::simd::compact::pack_rows;

/// Codes the rows of a batch that has a plane before it.
pub(crate) fn rows_after_plane<T: Element, const N: usize, C: RowCoder<T>>(
    pass: &Pass<'_, T, N>,
    batch: &Batch,
    own: &mut [T],
    marks: &mut [u8],
    scratch: &mut RowScratch<T>,
    coder: &mut C,
) {
    pass.geometry.runs(batch, &mut scratch.runs);
    pass.geometry.rows(batch, &mut scratch.rows);
    pass.predict::<true>(batch, scratch);
    classes(pass, batch, marks, scratch);
    coder.ahead_each(&scratch.classes);
    if C::LAYS {
        return laid_rows_after_plane(pass, batch, own, marks, scratch, coder);
    }
    let room = pass.geometry.points.next_multiple_of(LANES);
    for row in &scratch.rows {
        let at = batch.at + row.from;
        let known = (&scratch.predictions[row.from..], None);
        let to = (&mut own[at..at + room], Some(&mut marks[at..at + room]));
        coder.row(pass.row(*row, known, to));
    }
}

/// Finds the classes of the points that are there, row by row.
fn classes<T: Element, const N: usize>(
    pass: &Pass<'_, T, N>,
    batch: &Batch,
    marks: &[u8],
    scratch: &mut RowScratch<T>,
) {
    for (from, n) in &scratch.runs {
        let (at, n) = (batch.at + from, n.next_multiple_of(LANES));
        let near = &mut scratch.near[*from..from + n];
        pass.expectation.near(pass.marks, at, near);
        pass.expectation.bins_after_plane(
            (marks, at),
            (near, &scratch.rough[*from..from + n]),
            &mut scratch.before,
            &mut scratch.bins[*from..from + n],
        );
    }
    let spots = pass.geometry.spots(&scratch.rows);
    let points = pass.geometry.points;
    pack_rows(spots, points, &scratch.bins, &mut scratch.classes);
}

/// Decodes the rows of a batch, whose predictions and tokens are known.
fn laid_rows_after_plane<T: Element, const N: usize, C: RowCoder<T>>(
    pass: &Pass<'_, T, N>,
    batch: &Batch,
    own: &mut [T],
    marks: &mut [u8],
    scratch: &mut RowScratch<T>,
    coder: &mut C,
) {
    let raw = pass.lay(batch, scratch, coder);
    let step = T::from_f64(pass.level.step);
    for (from, n) in &scratch.runs {
        let (at, n) = (batch.at + from, n.next_multiple_of(LANES));
        add_and_mark(
            &scratch.tokens[*from..from + n],
            step,
            &scratch.predictions[*from..from + n],
            &mut own[at..at + n],
            &mut marks[at..at + n],
        );
    }
    if !raw {
        return;
    }
    pass.for_each_raw_point(batch, &scratch.tokens, |k, place, token| {
        let (residual, at) = (coder.raw(token, place), batch.at + k);
        let prediction = scratch.predictions[k];
        own[at] = match residual {
            Some(residual) => prediction.plus(T::from_i32(residual).times(step)),
            None => prediction,
        };
        let size = residual.map_or(u32::MAX, i32::unsigned_abs);
        marks[at] = size.min(255) as u8;
    });
}
