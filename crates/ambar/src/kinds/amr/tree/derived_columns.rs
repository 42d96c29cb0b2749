//! Columns derived from a cell's level and position: level, centre, size, index on its level.

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::amr::AXES;
use crate::kinds::amr::tree::curve_walk::Jump;
use crate::kinds::amr::tree::curve_walk::{BLOCK, Centres, CurveWalk};
use crate::kinds::amr::tree::shape::TreeShape;

/// A derived column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerivedColumn {
    /// `level`, int32.
    Level,
    /// `x`, `y`, `z`: the centre, float64, code length.
    Centre(usize),
    /// `dx`: the cell's side, float64, code length.
    Size,
    /// `ix`, `iy`, `iz`: the index on the cell's level, int64.
    Index(usize),
}

impl DerivedColumn {
    /// The names of all derived columns in `ndim` dimensions.
    pub(crate) fn names(ndim: usize) -> Vec<String> {
        let mut names = vec!["level".to_owned()];
        names.extend(AXES[..ndim].iter().map(|axis| (*axis).to_owned()));
        names.push("dx".to_owned());
        names.extend(AXES[..ndim].iter().map(|axis| format!("i{axis}")));
        names
    }

    /// The derived column `name` in `ndim` dimensions; `None` if it does not exist.
    pub(crate) fn parse(name: &str, ndim: usize) -> Option<Self> {
        let axis = |name: &str| AXES[..ndim].iter().position(|axis| *axis == name);
        match name {
            "level" => Some(Self::Level),
            "dx" => Some(Self::Size),
            _ => match axis(name) {
                Some(d) => Some(Self::Centre(d)),
                None => name.strip_prefix('i').and_then(axis).map(Self::Index),
            },
        }
    }

    pub(crate) fn dtype(self) -> DataType {
        match self {
            Self::Level => DataType::Int32,
            Self::Centre(_) | Self::Size => DataType::Float64,
            Self::Index(_) => DataType::Int64,
        }
    }

    fn needs_walk(self) -> bool {
        matches!(self, Self::Centre(_) | Self::Index(_))
    }
}

/// A cell on the curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurvePosition {
    /// The cell's row.
    pub row: u64,
    /// Its lower corner, in lattice units.
    pub corner: [u64; 3],
}

/// Fills `outs` with derived columns of consecutive cells with these levels, of which `start` is the first.
///
/// # Errors
/// `Corrupt` if the levels do not form a tree.
pub(crate) fn derive(
    shape: &TreeShape,
    jumps: &[Jump],
    start: CurvePosition,
    levels: &[u8],
    columns: &[DerivedColumn],
    outs: &mut [&mut [u8]],
) -> Result<()> {
    let tables = Tables::new(shape);
    let mut walk = columns
        .iter()
        .any(|column| column.needs_walk())
        .then(|| CurveWalk::new(shape, start.row, start.corner, jumps));
    let mut centres = Centres::default();
    for (block, levels) in levels.chunks(BLOCK).enumerate() {
        if let Some(walk) = &mut walk {
            walk.next(levels, &mut centres)?;
        }
        for (column, out) in columns.iter().zip(outs.iter_mut()) {
            let size = if *column == DerivedColumn::Level {
                4
            } else {
                8
            };
            let start = block * BLOCK * size;
            let out = &mut out[start..start + levels.len() * size];
            tables.fill(*column, levels, &centres, out);
        }
    }
    Ok(())
}

/// Values that depend only on the level; zeros for levels that do not exist.
struct Tables {
    half_unit: f64,
    sizes: [f64; 256],
    shifts: [u8; 256],
}

impl Tables {
    fn new(shape: &TreeShape) -> Self {
        let mut tables = Self {
            half_unit: shape.half_unit(),
            sizes: [0.0; 256],
            shifts: [0; 256],
        };
        for level in 0..=shape.lattice_level {
            tables.sizes[usize::from(level)] = shape.cell_size(level);
            tables.shifts[usize::from(level)] = shape.lattice_level - level + 1;
        }
        tables
    }

    fn fill(&self, column: DerivedColumn, levels: &[u8], centres: &Centres, out: &mut [u8]) {
        let words = out.as_chunks_mut::<8>().0.iter_mut();
        match column {
            DerivedColumn::Level => {
                for (to, level) in out.as_chunks_mut::<4>().0.iter_mut().zip(levels) {
                    *to = i32::from(*level).to_ne_bytes();
                }
            }
            DerivedColumn::Centre(d) => {
                for (to, centre) in words.zip(&centres.axes[d]) {
                    *to = (small_to_f64(*centre) * self.half_unit).to_ne_bytes();
                }
            }
            DerivedColumn::Size => {
                for (to, level) in words.zip(levels) {
                    *to = self.sizes[usize::from(*level)].to_ne_bytes();
                }
            }
            DerivedColumn::Index(d) => {
                for ((to, centre), level) in words.zip(&centres.axes[d]).zip(levels) {
                    let shift = self.shifts[usize::from(*level)];
                    *to = (centre >> (shift & 63)).to_ne_bytes();
                }
            }
        }
    }
}

/// Converts an integer below 2^52 to f64. This compiles to two vector instructions, a cast
/// to many: the bits of `2^52 + x` are those of 2^52 with `x` in the fraction.
#[inline]
pub(crate) fn small_to_f64(x: u64) -> f64 {
    const EXPONENT: u64 = 0x4330_0000_0000_0000;
    f64::from_bits(x | EXPONENT) - f64::from_bits(EXPONENT)
}
