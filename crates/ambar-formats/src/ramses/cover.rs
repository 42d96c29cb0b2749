//! The proof that no cell of a region is lost: the leaves found must fill the region's bounds.

use ambar::kinds::region::Region;

use super::octs::Lattice;

/// The smallest box of lattice cells around a region, cut at the box of the run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    ndim: usize,
    lo: [u64; 3],
    hi: [u64; 3],
}

impl Bounds {
    /// The bounds of `region`.
    pub fn new(region: &Region, lattice: &Lattice) -> Self {
        let cell = lattice.side * 0.5f64.powi(i32::from(lattice.level));
        let (lo, hi) = region.bounds();
        // `as` maps what lies outside of the numbers' range to its ends.
        let place = |x: f64, d: usize| (x as u64).min(lattice.root[d] << lattice.level);
        Self {
            ndim: lattice.ndim,
            lo: std::array::from_fn(|d| place((lo[d] / cell).floor(), d)),
            hi: std::array::from_fn(|d| place((hi[d] / cell).ceil(), d)),
        }
    }

    /// Lattice cells in it.
    pub fn volume(&self) -> u128 {
        self.shared(&self.lo, &self.hi)
    }

    /// Lattice cells in it that the cells of `mask` cover, of the oct of cells of `level` at `at`.
    pub fn covered(&self, lattice: &Lattice, level: u8, at: [u64; 3], mask: u8) -> u128 {
        let size = 1u64 << (lattice.level - level);
        let corner = at.map(|x| 2 * x * size);
        if self.shared(&corner, &corner.map(|x| x + 2 * size)) == 0 {
            return 0;
        }
        let cells = (0..1usize << self.ndim).filter(|cell| mask >> cell & 1 == 1);
        cells
            .map(|cell| {
                let lo: [u64; 3] =
                    std::array::from_fn(|d| corner[d] + (cell >> d & 1) as u64 * size);
                self.shared(&lo, &lo.map(|x| x + size))
            })
            .sum()
    }

    /// Lattice cells shared with another box.
    fn shared(&self, lo: &[u64; 3], hi: &[u64; 3]) -> u128 {
        (0..self.ndim)
            .map(|d| {
                let from = self.lo[d].max(lo[d]);
                u128::from(self.hi[d].min(hi[d]).saturating_sub(from))
            })
            .product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_the_box_cover_it() {
        let lattice = Lattice {
            ndim: 2,
            root: [2, 1, 1],
            shift: [0; 3],
            level: 5,
            side: 0.5,
        };
        let whole = Region::cuboid(&[-9.0, -1e300], &[f64::MAX, 2.0]).unwrap();
        let part = Region::sphere(&[0.3, 0.2], 0.11).unwrap();
        for (region, volume) in [(whole, Some(64 * 32)), (part, None)] {
            let bounds = Bounds::new(&region, &lattice);
            assert!(volume.is_none_or(|volume| volume == bounds.volume()));
            for level in 1..=5 {
                let octs = 1u64 << (level - 1);
                let covered = |mask: u8| -> u128 {
                    let places = (0..2 * octs).flat_map(|x| (0..octs).map(move |y| [x, y, 0]));
                    places
                        .map(|at| bounds.covered(&lattice, level, at, mask))
                        .sum()
                };
                assert_eq!(covered(0b1111), bounds.volume());
                assert_eq!(covered(0b0101) + covered(0b1010), bounds.volume());
            }
        }
    }
}
