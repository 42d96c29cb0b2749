//! Other programs read containers of ambar, and ambar reads containers of other programs.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
#![allow(clippy::print_stderr)] // a test that is left out says so

mod container_support;

use std::fs::{self, OpenOptions};
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::process::Command;

use ambar::ErrorKind;
use ambar::Limits;
use ambar::container;
use container_support::{Form, append, commit, content, create, folder, names, try_verify};

/// Runs a program, which must succeed. Returns what it printed; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(error) if error.kind() == NotFound => {
            eprintln!("left out: {program} is not installed");
            None
        }
        output => {
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {said}{complaint}");
            assert!(!complaint.contains("warning"), "{program}: {complaint}");
            Some(said)
        }
    }
}

/// Checks that Python's zipfile and Info-ZIP's unzip accept all entries.
fn others_accept(path: &Path) {
    let name = path.to_str().unwrap();
    run("python3", &["-m", "zipfile", "-t", name]);
    if let Some(said) = run("unzip", &["-t", name]) {
        assert!(said.contains("No errors detected"), "{said}");
    }
    let script = "import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).namelist()))";
    if let Some(said) = run("python3", &["-c", script, name]) {
        assert_eq!(said.trim(), content(path).len().to_string());
    }
}

#[test]
fn zipfile_and_unzip_accept_every_stage_of_a_store() {
    let (_folder, path) = folder();
    let mut writer = create(&path, Form::Zip);
    commit(&mut *writer, &[("zarr.json", b"{}")]);
    others_accept(&path);
    commit(
        &mut *writer,
        &[
            ("température/c/0", &[1; 200_000]),
            ("empty", b""),
            ("zarr.json", b"{\"a\":1}"),
        ],
    );
    others_accept(&path);
    drop(writer);
    let mut writer = append(&path);
    writer.remove("empty").unwrap();
    writer.put("température/c/0", &[&[2; 100_000]]).unwrap();
    writer.commit().unwrap();
    others_accept(&path);
    drop(writer);

    // Other readers do not accept the tail of a killed writer, which `repair` removes.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + 1_000_000)
        .unwrap();
    container::repair(&path, &Limits::default()).unwrap();
    others_accept(&path);
    container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap();
    others_accept(&path);
}

#[test]
fn zipfile_and_unzip_accept_more_entries_than_zip_without_64_can_hold() {
    let (_folder, path) = folder();
    let mut writer = create(&path, Form::Zip);
    for n in 0..70_000 {
        writer.put(&format!("a/c/{n}"), &[b"x"]).unwrap();
    }
    writer.commit().unwrap();
    others_accept(&path);
}

/// ZIPs written by Python, with these arguments of `ZipFile` and calls.
const PYTHON: &str = r#"
import io, sys, zipfile
kind, path = sys.argv[1:]
class Stream(io.RawIOBase):
    def __init__(self, file): self.file = file
    def writable(self): return True
    def write(self, data): return self.file.write(data)
method = zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED
with open(path, "wb") as file:
    with zipfile.ZipFile(Stream(file) if kind == "streamed" else file, "w", method) as z:
        z.comment = b"PK\x05\x06 in a comment" * (3000 if kind == "comment" else 0)
        documents = zipfile.ZIP_DEFLATED if kind == "documents" else None
        z.writestr("zarr.json", b"{}", compress_type=documents)
        z.writestr("a/", b"")
        with z.open("a/c/0", "w", force_zip64=kind == "zip64") as entry:
            entry.write(bytes(range(256)) * 100)
        if kind == "unsafe":
            z.writestr("../escape", b"x")
        if kind == "twice":
            z.writestr("zarr.json", b"[]")
"#;

#[test]
fn zips_of_other_programs_are_read_compacted_and_then_written() {
    for kind in ["plain", "comment", "streamed", "zip64", "documents"] {
        let (folder, path) = folder();
        if run(
            "python3",
            &["-W", "ignore", "-c", PYTHON, kind, path.to_str().unwrap()],
        )
        .is_none()
        {
            return;
        }
        let data: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(100);
        let store = container::open(&path).unwrap();
        assert_eq!(store.keys().unwrap(), ["a/c/0", "zarr.json"], "{kind}");
        let entry = store.entry("a/c/0").unwrap().unwrap();
        let mut part = [0; 100];
        store.read_at(&entry, 300, &mut part).unwrap();
        assert_eq!(part, data[300..400], "{kind}");
        assert_eq!(content(&path)["a/c/0"], data, "{kind}");
        assert_eq!(store.usage().unwrap().commit, 0);
        try_verify(&path).unwrap();
        assert_eq!(
            container::repair(&path, &Limits::default()).unwrap(),
            container::RepairReport::default()
        );

        let error =
            container::append(&path, container::Durability::None, &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{kind}");
        container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap();
        commit(&mut *append(&path), &[("b", b"new")]);
        assert_eq!(content(&path).len(), 3);
        assert_eq!(content(&path)["a/c/0"], data, "{kind}");
        others_accept(&path);
        assert_eq!(names(folder.path()), ["run.ambar"]);
    }
}

#[test]
fn zips_that_cannot_be_read_safely_are_errors() {
    for (kind, expected) in [
        ("deflated", ErrorKind::Unsupported),
        ("unsafe", ErrorKind::Corrupt),
        ("twice", ErrorKind::Corrupt),
    ] {
        let (_folder, path) = folder();
        if run(
            "python3",
            &["-W", "ignore", "-c", PYTHON, kind, path.to_str().unwrap()],
        )
        .is_none()
        {
            return;
        }
        let before = fs::read(&path).unwrap();
        assert_eq!(
            container::open(&path).unwrap_err().kind(),
            expected,
            "{kind}"
        );
        assert_eq!(
            container::compact(&path, &Limits::default(), &|_| Ok(Vec::new()))
                .unwrap_err()
                .kind(),
            expected,
            "{kind}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_zip_of_another_program_survives_no_truncation() {
    let (_folder, path) = folder();
    if run("python3", &["-c", PYTHON, "plain", path.to_str().unwrap()]).is_none() {
        return;
    }
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for len in (0..file.metadata().unwrap().len()).rev() {
        file.set_len(len).unwrap();
        assert_eq!(
            container::open(&path).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{len}"
        );
    }
}

#[test]
fn files_that_are_not_zips_cannot_be_appended_to() {
    for content in ["", "x", "import numpy"] {
        let (_folder, path) = folder();
        fs::write(&path, content).unwrap();
        let error =
            container::append(&path, container::Durability::None, &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{content:?}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

/// A store unpacked by unzip, or written by zarr's LocalStore, without records of ambar.
#[test]
fn directories_of_other_programs_are_read_adopted_and_then_written() {
    let (_folder, path) = folder();
    fs::create_dir_all(path.join("a/c")).unwrap();
    fs::write(path.join("zarr.json"), b"{}").unwrap();
    fs::write(path.join("a/c/0"), b"data").unwrap();
    std::os::unix::fs::symlink("..", path.join("a/loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", path.join("dangling")).unwrap();
    let refused = container::open(&path).unwrap().keys().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    fs::remove_file(path.join("a/loop")).unwrap();
    fs::remove_file(path.join("dangling")).unwrap();
    let store = container::open(&path).unwrap();
    assert_eq!(store.keys().unwrap(), ["a/c/0", "zarr.json"]);
    for key in [
        "a",
        "../run.ambar/zarr.json",
        "/etc/passwd",
        "zarr.json/x",
        "",
    ] {
        assert!(store.entry(key).unwrap().is_none(), "{key}");
    }
    assert_eq!(content(&path)["a/c/0"], b"data");
    try_verify(&path).unwrap();
    assert_eq!(
        container::repair(&path, &Limits::default()).unwrap(),
        container::RepairReport::default()
    );
    let error =
        container::append(&path, container::Durability::None, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);

    container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap();
    commit(&mut *append(&path), &[("b", b"new")]);
    assert_eq!(content(&path).len(), 3);
    assert_eq!(fs::read(path.join("b")).unwrap(), b"new");
}

/// Readers that ignore the list of ambar find each entry at its key.
#[test]
fn files_of_a_directory_have_the_names_of_their_keys() {
    let (_folder, path) = folder();
    let mut writer = create(&path, Form::Directory);
    commit(
        &mut *writer,
        &[("zarr.json", b"1"), ("a/c/0", b"x"), ("gone/c/0", b"y")],
    );
    writer.remove("gone/c/0").unwrap();
    commit(&mut *writer, &[("zarr.json", b"2")]);
    assert_eq!(names(&path), [".ambar", "a", "zarr.json"]);
    assert_eq!(names(&path.join(".ambar")), ["commit", "lock"]);
    assert_eq!(fs::read(path.join("zarr.json")).unwrap(), b"2");
    assert_eq!(fs::read(path.join("a/c/0")).unwrap(), b"x");
}

#[test]
fn an_empty_folder_is_replaced_by_an_entry() {
    let (_folder, path) = folder();
    commit(&mut *create(&path, Form::Directory), &[("a", b"one")]);
    fs::create_dir_all(path.join("b/c/0")).unwrap();
    commit(&mut *append(&path), &[("b/c/0", b"two")]);
    assert_eq!(content(&path)["b/c/0"], b"two");
}
