//! Padding: the values of a chunk past the end of its array. No reader sees them, so an encoder chooses those that take the
//! fewest bytes.

/// The values of padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// The first value of the chunk, which general compressors store in few bytes.
    Repeated,
    /// The last value along each dimension. The codec `ambar` codes such padding by its predictions, and transforms it.
    Extended,
}

impl Padding {
    /// The padding for the codec `ambar`.
    pub(crate) fn of_ambar(is_fast: bool) -> Self {
        // Bit-packed streams code padding like all values.
        if is_fast {
            Self::Repeated
        } else {
            Self::Extended
        }
    }

    /// Fills the padding of a chunk, which has a shape and in all dimensions the first `held` values of its array.
    pub(crate) fn fill(self, raw: &mut [u8], size: usize, shape: &[u64], held: &[usize]) {
        if self == Self::Extended {
            return extend(raw, size, shape, held);
        }
        if let Some(first) = raw.get(..size).map(<[u8]>::to_vec) {
            fill_with(raw, &first, shape, held);
        }
    }
}

/// Fills padding with one value.
fn fill_with(raw: &mut [u8], value: &[u8], shape: &[u64], held: &[usize]) {
    for_each_row(shape, held, |row, nearest, length, kept| {
        let kept = if row == nearest { kept } else { 0 };
        let row = &mut raw[row * length * value.len()..][..length * value.len()];
        let padding = row[kept * value.len()..].chunks_exact_mut(value.len());
        padding.for_each(|out| out.copy_from_slice(value));
    });
}

/// Fills padding with the last value along each dimension.
fn extend(raw: &mut [u8], size: usize, shape: &[u64], held: &[usize]) {
    for_each_row(shape, held, |row, nearest, length, kept| {
        let start = row * length * size;
        if row != nearest {
            let from = nearest * length * size;
            return raw.copy_within(from..from + length * size, start);
        }
        for k in kept.max(1)..length {
            let at = start + k * size;
            raw.copy_within(at - size..at, at);
        }
    });
}

/// Calls `visit(row, nearest, length, kept)` for each row of a chunk: its number, that of the nearest row with values of the
/// array, which is not after it, its length, and the number of values of the array in such a row.
fn for_each_row(shape: &[u64], held: &[usize], mut visit: impl FnMut(usize, usize, usize, usize)) {
    let (Some((length, outer)), Some((kept, outer_held))) = (shape.split_last(), held.split_last())
    else {
        return;
    };
    for row in 0..outer.iter().product::<u64>() as usize {
        let (mut rest, mut stride, mut nearest) = (row, 1, 0);
        for (length, held) in outer.iter().zip(outer_held).rev() {
            let length = *length as usize;
            nearest += (rest % length).min(held - 1) * stride;
            (rest, stride) = (rest / length, stride * length);
        }
        visit(row, nearest, *length as usize, *kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a 3 x 4 chunk with 2 x 3 values of its array.
    fn filled(padding: Padding, values: [f32; 6]) -> Vec<f32> {
        let mut chunk = [9.0f32; 12];
        for (k, value) in values.iter().enumerate() {
            chunk[k / 3 * 4 + k % 3] = *value;
        }
        let raw: &mut [u8] = bytemuck::cast_slice_mut(&mut chunk);
        padding.fill(raw, 4, &[3, 4], &[2, 3]);
        chunk.to_vec()
    }

    #[test]
    fn padding_keeps_the_values_of_the_array() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            filled(Padding::Repeated, values),
            [1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        );
        assert_eq!(
            filled(Padding::Extended, values),
            [1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 6.0, 4.0, 5.0, 6.0, 6.0]
        );
    }

    #[test]
    fn arrays_without_dimensions_have_no_padding() {
        let mut raw = [1, 0];
        Padding::Repeated.fill(&mut raw, 2, &[], &[]);
        assert_eq!(raw, [1, 0]);
    }
}
