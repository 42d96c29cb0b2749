//! The sample plotfiles: their values match the tables of minima and maxima in them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod amrex_common;

use ambar::DataType;
use ambar::kinds::amr::patches::PatchSource;
use ambar_formats::amrex::{Plotfile, is_plotfile};
use amrex_common::{read, sample};

#[test]
fn headers_of_the_samples() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    assert!(is_plotfile(&path));
    assert!(!is_plotfile(&path.join("particles")));
    assert!(!is_plotfile(&path.join("Level_0")));
    let plotfile = Plotfile::open(&path).unwrap();
    let names = ["phi", "phi2", "gradx", "grady", "gradz", "phi32"];
    assert_eq!(plotfile.names(), names);
    assert_eq!((plotfile.ndim(), plotfile.coordinates()), (3, 0));
    assert_eq!(plotfile.time(), 0.13213504454862224);
    assert_eq!(plotfile.steps(), [6, 12, 24]);
    let hierarchy = plotfile.hierarchy();
    hierarchy.check().unwrap();
    let boxes: Vec<_> = hierarchy.levels.iter().map(|l| l.boxes.len()).collect();
    assert_eq!(boxes, [8, 18, 34]);
    assert_eq!(hierarchy.levels[0].ratio, [2; 3]);
    assert_eq!(hierarchy.levels[2].ratio, [1; 3]);
    assert_eq!(hierarchy.levels[2].domain.hi, [128; 3]);
    assert_eq!(plotfile.species().len(), 1);
    assert!(plotfile.ignored().is_empty());
    let usage = plotfile.usage();
    let (files, bytes) = (usage.files, usage.bytes);
    assert_eq!((files, bytes > 9_000_000), (32, true));
}

#[test]
fn values_span_the_ranges_of_the_tables() {
    for (name, dtype) in [
        ("advection_plt00006", DataType::Float64),
        ("nyx64_plt00040", DataType::Float64),
        ("lwfa_f32", DataType::Float32),
    ] {
        let Some(path) = sample(name) else {
            return;
        };
        let plotfile = Plotfile::open(&path).unwrap();
        for (level, part) in plotfile.hierarchy().levels.iter().enumerate() {
            let extrema = plotfile.extrema(level).unwrap();
            for index in 0..part.boxes.len() {
                for (component, field) in plotfile.names().iter().enumerate() {
                    assert_eq!(plotfile.dtype(field).unwrap(), dtype);
                    let values = read(&plotfile, level, index, field);
                    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let place = index * plotfile.names().len() + component;
                    let expected = [extrema.min[place], extrema.max[place]];
                    match dtype {
                        DataType::Float64 => assert_eq!([low, high], expected),
                        // The tables are of the float64 values before they were rounded.
                        _ => assert_eq!([low, high], expected.map(|x| f64::from(x as f32))),
                    }
                }
            }
        }
    }
}

#[test]
fn entries_besides_the_levels_are_listed() {
    let Some(path) = sample("nyx64_plt00040") else {
        return;
    };
    let plotfile = Plotfile::open(&path).unwrap();
    assert_eq!(plotfile.species()[0].name, "DM");
    assert_eq!(plotfile.species()[0].missing(), None);
    let texts = plotfile.text_files();
    assert_eq!(texts["comoving_a"], "0.153055027728282\n");
    assert!(texts["the_parameters"].starts_with("DistributionMapping.verbose = 0\n"));
    assert_eq!(texts.len(), 2);
    assert!(plotfile.ignored().is_empty());
}

#[test]
fn particles_are_in_the_boxes_of_their_grids() {
    for (name, species, count) in [
        ("advection_plt00006", "particles", 32768),
        ("nyx64_plt00040", "DM", 262144),
    ] {
        let Some(path) = sample(name) else {
            return;
        };
        let plotfile = Plotfile::open(&path).unwrap();
        assert_eq!(plotfile.species()[0].particles(), count);
        let columns = plotfile.read_particles(species).unwrap();
        let announced = plotfile.species()[0].columns();
        let found = columns
            .iter()
            .map(|(name, column)| (name.clone(), column.dtype().clone()));
        assert_eq!(found.collect::<Vec<_>>(), announced);
        let column = |name: &str| {
            let found = columns.iter().find(|(found, _)| found == name);
            &found.unwrap_or_else(|| panic!("no column {name}")).1
        };
        let mut ids = column("id").values::<i64>().to_vec();
        assert!(ids.iter().all(|id| *id > 0));
        assert!(
            column("cpu")
                .values::<i32>()
                .iter()
                .all(|cpu| (0..4).contains(cpu))
        );
        let pairs: std::collections::HashSet<_> =
            ids.drain(..).zip(column("cpu").values::<i32>()).collect();
        assert_eq!(pairs.len(), count as usize, "numbers are given once");
        let levels = column("level").values::<u8>();
        let grids = column("grid").values::<u32>();
        let hierarchy = plotfile.hierarchy();
        for (d, axis) in ["x", "y", "z"].into_iter().enumerate() {
            let positions = column(&format!("position_{axis}")).values::<f64>();
            assert_eq!(positions.len(), count as usize);
            for (row, at) in positions.iter().enumerate() {
                let level = &hierarchy.levels[usize::from(levels[row])];
                let cells = &level.boxes[grids[row] as usize];
                let index = ((at - hierarchy.lower[d]) / level.cell_size[d]).floor() as i64;
                assert!(
                    (cells.lo[d]..cells.hi[d]).contains(&index),
                    "row {row} of {name}"
                );
            }
        }
    }
    let Some(path) = sample("nyx64_plt00040") else {
        return;
    };
    let columns = Plotfile::open(&path).unwrap().read_particles("DM").unwrap();
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[3..7], ["mass", "xvel", "yvel", "zvel"]);
    // All dark matter particles of a run have the same mass.
    let masses = columns[3].1.values::<f64>();
    assert!(masses[0] > 0.0 && masses.iter().all(|mass| *mass == masses[0]));
}
