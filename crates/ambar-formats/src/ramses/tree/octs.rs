//! The octs that a domain owns: Morton keys, and bit masks of their wanted cells.

use ambar::kinds::region::Region;
use ambar::{Error, Result};

use super::lattice::{Lattice, LevelRange};
use super::morton_key::MortonKey;
use super::region_bounds::RegionBounds;
use crate::ramses::files::amr;
use crate::ramses::files::blocks::{BlockFile, Tile};

/// An oct: `2^ndim` sibling cells of one level.
#[derive(Clone, Copy, Debug)]
pub struct Oct<K> {
    /// The Morton key of its lower corner, in units of the lattice.
    pub key: K,
    /// Its number among the octs that the domains own, in file order.
    pub id: u32,
    /// Level of its cells.
    pub level: u8,
    /// Bit mask of its cells without children that are read (in reads of a region: of its wanted
    /// cells).
    pub mask: u8,
}

/// Which cells are wanted.
#[derive(Clone, Copy, Debug)]
pub struct CellFilter<'a> {
    /// The levels.
    pub levels: LevelRange,
    /// The region, if only part of the box is wanted.
    pub region: Option<RegionFilter<'a>>,
}

/// A region that selects cells.
#[derive(Clone, Copy, Debug)]
pub struct RegionFilter<'a> {
    /// Cells with their centre in this region are wanted.
    pub region: &'a Region,
    /// The region's bounds, whose coverage by leaves is counted.
    pub bounds: RegionBounds,
}

/// The octs that one domain owns.
pub struct OwnOcts<K> {
    /// Octs with wanted cells; without a region, all octs. Their ids count from 0.
    pub octs: Vec<Oct<K>>,
    /// Bit masks of the wanted cells of every oct of the levels read, in file order.
    pub masks: Vec<u8>,
    /// Lattice cells of the region's bounds that leaves of this domain cover.
    pub covered: u128,
}

impl<K> Default for OwnOcts<K> {
    fn default() -> Self {
        Self {
            octs: Vec::new(),
            masks: Vec::new(),
            covered: 0,
        }
    }
}

/// Reads the octs that a domain owns.
///
/// # Errors
/// `Corrupt` for an unexpected record or an oct outside the box; `Io`.
pub fn read<K: MortonKey>(
    blocks: &mut BlockFile<'_>,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
    buffer: &mut Vec<u8>,
) -> Result<OwnOcts<K>> {
    let wanted = amr::centre_and_son_records(lattice.ndim);
    let mut found = OwnOcts::default();
    let path = blocks.file.path().to_owned();
    let own = blocks.levels.iter().take(usize::from(filter.levels.last));
    // The file's length agrees with these numbers, which `BlockFile::new` checks.
    let own = own.map(|level| level.own).sum::<u64>() as usize;
    found.masks.reserve_exact(own);
    if filter.region.is_none() {
        found.octs.reserve_exact(own);
    }
    for (index, level) in (0..blocks.levels.len()).zip(1..=filter.levels.last) {
        blocks.read(index, &wanted, buffer, &mut |tile| {
            read_tile(tile, level, lattice, filter, &mut found).map_err(|error| {
                error
                    .at_node(format!("level {level}"))
                    .in_file(path.display())
            })
        })?;
    }
    Ok(found)
}

fn read_tile<K: MortonKey>(
    tile: &Tile<'_>,
    level: u8,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
    found: &mut OwnOcts<K>,
) -> Result<()> {
    let ndim = lattice.ndim;
    let centres: [&[u8]; 3] = std::array::from_fn(|d| if d < ndim { tile.record(d) } else { &[] });
    let is_double = centres[0].len() == 8 * tile.octs.len();
    let sons: Vec<&[[u8; 4]]> = (ndim..ndim + (1 << ndim))
        .map(|record| tile.record(record).as_chunks::<4>().0)
        .collect();
    let scale = 2f64.powi(i32::from(level) - 1);
    let limit = lattice.root.map(|side| side << (level - 1));
    let shift = lattice.shift.map(|side| (side << (level - 1)) as i64);
    let bits = lattice.cell_bits(level - 1);
    for i in 0..tile.octs.len() {
        let mut at = [0u64; 3];
        let mut is_valid = true;
        for d in 0..ndim {
            let centre = if is_double {
                double(centres[d], i)
            } else {
                single(centres[d], i)
            };
            let corner = centre * scale - 0.5;
            let whole = corner as i64;
            at[d] = whole.wrapping_sub(shift[d]) as u64;
            is_valid &= (whole as f64 == corner) & (at[d] < limit[d]);
        }
        if !is_valid {
            return Err(invalid_centre(tile.octs.start + i));
        }
        let without_sons = sons.iter().enumerate().fold(0u8, |mask, (cell, sons)| {
            mask | u8::from(sons[i] == [0; 4]) << cell
        });
        let all = (1u16 << (1 << ndim)).wrapping_sub(1) as u8;
        // Cells without children on the levels that are read.
        let childless = if level == filter.levels.last {
            all
        } else {
            without_sons
        };
        let leaves = if level < filter.levels.first {
            0
        } else if level == filter.levels.deepest {
            all
        } else {
            without_sons
        };
        let wanted = match &filter.region {
            Some(RegionFilter { region, bounds }) => {
                found.covered += bounds.covered(lattice, level, at, childless);
                cells_in_region(region, lattice, level, at) & leaves
            }
            None => leaves,
        };
        if filter.region.is_none() || wanted != 0 {
            found.octs.push(Oct {
                key: K::encode(ndim, &at).shift_up(bits),
                id: found.masks.len() as u32,
                level,
                mask: if filter.region.is_none() {
                    childless
                } else {
                    wanted
                },
            });
        }
        found.masks.push(wanted);
    }
    Ok(())
}

#[inline]
fn double(bytes: &[u8], i: usize) -> f64 {
    f64::from_le_bytes(bytes.as_chunks::<8>().0[i])
}

#[inline]
fn single(bytes: &[u8], i: usize) -> f64 {
    f64::from(f32::from_le_bytes(bytes.as_chunks::<4>().0[i]))
}

fn invalid_centre(oct: usize) -> Error {
    Error::corrupt(format!(
        "record xg: expected the centre of an oct of this level in the box, found another position \
         for oct {}; the file is damaged: copy it again from where the run wrote it",
        oct + 1
    ))
}

/// Bit mask of the cells of an oct whose centres are in the region.
fn cells_in_region(region: &Region, lattice: &Lattice, level: u8, at: [u64; 3]) -> u8 {
    let size = lattice.side * 0.5f64.powi(i32::from(level) - 1);
    let lo = at.map(|x| x as f64 * size);
    let hi = at.map(|x| (x + 1) as f64 * size);
    if !region.may_touch(&lo, &hi) {
        return 0;
    }
    if region.covers(&lo, &hi) {
        return u8::MAX;
    }
    (0..1usize << lattice.ndim)
        .filter(|cell| {
            let cell: [u64; 3] = std::array::from_fn(|d| 2 * at[d] + (cell >> d & 1) as u64);
            region.contains(&lattice.centre(level, cell))
        })
        .fold(0, |mask, cell| mask | 1 << cell)
}
