//! Damaged containers: `repair`, `compact`, and the next writer.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod container_support;

use std::fs::{self, OpenOptions};

use ambar::ErrorKind;
use ambar::Limits;
use ambar::container;
use container_support::{
    Form, SLOTS, append, commit, content, create, folder, overwrite, three_commits, try_content,
    try_verify,
};

#[test]
fn damaged_slots_are_restored_by_the_next_writer() {
    for damaged in SLOTS {
        let (_folder, path) = folder();
        three_commits(&path, Form::Zip);
        let expected = content(&path);
        overwrite(&path, damaged + 20, &[0xff; 8]);
        assert_eq!(content(&path), expected);
        assert_eq!(try_verify(&path).unwrap_err().kind(), ErrorKind::Corrupt);
        drop(append(&path));
        try_verify(&path).unwrap();
        assert_eq!(content(&path), expected);
    }
}

#[test]
fn repair_restores_undamaged_entries() {
    let mut damages: Vec<(&str, Vec<(u64, usize)>)> = vec![
        ("the first slot", vec![(SLOTS[0], 64)]),
        ("the second slot", vec![(SLOTS[1], 64)]),
        ("both slots", vec![(SLOTS[0], 64), (SLOTS[1], 64)]),
        ("the local header's signature", vec![(0, 4)]),
        (
            "all of the header but the slots",
            vec![(0, 512), (1088, 300)],
        ),
        ("all of the header", vec![(0, 1600)]),
    ];
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let expected = content(&path);
    let sound = fs::read(&path).unwrap();
    damages.push(("the trailer", vec![(sound.len() as u64 - 100, 90)]));
    for (what, places) in damages {
        for tail in [&b""[..], b"left behind"] {
            if what == "the trailer" && !tail.is_empty() {
                continue;
            }
            fs::write(&path, [&sound, tail].concat()).unwrap();
            for (offset, len) in &places {
                overwrite(&path, *offset, &vec![0xaa; *len]);
            }
            assert!(try_verify(&path).is_err(), "{what}");
            let repaired = container::repair(&path, &Limits::default()).unwrap();
            assert_eq!(
                (repaired.commit, repaired.cut),
                (3, tail.len() as u64),
                "{what}"
            );
            assert!(!repaired.notes.is_empty(), "{what}");
            try_verify(&path).unwrap();
            assert_eq!(content(&path), expected, "{what}");
            assert_eq!(fs::metadata(&path).unwrap().len(), sound.len() as u64);
        }
    }
}

#[test]
fn repair_does_not_restore_an_older_commit() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    // The central directory is directly before the trailer. It is restored from the record, which is damaged, too.
    let bytes = fs::read(&path).unwrap();
    overwrite(&path, bytes.len() as u64 - 250, &[0xaa; 8]);
    let record = bytes.windows(8).rposition(|part| part == b"ambarlog");
    overwrite(&path, record.unwrap() as u64 + 16, &[0xaa; 8]);
    let before = fs::read(&path).unwrap();
    assert_eq!(
        container::repair(&path, &Limits::default())
            .unwrap_err()
            .kind(),
        ErrorKind::Corrupt
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// The reader of such a file advises `ambar repair`.
#[test]
fn repair_does_not_advise_itself() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    let advice = try_content(&path).unwrap_err().to_string();
    assert!(
        advice.ends_with("let `ambar repair` restore the header"),
        "{advice}"
    );
    let error = container::repair(&path, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error
            .to_string()
            .ends_with("; restore the file from a copy"),
        "{error}"
    );
}

#[test]
fn a_directory_that_another_program_changed_is_repaired_on_request() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Directory);
    fs::write(path.join("c"), b"changed").unwrap();
    fs::create_dir(path.join("new")).unwrap();
    fs::write(path.join("new/zarr.json"), b"{}").unwrap();
    assert_eq!(try_content(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    let repaired = container::repair(&path, &Limits::default()).unwrap();
    assert_eq!((repaired.commit, repaired.notes.len()), (4, 2));
    assert_eq!(content(&path)["c"], b"changed");
    assert_eq!(content(&path)["new/zarr.json"], b"{}");

    fs::remove_file(path.join(".ambar/commit")).unwrap();
    assert_eq!(try_content(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    container::repair(&path, &Limits::default()).unwrap();
    assert_eq!(content(&path).len(), 4);

    fs::remove_file(path.join("c")).unwrap();
    let error = container::repair(&path, &Limits::default()).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Corrupt, "c"));
}

#[test]
fn compaction_of_a_damaged_container_leaves_it_unchanged() {
    let (folder, path) = folder();
    commit(
        &mut *create(&path, Form::Zip),
        &[("a", &[1; 1000]), ("b", &[2; 1000])],
    );
    overwrite(&path, 2500, &[9]);
    let before = fs::read(&path).unwrap();
    let error = container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(container_support::names(folder.path()), ["run.ambar"]);
}
