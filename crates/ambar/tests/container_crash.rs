//! Writers that are killed at any time, and full disks.
//!
//! The writers are child processes: this program, with arguments and an environment that run one of the ignored tests.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
#![allow(clippy::print_stderr)] // the counts of a campaign

mod cases;
mod container_support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ambar::ErrorKind;
use ambar::Limits;
use ambar::container::{self, CreateOptions, Durability};
use container_support::{Form, Random, append, content, folder, names, options, try_verify};

/// The environment variable with the target of the child.
const STORE: &str = "AMBAR_TEST_STORE";
const FORM: &str = "AMBAR_TEST_FORM";
const DURABILITY: &str = "AMBAR_TEST_DURABILITY";

fn child(test: &str, path: &Path, form: Form, durability: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, path)
        .env(FORM, format!("{form:?}"))
        .env(DURABILITY, durability)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// The target from the parent; `None` without a parent.
fn target() -> Option<(PathBuf, Form, Durability)> {
    let form = match std::env::var(FORM).ok()?.as_str() {
        "Zip" => Form::Zip,
        _ => Form::Directory,
    };
    let durability = match std::env::var(DURABILITY).ok()?.as_str() {
        "full" => Durability::Full,
        _ => Durability::None,
    };
    Some((std::env::var_os(STORE)?.into(), form, durability))
}

/// Reports to the parent, in one call, so that a kill leaves a line or nothing.
fn say(line: &str) {
    std::io::stdout()
        .write_all(format!("\n@{line}\n").as_bytes())
        .unwrap();
    std::io::stdout().flush().unwrap();
}

/// The content of entry `n` of commit `round`.
fn bytes_of(round: u64, n: u64) -> Vec<u8> {
    let mut random = Random(round * 1000 + n + 1);
    let len = random.below(if n == 0 { 300_000 } else { 3000 });
    (0..len).map(|_| random.next() as u8).collect()
}

/// The content of the store after commit `round`: `a/c/n` are replaced by every commit,
/// `kept/r` by none, and `some/r` are removed by the next.
fn content_of(round: u64) -> container_support::Content {
    let mut all = container_support::Content::new();
    for n in 0..4 {
        all.insert(format!("a/c/{n}"), bytes_of(round, n));
    }
    all.insert("zarr.json".to_owned(), round.to_string().into_bytes());
    all.insert(format!("some/{round}"), bytes_of(round, 5));
    // Only the last few, so that the store stays small.
    for old in round.saturating_sub(3)..=round {
        all.insert(format!("kept/{old}"), bytes_of(old, 6));
    }
    all
}

#[test]
#[ignore = "a child of the tests that kill it"]
fn child_that_commits_forever() {
    let Some((path, form, durability)) = target() else {
        return;
    };
    let mut writer = match path.exists() {
        true => container::append(&path, durability, &Limits::default()).unwrap(),
        false => {
            let options = CreateOptions {
                durability,
                ..options(form)
            };
            container::create(&path, &options).unwrap()
        }
    };
    let mut round = match writer.reader() {
        Ok(reader) => reader.usage().unwrap().commit,
        Err(_) => 0,
    };
    let mut old = match round {
        0 => container_support::Content::new(),
        _ => content_of(round),
    };
    loop {
        round += 1;
        let new = content_of(round);
        for (key, bytes) in &new {
            if old.get(key) != Some(bytes) {
                let (a, b) = bytes.split_at(bytes.len() / 2);
                writer.put(key, &[a, b]).unwrap();
            }
        }
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            writer.remove(key).unwrap();
        }
        writer.commit().unwrap();
        say(&round.to_string());
        old = new;
    }
}

/// Lets the child run for `life` after its first report (or after its start, if it does not report), kills it, and returns
/// the last commit that it reported.
fn kill_after(mut child: Child, life: Duration, from_first_word: bool) -> Option<u64> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut last = None;
    let mut note = |line: &str| {
        if let Some(round) = line.trim_end().strip_prefix('@') {
            last = Some(round.parse().unwrap());
        }
    };
    if from_first_word {
        let mut line = String::new();
        while !line.starts_with('@') {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the child failed");
        }
        note(&line);
    }
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    // The last line may be truncated, and is ignored then.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    whole.lines().for_each(&mut note);
    last
}

fn killed_writers_leave_the_last_commit(form: Form) {
    let (folder, path) = folder();
    let mut random = Random(form as u64 + cases::seed());
    let mut known = 0;
    let wanted = cases::cases(200);
    let (mut kills, mut ahead, mut tails) = (0, 0, 0);
    while kills < wanted {
        // Each 25th store is new, so that creation is killed, too.
        if kills % 25 == 0 && path.exists() {
            match form {
                Form::Zip => fs::remove_file(&path).unwrap(),
                Form::Directory => fs::remove_dir_all(&path).unwrap(),
            }
            known = 0;
        }
        let durability = ["full", "none"][kills as usize % 2];
        let child = child("child_that_commits_forever", &path, form, durability);
        let life = Duration::from_micros(random.below(12_000));
        let reported = kill_after({ child }.spawn().unwrap(), life, kills % 3 > 0);
        known = reported.unwrap_or(known);
        kills += 1;
        if known == 0 && !path.exists() {
            continue;
        }
        let store = container::open(&path).unwrap();
        let usage = store.usage().unwrap();
        let found = usage.commit;
        assert!(
            found == known || found == known + 1,
            "reported {known}, found {found}"
        );
        assert_eq!(content(&path), content_of(found), "after {kills} kills");
        try_verify_entries(&path);
        ahead += u64::from(found > known);
        tails += u64::from(usage.dead > 0);
        known = found;
    }
    // The last writer continues, and removes the remains of its predecessors.
    let mut writer = append(&path);
    writer.put("last", &[b"word"]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    try_verify(&path).unwrap();
    assert_eq!(content(&path).len(), content_of(known).len() + 1);
    assert_eq!(names(folder.path()), ["run.ambar"]);
    eprintln!("{kills} kills, {tails} amid a commit, {ahead} between a commit and its report");
    assert!(
        tails > wanted / 10,
        "only {tails} of the kills came amid a commit"
    );
    assert!(ahead > 0, "no kill came between a commit and its report");
}

/// Verifies every entry; the records of other readers may be those of the commit in flight.
fn try_verify_entries(path: &Path) {
    let store = container::open(path).unwrap();
    for key in store.keys().unwrap() {
        store.verify(&key, &mut |_| {}).unwrap();
    }
}

#[test]
fn killed_writers_of_a_zip_leave_the_last_commit() {
    killed_writers_leave_the_last_commit(Form::Zip);
}

#[test]
fn killed_writers_of_a_directory_leave_the_last_commit() {
    killed_writers_leave_the_last_commit(Form::Directory);
}

/// Fills the disk, or the allowed file size: first with a new store, then with an existing one.
fn fill_the_disk(path: &Path, form: Form) {
    let is_full = |error: ambar::Error| {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let number = error.raw_os_error().unwrap();
        assert!([libc::ENOSPC, libc::EFBIG].contains(&number), "{error}");
    };
    let folder = path.parent().unwrap();
    let big = vec![7; 3 << 20];
    let full = CreateOptions {
        durability: Durability::Full,
        ..options(form)
    };
    for parts in [vec![&big[..]], vec![&big[..100]; 40_000]] {
        let mut writer = container::create(path, &full).unwrap();
        let result = writer.put("a/c/0", &parts).and_then(|()| writer.commit());
        is_full(result.unwrap_err());
        assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(writer.put("b", &[b"x"]).unwrap_err().kind(), ErrorKind::Io);
        drop(writer);
        assert_eq!(
            names(folder),
            [""; 0],
            "no file under the name, nor under another"
        );
    }
    let mut writer = container::create(path, &full).unwrap();
    container_support::commit(&mut *writer, &[("a/c/0", b"one"), ("zarr.json", b"{}")]);
    let before = content(path);
    is_full(writer.put("a/c/0", &[&big]).unwrap_err());
    drop(writer);
    assert_eq!(content(path), before);
    try_verify(path).unwrap();
    let mut writer = append(path);
    container_support::commit(&mut *writer, &[("b", &[1; 100_000])]);
    try_verify(path).unwrap();
    assert_eq!(content(path).len(), 3);
    assert_eq!(names(folder).len(), 1);
}

#[test]
#[ignore = "a child of the tests of full disks"]
fn child_that_may_write_small_files_only() {
    let Some((path, form, _)) = target() else {
        return;
    };
    let limit = libc::rlimit {
        rlim_cur: 1 << 20,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: both calls affect only this process, which was started for this purpose.
    unsafe {
        assert_ne!(libc::signal(libc::SIGXFSZ, libc::SIG_IGN), libc::SIG_ERR);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    fill_the_disk(&path, form);
    fail_at_every_length(&path, form, &|bytes| {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            ..limit
        };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    });
    say("done");
}

/// Writes a second commit repeatedly, with increasing limits of the file size.
fn fail_at_every_length(path: &Path, form: Form, limit: &dyn Fn(u64)) {
    let folder = path.parent().unwrap();
    let (mut failed, mut done) = (0, 0);
    for most in (0..10_000).step_by(37) {
        limit(1 << 30);
        let path = folder.join(format!("limited to {most}"));
        let mut writer = container_support::create(&path, form);
        container_support::commit(&mut *writer, &[("zarr.json", b"1"), ("a", &[1; 100])]);
        let first = content(&path);
        drop(writer);
        limit(most);
        let result = container::append(&path, Durability::Full, &Limits::default()).and_then(
            |mut writer| {
                writer.put("a", &[&[2; 2500]])?;
                writer.put("b", &[&[2; 2500]])?;
                writer.put("zarr.json", &[b"2"])?;
                writer.commit()
            },
        );
        limit(1 << 30);
        let found = content(&path);
        match result {
            Ok(()) => assert_eq!(found["zarr.json"], b"2"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EFBIG), "{error}"),
        }
        match found["zarr.json"][..] {
            [b'1'] => assert_eq!(found, first),
            _ => assert_eq!((found["a"].len(), found["b"].len()), (2500, 2500)),
        }
        failed += usize::from(found == first);
        done += usize::from(found != first);
        container_support::commit(&mut *append(&path), &[("c", b"3")]);
        try_verify(&path).unwrap();
        assert_eq!(content(&path).len(), found.len() + 1);
    }
    assert!(failed > 20 && done > 5, "{failed} failed, {done} did not");
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "a child of the tests of full disks"]
fn child_on_a_small_disk() {
    let Some((path, form, _)) = target() else {
        return;
    };
    let folder = std::ffi::CString::new(path.parent().unwrap().to_str().unwrap()).unwrap();
    // SAFETY: the calls mount a file system that only this process sees, and that ends with it; the strings live until
    // the calls return.
    let mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                std::ptr::null(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                folder.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                c"size=1m".as_ptr().cast(),
            ) == 0
    };
    if !mounted {
        say("not permitted");
        return;
    }
    fill_the_disk(&path, form);
    say("done");
}

fn run_child(test: &str, form: Form) -> String {
    let (_folder, path) = folder();
    let output = child(test, &path, form, "full").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let line = said.lines().find_map(|line| line.strip_prefix('@'));
    line.unwrap_or("nothing").to_owned()
}

#[test]
fn limits_of_file_sizes_leave_no_incomplete_store() {
    for form in [Form::Zip, Form::Directory] {
        assert_eq!(
            run_child("child_that_may_write_small_files_only", form),
            "done"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn full_disks_leave_no_incomplete_store() {
    for form in [Form::Zip, Form::Directory] {
        // Mounting needs privileges; the test of limited files covers the rest.
        let said = run_child("child_on_a_small_disk", form);
        assert!(["done", "not permitted"].contains(&said.as_str()), "{said}");
    }
}
