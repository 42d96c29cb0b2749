//! Batches: the rows of a phase that are predicted together, and the points of these that are present.

use crate::domain::bitmap::{Bitmap, bit_runs};
use crate::domain::lattice::Phases;
use crate::predict::interpolate::{NeighbourMask, VECTOR_POINTS, nonzero_bytes};
use crate::predict::mask_pyramid;
use crate::simd::RowMask;
use crate::simd::dispatch::vectorised;

/// Points of a batch, approximately: their buffers stay in the first-level cache.
const BATCH_POINTS: usize = 1152;
/// Runs at most this far apart are predicted as one.
const MAX_GAP: usize = 8;

/// Rows of a phase that are predicted together, at most.
pub(crate) fn max_rows(phases: &Phases) -> usize {
    (BATCH_POINTS / phases.stride[1]).max(1)
}

/// Rows that are predicted together: `rows` from (z, y) on, whose first point is at `at`.
pub(crate) struct Batch {
    pub z: usize,
    pub y: usize,
    pub rows: usize,
    pub at: usize,
}

/// A row of a batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchRow {
    /// Its z and y.
    pub position: [usize; 2],
    /// Its offset from the batch's first point.
    pub from: usize,
    /// How many of its points are coded.
    pub count: usize,
}

vectorised! {
    /// Counts the points of rows, all of which have the same number of words.
    fn count_points [] of [] (words: &[u64], rows: &mut [BatchRow]) {
        let words_of_row = words.len() / rows.len().max(1);
        for (row, words) in rows.iter_mut().zip(words.chunks_exact(words_of_row.max(1))) {
            row.count = words.iter().map(|word| word.count_ones() as usize).sum();
        }
    }
}

/// The points of a phase that are present, and the presence of their neighbours.
pub(crate) struct Geometry<'a, const N: usize> {
    t: usize,
    /// The dimensions along which the phase is interpolated.
    pub(crate) used: [usize; N],
    /// Points that are coded; `None` for all.
    coded: Option<&'a [Bitmap; 8]>,
    /// Points that are predicted, and that others are predicted from: the coded ones, or `None` for all.
    valid: Option<&'a [Bitmap; 8]>,
    /// The words of a row whose points are all present.
    full: &'a [u64],
    /// Points of a row.
    pub(crate) points: usize,
    /// Points of the lattice with even indices.
    even_points: [usize; 3],
    /// Distance of rows.
    pub(crate) pitch: usize,
    max_rows: usize,
}

impl<'a, const N: usize> Geometry<'a, N> {
    /// For phase `t`, which is interpolated along the dimensions `used`.
    pub(crate) fn new(
        phases: &Phases,
        (coded, valid): (Option<&'a [Bitmap; 8]>, Option<&'a [Bitmap; 8]>),
        (t, used): (usize, [usize; N]),
        full: &'a [u64],
    ) -> Self {
        Self {
            t,
            used,
            coded,
            valid,
            full,
            points: phases.points(t)[2],
            even_points: phases.fine.map(|n| n.div_ceil(2)),
            pitch: phases.stride[1],
            max_rows: max_rows(phases),
        }
    }

    /// Rows that are predicted together, at most.
    pub(crate) fn max_rows(&self) -> usize {
        self.max_rows
    }

    /// The bits of a row's points that are coded.
    #[inline(always)]
    pub(crate) fn present(&self, [z, y]: [usize; 2]) -> &'a [u64] {
        self.coded
            .map_or(self.full, |coded| coded[self.t].row(z, y))
    }

    /// The number of points of a plane of `rows` rows that are coded.
    pub(crate) fn count(&self, z: usize, rows: usize) -> usize {
        match self.coded {
            None => rows * self.points,
            Some(coded) => Bitmap::count(coded[self.t].plane(z)),
        }
    }

    /// Lists the rows of a batch that have points to predict.
    pub(crate) fn list_rows(&self, batch: &Batch, rows: &mut Vec<BatchRow>) {
        rows.clear();
        rows.extend((0..batch.rows).map(|row| BatchRow {
            position: [batch.z, batch.y + row],
            from: row * self.pitch,
            count: self.points,
        }));
        if let Some(coded) = self.coded {
            let words = coded[self.t].rows(batch.z, batch.y..batch.y + batch.rows);
            count_points(words, rows);
            if self.valid.is_some() {
                rows.retain(|row| row.count > 0);
            }
        }
    }

    /// Row masks, used to compact per-point bytes.
    pub(crate) fn row_masks<'r>(
        &'r self,
        rows: &'r [BatchRow],
    ) -> impl Iterator<Item = RowMask<'r>> + Clone {
        rows.iter().map(
            #[inline(always)]
            |row| RowMask {
                start: row.from,
                bits: self.present(row.position),
                count: row.count,
            },
        )
    }

    /// Points from the first of a batch to its last, padding between rows included.
    pub(crate) fn span(&self, batch: &Batch) -> usize {
        (batch.rows - 1) * self.pitch + self.points
    }

    /// Lists the runs of present points: offsets from the batch's first point, and lengths in whole groups of
    /// `VECTOR_POINTS`.
    pub(crate) fn list_runs(&self, batch: &Batch, runs: &mut Vec<(usize, usize)>) {
        runs.clear();
        if self.valid.is_none() {
            return runs.push((0, self.span(batch).next_multiple_of(VECTOR_POINTS)));
        }
        for row in 0..batch.rows {
            let words = self.present([batch.z, batch.y + row]).iter();
            for (word, present) in words.enumerate().filter(|(_, present)| **present != 0) {
                let start = row * self.pitch + 64 * word;
                bit_runs(nonzero_bytes(*present), |first, n| {
                    let (from, length) = (start + VECTOR_POINTS * first, VECTOR_POINTS * n);
                    match runs.last_mut() {
                        Some((begin, before)) if from <= *begin + *before + MAX_GAP => {
                            let all = from + length - *begin;
                            *before = all.next_multiple_of(VECTOR_POINTS).max(*before);
                        }
                        _ => runs.push((from, length)),
                    }
                });
            }
        }
    }

    /// Calls `visit(word's number, mask)` for the words of a row in which points lack a nearest neighbour.
    #[inline(always)]
    pub(crate) fn for_each_missing_neighbours(
        &self,
        [z, y]: [usize; 2],
        mut visit: impl FnMut(usize, NeighbourMask<N>),
    ) {
        if let Some(valid) = self.valid {
            for (word, own) in self.present([z, y]).iter().enumerate() {
                let neighbours =
                    mask_pyramid::neighbour_mask(valid, (self.t, self.used), [z, y], (word, *own));
                if neighbours.missing_neighbours() != 0 {
                    visit(word, neighbours);
                }
            }
            return;
        }
        // Without holes, only points after the last even index lack a neighbour. Rows that lack a neighbour along some line
        // are predicted along the others.
        let is_last = self.is_last([z, y]);
        let none = self.used.iter().all(|d| is_last[*d]);
        let first = match (none, self.last_point_lacks_neighbour()) {
            (true, _) => 0,
            (_, true) => self.full.len() - 1,
            _ => return,
        };
        for (word, own) in self.full.iter().enumerate().skip(first) {
            let neighbours = NeighbourMask {
                own: if none { *own } else { own & !(own >> 1) },
                before: [u64::MAX; N],
                after: self
                    .used
                    .map(|d| if d == 2 || is_last[d] { 0 } else { u64::MAX }),
            };
            visit(word, neighbours);
        }
    }

    /// The number of leading rows of a batch without holes in which only the last point may lack a neighbour.
    pub(crate) fn interior_rows(&self, batch: &Batch) -> usize {
        let last = [batch.z, batch.y + batch.rows - 1];
        match (self.valid.is_none(), self.is_last(last)) {
            (true, [false, last, _]) => batch.rows - usize::from(last),
            _ => 0,
        }
    }

    /// Whether the last point of rows without holes lacks a neighbour.
    pub(crate) fn last_point_lacks_neighbour(&self) -> bool {
        self.used.contains(&2) && self.points == self.even_points[2]
    }

    /// The points of a row, rounded up to whole groups.
    pub(crate) fn row_of_groups(&self) -> usize {
        self.points.next_multiple_of(VECTOR_POINTS)
    }

    /// The dimensions, z and y, in which a row without holes is after the last even index.
    pub(crate) fn is_last(&self, [z, y]: [usize; 2]) -> [bool; 3] {
        let whole = self.valid.is_none();
        let last =
            |d: usize, k: usize| whole && self.used.contains(&d) && k + 1 >= self.even_points[d];
        [last(0, z), last(1, y), false]
    }
}
