//! Covered cells: how far the averages of the finer level differ from them. A field can drop them where
//! the averages restore them.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::patches::average::{average, can_average};
use crate::kinds::amr::patches::box_cache::BoxCache;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::hierarchy::rows::rows;
use crate::kinds::numbers::Number;
use crate::memory::Column;

/// How cells that the next finer level covers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Covered {
    /// Left out where averaging the finer level down gives every one of them back: all bits, or
    /// within the field's error bound. Decided for each field and level.
    #[default]
    Auto,
    /// Left out wherever values can be averaged: they read as the average of the finer level.
    Drop,
    /// Kept.
    Keep,
}

/// Reads all values of one field on the box of this place in a level's list.
pub(crate) type ReadBox<'a> = dyn Fn(usize, &mut [u8]) -> Result<()> + Sync + 'a;

/// How far averaging level `level + 1` down is off the covered cells of `level` at most: 0 where every
/// one of them comes back with the same bits, infinity where values that are no numbers differ or
/// the type cannot be averaged. As soon as the difference is known to be above `most`, nothing more
/// is read. Boxes are read in parallel.
///
/// # Errors
/// What reading returns.
pub(crate) fn difference(
    nest: &Nest,
    level: usize,
    dtype: &DataType,
    most: f64,
    coarse: &ReadBox<'_>,
    fine: &ReadBox<'_>,
) -> Result<f64> {
    if !can_average(dtype) {
        return Ok(f64::INFINITY);
    }
    let size = dtype.size().unwrap_or(8);
    let ratio = nest.level(level).ratio;
    let values = BoxCache::new(&nest.level(level).boxes, size);
    // Magnitudes are ordered as their bits are.
    let largest = AtomicU64::new(0);
    let finer = nest.level(level + 1).boxes.par_iter().enumerate();
    finer.try_for_each(|(place, fine_box)| -> Result<()> {
        if f64::from_bits(largest.load(Ordering::Relaxed)) > most {
            return Ok(());
        }
        let mut children = Column::allocate(&[DataType::UInt8], fine_box.cells() * size)?;
        let children = &mut children[0];
        fine(place, children.bytes_mut())?;
        let covered = fine_box.coarsened(ratio);
        let mut means = vec![0; covered.cells() * size];
        average(dtype, (fine_box, children.bytes()), ratio, &mut means)?;
        let mut parts = Vec::new();
        nest.boxes_in(level, &covered, |place, part| parts.push((place, part)));
        for (place, part) in parts {
            let there = values.get(place, |out| coarse(place, out))?;
            let frame = &nest.level(level).boxes[place];
            rows(&part, [&covered, frame], |[mean, value], len| {
                let means = &means[mean * size..(mean + len) * size];
                let there = &there.bytes()[value * size..(value + len) * size];
                if means != there {
                    let off = row_difference(dtype, means, there);
                    largest.fetch_max(off.to_bits(), Ordering::Relaxed);
                }
            });
        }
        Ok(())
    })?;
    Ok(f64::from_bits(largest.into_inner()))
}

/// The largest difference between values whose bits differ: never 0.
fn row_difference(dtype: &DataType, means: &[u8], values: &[u8]) -> f64 {
    fn largest<T: Number>(means: &[u8], values: &[u8]) -> f64 {
        let size = size_of::<T>();
        let bits = means.chunks_exact(size).zip(values.chunks_exact(size));
        let pairs = T::all(means).zip(T::all(values)).zip(bits);
        let differ = pairs.filter(|(_, (a, b))| a != b);
        let off = differ.map(|((mean, value), _)| {
            let off = (mean.to_f64() - value.to_f64()).abs();
            if off.is_finite() {
                off.max(f64::MIN_POSITIVE)
            } else {
                f64::INFINITY
            }
        });
        off.fold(0.0, f64::max)
    }
    match dtype {
        DataType::Float32 => largest::<f32>(means, values),
        _ => largest::<f64>(means, values),
    }
}
