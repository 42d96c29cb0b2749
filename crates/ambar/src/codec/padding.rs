//! Padding: the values of a chunk past the end of its array. No reader sees them, so an encoder chooses those that take the
//! fewest bytes.

use ambar_codec::ErrorBound;

/// The padding of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkPadding {
    pub values: PaddingValues,
    /// Whether the encoder must know how many finite values are the array's: bounds of the mean squared error do not count others.
    pub is_counted: bool,
}

/// The values of padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaddingValues {
    /// The first value of the chunk, which general compressors store in few bytes.
    Repeated,
    /// The last value along each dimension. The codec `ambar` codes such padding by its predictions, and transforms it.
    Extended,
}

impl ChunkPadding {
    /// The padding for codecs without error bounds.
    pub(crate) const LOSSLESS: Self = Self {
        values: PaddingValues::Repeated,
        is_counted: false,
    };

    /// The padding for the codec `ambar`.
    pub(crate) fn of_ambar(bound: ErrorBound, is_fast: bool) -> Self {
        Self {
            // Bit-packed streams code padding like all values.
            values: match is_fast {
                true => PaddingValues::Repeated,
                false => PaddingValues::Extended,
            },
            is_counted: matches!(bound, ErrorBound::Rms(_)),
        }
    }
}

impl PaddingValues {
    /// Writes the padding of a chunk, which has a shape and in all dimensions the first `held` values of its array.
    pub(crate) fn write(self, raw: &mut [u8], size: usize, shape: &[u64], held: &[usize]) {
        let Some(rows) = Rows::new(shape, held) else {
            return;
        };
        match (self, raw.get(..size).map(<[u8]>::to_vec)) {
            (Self::Repeated, Some(first)) => rows.fill_with(raw, &first),
            (Self::Repeated, None) => {}
            (Self::Extended, _) => rows.extend(raw, size),
        }
    }
}

/// The rows of a chunk.
struct Rows<'a> {
    /// The length of the slower dimensions, and how many indices of them are the array's.
    outer: &'a [u64],
    outer_held: &'a [usize],
    /// The length of a row, and the number of values that are the array's.
    length: usize,
    held: usize,
}

impl<'a> Rows<'a> {
    /// The rows of a chunk of a shape; `None` for one value without dimensions.
    fn new(shape: &'a [u64], held: &'a [usize]) -> Option<Self> {
        let ((length, outer), (held, outer_held)) = (shape.split_last()?, held.split_last()?);
        Some(Self {
            outer,
            outer_held,
            length: *length as usize,
            held: *held,
        })
    }

    fn count(&self) -> usize {
        self.outer.iter().product::<u64>() as usize
    }

    /// The nearest row with values of the array, which is not after `row`.
    fn nearest(&self, row: usize) -> usize {
        let (mut rest, mut stride, mut nearest) = (row, 1, 0);
        for (length, held) in self.outer.iter().zip(self.outer_held).rev() {
            let length = *length as usize;
            nearest += (rest % length).min(held - 1) * stride;
            (rest, stride) = (rest / length, stride * length);
        }
        nearest
    }

    /// Fills padding with one value.
    fn fill_with(&self, raw: &mut [u8], value: &[u8]) {
        let size = value.len();
        for row in 0..self.count() {
            let held = if row == self.nearest(row) {
                self.held
            } else {
                0
            };
            let padding =
                &mut raw[(row * self.length + held) * size..][..(self.length - held) * size];
            let values = padding.chunks_exact_mut(size);
            values.for_each(|out| out.copy_from_slice(value));
        }
    }

    /// Fills padding with the last value along each dimension.
    fn extend(&self, raw: &mut [u8], size: usize) {
        let bytes = self.length * size;
        for row in 0..self.count() {
            let (start, nearest) = (row * bytes, self.nearest(row));
            if row == nearest {
                for at in (self.held..self.length).map(|k| start + k * size) {
                    raw.copy_within(at - size..at, at);
                }
            } else {
                raw.copy_within(nearest * bytes..(nearest + 1) * bytes, start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a 3 x 4 chunk with 2 x 3 values of its array.
    fn filled(padding: PaddingValues, values: [f32; 6]) -> Vec<f32> {
        let mut chunk = [9.0f32; 12];
        for (k, value) in values.iter().enumerate() {
            chunk[k / 3 * 4 + k % 3] = *value;
        }
        let raw: &mut [u8] = bytemuck::cast_slice_mut(&mut chunk);
        padding.write(raw, 4, &[3, 4], &[2, 3]);
        chunk.to_vec()
    }

    #[test]
    fn padding_keeps_the_values_of_the_array() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            filled(PaddingValues::Repeated, values),
            [1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        );
        assert_eq!(
            filled(PaddingValues::Extended, values),
            [1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 6.0, 4.0, 5.0, 6.0, 6.0]
        );
    }

    #[test]
    fn arrays_without_dimensions_have_no_padding() {
        let mut raw = [1, 0];
        PaddingValues::Repeated.write(&mut raw, 2, &[], &[]);
        assert_eq!(raw, [1, 0]);
    }
}
