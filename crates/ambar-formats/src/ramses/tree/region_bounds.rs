//! Bounds of a region in lattice cells. A read checks that its leaves fill them, so that no cell of the
//! region is lost.

use ambar::kinds::region::Region;

use super::lattice::Lattice;

/// The smallest boxes of lattice cells around a region, clipped to the box of the run: one box, or
/// several if the region crosses periodic faces.
#[derive(Clone, Copy, Debug)]
pub struct RegionBounds {
    ndim: usize,
    /// In each dimension, two disjoint intervals of lattice cells; the second may be empty.
    spans: [[(u64, u64); 2]; 3],
}

impl RegionBounds {
    /// The bounds of `region`.
    pub fn new(region: &Region, lattice: &Lattice) -> Self {
        let cell = lattice.side * 0.5f64.powi(i32::from(lattice.level));
        // `as` saturates.
        let clip = |x: f64, d: usize| (x as u64).min(lattice.root[d] << lattice.level);
        let spans = region.spans();
        Self {
            ndim: lattice.ndim,
            spans: std::array::from_fn(|d| {
                let [one, other] = spans[d].map(|span| {
                    let lo = clip((span.lo / cell).floor(), d);
                    (lo, clip((span.hi / cell).ceil(), d).max(lo))
                });
                // Rounding outwards can make them overlap.
                if one.0 < other.1 && other.0 < one.1 {
                    [(one.0.min(other.0), one.1.max(other.1)), (0, 0)]
                } else {
                    [one, other]
                }
            }),
        }
    }

    /// Number of lattice cells inside.
    pub fn volume(&self) -> u128 {
        self.shared(&[0; 3], &[u64::MAX; 3])
    }

    /// Number of lattice cells inside that cells of an oct cover: the oct of `level` at `at`, and those
    /// of its cells that are in `mask`.
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

    /// Number of lattice cells shared with another box.
    fn shared(&self, lo: &[u64; 3], hi: &[u64; 3]) -> u128 {
        let along = |d: usize| -> u128 {
            let spans = self.spans[d].iter();
            let shared =
                spans.map(|(from, to)| (*to).min(hi[d]).saturating_sub((*from).max(lo[d])));
            shared.map(u128::from).sum()
        };
        (0..self.ndim).map(along).product()
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
        let wrapped = part.in_periodic_box(&[0.25, 0.0], &[0.5, 0.5]).unwrap();
        let corner = Region::cuboid(&[0.9375, -0.0625], &[1.0625, 0.0625]).unwrap();
        let corner = corner.in_periodic_box(&[0.0, 0.0], &[1.0, 0.5]).unwrap();
        for (region, volume) in [
            (whole, Some(64 * 32)),
            (part, None),
            (wrapped, None),
            (corner, Some(8 * 8)),
        ] {
            let bounds = RegionBounds::new(&region, &lattice);
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
