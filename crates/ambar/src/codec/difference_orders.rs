//! Compares orders of consecutive differences on a few values of a chunk, for pcodec.

use crate::dtype::DataType;
use crate::error::Result;
use crate::numbers;

/// Groups of consecutive values that are compared.
const GROUPS: usize = 8;

/// Values of a group.
const GROUP_VALUES: usize = 128;

/// Bits per value by which another order must be better.
const MIN_GAIN: f64 = 0.25;

/// Whether another order of differences, from 0 to `order + 1`, is probably better than `order`: it needs fewer bits in a few
/// groups of the values `raw`. The result is the same on every machine.
///
/// # Errors
/// If `dtype` is not numeric.
pub(super) fn suits_other_order(dtype: &DataType, raw: &[u8], order: usize) -> Result<bool> {
    let size = dtype.word_size();
    let count = raw.len() / size;
    let length = GROUP_VALUES.min(count);
    let mut groups = vec![vec![0.0; length]; GROUPS];
    for (index, group) in groups.iter_mut().enumerate() {
        let start = index * (count - length) / (GROUPS - 1);
        let bytes = &raw[start * size..(start + length) * size];
        numbers::to_f64("", dtype, bytes, group)?;
    }
    let finite = || groups.iter().flatten().filter(|x| x.is_finite());
    let largest = finite().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let mean = finite().sum::<f64>() / finite().count().max(1) as f64;
    let unit = match dtype {
        // The distance of the largest value from its neighbour.
        DataType::Float32 => largest * f64::from(f32::EPSILON),
        DataType::Float64 => largest * f64::EPSILON,
        _ => 1.0,
    };
    for x in groups.iter_mut().flatten() {
        *x -= mean;
    }
    let mut bits = vec![mean_bits(&groups, unit)];
    for _ in 0..=order {
        for group in &mut groups {
            *group = group.windows(2).map(|pair| pair[1] - pair[0]).collect();
        }
        bits.push(mean_bits(&groups, unit));
    }
    Ok(bits.iter().any(|other| other + MIN_GAIN < bits[order]))
}

/// The mean number of bits of the finite values, in multiples of `unit`; 0 without finite values.
fn mean_bits(groups: &[Vec<f64>], unit: f64) -> f64 {
    let finite = || groups.iter().flatten().filter(|x| x.is_finite());
    let bits = finite().map(|x| u64::BITS - ((x / unit).abs() as u64).leading_zeros());
    f64::from(bits.sum::<u32>()) / finite().count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suits_other(values: &[f64], order: usize) -> bool {
        let raw = bytemuck::cast_slice(values);
        suits_other_order(&DataType::Float64, raw, order).unwrap()
    }

    #[test]
    fn orders_are_compared_by_the_bits_of_differences() {
        let ramp: Vec<f64> = (0..5000).map(f64::from).collect();
        let scattered: Vec<f64> = ramp.iter().map(|x| (x * x).sin()).collect();
        for (values, order, expected) in [
            (&ramp, 0, true),
            (&ramp, 1, true),
            (&ramp, 2, false),
            (&scattered, 0, false),
            (&scattered, 3, true),
            (&vec![f64::NAN; 5000], 0, false),
            (&vec![f64::INFINITY; 5000], 3, false),
            (&vec![7.0; 5000], 1, false),
            (&vec![0.0; 3], 2, false),
            (&vec![], 1, false),
        ] {
            assert_eq!(
                suits_other(values, order),
                expected,
                "{:?} {order}",
                values.first()
            );
        }
    }
}
