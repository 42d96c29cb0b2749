//! Selections of an output equal the same selections of the whole output.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod common;

use ambar::kinds::region::Region;
use ambar::{Column, ErrorKind};
use ambar_formats::ramses::{CellsRequest, LeafCells, Output, ParticlesRequest};

const CASES: [(&str, &str); 6] = [
    ("sedov3d_small", "00002"),
    ("sedov2d_small", "00002"),
    ("gravpart_small", "00002"),
    ("tube_1d_walls", "00002"),
    ("coarse_2x3_2d", "00002"),
    ("single_3d", "00002"),
];

/// Level and lower corner (in cells of that level) of each leaf, by a traversal along the curve.
fn places(cells: &LeafCells) -> Vec<(u8, [u64; 3])> {
    let leaves = &cells.leaves;
    let mut jumps = leaves.jumps.iter().peekable();
    let mut key = 0u128;
    let mut places = Vec::new();
    for (row, &level) in leaves.levels.values::<u8>().iter().enumerate() {
        if let Some(jump) = jumps.next_if(|jump| jump.row == row as u64) {
            key = (0..40 * leaves.ndim).fold(0, |key, bit| {
                let (bit, d) = (bit / leaves.ndim, bit % leaves.ndim);
                key | u128::from(jump.corner[d] >> bit & 1) << (bit * leaves.ndim + d)
            });
        }
        let finer = leaves.lattice_level - level;
        let mut corner = [0u64; 3];
        for bit in 0..40 * leaves.ndim {
            let (bit, d) = (bit / leaves.ndim, bit % leaves.ndim);
            corner[d] |= ((key >> (bit * leaves.ndim + d)) as u64 & 1) << bit;
        }
        places.push((level, corner.map(|x| x >> finer)));
        key += 1 << (leaves.ndim * usize::from(finer));
    }
    assert_eq!(jumps.next(), None);
    places
}

fn centre(cells: &LeafCells, (level, corner): (u8, [u64; 3])) -> [f64; 3] {
    let leaves = &cells.leaves;
    let half = leaves.boxlen / leaves.root[0] as f64 * 0.5f64.powi(i32::from(level) + 1);
    corner.map(|x| (2 * x + 1) as f64 * half)
}

/// Whether `part` holds the given rows of `whole`.
fn holds(part: &[(String, Column)], whole: &[(String, Column)], rows: &[usize]) -> bool {
    part.len() == whole.len()
        && part.iter().zip(whole).all(|((_, part), (_, whole))| {
            let size = whole.dtype().size().unwrap();
            let values = rows
                .iter()
                .flat_map(|row| &whole.bytes()[row * size..(row + 1) * size]);
            part.bytes().iter().eq(values)
        })
}

fn regions(ndim: usize, sides: [f64; 3]) -> Vec<Region> {
    let cut = |part: [f64; 3]| -> Vec<f64> { (0..ndim).map(|d| part[d] * sides[d]).collect() };
    vec![
        Region::cuboid(&cut([0.25; 3]), &cut([0.5, 0.75, 0.375])).unwrap(),
        Region::cuboid(&cut([0.3, 0.1, 0.55]), &cut([0.34, 0.9, 0.7])).unwrap(),
        Region::cuboid(&cut([-5.0; 3]), &cut([7.0; 3])).unwrap(),
        Region::cuboid(&cut([1.5; 3]), &cut([1.6; 3])).unwrap(),
        Region::sphere(&cut([0.9, 0.5, 0.2]), 0.21 * sides[0]).unwrap(),
        Region::shell(&cut([0.5; 3]), 0.1 * sides[0], 0.3 * sides[0]).unwrap(),
        Region::sphere(&cut([0.0; 3]), 0.3 * sides[0])
            .and_then(|region| region.in_periodic_box(&cut([0.0; 3]), &cut([1.0; 3])))
            .unwrap(),
        Region::cuboid(&cut([0.9, -0.1, 0.4]), &cut([1.2, 0.3, 0.6]))
            .and_then(|region| region.in_periodic_box(&cut([0.0; 3]), &cut([1.0; 3])))
            .unwrap(),
    ]
}

#[test]
fn a_region_holds_the_cells_with_centres_in_it() {
    for (case, number) in CASES {
        let output = Output::open(&common::own_output(case, number)).unwrap();
        let whole = output.read_cells(&CellsRequest::default()).unwrap();
        let places_of_all = places(&whole);
        let side = whole.leaves.boxlen / whole.leaves.root[0] as f64;
        let sides = whole.leaves.root.map(|root| root as f64 * side);
        for region in regions(whole.leaves.ndim, sides) {
            let rows: Vec<_> = (0..places_of_all.len())
                .filter(|row| region.contains(&centre(&whole, places_of_all[*row])))
                .collect();
            let request = CellsRequest {
                region: Some(region.clone()),
                ..CellsRequest::default()
            };
            let part = output.read_cells(&request).unwrap();
            let expected: Vec<_> = rows.iter().map(|row| places_of_all[*row]).collect();
            assert_eq!(places(&part), expected, "{case} {region:?}");
            assert!(
                holds(&part.columns, &whole.columns, &rows),
                "{case} {region:?}"
            );
        }
    }
}

#[test]
fn a_region_holds_the_particles_in_it() {
    let output = Output::open(&common::own_output("gravpart_small", "00002")).unwrap();
    let whole = output.read_particles(&ParticlesRequest::default()).unwrap();
    for region in regions(3, [1.0; 3]) {
        let x = |d: usize, row: usize| whole[d].1.values::<f64>()[row];
        let rows: Vec<_> = (0..whole[0].1.rows())
            .filter(|&row| region.contains(&[x(0, row), x(1, row), x(2, row)]))
            .collect();
        let request = ParticlesRequest {
            region: Some(region.clone()),
            ..ParticlesRequest::default()
        };
        let part = output.read_particles(&request).unwrap();
        assert!(holds(&part, &whole, &rows), "{region:?}");
    }
}

#[test]
fn the_tree_ends_at_max_level() {
    for (case, number) in CASES {
        let output = Output::open(&common::own_output(case, number)).unwrap();
        let whole = places(&output.read_cells(&CellsRequest::default()).unwrap());
        let finest = whole.iter().map(|place| place.0).max().unwrap();
        let coarsest = whole.iter().map(|place| place.0).min().unwrap();
        for (first, last) in [
            (0, coarsest),
            (0, finest - 1),
            (finest - 1, finest),
            (finest, 200),
        ] {
            let mut expected: Vec<_> = whole
                .iter()
                .filter(|place| place.0 >= first)
                .map(|&(level, corner)| match level.checked_sub(last) {
                    Some(finer) => (last, corner.map(|x| x >> finer)),
                    None => (level, corner),
                })
                .collect();
            expected.dedup();
            let request = CellsRequest {
                levels: Some((first, 255)),
                max_level: Some(last),
                ..CellsRequest::default()
            };
            let part = output.read_cells(&request).unwrap();
            assert_eq!(places(&part), expected, "{case} {first} {last}");
        }
    }
}

/// Levels select leaves: refined cells are not among them.
#[test]
fn levels_select_leaves() {
    for (case, number) in CASES {
        let output = Output::open(&common::own_output(case, number)).unwrap();
        let whole = output.read_cells(&CellsRequest::default()).unwrap();
        let all = places(&whole);
        let finest = all.iter().map(|place| place.0).max().unwrap();
        let coarsest = all.iter().map(|place| place.0).min().unwrap();
        for (first, last) in [(0, coarsest), (0, finest - 1), (coarsest, 200), (200, 201)] {
            let is_wanted = |row: &usize| (first..=last).contains(&all[*row].0);
            let rows: Vec<_> = (0..all.len()).filter(is_wanted).collect();
            let request = CellsRequest {
                levels: Some((first, last)),
                ..CellsRequest::default()
            };
            let part = output.read_cells(&request).unwrap();
            let expected: Vec<_> = rows.iter().map(|row| all[*row]).collect();
            assert_eq!(places(&part), expected, "{case} {first} {last}");
            assert!(holds(&part.columns, &whole.columns, &rows), "{case}");
        }
    }
}

/// RAMSES stores in a refined cell the mean of its children.
#[test]
fn restricted_values_conserve_the_mass() {
    let output = Output::open(&common::own_output("gravpart_small", "00002")).unwrap();
    let mass = |max_level| {
        let request = CellsRequest {
            fields: Some(vec!["density".into()]),
            max_level,
            ..CellsRequest::default()
        };
        let cells = output.read_cells(&request).unwrap();
        let density = cells.columns[0].1.values::<f64>();
        let levels = cells.leaves.levels.values::<u8>();
        let cell = |(density, level): (&f64, &u8)| density * 0.125f64.powi(i32::from(*level));
        density.iter().zip(levels).map(cell).sum::<f64>()
    };
    let whole = mass(None);
    for last in 4..=6 {
        assert!((mass(Some(last)) / whole - 1.0).abs() < 1e-12, "{last}");
    }
}

#[test]
fn fields_are_read_alone_and_in_the_requested_order() {
    let output = Output::open(&common::own_output("gravpart_small", "00002")).unwrap();
    let whole = output.read_cells(&CellsRequest::default()).unwrap();
    let names = ["potential", "pressure", "density", "acceleration_z"];
    let request = CellsRequest {
        fields: Some(names.map(String::from).to_vec()),
        ..CellsRequest::default()
    };
    let part = output.read_cells(&request).unwrap();
    for ((name, column), expected) in part.columns.iter().zip(names) {
        let (_, of_all) = whole
            .columns
            .iter()
            .find(|(name, _)| name == expected)
            .unwrap();
        assert_eq!(name, expected);
        assert_eq!(column.bytes(), of_all.bytes(), "{name}");
    }
    assert_eq!(part.columns.len(), names.len());
    let particles = output.read_particles(&ParticlesRequest::default()).unwrap();
    let request = ParticlesRequest {
        fields: Some(vec!["tag".into(), "mass".into()]),
        ..ParticlesRequest::default()
    };
    let two = output.read_particles(&request).unwrap();
    assert_eq!(two[1].1.bytes(), particles[6].1.bytes());
    assert_eq!(two[0].1.bytes(), particles[10].1.bytes());
}

#[test]
fn fields_of_older_versions_are_found_by_current_names() {
    let output = Output::open(&common::own_output("v0_nener_2d", "00002")).unwrap();
    let request = CellsRequest {
        fields: Some(vec!["pressure".into(), "scalar_00".into()]),
        ..CellsRequest::default()
    };
    let cells = output.read_cells(&request).unwrap();
    let names: Vec<_> = cells
        .columns
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["thermal_pressure", "passive_scalar_1"]);
}

#[test]
fn invalid_requests_are_errors() {
    let output = Output::open(&common::own_output("sedov3d_small", "00002")).unwrap();
    let ask = |request: CellsRequest<'_>| output.read_cells(&request).unwrap_err();
    let fields = |names: &[&str]| CellsRequest {
        fields: Some(names.iter().map(|name| name.to_string()).collect()),
        ..CellsRequest::default()
    };
    let error = ask(fields(&["temperature"]));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("density, velocity_x"), "{error}");
    let error = ask(fields(&["potential"]));
    assert!(
        error.to_string().contains("no files grav_00002.out"),
        "{error}"
    );
    assert_eq!(
        ask(fields(&["density", "density"])).kind(),
        ErrorKind::Invalid
    );
    let levels = |first, last| CellsRequest {
        levels: Some((first, last)),
        ..CellsRequest::default()
    };
    assert_eq!(ask(levels(5, 4)).kind(), ErrorKind::Invalid);
    assert_eq!(ask(levels(0, 0)).kind(), ErrorKind::Invalid);
    let region = CellsRequest {
        region: Some(Region::sphere(&[0.5, 0.5], 0.1).unwrap()),
        ..CellsRequest::default()
    };
    assert_eq!(ask(region).kind(), ErrorKind::Invalid);
    let error = output
        .read_particles(&ParticlesRequest::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("no files part_00002.out"),
        "{error}"
    );
}

#[test]
fn progress_counts_every_file_and_can_stop_the_read() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let output = Output::open(&common::own_output("sedov3d_small", "00002")).unwrap();
    let calls = AtomicU64::new(0);
    let count = |done: u64, total: u64| {
        calls.fetch_add(1, Ordering::Relaxed);
        assert!(done <= total && total == 8);
        Ok(())
    };
    let request = CellsRequest {
        progress: Some(&count),
        ..CellsRequest::default()
    };
    output.read_cells(&request).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 8);
    let stop = |_, _| Err(ambar::Error::invalid("stopped"));
    let request = CellsRequest {
        progress: Some(&stop),
        ..CellsRequest::default()
    };
    assert_eq!(
        output.read_cells(&request).unwrap_err().message(),
        "stopped"
    );
}

/// Files of domains without cells of the region are not read. Here they are damaged.
#[test]
fn a_region_needs_only_the_domains_around_it() {
    for (case, corner) in [
        ("sedov3d_small", 0.05),
        ("stars_3d", 0.2),
        ("bisection_2d", 2.0),
    ] {
        let source = common::own_output(case, "00002");
        let ndim = Output::open(&source).unwrap().info().ndim;
        let copy = common::Copy::of(&source);
        let output = Output::open(&copy.path).unwrap();
        let spoil = |kind: &str| {
            let names = copy
                .files()
                .into_iter()
                .filter(|name| name.starts_with(kind));
            for name in names.filter(|name| !name.ends_with("out00001")) {
                copy.change(&name, |bytes| bytes.clear());
            }
        };
        let side = output.info().boxlen * corner;
        let request = CellsRequest {
            region: Some(Region::cuboid(&[0.0; 3][..ndim], &[side; 3][..ndim]).unwrap()),
            ..CellsRequest::default()
        };
        let before = output.read_cells(&request).unwrap();
        spoil("amr");
        spoil("hydro");
        let after = output.read_cells(&request);
        if case == "bisection_2d" {
            assert_eq!(after.unwrap_err().kind(), ErrorKind::Corrupt);
            continue;
        }
        assert!(before.leaves.levels.rows() > 0);
        assert!(
            common::same(&before.columns, &after.unwrap().columns),
            "{case}"
        );
    }
}
