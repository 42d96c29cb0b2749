//! Synthetic plotfiles of all dimensions, number formats and byte orders round trip.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod amrex_common;

use std::path::Path;

use ambar::kinds::amr::patches::PatchSource;
use ambar::{DataType, ErrorKind};
use ambar_formats::amrex::{Plotfile, PlotfileLayout, WriteRequest, is_plotfile, write_plotfile};
use amrex_common::synthetic::Synthetic;
use amrex_common::{read, tree};

fn check(made: &Synthetic, plotfile: &Plotfile) {
    let hierarchy = plotfile.hierarchy();
    assert_eq!(hierarchy.ndim, made.ndim);
    assert_eq!(plotfile.names(), made.fields);
    for (level, part) in made.levels.iter().enumerate() {
        let found = &hierarchy.levels[level];
        assert_eq!(found.boxes.len(), part.boxes.len());
        for (index, [lo, hi]) in part.boxes.iter().enumerate() {
            let cells = &found.boxes[index];
            for d in 0..made.ndim {
                assert_eq!((cells.lo[d], cells.hi[d]), (lo[d], hi[d] + 1));
            }
            for (field, name) in made.fields.iter().enumerate() {
                let values = read(plotfile, level, index, name);
                assert_eq!(
                    values,
                    made.values(level, index, field, 0),
                    "{name} {level} {index}"
                );
            }
        }
    }
}

/// Writes a plotfile with and without its layout, and reads it back.
fn check_written(made: &Synthetic, plotfile: &Plotfile, path: &Path) {
    let layout = PlotfileLayout::from_json(&plotfile.layout_json().unwrap()).unwrap();
    for layout in [None, Some(&layout)] {
        let again = path.with_file_name("again");
        let run = plotfile.run();
        let request = WriteRequest {
            source: plotfile,
            run: &run,
            layout,
            species: &[],
            progress: None,
        };
        write_plotfile(&again, &request).unwrap();
        check(made, &Plotfile::open(&again).unwrap());
        if layout.is_some() && made.ghosts == 0 {
            assert!(tree(path) == tree(&again));
        }
        std::fs::remove_dir_all(&again).unwrap();
    }
}

#[test]
fn all_kinds_of_plotfiles_are_read_and_written() {
    for (ndim, ratio, line) in [
        (1, vec![2], "2 "),
        (2, vec![4, 4], "4 "),
        (2, vec![4, 1], "(4,1) "),
        (3, vec![2, 2, 2], "2 "),
        (3, vec![2, 4, 1], "(2,4,1)"),
        // Some codes write the ratios of all dimensions by the first, some write none.
        (3, vec![2, 4, 1], "2 "),
        (3, vec![3, 3, 3], ""),
    ] {
        let plain = Synthetic::new(ndim, &ratio, line);
        for (double, little) in [(true, true), (true, false), (false, true), (false, false)] {
            for (ghosts, shuffled) in [(0, false), (0, true), (2, true)] {
                let made = Synthetic {
                    double,
                    little,
                    ghosts,
                    shuffled,
                    ..plain.clone()
                };
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("plt");
                made.write(&path);
                let plotfile = Plotfile::open(&path).unwrap();
                let expected: [i64; 3] =
                    std::array::from_fn(|d| ratio.get(d).copied().unwrap_or(1));
                assert_eq!(plotfile.hierarchy().levels[0].ratio, expected);
                let dtype = if double {
                    DataType::Float64
                } else {
                    DataType::Float32
                };
                assert_eq!(plotfile.dtype("Y(H2)").unwrap(), dtype);
                assert_eq!(plotfile.ghosts(1)[0], ghosts);
                assert_eq!(plotfile.ignored().len(), usize::from(ghosts > 0));
                assert_eq!(plotfile.steps(), [3, 4]);
                assert_eq!(plotfile.text_files()["job_info"], "a run\n");
                check(&made, &plotfile);
                check_written(&made, &plotfile, &path);
            }
        }
    }
}

#[test]
fn mixed_precisions_are_read_as_float64_and_written_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["plt", "other"].map(|name| folder.path().join(name));
    let made = Synthetic::new(3, &[2; 3], "2 ");
    made.write(&path);
    let single = Synthetic {
        double: false,
        ..made.clone()
    };
    single.write(&other);
    for name in ["State_H", "State_D_00000", "State_D_00001"] {
        let name = format!("Lev_1/{name}");
        std::fs::copy(other.join(&name), path.join(&name)).unwrap();
    }
    let plotfile = Plotfile::open(&path).unwrap();
    assert_eq!(plotfile.dtype("density").unwrap(), DataType::Float64);
    check(&made, &plotfile);
    std::fs::remove_dir_all(&other).unwrap();
    check_written(&made, &plotfile, &path);
}

/// Old codes write more text than AMReX does now, which is kept verbatim.
#[test]
fn unusual_headers_are_read_and_kept() {
    let made = Synthetic::new(2, &[2, 2], "2 2 2 ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plt");
    made.write(&path);
    let header = path.join("Header");
    let text = std::fs::read_to_string(&header).unwrap();
    let changed = text.replacen("\n3 4 \n", "\n3 4 0 0\n", 1);
    let changed = changed.replacen("\n0\n0\n", "\n1 0 0\n0\n", 1) + "1.0e-6\n";
    assert_eq!(changed.len(), text.len() + 14);
    std::fs::write(&header, changed).unwrap();
    let plotfile = Plotfile::open(&path).unwrap();
    assert_eq!((plotfile.coordinates(), plotfile.steps()), (1, vec![3, 4]));
    check(&made, &plotfile);
    check_written(&made, &plotfile, &path);
}

/// Such folders were stored as checkpoints, without fields.
#[test]
fn a_damaged_beginning_of_a_header_is_an_error() {
    let made = Synthetic::new(2, &[2, 2], "2 2 2 ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plt");
    made.write(&path);
    // The name that the fields of most plotfiles have.
    std::fs::create_dir(path.join("Level_0")).unwrap();
    std::fs::write(path.join("Level_0/Cell_H"), "1\n").unwrap();
    let header = path.join("Header");
    let text = std::fs::read_to_string(&header).unwrap();
    let (version, rest) = text.split_once('\n').unwrap();
    let count = rest.split_once('\n').unwrap();
    for damaged in [
        rest.to_owned(),
        format!("\n{rest}"),
        format!("{version}\n-5\n{}", count.1),
        format!("{version}\n{}", count.1),
        "Version_Two_Dot_Zero_double\n".to_owned(),
    ] {
        std::fs::write(&header, &damaged).unwrap();
        assert!(is_plotfile(&path), "{damaged}");
        let error = Plotfile::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("Header: line "), "{error}");
    }
    std::fs::write(&header, "CheckPointVersion_1.0\n2\n").unwrap();
    assert!(!is_plotfile(&path));
}

#[test]
fn a_missing_field_or_box_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plt");
    Synthetic::new(2, &[2; 2], "2 ").write(&path);
    let plotfile = Plotfile::open(&path).unwrap();
    let error = plotfile.dtype("pressure").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("density, x velocity, Y(H2)"),
        "{error}"
    );
    for (level, index) in [(0, 2), (2, 0)] {
        let error = plotfile
            .read_box(level, index, "density", &mut [])
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let error = plotfile.read_box(0, 0, "density", &mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = plotfile.read_particles("DM").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = Plotfile::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("Header"), "{error}");
}
