//! Plotfiles written: the samples byte by byte, others with the same values.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod amrex_common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ambar::kinds::amr::patches::PatchSource;
use ambar::{Column, ErrorKind};
use ambar_formats::amrex::{Layout, Plotfile, SpeciesData, WriteRequest, json, write_plotfile};
use amrex_common::{read, sample, tree};

/// Every species' name and columns.
type Particles = Vec<(String, Vec<(String, Column)>)>;

fn particles(plotfile: &Plotfile) -> Particles {
    let species = plotfile.species().iter();
    let each = species.map(|s| (s.name.clone(), plotfile.read_particles(&s.name).unwrap()));
    each.collect()
}

fn write(plotfile: &Plotfile, layout: Option<&Layout>, path: &Path) -> ambar::Result<()> {
    let particles = particles(plotfile);
    let species: Vec<_> = particles
        .iter()
        .map(|(name, columns)| SpeciesData { name, columns })
        .collect();
    let run = plotfile.run();
    write_plotfile(
        path,
        &WriteRequest {
            source: plotfile,
            run: layout.map_or(&run, |layout| &layout.run),
            layout,
            species: &species,
            progress: None,
        },
    )
}

fn same_values(one: &Plotfile, other: &Plotfile) {
    assert_eq!(one.hierarchy(), other.hierarchy());
    assert_eq!(one.names(), other.names());
    for (level, part) in one.hierarchy().levels.iter().enumerate() {
        for index in 0..part.boxes.len() {
            for field in one.names() {
                assert_eq!(one.dtype(field).unwrap(), other.dtype(field).unwrap());
                let values = [one, other].map(|plotfile| read(plotfile, level, index, field));
                assert_eq!(
                    values[0], values[1],
                    "{field} of box {index} of level {level}"
                );
            }
        }
    }
    for ((name, one), (_, other)) in particles(one).iter().zip(&particles(other)) {
        assert_eq!(one.len(), other.len());
        for ((column, one), (_, other)) in one.iter().zip(other) {
            assert_eq!(one.bytes(), other.bytes(), "{column} of {name}");
        }
    }
}

#[test]
fn samples_are_written_byte_by_byte() {
    for name in ["advection_plt00006", "nyx64_plt00040", "lwfa_f32"] {
        let Some(path) = sample(name) else {
            return;
        };
        let plotfile = Plotfile::open(&path).unwrap();
        let text = plotfile.layout_json().unwrap();
        let layout = Layout::from_json(&text).unwrap();
        assert_eq!(layout, plotfile.layout().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let again = folder.path().join(name);
        write(&plotfile, Some(&layout), &again).unwrap();
        let (expected, found) = (tree(&path), tree(&again));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&expected), names(&found));
        for (file, bytes) in &expected {
            assert!(found[file] == *bytes, "{name}/{file} differs");
        }
        // Little beside the values themselves.
        let bytes: usize = expected.values().map(Vec::len).sum();
        assert!(text.len() < bytes / 100, "{} of {bytes}", text.len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn without_a_layout_the_values_are_the_same() {
    for name in ["advection_plt00006", "nyx64_plt00040", "lwfa_f32"] {
        let Some(path) = sample(name) else {
            return;
        };
        let plotfile = Plotfile::open(&path).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let again = folder.path().join("plt");
        write(&plotfile, None, &again).unwrap();
        let found = Plotfile::open(&again).unwrap();
        same_values(&plotfile, &found);
        if name != "lwfa_f32" {
            let levels = 0..plotfile.hierarchy().levels.len();
            levels.for_each(|level| assert_eq!(plotfile.extrema(level), found.extrema(level)));
        }
        let texts = ["Header", "comoving_a", "the_parameters"];
        for text in texts.iter().filter(|text| path.join(text).is_file()) {
            let read = |path: &Path| fs::read(path.join(text)).unwrap();
            if name == "nyx64_plt00040" && *text == "Header" {
                continue; // Written with 15 digits, which only its layout tells.
            }
            assert!(read(&path) == read(&again), "{name}/{text} differs");
        }
    }
}

#[test]
fn an_existing_target_is_an_error_and_failures_leave_nothing() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    let plotfile = Plotfile::open(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("plt");
    fs::create_dir(&target).unwrap();
    let error = write(&plotfile, None, &target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    fs::remove_dir(&target).unwrap();
    let run = plotfile.run();
    let mut request = WriteRequest {
        source: &plotfile,
        run: &run,
        layout: None,
        species: &[],
        progress: Some(&|done, total| {
            assert!(done <= total);
            match done * 2 > total {
                true => Err(ambar::Error::new(ErrorKind::Interrupted, "enough")),
                false => Ok(()),
            }
        }),
    };
    let error = write_plotfile(&target, &request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let columns = plotfile.read_particles("particles").unwrap();
    let data = |columns| {
        [SpeciesData {
            name: "particles",
            columns,
        }]
    };
    request.progress = None;
    let without = &columns[..columns.len() - 1];
    let species = data(without);
    request.species = &species;
    let error = write_plotfile(&target, &request).unwrap_err();
    assert!(error.to_string().contains("\"grid\""), "{error}");
    let mut bad = plotfile.run();
    bad.texts.insert("../escape".into(), String::new());
    request.species = &[];
    request.run = &bad;
    assert_eq!(
        write_plotfile(&target, &request).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_run_information_is_json() {
    let Some(path) = sample("nyx64_plt00040") else {
        return;
    };
    let info = json::info(&Plotfile::open(&path).unwrap());
    assert_eq!(info["ndim"], 3);
    assert_eq!(info["time"], 0.000957993561828004);
    assert_eq!(info["coordinates"], "cartesian");
    assert_eq!(info["levels"][1]["boxes"], 103);
    assert_eq!(
        info["levels"][1]["domain"]["hi"],
        serde_json::json!([127, 127, 127])
    );
    assert_eq!(info["particles"][0]["particles"], 262144);
    assert_eq!(info["particles"][0]["fields"][3], "mass");
    assert_eq!(info["dtype"], "float64");
    assert_eq!(
        info["texts"],
        serde_json::json!(["comoving_a", "the_parameters"])
    );
    assert!(info["bytes"].as_u64().unwrap() > 30_000_000);
}
