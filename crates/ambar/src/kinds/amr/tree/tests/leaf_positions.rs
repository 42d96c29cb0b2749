//! Positions of leaves from their levels, and levels that are not a tree.

use super::*;
use crate::kinds::amr::tree::geometry::TreeGeometry;
use crate::kinds::select::Selection;

proptest! {
    #[test]
    fn positions_follow_from_levels(recipe in recipes(30)) {
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let names: Vec<String> = tree.derived();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let columns = tree.cells(&names, &Selection::default()).unwrap();
        let alone = sample.leaves().derived(&names).unwrap();
        for ((name, column), (_, same)) in columns.iter().zip(&alone) {
            prop_assert_eq!(column.bytes(), same.bytes());
            for (row, leaf) in sample.leaves.iter().enumerate() {
                let centre = leaf.centre(&sample.shape);
                let axis = AXES.iter().position(|axis| name.ends_with(axis)).unwrap_or(0);
                match &name[..] {
                    "level" => prop_assert_eq!(column.values::<i32>()[row], i32::from(leaf.level)),
                    "dx" => prop_assert_eq!(column.values::<f64>()[row], sample.shape.cell_size(leaf.level)),
                    "x" | "y" | "z" => prop_assert_eq!(column.values::<f64>()[row], centre[axis]),
                    _ => {
                        let index = (leaf.corner[axis] / leaf.side) as i64;
                        prop_assert_eq!(column.values::<i64>()[row], index);
                    }
                }
            }
        }
    }

    #[test]
    fn the_index_holds_its_cells(recipe in recipes(30)) {
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let geometry = tree.geometry().unwrap();
        geometry.check(&sample.shape, tree.rows(), tree.chunks()).unwrap();
        for (chunk, leaves) in sample.leaves.chunks(recipe.chunk_rows as usize).enumerate() {
            prop_assert_eq!(geometry.corners[chunk], leaves[0].corner);
            let levels: Vec<u8> = leaves.iter().map(|leaf| leaf.level).collect();
            let extremes = [*levels.iter().min().unwrap(), *levels.iter().max().unwrap()];
            prop_assert_eq!(geometry.levels[chunk], extremes);
            let unit = 2.0 * sample.shape.half_unit();
            for d in 0..recipe.ndim {
                let lo = leaves.iter().map(|leaf| leaf.corner[d]).min().unwrap() as f64 * unit;
                let hi = leaves.iter().map(|leaf| leaf.corner[d] + leaf.side).max().unwrap() as f64 * unit;
                prop_assert_eq!([geometry.boxes[chunk][0][d], geometry.boxes[chunk][1][d]], [lo, hi]);
            }
            for leaf in leaves {
                let touches = geometry.chunk_touches(&sample.shape, chunk, |corner, side| {
                    (0..recipe.ndim).all(|d| corner[d] < leaf.corner[d] + leaf.side && leaf.corner[d] < corner[d] + side)
                });
                prop_assert!(touches);
            }
        }
        prop_assert_eq!(tree.cells_per_level().iter().map(|(_, cells)| cells).sum::<u64>(), tree.rows());
    }

    #[test]
    fn ranges_hold_the_values_of_their_chunks(recipe in recipes(30)) {
        use crate::kinds::select::Rows;
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        for name in Rows::names(&tree) {
            let Some(ranges) = Rows::ranges(&tree, &name).unwrap() else {
                continue;
            };
            let (name, column) = tree.cells(&[&name], &Selection::default()).unwrap().remove(0);
            let mut values = vec![0.0; column.rows()];
            crate::numbers::to_f64(&name, column.dtype(), column.bytes(), &mut values).unwrap();
            let chunks = values.chunks(recipe.chunk_rows as usize);
            prop_assert_eq!(chunks.len(), ranges.len());
            for (values, [lo, hi]) in chunks.zip(ranges) {
                prop_assert!(values.iter().all(|value| lo <= *value && *value <= hi), "{}", name);
            }
        }
    }

    /// Any levels are an error or cells, never a panic or a hang.
    #[test]
    fn hostile_levels_do_no_harm(
        recipe in recipes(30), changes in prop::collection::vec((any::<u64>(), any::<u8>()), 1..4),
        jump in prop::option::of((any::<u64>(), prop::array::uniform3(any::<u64>()))),
    ) {
        let sample = Sample::new(&recipe);
        prop_assume!(!sample.leaves.is_empty());
        let mut leaves = sample.leaves();
        let rows = leaves.levels.rows() as u64;
        for (place, level) in &changes {
            leaves.levels.bytes_mut()[(place % rows) as usize] = *level;
        }
        if let Some((row, corner)) = jump {
            leaves.jumps.push(Jump { row: row % rows, corner });
        }
        let mut tree = sample.tree(recipe.chunk_rows);
        let changed = MemoryColumns::new(vec![(LEVEL.into(), leaves.levels)], recipe.chunk_rows).unwrap();
        tree.source = Arc::new(changed);
        let _ = tree.cells(&["x", "ix", "dx", "level"], &Selection::default());
        let mut levels = Column::allocate(&[DataType::UInt8], rows as usize).unwrap();
        levels[0].bytes_mut().copy_from_slice(tree.cells(&["level"], &Selection::default()).unwrap()[0].1.values::<i32>().iter().map(|l| *l as u8).collect::<Vec<_>>().as_slice());
        let _ = TreeGeometry::of_leaves(&sample.shape, levels[0].bytes(), leaves.jumps, recipe.chunk_rows);
    }
}

fn leaves(levels: &[u8], lattice_level: u8, jumps: Vec<Jump>) -> Leaves {
    let mut columns = Column::allocate(&[DataType::UInt8], levels.len()).unwrap();
    columns[0].bytes_mut().copy_from_slice(levels);
    Leaves {
        ndim: 2,
        root: [1; 3],
        boxlen: 1.0,
        lattice_level,
        levels: columns.pop().unwrap(),
        jumps,
    }
}

#[test]
fn levels_that_are_not_a_tree_are_errors() {
    let tree = |levels: &[u8], finest, jumps| {
        AmrTree::with_chunks(leaves(levels, finest, jumps), vec![], 2)
    };
    assert!(tree(&[1, 1, 1, 1], 1, vec![]).is_ok());
    assert!(tree(&[2, 2, 2, 2, 1, 1, 1], 2, vec![]).is_ok());
    assert!(tree(&[], 2, vec![]).is_ok());
    let at = |row, corner| vec![Jump { row, corner }];
    for (levels, finest, jumps) in [
        (&[1, 1, 1, 1, 1][..], 1, vec![]),
        (&[2, 1, 1, 1], 2, vec![]),
        (&[1, 2], 1, vec![]),
        (&[0, 0], 0, vec![]),
        (&[1, 1], 1, at(1, [2, 0, 0])),
        (&[1, 1], 1, at(2, [1, 0, 0])),
        (&[1, 1], 2, at(1, [1, 1, 0])),
    ] {
        assert!(tree(levels, finest, jumps).is_err(), "{levels:?}");
    }
    let backwards = vec![
        Jump {
            row: 0,
            corner: [1, 1, 0],
        },
        Jump {
            row: 1,
            corner: [0, 1, 0],
        },
    ];
    assert!(tree(&[1, 1], 1, backwards).is_err());
}

#[test]
fn names_of_derived_columns_are_reserved() {
    let sample = Sample::new(&Recipe {
        seed: 1,
        ndim: 2,
        root: [1; 3],
        levels: 2,
        deepest: 2,
        gaps: 0,
        chunk_rows: 8,
    });
    for (name, free) in [("dx", false), ("level", false), ("iy", false), ("z", true)] {
        let mut columns = sample.columns();
        columns[0].0 = name.to_owned();
        let tree = AmrTree::from_leaves(sample.leaves(), columns);
        assert_eq!(tree.is_ok(), free, "{name}");
    }
}
