//! Plotfiles are converted to stores and exported again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod amrex_common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use ambar::ErrorKind;
use ambar::array::{ArrayData, ArraySpec};
use ambar::container::Durability;
use ambar::kinds::amr::PatchAmr;
use ambar::kinds::amr::patches::{Covered, PatchSource};
use ambar::kinds::bound::{Compression, ErrorBound};
use ambar::kinds::particles::Particles;
use ambar::kinds::select::Selection;
use ambar::store::{Store, StoreWriter};
use ambar_formats::amrex::{self, ConvertOptions, Input, Plotfile, SourceInfo, export};
use ambar_formats::series::{ConvertReport, StoreOptions};
use amrex_common::{read, sample, tree};

fn options() -> ConvertOptions {
    ConvertOptions {
        store: StoreOptions {
            durability: Durability::None,
            ..StoreOptions::default()
        },
        ..ConvertOptions::default()
    }
}

/// The options with `change` made to those of the store.
fn with(change: impl FnOnce(&mut StoreOptions)) -> ConvertOptions {
    let mut options = options();
    change(&mut options.store);
    options
}

fn convert(path: &Path, target: &Path, options: &ConvertOptions) -> ambar::Result<ConvertReport> {
    amrex::convert(&Input::open(path)?, target, options)
}

fn same_files(one: &Path, other: &Path) {
    let (expected, found) = (tree(one), tree(other));
    assert!(expected.keys().eq(found.keys()));
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name} differs");
    }
}

#[test]
fn samples_round_trip_byte_for_byte() {
    for name in ["advection_plt00006", "nyx64_plt00040", "lwfa_f32"] {
        let Some(path) = sample(name) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("run.ambar");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&seen);
        let options = with(|store| {
            store.progress = Some(Arc::new(move |done, total| {
                reported.lock().unwrap().push(done);
                assert!(done <= total && total == 100);
                Ok(())
            }));
        });
        let converted = convert(&path, &target, &options).unwrap();
        assert_eq!(converted.converted, [name]);
        assert_eq!(
            converted.source_bytes,
            Plotfile::open(&path).unwrap().usage().bytes
        );
        assert_eq!(seen.lock().unwrap().last(), Some(&100));
        let store = Store::open(&target).unwrap();
        let again = folder.path().join("plt");
        export(&store, "/", &again, None).unwrap();
        same_files(&path, &again);
        let error = convert(&path, &target, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }
}

#[test]
fn covered_cells_that_are_averages_are_left_out() {
    let Some(path) = sample("nyx64_plt00040") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run.ambar");
    convert(&path, &target, &options()).unwrap();
    let store = Store::open(&target).unwrap();
    let amr = PatchAmr::open(&store, "/amr").unwrap();
    // Nyx averages conserved fields down, and computes the temperature from these.
    let dropped = &amr.attributes()["levels"][0]["dropped"];
    let conserved = ["density", "xmom", "ymom", "zmom", "particle_mass_density"];
    assert_eq!(*dropped, serde_json::json!(conserved));
    let plotfile = Plotfile::open(&path).unwrap();
    for field in ["density", "Temp"] {
        for index in 0..8 {
            assert_eq!(
                read(&amr, 0, index, field),
                read(&plotfile, 0, index, field)
            );
        }
    }
}

#[test]
fn parts_and_other_boxes_are_converted() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run.ambar");
    let one = ConvertOptions {
        components: Some(vec!["cells".into()]),
        fields: Some(vec!["gradx".into()]),
        covered: Covered::Drop,
        ..options()
    };
    convert(&path, &target, &one).unwrap();
    let store = Store::open(&target).unwrap();
    assert!(store.kind("/particles").unwrap().is_none());
    let amr = PatchAmr::open(&store, "/amr").unwrap();
    assert_eq!(PatchSource::fields(&amr), ["gradx"]);
    let again = folder.path().join("plt");
    export(&store, "/", &again, None).unwrap();
    let again = Plotfile::open(&again).unwrap();
    let plotfile = Plotfile::open(&path).unwrap();
    assert_eq!(again.time(), plotfile.time());
    assert_eq!(read(&again, 2, 5, "gradx"), read(&plotfile, 2, 5, "gradx"));
    let particles = ConvertOptions {
        components: Some(vec!["particles".into()]),
        ..with(|store| store.overwrite = true)
    };
    convert(&path, &target, &particles).unwrap();
    let store = Store::open(&target).unwrap();
    assert!(store.kind("/amr").unwrap().is_none());
    let error = export(&store, "/", &folder.path().join("none"), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    // Boxes of any source, without a layout of files.
    let about = SourceInfo {
        name: "boxes".into(),
        run: plotfile.run(),
        ..SourceInfo::default()
    };
    let target = folder.path().join("boxes.ambar");
    let plotfile = Arc::new(plotfile);
    let input = Input::Patches(Arc::clone(&plotfile) as _, Box::new(about));
    amrex::convert(&input, &target, &options()).unwrap();
    let again = folder.path().join("boxes");
    export(&Store::open(&target).unwrap(), "/", &again, None).unwrap();
    let again = Plotfile::open(&again).unwrap();
    assert_eq!(again.run(), plotfile.run());
    assert_eq!(read(&again, 1, 3, "phi"), read(&*plotfile, 1, 3, "phi"));
}

#[test]
fn missing_and_invalid_arguments_are_errors() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run.ambar");
    let kind = |options: ConvertOptions| convert(&path, &target, &options).unwrap_err().kind();
    let components = |name: &str| ConvertOptions {
        components: Some(vec![name.into()]),
        ..options()
    };
    assert_eq!(kind(components("hydro")), ErrorKind::NotFound);
    let fields = ConvertOptions {
        fields: Some(vec!["rho".into()]),
        ..options()
    };
    assert_eq!(kind(fields), ErrorKind::NotFound);
    let bound = ConvertOptions {
        compression: Compression {
            error_bounds: vec![("rho".into(), ErrorBound::Absolute(0.1))],
            ..Compression::default()
        },
        ..options()
    };
    assert_eq!(kind(bound), ErrorKind::NotFound);
    let stopped = with(|store| {
        store.progress = Some(Arc::new(|done, _| match done {
            0..80 => Ok(()),
            _ => Err(ambar::Error::new(ErrorKind::Interrupted, "stop")),
        }));
    });
    assert_eq!(kind(stopped), ErrorKind::Interrupted);
    assert!(!target.exists());
}

#[test]
fn particles_are_sorted_along_the_curve_with_their_original_rows() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run.ambar");
    convert(&path, &target, &options()).unwrap();
    let store = Store::open(&target).unwrap();
    let particles = Particles::open(&store, "/particles/particles").unwrap();
    let names = ["file_row", "id", "position_x"];
    let columns = particles.read(&names, &Selection::default()).unwrap();
    let plain = Plotfile::open(&path)
        .unwrap()
        .read_particles("particles")
        .unwrap();
    let column = |name: &str| &plain.iter().find(|(found, _)| found == name).unwrap().1;
    let places = columns[0].1.values::<u32>();
    assert!(!places.is_sorted());
    for (row, place) in places.iter().enumerate() {
        let place = *place as usize;
        assert_eq!(
            columns[1].1.values::<i64>()[row],
            column("id").values::<i64>()[place]
        );
        let position = column("position_x").values::<f64>()[place];
        assert_eq!(columns[2].1.values::<f64>()[row], position);
    }
}

#[test]
fn invalid_rows_and_layouts_are_errors() {
    let Some(path) = sample("advection_plt00006") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run.ambar");
    let write = |name: &str, spec: &ArraySpec, data: ArrayData<'_>| {
        let overwrite = with(|store| store.overwrite = true);
        convert(&path, &target, &overwrite).unwrap();
        let mut writer = StoreWriter::append(&target, Durability::None).unwrap();
        writer.write_array(name, spec, data).unwrap();
        writer.commit().unwrap();
        let store = Store::open(&target).unwrap();
        export(&store, "/", &folder.path().join("plt"), None).unwrap_err()
    };
    let places = [7u32; 32768].map(u32::to_ne_bytes).concat();
    let store = {
        convert(&path, &target, &options()).unwrap();
        Store::open(&target).unwrap()
    };
    let array = store.array("/particles/particles/file_row").unwrap();
    let spec = ArraySpec::new(ambar::DataType::UInt32, &[32768]).chunks(array.chunk_shape());
    let error = write(
        "/particles/particles/file_row",
        &spec,
        ArrayData::Fixed(&places),
    );
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let spec = ArraySpec::new(ambar::DataType::String, &[1]);
    for text in ["", "{}", "[1]"] {
        let texts = [text].into_iter().collect();
        let error = write("/source/layout", &spec, ArrayData::Strings(&texts));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("source/layout"), "{error}");
    }
    let spec = ArraySpec::new(ambar::DataType::UInt8, &[1]);
    let error = write("/source/layout", &spec, ArrayData::Fixed(&[0]));
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(!folder.path().join("plt").exists());
}
