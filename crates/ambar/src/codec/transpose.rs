//! Transposes the values of a chunk, and computes their differences and sums.
//!
//! AlignedBuffer are arrays of bytes, so that memory need not be aligned; sums wrap around.

use bytemuck::Pod;

use crate::error::{Error, Result};

/// Side of the square tiles in which matrices are transposed; two tiles fit in the cache.
const TILE: usize = 32;

/// A permutation of dimensions; adjacent ones that stay adjacent are merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Permutation {
    /// A matrix of this number of columns.
    Matrix { rows: usize, columns: usize },
    /// The lengths of the permuted array, and the strides of the original one in values.
    Any {
        lengths: Vec<usize>,
        strides: Vec<usize>,
    },
}

impl Permutation {
    /// The permutation that makes dimension `order[i]` of `shape` dimension `i`; `None` for the identity.
    ///
    /// # Errors
    /// `Corrupt` if `order` is not a permutation of these dimensions.
    pub fn new(shape: &[u64], order: &[usize]) -> Result<Option<Self>> {
        let mut seen = vec![false; shape.len()];
        let known = order.len() == shape.len()
            && (order.iter()).all(|d| {
                seen.get_mut(*d)
                    .is_some_and(|seen| !std::mem::replace(seen, true))
            });
        if !known {
            return Err(Error::corrupt(format!(
                "{order:?} is not a valid order of the dimensions of a chunk of {shape:?}"
            )));
        }
        if shape.contains(&0) {
            return Ok(None);
        }
        let mut strides = vec![1usize; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d] as usize;
        }
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for d in order.iter().filter(|d| shape[**d] != 1) {
            let (length, stride) = (shape[*d] as usize, strides[*d]);
            match runs.last_mut() {
                Some((before, step)) if *step == length * stride => {
                    (*before, *step) = (*before * length, stride);
                }
                _ => runs.push((length, stride)),
            }
        }
        Ok(match runs[..] {
            [] | [_] => None,
            [(columns, _), (rows, _)] => Some(Self::Matrix { rows, columns }),
            _ => {
                let (lengths, strides) = runs.into_iter().unzip();
                Some(Self::Any { lengths, strides })
            }
        })
    }

    /// Moves values of `size` bytes into this order.
    pub fn apply(&self, size: usize, from: &[u8], to: &mut [u8]) {
        match self {
            Self::Matrix { rows, columns } => turn(size, (*rows, *columns), from, to),
            Self::Any { lengths, strides } => for_each(lengths, strides, |here, there| {
                let (here, there) = (here * size, there * size);
                to[here..here + size].copy_from_slice(&from[there..there + size]);
            }),
        }
    }

    /// Moves values back from this order.
    pub fn undo(&self, size: usize, from: &[u8], to: &mut [u8]) {
        match self {
            Self::Matrix { rows, columns } => turn(size, (*columns, *rows), from, to),
            Self::Any { lengths, strides } => for_each(lengths, strides, |here, there| {
                let (here, there) = (here * size, there * size);
                to[there..there + size].copy_from_slice(&from[here..here + size]);
            }),
        }
    }

    /// Computes the cumulative sums of `from`, then undoes the permutation.
    pub fn undo_sums(&self, size: usize, from: &mut [u8], to: &mut [u8]) {
        let done = match (self, size) {
            (Self::Matrix { columns, .. }, 1) => weave_sums::<[u8; 1]>(*columns, from, to),
            (Self::Matrix { columns, .. }, 2) => weave_sums::<[u8; 2]>(*columns, from, to),
            (Self::Matrix { columns, .. }, 4) => weave_sums::<[u8; 4]>(*columns, from, to),
            (Self::Matrix { columns, .. }, 8) => weave_sums::<[u8; 8]>(*columns, from, to),
            _ => false,
        };
        if !done {
            add(size, from);
            self.undo(size, from, to);
        }
    }
}

/// Calls `f` with the index of each value in the new order, and in the old one.
fn for_each(lengths: &[usize], strides: &[usize], mut f: impl FnMut(usize, usize)) {
    let (Some((last, outer)), Some(stride)) = (lengths.split_last(), strides.last()) else {
        return;
    };
    let mut position = vec![0; outer.len()];
    let (mut here, mut start) = (0, 0);
    loop {
        for i in 0..*last {
            f(here, start + i * stride);
            here += 1;
        }
        // Next row: advances the last dimension that is not at its end; later ones restart.
        let mut d = outer.len();
        loop {
            let Some(before) = d.checked_sub(1) else {
                return;
            };
            d = before;
            position[d] += 1;
            start += strides[d];
            if position[d] < outer[d] {
                break;
            }
            start -= position[d] * strides[d];
            position[d] = 0;
        }
    }
}

/// Transposes a matrix of values of `size` bytes.
fn turn(size: usize, shape: (usize, usize), from: &[u8], to: &mut [u8]) {
    match size {
        1 => turn_words::<[u8; 1]>(shape, from, to),
        2 => turn_words::<[u8; 2]>(shape, from, to),
        4 => turn_words::<[u8; 4]>(shape, from, to),
        8 => turn_words::<[u8; 8]>(shape, from, to),
        16 => turn_words::<[u8; 16]>(shape, from, to),
        _ => {
            let (rows, columns) = shape;
            for_each(&[columns, rows], &[1, columns], |here, there| {
                let (here, there) = (here * size, there * size);
                to[here..here + size].copy_from_slice(&from[there..there + size]);
            });
        }
    }
}

fn turn_words<T: Pod>((rows, columns): (usize, usize), from: &[u8], to: &mut [u8]) {
    let from: &[T] = bytemuck::cast_slice(from);
    let to: &mut [T] = bytemuck::cast_slice_mut(to);
    match rows {
        2 => weave::<2, T>(from, to),
        3 => weave::<3, T>(from, to),
        4 => weave::<4, T>(from, to),
        6 => weave::<6, T>(from, to),
        8 => weave::<8, T>(from, to),
        _ => {
            for top in (0..rows).step_by(TILE) {
                for left in (0..columns).step_by(TILE) {
                    for column in left..columns.min(left + TILE) {
                        for row in top..rows.min(top + TILE) {
                            to[column * rows + row] = from[row * columns + column];
                        }
                    }
                }
            }
        }
    }
}

/// Interleaves the `K` consecutive parts of `from`.
fn weave<const K: usize, T: Pod>(from: &[T], to: &mut [T]) {
    let parts = parts::<K, T>(from);
    for (row, out) in to.as_chunks_mut::<K>().0.iter_mut().enumerate() {
        *out = parts.map(|part| part[row]);
    }
}

/// Splits `from` into `K` parts of equal length.
fn parts<const K: usize, T>(from: &[T]) -> [&[T]; K] {
    let length = from.len() / K;
    std::array::from_fn(|k| &from[k * length..][..length])
}

/// Interleaves the cumulative sums of the `count` consecutive parts of `from`; `false` if there is no fast
/// path for this number of parts.
fn weave_sums<T: Word>(count: usize, from: &[u8], to: &mut [u8]) -> bool {
    let from: &[T] = bytemuck::cast_slice(from);
    let to: &mut [T] = bytemuck::cast_slice_mut(to);
    match count {
        2 => weave_sums_of::<2, T>(from, to),
        3 => weave_sums_of::<3, T>(from, to),
        4 => weave_sums_of::<4, T>(from, to),
        6 => weave_sums_of::<6, T>(from, to),
        8 => weave_sums_of::<8, T>(from, to),
        _ => return false,
    }
    true
}

fn weave_sums_of<const K: usize, T: Word>(from: &[T], to: &mut [T]) {
    let parts = parts::<K, T>(from);
    // Each part continues where the previous one ended.
    let mut ends = T::ZERO;
    let mut sums = parts.map(|part| {
        let start = ends;
        ends = part
            .iter()
            .fold(ends, |sum, word| T::plus(sum, word.number()));
        start
    });
    for (row, out) in to.as_chunks_mut::<K>().0.iter_mut().enumerate() {
        for k in 0..K {
            sums[k] = T::plus(sums[k], parts[k][row].number());
            out[k] = T::word(sums[k]);
        }
    }
}

/// Replaces each value except the first by its difference from the previous one.
pub(super) fn subtract(size: usize, values: &mut [u8]) {
    match size {
        1 => subtract_words::<[u8; 1]>(values),
        2 => subtract_words::<[u8; 2]>(values),
        4 => subtract_words::<[u8; 4]>(values),
        _ => subtract_words::<[u8; 8]>(values),
    }
}

fn subtract_words<T: Word>(values: &mut [u8]) {
    let mut before = T::ZERO;
    for word in bytemuck::cast_slice_mut::<u8, T>(values) {
        let number = word.number();
        *word = T::word(T::minus(number, before));
        before = number;
    }
}

/// Undoes `subtract`.
pub(super) fn add(size: usize, values: &mut [u8]) {
    match size {
        1 => add_words::<[u8; 1]>(values),
        2 => add_words::<[u8; 2]>(values),
        4 => add_words::<[u8; 4]>(values),
        _ => add_words::<[u8; 8]>(values),
    }
}

fn add_words<T: Word>(values: &mut [u8]) {
    let mut sum = T::ZERO;
    for word in bytemuck::cast_slice_mut::<u8, T>(values) {
        sum = T::plus(sum, word.number());
        *word = T::word(sum);
    }
}

/// The bytes of an integer in native order.
trait Word: Pod {
    type Number: Copy;
    const ZERO: Self::Number;
    fn number(self) -> Self::Number;
    fn word(number: Self::Number) -> Self;
    fn plus(a: Self::Number, b: Self::Number) -> Self::Number;
    fn minus(a: Self::Number, b: Self::Number) -> Self::Number;
}

macro_rules! word {
    ($number:ty) => {
        impl Word for [u8; size_of::<$number>()] {
            type Number = $number;
            const ZERO: $number = 0;
            #[inline(always)]
            fn number(self) -> $number {
                <$number>::from_ne_bytes(self)
            }
            #[inline(always)]
            fn word(number: $number) -> Self {
                number.to_ne_bytes()
            }
            #[inline(always)]
            fn plus(a: $number, b: $number) -> $number {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn minus(a: $number, b: $number) -> $number {
                a.wrapping_sub(b)
            }
        }
    };
}

word!(u8);
word!(u16);
word!(u32);
word!(u64);
