//! Patches written by many ranks, compared with those of one process.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use super::stores::{boxes, read};
use super::*;
use crate::error::ErrorKind;
use crate::kinds::bound::{Compression, ErrorBound};
use crate::ranks::team::Team;
use crate::ranks::{Placement, RankOptions, RankWriter};

/// Random ranks for the boxes.
fn owners(sample: &Sample, ranks: u32, seed: u64) -> Vec<Vec<u32>> {
    let mut random = Random(seed);
    let levels = sample.hierarchy.levels.iter();
    levels
        .map(|level| {
            let boxes = level.boxes.iter();
            boxes
                .map(|_| random.below(u64::from(ranks)) as u32)
                .collect()
        })
        .collect()
}

fn fields(sample: &Sample) -> Vec<(String, DataType)> {
    let names = sample.fields.iter();
    names
        .map(|name| (name.clone(), sample.dtype(name).unwrap()))
        .collect()
}

fn team(ranks: u32, placement: Placement, folder: &tempfile::TempDir) -> Team {
    let options = RankOptions {
        ranks,
        placement,
        ..RankOptions::default()
    };
    Team::create(&folder.path().join("ranks.ambar"), options)
}

fn declare(
    team: &mut Team,
    sample: &Sample,
    owners: &[Vec<u32>],
    options: &RankPatchOptions,
) -> Result<Vec<RankPatches>> {
    let hierarchy = OwnedHierarchy {
        hierarchy: &sample.hierarchy,
        owners,
    };
    let ranks = team.0.iter_mut();
    ranks
        .map(|rank| RankPatches::declare(rank, "/amr", hierarchy, &fields(sample), options))
        .collect()
}

/// Copies the values of a box.
fn put(
    (writer, patches): (&mut RankWriter, &mut RankPatches),
    sample: &Sample,
    b: (usize, usize, IndexBox),
    field: &str,
) -> Result<()> {
    let values = read(sample, b, field);
    let size = sample.dtype(field).unwrap().size().unwrap();
    let [width, height, _] = b.2.shape();
    let target = FieldBox {
        level: b.0,
        index: b.1,
        field,
    };
    patches.put(writer, target, &mut |[x, y, z], row| {
        let first = ((z * height + y) * width + x) * size;
        row.copy_from_slice(&values[first..first + row.len()]);
    })
}

/// Writes all of a sample.
fn written(
    sample: &Sample,
    (ranks, placement, seed): (u32, Placement, u64),
    options: &RankPatchOptions,
) -> (PatchAmr, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut team = team(ranks, placement, &folder);
    let owners = owners(sample, ranks, seed);
    let all = declare(&mut team, sample, &owners, options).unwrap();
    for (rank, mut patches) in all.into_iter().enumerate() {
        for field in FIELDS {
            for b in boxes(sample) {
                if owners[b.0][b.1] as usize == rank {
                    put((&mut team.0[rank], &mut patches), sample, b, field).unwrap();
                }
            }
        }
        patches.finish(&mut team.0[rank]).unwrap();
    }
    team.commit().unwrap();
    let store = Store::open(&folder.path().join("ranks.ambar")).unwrap();
    let report = store.verify(&|_, _| true).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    (PatchAmr::open(&store, "/amr").unwrap(), folder)
}

fn options(covered: Option<Covered>, chunk: usize, bound: Option<f64>) -> RankPatchOptions {
    let bounds = bound.map(|bound| ("*".to_owned(), ErrorBound::Absolute(bound)));
    RankPatchOptions {
        covered,
        compression: Compression {
            profile: Profile::Fast,
            error_bounds: bounds.into_iter().collect(),
        },
        chunk_cells: Some(chunk),
        ..RankPatchOptions::default()
    }
}

fn alone(sample: &Sample, options: &RankPatchOptions) -> (PatchAmr, tempfile::TempDir) {
    sample.stored_with(&PatchOptions {
        covered: options.covered.unwrap(),
        compression: options.compression.clone(),
        chunk_cells: options.chunk_cells,
        ..PatchOptions::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn many_ranks_write_the_same_as_one_process(
        recipe in recipes(), chunk in 1usize..3000, ranks in 1u32..6, seed: u64, reserved: bool,
        drop: bool,
    ) {
        let sample = Sample::new(&recipe);
        let covered = Some(if drop { Covered::Drop } else { Covered::Keep });
        let placement = if reserved { Placement::Reserved } else { Placement::Counter };
        let options = options(covered, chunk, None);
        let (many, _folder) = written(&sample, (ranks, placement, seed), &options);
        let (one, _other) = alone(&sample, &options);
        prop_assert_eq!(many.attributes(), one.attributes());
        for level in 0..recipe.levels {
            let (blocks, same) = (many.blocks(level).unwrap(), one.blocks(level).unwrap());
            prop_assert_eq!(blocks.origins(), same.origins());
            prop_assert_eq!(blocks.per_chunk(), same.per_chunk());
            prop_assert_eq!(many.extents(level).unwrap(), one.extents(level).unwrap());
            for field in 0..FIELDS.len() {
                let ranges = many.values.ranges(blocks, field).unwrap();
                prop_assert_eq!(ranges, one.values.ranges(same, field).unwrap());
            }
        }
        for field in FIELDS {
            for b in boxes(&sample) {
                prop_assert!(read(&many, b, field) == read(&one, b, field), "{} {:?}", field, b);
                if !drop {
                    prop_assert!(read(&many, b, field) == read(&sample, b, field));
                }
            }
        }
    }

    #[test]
    fn bounds_hold_for_many_ranks(recipe in recipes(), ranks in 1u32..6, seed: u64) {
        let sample = Sample::new(&recipe);
        let options = options(Some(Covered::Keep), 2000, Some(0.5));
        let (many, _folder) = written(&sample, (ranks, Placement::Counter, seed), &options);
        let (one, _other) = alone(&sample, &options);
        // One process stores a field without a finite value without loss; ranks do not know all values.
        let without_bounds = |patches: &PatchAmr| {
            let mut attributes = patches.attributes().clone();
            attributes.remove("error_bounds");
            attributes.remove("requested_bounds");
            attributes.remove("medians");
            attributes
        };
        prop_assert_eq!(without_bounds(&many), without_bounds(&one));
        for b in boxes(&sample) {
            let found = read(&many, b, "smooth");
            for (cell, found) in cells_of(&b.2).zip(found.as_chunks().0) {
                let off = f64::from_ne_bytes(*found) - sample.value("smooth", (b.0, cell));
                prop_assert!(off.abs() <= 0.5, "{:?} is off by {}", cell, off);
            }
            prop_assert!(read(&many, b, "count") == read(&sample, b, "count"));
        }
    }

    #[test]
    fn bounds_of_levels_and_boxes_hold_for_many_ranks(
        recipe in recipes(), chunk in 1usize..3000, ranks in 1u32..6, seed: u64,
    ) {
        let sample = Sample::new(&recipe);
        let options = by_part(&sample, chunk);
        let (many, _folder) = written(&sample, (ranks, Placement::Counter, seed), &options);
        let [elsewhere, on_levels, in_box] = largest_errors(&sample, &many);
        prop_assert!(elsewhere <= 1e5, "{elsewhere}");
        prop_assert!(on_levels <= 1e3, "{on_levels}");
        prop_assert!(in_box <= 1e2, "{in_box}");
    }
}

/// The lower half of the domain in each dimension.
fn half(sample: &Sample) -> Vec<[f64; 2]> {
    let PatchHierarchy { lower, upper, .. } = &sample.hierarchy;
    let sides = (0..sample.hierarchy.ndim).map(|d| [lower[d], 0.5 * (lower[d] + upper[d])]);
    sides.collect()
}

/// Bounds of `smooth`, whose values are up to 1e7: 1e5, 1e3 on refined levels, and 1e2 in a box.
fn by_part(sample: &Sample, chunk: usize) -> RankPatchOptions {
    let sides = half(sample).into_iter();
    let sides = sides.map(|[lower, upper]| format!("{lower}:{upper}"));
    let region = format!("smooth@[{}]", sides.collect::<Vec<_>>().join(", "));
    let bounds = [("smooth", 1e5), ("smooth@1:", 1e3), (&region[..], 1e2)];
    let bounds = bounds.map(|(key, bound)| (key.to_owned(), ErrorBound::Absolute(bound)));
    let mut options = options(Some(Covered::Keep), chunk, None);
    options.compression.error_bounds = bounds.to_vec();
    options
}

/// The largest error of `smooth` in cells outside of all parts, on refined levels, and in the box of [`by_part`].
fn largest_errors(sample: &Sample, found: &PatchAmr) -> [f64; 3] {
    let region = half(sample);
    let mut largest = [0.0f64; 3];
    for b in boxes(sample) {
        let level = &sample.hierarchy.levels[b.0];
        let values = read(found, b, "smooth");
        for (cell, value) in cells_of(&b.2).zip(values.as_chunks().0) {
            let error = (f64::from_ne_bytes(*value) - sample.value("smooth", (b.0, cell))).abs();
            let is_inside = region.iter().enumerate().all(|(d, [_, upper])| {
                let first = (cell[d] - level.domain.lo[d]) as f64 * level.cell_size[d];
                sample.hierarchy.lower[d] + first <= *upper
            });
            if is_inside {
                largest[2] = largest[2].max(error);
            }
            if b.0 > 0 {
                largest[1] = largest[1].max(error);
            }
            if b.0 == 0 && !is_inside {
                largest[0] = largest[0].max(error);
            }
        }
    }
    largest
}

#[test]
fn cells_outside_of_all_parts_have_the_general_bound() {
    let mut largest = [0.0f64; 3];
    for seed in 0..12 {
        let sample = Sample::new(&Recipe {
            seed,
            ndim: 2,
            levels: 2,
        });
        let (many, _folder) = written(&sample, (3, Placement::Counter, 1), &by_part(&sample, 1));
        let errors = largest_errors(&sample, &many);
        largest = std::array::from_fn(|i| largest[i].max(errors[i]));
    }
    let [elsewhere, on_levels, in_box] = largest;
    assert!(elsewhere > 1e3 && elsewhere <= 1e5, "{elsewhere}");
    assert!(on_levels > 1e2 && on_levels <= 1e3, "{on_levels}");
    assert!(in_box > 0.0 && in_box <= 1e2, "{in_box}");
}

fn small() -> Sample {
    Sample::new(&Recipe {
        seed: 7,
        ndim: 3,
        levels: 2,
    })
}

#[test]
fn missing_or_repeated_boxes_prevent_the_commit() {
    let sample = small();
    let folder = tempfile::tempdir().unwrap();
    let mut team = team(2, Placement::Counter, &folder);
    let owners = owners(&sample, 2, 3);
    let options = options(None, 2000, None);
    let mut all = declare(&mut team, &sample, &owners, &options).unwrap();
    let b = boxes(&sample)[0];
    let rank = owners[b.0][b.1] as usize;
    let end = (&mut team.0[rank], &mut all[rank]);
    put(end, &sample, b, "density").unwrap();
    let again = put((&mut team.0[rank], &mut all[rank]), &sample, b, "density").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid);
    let other = 1 - rank;
    let strange = put((&mut team.0[other], &mut all[other]), &sample, b, "density").unwrap_err();
    assert!(
        strange.to_string().contains("does not belong to rank"),
        "{strange}"
    );
    let missing = all.remove(rank).finish(&mut team.0[rank]).unwrap_err();
    assert!(missing.to_string().contains("\"smooth\" on 0"), "{missing}");
    assert!(team.commit().is_err());
}

#[test]
fn options_that_need_all_values_are_refused() {
    let sample = small();
    let folder = tempfile::tempdir().unwrap();
    let boxes = owners(&sample, 2, 3);
    let refused = |owners: &[Vec<u32>], options: &RankPatchOptions| {
        let mut team = team(2, Placement::Counter, &folder);
        declare(&mut team, &sample, owners, options).err().unwrap()
    };
    let auto = refused(&boxes, &options(Some(Covered::Auto), 2000, None));
    assert_eq!(auto.kind(), ErrorKind::Unsupported);
    let mut relative = options(None, 2000, Some(1.0));
    relative.compression.error_bounds[0].1 = ErrorBound::OfRange(1e-3);
    assert_eq!(refused(&boxes, &relative).kind(), ErrorKind::Unsupported);
    let of_part = |target: &str| {
        let mut options = options(None, 2000, Some(1.0));
        options.compression.error_bounds[0].0 = target.to_owned();
        refused(&boxes, &options)
    };
    let level = of_part("*@7");
    assert_eq!(level.kind(), ErrorKind::NotFound);
    assert!(level.to_string().contains("levels: 0 to 1"), "{level}");
    assert_eq!(of_part("smoth@1").kind(), ErrorKind::NotFound);
    assert_eq!(of_part("smooth@[0:1]").kind(), ErrorKind::Invalid);
    let unknown_rank = vec![vec![2; sample.hierarchy.levels[0].boxes.len()], Vec::new()];
    let fitting = options(None, 2000, None);
    assert_eq!(refused(&unknown_rank, &fitting).kind(), ErrorKind::Invalid);
}

#[test]
fn ranks_that_describe_a_hierarchy_differently_commit_nothing() {
    let sample = small();
    let owners = owners(&sample, 2, 3);
    let usual = options(None, 2000, None);
    let refused =
        |hierarchy: &PatchHierarchy, owners_of_1: &[Vec<u32>], options: &RankPatchOptions| {
            let folder = tempfile::tempdir().unwrap();
            let mut team = team(2, Placement::Counter, &folder);
            let fields = fields(&sample);
            let [first, second] = &mut team.0[..] else {
                panic!("two ranks");
            };
            let of_first = OwnedHierarchy {
                hierarchy: &sample.hierarchy,
                owners: &owners,
            };
            let of_second = OwnedHierarchy {
                hierarchy,
                owners: owners_of_1,
            };
            RankPatches::declare(first, "/amr", of_first, &fields, &usual).unwrap();
            RankPatches::declare(second, "/amr", of_second, &fields, options).unwrap();
            let error = team.commit().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!folder.path().join("ranks.ambar").exists());
            error.to_string()
        };
    let mut others = owners.clone();
    others[0][0] = 1 - others[0][0];
    let error = refused(&sample.hierarchy, &others, &usual);
    assert!(
        error.contains("the hierarchy is not defined alike"),
        "{error}"
    );
    assert!(error.contains("level_0.ranks: "), "{error}");
    let mut finer = sample.hierarchy.clone();
    finer.levels[1].cell_size[0] *= 0.5;
    let error = refused(&finer, &owners, &usual);
    assert!(error.contains("cell_size"), "{error}");
    let error = refused(&sample.hierarchy, &owners, &options(None, 2000, Some(0.5)));
    assert!(
        error.contains("the hierarchy is not defined alike"),
        "{error}"
    );
}
