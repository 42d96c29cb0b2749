//! The points of a phase around which all of some neighbours are present.

use crate::domain::bitmap::{Bitmap, first_bits};
use crate::domain::lattice::Phases;
use crate::predict::batch_geometry::Batch;
use crate::predict::interpolate::VECTOR_POINTS;

/// A neighbour of each point of a phase.
#[derive(Clone, Copy)]
pub(crate) struct Neighbour {
    /// The phase that it belongs to.
    pub phase: usize,
    /// Its index less that of the point, in z, y, x.
    pub step: [isize; 3],
}

impl Neighbour {
    /// The distance of its value in memory from that of the point.
    pub(crate) fn offset(&self, phases: &Phases) -> isize {
        let distance = |d: usize| self.step[d] * phases.stride[d] as isize;
        (0..3).map(distance).sum()
    }
}

/// The points of a phase around which all of some neighbours are present.
pub(crate) struct Presence<'a> {
    t: usize,
    neighbours: Vec<Neighbour>,
    /// The number of points of a row.
    row_points: usize,
    /// The first index and the end, in each dimension, of points whose neighbours are all inside the lattice.
    spans: [[usize; 2]; 3],
    /// The present points of each phase; `None` for all.
    valid: Option<&'a [Bitmap; 8]>,
}

impl<'a> Presence<'a> {
    /// Of points of phase `t`.
    pub(crate) fn new(
        t: usize,
        neighbours: Vec<Neighbour>,
        phases: &Phases,
        valid: Option<&'a [Bitmap; 8]>,
    ) -> Self {
        let mut spans = phases.points(t).map(|n| [0, n]);
        for neighbour in &neighbours {
            let points = phases.points(neighbour.phase);
            for d in 0..3 {
                let [first, end] = &mut spans[d];
                *first = (*first).max(neighbour.step[d].min(0).unsigned_abs());
                *end = (*end).min(points[d].saturating_add_signed(-neighbour.step[d]));
            }
        }
        Self {
            t,
            neighbours,
            row_points: phases.points(t)[2],
            spans,
            valid,
        }
    }

    /// Calls `visit(offset, length, mask)` for the words of a batch, whose rows are `pitch` apart, with points around which all
    /// neighbours are present. Offsets are from the batch's first point, lengths in whole groups of `VECTOR_POINTS`.
    pub(crate) fn for_each_word(
        &self,
        batch: &Batch,
        pitch: usize,
        mut visit: impl FnMut(usize, usize, u64),
    ) {
        for row in 0..batch.rows {
            for word in 0..self.row_points.div_ceil(64) {
                let mask = self.word([batch.z, batch.y + row], word);
                if mask != 0 {
                    let n = (self.row_points - 64 * word).min(64);
                    visit(
                        row * pitch + 64 * word,
                        n.next_multiple_of(VECTOR_POINTS),
                        mask,
                    );
                }
            }
        }
    }

    /// One bit for each of the 64 points of a word of a row.
    fn word(&self, [z, y]: [usize; 2], word: usize) -> u64 {
        let Some(valid) = self.valid else {
            let is_within = |d: usize, k: usize| (self.spans[d][0]..self.spans[d][1]).contains(&k);
            if !is_within(0, z) || !is_within(1, y) {
                return 0;
            }
            let [first, end] = self.spans[2];
            return first_bits(end, word) & !first_bits(first, word);
        };
        let own = valid[self.t].word([z, y], word);
        self.neighbours.iter().fold(own, |all, neighbour| {
            let [step_z, step_y, step_x] = neighbour.step;
            let row = [z.wrapping_add_signed(step_z), y.wrapping_add_signed(step_y)];
            let (source, distance) = (&valid[neighbour.phase], step_x.unsigned_abs() as u32);
            all & match step_x {
                0 => source.word(row, word),
                1.. => source.word_after(row, word, distance),
                _ => source.word_before(row, word, distance),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_whole_lattices_agree_with_bitmaps() {
        let lengths = [1, 2, 3, 5, 8, 12, 13];
        let rows = [1, 2, 5, 12, 127, 128, 129, 134, 257];
        for shape in lengths
            .iter()
            .flat_map(|z| lengths.iter().flat_map(move |y| rows.map(|x| [*z, *y, x])))
        {
            let phases = Phases::new(shape);
            let valid = Bitmap::full(shape).phases();
            for t in (1..8).filter(|t| !phases.points(*t).contains(&0)) {
                let [nz, ny, nx] = phases.points(t);
                for d in 0..3 {
                    let mut neighbours = vec![];
                    for k in [-2, -1, 0, 3] {
                        let mut step = [0; 3];
                        step[d] = k;
                        let phase = t ^ 1 << d;
                        neighbours.push(Neighbour { phase, step });
                    }
                    let of = |valid| Presence::new(t, neighbours.clone(), &phases, valid);
                    let (whole, with_bitmaps) = (of(None), of(Some(&valid)));
                    for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
                        for word in 0..nx.div_ceil(64) {
                            let words = [&whole, &with_bitmaps].map(|p| p.word([z, y], word));
                            assert_eq!(words[0], words[1], "{shape:?} {t} {d} {z} {y} {word}");
                        }
                    }
                }
            }
        }
    }
}
