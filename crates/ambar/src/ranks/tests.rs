//! Ranks that write together in one process, read back as a store.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::Path;

use super::team::Team;
use super::*;
use crate::array::{ArraySpec, Region, Slice};
use crate::codec::Profile;
use crate::container::CreateOptions;
use crate::dtype::DataType;
use crate::error::ErrorKind;
use crate::metadata::Attributes;
use crate::store::Store;

#[test]
fn a_text_is_rank_0s() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.ambar");
    let mut team = Team::create(&path, options(3, Placement::Counter));
    for rank in &mut team.0 {
        rank.write_text("/source/run", "a run");
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

/// The value at a place: smooth, and another one everywhere.
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

/// Cuts `0..length` into parts of these shares.
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let ranks = shares.len() as u32;
    let mut team = Team::create(&path, options(ranks, placement));
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

#[test]
fn packed_values_come_back() {
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
    assert_eq!(array("bounded").codecs(), "ambar fast 1.000e-3, crc32c");
    assert!(!array("usual").codecs().contains("ambar"));
    assert!(4 * bytes("lossless") < 3 * bytes("usual"));
    assert!(4 * bytes("bounded") < bytes("lossless"));
}

#[test]
fn steps_follow_each_other_and_a_store_is_appended_to() {
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
fn what_nobody_writes_is_the_fill_value() {
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
fn a_rank_that_fails_keeps_all_from_committing() {
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
    assert!(second.inbox(0, b"nothing").is_err());
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
    // All at once, and some of them before.
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
fn another_file_of_the_name_is_not_written_to() {
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
