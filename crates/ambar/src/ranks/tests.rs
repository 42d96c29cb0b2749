//! Stores written by several ranks in one process.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::Path;

use super::team::Team;
use super::*;
use crate::array::{ArraySpec, Region, Slice};
use crate::codec::Profile;
use crate::container::CreateOptions;
use crate::dtype::DataType;
use crate::error::{Error, ErrorKind};
use crate::metadata::Attributes;
use crate::store::Store;

#[test]
fn strings_are_written_by_rank_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.ambar");
    let mut team = Team::create(&path, options(3, Placement::Counter));
    for rank in &mut team.0 {
        rank.write_text("/source/run", "a run").unwrap();
    }
    team.commit().unwrap();
    let array = Store::open(&path).unwrap().array("/source/run").unwrap();
    let texts = array.read_strings(&[(0..1).into()]).unwrap();
    assert_eq!(texts.get(0), Some(&b"a run"[..]));
}

fn options(ranks: u32, placement: Placement) -> RankOptions {
    RankOptions {
        ranks,
        placement,
        ..RankOptions::default()
    }
}

fn region(start: &[u64], shape: &[u64]) -> Region {
    Region {
        start: start.to_vec(),
        shape: shape.to_vec(),
    }
}

/// The value at an index: smooth, and different everywhere.
fn value(place: &[u64]) -> f64 {
    place
        .iter()
        .fold(0.5, |sum, at| 1000.0 * sum + (*at as f64).sqrt())
}

fn values(region: &Region) -> Vec<f64> {
    let count = region.values() as usize;
    let mut place = region.start.clone();
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        values.push(value(&place));
        for d in (0..place.len()).rev() {
            place[d] += 1;
            if place[d] < region.start[d] + region.shape[d] {
                break;
            }
            place[d] = region.start[d];
        }
    }
    values
}

fn read(path: &Path, array: &str) -> Vec<f64> {
    let store = Store::open(path).unwrap();
    assert!(store.verify(&|_, _| true).unwrap().damage.is_empty());
    let array = store.array(array).unwrap();
    let selection: Vec<Slice> = array.shape().iter().map(|n| Slice::all(*n)).collect();
    let mut out = vec![0.0; array.elements() as usize];
    array
        .read(&selection, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    out
}

/// Cuts `0..length` in these proportions.
fn cuts(length: u64, shares: &[u64]) -> Vec<(u64, u64)> {
    let all: u64 = shares.iter().sum();
    let mut sum = 0;
    let ends = shares.iter().map(|share| {
        let start = length * sum / all;
        sum += share;
        (start, length * sum / all - start)
    });
    ends.collect()
}

/// Writes an array cut along its first two dimensions, by all ranks, and reads it back.
fn round_trip(shape: &[u64], shares: &[u64], other: &[u64], placement: Placement) {
    for queue in [None, Some(1000)] {
        round_trip_with(shape, shares, other, placement, queue);
    }
}

fn round_trip_with(
    shape: &[u64],
    shares: &[u64],
    other: &[u64],
    placement: Placement,
    queue: Option<u64>,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let ranks = shares.len() as u32;
    let options = RankOptions {
        queue,
        ..options(ranks, placement)
    };
    let mut team = Team::create(&path, options);
    let second = shape.get(1).copied().unwrap_or(1);
    let blocks: Vec<Vec<Region>> = cuts(shape[0], shares)
        .iter()
        .map(|(start, length)| {
            let cut = |(at, count): (u64, u64)| {
                let mut block = Region::all(shape);
                (block.start[0], block.shape[0]) = (*start, *length);
                if shape.len() > 1 {
                    (block.start[1], block.shape[1]) = (at, count);
                }
                block
            };
            match shape.len() {
                1 => vec![cut((0, 1))],
                _ => cuts(second, other).into_iter().map(cut).collect(),
            }
        })
        .collect();
    let held = team.gather(shape, &blocks);
    for profile in [Profile::Raw, Profile::Balanced] {
        let spec = ArraySpec::new(DataType::Float64, shape).profile(profile);
        let spec = spec.fill_value_of(f64::NAN);
        let name = format!("group/{profile:?}");
        let array = team.declare(&name, &spec, &held);
        for (rank, blocks) in team.0.iter_mut().zip(&blocks) {
            for block in blocks {
                let own = values(block);
                rank.write(array, block, bytemuck::cast_slice(&own))
                    .unwrap();
            }
        }
    }
    team.commit().unwrap();
    let expected = values(&Region::all(shape));
    for profile in ["Raw", "Balanced"] {
        let found = read(&path, &format!("group/{profile}"));
        assert!(
            found == expected,
            "{shape:?} {shares:?} {other:?} {placement:?}"
        );
    }
}

impl ArraySpec {
    fn fill_value_of(mut self, value: f64) -> Self {
        self.fill_value = Some(value.to_ne_bytes().to_vec());
        self
    }
}

#[test]
fn any_decomposition_is_read_back_as_one_array() {
    for placement in [Placement::Counter, Placement::Reserved] {
        round_trip(&[400_000], &[1, 1, 1, 1], &[], placement);
        round_trip(&[300_007], &[1, 2, 0, 3], &[], placement);
        round_trip(&[5], &[1, 1, 1], &[], placement);
        round_trip(&[64, 96], &[1, 1], &[1, 1, 1], placement);
        round_trip(&[101, 67, 31], &[3, 1], &[1, 2], placement);
        round_trip(&[64, 64, 64], &[1, 1], &[1, 1], placement);
        round_trip(&[7, 11, 20, 30], &[1, 1, 1], &[2, 1], placement);
        round_trip(&[0, 4], &[1, 1], &[1], placement);
        round_trip(&[50_000], &[1], &[], placement);
    }
}

/// A writer of one rank with a queue, and an array of `len` values.
fn queued(path: &Path, len: u64, queue: u64) -> (RankWriter, ArrayId) {
    let options = RankOptions {
        queue: Some(queue),
        ..options(1, Placement::Counter)
    };
    let mut writer = RankWriter::create(path, &CreateOptions::default(), options).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[len]).chunks(&[1000]);
    let array = writer.declare("a", &spec, None).unwrap();
    (writer, array)
}

#[test]
fn a_commit_in_the_background_is_ended_by_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let (mut writer, array) = queued(&path, 30_000, 1 << 20);
    assert!(writer.is_sealed().unwrap());
    assert!(writer.check_begun().is_err());
    let own: &'static [f64] = Vec::leak(values(&region(&[0], &[30_000])));
    let bytes: &'static [u8] = bytemuck::cast_slice(own);
    for part in 0..3 {
        let at = part * 10_000;
        let part = &bytes[8 * at..8 * (at + 10_000)];
        let region = region(&[at as u64], &[10_000]);
        match at {
            0 => writer.write(array, &region, part).unwrap(),
            10_000 => writer.write_owned(array, &region, part.to_vec()).unwrap(),
            _ => writer.write_borrowed(array, &region, part).unwrap(),
        }
    }
    writer.begin_seal().unwrap();
    let refused = writer.write(array, &region(&[0], &[1]), &bytes[..8]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(writer.begin_seal().is_err());
    while !writer.is_sealed().unwrap() {
        std::thread::yield_now();
    }
    assert!(!path.exists());
    writer.check_begun().unwrap();
    writer.commit_alone().unwrap();
    assert_eq!(read(&path, "a"), own);
    // The next step.
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    let array = writer.declare("b", &spec, None).unwrap();
    writer
        .write(array, &region(&[0], &[10]), &bytes[..80])
        .unwrap();
    writer.commit_alone().unwrap();
    assert_eq!(read(&path, "b"), own[..10]);
}

#[test]
fn an_error_in_the_background_prevents_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let options = RankOptions {
        queue: Some(1 << 20),
        ..options(2, Placement::Counter)
    };
    let mut team = Team::create(&path, options);
    for rank in &mut team.0 {
        rank.count_with(Box::new(|_| Err(Error::limit("the counter is broken"))));
    }
    let held = team.gather(&[1000], &[vec![region(&[0], &[1000])], vec![]]);
    let spec = ArraySpec::new(DataType::Float64, &[1000]).chunks(&[1000]);
    let array = team.declare("a", &spec, &held);
    let own = values(&region(&[0], &[1000]));
    let own = bytemuck::cast_slice(&own);
    team.0[0].write(array, &region(&[0], &[1000]), own).unwrap();
    // The next call that follows the error returns it.
    let mut found = Ok(());
    while found.is_ok() {
        found = team.0[0].check_usable();
    }
    let found = found.unwrap_err();
    assert_eq!(found.kind(), ErrorKind::Limit);
    assert!(
        found.to_string().contains("the counter is broken"),
        "{found}"
    );
    let failed = team.commit().unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Limit);
    assert!(
        failed.to_string().contains("the counter is broken"),
        "{failed}"
    );
    assert!(!path.exists());
}

#[test]
fn a_writer_that_is_dropped_discards_queued_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let (mut writer, array) = queued(&path, 3_000_000, 1);
    let own = vec![0u8; 8 * 1_000_000];
    for at in [0, 1_000_000, 2_000_000] {
        let part = region(&[at], &[1_000_000]);
        writer.write(array, &part, &own).unwrap(); // waits: the queue has room for one
    }
    writer.begin_seal().unwrap();
    let mut inherited = Some(writer);
    assert!(crate::process::succeeds_in_child(|| {
        let mut writer = inherited.take().unwrap();
        assert!(writer.write(array, &region(&[0], &[1]), &own[..8]).is_err());
        drop(writer);
    }));
    drop(inherited);
    assert!(!path.exists());
}

#[test]
fn nodes_and_attributes_of_earlier_commits_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let (mut writer, array) = queued(&path, 10, 1 << 20);
    let own = values(&region(&[0], &[10]));
    let own = bytemuck::cast_slice(&own);
    writer.write(array, &region(&[0], &[10]), own).unwrap();
    writer.set_attribute("a", "units", "K".into()).unwrap();
    writer.set_attribute("a", "number", 3.into()).unwrap();
    writer.group("old/inner", Attributes::new()).unwrap();
    writer.commit_alone().unwrap();
    writer.remove("/old").unwrap();
    writer.commit_alone().unwrap();
    let store = Store::open(&path).unwrap();
    assert!(store.kind("old").unwrap().is_none() && store.kind("old/inner").unwrap().is_none());
    let array = store.array("a").unwrap();
    assert_eq!(array.attributes()["units"], "K");
    assert_eq!(array.attributes()["number"], 3);
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    writer.declare("new/b", &spec, None).unwrap();
    assert_eq!(
        writer.remove("/new").unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn packed_values_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let shape = [300_007];
    let blocks = [
        vec![region(&[0], &[120_000])],
        vec![region(&[120_000], &[180_007])],
    ];
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let held = team.gather(&shape, &blocks);
    let fast = ArraySpec::new(DataType::Float64, &shape).profile(Profile::Fast);
    let arrays = [
        ("lossless", fast.clone().predict(true)),
        ("bounded", fast.clone().error_bound(Some(1e-3))),
        ("usual", fast),
    ];
    for (name, spec) in &arrays {
        let array = team.declare(name, spec, &held);
        for (rank, blocks) in team.0.iter_mut().zip(&blocks) {
            let own = values(&blocks[0]);
            rank.write(array, &blocks[0], bytemuck::cast_slice(&own))
                .unwrap();
        }
    }
    team.commit().unwrap();
    let expected = values(&Region::all(&shape));
    assert!(read(&path, "lossless") == expected && read(&path, "usual") == expected);
    let bounded = read(&path, "bounded");
    let mut pairs = bounded.iter().zip(&expected);
    assert!(pairs.all(|(a, b)| (a - b).abs() <= 1e-3));
    let store = Store::open(&path).unwrap();
    let array = |name: &str| store.array(name).unwrap();
    let bytes = |name: &str| array(name).stored_bytes().unwrap();
    assert_eq!(array("lossless").codecs(), "ambar fast lossless, crc32c");
    assert_eq!(array("bounded").codecs(), "ambar fast 0.001, crc32c");
    assert!(!array("usual").codecs().contains("ambar"));
    assert!(4 * bytes("lossless") < 3 * bytes("usual"));
    assert!(4 * bytes("bounded") < bytes("lossless"));
}

#[test]
fn steps_are_consecutive_and_stores_are_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let shape = [60_000];
    let blocks = [
        vec![region(&[0], &[25_000])],
        vec![region(&[25_000], &[35_000])],
    ];
    for (round, placement) in [Placement::Counter, Placement::Reserved].iter().enumerate() {
        let mut team = match round {
            0 => Team::create(&path, options(2, *placement)),
            _ => Team::append(&path, options(2, *placement)),
        };
        let held = team.gather(&shape, &blocks);
        for step in 0..3 {
            let name = format!("round_{round}/step_{step}");
            let spec = ArraySpec::new(DataType::Float64, &shape);
            let array = team.declare(&name, &spec, &held);
            for (rank, blocks) in team.0.iter_mut().zip(&blocks) {
                let own = values(&blocks[0]);
                rank.write(array, &blocks[0], bytemuck::cast_slice(&own))
                    .unwrap();
            }
            team.commit().unwrap();
            for step in 0..=step {
                let found = read(&path, &format!("round_{round}/step_{step}"));
                assert_eq!(found, values(&Region::all(&shape)));
            }
        }
    }
    assert_eq!(read(&path, "round_0/step_2"), values(&Region::all(&shape)));
}

#[test]
fn values_that_no_rank_writes_are_the_fill_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut alone =
        RankWriter::create(&path, &CreateOptions::default(), RankOptions::default()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[70_000]).fill_value_of(7.0);
    let array = alone.declare("a", &spec, None).unwrap();
    // Row by row, as small programs do.
    for at in (0..40_000).step_by(100) {
        let rows = region(&[at], &[100]);
        alone
            .write(array, &rows, bytemuck::cast_slice(&values(&rows)))
            .unwrap();
    }
    alone.group("b", Attributes::new()).unwrap();
    alone.commit_alone().unwrap();
    let found = read(&path, "a");
    assert_eq!(found[..40_000], values(&region(&[0], &[40_000])));
    assert!(found[40_000..].iter().all(|value| *value == 7.0));
    assert!(alone.write(array, &region(&[0], &[1]), &[0; 8]).is_err());
}

#[test]
fn a_failed_rank_prevents_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let shape = [1000];
    let blocks = [vec![region(&[0], &[500])], vec![region(&[500], &[500])]];
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let held = team.gather(&shape, &blocks);
    let spec = ArraySpec::new(DataType::Float64, &shape);
    let write = |team: &mut Team, name: &str| {
        let array = team.declare(name, &spec, &held);
        for (rank, blocks) in team.0.iter_mut().zip(&blocks) {
            let own = values(&blocks[0]);
            rank.write(array, &blocks[0], bytemuck::cast_slice(&own))
                .unwrap();
        }
        array
    };
    write(&mut team, "good");
    team.commit().unwrap();
    let array = write(&mut team, "bad");
    let again = team.0[1].write(array, &blocks[0][0], &[0; 4000]);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Invalid);
    let error = team.commit().unwrap_err();
    assert!(error.to_string().contains("rank 1"), "{error}");
    assert!(team.commit().is_err());
    drop(team);
    let store = Store::open(&path).unwrap();
    assert!(store.array("bad").is_err());
    assert_eq!(read(&path, "good"), values(&Region::all(&shape)));
}

#[test]
fn mistakes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let held = team.gather(&[10], &[vec![region(&[0], &[5])], vec![region(&[5], &[5])]]);
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    let [first, second] = &mut team.0[..] else {
        panic!("two ranks");
    };
    let array = first.declare("a", &spec, Some(&held)).unwrap();
    second.declare("a", &spec, Some(&held)).unwrap();
    for (at, values) in [
        (4, vec![0; 16]),
        (5, vec![0; 8]),
        (0, vec![0; 7]),
        (10, vec![0; 8]),
    ] {
        let length = values.len().div_ceil(8) as u64;
        let error = first
            .write(array, &region(&[at], &[length]), &values)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(first.declare("a", &spec, Some(&held)).is_err());
    let longer = ArraySpec::new(DataType::Float64, &[11]);
    assert!(first.declare("b", &longer, Some(&held)).is_err());
    let texts = ArraySpec::new(DataType::String, &[10]);
    assert!(first.declare("c", &texts, None).is_err());
    assert!(second.invitation().is_err());
    assert!(second.commit(&[]).is_err());
    assert!(RankWriter::join(b"no invitation", 1).is_err());
    let invitation = first.invitation().unwrap();
    assert!(RankWriter::join(&invitation, 0).is_err());
    assert!(RankWriter::join(&invitation, 2).is_err());
    assert!(second.receive(0, b"nothing").is_err());
    assert!(Decomposition::gather(&[]).is_err());
    assert!(Decomposition::gather(&[b"ambarblk"]).is_err());
    let folder = CreateOptions {
        directory: true,
        ..CreateOptions::default()
    };
    let place = path.with_file_name("folder");
    let refused = RankWriter::create(&place, &folder, RankOptions::default());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn values_are_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let shape = [10];
    // All values in one call after some of them were written.
    for first in [region(&[0], &[10]), region(&[3], &[2])] {
        let path = folder.path().join(format!("{}.ambar", first.start[0]));
        let mut alone =
            RankWriter::create(&path, &CreateOptions::default(), RankOptions::default()).unwrap();
        let spec = ArraySpec::new(DataType::Float64, &shape);
        let array = alone.declare("a", &spec, None).unwrap();
        let own = values(&first);
        alone
            .write(array, &first, bytemuck::cast_slice(&own))
            .unwrap();
        let all = Region::all(&shape);
        let again = alone.write(array, &all, bytemuck::cast_slice(&values(&all)));
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Invalid);
        assert!(alone.commit_alone().is_err());
    }
}

#[test]
fn another_file_of_the_same_name_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut first = RankWriter::create(
        &path,
        &CreateOptions::default(),
        options(2, Placement::Reserved),
    )
    .unwrap();
    let invitation = first.invitation().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, b"other").unwrap();
    std::fs::rename(&other, folder.path().join(".x.ambar.ambar-new")).unwrap();
    assert!(RankWriter::join(&invitation, 1).is_err());
}

/// The error of a commit if two ranks define `a` with these specifications, and each has half of it.
fn refused_commit(specs: [&ArraySpec; 2], cuts: [u64; 2]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut team = Team::create(&path, options(2, Placement::Counter));
    for (rank, spec) in specs.into_iter().enumerate() {
        let length = spec.shape[0];
        let own = |cut: u64| {
            [
                vec![region(&[0], &[cut])],
                vec![region(&[cut], &[length - cut])],
            ]
        };
        let held = team.gather(&spec.shape, &own(cuts[rank]));
        let writer = &mut team.0[rank];
        let array = writer.declare("/group/a", spec, Some(&held)).unwrap();
        let block = &own(cuts[rank])[rank][0];
        let size = spec.dtype.size().unwrap() as u64;
        let zeros = vec![0; (block.values() * size) as usize];
        writer.write(array, block, &zeros).unwrap();
    }
    let error = team
        .commit()
        .expect_err("ranks that define an array differently");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    drop(team);
    assert!(!path.exists(), "something of it is visible");
    error.to_string()
}

/// Ranks that defined an array with other bounds, types or attributes used to commit, and values were lost.
#[test]
fn ranks_that_define_an_array_differently_commit_nothing() {
    let spec = ArraySpec::new(DataType::Float64, &[40_000]).chunks(&[5000]);
    let bounded = spec.clone().error_bound(Some(1e-3));
    let mut attributes = spec.clone();
    attributes.attributes.insert("units".into(), "m".into());
    let others = [
        (
            bounded.clone(),
            "error_bound: none on rank 0, 0.001 on rank 1",
        ),
        (
            ArraySpec::new(DataType::Int64, &[40_000]).chunks(&[5000]),
            "data_type: \"float64\" on rank 0, \"int64\" on",
        ),
        (
            ArraySpec::new(DataType::Float64, &[40_001]).chunks(&[5000]),
            "shape: [40000] on rank 0, [40001] on rank 1",
        ),
        (spec.clone().chunks(&[10_000]), "chunk"),
        (spec.clone().shards(&[20_000]), "chunk_grid"),
        (
            spec.clone().dimensions(&["x"]),
            "dimension_names: none on rank 0, [\"x\"] on rank 1",
        ),
        (
            attributes,
            "attributes.units: none on rank 0, \"m\" on rank 1",
        ),
        (
            spec.clone().fill_value_of(7.0),
            "fill_value: 0.0 on rank 0, 7.0 on rank 1",
        ),
        (spec.clone().profile(Profile::Raw), "codecs"),
    ];
    for (other, expected) in others {
        let error = refused_commit([&spec, &other], [20_000; 2]);
        assert!(
            error.contains("group/a") && error.contains(expected),
            "{error}"
        );
    }
    let looser = spec.clone().error_bound(Some(1e-1));
    let error = refused_commit([&bounded, &looser], [20_000; 2]);
    assert!(
        error.contains("error_bound: 0.001 on rank 0, 0.1 on rank 1"),
        "{error}"
    );
    let error = refused_commit([&spec, &spec], [20_000, 10_000]);
    assert!(error.contains("decomposition"), "{error}");
}

/// An array that one rank did not define, or defined in another order, used to read as zeros.
#[test]
fn ranks_that_skip_a_definition_commit_nothing() {
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    for (names, expected) in [
        (
            [&["a", "b"][..], &["a"]],
            "rank 1 did not define it, rank 0 did",
        ),
        (
            [&["a"], &["a", "b"]],
            "rank 0 did not define it, rank 1 did",
        ),
        (
            [&["a", "b"], &["a", "c"]],
            "rank 1 did not define it, rank 0 did",
        ),
        (
            [&["a", "b"], &["b", "a"]],
            "definition number 1 on rank 0, number 2 on rank 1",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut team = Team::create(&path, options(2, Placement::Counter));
        for (rank, names) in names.into_iter().enumerate() {
            for name in names {
                team.0[rank].declare(name, &spec, None).unwrap();
            }
        }
        let error = team
            .commit()
            .expect_err("a definition is missing")
            .to_string();
        assert!(error.contains(expected), "{error}");
        drop(team);
        assert!(!path.exists());
    }
}

/// The pieces that rank 1 receives for an array that it did not define must not hide the cause.
#[test]
fn pieces_of_a_skipped_array_do_not_hide_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let blocks = [vec![region(&[0], &[5])], vec![region(&[5], &[95])]];
    let held = team.gather(&[100], &blocks);
    let spec = ArraySpec::new(DataType::Float64, &[100]);
    let array = team.0[0].declare("a", &spec, Some(&held)).unwrap();
    team.0[0].write(array, &blocks[0][0], &[0; 40]).unwrap();
    let error = team.commit().unwrap_err().to_string();
    assert!(error.contains("rank 1 did not define it"), "{error}");
}

/// Strings that differed between ranks were silently taken from rank 0.
#[test]
fn strings_that_differ_between_ranks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let _ = team.0[0].write_text("/source/run", "a run");
    let _ = team.0[1].write_text("/source/run", "another run");
    let error = team.commit().unwrap_err().to_string();
    assert!(
        error.contains("text: \"a run\" on rank 0, \"another run\" on rank 1"),
        "{error}"
    );
    assert!(!path.exists());
}

/// After a failed commit, arrays could be defined and written, and later commits depended on the remaining state.
#[test]
fn after_an_error_all_calls_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut alone =
        RankWriter::create(&path, &CreateOptions::default(), RankOptions::default()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    let good = alone.declare("good", &spec, None).unwrap();
    assert!(alone.write(good, &region(&[5], &[6]), &[0; 48]).is_err());
    for refused in [
        alone.declare("b", &spec, None).map(|_| ()),
        alone.write(good, &region(&[0], &[10]), &[0; 80]),
        alone.group("g", Attributes::new()),
        alone.set_attributes("good", Attributes::new()),
        alone.begin_step("", 0.0).map(|_| ()),
        alone.commit_alone(),
        alone.commit_alone(),
        alone.declare("b", &spec, None).map(|_| ()),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("is outside of an array of [10]"), "{error}");
    }
    drop(alone);
    assert!(!path.exists());
}

/// Handles began at 0 again after a commit, so that a handle from before it referred to another array.
#[test]
fn a_handle_from_before_a_commit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut alone =
        RankWriter::create(&path, &CreateOptions::default(), RankOptions::default()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[10]);
    let all = region(&[0], &[10]);
    let stale = alone.declare("a", &spec, None).unwrap();
    alone.write(stale, &all, &[0; 80]).unwrap();
    alone.commit_alone().unwrap();
    let fresh = alone.declare("b", &spec, None).unwrap();
    assert_ne!(stale, fresh);
    let error = alone.write(stale, &all, &[0; 80]).unwrap_err();
    assert!(error.to_string().contains("last commit"), "{error}");
}

/// The number of chunks of an array without values was a division by zero.
#[test]
fn an_empty_array_may_have_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut alone =
        RankWriter::create(&path, &CreateOptions::default(), RankOptions::default()).unwrap();
    let spec = ArraySpec::new(DataType::Float64, &[5, 0]).chunks(&[4, 3]);
    alone.declare("a", &spec, None).unwrap();
    alone.commit_alone().unwrap();
    assert!(read(&path, "a").is_empty());
}

/// Values that a rank forgot to write used to be indistinguishable from zeros.
#[test]
fn values_that_no_rank_wrote_are_counted_in_the_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let blocks = [vec![region(&[0], &[70])], vec![region(&[70], &[30])]];
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let held = team.gather(&[100], &blocks);
    let part = team.gather(&[100], &[blocks[0].clone(), vec![]]);
    let mut spec = ArraySpec::new(DataType::Float64, &[100]).fill_value_of(-1.0);
    spec.attributes.insert("units".into(), "m".into());
    let write = |team: &mut Team, array, ranks: &[usize]| {
        for rank in ranks {
            let own = values(&blocks[*rank][0]);
            let bytes = bytemuck::cast_slice(&own);
            team.0[*rank]
                .write(array, &blocks[*rank][0], bytes)
                .unwrap();
        }
    };
    let array = team.declare("complete", &spec, &held);
    write(&mut team, array, &[0, 1]);
    let array = team.declare("forgotten", &spec, &held);
    write(&mut team, array, &[0]);
    let array = team.declare("not_covered", &spec, &part);
    write(&mut team, array, &[0]);
    team.commit().unwrap();
    let store = Store::open(&path).unwrap();
    let attributes = |name: &str| {
        let attributes = store.array(name).unwrap().attributes().clone();
        assert_eq!(attributes["units"], "m");
        attributes.get("ambar").cloned()
    };
    assert_eq!(attributes("complete"), None);
    let missing = serde_json::json!({"unwritten_values": 30});
    assert_eq!(attributes("forgotten"), Some(missing.clone()));
    assert_eq!(attributes("not_covered"), Some(missing));
    assert_eq!(read(&path, "forgotten")[70..], [-1.0; 30]);
}

/// Shards that two ranks wrote, because their blocks overlapped, were those of either rank.
#[test]
fn blocks_of_two_ranks_that_overlap_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut team = Team::create(&path, options(2, Placement::Counter));
    let all = region(&[0], &[100]);
    let held = team.gather(&[100], &[vec![all.clone()], vec![all.clone()]]);
    let array = team.declare("a", &ArraySpec::new(DataType::Float64, &[100]), &held);
    for rank in &mut team.0 {
        let own = values(&all);
        rank.write(array, &all, bytemuck::cast_slice(&own)).unwrap();
    }
    let error = team.commit().unwrap_err().to_string();
    assert!(
        error.contains("rank 0") && error.contains("rank 1"),
        "{error}"
    );
}

/// A flipped bit in the blocks of a rank with a single value allocated 25 GB.
#[test]
fn blocks_of_a_single_value_take_no_memory() {
    let mut bytes = Decomposition::encode(&[], &[region(&[], &[])]).unwrap();
    assert!(Decomposition::gather(&[&bytes]).is_ok());
    bytes[8 + 8 + 5] ^= 1; // the number of blocks, 2^40 more
    assert!(Decomposition::gather(&[&bytes]).is_err());
}

/// A flipped bit in a number of blocks allocated 25 GB before any check.
#[test]
fn changed_bytes_of_blocks_are_refused_or_harmless() {
    let blocks = [region(&[0, 0], &[4, 3]), region(&[4, 3], &[2, 5])];
    let bytes = Decomposition::encode(&[9, 8], &blocks).unwrap();
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = Decomposition::gather(&[&changed]) {
            assert!(read.blocks().len() <= blocks.len(), "bit {bit}");
        }
    }
    for len in 0..bytes.len() {
        assert!(Decomposition::gather(&[&bytes[..len]]).is_err());
    }
}

/// Each rank reserved 1 MiB of the file for its first values.
#[test]
fn a_small_store_of_many_ranks_is_a_short_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let blocks: Vec<Vec<Region>> = (0..4)
        .map(|rank| vec![region(&[rank << 14], &[1 << 14])])
        .collect();
    let mut team = Team::create(&path, options(4, Placement::Counter));
    let held = team.gather(&[4 << 14], &blocks);
    let spec = ArraySpec::new(DataType::Float64, &[4 << 14]).profile(Profile::Raw);
    let array = team.declare("a", &spec, &held);
    for (rank, blocks) in team.0.iter_mut().zip(&blocks) {
        let own = values(&blocks[0]);
        rank.write(array, &blocks[0], bytemuck::cast_slice(&own))
            .unwrap();
    }
    team.commit().unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 600_000, "{bytes}");
}
