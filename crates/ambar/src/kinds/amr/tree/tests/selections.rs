//! Selections, compared with a loop over all leaves; and the chunks that they read.

use super::*;
use crate::condition::Condition;
use crate::error::ErrorKind;
use crate::kinds::region::Region;
use crate::kinds::select::Selection;

const COLUMNS: [&str; 5] = ["mass", "x", "density", "level", "dx"];

fn expected(sample: &Sample, keep: impl Fn(usize, &Leaf) -> bool) -> Vec<usize> {
    (0..sample.leaves.len())
        .filter(|row| keep(*row, &sample.leaves[*row]))
        .collect()
}

fn check(sample: &Sample, columns: &[(String, Column)], rows: &[usize]) {
    for (name, column) in columns {
        assert_eq!(column.rows(), rows.len(), "{name}");
        for (to, from) in rows.iter().enumerate() {
            let leaf = &sample.leaves[*from];
            match &name[..] {
                "mass" => assert_eq!(column.values::<i32>()[to], sample.mass[*from]),
                "density" => assert_eq!(column.values::<f64>()[to], sample.density[*from]),
                "level" => assert_eq!(column.values::<i32>()[to], i32::from(leaf.level)),
                "dx" => assert_eq!(
                    column.values::<f64>()[to],
                    sample.shape.cell_size(leaf.level)
                ),
                _ => assert_eq!(column.values::<f64>()[to], leaf.centre(&sample.shape)[0]),
            }
        }
    }
}

fn region(random: &mut Random, ndim: usize) -> Region {
    let mut unit = || random.below(1000) as f64 / 1000.0;
    let (a, b): (Vec<f64>, Vec<f64>) = (0..ndim).map(|_| (unit(), unit())).unzip();
    let lo: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a.min(*b)).collect();
    let hi: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect();
    let (inner, outer) = (unit() / 2.0, unit());
    match random.below(3) {
        0 => Region::cuboid(&lo, &hi).unwrap(),
        1 => Region::sphere(&a, outer).unwrap(),
        _ => Region::shell(&a, inner.min(outer), outer.max(inner)).unwrap(),
    }
}

const EVERY: [&str; 8] = ["mass", "density", "level", "x", "dx", "ix", "iy", "iz"];

proptest! {
    #[test]
    fn loaded_cells_are_a_tree(recipe in recipes(30), which in 0u8..4) {
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let names = &EVERY[..5 + recipe.ndim];
        let mut random = Random(recipe.seed ^ 5);
        let selection = Selection {
            region: (which & 1 == 1).then(|| region(&mut random, recipe.ndim)),
            levels: (which & 2 == 2).then(|| (1, random.below(4) as u8 + 1)),
            ..Selection::default()
        };
        let loaded = tree.load(&names[..2], &selection).unwrap();
        let expected = tree.cells(names, &selection).unwrap();
        let found = loaded.cells(names, &Selection::default()).unwrap();
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            prop_assert_eq!(found.bytes(), expected.bytes(), "{}", name);
        }
    }

    #[test]
    fn chunks_together_are_all_cells(recipe in recipes(30)) {
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let all = tree.cells(&["x"], &Selection::default()).unwrap();
        let mut found = Vec::new();
        for (chunk, length) in (0..).zip(tree.chunk_lengths()) {
            let chunks = Some(chunk..chunk + 1);
            let selection = Selection { chunks, ..Selection::default() };
            let part = tree.cells(&["x"], &selection).unwrap();
            prop_assert_eq!(part[0].1.rows() as u64, length);
            found.extend_from_slice(part[0].1.bytes());
        }
        prop_assert_eq!(&found[..], all[0].1.bytes());
    }

    #[test]
    fn selections_pick_the_right_cells(recipe in recipes(30), which in 0u8..16) {
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let mut random = Random(recipe.seed ^ 1);
        let mut selection = Selection::default();
        if which & 1 == 1 {
            selection.region = Some(region(&mut random, recipe.ndim));
        }
        if which & 2 == 2 {
            let lo = random.below(5) as u8;
            selection.levels = Some((lo, lo + random.below(4) as u8));
        }
        // With and without derived columns in the condition.
        let least = random.below(100) as f64;
        let derived = random.below(2) == 0;
        if which & 4 == 4 {
            let mut text = format!("density >= {least} and not mass == 3");
            if derived {
                text = format!("{text} and level != 2 or x < 0.1 or 0.02 < dx < 0.05");
            }
            selection.condition = Some(Condition::parse(&text).unwrap());
        }
        let columns = if which & 8 == 8 { &COLUMNS[..] } else { &COLUMNS[..1] };
        let rows = expected(&sample, |row, leaf| {
            let centre = leaf.centre(&sample.shape);
            let in_region = selection.region.as_ref().is_none_or(|region| region.contains(&centre));
            let in_levels = selection.levels.is_none_or(|(lo, hi)| lo <= leaf.level && leaf.level <= hi);
            let stored = sample.density[row] >= least && sample.mass[row] != 3;
            let dx = sample.shape.cell_size(leaf.level);
            let more = leaf.level != 2 && stored || centre[0] < 0.1 || 0.02 < dx && dx < 0.05;
            let condition = if derived { more } else { stored };
            in_region && in_levels && (selection.condition.is_none() || condition)
        });
        check(&sample, &tree.cells(columns, &selection).unwrap(), &rows);
    }
}

fn uniform(level: u8, chunk_rows: u64) -> AmrTree {
    let rows = 1usize << (3 * level);
    let mut columns = Column::allocate(&[DataType::UInt8, DataType::Float64], rows).unwrap();
    columns[0].bytes_mut().fill(level);
    for (row, value) in columns[1].values_mut::<f64>().iter_mut().enumerate() {
        *value = row as f64;
    }
    let density = columns.pop().unwrap();
    let leaves = Leaves {
        ndim: 3,
        root: [1; 3],
        boxlen: 1.0,
        lattice_level: level,
        levels: columns.pop().unwrap(),
        jumps: vec![],
    };
    AmrTree::with_chunks(leaves, vec![("density".into(), density)], chunk_rows).unwrap()
}

#[test]
fn a_small_box_reads_few_chunks() {
    let mut tree = uniform(7, crate::kinds::amr::tree::write::chunk_rows(1 << 21));
    let counting = Counting::wrap(&mut tree);
    let side = 0.01f64.cbrt();
    for corner in [0.0, 0.13, 0.4, 0.5 - side / 2.0, 0.7] {
        counting.fields.store(0, Ordering::Relaxed);
        counting.levels.store(0, Ordering::Relaxed);
        let region = Region::cuboid(&[corner; 3], &[corner + side; 3]).unwrap();
        let selection = Selection {
            region: Some(region),
            ..Selection::default()
        };
        let cells = tree.cells(&["density", "x"], &selection).unwrap();
        let rows = cells[0].1.rows() as f64;
        assert!((0.008..0.012).contains(&(rows / tree.rows() as f64)));
        let share = counting.fields.load(Ordering::Relaxed) as f64 / tree.rows() as f64;
        assert!(
            share < 0.05,
            "a box of 1 % at {corner} reads {share} of the field"
        );
        let levels = counting.levels.load(Ordering::Relaxed) as f64 / tree.rows() as f64;
        assert!(levels < 0.05, "and {levels} of the levels");
    }
}

#[test]
fn chunks_outside_of_ranges_and_levels_are_not_read() {
    let mut tree = uniform(5, 1024);
    let counting = Counting::wrap(&mut tree);
    let read = |text: &str, levels| {
        counting.fields.store(0, Ordering::Relaxed);
        let condition = (!text.is_empty()).then(|| Condition::parse(text).unwrap());
        let selection = Selection {
            condition,
            levels,
            ..Selection::default()
        };
        let cells = tree.cells(&["density"], &selection).unwrap();
        (cells[0].1.rows(), counting.fields.load(Ordering::Relaxed))
    };
    assert_eq!(
        read("5000 <= density < 5010", None),
        (10, 1024),
        "each value decoded once"
    );
    assert_eq!(read("density < 0", None), (0, 0));
    assert_eq!(read("", Some((1, 4))), (0, 0));
    assert_eq!(read("", Some((5, 9))), (32768, 32768));
    assert_eq!(read("density >= 0", None), (32768, 32768));
    assert_eq!(read("x < 0.5 and level == 5", None), (16384, 16384));
}

#[test]
fn invalid_requests_are_errors() {
    let tree = uniform(1, 4);
    let kind =
        |columns: &[&str], selection: Selection| tree.cells(columns, &selection).unwrap_err();
    let none = Selection::default;
    let error = kind(&["rho"], none());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error
            .to_string()
            .contains("density, level, x, y, z, dx, ix, iy, iz"),
        "{error}"
    );
    let condition = |text: &str| Selection {
        condition: Some(Condition::parse(text).unwrap()),
        ..none()
    };
    assert_eq!(
        kind(&["x"], condition("rho > 1")).kind(),
        ErrorKind::NotFound
    );
    let levels = Some((3, 2));
    assert_eq!(
        kind(&["x"], Selection { levels, ..none() }).kind(),
        ErrorKind::Invalid
    );
    let region = Some(Region::sphere(&[0.5, 0.5], 0.1).unwrap());
    assert_eq!(
        kind(&["x"], Selection { region, ..none() }).kind(),
        ErrorKind::Invalid
    );
    assert!(tree.cells(&[], &none()).unwrap().is_empty());
}
