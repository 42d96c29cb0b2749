//! Averages fine cells to the coarse cells that contain them.

use super::hierarchy::IndexBox;
use super::hierarchy::rows::rows;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::numbers::Number;

/// Whether values of the type can be averaged down.
pub(crate) fn can_average(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Float32 | DataType::Float64)
}

/// Averages the values of `fine`, a box that is made of whole cells coarser by `ratio`, into `out`,
/// one value for each coarse cell, x fastest.
///
/// The order of operations is part of the format: the sum starts with +0, the fine cells are added
/// as float64, x fastest, then y, then z; it is multiplied by the float64 nearest to 1 / (their
/// number), and rounded to the type.
///
/// # Errors
/// `Unsupported` for types other than float32 and float64.
pub(crate) fn average(
    dtype: &DataType,
    (fine, values): (&IndexBox, &[u8]),
    ratio: [i64; 3],
    out: &mut [u8],
) -> Result<()> {
    match dtype {
        DataType::Float32 => {
            let means = means::<f32>(fine, values, ratio);
            for (to, mean) in out.as_chunks_mut().0.iter_mut().zip(means) {
                *to = (mean as f32).to_ne_bytes();
            }
        }
        DataType::Float64 => {
            let means = means::<f64>(fine, values, ratio);
            for (to, mean) in out.as_chunks_mut().0.iter_mut().zip(means) {
                *to = mean.to_ne_bytes();
            }
        }
        other => {
            return Err(Error::unsupported(format!(
                "expected values of float32 or float64 to average, found {other}"
            )));
        }
    }
    Ok(())
}

fn means<T: Number>(fine: &IndexBox, values: &[u8], ratio: [i64; 3]) -> Vec<f64> {
    let coarse = fine.coarsened(ratio);
    let [width, height, _] = coarse.shape();
    let mut sums = vec![0.0; coarse.cells()];
    let size = size_of::<T>();
    let step = ratio[0] as usize;
    let [_, fine_height, _] = fine.shape();
    let mut row = 0;
    rows(fine, [fine], |[start], len| {
        let (y, z) = (row % fine_height, row / fine_height);
        row += 1;
        let first = (z / ratio[2] as usize * height + y / ratio[1] as usize) * width;
        let line = T::all(&values[start * size..(start + len) * size]);
        let mut place = first;
        let mut left = step;
        for value in line {
            sums[place] += value.to_f64();
            left -= 1;
            if left == 0 {
                (place, left) = (place + 1, step);
            }
        }
    });
    let share = 1.0 / ratio.iter().product::<i64>() as f64;
    for sum in &mut sums {
        *sum *= share;
    }
    sums
}
