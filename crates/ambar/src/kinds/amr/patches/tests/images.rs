//! Grids, slices and projections, compared with loops over all leaves and pixels.

use super::*;
use crate::kinds::amr::{Weight, Window};
use crate::kinds::computed::ComputedColumns;
use crate::kinds::region::Region;

struct Scene {
    sample: Arc<Sample>,
    leaves: Vec<Cell>,
    window: Window,
}

impl Scene {
    fn new(recipe: &Recipe, random: &mut Random) -> Self {
        let sample = Arc::new(Sample::new(recipe));
        let level = random.below(recipe.levels as u64) as u8;
        let shape = sample.hierarchy.levels[usize::from(level)].domain.shape();
        let mut window = Window {
            level,
            lo: [0; 3],
            hi: [1; 3],
        };
        for (d, n) in shape.iter().enumerate().take(recipe.ndim) {
            // Not too many pixels.
            let n = *n as u64;
            window.lo[d] = random.below(n);
            window.hi[d] = window.lo[d] + 1 + random.below((n - window.lo[d]).min(12));
        }
        let leaves = sample.cells.iter().filter(|(_, covered)| !**covered);
        Self {
            leaves: leaves.map(|(cell, _)| *cell).collect(),
            sample,
            window,
        }
    }

    /// Lower and upper corner of a cell in fractions of the domain, times the finest level's cells.
    fn corners(&self, level: usize, cell: [i64; 3]) -> [[i64; 3]; 2] {
        let levels = &self.sample.hierarchy.levels;
        let ratio = levels[level..].iter().fold([1; 3], |all: [i64; 3], level| {
            std::array::from_fn(|d| all[d] * level.ratio[d])
        });
        let first = levels[level].domain.lo;
        let corner = |add: i64| std::array::from_fn(|d| (cell[d] - first[d] + add) * ratio[d]);
        [corner(0), corner(1)]
    }

    fn pixels(&self) -> Vec<[u64; 3]> {
        let Window { lo, hi, .. } = self.window;
        let mut pixels = Vec::new();
        for x in lo[0]..hi[0] {
            for y in lo[1]..hi[1] {
                for z in lo[2]..hi[2] {
                    pixels.push([x, y, z]);
                }
            }
        }
        pixels
    }

    fn pixel(&self, pixel: [u64; 3]) -> [[i64; 3]; 2] {
        let level = usize::from(self.window.level);
        let first = self.sample.hierarchy.levels[level].domain.lo;
        self.corners(level, std::array::from_fn(|d| first[d] + pixel[d] as i64))
    }

    /// The leaves that intersect a region of finest cells, and the overlap in each dimension.
    fn meeting(&self, [lo, hi]: [[i64; 3]; 2]) -> Vec<(Cell, [f64; 3])> {
        let meets = self.leaves.iter().filter_map(|cell| {
            let [from, to] = self.corners(cell.0, cell.1);
            let part: [i64; 3] = std::array::from_fn(|d| to[d].min(hi[d]) - from[d].max(lo[d]));
            part.iter()
                .all(|n| *n > 0)
                .then(|| (*cell, part.map(|n| n as f64)))
        });
        meets.collect()
    }

    fn value(&self, field: &str, cell: Cell) -> f64 {
        if field == "x" {
            self.sample.centre(cell)[0]
        } else {
            self.sample.value(field, cell)
        }
    }
}

fn close(found: f64, expected: f64) -> bool {
    found.is_nan() && expected.is_nan()
        || (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
}

fn check(scene: &Scene, amr: &PatchAmr, random: &mut Random) {
    let window = &scene.window;
    let grids = amr
        .grid(&["density", "count", "x"], window, &ComputedColumns::NONE)
        .unwrap();
    for (name, grid) in &grids {
        let pixels = scene.pixels();
        assert_eq!(pixels.len(), grid.rows());
        for (pixel, found) in pixels.iter().zip(grid.values::<f64>()) {
            let (mut sum, mut volume) = (0.0, 0.0);
            for (cell, part) in scene.meeting(scene.pixel(*pixel)) {
                let part: f64 = part.iter().product();
                sum += part * scene.value(name, cell);
                volume += part;
            }
            assert!(
                close(*found, sum / volume),
                "{name} {pixel:?}: {found} {}",
                sum / volume
            );
        }
    }
    let axis = random.below(scene.sample.hierarchy.ndim as u64) as usize;
    check_slice(scene, amr, axis, random);
    check_projection(scene, amr, axis);
}

fn check_slice(scene: &Scene, amr: &PatchAmr, axis: usize, random: &mut Random) {
    let h = &scene.sample.hierarchy;
    let last = h.levels.last().unwrap();
    let finest = last.domain.shape()[axis] as i64;
    let unit = random.below(finest as u64) as i64;
    let on_face = random.below(2) as f64 / 2.0;
    let at = h.lower[axis] + (unit as f64 + on_face) * last.cell_size[axis];
    let image = amr
        .slice(
            "density",
            axis,
            at.min(h.upper[axis]),
            &scene.window,
            &ComputedColumns::NONE,
        )
        .unwrap();
    let mut flat = Scene {
        sample: Arc::clone(&scene.sample),
        leaves: scene.leaves.clone(),
        window: scene.window,
    };
    (flat.window.lo[axis], flat.window.hi[axis]) = (0, 1);
    for (pixel, found) in flat.pixels().iter().zip(image.values::<f64>()) {
        let mut region = flat.pixel(*pixel);
        (region[0][axis], region[1][axis]) = (unit, unit + 1);
        let (mut sum, mut area) = (0.0, 0.0);
        for (cell, part) in scene.meeting(region) {
            let part: f64 = part.iter().product();
            sum += part * scene.value("density", cell);
            area += part;
        }
        assert!(
            close(*found, sum / area),
            "{axis} at {at} {pixel:?}: {found} {}",
            sum / area
        );
    }
}

fn check_projection(scene: &Scene, amr: &PatchAmr, axis: usize) {
    let h = &scene.sample.hierarchy;
    let finest = h.levels.last().unwrap().cell_size[axis];
    let image = |weight| {
        amr.project(
            "density",
            axis,
            weight,
            &scene.window,
            &ComputedColumns::NONE,
        )
        .unwrap()
    };
    let sums = image(Weight::Sum);
    let means = image(Weight::Volume);
    let weighted = image(Weight::Field("single"));
    let mut flat = scene.window;
    flat.hi[axis] = flat.lo[axis] + 1;
    let flat = Scene {
        sample: Arc::clone(&scene.sample),
        leaves: Vec::new(),
        window: flat,
    };
    for (place, pixel) in flat.pixels().iter().enumerate() {
        let mut region = flat.pixel(*pixel);
        let mut end = *pixel;
        end[axis] = scene.window.hi[axis] - 1;
        region[1][axis] = scene.pixel(end)[1][axis];
        let (mut sum, mut volume, mut product, mut mass) = (0.0, 0.0, 0.0, 0.0);
        let area: i64 = (0..3)
            .filter(|d| *d != axis)
            .map(|d| region[1][d] - region[0][d])
            .product();
        for (cell, part) in scene.meeting(region) {
            let part: f64 = part.iter().product();
            let (value, weight) = (scene.value("density", cell), scene.value("single", cell));
            sum += part * value;
            volume += part;
            product += part * value * weight;
            mass += part * weight;
        }
        let at = |image: &crate::memory::Column| image.values::<f64>()[place];
        let integral = if volume == 0.0 {
            f64::NAN
        } else {
            sum / area as f64 * finest
        };
        assert!(
            close(at(&sums), integral),
            "{axis} {pixel:?}: {} {integral}",
            at(&sums)
        );
        assert!(close(at(&means), sum / volume));
        assert!(close(at(&weighted), product / mass));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn images_match_the_reference(recipe in recipes(), seed: u64, chunk in 1usize..3000) {
        let mut random = Random(seed);
        let scene = Scene::new(&recipe, &mut random);
        check(&scene, &scene.sample.in_memory(), &mut random);
        let (stored, _folder) = scene.sample.stored(Covered::Auto, chunk);
        check(&scene, &stored, &mut random);
    }
}

fn sample() -> Arc<Sample> {
    Arc::new(Sample::new(&Recipe {
        seed: 12,
        ndim: 3,
        levels: 3,
    }))
}

#[test]
fn results_do_not_depend_on_threads() {
    let (amr, _folder) = sample().stored(Covered::Auto, 64);
    let window = amr.window(1, None).unwrap();
    let images = |threads| {
        crate::parallel::with_threads(Some(threads), || {
            let grid = amr.grid(&["smooth"], &window, &ComputedColumns::NONE)?;
            let image = amr.project(
                "smooth",
                2,
                Weight::Field("density"),
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
    let amr = sample().in_memory();
    let h = amr.hierarchy().clone();
    let side = h.levels[1].cell_size;
    let window = |from: f64, to: f64| {
        let at =
            |cells: f64| -> Vec<f64> { (0..3).map(|d| h.lower[d] + cells * side[d]).collect() };
        amr.window(1, Some(&Region::cuboid(&at(from), &at(to)).unwrap()))
    };
    let found = window(0.2, 0.9).unwrap();
    assert_eq!((found.lo, found.hi), ([0; 3], [1; 3]));
    let found = window(1.0 - 1e-11, 2.0 + 1e-11).unwrap();
    assert_eq!((found.lo, found.hi), ([1; 3], [2; 3]));
    let shape = h.levels[1].domain.shape().map(|n| n as u64);
    let found = window(-9.0, 1e6).unwrap();
    assert_eq!((found.lo, found.hi), ([0; 3], shape));
    assert!(window(1e5, 1e6).is_err());
    assert!(amr.window(3, None).is_err());
    assert!(
        amr.window(1, Some(&Region::sphere(&[0.5; 2], 0.1).unwrap()))
            .is_err()
    );
}

#[test]
fn invalid_images_are_errors() {
    let amr = sample().in_memory();
    let window = amr.window(1, None).unwrap();
    let (lower, upper) = (amr.hierarchy().lower, amr.hierarchy().upper);
    assert!(
        amr.slice("density", 3, lower[0], &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        amr.slice(
            "density",
            0,
            lower[0] - 0.1,
            &window,
            &ComputedColumns::NONE
        )
        .is_err()
    );
    assert!(
        amr.slice(
            "density",
            0,
            upper[0] + 0.1,
            &window,
            &ComputedColumns::NONE
        )
        .is_err()
    );
    assert!(
        amr.slice("density", 0, f64::NAN, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        amr.slice("density", 0, upper[0], &window, &ComputedColumns::NONE)
            .is_ok()
    );
    assert!(
        amr.project("rho", 0, Weight::Sum, &window, &ComputedColumns::NONE)
            .is_err()
    );
    assert!(
        amr.project(
            "density",
            0,
            Weight::Field("rho"),
            &window,
            &ComputedColumns::NONE
        )
        .is_err()
    );
    let bad = [
        Window { level: 9, ..window },
        Window {
            hi: [0; 3],
            ..window
        },
        Window {
            hi: window.hi.map(|n| n + 1),
            ..window
        },
    ];
    for window in bad {
        assert!(
            amr.grid(&["density"], &window, &ComputedColumns::NONE)
                .is_err()
        );
        assert!(
            amr.project("density", 0, Weight::Sum, &window, &ComputedColumns::NONE)
                .is_err()
        );
        assert!(
            amr.slice("density", 0, lower[0], &window, &ComputedColumns::NONE)
                .is_err()
        );
    }
}
