//! Covered cells: which fields can leave them out, because averaging the finer level down gives them
//! back.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::average::{average, can_average};
use super::boxcache::BoxCache;
use super::frame::rows;
use super::nest::Nest;
use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::numbers::Number;
use crate::memory::Column;

/// What becomes of cells that the next finer level covers.
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
pub(super) type ReadBox<'a> = dyn Fn(usize, &mut [u8]) -> Result<()> + Sync + 'a;

/// Whether averaging level `level + 1` down gives every covered cell of `level` back: the same bits,
/// or, with a `bound` above 0, a value that differs by no more than it.
///
/// `fine` must give the values as they will be read back: in a store that keeps an error bound,
/// those that were decoded. Boxes are read in parallel.
///
/// # Errors
/// What reading returns.
pub(super) fn gives_back(
    nest: &Nest,
    level: usize,
    dtype: &DataType,
    bound: f64,
    coarse: &ReadBox<'_>,
    fine: &ReadBox<'_>,
) -> Result<bool> {
    if !can_average(dtype) {
        return Ok(false);
    }
    let size = dtype.size().unwrap_or(8);
    let ratio = nest.level(level).ratio;
    let values = BoxCache::new(&nest.level(level).boxes, size);
    let alike = AtomicBool::new(true);
    let finer = nest.level(level + 1).boxes.par_iter().enumerate();
    finer.try_for_each(|(place, fine_box)| -> Result<()> {
        if !alike.load(Ordering::Relaxed) {
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
            let mut same = true;
            rows(&part, [&covered, frame], |[mean, value], len| {
                let means = &means[mean * size..(mean + len) * size];
                let there = &there.bytes()[value * size..(value + len) * size];
                same = same && (means == there || within(dtype, means, there, bound));
            });
            if !same {
                alike.store(false, Ordering::Relaxed);
                return Ok(());
            }
        }
        Ok(())
    })?;
    Ok(alike.into_inner())
}

/// Whether all values have the same bits, or differ by no more than `bound`, if that is above 0.
fn within(dtype: &DataType, means: &[u8], values: &[u8], bound: f64) -> bool {
    fn all<T: Number>(means: &[u8], values: &[u8], bound: f64) -> bool {
        let size = size_of::<T>();
        let bits = means.chunks_exact(size).zip(values.chunks_exact(size));
        let pairs = T::all(means).zip(T::all(values));
        pairs.zip(bits).all(|((mean, value), (a, b))| {
            a == b || (mean.to_f64() - value.to_f64()).abs() <= bound
        })
    }
    bound > 0.0
        && match dtype {
            DataType::Float32 => all::<f32>(means, values, bound),
            _ => all::<f64>(means, values, bound),
        }
}
