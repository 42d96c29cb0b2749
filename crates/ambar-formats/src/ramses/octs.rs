//! The own octs of a domain, from its amr file: keys along the Morton curve, and masks of cells.

use ambar::kinds::region::Region;
use ambar::{Error, Result};

use super::amr;
use super::blocks::{BlockFile, Tile};
use super::cover::Bounds;
use super::key::Key;

/// An oct: 2^ndim cells of one level.
#[derive(Clone, Copy, Debug)]
pub struct Oct<K> {
    /// The key of its lower corner, in units of the lattice.
    pub key: K,
    /// Its number among all own octs, in the files' order.
    pub id: u32,
    /// Its cells' level.
    pub level: u8,
    /// Its cells that hold no oct that is read (in reads of a region: those wanted).
    pub mask: u8,
}

/// The lattice: cells of the finest level, over the whole box.
#[derive(Clone, Copy, Debug)]
pub struct Lattice {
    /// Dimensions.
    pub ndim: usize,
    /// Root cells per dimension; 1 in unused dimensions.
    pub root: [u64; 3],
    /// The first root cell among the coarse cells: boundary cells come before it.
    pub shift: [u64; 3],
    /// The lattice's level.
    pub level: u8,
    /// Side of a root cell in code length.
    pub side: f64,
}

impl Lattice {
    /// Bits of a lattice coordinate.
    pub fn coordinate_bits(&self) -> u32 {
        let most = self.root.iter().max().map_or(1, |side| *side);
        u32::from(self.level) + (u64::BITS - (most - 1).leading_zeros())
    }

    /// Bits of the keys inside a cell of `level`.
    pub fn cell_bits(&self, level: u8) -> u32 {
        self.ndim as u32 * u32::from(self.level - level)
    }

    /// The centre of a cell in code length.
    pub fn centre(&self, level: u8, at: [u64; 3]) -> [f64; 3] {
        let half = self.side * 0.5f64.powi(i32::from(level) + 1);
        at.map(|x| (2 * x + 1) as f64 * half)
    }
}

/// Levels that are read.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// The first one whose leaf cells are wanted.
    pub first: u8,
    /// The last one whose leaf cells are wanted. Octs up to this level are read.
    pub last: u8,
    /// The level at which the tree ends: all its cells are leaves.
    pub deepest: u8,
}

/// Which cells are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// Their levels.
    pub levels: Levels,
    /// Only cells with their centre in it; and its bounds.
    pub region: Option<(&'a Region, Bounds)>,
}

/// The own octs of one domain.
pub struct Octs<K> {
    /// Those with wanted cells; without a region, all. Their ids count from 0.
    pub octs: Vec<Oct<K>>,
    /// The wanted cells of every own oct of the levels read, in the file's order.
    pub masks: Vec<u8>,
    /// Lattice cells of the region's bounds that its leaves cover.
    pub covered: u128,
}

impl<K> Default for Octs<K> {
    fn default() -> Self {
        Self {
            octs: Vec::new(),
            masks: Vec::new(),
            covered: 0,
        }
    }
}

/// Reads the own octs of a domain.
///
/// # Errors
/// `Corrupt` where a record is not as expected or an oct lies nowhere in the box; `Io`.
pub fn read<K: Key>(
    blocks: &mut BlockFile<'_>,
    lattice: &Lattice,
    cut: &Cut<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Octs<K>> {
    let wanted = amr::wanted(lattice.ndim);
    let mut found = Octs::default();
    let path = blocks.file.path().to_owned();
    for (index, level) in (0..blocks.levels.len()).zip(1..=cut.levels.last) {
        blocks.read(index, &wanted, buffer, &mut |tile| {
            read_tile(tile, level, lattice, cut, &mut found).map_err(|error| {
                error
                    .at_node(format!("level {level}"))
                    .in_file(path.display())
            })
        })?;
    }
    Ok(found)
}

fn read_tile<K: Key>(
    tile: &Tile<'_>,
    level: u8,
    lattice: &Lattice,
    cut: &Cut<'_>,
    found: &mut Octs<K>,
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
    found.masks.reserve(tile.octs.len());
    for i in 0..tile.octs.len() {
        let mut at = [0u64; 3];
        let mut sound = true;
        for d in 0..ndim {
            let centre = if is_double {
                double(centres[d], i)
            } else {
                single(centres[d], i)
            };
            let corner = centre * scale - 0.5;
            let whole = corner as i64;
            at[d] = whole.wrapping_sub(shift[d]) as u64;
            sound &= (whole as f64 == corner) & (at[d] < limit[d]);
        }
        if !sound {
            return Err(misplaced(tile.octs.start + i));
        }
        let leaves = sons.iter().enumerate().fold(0u8, |mask, (cell, sons)| {
            mask | u8::from(sons[i] == [0; 4]) << cell
        });
        let all = (1u16 << (1 << ndim)).wrapping_sub(1) as u8;
        // Cells that hold no oct of a level that is read.
        let childless = if level == cut.levels.last {
            all
        } else {
            leaves
        };
        let shown = if level < cut.levels.first {
            0
        } else if level == cut.levels.deepest {
            all
        } else {
            leaves
        };
        let shown = match &cut.region {
            Some((region, bounds)) => {
                found.covered += bounds.covered(lattice, level, at, childless);
                inside(region, lattice, level, at) & shown
            }
            None => shown,
        };
        if cut.region.is_none() || shown != 0 {
            found.octs.push(Oct {
                key: K::encode(ndim, &at).up(bits),
                id: found.masks.len() as u32,
                level,
                mask: if cut.region.is_none() {
                    childless
                } else {
                    shown
                },
            });
        }
        found.masks.push(shown);
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

fn misplaced(oct: usize) -> Error {
    Error::corrupt(format!(
        "record xg: the centre of oct {} is not that of an oct of its level in the box; the file \
         is damaged: copy it again from where the run wrote it",
        oct + 1
    ))
}

/// The cells of an oct whose centres lie in the region.
fn inside(region: &Region, lattice: &Lattice, level: u8, at: [u64; 3]) -> u8 {
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
