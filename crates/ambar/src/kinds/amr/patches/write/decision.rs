//! What is decided of a field before it is written: its error bounds, and which levels leave covered
//! cells out.

use rayon::prelude::*;

use super::covered::{Covered, difference};
use super::gather::Field;
use super::options::PatchOptions;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::average::can_average;
use crate::kinds::amr::patches::hierarchy::nest::{CellSet, Nest};
use crate::kinds::bound::{Compression, ErrorBound};
use crate::kinds::numbers;
use crate::memory::Column;

/// The part of an error bound that averaging down may take up: the finer level's bound is tighter by
/// as much.
const SHARE: f64 = 0.1;

/// What was decided of a field.
pub(crate) struct Decided {
    /// The bound that holds for every cell, as it will be read back.
    pub bound: ErrorBound,
    /// By level: the bound of what is stored.
    pub bounds: Vec<ErrorBound>,
    /// By level: whether covered cells are left out.
    pub dropped: Vec<bool>,
}

impl Decided {
    /// Decides about a field.
    ///
    /// # Errors
    /// `Invalid` for an error bound of values that are no floats; what the source returns.
    pub fn new(
        nest: &Nest,
        source: &dyn PatchSource,
        field: &Field,
        options: &PatchOptions,
    ) -> Result<Self> {
        let (bound, range) = match options.compression.bound(&field.name, &field.dtype)? {
            Some(bound) => {
                let range = leaf_range(nest, source, field)?;
                (bound.resolve(range), range)
            }
            None => (ErrorBound::Lossless, [0.0; 2]),
        };
        let levels = nest.levels();
        let mut decided = Self {
            bound,
            bounds: Vec::with_capacity(levels),
            dropped: vec![false; levels],
        };
        // Rounding a mean to its type, and summing it up, takes a little of the bound as well.
        let largest = range[0].abs().max(range[1].abs());
        let rounding = 8.0 * largest * epsilon(&field.dtype);
        // Only a part of an absolute bound can be left to the averages of finer cells.
        let given = match bound {
            ErrorBound::Absolute(bound) => bound,
            _ => 0.0,
        };
        let can_share = given > 0.0 || bound.is_lossless();
        let mut left = given;
        for level in 0..levels {
            decided.bounds.push(match bound {
                ErrorBound::Absolute(_) => ErrorBound::from(left),
                bound => bound,
            });
            let whole = nest.cells(level, CellSet::Leaves) == nest.cells(level, CellSet::All);
            let most = if given > 0.0 {
                SHARE * left - rounding
            } else {
                0.0
            };
            let (drops, off) = match options.covered {
                _ if whole => (false, 0.0),
                Covered::Keep => (false, 0.0),
                Covered::Drop => (can_average(&field.dtype), 0.0),
                Covered::Auto if most < 0.0 || !can_share => (false, 0.0),
                Covered::Auto => {
                    let off = off(nest, source, level, field, most)?;
                    (off <= most, off)
                }
            };
            decided.dropped[level] = drops;
            let bounded = drops && options.covered == Covered::Auto && given > 0.0;
            left = if bounded {
                left - off - rounding
            } else {
                given
            };
        }
        Ok(decided)
    }
}

impl Decided {
    /// Decides about a field whose values no one process has: by what the caller says alone.
    ///
    /// # Errors
    /// `Unsupported` for a bound relative to the range, and where values would have to decide whether
    /// covered cells are kept; `Invalid` for an error bound of values that are no floats.
    pub fn given(
        nest: &Nest,
        field: &Field,
        covered: Option<Covered>,
        compression: &Compression,
    ) -> Result<Self> {
        let bound = match compression.bound(&field.name, &field.dtype)? {
            None => ErrorBound::Lossless,
            Some(bound) if !bound.needs_range() => bound,
            Some(_) => {
                return Err(Error::unsupported(format!(
                    "an error bound relative to the range of {:?}, which no one rank knows: find \
                     the range together (MPI_Allreduce), and give an absolute bound",
                    field.name
                )));
            }
        };
        let covered = covered.unwrap_or(match bound {
            ErrorBound::Lossless => Covered::Keep,
            _ => Covered::Drop,
        });
        if covered == Covered::Auto {
            return Err(Error::unsupported(
                "covered cells cannot be left out by what many ranks hold (\"auto\"): say \
                 \"keep\" or \"drop\"",
            ));
        }
        let drops = |level: usize| {
            covered == Covered::Drop
                && can_average(&field.dtype)
                && nest.cells(level, CellSet::Leaves) != nest.cells(level, CellSet::All)
        };
        Ok(Self {
            bound,
            bounds: vec![bound; nest.levels()],
            dropped: (0..nest.levels()).map(drops).collect(),
        })
    }
}

/// How far averages of the finer level are off the covered cells; nothing is lost yet in either.
fn off(
    nest: &Nest,
    source: &dyn PatchSource,
    level: usize,
    field: &Field,
    most: f64,
) -> Result<f64> {
    let coarse = |place: usize, out: &mut [u8]| source.read_box(level, place, &field.name, out);
    let fine = |place: usize, out: &mut [u8]| source.read_box(level + 1, place, &field.name, out);
    difference(nest, level, &field.dtype, most, &coarse, &fine)
}

fn epsilon(dtype: &DataType) -> f64 {
    match dtype {
        DataType::Float32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// The range of a field's finite values on leaf cells.
fn leaf_range(nest: &Nest, source: &dyn PatchSource, field: &Field) -> Result<[f64; 2]> {
    let boxes: Vec<(usize, usize)> = (0..nest.levels())
        .flat_map(|level| (0..nest.level(level).boxes.len()).map(move |place| (level, place)))
        .collect();
    let range_of = |(level, place): (usize, usize)| -> Result<[f64; 2]> {
        let frame = &nest.level(level).boxes[place];
        let mut bytes = Column::allocate(&[DataType::UInt8], frame.cells() * field.size)?;
        source.read_box(level, place, &field.name, bytes[0].bytes_mut())?;
        let mut values = vec![0.0; frame.cells()];
        numbers::to_f64(&field.name, &field.dtype, bytes[0].bytes(), &mut values)?;
        let mut leaf = vec![true; frame.cells()];
        nest.mask(level, frame, CellSet::Leaves, &mut leaf);
        let finite = values
            .iter()
            .zip(leaf)
            .filter(|(value, leaf)| *leaf && value.is_finite());
        Ok(finite.fold(
            [f64::INFINITY, f64::NEG_INFINITY],
            |[lo, hi], (value, _)| [lo.min(*value), hi.max(*value)],
        ))
    };
    boxes
        .into_par_iter()
        .with_max_len(1)
        .map(range_of)
        .try_reduce(
            || [f64::INFINITY, f64::NEG_INFINITY],
            |a, b| Ok([a[0].min(b[0]), a[1].max(b[1])]),
        )
}
