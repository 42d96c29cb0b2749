//! Tests of directories of objects: with faults at every request, and with several writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::directory;
use super::super::{Container, ContainerWriter, CreateOptions, EntryPutter, NewEntry};
use super::prefix::PrefixReader;
use super::prefix_writer::PrefixWriter;
use super::recording_store::{Fault, RecordingStore};
use super::service::Service;
use super::task_entries::{self, TaskEntries};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

const BASE: &str = "some/run";

fn service(store: &Arc<RecordingStore>) -> Arc<Service> {
    let store = Arc::clone(store);
    Arc::new(Service::of(store, BASE, &format!("s3://bucket/{BASE}")))
}

fn create(store: &Arc<RecordingStore>, overwrite: bool) -> Result<PrefixWriter> {
    let options = CreateOptions {
        overwrite,
        ..CreateOptions::default()
    };
    PrefixWriter::create(service(store), &options)
}

fn append(store: &Arc<RecordingStore>) -> Result<PrefixWriter> {
    PrefixWriter::append(service(store), &Limits::default())
}

fn open(store: &Arc<RecordingStore>) -> Result<PrefixReader> {
    PrefixReader::open(service(store), &Limits::default())
}

type Content = BTreeMap<String, Vec<u8>>;

/// The content of a container, or the first error.
fn content(container: &dyn Container) -> Result<Content> {
    let keys = container.keys()?.into_iter();
    let read = |key: String| {
        container.verify(&key, &mut |_| {})?;
        let bytes = container.read_whole(&key, u64::MAX)?;
        let missing = || Error::corrupt("an entry is missing");
        Ok((key, bytes.ok_or_else(missing)?))
    };
    keys.map(read).collect()
}

/// Changes that make `state` the content of the store.
fn write(writer: &mut dyn ContainerWriter, state: &Content, last: &Content) -> Result<()> {
    for (key, bytes) in state
        .iter()
        .filter(|(key, bytes)| last.get(*key) != Some(bytes))
    {
        writer.put_sealed(key, &[bytes], Some(bytes.len() as u32))?;
    }
    for key in last.keys().filter(|key| !state.contains_key(*key)) {
        writer.remove(key)?;
    }
    writer.commit()
}

/// As `write`; two tasks put the entries.
fn write_by_tasks(
    writer: PrefixWriter,
    store: &Arc<RecordingStore>,
    state: &Content,
    last: &Content,
) -> Result<()> {
    let mut writer = writer.shared_at("s3://bucket/some/run/", &BTreeMap::new());
    let info = writer.share_objects(&["a", "b", "d"])?.unwrap();
    let mut entries = Vec::new();
    for number in 0..2 {
        let mut task = TaskEntries::join(service(store), info.clone())?;
        task.check()?;
        let keys = state.keys().filter(|key| *key != "zarr.json");
        for key in keys.skip(number).step_by(2) {
            let entry = NewEntry {
                key: key.clone(),
                parts: vec![(&state[key][..]).into()],
                seal: Some(state[key].len() as u32),
            };
            task.put(entry, 0)?;
        }
        entries.extend(task.finish()?);
    }
    task_entries::end(&service(store), &info)?;
    writer.adopt(entries, 0)?;
    writer.put("zarr.json", &[&state["zarr.json"]])?;
    for key in last.keys().filter(|key| !state.contains_key(*key)) {
        writer.remove(key)?;
    }
    writer.commit()
}

fn state(text: &str, keys: &[&str]) -> Content {
    let entry = |key: &&str| ((*key).to_owned(), format!("{text} {key}").into_bytes());
    keys.iter().map(entry).collect()
}

fn states() -> [Content; 3] {
    [
        state("first", &["a/c/0", "a/c/1", "b/c/0", "zarr.json"]),
        state("second", &["a/c/0", "a/c/2", "d/c/0", "zarr.json"]),
        state(
            "third",
            &["a/c/0", "a/c/1", "a/c/2", "e/zarr.json", "zarr.json"],
        ),
    ]
}

#[test]
fn commits_are_read_with_two_requests_and_are_plain_objects() {
    let store = Arc::new(RecordingStore::default());
    let mut last = Content::new();
    let mut writer = create(&store, false).unwrap();
    assert_eq!(writer.reader().unwrap_err().kind(), ErrorKind::Invalid);
    for (number, state) in (1..).zip(states()) {
        write(&mut writer, &state, &last).unwrap();
        assert_eq!(content(&*writer.reader().unwrap()).unwrap(), state);
        store.take();
        let found = open(&store).unwrap();
        let root = found.read_whole("zarr.json", 100).unwrap().unwrap();
        assert_eq!(root, state["zarr.json"]);
        let requests = store.take();
        assert_eq!(requests.len(), 2, "{requests:?}");
        assert_eq!(content(&found).unwrap(), state);
        assert_eq!(found.usage().unwrap().commit, number);
        let entry = found.entry("a/c/0").unwrap().unwrap();
        assert_eq!(entry.seal(), Some(entry.len() as u32));
        // Readers of other programs find all entries at their keys.
        for (key, bytes) in &state {
            assert_eq!(
                &store.object(&format!("{BASE}/{key}")).unwrap(),
                bytes,
                "{key}"
            );
        }
        last = state;
    }
    drop(writer);
    assert_eq!(create(&store, false).unwrap_err().kind(), ErrorKind::Exists);
    let mut writer = append(&store).unwrap();
    assert_eq!(
        writer.read_back("a/c/1", 100).unwrap().unwrap(),
        last["a/c/1"]
    );
    writer.put("new/c/0", &[b"new"]).unwrap();
    writer.put("a/c/1", &[b"one"]).unwrap();
    writer.put("a/c/1", &[b"two"]).unwrap();
    assert_eq!(writer.read_back("a/c/1", 100).unwrap().unwrap(), b"two");
    assert_eq!(writer.read_back("new/c/0", 100).unwrap().unwrap(), b"new");
    assert_eq!(writer.read_back("none", 100).unwrap(), None);
    drop(writer);
    assert_eq!(content(&open(&store).unwrap()).unwrap(), last);
    let mut writer = create(&store, true).unwrap();
    write(&mut writer, &states()[0], &Content::new()).unwrap();
    assert_eq!(content(&open(&store).unwrap()).unwrap(), states()[0]);
}

#[test]
fn a_second_writer_repeats_its_changes() {
    let store = Arc::new(RecordingStore::default());
    let [first, second, third] = states();
    // Two writers of a new store.
    let (mut one, mut two) = (
        create(&store, false).unwrap(),
        create(&store, false).unwrap(),
    );
    write(&mut one, &first, &Content::new()).unwrap();
    let error = write(&mut two, &second, &Content::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(
        error
            .to_string()
            .contains("s3://bucket/some/run: another writer"),
        "{error}"
    );
    assert_eq!(two.put("x", &[b"1"]).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(content(&open(&store).unwrap()).unwrap(), first);
    drop((one, two));
    // Two writers of an existing one, of which the later one has put its entries first.
    let (mut one, mut two) = (append(&store).unwrap(), append(&store).unwrap());
    for (key, bytes) in &second {
        two.put(key, &[bytes]).unwrap();
    }
    two.read_back("zarr.json", 100).unwrap();
    write(&mut one, &third, &first).unwrap();
    assert_eq!(two.commit().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(content(&open(&store).unwrap()).unwrap(), third);
    let mut two = append(&store).unwrap();
    write(&mut two, &second, &third).unwrap();
    assert_eq!(content(&open(&store).unwrap()).unwrap(), second);
    let error = write(&mut one, &first, &third).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
}

#[test]
fn readers_of_earlier_commits_read_them_or_are_refused() {
    let store = Arc::new(RecordingStore::default());
    let states = states();
    let mut writer = create(&store, false).unwrap();
    write(&mut writer, &states[0], &Content::new()).unwrap();
    let mut readers = vec![(open(&store).unwrap(), states[0].clone())];
    for number in 1..6 {
        let (last, next) = (&states[(number - 1) % 3], &states[number % 3]);
        write(&mut writer, next, last).unwrap();
        readers.push((open(&store).unwrap(), next.clone()));
        for (reader, expected) in &readers {
            for (key, bytes) in expected {
                match reader.read_whole(key, 100) {
                    Ok(found) => assert_eq!(&found.unwrap(), bytes, "{key}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
                }
            }
        }
    }
}

#[test]
fn requests_are_repeated_if_the_connection_breaks() {
    let [_, state, _] = states();
    let mut repeated = Vec::new();
    for count in 0.. {
        let store = Arc::new(RecordingStore::default());
        store.fail_after(count, Fault::Interrupted);
        let writer = create(&store, false);
        let result =
            writer.and_then(|writer| write_by_tasks(writer, &store, &state, &Content::new()));
        if !store.heal() {
            break;
        }
        let mut requests = store.take().into_iter().filter(|request| request != "list");
        let broken = requests.nth(count).unwrap();
        let kind = broken.rsplit(' ').next().unwrap().to_owned();
        if ["create", "update", "delete"].contains(&&*kind) {
            result.unwrap_or_else(|error| panic!("{broken}: {error}"));
            assert_eq!(content(&open(&store).unwrap()).unwrap(), state, "{broken}");
            repeated.push(kind);
        }
    }
    for kind in ["create", "update", "delete"] {
        assert!(repeated.iter().any(|found| found == kind), "{repeated:?}");
    }
}

#[test]
fn a_fault_at_every_request_leaves_the_old_or_the_new_commit() {
    let [first, second, third] = states();
    for (is_new, has_tasks) in [(true, false), (false, false), (true, true), (false, true)] {
        for fault in [Fault::Refused, Fault::Lost, Fault::Dead] {
            let mut faults = 0;
            for count in 0.. {
                let store = Arc::new(RecordingStore::default());
                let mut old = Content::new();
                if !is_new {
                    let mut writer = create(&store, false).unwrap();
                    write(&mut writer, &first, &old).unwrap();
                    old = first.clone();
                }
                store.fail_after(count, fault);
                let writer = match is_new {
                    true => create(&store, false),
                    false => append(&store),
                };
                let result = writer.and_then(|mut writer| match has_tasks {
                    true => write_by_tasks(writer, &store, &second, &old),
                    false => write(&mut writer, &second, &old),
                });
                let has_failed = store.heal();
                let what = format!("{is_new} {has_tasks} {fault:?} {count}: {result:?}");
                let found = match open(&store) {
                    Ok(found) => content(&found).unwrap(),
                    Err(error) => {
                        assert!(
                            is_new && error.kind() == ErrorKind::NotFound,
                            "{what}: {error}"
                        );
                        Content::new()
                    }
                };
                match &result {
                    Ok(()) => assert_eq!(found, second, "{what}"),
                    Err(_) => assert!(found == old || found == second, "{what}"),
                }
                // The next writer goes on from there.
                let mut next = match found.is_empty() {
                    true => create(&store, false).unwrap(),
                    false => append(&store).unwrap(),
                };
                write(&mut next, &third, &found).unwrap();
                assert_eq!(content(&open(&store).unwrap()).unwrap(), third, "{what}");
                for (key, bytes) in &third {
                    let object = store.object(&format!("{BASE}/{key}")).unwrap();
                    assert_eq!(&object, bytes, "{what}: {key}");
                }
                if !has_failed {
                    break;
                }
                faults += 1;
            }
            assert!(faults >= 8, "{is_new} {fault:?}: {faults}");
        }
    }
}

#[test]
fn objects_of_other_programs_are_not_replaced() {
    let store = Arc::new(RecordingStore::default());
    store.put_foreign(&format!("{BASE}/a/c/0"), b"theirs");
    assert_eq!(create(&store, false).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(create(&store, true).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(store.object(&format!("{BASE}/a/c/0")).unwrap(), b"theirs");
}

#[test]
fn services_that_ignore_conditions_are_refused() {
    let store = Arc::new(RecordingStore::without_conditions());
    let error = create(&store, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("If-None-Match"), "{error}");
}

#[test]
fn an_interrupted_first_commit_is_repeated_without_other_objects() {
    let store = Arc::new(RecordingStore::default());
    let state = states()[0].clone();
    let mut writer = create(&store, false).unwrap();
    for (key, bytes) in &state {
        writer.put(key, &[bytes]).unwrap();
    }
    writer.read_back("zarr.json", 100).unwrap();
    drop(writer);
    assert_eq!(open(&store).unwrap_err().kind(), ErrorKind::NotFound);
    let mut writer = create(&store, false).unwrap();
    write(&mut writer, &state, &Content::new()).unwrap();
    let list = store
        .object(&format!("{BASE}/{}", directory::LIST))
        .unwrap();
    let staged = list.split(|byte| *byte == b'+').count() - 1;
    assert_eq!(staged, 1, "the root's document alone");
}

#[test]
fn random_writers_never_lose_a_commit() {
    for seed in 0..40u64 {
        let store = Arc::new(RecordingStore::default());
        let mut random = seed;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let mut current = states()[0].clone();
        write(
            &mut create(&store, false).unwrap(),
            &current,
            &Content::new(),
        )
        .unwrap();
        let mut commits = 0;
        let mut writers: Vec<Option<Session>> = (0..3).map(|_| None).collect();
        for step in 0..60 {
            let place = &mut writers[next(3) as usize];
            let Some(mut session) = place.take() else {
                *place = Some(Session {
                    writer: append(&store).unwrap(),
                    own: current.clone(),
                    started: commits,
                    has_changes: false,
                });
                continue;
            };
            let keys = ["a/c/0", "a/c/1", "b/c/0", "f/c/0", "f/c/1", "zarr.json"];
            let key = keys[next(6) as usize];
            match next(4) {
                0 => {
                    let result = session.writer.commit();
                    if session.has_changes && session.started < commits {
                        assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
                    } else {
                        result.unwrap();
                        if session.has_changes {
                            commits += 1;
                            current = session.own.clone();
                            (session.started, session.has_changes) = (commits, false);
                        }
                        *place = Some(session);
                    }
                    let found = content(&open(&store).unwrap()).unwrap();
                    assert_eq!(found, current, "{seed} {step}");
                    continue;
                }
                1 if key != "zarr.json" => {
                    session.writer.remove(key).unwrap();
                    session.has_changes |= session.own.remove(key).is_some();
                }
                _ => {
                    let bytes = format!("{key} {seed} {step}").into_bytes();
                    session.writer.put(key, &[&bytes]).unwrap();
                    session.own.insert(key.to_owned(), bytes);
                    session.has_changes = true;
                }
            }
            *place = Some(session);
        }
        assert!(commits > 2, "{seed}");
    }
}

/// A writer, what it has written, and the number of commits when it was opened or committed last.
struct Session {
    writer: PrefixWriter,
    own: Content,
    started: u64,
    has_changes: bool,
}

#[test]
fn tasks_put_objects_and_only_a_commit_changes_the_store() {
    let store = Arc::new(RecordingStore::default());
    let shared = |writer: PrefixWriter, names: &[&str]| {
        let mut writer = writer.shared_at("s3://bucket/some/run/", &BTreeMap::new());
        let info = writer.share_objects(names).unwrap().unwrap();
        (writer, info)
    };
    let entry = |key: &str, text: &str| NewEntry {
        key: key.to_owned(),
        parts: vec![text.as_bytes().to_vec().into()],
        seal: Some(7),
    };
    // Before the first commit: a task that runs twice, a repeated one with other values, and a lost one.
    let (mut writer, info) = shared(create(&store, false).unwrap(), &["a"]);
    let join = |info: &_| TaskEntries::join(service(&store), Clone::clone(info)).unwrap();
    let put = |task: &mut TaskEntries, key: &str, text: &str| {
        task.put(entry(key, text), 0).unwrap();
        task.finish().unwrap()
    };
    let mut zombie = join(&info);
    let (mut first, mut second) = (join(&info), join(&info));
    let one = put(&mut first, "a/c/0", "one");
    let same = put(&mut second, "a/c/0", "one");
    assert_eq!(one.len(), 1);
    assert_eq!(same[0].len, 3);
    let two = put(&mut second, "a/c/1", "lost");
    let again = put(&mut first, "a/c/1", "two");
    assert_ne!(two[0].location, again[0].location);
    assert_eq!(open(&store).unwrap_err().kind(), ErrorKind::NotFound);
    first.check().unwrap();
    writer.adopt([same, again].concat(), 0).unwrap();
    writer.put("zarr.json", &[b"{}"]).unwrap();
    task_entries::end(&service(&store), &info).unwrap();
    writer.commit().unwrap();
    assert_eq!(zombie.check().unwrap_err().kind(), ErrorKind::Invalid);
    put(&mut zombie, "a/c/0", "late");
    put(&mut zombie, "a/c/1", "late");
    let mut expected = Content::from([
        ("a/c/0".to_owned(), b"one".to_vec()),
        ("a/c/1".to_owned(), b"two".to_vec()),
        ("zarr.json".to_owned(), b"{}".to_vec()),
    ]);
    let found = open(&store).unwrap();
    assert_eq!(content(&found).unwrap(), expected);
    assert_eq!(found.entry("a/c/1").unwrap().unwrap().seal(), Some(7));

    // A cancelled commit of an array that exists and of a new one.
    let (cancelled, info) = shared(append(&store).unwrap(), &["a", "b"]);
    let mut task = join(&info);
    put(&mut task, "a/c/0", "cancelled");
    put(&mut task, "a/c/2", "cancelled");
    put(&mut task, "b/c/0", "cancelled");
    drop(cancelled);
    assert_eq!(content(&open(&store).unwrap()).unwrap(), expected);
    // The next commit, with another writer of the same keys; that of a third writer fails.
    let (mut writer, info) = shared(append(&store).unwrap(), &["a", "b"]);
    let mut third = append(&store).unwrap();
    let mut task = join(&info);
    for key in ["a/c/0", "a/c/2", "b/c/0"] {
        let entries = put(&mut task, key, "new");
        writer.adopt(entries, 0).unwrap();
        expected.insert(key.to_owned(), b"new".to_vec());
    }
    writer.commit().unwrap();
    third.put("a/c/0", &[b"third"]).unwrap();
    assert_eq!(third.commit().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(content(&open(&store).unwrap()).unwrap(), expected);
    for (key, bytes) in &expected {
        let object = store.object(&format!("{BASE}/{key}"));
        assert_eq!(&object.unwrap(), bytes, "{key}");
    }
}
