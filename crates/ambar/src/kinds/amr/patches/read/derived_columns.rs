//! Columns that are derived from the level and the index of a cell: level, centre, sides, index.

use std::ops::Range;

use crate::dtype::DataType;
use crate::kinds::amr::AXES;
use crate::kinds::amr::patches::blocks::Blocks;
use crate::kinds::amr::patches::hierarchy::nest::Nest;

/// A derived column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerivedColumn {
    /// `level`, int32.
    Level,
    /// `x`, `y`, `z`: the centre, float64, code length.
    Centre(usize),
    /// `dx`, `dy`, `dz`: the cell's sides, float64, code length; only `dx` if cells are cubes.
    Side(usize),
    /// `ix`, `iy`, `iz`: the index on the cell's own level, int64.
    Index(usize),
}

/// Whether `name` is reserved for a derived column of patches of `ndim` dimensions.
pub fn is_derived(name: &str, ndim: usize) -> bool {
    let axis = |name: &str| AXES[..ndim].contains(&name);
    name == "level" || axis(name) || name.strip_prefix(['d', 'i']).is_some_and(axis)
}

impl DerivedColumn {
    /// The names of all derived columns of a hierarchy.
    pub fn names(nest: &Nest) -> Vec<String> {
        let axes = &AXES[..nest.ndim()];
        let sides = if nest.has_cubes() { &axes[..1] } else { axes };
        let mut names = vec!["level".to_owned()];
        names.extend(axes.iter().map(|axis| (*axis).to_owned()));
        names.extend(sides.iter().map(|axis| format!("d{axis}")));
        names.extend(axes.iter().map(|axis| format!("i{axis}")));
        names
    }

    /// The derived column `name`, if it exists.
    pub fn parse(name: &str, nest: &Nest) -> Option<Self> {
        let axis = |name: &str| AXES[..nest.ndim()].iter().position(|axis| *axis == name);
        if name == "level" {
            return Some(Self::Level);
        }
        if let Some(d) = axis(name) {
            return Some(Self::Centre(d));
        }
        if let Some(d) = name.strip_prefix('i').and_then(axis) {
            return Some(Self::Index(d));
        }
        let d = name.strip_prefix('d').and_then(axis)?;
        (d == 0 || !nest.has_cubes()).then_some(Self::Side(d))
    }

    pub fn dtype(self) -> DataType {
        match self {
            Self::Level => DataType::Int32,
            Self::Centre(_) | Self::Side(_) => DataType::Float64,
            Self::Index(_) => DataType::Int64,
        }
    }

    /// Fills `out` with the column of all cells of some blocks.
    pub fn fill(self, nest: &Nest, blocks: &Blocks, range: Range<usize>, out: &mut [u8]) {
        let level = blocks.level();
        match self {
            Self::Level => {
                let value = (level as i32).to_ne_bytes();
                out.as_chunks_mut().0.fill(value);
            }
            Self::Side(d) => {
                let value = nest.level(level).cell_size[d].to_ne_bytes();
                out.as_chunks_mut().0.fill(value);
            }
            Self::Centre(d) => {
                let first = nest.level(level).domain.lo[d];
                let centre = |index: i64| nest.place(level, d, 2 * (index - first) + 1);
                along(d, blocks, range, out, |index| centre(index).to_ne_bytes());
            }
            Self::Index(d) => along(d, blocks, range, out, i64::to_ne_bytes),
        }
    }
}

/// Fills in values that depend only on the index in dimension `d`.
fn along(
    d: usize,
    blocks: &Blocks,
    range: Range<usize>,
    out: &mut [u8],
    value: impl Fn(i64) -> [u8; 8],
) {
    let side = blocks.side();
    let step = side.pow(d as u32);
    let mut values = vec![[0; 8]; side];
    let words = out.as_chunks_mut().0.chunks_exact_mut(blocks.block_cells());
    for (block, words) in range.zip(words) {
        for (place, to) in values.iter_mut().enumerate() {
            *to = value(blocks.origins()[block][d] + place as i64);
        }
        for (i, run) in words.chunks_exact_mut(step).enumerate() {
            run.fill(values[i % side]);
        }
    }
}
