//! Covered cells: a field can drop them if averages of the finer level reproduce them within their bound.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::patches::average::{average, can_average};
use crate::kinds::amr::patches::box_cache::BoxCache;
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

/// Reads all values of one field on the box with this index in the list of a level.
pub(crate) type ReadBox<'a> = dyn Fn(usize, &mut [u8]) -> Result<()> + Sync + 'a;

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
    coarse: &ReadBox<'_>,
    fine: &ReadBox<'_>,
) -> Result<f64> {
    if !can_average(dtype) {
        return Ok(f64::NEG_INFINITY);
    }
    let size = dtype.size().unwrap_or(8);
    let ratio = nest.level(level).ratio;
    let values = BoxCache::new(&nest.level(level).boxes, size);
    let smallest = Mutex::new(number(averaging.bound));
    let lock = || smallest.lock().unwrap_or_else(PoisonError::into_inner);
    let finer = nest.level(level + 1).boxes.par_iter().enumerate();
    finer.try_for_each(|(place, fine_box)| -> Result<()> {
        if *lock() < averaging.least {
            return Ok(());
        }
        let mut children = Column::allocate(&[DataType::UInt8], fine_box.cells() * size)?;
        let children = &mut children[0];
        fine(place, children.bytes_mut())?;
        let covered = fine_box.coarsened(ratio);
        let averaged = |children: &Column| {
            let mut means = vec![0; covered.cells() * size];
            average(dtype, (fine_box, children.bytes()), ratio, &mut means).map(|()| means)
        };
        let means = averaged(children)?;
        let mut magnitudes = Vec::new();
        if is_relative(averaging.bound) {
            to_magnitudes(dtype, children.bytes_mut(), averaging.floor);
            magnitudes = averaged(children)?;
        }
        let mut parts = Vec::new();
        nest.boxes_in(level, &covered, |place, part| parts.push((place, part)));
        for (place, part) in parts {
            let there = values.get(place, |out| coarse(place, out))?;
            let frame = &nest.level(level).boxes[place];
            rows(&part, [&covered, frame], |[mean, value], len| {
                let of_row = mean * size..(mean + len) * size;
                let row = Row {
                    means: &means[of_row.clone()],
                    magnitudes: magnitudes.get(of_row).unwrap_or_default(),
                    values: &there.bytes()[value * size..(value + len) * size],
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
