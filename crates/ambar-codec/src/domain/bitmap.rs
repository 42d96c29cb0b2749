//! Bitmaps of the present points of a lattice: one bit per point; each row along x begins a new word.

use crate::simd::dispatch::vectorised;
use std::ops::Range;

/// A bit for each point, z slowest. Points beyond the borders are absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bitmap {
    shape: [usize; 3],
    words: usize,
    bits: Vec<u64>,
}

impl Bitmap {
    /// A bitmap without present points.
    pub(crate) fn new(shape: [usize; 3]) -> Self {
        let words = shape[2].div_ceil(64);
        Self {
            shape,
            words,
            bits: vec![0; shape[0] * shape[1] * words],
        }
    }

    /// The number of points in z, y, x.
    pub(crate) fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The words of the row (z, y).
    #[inline(always)]
    pub(crate) fn row(&self, z: usize, y: usize) -> &[u64] {
        &self.bits[(z * self.shape[1] + y) * self.words..][..self.words]
    }

    /// The words of the rows of a plane.
    pub(crate) fn plane(&self, z: usize) -> &[u64] {
        self.rows(z, 0..self.shape[1])
    }

    /// The words of consecutive rows of a plane.
    pub(crate) fn rows(&self, z: usize, rows: Range<usize>) -> &[u64] {
        &self.bits[(z * self.shape[1] + rows.start) * self.words..][..rows.len() * self.words]
    }

    /// Words of a row.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// A word of a row; 0 beyond the borders, and for indices that wrapped around below 0.
    #[inline(always)]
    pub(crate) fn word(&self, [z, y]: [usize; 2], word: usize) -> u64 {
        if z < self.shape[0] && y < self.shape[1] && word < self.words {
            self.bits[(z * self.shape[1] + y) * self.words + word]
        } else {
            0
        }
    }

    /// The word of the points that follow those of `word` by `k` in x.
    #[inline(always)]
    pub(crate) fn word_after(&self, row: [usize; 2], word: usize, k: u32) -> u64 {
        self.word(row, word) >> k | self.word(row, word + 1) << 1 << (63 - k)
    }

    /// The word of the points that precede those of `word` by `k` in x.
    #[inline(always)]
    pub(crate) fn word_before(&self, row: [usize; 2], word: usize, k: u32) -> u64 {
        self.word(row, word) << k | self.word(row, word.wrapping_sub(1)) >> 1 >> (63 - k)
    }

    /// Whether a point is present.
    pub(crate) fn get(&self, [z, y, x]: [usize; 3]) -> bool {
        self.word([z, y], x / 64) >> (x % 64) & 1 == 1
    }

    /// Sets points `from..to` of a row to present.
    pub(crate) fn set(&mut self, [z, y]: [usize; 2], from: usize, to: usize) {
        let row = (z * self.shape[1] + y) * self.words;
        let mut at = from;
        while at < to {
            let end = to.min((at / 64 + 1) * 64);
            self.bits[row + at / 64] |= u64::MAX >> (64 - (end - at)) << (at % 64);
            at = end;
        }
    }

    /// Copies to each row the row whose z and y are the next lower multiples of `steps`.
    pub(crate) fn repeat(&mut self, steps: [usize; 2]) {
        let [nz, ny, _] = self.shape;
        let plane = ny * self.words;
        for z in 0..nz {
            if !z.is_multiple_of(steps[0]) {
                self.bits.copy_within((z - 1) * plane..z * plane, z * plane);
                continue;
            }
            for y in (0..ny).filter(|y| !y.is_multiple_of(steps[1])) {
                let row = z * plane + y * self.words;
                self.bits.copy_within(row - self.words..row, row);
            }
        }
    }

    /// A bitmap whose points are all present.
    pub(crate) fn full(shape: [usize; 3]) -> Self {
        let mut full = Self::new(shape);
        for z in 0..shape[0] {
            for y in 0..shape[1] {
                full.set([z, y], 0, shape[2]);
            }
        }
        full
    }

    /// The bits of `width` points from `x`, which do not cross a multiple of 64.
    #[inline(always)]
    pub(crate) fn bits_of(&self, row: [usize; 2], x: usize, width: usize) -> u64 {
        self.word(row, x / 64) >> (x % 64) & ((1 << width) - 1)
    }

    /// Sets bits from `x`, which do not cross a multiple of 64.
    #[inline(always)]
    pub(crate) fn set_bits(&mut self, [z, y]: [usize; 2], x: usize, bits: u64) {
        self.bits[(z * self.shape[1] + y) * self.words + x / 64] |= bits << (x % 64);
    }

    /// Whether all points are present.
    pub(crate) fn is_full(&self) -> bool {
        Self::count(&self.bits) == self.shape.iter().product::<usize>()
    }

    /// The number of set bits.
    pub(crate) fn count(words: &[u64]) -> usize {
        count_ones(words)
    }

    /// The points that are absent from another bitmap of the same shape.
    pub(crate) fn without(mut self, other: &Self) -> Self {
        for (word, other) in self.bits.iter_mut().zip(&other.bits) {
            *word &= !other;
        }
        self
    }

    /// The points that are also present in another bitmap of the same shape.
    pub(crate) fn only(mut self, other: &Self) -> Self {
        for (word, other) in self.bits.iter_mut().zip(&other.bits) {
            *word &= other;
        }
        self
    }

    /// Calls `visit(first, length)` for the runs of present points of a row. Runs are split at multiples of 64.
    #[inline(always)]
    pub(crate) fn runs(row: &[u64], mut visit: impl FnMut(usize, usize)) {
        for (number, word) in row.iter().enumerate() {
            bit_runs(*word, |first, length| visit(64 * number + first, length));
        }
    }

    /// The points of each phase `t`: their indices have the parity of its bits (0: z, 1: y, 2: x).
    pub(crate) fn phases(&self) -> [Self; 8] {
        let mut halves = [(); 2].map(|()| vec![0; self.bits.len()]);
        let [evens, odds] = &mut halves;
        split_bits(&self.bits, evens, odds);
        std::array::from_fn(|t| {
            let odd: [usize; 3] = std::array::from_fn(|d| t >> d & 1);
            let mut phase = Self::new(std::array::from_fn(|d| (self.shape[d] + 1 - odd[d]) / 2));
            if phase.bits.is_empty() {
                return phase;
            }
            let from = &halves[odd[2]];
            let mut rows = phase.bits.chunks_exact_mut(phase.words);
            for z in 0..phase.shape[0] {
                for y in 0..phase.shape[1] {
                    let row = ((2 * z + odd[0]) * self.shape[1] + 2 * y + odd[1]) * self.words;
                    let from = from[row..row + self.words].chunks(2);
                    for (to, from) in rows.next().unwrap_or_default().iter_mut().zip(from) {
                        *to = from[0] | from.get(1).map_or(0, |word| word << 32);
                    }
                }
            }
            phase
        })
    }
}

vectorised! {
    /// Compacts the bits of words at even and at odd positions.
    fn split_bits [] of [] (words: &[u64], evens: &mut [u64], odds: &mut [u64]) {
        for ((word, even), odd) in words.iter().zip(evens).zip(odds) {
            (*even, *odd) = (even_bits(*word), even_bits(*word >> 1));
        }
    }
}

vectorised! {
    /// The number of set bits.
    fn count_ones [] of [] (words: &[u64]) -> usize {
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Calls `visit(first, length)` for the runs of set bits of a word.
#[inline(always)]
pub(crate) fn bit_runs(mut word: u64, mut visit: impl FnMut(usize, usize)) {
    while word != 0 {
        let first = word.trailing_zeros();
        let length = (!(word >> first)).trailing_zeros();
        visit(first as usize, length as usize);
        word &= u64::MAX.checked_shl(first + length).unwrap_or(0);
    }
}

/// The bits at even positions, compacted.
#[inline(always)]
fn even_bits(word: u64) -> u64 {
    let mut x = word & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// The bits of a word that belong to the first `n` points of a row.
pub(crate) fn first_bits(n: usize, word: usize) -> u64 {
    match n.saturating_sub(64 * word) {
        0 => 0,
        n => u64::MAX >> (64 - n.min(64)),
    }
}
