//! Damaged, truncated and extended containers: an error, or the original content, never that of an older commit.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod container_support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ambar::ErrorKind;
use ambar::Limits;
use ambar::container;
use container_support::{
    Content, Form, Random, SLOTS, append, commit, content, create, folder, three_commits,
    try_content, try_verify,
};

/// Whether reading a container is an error, which must be of a suitable kind. Otherwise the content must be as expected.
fn is_error_or(path: &Path, expected: &Content, what: &str) -> bool {
    match try_content(path) {
        Ok(found) => {
            assert_eq!(&found, expected, "{what}");
            false
        }
        Err(error) => {
            let expected = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Limit];
            assert!(expected.contains(&error.kind()), "{what}: {error:?}");
            true
        }
    }
}

/// Flips each bit of a file, and calls `check` for each flip.
fn for_each_bit(victim: &Path, mut check: impl FnMut(&str)) {
    let bytes = fs::read(victim).unwrap();
    let file = OpenOptions::new().write(true).open(victim).unwrap();
    for bit in 0..bytes.len() * 8 {
        let at = bit / 8;
        file.write_all_at(&[bytes[at] ^ 1 << (bit % 8)], at as u64)
            .unwrap();
        check(&format!("bit {bit} of {}", victim.display()));
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
}

#[test]
fn no_flipped_bit_of_a_zip_gives_other_content() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let expected = content(&path);
    let mut errors = 0;
    for_each_bit(&path, |what| {
        errors += usize::from(is_error_or(&path, &expected, what))
    });
    assert!(errors > 10_000, "only {errors} were errors");
}

#[test]
fn no_flipped_bit_of_a_zip_with_a_dead_tail_gives_other_content() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let expected = content(&path);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(b"left behind", end).unwrap();
    for_each_bit(&path, |what| {
        is_error_or(&path, &expected, what);
    });
}

#[test]
fn verifying_finds_every_flipped_bit_of_a_zip_without_dead_bytes() {
    let (_folder, path) = folder();
    let entries: [(&str, &[u8]); 3] = [("a/c/0", b"data"), ("zarr.json", b"{}"), ("b", b"")];
    commit(&mut *create(&path, Form::Zip), &entries);
    try_verify(&path).unwrap();
    for_each_bit(&path, |what| assert!(try_verify(&path).is_err(), "{what}"));
}

/// All files of a directory store, including those in `.ambar`.
fn files_of(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn verifying_finds_every_flipped_bit_of_a_directory() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Directory);
    let expected = content(&path);
    for file in files_of(&path) {
        for_each_bit(&file, |what| {
            assert!(is_error_or(&path, &expected, what), "{what}");
            assert!(try_verify(&path).is_err(), "{what}");
        });
    }
    assert_eq!(content(&path), expected);
}

#[test]
fn a_truncated_zip_is_restored_or_an_error() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let bytes = fs::read(&path).unwrap();
    let expected_content = content(&path);
    let mut restored = 0;
    for len in 0..bytes.len() {
        fs::write(&path, &bytes[..len]).unwrap();
        let error = match container::open(&path) {
            Ok(_) => {
                // The record of the commit is there, which restores its tail.
                assert_eq!(content(&path), expected_content, "{len} bytes");
                restored += 1;
                continue;
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{len} bytes");
        let error =
            container::append(&path, container::Durability::None, &Limits::default()).unwrap_err();
        let expected = [ErrorKind::Corrupt, ErrorKind::Unsupported];
        assert!(expected.contains(&error.kind()), "{len} bytes: {error}");
        assert_eq!(fs::read(&path).unwrap(), bytes[..len], "nothing is changed");
    }
    assert!((100..1000).contains(&restored), "{restored}");
}

#[test]
fn every_truncation_of_a_directory_is_an_error() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Directory);
    for file in files_of(&path) {
        let bytes = fs::read(&file).unwrap();
        for len in 0..bytes.len() {
            fs::write(&file, &bytes[..len]).unwrap();
            let error = try_content(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{len} bytes");
        }
        fs::write(&file, &bytes).unwrap();
        if !bytes.is_empty() {
            fs::remove_file(&file).unwrap();
            let error = try_content(&path).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Corrupt,
                "{} is missing",
                file.display()
            );
            fs::write(&file, &bytes).unwrap();
        }
    }
    try_content(&path).unwrap();
}

#[test]
fn a_zip_truncated_while_it_is_open_is_an_error() {
    let (_folder, path) = folder();
    commit(
        &mut *create(&path, Form::Zip),
        &[("a", &[1; 10_000]), ("b", &[2; 10_000])],
    );
    let store = container::open(&path).unwrap();
    let entry = store.entry("b").unwrap().unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(15_000).unwrap();
    let mut out = vec![0; 10_000];
    let error = store.read_at(&entry, 0, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("cut short"), "{error}");
    assert_eq!(
        store.read_whole("a", 1 << 20).unwrap().unwrap(),
        [1; 10_000]
    );
}

#[test]
fn a_dead_tail_of_gigabytes_costs_nothing_and_is_cut_off() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let expected = content(&path);
    let end = fs::metadata(&path).unwrap().len();
    let bytes = fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(end + (5 << 30)).unwrap();
    // A killed writer may have written a central directory, too, but no slot.
    file.write_all_at(&bytes, end + (3 << 30)).unwrap();

    let quickest = quickest(|| assert_eq!(content(&path), expected));
    assert!(quickest < Duration::from_millis(10), "{quickest:?}");
    let usage = container::open(&path).unwrap().usage().unwrap();
    assert!(usage.dead > 5 << 30);

    let repaired = container::repair(&path, &Limits::default()).unwrap();
    assert_eq!((repaired.commit, repaired.cut), (3, 5 << 30));
    assert_eq!(fs::metadata(&path).unwrap().len(), end);

    file.set_len(end + (5 << 30)).unwrap();
    commit(&mut *append(&path), &[("d", b"fourth")]);
    assert!(fs::metadata(&path).unwrap().len() < end + 2000);
    assert_eq!(content(&path).len(), expected.len() + 1);
}

#[test]
fn twenty_thousand_entries_open_in_ten_milliseconds() {
    let (_folder, path) = folder();
    let mut writer = create(&path, Form::Zip);
    for n in 0..20_000 {
        let key = format!("collection/dataset_{n:05}/temperature/c/0");
        writer.put(&key, &[b"0123456789abcdef"]).unwrap();
    }
    writer.commit().unwrap();
    let quickest = quickest(|| {
        container::open(&path).unwrap();
    });
    assert!(quickest < Duration::from_millis(10), "{quickest:?}");
}

/// The least processor time of several runs, which other processes disturb least.
fn quickest(mut run: impl FnMut()) -> Duration {
    let times = (0..20).map(|_| {
        let start = processor_time();
        run();
        processor_time() - start
    });
    times.min().unwrap()
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time` only, which lives until it returns.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A loss of power can leave any of the sectors that a commit writes before the first fsync, and any part of the slot that
/// it writes after that.
#[test]
fn a_loss_of_power_leaves_the_previous_commit_or_this_one() {
    let (_folder, path) = folder();
    three_commits(&path, Form::Zip);
    let (old, old_content) = (fs::read(&path).unwrap(), content(&path));
    let large = vec![5; 3000];
    commit(
        &mut *append(&path),
        &[("a/c/0", &large), ("zarr.json", b"{\"a\": 4}")],
    );
    let (new, new_content) = (fs::read(&path).unwrap(), content(&path));

    let mut random = Random(1);
    for _ in 0..2000 {
        let len = old.len() + random.below((new.len() - old.len()) as u64 + 1) as usize;
        let mut left = [&old[..], &vec![0; len - old.len()]].concat();
        for start in (0..len).step_by(512) {
            if random.below(2) == 0 {
                let range = start.max(old.len())..(start + 512).clamp(old.len(), len);
                left[range.clone()].copy_from_slice(&new[range]);
            }
        }
        fs::write(&path, left).unwrap();
        assert_eq!(content(&path), old_content);
    }
    let slot = SLOTS[0] as usize..SLOTS[0] as usize + 64;
    for cut in 0..=64 {
        for new_first in [true, false] {
            let mut left = new.clone();
            left[slot.clone()].copy_from_slice(&old[slot.clone()]);
            let range = match new_first {
                true => slot.start..slot.start + cut,
                false => slot.start + cut..slot.end,
            };
            left[range.clone()].copy_from_slice(&new[range]);
            fs::write(&path, left).unwrap();
            let found = content(&path);
            assert!(found == new_content || found == old_content, "cut at {cut}");
            drop(append(&path));
            try_verify(&path).unwrap();
            assert_eq!(content(&path), found, "cut at {cut}");
        }
    }
}

#[test]
fn random_damage_is_an_error_or_harmless() {
    for form in [Form::Zip, Form::Directory] {
        let (_folder, path) = folder();
        three_commits(&path, form);
        let expected = content(&path);
        let victims = match form {
            Form::Zip => vec![path.clone()],
            Form::Directory => files_of(&path),
        };
        let mut random = Random(7);
        for victim in victims {
            let sound = fs::read(&victim).unwrap();
            for _ in 0..400 {
                let mut bytes = sound.clone();
                damage(&mut bytes, &mut random);
                fs::write(&victim, &bytes).unwrap();
                is_error_or(&path, &expected, "random damage");
            }
            fs::write(&victim, &sound).unwrap();
        }
    }
}

/// Overwrites, moves, cuts out or doubles a random range of `bytes`.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let len = bytes.len() as u64 + 1;
    let (a, b) = (random.below(len) as usize, random.below(len) as usize);
    let range = a.min(b)..a.max(b);
    match random.below(4) {
        0 => bytes[range]
            .iter_mut()
            .for_each(|byte| *byte = random.next() as u8),
        1 => bytes[range].rotate_left(usize::from(a != b)),
        2 => drop(bytes.drain(range)),
        _ => {
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, copy);
        }
    }
}

#[test]
fn files_that_are_not_stores_are_errors() {
    let (folder, path) = folder();
    for bytes in [&b""[..], b"PK\x03\x04", b"not a store at all", &[0; 5000]] {
        fs::write(&path, bytes).unwrap();
        let error = container::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(error.file(), path.to_str().unwrap());
        assert!(container::repair(&path, &Limits::default()).is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let error = container::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// The temporary folder of a directory is cleared: it must not be a link to another folder.
#[test]
fn a_link_with_the_temporary_name_is_not_followed() {
    let (folder, path) = folder();
    let precious = folder.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), b"x").unwrap();
    for (ending, form) in [("-folder", Form::Directory), ("", Form::Zip)] {
        let link = folder.path().join(format!(".run.ambar.ambar-new{ending}"));
        let target = match form {
            Form::Zip => precious.join("data"),
            Form::Directory => precious.clone(),
        };
        std::os::unix::fs::symlink(target, &link).unwrap();
        let error = container::create(&path, &container_support::options(form)).unwrap_err();
        assert_eq!(error.file(), path.display().to_string());
        let name = format!(".run.ambar.ambar-new{ending}: ");
        assert!(error.message().starts_with(&name), "{error}");
        assert_eq!(fs::read(precious.join("data")).unwrap(), b"x");
        assert_eq!(container_support::names(&precious), ["data"]);
    }
}
