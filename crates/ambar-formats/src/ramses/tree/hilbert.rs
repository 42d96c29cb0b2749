//! Which domains can hold cells of a region, according to their intervals of RAMSES's Hilbert curve.
//!
//! Correctness does not depend on the curve: a read that skips domains checks that it lost no cell.

use ambar::kinds::region::Region;

/// An orientation of the curve in a cube: axis `d` of the cube is the curve's axis `axes[d]`, mirrored
/// if `mirrored[d]` is 1.
#[derive(Clone, Copy)]
struct Orientation {
    axes: [usize; 3],
    mirrored: [u64; 3],
}

const fn oriented(axes: [usize; 3], mirrored: [u64; 3]) -> Orientation {
    Orientation { axes, mirrored }
}

const STRAIGHT: Orientation = oriented([0, 1, 2], [0, 0, 0]);

/// The curve through the halves, quarters or eighths of a cube: position and orientation of each part,
/// in order. Derived from the domains of real outputs.
const CURVES: [&[([u64; 3], Orientation)]; 3] = [
    &[([0, 0, 0], STRAIGHT), ([1, 0, 0], STRAIGHT)],
    &[
        ([0, 0, 0], oriented([1, 0, 2], [0, 0, 0])),
        ([0, 1, 0], STRAIGHT),
        ([1, 1, 0], STRAIGHT),
        ([1, 0, 0], oriented([1, 0, 2], [1, 1, 0])),
    ],
    &[
        ([0, 0, 0], oriented([1, 2, 0], [0, 0, 0])),
        ([0, 0, 1], oriented([2, 0, 1], [0, 0, 0])),
        ([0, 1, 1], oriented([2, 0, 1], [0, 0, 0])),
        ([0, 1, 0], oriented([0, 1, 2], [0, 1, 1])),
        ([1, 1, 0], oriented([0, 1, 2], [0, 1, 1])),
        ([1, 1, 1], oriented([2, 0, 1], [1, 1, 0])),
        ([1, 0, 1], oriented([2, 0, 1], [1, 1, 0])),
        ([1, 0, 0], oriented([1, 2, 0], [1, 0, 1])),
    ],
];

impl Orientation {
    fn position(&self, local: [u64; 3]) -> [u64; 3] {
        std::array::from_fn(|d| local[self.axes[d]] ^ self.mirrored[d])
    }

    /// The orientation `inner` followed by this one.
    fn compose(&self, inner: &Orientation) -> Orientation {
        Orientation {
            axes: std::array::from_fn(|d| inner.axes[self.axes[d]]),
            mirrored: std::array::from_fn(|d| inner.mirrored[self.axes[d]] ^ self.mirrored[d]),
        }
    }
}

/// A cube on the curve: the keys from `first` on that share the bits above its level.
#[derive(Clone, Copy)]
struct Cube {
    level: u32,
    corner: [u64; 3],
    first: u128,
    orientation: Orientation,
}

/// The curve on a grid of `2^levels` cells a side.
struct Curve {
    ndim: usize,
    levels: u32,
}

impl Curve {
    fn keys(&self, cube: &Cube) -> u128 {
        1 << (self.ndim as u32 * (self.levels - cube.level))
    }

    fn parts(&self, cube: Cube) -> impl Iterator<Item = Cube> + use<> {
        let keys = self.keys(&cube) >> self.ndim;
        CURVES[self.ndim - 1]
            .iter()
            .zip(0u128..)
            .map(move |((local, turn), i)| {
                let position = cube.orientation.position(*local);
                Cube {
                    level: cube.level + 1,
                    corner: std::array::from_fn(|d| 2 * cube.corner[d] + position[d]),
                    first: cube.first + i * keys,
                    orientation: cube.orientation.compose(turn),
                }
            })
    }

    /// The key of a cube's centre: that of the grid cell whose lower corner is the centre.
    fn centre(&self, cube: Cube) -> u128 {
        let mut at = cube;
        let mut upper = 1;
        while at.level < self.levels {
            let corner: [u64; 3] =
                std::array::from_fn(|d| 2 * at.corner[d] + if d < self.ndim { upper } else { 0 });
            let Some(part) = self.parts(at).find(|part| part.corner == corner) else {
                break;
            };
            (at, upper) = (part, 0);
        }
        at.first
    }
}

/// The decomposition of the box into intervals of the curve.
#[derive(Clone, Copy, Debug)]
pub struct HilbertDomains<'a> {
    /// The keys where the domains begin, and where the last one ends.
    pub bounds: &'a [f64],
    /// Dimensions.
    pub ndim: usize,
    /// The grid has `2^levels` cells in each dimension.
    pub levels: u32,
    /// The level of the coarsest leaves.
    pub coarsest: u32,
    /// Side of the box.
    pub side: f64,
}

/// A flag for each domain: whether it can hold an oct of a cell with its centre in `region`. `None` if
/// the bounds do not partition the grid.
///
/// An oct belongs to the domain of the key of its parent cell's centre, and the parent of a leaf with
/// its centre in the region touches the region.
pub fn domains_touching(region: &Region, domains: &HilbertDomains<'_>) -> Option<Vec<bool>> {
    let HilbertDomains {
        bounds,
        ndim,
        levels,
        coarsest,
        side,
    } = *domains;
    let curve = Curve { ndim, levels };
    if ndim as u32 * levels > 120 {
        return None;
    }
    let whole = Cube {
        level: 0,
        corner: [0; 3],
        first: 0,
        orientation: STRAIGHT,
    };
    let keys: Vec<u128> = bounds.iter().map(|key| *key as u128).collect();
    let ends = keys.first() == Some(&0) && keys.last() == Some(&curve.keys(&whole));
    if !ends || !keys.is_sorted() {
        return None;
    }
    let domain = |key: u128| keys.partition_point(|bound| *bound <= key) - 1;
    let mut flags = vec![false; keys.len() - 1];
    let mut cubes = vec![whole];
    while let Some(cube) = cubes.pop() {
        let size = side * 0.5f64.powi(cube.level as i32);
        let lo = cube.corner.map(|x| x as f64 * size);
        let hi = cube.corner.map(|x| (x + 1) as f64 * size);
        if !region.may_touch(&lo, &hi) {
            continue;
        }
        if cube.level + 1 >= coarsest {
            flags[domain(curve.centre(cube))] = true;
        }
        let (first, last) = (
            domain(cube.first),
            domain(cube.first + curve.keys(&cube) - 1),
        );
        // The cube's cells belong to these domains; skip the cube if all of them are flagged.
        if cube.level < levels && flags[first..=last].contains(&false) {
            cubes.extend(curve.parts(cube));
        }
    }
    Some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_steps_from_neighbour_to_neighbour() {
        for ndim in 1..=3 {
            let curve = Curve { ndim, levels: 4 };
            let whole = Cube {
                level: 0,
                corner: [0; 3],
                first: 0,
                orientation: STRAIGHT,
            };
            let mut cubes = vec![whole];
            for _ in 0..4 {
                cubes = cubes
                    .into_iter()
                    .flat_map(|cube| curve.parts(cube))
                    .collect();
            }
            assert_eq!(cubes.len(), 1 << (4 * ndim));
            for (pair, key) in cubes.windows(2).zip(0..) {
                assert_eq!(pair[0].first, key);
                let steps: u64 = (0..3)
                    .map(|d| pair[0].corner[d].abs_diff(pair[1].corner[d]))
                    .sum();
                assert_eq!(steps, 1, "{ndim} dimensions, key {key}");
            }
        }
    }

    #[test]
    fn bounds_that_do_not_divide_the_grid_are_not_used() {
        let region = Region::sphere(&[0.5, 0.5], 0.1).unwrap();
        let flags = |bounds: &[f64]| {
            let domains = HilbertDomains {
                bounds,
                ndim: 2,
                levels: 3,
                coarsest: 1,
                side: 1.0,
            };
            domains_touching(&region, &domains)
        };
        assert!(flags(&[]).is_none());
        assert!(flags(&[0.0, 63.0]).is_none());
        assert!(flags(&[0.0, 40.0, 30.0, 64.0]).is_none());
        assert!(flags(&[0.0, f64::NAN, 64.0]).is_some());
        assert_eq!(flags(&[0.0, 64.0]), Some(vec![true]));
    }
}
