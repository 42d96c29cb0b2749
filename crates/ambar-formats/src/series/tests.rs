//! A run whose outputs are files of one number each.

use std::path::{Path, PathBuf};

use ambar::kinds::attributes::KEY;
use ambar::metadata::Attributes;
use ambar::store::{Store, StoreWriter};
use ambar::{Error, Result};
use serde_json::{Value, json};

use super::{
    ConvertReport, Fingerprint, OnError, OutputIdentity, Run, StoreOptions, convert, name_of,
};
use crate::progress::ConversionProgress;

/// Outputs `1`, `2`, ...; "cut short" as content is an output of that state.
struct Numbers {
    paths: Vec<PathBuf>,
}

impl Run for Numbers {
    type Surveyed = String;
    type Opened = (String, String);

    fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn survey(&self, index: usize) -> Result<(OutputIdentity, String)> {
        let path = &self.paths[index];
        let mut fingerprint = Fingerprint::default();
        fingerprint.add_file("content", &std::fs::metadata(path).unwrap());
        let identity = OutputIdentity {
            name: name_of(path),
            number: path.file_stem().unwrap().to_str().unwrap().parse().unwrap(),
            bytes: 10,
            fingerprint: fingerprint.text(),
        };
        Ok((identity, fingerprint.text()))
    }

    fn open(&self, index: usize, surveyed: String) -> Result<Self::Opened> {
        let content = std::fs::read_to_string(&self.paths[index]).unwrap();
        match &*content {
            "cut short" => Err(Error::corrupt("cut short")),
            "invalid" => Err(Error::invalid("invalid")),
            _ => Ok((name_of(&self.paths[index]), surveyed)),
        }
    }

    fn write(
        &self,
        (name, fingerprint): &Self::Opened,
        writer: &mut StoreWriter,
        path: &str,
        _: &ConversionProgress,
        report: &mut ConvertReport,
    ) -> Result<()> {
        report.leave_out("notes", "not read");
        let source = json!({"name": name, "fingerprint": fingerprint});
        let mut attributes = Attributes::new();
        attributes.insert(KEY.into(), json!({"kind": "snapshot", "source": source}));
        writer.group(path, attributes)
    }
}

fn run(folder: &Path, contents: &[(&str, &str)]) -> Numbers {
    let paths = contents.iter().map(|(name, content)| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path
    });
    Numbers {
        paths: paths.collect(),
    }
}

fn steps(target: &Path) -> Vec<String> {
    let store = Store::open(target).unwrap();
    let own = store.group("/").unwrap().attributes()[KEY].clone();
    assert_eq!(own.get("kind"), Some(&Value::from("series")));
    let children = store.children("/").unwrap().into_iter();
    let mut names: Vec<_> = children.map(|(path, _)| path.replace('/', "")).collect();
    names.sort();
    names
}

#[test]
fn new_and_changed_outputs_are_converted_others_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x.ambar");
    let options = StoreOptions::default();
    let first = run(folder.path(), &[("1", "a"), ("2", "cut short")]);
    let report = convert(&first, &target, &options).unwrap();
    assert_eq!(
        (report.converted, report.source_bytes),
        (vec!["1".into()], 10)
    );
    let reasons: Vec<_> = report.left_out.iter().map(|(name, _)| &**name).collect();
    assert_eq!(reasons, ["notes", "2"]);
    assert_eq!(steps(&target), ["output_00001"]);
    run(folder.path(), &[("2", "b"), ("3", "c")]);
    let all = Numbers {
        paths: ["1", "2", "3"].map(|name| folder.path().join(name)).into(),
    };
    let report = convert(&all, &target, &options).unwrap();
    assert_eq!(report.skipped, ["1"]);
    assert_eq!(report.converted, ["2", "3"]);
    run(folder.path(), &[("2", "longer")]);
    let report = convert(&all, &target, &options).unwrap();
    assert_eq!(
        (report.replaced, report.source_bytes),
        (vec!["2".into()], 10)
    );
    assert_eq!(report.skipped, ["1", "3"]);
    assert_eq!(steps(&target).len(), 3);
}

#[test]
fn failures_stop_or_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x.ambar");
    let damaged = run(folder.path(), &[("1", "a"), ("2", "cut short"), ("3", "c")]);
    let stop = StoreOptions::default();
    assert!(convert(&damaged, &target, &stop).is_err());
    assert_eq!(steps(&target), ["output_00001"]);
    let skip = StoreOptions {
        on_error: OnError::Skip,
        ..StoreOptions::default()
    };
    let report = convert(&damaged, &target, &skip).unwrap();
    assert_eq!((report.skipped.len(), report.converted.len()), (1, 1));
    assert_eq!(report.failed[0].0, "2");
    let new = folder.path().join("y.ambar");
    for options in [&skip, &stop] {
        let none = run(folder.path(), &[("4", "cut short")]);
        assert!(convert(&none, &new, options).is_err());
        assert!(!new.exists());
    }
    // Another run's output of the same number.
    let other = run(folder.path(), &[("1.other", "a")]);
    let error = convert(&other, &target, &stop).unwrap_err();
    assert!(error.message().contains("output 1 is \"1\""), "{error}");
    assert_eq!(steps(&target).len(), 2);
}
