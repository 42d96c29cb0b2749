//! Damaged, incomplete and split files: an error that names file and offset, or the right values.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod common;

use std::fs;

use ambar::ErrorKind;
use ambar_formats::ramses::{CellsRequest, ComponentKind, MissingReason, Output};
use common::{Copy, equal, own_output, read_all, records, split};

/// Each truncation of each file is an error, except of text files that may be short.
#[test]
fn truncated_files_are_errors_that_name_file_and_offset() {
    for case in ["sedov2d_small", "sinks_clumps_3d"] {
        let copy = Copy::of(&own_output(case, "00002"));
        for name in copy.files().iter().filter(|name| name.contains(".out")) {
            let whole = fs::read(copy.path.join(name)).unwrap();
            let step = (whole.len() / 150).max(1);
            for len in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
                fs::write(copy.path.join(name), &whole[..len]).unwrap();
                let error = match read_all(&copy.path) {
                    // A first particle file without columns is listed with the components.
                    Ok(_) => match &Output::open(&copy.path).unwrap().components()[3].missing {
                        Some(MissingReason::Broken(why)) => why.clone(),
                        other => panic!("{name} cut at {len} was read: {other:?}"),
                    },
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} at {len}: {error}");
                        error.to_string()
                    }
                };
                assert!(error.contains(name.as_str()), "{name} at {len}: {error}");
                assert!(error.contains("at byte "), "{name} at {len}: {error}");
                assert!(error.contains("copy it again"), "{name} at {len}: {error}");
            }
            fs::write(copy.path.join(name), &whole).unwrap();
        }
        assert!(read_all(&copy.path).is_ok());
    }
}

/// No flipped byte makes the reader panic, hang or allocate absurd amounts of memory.
#[test]
fn flipped_bytes_give_a_result_or_an_error() {
    let mut seed = 1u64;
    let mut errors = 0;
    for case in [
        "sedov2d_small",
        "tube_1d_walls",
        "bisection_2d",
        "sinks_clumps_3d",
    ] {
        let copy = Copy::of(&own_output(case, "00002"));
        for name in copy.files() {
            let path = copy.path.join(&name);
            let whole = fs::read(&path).unwrap();
            // Headers are the most fragile part: all of their bytes, then some others.
            let head = whole.len().min(120);
            let positions = (0..head).chain((head..whole.len()).step_by(whole.len() / 40 + 1));
            for at in positions {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let mut bytes = whole.clone();
                bytes[at] ^= match seed >> 61 {
                    0..4 => 1 << (seed >> 33 & 7),
                    4 | 5 => 0x80,
                    _ => 0xff,
                };
                fs::write(&path, bytes).unwrap();
                errors += u32::from(read_all(&copy.path).is_err());
            }
            fs::write(&path, &whole).unwrap();
        }
        assert!(read_all(&copy.path).is_ok());
    }
    assert!(errors > 500, "{errors} errors only");
}

/// gfortran splits records over 2 GiB; here they are split much earlier.
#[test]
fn split_records_are_read() {
    for case in ["sedov2d_small", "stars_3d", "single_3d"] {
        let source = own_output(case, "00002");
        let expected = read_all(&source).unwrap();
        let copy = Copy::of(&source);
        for name in copy.files().iter().filter(|name| name.contains(".out")) {
            copy.change(name, |bytes| *bytes = split(&records(bytes), 100));
        }
        assert!(equal(&read_all(&copy.path).unwrap(), &expected), "{case}");
    }
}

#[test]
fn an_error_names_the_offset_of_a_wrong_record_marker() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    let name = "hydro_00002.out00001";
    // The fourth record of the header: nlevelmax, whose closing marker is at byte 44.
    copy.change(name, |bytes| bytes[44] = 5);
    let output = Output::open(&copy.path).unwrap();
    let hydro = &output.components()[0];
    assert_eq!(hydro.kind, ComponentKind::Hydro);
    let Some(MissingReason::Broken(why)) = &hydro.missing else {
        panic!("{:?}", hydro.missing);
    };
    for part in [name, "nlevelmax", "at byte 44 ", "marker 4", "found 5"] {
        assert!(why.contains(part), "{part:?} in {why}");
    }
    let error = output.read_cells(&CellsRequest::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("at byte 44 "), "{error}");
}

#[test]
fn files_of_some_domains_only_are_an_error() {
    for (start, word) in [
        ("hydro", "hydro"),
        ("part", "particles"),
        ("clump", "clumps"),
    ] {
        let copy = Copy::of(&own_output("sinks_clumps_3d", "00002"));
        let end = if start == "clump" { "txt" } else { "out" };
        let name = format!("{start}_00002.{end}00002");
        fs::remove_file(copy.path.join(&name)).unwrap();
        let output = Output::open(&copy.path).unwrap();
        let component = output
            .components()
            .iter()
            .find(|c| c.kind.name() == word)
            .unwrap();
        assert!(
            matches!(&component.missing, Some(MissingReason::Broken(why)) if why.contains(&name))
        );
        let error = match start {
            "hydro" => output.read_cells(&CellsRequest::default()).err(),
            "part" => output.read_particles(&Default::default()).err(),
            _ => output.read_clumps().err(),
        };
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn a_missing_amr_file_is_named() {
    let copy = Copy::of(&own_output("sedov3d_small", "00002"));
    fs::remove_file(copy.path.join("amr_00002.out00003")).unwrap();
    let error = Output::open(&copy.path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("amr_00002.out00003"), "{error}");
}

#[test]
fn missing_components_are_listed_and_left_out() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    for name in copy.files() {
        if name.starts_with("hydro_00002") {
            fs::remove_file(copy.path.join(name)).unwrap();
        }
    }
    let output = Output::open(&copy.path).unwrap();
    for component in output.components() {
        let Some(MissingReason::Absent(why)) = &component.missing else {
            panic!("{:?}", component.missing);
        };
        assert!(why.starts_with("the output has no file"), "{why}");
    }
    let cells = output.read_cells(&CellsRequest::default()).unwrap();
    assert!(cells.columns.is_empty());
    assert_eq!(cells.leaves.levels.rows(), 1324);
    let request = CellsRequest {
        components: Some(vec![ComponentKind::Hydro]),
        ..CellsRequest::default()
    };
    let error = output.read_cells(&request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Valid files of different outputs.
#[test]
fn files_that_contradict_each_other_are_errors() {
    let first = own_output("sedov3d_small", "00001");
    let second = own_output("sedov3d_small", "00002");
    for kind in ["amr", "hydro"] {
        let copy = Copy::of(&second);
        let from = first.join(format!("{kind}_00001.out00002"));
        fs::copy(from, copy.path.join(format!("{kind}_00002.out00002"))).unwrap();
        let error = read_all(&copy.path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("out00002"), "{error}");
    }
    // One domain twice, another one missing.
    let copy = Copy::of(&second);
    let twice = copy.path.join("amr_00002.out00002");
    fs::copy(copy.path.join("amr_00002.out00001"), twice).unwrap();
    let error = read_all(&copy.path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// A missing oct, although the numbers of octs are right.
#[test]
fn leaves_that_do_not_fill_the_box_are_an_error() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    copy.change("amr_00002.out00001", |bytes| {
        let mut all = records(bytes);
        // The children of level 5 are the first records of 256 octs with many zeros. A leaf that is marked as refined
        // lacks its oct.
        let son = all.iter().position(|record| {
            record.len() == 4 * 256 && record.chunks(4).filter(|son| *son == [0; 4]).count() > 9
        });
        let record = &mut all[son.unwrap()];
        let leaf = record.chunks(4).position(|son| son == [0; 4]).unwrap();
        record[4 * leaf] = 1;
        *bytes = split(&all, usize::MAX);
    });
    let error = read_all(&copy.path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("do not fill the box"), "{error}");
}

#[test]
fn the_number_of_particles_must_match_the_header() {
    let copy = Copy::of(&own_output("stars_3d", "00002"));
    copy.change("header_00002.txt", |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replacen(" 0\n", " 1\n", 1).into_bytes();
    });
    let error = read_all(&copy.path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("expected 399"), "{error}");
}
