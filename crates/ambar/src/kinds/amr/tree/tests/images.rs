//! Grids, slices and projections, compared with loops over all leaves and pixels.

use super::*;
use crate::kinds::computed::ComputedColumns;
use crate::kinds::region::Region;
use crate::kinds::select::Selection;

/// A tree, and the leaves with their lattice refined to hold the window's level.
struct Scene {
    sample: Sample,
    tree: AmrTree,
    window: Window,
    /// Sides of a window cell and of the lattice unit on the common lattice.
    cell: u64,
    unit: u64,
}

impl Scene {
    fn new(recipe: &Recipe, random: &mut Random) -> Self {
        let sample = Sample::new(recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let lattice = sample.shape.lattice_level;
        let level = random.below(u64::from(lattice) + 3) as u8;
        let mut window = tree.window(level, None).unwrap();
        for d in 0..recipe.ndim {
            let cells = window.hi[d];
            window.lo[d] = random.below(cells);
            window.hi[d] = (window.lo[d] + 1 + random.below(7)).min(cells);
        }
        let finest = level.max(lattice);
        Self {
            sample,
            tree,
            window,
            cell: 1 << (finest - level),
            unit: 1 << (finest - lattice),
        }
    }

    /// Length of the overlap of a leaf and the window's cell `index` in dimension `d`.
    fn overlap(&self, leaf: &Leaf, d: usize, index: u64) -> u64 {
        if d >= self.sample.shape.ndim {
            return 1;
        }
        let (lo, hi) = (
            leaf.corner[d] * self.unit,
            (leaf.corner[d] + leaf.side) * self.unit,
        );
        hi.min((index + 1) * self.cell)
            .saturating_sub(lo.max(index * self.cell))
    }

    fn pixels(&self, skip: Option<usize>) -> Vec<[u64; 3]> {
        let mut window = self.window;
        if let Some(axis) = skip {
            window.hi[axis] = window.lo[axis] + 1;
        }
        let mut pixels = Vec::new();
        for x in window.lo[0]..window.hi[0] {
            for y in window.lo[1]..window.hi[1] {
                for z in window.lo[2]..window.hi[2] {
                    pixels.push([x, y, z]);
                }
            }
        }
        pixels
    }
}

fn same(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let close = (found - expected).abs() <= 1e-12 * expected.abs();
        assert!(
            close || found.is_nan() && expected.is_nan(),
            "{found} {expected}"
        );
    }
}

proptest! {
    #[test]
    fn grids_average_and_spread(recipe in recipes(9)) {
        let scene = Scene::new(&recipe, &mut Random(recipe.seed ^ 2));
        let grids = scene.tree.grid(&["density", "mass", "level"], &scene.window, &ComputedColumns::NONE).unwrap();
        let mut expected = [vec![], vec![], vec![]];
        for pixel in scene.pixels(None) {
            let (mut volume, mut sums) = (0.0, [0.0; 3]);
            for (row, leaf) in scene.sample.leaves.iter().enumerate() {
                let part = (0..3).map(|d| scene.overlap(leaf, d, pixel[d]) as f64).product::<f64>();
                volume += part;
                sums[0] += part * scene.sample.density[row];
                sums[1] += part * f64::from(scene.sample.mass[row]);
                sums[2] += part * f64::from(leaf.level);
            }
            for (expected, sum) in expected.iter_mut().zip(sums) {
                expected.push(sum / volume);
            }
        }
        for ((_, grid), expected) in grids.iter().zip(&expected) {
            same(grid.values(), expected);
        }
    }

    #[test]
    fn slices_cut_the_right_cells(recipe in recipes(9)) {
        let mut random = Random(recipe.seed ^ 3);
        let scene = Scene::new(&recipe, &mut random);
        let shape = &scene.sample.shape;
        let axis = random.below(recipe.ndim as u64) as usize;
        let units = shape.extent()[axis];
        // Faces of cells, the end of the box, and positions between.
        let at = random.below(2 * units + 1) as f64 / 2.0;
        let unit = (at as u64).min(units - 1);
        let at = at / units as f64 * shape.size()[axis];
        let slice = scene.tree.slice("density", axis, at, &scene.window, &ComputedColumns::NONE).unwrap();
        let mut expected = Vec::new();
        for pixel in scene.pixels(Some(axis)) {
            let (mut area, mut sum) = (0.0, 0.0);
            for (row, leaf) in scene.sample.leaves.iter().enumerate() {
                if !(leaf.corner[axis]..leaf.corner[axis] + leaf.side).contains(&unit) {
                    continue;
                }
                let across = (0..3).filter(|d| *d != axis);
                let part = across.map(|d| scene.overlap(leaf, d, pixel[d]) as f64).product::<f64>();
                area += part;
                sum += part * scene.sample.density[row];
            }
            expected.push(sum / area);
        }
        same(slice.values(), &expected);
    }

    #[test]
    fn projections_sum_along_the_line(recipe in recipes(9)) {
        let mut random = Random(recipe.seed ^ 4);
        let scene = Scene::new(&recipe, &mut random);
        let axis = random.below(recipe.ndim as u64) as usize;
        let side = scene.sample.shape.cell_size(scene.window.level);
        let whole = (scene.cell as f64).powi(recipe.ndim as i32);
        let (mut integral, mut mean, mut by_mass) = (Vec::new(), Vec::new(), Vec::new());
        for pixel in scene.pixels(Some(axis)) {
            let (mut volume, mut sum, mut mass, mut weighted) = (0.0, 0.0, 0.0, 0.0);
            for depth in scene.window.lo[axis]..scene.window.hi[axis] {
                let mut pixel = pixel;
                pixel[axis] = depth;
                for (row, leaf) in scene.sample.leaves.iter().enumerate() {
                    let part = (0..3).map(|d| scene.overlap(leaf, d, pixel[d]) as f64).product::<f64>();
                    let weight = part * f64::from(scene.sample.mass[row]);
                    volume += part;
                    sum += part * scene.sample.density[row];
                    mass += weight;
                    weighted += weight * scene.sample.density[row];
                }
            }
            integral.push(if volume == 0.0 { f64::NAN } else { sum / whole * side });
            mean.push(sum / volume);
            by_mass.push(weighted / mass);
        }
        let image = |weight| scene.tree.project("density", axis, weight, &scene.window, &ComputedColumns::NONE).unwrap();
        same(image(Weight::Sum).values(), &integral);
        same(image(Weight::Volume).values(), &mean);
        same(image(Weight::Field("mass")).values(), &by_mass);
    }

    #[test]
    fn totals_are_conserved(recipe in recipes(12)) {
        let recipe = Recipe { gaps: 0, ..recipe };
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let shape = tree.shape();
        let volume = |level: u8| shape.cell_size(level).powi(shape.ndim as i32);
        let total: f64 = sample.leaves.iter().zip(&sample.density).map(|(l, v)| v * volume(l.level)).sum();
        for level in 0..3 {
            let window = tree.window(level, None).unwrap();
            let grid = tree.grid(&["density"], &window, &ComputedColumns::NONE).unwrap();
            let sum: f64 = grid[0].1.values::<f64>().iter().sum();
            prop_assert!((sum * volume(level) - total).abs() <= 1e-12 * total);
            for axis in 0..shape.ndim {
                let image = tree.project("density", axis, Weight::Sum, &window, &ComputedColumns::NONE).unwrap();
                let sum: f64 = image.values::<f64>().iter().sum();
                let area = volume(level) / shape.cell_size(level);
                prop_assert!((sum * area - total).abs() <= 1e-12 * total);
            }
        }
    }
}

fn sample() -> Sample {
    Sample::new(&Recipe {
        seed: 7,
        ndim: 3,
        root: [1; 3],
        levels: 3,
        deepest: 6,
        gaps: 0,
        chunk_rows: 16,
    })
}

#[test]
fn results_do_not_depend_on_threads() {
    let sample = sample();
    let tree = sample.tree(16);
    let window = tree.window(2, None).unwrap();
    let images = |threads| {
        crate::parallel::with_threads(Some(threads), || {
            let grid = tree.grid(&["density"], &window, &ComputedColumns::NONE)?;
            let image = tree.project(
                "density",
                2,
                Weight::Field("mass"),
                &window,
                &ComputedColumns::NONE,
            )?;
            Ok((grid[0].1.bytes().to_vec(), image.bytes().to_vec()))
        })
        .unwrap()
    };
    assert_eq!(images(1), images(4));
}

#[test]
fn windows_are_rounded_outwards_except_rounding_errors() {
    let tree = sample().tree(16);
    // The box is 0.75 long: cells of level 2 are 0.1875.
    let window =
        |lo: f64, hi: f64| tree.window(2, Some(&Region::cuboid(&[lo; 3], &[hi; 3]).unwrap()));
    let found = window(0.2, 0.3).unwrap();
    assert_eq!((found.lo, found.hi), ([1; 3], [2; 3]));
    let found = window(0.1875 - 1e-12, 0.375 + 1e-12).unwrap();
    assert_eq!((found.lo, found.hi), ([1; 3], [2; 3]));
    let found = window(-5.0, 5.0).unwrap();
    assert_eq!((found.lo, found.hi), ([0; 3], [4; 3]));
    assert!(window(0.8, 0.9).is_err());
    assert!(tree.window(60, None).is_err());
    assert!(
        tree.window(2, Some(&Region::sphere(&[0.5; 2], 0.1).unwrap()))
            .is_err()
    );
}

#[test]
fn invalid_images_are_errors() {
    let tree = sample().tree(16);
    let window = tree.window(2, None).unwrap();
    assert!(
        tree.slice("density", 3, 0.1, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        tree.slice("density", 0, -0.1, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        tree.slice("density", 0, f64::NAN, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        tree.project("rho", 0, Weight::Sum, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        tree.project(
            "density",
            0,
            Weight::Field("rho"),
            &window,
            &ComputedColumns::NONE
        )
        .is_err()
    );
    let empty = Window {
        hi: [0; 3],
        ..window
    };
    assert!(
        tree.grid(&["density"], &empty, &ComputedColumns::NONE)
            .is_err()
    );
    let beyond = Window {
        hi: [5; 3],
        ..window
    };
    assert!(
        tree.grid(&["density"], &beyond, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        tree.grid(
            &["density"],
            &tree.window(30, None).unwrap(),
            &ComputedColumns::NONE
        )
        .is_err()
    );
}

#[test]
fn a_slice_reads_only_chunks_that_it_cuts() {
    let mut tree = sample().tree(16);
    let rows = tree.rows();
    let counting = Counting::wrap(&mut tree);
    let window = tree.window(2, None).unwrap();
    tree.slice("density", 2, 0.1, &window, &ComputedColumns::NONE)
        .unwrap();
    let read = counting.fields.load(Ordering::Relaxed);
    assert!(read > 0 && read < rows * 3 / 4, "{read} of {rows}");
    let all = tree.cells(&["density"], &Selection::default()).unwrap();
    assert_eq!(all[0].1.rows() as u64, rows);
}
