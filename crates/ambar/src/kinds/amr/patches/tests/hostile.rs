//! Stores with invalid attributes or arrays.

use serde_json::{Value, json};

use super::*;
use crate::array::{ArrayData, ArraySpec};
use crate::error::ErrorKind;
use crate::kinds::computed::ComputedColumns;
use crate::kinds::select::Selection;

/// The first sample that has a few boxes on each level.
fn sample() -> Sample {
    let samples = (0..).map(|seed| {
        Sample::new(&Recipe {
            seed,
            ndim: 3,
            levels: 3,
        })
    });
    let few = |level: &PatchLevel| level.boxes.len() > 2;
    let mut rich = samples.filter(|sample| sample.hierarchy.levels.iter().all(few));
    rich.next().unwrap()
}

/// A store that is changed after it was written, and its folder.
fn changed(change: impl FnOnce(&mut StoreWriter, &Store)) -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let options = PatchOptions {
        chunk_cells: Some(512),
        ..PatchOptions::default()
    };
    PatchAmr::write(&mut writer, "/amr", &sample(), &options).unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    change(&mut writer, &store);
    writer.commit().unwrap();
    (Store::open(&path).unwrap(), folder)
}

/// Opens a store and reads all of it. Returns the first error.
fn use_all(store: &Store) -> Result<()> {
    let amr = PatchAmr::open(store, "/amr")?;
    let mut names = amr.fields().to_vec();
    names.extend(amr.derived());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    amr.cells(&names, &Selection::default())?;
    let hierarchy = amr.hierarchy();
    let region = crate::kinds::region::Region::cuboid(&hierarchy.lower, &hierarchy.upper)?;
    let selection = Selection {
        region: Some(region),
        condition: Some(crate::condition::Condition::parse("density < 50")?),
        ..Selection::default()
    };
    amr.cells(&names, &selection)?;
    let window = amr.window(0, None)?;
    amr.grid(&["density"], &window, &ComputedColumns::NONE)?;
    amr.slice(
        "density",
        0,
        hierarchy.lower[0],
        &window,
        &ComputedColumns::NONE,
    )?;
    for (level, info) in hierarchy.levels.iter().enumerate() {
        for (place, b) in info.boxes.iter().enumerate() {
            for field in amr.fields() {
                let size = PatchSource::dtype(&amr, field)?.size().unwrap();
                amr.read_box(level, place, field, &mut vec![0; b.cells() * size])?;
            }
        }
    }
    Ok(())
}

#[test]
fn invalid_attributes_are_errors() {
    assert!(use_all(&changed(|_, _| ()).0).is_ok());
    let huge = i64::MAX;
    let cases: Vec<(&str, Value, ErrorKind)> = vec![
        ("/kind", json!("table"), ErrorKind::Invalid),
        ("/version", json!(2), ErrorKind::Unsupported),
        ("/layout", json!("tree"), ErrorKind::Unsupported),
        ("/ndim", json!(0), ErrorKind::Corrupt),
        ("/ndim", json!(2), ErrorKind::Corrupt),
        ("/ndim", json!(4), ErrorKind::Corrupt),
        ("/lower", json!([0.0]), ErrorKind::Corrupt),
        ("/lower/1", json!("x"), ErrorKind::Corrupt),
        ("/upper", json!(null), ErrorKind::Corrupt),
        ("/cells", json!(7), ErrorKind::Corrupt),
        ("/fields", json!([1]), ErrorKind::Corrupt),
        ("/fields", json!(["density", "density"]), ErrorKind::Corrupt),
        ("/fields", json!(["density", "x"]), ErrorKind::Corrupt),
        ("/fields", json!(["gone"]), ErrorKind::NotFound),
        ("/levels", json!([]), ErrorKind::Corrupt),
        ("/levels", json!(3), ErrorKind::Corrupt),
        ("/levels/0/domain/0/0", json!(-huge), ErrorKind::Corrupt),
        ("/levels/0/domain/1/0", json!(huge), ErrorKind::Corrupt),
        ("/levels/1/domain/1/0", json!(3), ErrorKind::Corrupt),
        ("/levels/1/cell_size/0", json!(-1.0), ErrorKind::Corrupt),
        ("/levels/0/ratio/0", json!(0), ErrorKind::Corrupt),
        ("/levels/0/ratio/0", json!(huge), ErrorKind::Corrupt),
        ("/levels/0/ratio/0", json!(7), ErrorKind::Corrupt),
        ("/levels/0/boxes", json!(1), ErrorKind::Corrupt),
        ("/levels/0/boxes", json!(huge), ErrorKind::Corrupt),
        ("/levels/0/box", json!(1), ErrorKind::Corrupt),
        ("/levels/0/box", json!([]), ErrorKind::Corrupt),
        ("/levels/1/box/0", json!([[0, 0, 0]]), ErrorKind::Corrupt),
        ("/levels/1/box/0/1/2", json!(0.5), ErrorKind::Corrupt),
        ("/levels/1/box/0/0/0", json!(-huge), ErrorKind::Corrupt),
        ("/levels/0/side", json!(0), ErrorKind::Corrupt),
        ("/levels/0/side", json!(5), ErrorKind::Corrupt),
        ("/levels/0/side", json!(huge), ErrorKind::Corrupt),
        ("/levels/0/blocks", json!(huge), ErrorKind::Corrupt),
        ("/levels/0/dropped", json!(1), ErrorKind::Corrupt),
    ];
    for (pointer, value, kind) in cases {
        let (store, _folder) = changed(|writer, store| {
            let mut attributes = store.group("/amr").unwrap().attributes().clone();
            *attributes["ambar"].pointer_mut(pointer).unwrap() = value.clone();
            writer.set_attributes("/amr", attributes).unwrap();
        });
        let error = PatchAmr::open(&store, "/amr").err();
        let error = error.unwrap_or_else(|| panic!("{pointer} {value} is accepted"));
        assert_eq!(error.kind(), kind, "{pointer} {value}: {error}");
        assert!(error.to_string().contains("/amr"), "{error}");
        assert!(error.to_string().contains("run.ambar"), "{error}");
    }
}

#[test]
fn fields_wrongly_marked_as_dropped_are_errors() {
    // A field that cannot be averaged is marked as averaged.
    let (store, _folder) = changed(|writer, store| {
        let mut attributes = store.group("/amr").unwrap().attributes().clone();
        attributes["ambar"]["levels"][0]["dropped"] = json!(["count"]);
        writer.set_attributes("/amr", attributes).unwrap();
    });
    assert_eq!(use_all(&store).unwrap_err().kind(), ErrorKind::Unsupported);
}

fn words(array: &crate::array::Array) -> Vec<i64> {
    let mut bytes = vec![0; array.elements() as usize * 8];
    let whole: Vec<_> = array
        .shape()
        .iter()
        .map(|n| crate::array::Slice::all(*n))
        .collect();
    array.read(&whole, &mut bytes).unwrap();
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| i64::from_ne_bytes(*word))
        .collect()
}

/// Moves the boxes of level 1 from the attributes to an array, as levels of many boxes have them.
fn move_boxes_to_array(writer: &mut StoreWriter, store: &Store) {
    let mut attributes = store.group("/amr").unwrap().attributes().clone();
    let level = attributes["ambar"]["levels"][1].as_object_mut().unwrap();
    let listed: Vec<[[i64; 3]; 2]> =
        serde_json::from_value(level.shift_remove("box").unwrap()).unwrap();
    writer.set_attributes("/amr", attributes).unwrap();
    let spec = ArraySpec::new(DataType::Int64, &[listed.len() as u64, 2, 3]);
    let values = ArrayData::Fixed(bytemuck::cast_slice(&listed));
    writer
        .write_array("/amr/level_1/box", &spec, values)
        .unwrap();
}

#[test]
fn another_number_of_derived_blocks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    PatchAmr::write(&mut writer, "/amr", &sample(), &PatchOptions::default()).unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.kind("/amr/level_1/origin").unwrap(), None);
    assert!(use_all(&store).is_ok());
    let mut attributes = store.group("/amr").unwrap().attributes().clone();
    let level = &mut attributes["ambar"]["levels"][1];
    let blocks = level["blocks"].as_u64().unwrap();
    level["blocks"] = json!(blocks + 1);
    writer.set_attributes("/amr", attributes).unwrap();
    for name in FIELDS {
        let array = store.array(&format!("/amr/level_1/{name}")).unwrap();
        let mut shape = array.shape().to_vec();
        shape[0] += 1;
        let bytes = vec![0; shape.iter().product::<u64>() as usize * array.dtype().size().unwrap()];
        let spec = ArraySpec::new(array.dtype().clone(), &shape).chunks(&shape);
        writer
            .write_array(array.path(), &spec, ArrayData::Fixed(&bytes))
            .unwrap();
    }
    writer.commit().unwrap();
    let error = use_all(&Store::open(&path).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("unit blocks"), "{error}");
}

#[test]
fn invalid_lists_of_positions_are_errors() {
    type Change = fn(&mut Vec<i64>);
    let cases: [(&str, Change); 12] = [
        ("origin", |words| words.swap(0, 3)),
        ("origin", |words| words[0] += 1),
        ("origin", |words| words[0] = i64::MAX - 3),
        ("origin", |words| words[0] = i64::MIN),
        ("origin", |words| words.copy_within(0..3, 3)),
        ("origin", |words| words.truncate(words.len() - 3)),
        ("box", |words| words[0] = i64::MIN),
        ("box", |words| words[0] += 1),
        ("box", |words| words.swap(0, 3)),
        ("box", |words| words.copy_within(0..6, 6)),
        ("index/box", |words| words[0] = i64::MAX),
        ("index/range", |words| words.truncate(2)),
    ];
    let (stored, _folder) = changed(move_boxes_to_array);
    assert!(use_all(&stored).is_ok());
    for (case, (name, change)) in cases.into_iter().enumerate() {
        let path = format!("/amr/level_1/{name}");
        let (store, _folder) = changed(|writer, store| {
            if name == "box" {
                move_boxes_to_array(writer, store);
            }
            let source = if name == "box" { &stored } else { store };
            let array = source.array(&path).unwrap();
            let mut values = words(&array);
            let rest: u64 = array.shape()[1..].iter().product();
            change(&mut values);
            let mut shape = array.shape().to_vec();
            shape[0] = values.len() as u64 / rest.max(1);
            let spec = ArraySpec::new(array.dtype().clone(), &shape);
            let bytes = bytemuck::cast_slice(&values);
            let fits = shape.iter().product::<u64>() as usize * 8;
            writer
                .write_array(&path, &spec, ArrayData::Fixed(&bytes[..fits]))
                .unwrap();
        });
        let error = use_all(&store).err();
        let error = error.unwrap_or_else(|| panic!("case {case} is accepted"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "case {case}: {error}");
        assert!(error.to_string().contains("run.ambar"), "{error}");
    }
}

#[test]
fn arrays_of_other_shapes_or_types_are_errors() {
    let f64s = |n: u64| vec![0u8; n as usize * 8];
    let side = 4;
    let (store, _folder) = changed(|_, _| ());
    let blocks = store.array("/amr/level_1/density").unwrap().shape()[0];
    type Case = (DataType, Vec<u64>, Vec<u64>);
    let cases: [Case; 6] = [
        (
            DataType::Float64,
            vec![blocks, side, side],
            vec![8, side, side],
        ),
        (
            DataType::Float64,
            vec![blocks + 1, side, side, side],
            vec![8, side, side, side],
        ),
        (
            DataType::Float64,
            vec![blocks, side, side, side],
            vec![8, 2, side, side],
        ),
        (
            DataType::Float64,
            vec![blocks, side, side, side],
            vec![7, side, side, side],
        ),
        (
            DataType::Int64,
            vec![blocks, side, side, side],
            vec![8, side, side, side],
        ),
        (DataType::Float64, vec![], vec![]),
    ];
    for (dtype, shape, chunks) in cases {
        let (store, _folder) = changed(|writer, _| {
            let bytes = f64s(shape.iter().product());
            let spec = ArraySpec::new(dtype.clone(), &shape).chunks(&chunks);
            writer
                .write_array("/amr/level_1/density", &spec, ArrayData::Fixed(&bytes))
                .unwrap();
        });
        let error = PatchAmr::open(&store, "/amr").err().unwrap();
        assert_eq!(
            error.kind(),
            ErrorKind::Corrupt,
            "{shape:?} {chunks:?}: {error}"
        );
    }
}

#[test]
fn missing_unit_blocks_are_detected() {
    // One block less in all arrays, so that shapes agree.
    let (store, _folder) = changed(|writer, store| {
        let mut attributes = store.group("/amr").unwrap().attributes().clone();
        let level = &mut attributes["ambar"]["levels"][1];
        let blocks = level["blocks"].as_u64().unwrap() - 1;
        level["blocks"] = json!(blocks);
        writer.set_attributes("/amr", attributes).unwrap();
        let mut arrays = FIELDS.to_vec();
        arrays.push("origin");
        for name in arrays {
            let path = format!("/amr/level_1/{name}");
            let array = store.array(&path).unwrap();
            let mut shape = array.shape().to_vec();
            let size = array.dtype().size().unwrap();
            let mut bytes = vec![0; array.elements() as usize * size];
            let whole: Vec<_> = shape.iter().map(|n| crate::array::Slice::all(*n)).collect();
            array.read(&whole, &mut bytes).unwrap();
            bytes.drain(..bytes.len() / shape[0] as usize);
            shape[0] = blocks;
            let spec = ArraySpec::new(array.dtype().clone(), &shape).chunks(array.chunk_shape());
            writer
                .write_array(&path, &spec, ArrayData::Fixed(&bytes))
                .unwrap();
        }
        writer.remove("/amr/level_1/index").unwrap();
    });
    let amr = PatchAmr::open(&store, "/amr").unwrap();
    let boxes = amr.hierarchy().levels[1].boxes.iter().enumerate();
    let mut errors = Vec::new();
    for (place, b) in boxes {
        errors.extend(
            amr.read_box(1, place, "density", &mut vec![0; b.cells() * 8])
                .err(),
        );
    }
    assert!(!errors.is_empty());
    assert!(
        errors
            .iter()
            .all(|error| error.kind() == ErrorKind::Corrupt)
    );
}
