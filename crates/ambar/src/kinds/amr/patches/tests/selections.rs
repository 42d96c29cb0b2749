//! Selected cells, compared with a loop over all cells.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::condition::Condition;
use crate::kinds::amr::patches::open::values::Values;
use crate::kinds::computed::ComputedColumns;
use crate::kinds::region::Region;
use crate::kinds::select::Selection;

fn check(sample: &Sample, amr: &PatchAmr, selection: &Selection, picked: &dyn Fn(Cell) -> bool) {
    let mut names: Vec<String> = sample.fields.clone();
    names.extend(amr.derived());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let leaves = sample.leaves(&Sample::sides(amr));
    let expected: Vec<Cell> = leaves.into_iter().filter(|cell| picked(*cell)).collect();
    let found = amr.cells(&names, selection).unwrap();
    for (name, column) in &found {
        assert_eq!(column.rows(), expected.len(), "{name}");
        let size = column.dtype().size().unwrap();
        assert_eq!(*column.dtype(), amr.dtype(name).unwrap());
        for (cell, bytes) in expected.iter().zip(column.bytes().chunks_exact(size)) {
            let axis = |d: &str| ["x", "y", "z"].iter().position(|axis| *axis == d).unwrap();
            let value = match name.as_str() {
                "level" => (cell.0 as i32).to_ne_bytes().to_vec(),
                "x" | "y" | "z" => sample.centre(*cell)[axis(name)].to_ne_bytes().to_vec(),
                "ix" | "iy" | "iz" => cell.1[axis(&name[1..])].to_ne_bytes().to_vec(),
                "dx" | "dy" | "dz" => {
                    let sides = sample.hierarchy.levels[cell.0].cell_size;
                    sides[axis(&name[1..])].to_ne_bytes().to_vec()
                }
                _ => sample.bytes(name, *cell),
            };
            assert_eq!(bytes, value, "{name} of {cell:?}");
        }
    }
}

fn check_all(sample: &Sample, amr: &PatchAmr, random: &mut Random) {
    let h = &sample.hierarchy;
    let everything = Selection::default();
    check(sample, amr, &everything, &|_| true);
    let mut lo = [0.0; 3];
    let mut hi = [0.0; 3];
    for d in 0..h.ndim {
        let place = |random: &mut Random| {
            h.lower[d] + (h.upper[d] - h.lower[d]) * (random.below(129) as f64 - 14.0) / 100.0
        };
        let (a, b) = (place(random), place(random));
        (lo[d], hi[d]) = (a.min(b), a.max(b));
    }
    let region = Region::cuboid(&lo[..h.ndim], &hi[..h.ndim]).unwrap();
    let in_region = |cell: Cell| region.contains(&sample.centre(cell));
    let of_region = Selection {
        region: Some(region.clone()),
        ..Selection::default()
    };
    check(sample, amr, &of_region, &in_region);
    let levels = (random.below(3) as u8, random.below(3) as u8 + 2);
    let in_levels = |cell: Cell| (levels.0..=levels.1).contains(&(cell.0 as u8));
    let of_levels = Selection {
        levels: Some(levels),
        ..Selection::default()
    };
    check(sample, amr, &of_levels, &in_levels);
    let text = "not gaps < 4 and count <= 20 or level == 1 and iy > 3";
    let text = if h.ndim > 1 {
        text
    } else {
        "not gaps < 4 and count <= 20"
    };
    let holds = |cell: Cell| {
        let value = |field| sample.value(field, cell);
        let first = (value("gaps") >= 4.0 || value("gaps").is_nan()) && value("count") <= 20.0;
        first || h.ndim > 1 && cell.0 == 1 && cell.1[1] > 3
    };
    let all = Selection {
        region: of_region.region.clone(),
        levels: Some(levels),
        condition: Some(Condition::parse(text).unwrap()),
        ..Selection::default()
    };
    check(sample, amr, &all, &|cell| {
        in_region(cell) && in_levels(cell) && holds(cell)
    });
    assert!(amr.chunks_touched(&all).unwrap() <= amr.chunks_touched(&of_levels).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn selections_pick_the_right_cells(recipe in recipes(), seed: u64, chunk in 1usize..3000) {
        let sample = Arc::new(Sample::new(&recipe));
        let memory = sample.in_memory();
        prop_assert_eq!(memory.rows() as usize, sample.cells.values().filter(|c| !**c).count());
        check_all(&sample, &memory, &mut Random(seed));
        for covered in [Covered::Auto, Covered::Drop, Covered::Keep] {
            let (stored, _folder) = sample.stored(covered, chunk);
            prop_assert_eq!(stored.cells_per_level(), memory.cells_per_level());
            prop_assert_eq!(Sample::sides(&stored), Sample::sides(&memory));
            check_all(&sample, &stored, &mut Random(seed));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn loaded_boxes_hold_the_cells_of_the_region(
        recipe in recipes(), seed: u64, last in 0usize..4, periodic: bool,
    ) {
        let sample = Arc::new(Sample::new(&recipe));
        let h = &sample.hierarchy;
        let mut random = Random(seed);
        let (mut lo, mut hi) = ([0.0; 3], [0.0; 3]);
        for d in 0..h.ndim {
            let mut place = || {
                h.lower[d] + (h.upper[d] - h.lower[d]) * (random.below(129) as f64 - 14.0) / 100.0
            };
            let (a, b) = (place(), place());
            (lo[d], hi[d]) = (a.min(b), a.max(b));
        }
        let mut region = Region::cuboid(&lo[..h.ndim], &hi[..h.ndim]).unwrap();
        if periodic {
            let size: Vec<f64> = (0..h.ndim).map(|d| h.upper[d] - h.lower[d]).collect();
            region = region.in_periodic_box(&h.lower[..h.ndim], &size).unwrap();
        }
        let (stored, _folder) = sample.stored(Covered::Keep, 500);
        let sources: [Arc<dyn PatchSource>; 2] = [Arc::clone(&sample) as _, Arc::new(stored)];
        let finest = last.min(h.levels.len() - 1);
        let axes = ["ix", "iy", "iz"];
        let mut names = vec!["level"];
        names.extend(&axes[..h.ndim]);
        names.extend(sample.fields.iter().map(String::as_str));
        for source in sources {
            let fields = sample.fields.clone();
            let loaded = PatchAmr::load_boxes(source, fields, Some(&region), Some(last)).unwrap();
            prop_assert_eq!(loaded.hierarchy().levels.len(), finest + 1);
            let columns = loaded.cells(&names, &Selection::default()).unwrap();
            let mut found = std::collections::BTreeSet::new();
            for row in 0..columns[0].1.rows() {
                let index = |d: usize| columns[1 + d].1.values::<i64>()[row];
                let place = std::array::from_fn(|d| if d < h.ndim { index(d) } else { 0 });
                let cell = (columns[0].1.values::<i32>()[row] as usize, place);
                for (name, column) in &columns[1 + h.ndim..] {
                    let size = column.dtype().size().unwrap();
                    let value = &column.bytes()[row * size..(row + 1) * size];
                    prop_assert_eq!(value, sample.bytes(name, cell), "{} of {:?}", name, cell);
                }
                prop_assert!(found.insert(cell));
            }
            for (cell, covered) in &sample.cells {
                let is_leaf = cell.0 == finest || cell.0 < finest && !covered;
                if is_leaf && region.contains(&sample.centre(*cell)) {
                    prop_assert!(found.contains(cell), "{:?} is missing", cell);
                }
            }
            let lengths: u64 = loaded.chunk_lengths().unwrap().iter().sum();
            prop_assert_eq!(lengths, loaded.rows());
        }
    }
}

/// Counts the chunks read of each level.
struct Counting {
    inner: Box<dyn Values>,
    chunks: Arc<AtomicU64>,
}

impl Values for Counting {
    fn blocks(&self, nest: &Arc<Nest>, level: usize) -> Result<Blocks> {
        self.inner.blocks(nest, level)
    }
    fn read(
        &self,
        blocks: &Blocks,
        field: usize,
        range: Range<usize>,
        out: &mut [u8],
    ) -> Result<()> {
        let (first, last) = (
            range.start / blocks.per_chunk(),
            (range.end - 1) / blocks.per_chunk(),
        );
        self.chunks
            .fetch_add((last - first + 1) as u64, Ordering::Relaxed);
        self.inner.read(blocks, field, range, out)
    }
    fn ranges(&self, blocks: &Blocks, field: usize) -> Result<Option<Vec<[f64; 2]>>> {
        self.inner.ranges(blocks, field)
    }
    fn extents(&self, blocks: &Blocks) -> Result<Vec<IndexBox>> {
        self.inner.extents(blocks)
    }
}

#[test]
fn only_chunks_that_overlap_are_decoded() {
    let sample = Sample::new(&Recipe {
        seed: 12,
        ndim: 3,
        levels: 3,
    });
    let (opened, _folder) = sample.stored(Covered::Auto, 64);
    let chunks = Arc::new(AtomicU64::new(0));
    let values = Box::new(Counting {
        inner: opened.values,
        chunks: Arc::clone(&chunks),
    });
    let fields = opened.fields;
    let stored = PatchAmr::new(
        opened.nest,
        fields,
        opened.dtypes,
        values,
        Attributes::new(),
    );
    let stored = stored.unwrap();
    let all = stored.chunks().unwrap();
    let count = |selection: &Selection| {
        chunks.store(0, Ordering::Relaxed);
        stored.cells(&["density"], selection).unwrap();
        let read = chunks.load(Ordering::Relaxed);
        let touched = stored.chunks_touched(selection).unwrap();
        // Regions select centres of cells, so that overlapping chunks may have no selected cell.
        assert!(read == touched || selection.region.is_some() && read < touched);
        read
    };
    let whole = count(&Selection::default());
    let (lower, upper) = (sample.hierarchy.lower, sample.hierarchy.upper);
    let middle: Vec<f64> = lower
        .iter()
        .zip(upper)
        .map(|(a, b)| (a + b) / 2.0)
        .collect();
    let part = count(&Selection {
        region: Some(Region::cuboid(&lower, &middle).unwrap()),
        ..Selection::default()
    });
    let level = count(&Selection {
        levels: Some((1, 1)),
        ..Selection::default()
    });
    let none = count(&Selection {
        condition: Some(Condition::parse("density > 200").unwrap()),
        ..Selection::default()
    });
    assert!(0 < part && part < whole && 0 < level && level < whole && whole <= all);
    assert_eq!(none, 0);
    // Grids and slices read only chunks that they show.
    chunks.store(0, Ordering::Relaxed);
    let window = stored
        .window(1, Some(&Region::cuboid(&lower, &middle).unwrap()))
        .unwrap();
    stored
        .grid(&["density"], &window, &ComputedColumns::NONE)
        .unwrap();
    assert!((1..whole).contains(&chunks.load(Ordering::Relaxed)));
    chunks.store(0, Ordering::Relaxed);
    let window = stored.window(1, None).unwrap();
    stored
        .slice("density", 2, middle[2], &window, &ComputedColumns::NONE)
        .unwrap();
    assert!((1..whole).contains(&chunks.load(Ordering::Relaxed)));
}

#[test]
fn boxes_of_a_source_are_read_once_and_only_in_the_selection() {
    struct Once {
        sample: Sample,
        read: Mutex<Vec<(usize, usize, String)>>,
    }
    impl PatchSource for Once {
        fn hierarchy(&self) -> &PatchHierarchy {
            &self.sample.hierarchy
        }
        fn fields(&self) -> &[String] {
            &self.sample.fields
        }
        fn dtype(&self, field: &str) -> Result<DataType> {
            self.sample.dtype(field)
        }
        fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
            let entry = (level, index, field.to_owned());
            self.read.lock().unwrap().push(entry);
            self.sample.read_box(level, index, field, out)
        }
    }
    let sample = Sample::new(&Recipe {
        seed: 12,
        ndim: 3,
        levels: 3,
    });
    let boxes = sample.hierarchy.levels[0].boxes.clone();
    let once = Arc::new(Once {
        sample,
        read: Mutex::default(),
    });
    let amr = PatchAmr::from_source(Arc::clone(&once) as Arc<dyn PatchSource>).unwrap();
    let coarse = Selection {
        levels: Some((0, 0)),
        ..Selection::default()
    };
    for _ in 0..2 {
        amr.cells(&["density", "x"], &coarse).unwrap();
    }
    let read = once.read.lock().unwrap();
    assert!(!read.is_empty() && read.len() <= boxes.len());
    assert!(
        read.iter()
            .all(|(level, _, field)| *level == 0 && field == "density")
    );
}

#[test]
fn invalid_requests_are_errors() {
    let sample = Arc::new(Sample::new(&Recipe {
        seed: 3,
        ndim: 2,
        levels: 2,
    }));
    let amr = sample.in_memory();
    let all = Selection::default();
    assert!(amr.cells(&["nothing"], &all).is_err());
    assert!(amr.cells(&["z"], &all).is_err());
    let bad = [
        Selection {
            levels: Some((2, 1)),
            ..Selection::default()
        },
        Selection {
            region: Some(Region::sphere(&[0.0; 3], 1.0).unwrap()),
            ..Selection::default()
        },
        Selection {
            condition: Some(Condition::parse("nothing > 1").unwrap()),
            ..Selection::default()
        },
    ];
    for selection in bad {
        assert!(amr.cells(&["density"], &selection).is_err());
        assert!(amr.chunks_touched(&selection).is_err());
    }
    let none = Selection {
        levels: Some((7, 9)),
        ..Selection::default()
    };
    assert_eq!(amr.cells(&["single"], &none).unwrap()[0].1.rows(), 0);
    let twice = Sample {
        fields: vec!["density".into(), "density".into()],
        ..Sample::new(&Recipe {
            seed: 3,
            ndim: 2,
            levels: 2,
        })
    };
    assert!(PatchAmr::from_source(Arc::new(twice)).is_err());
    let derived = Sample {
        fields: vec!["iy".into()],
        ..Sample::new(&Recipe {
            seed: 3,
            ndim: 2,
            levels: 2,
        })
    };
    assert!(PatchAmr::from_source(Arc::new(derived)).is_err());
}
