//! Tests of all containers: the ZIP and the directory.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod container_support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use ambar::ErrorKind;
use ambar::Limits;
use ambar::container::{self, CreateOptions, Durability};
use container_support::{
    Form, append, commit, content, create, folder, names, options, try_verify, whole,
};

fn entries_round_trip(form: Form) {
    let (_folder, path) = folder();
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7) as u8).collect();
    let mut writer = create(&path, form);
    writer.put("zarr.json", &[b"{}"]).unwrap();
    writer.put("a/c/0", &[&large[..10], &large[10..]]).unwrap();
    writer.put("a/empty", &[]).unwrap();
    writer.commit().unwrap();
    drop(writer);

    let store = container::open(&path).unwrap();
    assert_eq!(store.location(), path.to_str().unwrap());
    assert_eq!(store.keys().unwrap(), ["a/c/0", "a/empty", "zarr.json"]);
    assert_eq!(whole(&*store, "zarr.json").unwrap(), b"{}");
    assert_eq!(whole(&*store, "a/c/0").unwrap(), large);
    assert_eq!(whole(&*store, "a/empty").unwrap(), b"");
    assert_eq!(whole(&*store, "a/c/1"), None);
    assert!(store.entry("a/c").unwrap().is_none());
    let entry = store.entry("a/c/0").unwrap().unwrap();
    assert_eq!(entry.len(), large.len() as u64);
    let mut part = vec![0; 1000];
    store.read_at(&entry, 2_999_000, &mut part).unwrap();
    assert_eq!(part, large[2_999_000..]);
    let mut seen = 0;
    store.verify("a/c/0", &mut |bytes| seen += bytes).unwrap();
    assert_eq!(seen, large.len() as u64);
    try_verify(&path).unwrap();
}

fn ranges_outside_of_an_entry_are_errors(form: Form) {
    let (_folder, path) = folder();
    commit(&mut *create(&path, form), &[("a", b"0123456789")]);
    let store = container::open(&path).unwrap();
    let entry = store.entry("a").unwrap().unwrap();
    let mut part = [0; 4];
    for offset in [7, 10, 11, u64::MAX - 3, u64::MAX] {
        let error = store.read_at(&entry, offset, &mut part).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{offset}");
        assert_eq!(error.file(), path.to_str().unwrap());
    }
    let error = store.read_whole("a", 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.node(), "a");
    assert_eq!(store.read_whole("a", 10).unwrap().unwrap(), b"0123456789");
    let error = store.verify("b", &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

fn commits_replace_and_remove(form: Form) {
    let (_folder, path) = folder();
    let mut writer = create(&path, form);
    let error = writer.reader().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    commit(
        &mut *writer,
        &[("a", b"old"), ("b", b"kept"), ("c/d/e", b"removed")],
    );
    let first = container::open(&path).unwrap();
    writer.put("a", &[b"new"]).unwrap();
    writer.remove("c/d/e").unwrap();
    assert_eq!(content(&path)["a"], b"old");
    writer.commit().unwrap();
    let second = writer.reader().unwrap();
    assert_eq!(whole(&*second, "a").unwrap(), b"new");
    assert_eq!(second.keys().unwrap(), ["a", "b"]);
    assert_eq!(second.usage().unwrap().commit, 2);
    // Entries that both commits share are still read through the first.
    assert_eq!(whole(&*first, "b").unwrap(), b"kept");
    drop(writer);

    commit(&mut *append(&path), &[("d", b"third")]);
    let third = container::open(&path).unwrap();
    assert_eq!(third.keys().unwrap(), ["a", "b", "d"]);
    assert_eq!(third.usage().unwrap().commit, 3);
    try_verify(&path).unwrap();
}

/// As if the number of dimensions of an array changes, or a group becomes an array.
fn keys_change_between_files_and_folders(form: Form) {
    let (_folder, path) = folder();
    let forms: [&[&str]; 5] = [
        &["a/c/0/0", "a/c/0/1", "a/c/1/0"],
        &["a/c/0", "a/c/1"],
        &["a/c"],
        &["a/c/0/0/0"],
        &["a"],
    ];
    create(&path, form).commit().unwrap();
    for (before, after) in forms
        .iter()
        .flat_map(|one| forms.iter().map(move |other| (one, other)))
        .filter(|(before, after)| before != after)
    {
        let mut writer = append(&path);
        let gone = content(&path);
        gone.keys().for_each(|key| writer.remove(key).unwrap());
        for key in *before {
            writer.put(key, &[b"before"]).unwrap();
        }
        writer.commit().unwrap();
        drop(writer);
        let old = container::open(&path).unwrap();

        let mut writer = append(&path);
        for key in *before {
            writer.remove(key).unwrap();
        }
        for key in *after {
            writer.put(key, &[b"after"]).unwrap();
        }
        writer.commit().unwrap();
        drop(writer);
        let what = format!("{before:?} to {after:?}");
        match old.read_whole(before[0], 100) {
            Ok(bytes) => assert_eq!(bytes.unwrap(), b"before", "{what}"),
            Err(error) => {
                assert_eq!(
                    (form, error.kind()),
                    (Form::Directory, ErrorKind::Busy),
                    "{what}"
                );
            }
        }
        // Opening it for writing repeats the last steps of the commit.
        for _ in 0..2 {
            drop(append(&path));
            assert_eq!(
                content(&path).into_keys().collect::<Vec<_>>(),
                *after,
                "{what}"
            );
            assert_eq!(content(&path)[after[0]], b"after", "{what}");
        }
        assert_eq!(
            container::repair(&path, &Limits::default()).unwrap().notes,
            [""; 0],
            "{what}"
        );
        try_verify(&path).unwrap();
    }
}

fn the_last_of_several_puts_counts(form: Form) {
    let (_folder, path) = folder();
    let mut writer = create(&path, form);
    for key in ["zarr.json", "a/zarr.json"] {
        writer.put(key, &[b"first"]).unwrap();
        writer.put(key, &[b"second"]).unwrap();
    }
    for key in ["gone", "back"] {
        writer.put(key, &[b"x"]).unwrap();
        writer.remove(key).unwrap();
    }
    writer.put("back", &[b"again"]).unwrap();
    writer.remove("never there").unwrap();
    writer.commit().unwrap();
    let found = content(&path);
    assert_eq!(found["zarr.json"], b"second");
    assert_eq!(found["a/zarr.json"], b"second");
    assert_eq!(found["back"], b"again");
    assert_eq!(found.len(), 3);

    writer.remove("zarr.json").unwrap();
    writer.commit().unwrap();
    assert!(!content(&path).contains_key("zarr.json"));
    drop(writer);
    append(&path)
        .put("zarr.json", &[b"never committed"])
        .unwrap();
    assert!(!content(&path).contains_key("zarr.json"));
}

fn a_commit_without_changes_has_no_effect(form: Form) {
    let (_folder, path) = folder();
    let mut writer = create(&path, form);
    writer.commit().unwrap();
    assert!(content(&path).is_empty());
    writer.commit().unwrap();
    writer.remove("a").unwrap();
    writer.commit().unwrap();
    drop(writer);
    append(&path).commit().unwrap();
    let usage = container::open(&path).unwrap().usage().unwrap();
    assert_eq!((usage.commit, usage.entries), (1, 0));
}

fn dropped_writers_leave_the_last_commit(form: Form) {
    let (folder, path) = folder();
    let mut writer = create(&path, form);
    writer.put("a", &[&[7; 100_000]]).unwrap();
    assert!(!path.exists(), "nothing is seen before the commit");
    drop(writer);
    assert_eq!(names(folder.path()), [""; 0]);

    commit(&mut *create(&path, form), &[("a", b"one")]);
    let before = container::open(&path).unwrap().usage().unwrap();
    let mut writer = append(&path);
    writer.put("a", &[&[7; 3_000_000]]).unwrap();
    writer.put("b", &[&[7; 10]]).unwrap();
    drop(writer);
    assert_eq!(container::open(&path).unwrap().usage().unwrap(), before);
    assert_eq!(content(&path)["a"], b"one");
    assert_eq!(names(folder.path()), ["run.ambar"]);
}

fn names_are_taken_unless_overwritten(form: Form) {
    let (folder, path) = folder();
    commit(&mut *create(&path, form), &[("a", b"one"), ("b", b"x")]);
    let error = container::create(&path, &options(form)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let overwrite = CreateOptions {
        overwrite: true,
        durability: Durability::Full,
        ..options(form)
    };
    let mut writer = container::create(&path, &overwrite).unwrap();
    writer.put("a", &[b"two"]).unwrap();
    assert_eq!(content(&path)["a"], b"one");
    writer.commit().unwrap();
    assert_eq!(content(&path).len(), 1);
    assert_eq!(content(&path)["a"], b"two");
    commit(&mut *writer, &[("c", b"three")]);
    assert_eq!(content(&path).len(), 2);
    assert_eq!(names(folder.path()), ["run.ambar"]);

    let other = CreateOptions {
        directory: form == Form::Zip,
        ..overwrite
    };
    drop(writer);
    let error = container::create(&path, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

fn a_file_created_meanwhile_is_not_overwritten(form: Form) {
    let (folder, path) = folder();
    let mut writer = create(&path, form);
    writer.put("a", &[b"one"]).unwrap();
    fs::write(&path, b"another program's").unwrap();
    let error = writer.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::Io);
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"another program's");
    assert_eq!(names(folder.path()), ["run.ambar"]);
}

fn a_second_writer_is_refused(form: Form) {
    let (_folder, path) = folder();
    let busy = |error: ambar::Error| assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let mut writer = create(&path, form);
    busy(container::create(&path, &options(form)).unwrap_err());
    commit(&mut *writer, &[("a", b"one")]);
    let overwrite = CreateOptions {
        overwrite: true,
        ..options(form)
    };
    for _ in 0..2 {
        busy(container::append(&path, Durability::Full, &Limits::default()).unwrap_err());
        busy(container::create(&path, &overwrite).unwrap_err());
        busy(container::repair(&path, &Limits::default()).unwrap_err());
        busy(container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap_err());
        drop(writer);
        writer = append(&path);
    }
    commit(&mut *writer, &[("b", b"two")]);
    assert_eq!(content(&path).len(), 2);
    let mut replacing = {
        drop(writer);
        container::create(&path, &overwrite).unwrap()
    };
    busy(container::append(&path, Durability::Full, &Limits::default()).unwrap_err());
    commit(&mut *replacing, &[("c", b"three")]);
    busy(container::append(&path, Durability::Full, &Limits::default()).unwrap_err());
}

fn bad_keys_are_refused_and_do_no_harm(form: Form) {
    let (_folder, path) = folder();
    let mut writer = create(&path, form);
    for key in ["", "/a", "a/../b", "a//b", "a\0", ".ambar/commit"] {
        let error = writer.put(key, &[b"x"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{key:?}");
        assert_eq!(writer.remove(key).unwrap_err().kind(), ErrorKind::Invalid);
    }
    commit(&mut *writer, &[("a", b"one")]);
    assert_eq!(content(&path).len(), 1);
}

fn missing_entries_are_not_found(form: Form) {
    let (folder, path) = folder();
    let not_found = |error: ambar::Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    not_found(container::open(&path).unwrap_err());
    not_found(container::append(&path, Durability::Full, &Limits::default()).unwrap_err());
    not_found(container::repair(&path, &Limits::default()).unwrap_err());
    not_found(container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap_err());
    let nowhere = folder.path().join("no such folder/run.ambar");
    not_found(container::create(&nowhere, &options(form)).unwrap_err());
    assert_eq!(names(folder.path()), [""; 0]);
}

fn compaction_leaves_only_live_entries(form: Form) {
    let (folder, path) = folder();
    let mut writer = create(&path, form);
    for round in 0..5u8 {
        let large = vec![round; 50_000];
        commit(&mut *writer, &[("a/c/0", &large), ("zarr.json", &[round])]);
    }
    writer.remove("zarr.json").unwrap();
    writer.put("zarr.json", &[b"last"]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let before = content(&path);
    let compacted = container::compact(&path, &Limits::default(), &|_| Ok(Vec::new())).unwrap();
    assert_eq!(content(&path), before);
    try_verify(&path).unwrap();
    let usage = container::open(&path).unwrap().usage().unwrap();
    assert_eq!((usage.dead, usage.total), (0, compacted.after));
    assert!(compacted.after <= compacted.before);
    assert!(compacted.after < 60_000, "{compacted:?}");
    assert_eq!(names(folder.path()), ["run.ambar"]);
    commit(&mut *append(&path), &[("b", b"later")]);
    assert_eq!(content(&path).len(), 3);
}

fn an_undamaged_container_needs_no_repair(form: Form) {
    let (_folder, path) = folder();
    let mut writer = create(&path, form);
    commit(&mut *writer, &[("a", b"one"), ("zarr.json", b"{}")]);
    commit(&mut *writer, &[("a", b"two")]);
    drop(writer);
    let before = content(&path);
    let repaired = container::repair(&path, &Limits::default()).unwrap();
    assert_eq!((repaired.commit, repaired.cut), (2, 0));
    assert_eq!(repaired.notes, [""; 0]);
    assert_eq!(content(&path), before);
}

fn many_entries_in_many_folders(form: Form) {
    let (_folder, path) = folder();
    let mut writer = container::create(
        &path,
        &CreateOptions {
            durability: Durability::Full,
            ..options(form)
        },
    )
    .unwrap();
    let key = |n: usize| format!("group/array {n}/c/{}/{}", n % 7, n % 3);
    for n in 0..300 {
        writer.put(&key(n), &[n.to_string().as_bytes()]).unwrap();
    }
    writer.commit().unwrap();
    let store = container::open(&path).unwrap();
    for n in (0..300).rev() {
        assert_eq!(whole(&*store, &key(n)).unwrap(), n.to_string().as_bytes());
    }
    assert_eq!(store.usage().unwrap().entries, 300);
}

/// All entries of a commit hold its number, so that a reader can check that they are of one commit.
fn readers_see_whole_commits_while_a_writer_writes(form: Form) {
    let (_folder, path) = folder();
    let put_all = |writer: &mut dyn container::ContainerWriter, round: u32| {
        for key in ["zarr.json", "a", "b/c/0"] {
            let bytes = round.to_le_bytes().repeat(1000);
            writer.put(key, &[&bytes]).unwrap();
        }
        writer.commit().unwrap();
    };
    let mut writer = create(&path, form);
    put_all(&mut *writer, 0);
    let done = AtomicBool::new(false);
    let look = || {
        let mut looks = 0;
        let mut last = 0;
        while !done.load(Ordering::Relaxed) || looks == 0 {
            let store = container::open(&path).unwrap();
            let round = store.usage().unwrap().commit as u32 - 1;
            assert!(round >= last, "commits do not go backwards");
            last = round;
            for key in store.keys().unwrap() {
                match store.read_whole(&key, 1 << 20) {
                    Ok(bytes) => assert_eq!(bytes.unwrap(), round.to_le_bytes().repeat(1000)),
                    // Only in a directory can a later commit replace the entries meanwhile.
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                        assert_eq!(form, Form::Directory);
                    }
                }
            }
            looks += 1;
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(look), scope.spawn(look)];
        for round in 1..300 {
            put_all(&mut *writer, round);
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod zip {
            $(#[test] fn $name() { super::$name(super::Form::Zip) })*
        }
        mod directory {
            $(#[test] fn $name() { super::$name(super::Form::Directory) })*
        }
    };
}

suite!(
    entries_round_trip,
    ranges_outside_of_an_entry_are_errors,
    commits_replace_and_remove,
    keys_change_between_files_and_folders,
    the_last_of_several_puts_counts,
    a_commit_without_changes_has_no_effect,
    dropped_writers_leave_the_last_commit,
    names_are_taken_unless_overwritten,
    a_file_created_meanwhile_is_not_overwritten,
    a_second_writer_is_refused,
    bad_keys_are_refused_and_do_no_harm,
    missing_entries_are_not_found,
    compaction_leaves_only_live_entries,
    an_undamaged_container_needs_no_repair,
    many_entries_in_many_folders,
    readers_see_whole_commits_while_a_writer_writes,
);
