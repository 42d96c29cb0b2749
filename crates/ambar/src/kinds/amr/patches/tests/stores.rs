//! Patches written to a store and read back, box by box.

use super::*;
use crate::error::ErrorKind;
use crate::kinds::bound::{Compression, ErrorBound};
use crate::kinds::select::Selection;

pub(super) fn boxes(sample: &Sample) -> Vec<(usize, usize, IndexBox)> {
    let levels = sample.hierarchy.levels.iter().enumerate();
    levels
        .flat_map(|(number, level)| {
            let boxes = level.boxes.iter().enumerate();
            boxes.map(move |(place, b)| (number, place, *b))
        })
        .collect()
}

pub(super) fn read(
    source: &dyn PatchSource,
    (level, place, b): (usize, usize, IndexBox),
    field: &str,
) -> Vec<u8> {
    let size = source.dtype(field).unwrap().size().unwrap();
    let mut out = vec![0xaa; b.cells() * size];
    source.read_box(level, place, field, &mut out).unwrap();
    out
}

/// The value of a cell of a field whose covered cells are averages.
fn averaged(sample: &Sample, field: &str, cell: Cell) -> f64 {
    if sample.cells[&cell] {
        let ratio = sample.hierarchy.levels[cell.0].ratio;
        let (lo, hi) = (cell.1, cell.1.map(|x| x + 1));
        let children = cells_of(&IndexBox { lo, hi }.refined(ratio));
        let sum = children.fold(0.0, |sum, c| sum + averaged(sample, field, (cell.0 + 1, c)));
        let mean = sum * (1.0 / ratio.iter().product::<i64>() as f64);
        let single = sample.dtype(field).unwrap() == DataType::Float32;
        return if single { f64::from(mean as f32) } else { mean };
    }
    sample.value(field, cell)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn boxes_round_trip_through_a_store(recipe in recipes(), chunk in 1usize..3000) {
        let sample = Arc::new(Sample::new(&recipe));
        let memory = sample.in_memory();
        for covered in [Covered::Auto, Covered::Keep] {
            let (stored, _folder) = sample.stored(covered, chunk);
            prop_assert_eq!(PatchSource::hierarchy(&stored), &sample.hierarchy);
            prop_assert_eq!(PatchSource::fields(&stored), &sample.fields);
            for field in FIELDS {
                for b in boxes(&sample) {
                    let expected = read(&*sample, b, field);
                    prop_assert!(read(&stored, b, field) == expected, "{field} {b:?} {covered:?}");
                    prop_assert!(read(&memory, b, field) == expected);
                }
            }
        }
        let (stored, _folder) = sample.stored(Covered::Drop, chunk);
        for field in FIELDS {
            let kept = field == "count";
            for b in boxes(&sample) {
                let cells = cells_of(&b.2).map(|cell| (b.0, cell));
                let size = sample.dtype(field).unwrap().size().unwrap();
                for (cell, bytes) in cells.zip(read(&stored, b, field).chunks_exact(size)) {
                    let expected = if kept { sample.value(field, cell) } else { averaged(&sample, field, cell) };
                    let found = match size {
                        4 if kept => f64::from(i32::from_ne_bytes(bytes.try_into().unwrap())),
                        4 => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
                        _ => f64::from_ne_bytes(bytes.try_into().unwrap()),
                    };
                    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    prop_assert!(same, "{field} of {cell:?}: {found} instead of {expected}");
                }
            }
        }
    }

    #[test]
    fn covered_cells_are_dropped_only_if_they_are_averages(recipe in recipes()) {
        let sample = Sample::new(&recipe);
        let (stored, _folder) = sample.stored(Covered::Auto, 100);
        for level in 0..recipe.levels {
            let covered = sample.cells.iter().any(|((l, _), covered)| *l == level && *covered);
            for (place, field) in FIELDS.iter().enumerate() {
                let exact = sample.cells.iter().filter(|((l, _), c)| *l == level && **c).all(|(cell, _)| {
                    let ratio = sample.hierarchy.levels[level].ratio;
                    let (lo, hi) = (cell.1, cell.1.map(|x| x + 1));
                    let children = cells_of(&IndexBox { lo, hi }.refined(ratio));
                    let sum = children.fold(0.0, |sum, c| sum + sample.value(field, (level + 1, c)));
                    let mean = sum * (1.0 / ratio.iter().product::<i64>() as f64);
                    let single = sample.dtype(field).unwrap() == DataType::Float32;
                    let mean = if single { f64::from(mean as f32) } else { mean };
                    mean.to_bits() == sample.value(field, *cell).to_bits()
                });
                let expected = covered && exact && *field != "count";
                prop_assert_eq!(stored.values.drops(level, place), expected, "{} level {}", field, level);
            }
        }
    }
}

/// One fine box over part of a coarse one.
pub(super) fn pair() -> (PatchHierarchy, IndexBox) {
    let line = |lo, hi| IndexBox {
        lo: [lo, 0, 0],
        hi: [hi, 1, 1],
    };
    let level = |domain, b, size, ratio| PatchLevel {
        domain,
        boxes: vec![b],
        cell_size: [size, 0.0, 0.0],
        ratio: [ratio, 1, 1],
    };
    let hierarchy = PatchHierarchy {
        ndim: 1,
        lower: [0.0; 3],
        upper: [64.0, 0.0, 0.0],
        levels: vec![
            level(line(0, 64), line(0, 64), 1.0, 2),
            level(line(0, 128), line(32, 96), 0.5, 1),
        ],
    };
    (hierarchy, line(16, 48))
}

struct Plain {
    hierarchy: PatchHierarchy,
    fields: Vec<String>,
    values: Vec<Vec<f64>>,
}

impl PatchSource for Plain {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }
    fn fields(&self) -> &[String] {
        &self.fields
    }
    fn dtype(&self, _field: &str) -> Result<DataType> {
        Ok(DataType::Float64)
    }
    fn read_box(&self, level: usize, _index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        if field == "broken" {
            return Err(Error::corrupt("this field cannot be read"));
        }
        out.copy_from_slice(bytemuck::cast_slice(&self.values[level]));
        Ok(())
    }
}

fn plain(fields: &[&str]) -> Plain {
    Plain {
        hierarchy: pair().0,
        fields: fields.iter().map(|name| (*name).to_owned()).collect(),
        values: vec![vec![1.5; 64], vec![1.5; 64]],
    }
}

fn write(source: &Plain, options: &PatchOptions) -> Result<(PatchAmr, Store)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default())?;
    PatchAmr::write(&mut writer, "/amr/", source, options)?;
    writer.commit()?;
    let store = Store::open(&path)?;
    Ok((PatchAmr::open(&store, "/amr/")?, store))
}

#[test]
fn dropped_cells_take_no_blocks_unless_a_field_keeps_them() {
    let blocks = |source: &Plain| {
        let (amr, store) = write(source, &PatchOptions::default()).unwrap();
        let stored = store.array("/amr/level_0/a").unwrap().shape()[0] as usize;
        assert_eq!(amr.blocks(0).unwrap().origins().len(), stored);
        (stored, amr.values.drops(0, 0))
    };
    let mut source = plain(&["a"]);
    assert_eq!(blocks(&source), (2, true));
    source.values[0][20] = 1.25;
    assert_eq!(blocks(&source), (4, false));
    // A value that is not covered does not matter.
    source.values[0][20] = 1.5;
    source.values[0][60] = 1.25;
    assert_eq!(blocks(&source), (2, true));
}

#[test]
fn fields_with_names_that_are_invalid_for_arrays_are_kept() {
    let names = ["rho/total", "box", "a\\b", "field_1", "Y(H2)"];
    let source = plain(&names);
    let (amr, store) = write(&source, &PatchOptions::default()).unwrap();
    assert_eq!(amr.fields(), names);
    assert!(store.array("/amr/level_1/Y(H2)").is_ok());
    for name in names {
        let cells = amr.cells(&[name], &Selection::default()).unwrap();
        assert!(cells[0].1.values::<f64>().iter().all(|value| *value == 1.5));
    }
}

#[test]
fn fields_are_selected_and_invalid_fields_are_errors() {
    let source = plain(&["a", "b", "broken"]);
    let chosen = |names: &[&str]| PatchOptions {
        fields: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..PatchOptions::default()
    };
    let (amr, _) = write(&source, &chosen(&["b"])).unwrap();
    assert_eq!(amr.fields(), ["b"]);
    let (amr, _) = write(&source, &chosen(&[])).unwrap();
    assert_eq!(amr.rows(), 32 + 64);
    assert_eq!(
        amr.cells(&["x"], &Selection::default()).unwrap()[0]
            .1
            .rows(),
        96
    );
    let kind = |options: &PatchOptions| write(&source, options).err().unwrap().kind();
    assert_eq!(kind(&chosen(&["a", "broken"])), ErrorKind::Corrupt);
    assert_eq!(kind(&chosen(&["a", "a"])), ErrorKind::Invalid);
    let bound = PatchOptions {
        compression: Compression {
            error_bounds: vec![("b".into(), ErrorBound::Absolute(0.1))],
            ..Compression::default()
        },
        ..chosen(&["a"])
    };
    assert_eq!(kind(&bound), ErrorKind::NotFound);
}

#[test]
fn progress_reaches_the_end_and_can_stop_the_work() {
    let source = plain(&["a", "b"]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&seen);
    let mut options = PatchOptions {
        progress: Some(Arc::new(move |done, total| {
            reported.lock().unwrap().push((done, total));
            Ok(())
        })),
        ..PatchOptions::default()
    };
    write(&source, &options).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted() && seen.last().is_some_and(|(done, total)| done == total));
    options.progress = Some(Arc::new(|_, _| {
        Err(Error::new(ErrorKind::Interrupted, "stop"))
    }));
    assert_eq!(
        write(&source, &options).err().unwrap().kind(),
        ErrorKind::Interrupted
    );
}

#[test]
fn ranges_are_of_the_stored_cells() {
    let sample = Sample::new(&Recipe {
        seed: 21,
        ndim: 2,
        levels: 3,
    });
    for covered in [Covered::Auto, Covered::Drop, Covered::Keep] {
        let (stored, _folder) = sample.stored(covered, 300);
        for level in 0..3 {
            let blocks = stored.blocks(level).unwrap();
            for (place, field) in FIELDS.iter().enumerate() {
                let dropped = stored.values.drops(level, place);
                let Some(ranges) = stored.values.ranges(blocks, place).unwrap() else {
                    assert!(blocks.chunks() < 2);
                    continue;
                };
                assert_eq!(ranges.len(), blocks.chunks());
                for (chunk, range) in ranges.iter().enumerate() {
                    let cells = blocks
                        .chunk(chunk)
                        .flat_map(|b| cells_of(&blocks.extent(b)));
                    let kept = cells.filter(|cell| {
                        let covered = sample.cells.get(&(level, *cell));
                        covered.is_some_and(|covered| !(dropped && *covered))
                    });
                    let values = kept.map(|cell| sample.value(field, (level, cell)));
                    let empty = [f64::INFINITY, f64::NEG_INFINITY];
                    let expected = values
                        .filter(|v| !v.is_nan())
                        .fold(empty, |[lo, hi], v| [lo.min(v), hi.max(v)]);
                    assert_eq!(*range, expected, "{field} {level} {chunk}");
                }
            }
        }
    }
}
