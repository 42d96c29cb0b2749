//! The tree of boxes, averages, and checks of hierarchies.

use super::*;
use crate::error::ErrorKind;
use crate::kinds::amr::patches::hierarchy::box_tree::BoxTree;
use crate::kinds::amr::patches::hierarchy::nest::Nest;

proptest! {
    #[test]
    fn trees_of_boxes_match_a_linear_search(recipe in recipes(), seed: u64) {
        let sample = Sample::new(&recipe);
        let mut random = Random(seed);
        for level in &sample.hierarchy.levels {
            let tree = BoxTree::new(&level.boxes);
            for _ in 0..20 {
                let mut region = level.domain;
                for d in 0..recipe.ndim {
                    region.lo[d] = random.between(level.domain.lo[d] - 3, level.domain.hi[d]);
                    region.hi[d] = random.between(region.lo[d] + 1, level.domain.hi[d] + 4);
                }
                let mut found = Vec::new();
                tree.meet(&region, &mut |place, part| found.push((place, part)));
                found.sort_by_key(|(place, _)| *place);
                let all = level.boxes.iter().map(|b| b.intersection(&region)).enumerate();
                let expected: Vec<_> = all.filter(|(_, part)| !part.is_empty()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn unit_blocks_hold_the_expected_cells(recipe in recipes(), all: bool) {
        let sample = Sample::new(&recipe);
        let nest = Arc::new(Nest::new(sample.hierarchy.clone()).unwrap());
        let cells = if all { CellSet::All } else { CellSet::Leaves };
        for level in 0..recipe.levels {
            let meant = |cell: &[i64; 3]| {
                sample.cells.get(&(level, *cell)).is_some_and(|covered| all || !covered)
            };
            let blocks = Blocks::choose(&nest, level, cells, Some(100)).unwrap();
            let mut held = 0;
            for block in 0..blocks.origins().len() {
                let mask = blocks.mask(block..block + 1, cells);
                let expected: Vec<bool> = cells_of(&blocks.extent(block)).map(|c| meant(&c)).collect();
                prop_assert!(expected.contains(&true));
                held += expected.iter().filter(|meant| **meant).count();
                prop_assert_eq!(mask, expected);
            }
            let there = sample.cells.keys().filter(|(l, cell)| *l == level && meant(cell)).count();
            prop_assert_eq!(held, there);
            prop_assert_eq!(nest.cells(level, cells), there as u64);
            let whole = Blocks::choose(&nest, level, CellSet::All, None).unwrap();
            prop_assert_eq!(blocks.side(), whole.side());
            if whole.side() > 4 {
                let boxes = nest.cells(level, CellSet::All);
                let padding = (whole.origins().len() * whole.block_cells()) as u64 - boxes;
                prop_assert!(padding * 10 <= boxes);
            }
            for (chunk, extent) in blocks.extents(cells).iter().enumerate() {
                let inside = blocks.chunk(chunk).flat_map(|block| cells_of(&blocks.extent(block)));
                let inside: Vec<[i64; 3]> = inside.filter(|cell| meant(cell)).collect();
                for d in 0..3 {
                    prop_assert_eq!(extent.lo[d], inside.iter().map(|c| c[d]).min().unwrap());
                    prop_assert_eq!(extent.hi[d], inside.iter().map(|c| c[d]).max().unwrap() + 1);
                }
            }
        }
    }
}

#[test]
fn averages_are_summed_from_zero_x_fastest() {
    let fine = IndexBox {
        lo: [-2, 0, 0],
        hi: [0, 2, 1],
    };
    // The large values cancel exactly only in this order.
    let values = [1e16, 1.0, -1e16, 1.0f64];
    let mut out = [0; 8];
    let bytes = bytemuck::cast_slice(&values);
    average(&DataType::Float64, (&fine, bytes), [2, 2, 1], &mut out).unwrap();
    let sum = ((1e16 + 1.0) - 1e16) + 1.0;
    assert_eq!(f64::from_ne_bytes(out), sum * 0.25);
    let bytes = bytemuck::cast_slice(&[-0.0f64; 4]);
    average(&DataType::Float64, (&fine, bytes), [2, 2, 1], &mut out).unwrap();
    assert_eq!(out, 0.0f64.to_ne_bytes());
    assert!(
        average(
            &DataType::Int32,
            (&fine, &[0; 16]),
            [2, 2, 1],
            &mut out[..4]
        )
        .is_err()
    );
}

#[test]
fn invalid_hierarchies_are_errors() {
    let recipe = Recipe {
        seed: 5,
        ndim: 2,
        levels: 1,
    };
    let mut base = Sample::new(&recipe).hierarchy;
    let square = |lo: i64, hi: i64| IndexBox {
        lo: [lo, lo, 0],
        hi: [hi, hi, 1],
    };
    base.levels[0].domain = square(0, 16);
    base.levels[0].ratio = [2, 2, 1];
    base.levels[0].boxes = vec![square(0, 8), square(8, 16)];
    let mut fine = base.levels[0].clone();
    fine.domain = square(0, 32);
    fine.boxes = vec![square(4, 8)];
    base.levels.push(fine);
    assert!(Nest::new(base.clone()).is_ok());
    let refused = |what: &str, kind: ErrorKind, change: &dyn Fn(&mut PatchHierarchy)| {
        let mut hierarchy = base.clone();
        change(&mut hierarchy);
        let error = Nest::new(hierarchy).err().unwrap();
        assert_eq!(error.kind(), kind, "{what}: {error}");
    };
    let invalid = ErrorKind::Invalid;
    refused("overlap", invalid, &|h| {
        h.levels[0].boxes.push(square(7, 9))
    });
    refused("twice", invalid, &|h| h.levels[1].boxes.push(square(4, 8)));
    refused("out", invalid, &|h| h.levels[1].boxes.push(square(30, 34)));
    refused("nest", invalid, &|h| {
        h.levels[0].boxes.pop();
        h.levels[1].boxes.push(square(14, 18));
    });
    refused("cut", invalid, &|h| h.levels[1].boxes.push(square(9, 12)));
    refused("domain", invalid, &|h| h.levels[1].domain = square(0, 30));
    refused("ratio", invalid, &|h| h.levels[0].ratio = [2, 4, 1]);
    refused("flat", invalid, &|h| h.levels[0].ratio = [2, 2, 2]);
    refused("NaN", invalid, &|h| h.lower[0] = f64::NAN);
    refused("far", invalid, &|h| h.levels[0].domain.hi[0] = i64::MAX);
    refused("levels", ErrorKind::Limit, &|h| {
        h.levels[1].ratio = [1; 3];
        let finest = h.levels[1].clone();
        h.levels.extend(std::iter::repeat_n(finest, 80));
    });
    refused("cells", ErrorKind::Limit, &|h| {
        h.levels.truncate(1);
        h.levels[0].domain = square(0, MAX_INDEX);
        h.levels[0].boxes = vec![square(0, MAX_INDEX)];
    });
}

#[test]
fn chunks_grow_with_the_level() {
    let uniform = |cells: i64| {
        let domain = IndexBox {
            lo: [0; 3],
            hi: [cells, 1, 1],
        };
        let level = PatchLevel {
            domain,
            boxes: vec![domain],
            cell_size: [1.0, 0.0, 0.0],
            ratio: [1; 3],
        };
        let hierarchy = PatchHierarchy {
            ndim: 1,
            lower: [0.0; 3],
            upper: [cells as f64, 0.0, 0.0],
            levels: vec![level],
        };
        let nest = Arc::new(Nest::new(hierarchy).unwrap());
        let blocks = Blocks::choose(&nest, 0, CellSet::All, None).unwrap();
        (blocks.side(), blocks.per_chunk() * blocks.block_cells())
    };
    assert_eq!(uniform(3), (4, 4));
    assert_eq!(uniform(1000), (16, 1008));
    assert_eq!(uniform(500 << 10), (16, 256 << 10));
    assert_eq!(uniform(1 << 20), (16, 64 << 10));
    assert_eq!(uniform(16 << 20), (16, 64 << 10));
    assert_eq!(uniform(100 << 20), (16, 256 << 10));
}
