//! Decisions about a field before it is written: its error bounds, and the levels without covered
//! cells.

use rayon::prelude::*;

use super::covered::{Averaging, Covered, finer_bound, is_relative, number};
use super::gather::{Field, PART_BYTES};
use super::options::PatchOptions;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::average::can_average;
use crate::kinds::amr::patches::hierarchy::IndexBox;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::bound::{Compression, ErrorBound, FieldBounds, looser};
use crate::memory::Column;
use crate::numbers;

/// The part of an error bound for the error of averages; the bound of the finer level is tighter by
/// this part.
const SHARE: f64 = 0.1;

/// The decisions about a field.
pub(crate) struct Decided {
    /// The bound that holds for every cell that a reader returns.
    pub bound: ErrorBound,
    /// The requested bounds.
    pub asked: FieldBounds,
    /// The median magnitude of the values, if a bound depends on their range.
    pub median: Option<f64>,
    /// By level: the bounds of the stored values.
    pub levels: Vec<FieldBounds>,
    /// By level: whether covered cells are dropped.
    pub dropped: Vec<bool>,
}

impl Decided {
    /// Decides about a field.
    ///
    /// # Errors
    /// `Invalid` for an error bound of values that are not floats; the errors of the source.
    pub fn new(
        nest: &Nest,
        source: &dyn PatchSource,
        field: &Field,
        options: &PatchOptions,
    ) -> Result<Self> {
        let asked = options.compression.bounds(&field.name, &field.dtype)?;
        let (range, sample) = match asked.loosest().is_lossless() {
            true => ([0.0; 2], Vec::new()),
            false => leaf_range(nest, source, field)?,
        };
        let needs_range = asked.needs_range();
        let mut decided = Self::undropped(nest, asked.resolve(range), asked);
        decided.median = numbers::median(sample).filter(|_| needs_range);
        // The rounding of sums and means takes a small part of the bound, too.
        let largest = range[0].abs().max(range[1].abs());
        for level in 0..nest.levels() {
            if nest.cells(level, CellSet::Leaves) == nest.cells(level, CellSet::All) {
                continue;
            }
            decided.dropped[level] = match options.covered {
                Covered::Keep => false,
                Covered::Drop => can_average(&field.dtype),
                Covered::Auto => {
                    let bound = decided.levels[level].strictest();
                    let finer = decided.levels[level + 1].loosest();
                    let averaging = Averaging {
                        bound,
                        floor: match finer {
                            ErrorBound::RelativeAbove { floor, .. } => floor,
                            _ => 0.0,
                        },
                        rounding: if is_relative(bound) {
                            16.0 * epsilon(&field.dtype)
                        } else {
                            8.0 * largest * epsilon(&field.dtype)
                        },
                        least: (1.0 - SHARE) * number(finer),
                    };
                    decided.drop_averages(nest, source, level, field, &averaging)?
                }
            };
        }
        Ok(decided)
    }

    /// Covered cells are kept on all levels.
    fn undropped(nest: &Nest, resolved: FieldBounds, asked: FieldBounds) -> Self {
        let levels = (0..nest.levels()).map(|level| resolved.on_level(level as u64));
        let levels: Vec<FieldBounds> = levels.collect();
        let loosest = levels.iter().map(FieldBounds::loosest);
        Self {
            bound: loosest.reduce(looser).unwrap_or(ErrorBound::Lossless),
            asked,
            median: None,
            dropped: vec![false; levels.len()],
            levels,
        }
    }

    /// Whether averages of the finer level reproduce all covered cells of a level. If so, limits the bound of the finer
    /// level. Bounds in bits permit no averages.
    fn drop_averages(
        &mut self,
        nest: &Nest,
        source: &dyn PatchSource,
        level: usize,
        field: &Field,
        averaging: &Averaging,
    ) -> Result<bool> {
        let has_bits = [averaging.bound, self.levels[level + 1].loosest()];
        if has_bits
            .iter()
            .any(|bound| matches!(bound, ErrorBound::Bits(_)))
            || number(averaging.bound) < averaging.least
        {
            return Ok(false);
        }
        let read = |level: usize| {
            move |place: usize, part: &IndexBox, out: &mut [u8]| {
                source.read_part(level, place, &field.name, part, out)
            }
        };
        let (coarse, fine) = (read(level), read(level + 1));
        let needed = finer_bound(nest, level, &field.dtype, averaging, &coarse, &fine)?;
        if needed < averaging.least {
            return Ok(false);
        }
        self.levels[level + 1] = self.levels[level + 1].limited(needed);
        Ok(true)
    }
}

impl Decided {
    /// Decides about a field by the options alone, because its values are on many ranks.
    ///
    /// # Errors
    /// `Unsupported` for options that depend on values: bounds relative to the range, and
    /// [`Covered::Auto`]; `Invalid` for an error bound of values that are not floats.
    pub fn given(
        nest: &Nest,
        field: &Field,
        covered: Option<Covered>,
        compression: &Compression,
    ) -> Result<Self> {
        let asked = compression.bounds(&field.name, &field.dtype)?;
        if asked.needs_range() {
            return Err(Error::unsupported(format!(
                "an error bound relative to the value range of {:?} needs the values of all ranks; \
                 compute the range (MPI_Allreduce), and give an absolute bound",
                field.name
            )));
        }
        let mut decided = Self::undropped(nest, asked.clone(), asked);
        let covered = covered.unwrap_or(match decided.bound {
            ErrorBound::Lossless => Covered::Keep,
            _ => Covered::Drop,
        });
        if covered == Covered::Auto {
            return Err(Error::unsupported(
                "the treatment \"auto\" of covered cells needs the values of all ranks; give \"keep\" \
                 or \"drop\"",
            ));
        }
        let drops = |level: usize| {
            covered == Covered::Drop
                && can_average(&field.dtype)
                && nest.cells(level, CellSet::Leaves) != nest.cells(level, CellSet::All)
        };
        decided.dropped = (0..nest.levels()).map(drops).collect();
        Ok(decided)
    }
}

fn epsilon(dtype: &DataType) -> f64 {
    match dtype {
        DataType::Float32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// The range of the finite values of a field on leaf cells, and a sample of them.
fn leaf_range(
    nest: &Nest,
    source: &dyn PatchSource,
    field: &Field,
) -> Result<([f64; 2], Vec<f64>)> {
    let mut slabs = Vec::new();
    for level in 0..nest.levels() {
        for (place, frame) in nest.level(level).boxes.iter().enumerate() {
            let parts = frame.slabs(nest.ndim(), PART_BYTES / field.size);
            slabs.extend(parts.map(|slab| (level, place, slab)));
        }
    }
    let cells = (0..nest.levels()).map(|level| nest.cells(level, CellSet::Leaves));
    let step = (cells.sum::<u64>() as usize / numbers::SAMPLE).max(1);
    let none = || ([f64::INFINITY, f64::NEG_INFINITY], Vec::new());
    let range_of = |(level, place, slab): (usize, usize, IndexBox)| -> Result<_> {
        let mut bytes = Column::allocate(&[DataType::UInt8], slab.cells() * field.size)?;
        source.read_part(level, place, &field.name, &slab, bytes[0].bytes_mut())?;
        let mut values = vec![0.0; slab.cells()];
        numbers::to_f64(&field.name, &field.dtype, bytes[0].bytes(), &mut values)?;
        let mut leaf = vec![true; slab.cells()];
        nest.mask(level, &slab, CellSet::Leaves, &mut leaf);
        let (mut range, mut sample) = none();
        let finite = values.iter().zip(leaf);
        let finite = finite.filter(|(value, leaf)| *leaf && value.is_finite());
        for (number, (value, _)) in finite.enumerate() {
            range = [range[0].min(*value), range[1].max(*value)];
            if number % step == 0 {
                sample.push(*value);
            }
        }
        Ok((range, sample))
    };
    slabs
        .into_par_iter()
        .with_max_len(1)
        .map(range_of)
        .try_reduce(none, |(a, mut sample), (b, more)| {
            sample.extend(more);
            Ok(([a[0].min(b[0]), a[1].max(b[1])], sample))
        })
}
