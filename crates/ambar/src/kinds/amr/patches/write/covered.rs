//! Covered cells: a field can drop them if averages of the finer level reproduce them within their bound.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::gather::PART_BYTES;
use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::patches::average::{average, can_average};
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::kinds::bound::ErrorBound;
use crate::memory::Column;
use crate::numbers::Number;

/// How cells that the next finer level covers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Covered {
    /// Dropped if averages of the finer level reproduce all of them: bit for bit, or within the error
    /// bound of the field. Decided for each field and level.
    #[default]
    Auto,
    /// Dropped if values can be averaged: readers return the averages of the finer level.
    Drop,
    /// Kept.
    Keep,
}

/// Reads the values of one field on a part of the box with this index in the list of a level.
pub(crate) type ReadPart<'a> = dyn Fn(usize, &IndexBox, &mut [u8]) -> Result<()> + Sync + 'a;

/// Requirements on the averages of a finer level: the bound of the covered cells, and limits for the bound of the
/// finer cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Averaging {
    /// The bound of the covered cells.
    pub bound: ErrorBound,
    /// The floor of a relative bound of the finer level; 0 without a floor.
    pub floor: f64,
    /// The rounding error of averages: absolute, or relative to the magnitudes of the averaged values.
    pub rounding: f64,
    /// The strictest bound that is acceptable for the finer level.
    pub least: f64,
}

/// The number of the bound that level `level + 1` needs, so that averaging it down reproduces the covered cells of
/// `level` within their bound. It is at most the number of their own bound. It is less than `averaging.least`, possibly
/// negative, if averages cannot reproduce the cells. For lossless cells, 0 means that averages reproduce all bits.
/// Reading stops as soon as the number is below `averaging.least`. Boxes are read in parallel.
///
/// # Errors
/// The errors of `coarse` and `fine`.
pub(crate) fn finer_bound(
    nest: &Nest,
    level: usize,
    dtype: &DataType,
    averaging: &Averaging,
    coarse: &ReadPart<'_>,
    fine: &ReadPart<'_>,
) -> Result<f64> {
    if !can_average(dtype) {
        return Ok(f64::NEG_INFINITY);
    }
    let size = dtype.size().unwrap_or(8);
    let ratio = nest.level(level).ratio;
    let smallest = Mutex::new(number(averaging.bound));
    let lock = || smallest.lock().unwrap_or_else(PoisonError::into_inner);
    let children = ratio.iter().product::<i64>() as usize;
    let cells = PART_BYTES / size / children;
    let boxes = nest.level(level).boxes.iter().enumerate();
    let slabs: Vec<(usize, IndexBox)> = boxes
        .flat_map(|(place, frame)| {
            frame
                .slabs(nest.ndim(), cells)
                .map(move |slab| (place, slab))
        })
        .collect();
    let buffer = |cells: usize| Column::allocate(&[DataType::UInt8], cells * size);
    slabs
        .par_iter()
        .try_for_each(|(place, slab)| -> Result<()> {
            let mut parts = Vec::new();
            nest.covered_in(level, slab, |finer, part| parts.push((finer, part)));
            let mut there = buffer(if parts.is_empty() { 0 } else { slab.cells() })?;
            if !parts.is_empty() && *lock() >= averaging.least {
                coarse(*place, slab, there[0].bytes_mut())?;
            }
            for (finer, covered) in parts {
                if *lock() < averaging.least {
                    return Ok(());
                }
                let of_part = covered.refined(ratio);
                let mut children = buffer(of_part.cells())?;
                let children = &mut children[0];
                fine(finer, &of_part, children.bytes_mut())?;
                let averaged = |children: &Column| {
                    let mut means = vec![0; covered.cells() * size];
                    average(dtype, (&of_part, children.bytes()), ratio, &mut means).map(|()| means)
                };
                let means = averaged(children)?;
                let mut magnitudes = Vec::new();
                if is_relative(averaging.bound) {
                    to_magnitudes(dtype, children.bytes_mut(), averaging.floor);
                    magnitudes = averaged(children)?;
                }
                rows(&covered, [&covered, slab], |[mean, value], len| {
                    let of_row = mean * size..(mean + len) * size;
                    let row = Row {
                        means: &means[of_row.clone()],
                        magnitudes: magnitudes.get(of_row).unwrap_or_default(),
                        values: &there[0].bytes()[value * size..(value + len) * size],
                    };
                    let bound = match dtype {
                        DataType::Float32 => row.finer_bound::<f32>(averaging),
                        _ => row.finer_bound::<f64>(averaging),
                    };
                    let mut smallest = lock();
                    *smallest = smallest.min(bound);
                });
            }
            Ok(())
        })?;
    let smallest = *lock();
    Ok(smallest)
}

/// The number of a bound: the smaller, the stricter; 0 for lossless and for bits.
pub(crate) fn number(bound: ErrorBound) -> f64 {
    match bound {
        ErrorBound::Absolute(x)
        | ErrorBound::Rms(x)
        | ErrorBound::Relative(x)
        | ErrorBound::RelativeAbove { relative: x, .. } => x,
        _ => 0.0,
    }
}

pub(crate) fn is_relative(bound: ErrorBound) -> bool {
    matches!(
        bound,
        ErrorBound::Relative(_) | ErrorBound::RelativeAbove { .. }
    )
}

/// Replaces values by their magnitudes, at least the floor.
fn to_magnitudes(dtype: &DataType, values: &mut [u8], floor: f64) {
    match dtype {
        DataType::Float32 => {
            for value in values.as_chunks_mut().0 {
                *value = f32::from_ne_bytes(*value)
                    .abs()
                    .max(floor as f32)
                    .to_ne_bytes();
            }
        }
        _ => {
            for value in values.as_chunks_mut().0 {
                *value = f64::from_ne_bytes(*value).abs().max(floor).to_ne_bytes();
            }
        }
    }
}

/// Covered cells in a row, as raw values.
struct Row<'a> {
    means: &'a [u8],
    /// Means of the magnitudes of finer cells; empty unless the bound is relative.
    magnitudes: &'a [u8],
    values: &'a [u8],
}

impl Row<'_> {
    fn finer_bound<T: Number>(&self, averaging: &Averaging) -> f64 {
        let size = size_of::<T>();
        let same = self
            .means
            .chunks_exact(size)
            .zip(self.values.chunks_exact(size));
        let same = same.map(|(a, b)| a == b);
        let floor = match averaging.bound {
            ErrorBound::RelativeAbove { floor, .. } => floor,
            _ => 0.0,
        };
        let most = number(averaging.bound);
        let pairs = T::all(self.means).zip(T::all(self.values));
        let pairs = pairs.map(|(mean, value)| (mean.to_f64(), value.to_f64()));
        if !is_relative(averaging.bound) {
            let bounds = pairs.zip(same).map(|((mean, value), same)| match same {
                true if most == 0.0 => 0.0,
                true => most - averaging.rounding,
                false if most == 0.0 => f64::NEG_INFINITY,
                false => not_nan(most - (mean - value).abs() - averaging.rounding),
            });
            return bounds.fold(f64::INFINITY, f64::min);
        }
        let magnitudes = T::all(self.magnitudes).map(Number::to_f64);
        let bounds = pairs.zip(same).zip(magnitudes);
        let bounds = bounds.map(|(((mean, value), same), magnitude)| {
            if same && (magnitude == 0.0 || !mean.is_finite()) {
                return f64::INFINITY;
            }
            if magnitude < SMALLEST {
                return f64::NEG_INFINITY;
            }
            let limit = most * value.abs().max(floor);
            not_nan((limit - (mean - value).abs()) / magnitude - averaging.rounding)
        });
        bounds.fold(f64::INFINITY, f64::min)
    }
}

/// Averages of smaller values may be denormal: their rounding is not relative.
const SMALLEST: f64 = 1e-30;

fn not_nan(bound: f64) -> f64 {
    if bound.is_nan() {
        f64::NEG_INFINITY
    } else {
        bound
    }
}
