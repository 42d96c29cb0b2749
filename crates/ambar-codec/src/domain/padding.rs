//! Padding points of a region: coded points outside its blocks, whose decoded value is discarded.

use crate::domain::bitmap::Bitmap;

/// The padding points of a region, and their tolerances: any value within the tolerance of the original may be coded.
pub(crate) struct Padding<T> {
    points: Bitmap,
    /// The number of padding points before each row, and at the end their total.
    before: Vec<usize>,
    tolerances: Vec<T>,
}

impl<T: Copy + Default> Padding<T> {
    /// Padding at these points, with a tolerance of 0.
    pub(crate) fn new(points: Bitmap) -> Self {
        let [nz, ny, _] = points.shape();
        let mut before = vec![0];
        let mut total = 0;
        for row in 0..nz * ny {
            total += Bitmap::count(points.row(row / ny, row % ny));
            before.push(total);
        }
        Self {
            points,
            before,
            tolerances: vec![T::default(); total],
        }
    }

    /// The number of padding points.
    pub(crate) fn len(&self) -> usize {
        self.tolerances.len()
    }

    /// The number of padding points before one of them.
    pub(crate) fn index(&self, [z, y, x]: [usize; 3]) -> usize {
        let row = self.points.row(z, y);
        let last = row[x / 64] & ((1 << (x % 64)) - 1);
        self.before[z * self.points.shape()[1] + y]
            + Bitmap::count(&row[..x / 64])
            + last.count_ones() as usize
    }

    /// The tolerance of a padding point, by its index.
    pub(crate) fn tolerance_mut(&mut self, index: usize) -> &mut T {
        &mut self.tolerances[index]
    }

    /// Calls `visit(k, tolerance)` for the padding points among `points` points of a row of the region, of which point 0 has
    /// the index `start` in the region, and which are `step` apart.
    pub(crate) fn for_each_in_row(
        &self,
        start: usize,
        step: usize,
        points: usize,
        mut visit: impl FnMut(usize, T),
    ) {
        let [_, ny, nx] = self.points.shape();
        let (row, first) = (start / nx, start % nx);
        let tolerances = &self.tolerances[self.before[row]..self.before[row + 1]];
        if tolerances.is_empty() {
            return;
        }
        let mut tolerances = tolerances.iter();
        Bitmap::runs(self.points.row(row / ny, row % ny), |begin, length| {
            for (x, tolerance) in (begin..begin + length).zip(&mut tolerances) {
                let k = x.wrapping_sub(first) / step;
                if k < points && first + k * step == x {
                    visit(k, *tolerance);
                }
            }
        });
    }
}
