//! Arrays of all types, shapes, chunk shapes and profiles round trip.

mod common;

use ambar::DataType;
use ambar::array::{ArrayData, ArraySpec, NewArray, Slice, Strings};
use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability};
use ambar::parallel::with_threads;
use ambar::store::{Store, StoreWriter};

use common::{DTYPES, PROFILES, dtype, random_values, scratch_options};

/// A name, a shape, and a chunk shape; `None` for that of the library.
type Shape = (&'static str, Vec<u64>, Option<Vec<u64>>);

fn shapes() -> Vec<Shape> {
    vec![
        ("scalar", vec![], None),
        ("empty", vec![0], None),
        ("empty_block", vec![4, 0, 3], None),
        ("one", vec![1], None),
        ("one_chunk", vec![1000], None),
        ("padded_chunk", vec![10], Some(vec![16])),
        ("sharded", vec![1000], Some(vec![64])),
        ("even", vec![1024], Some(vec![64])),
        ("plane", vec![37, 53], Some(vec![8, 16])),
        ("row_chunks", vec![37, 53], Some(vec![5, 53])),
        ("block", vec![7, 11, 13], Some(vec![3, 4, 13])),
        ("four", vec![3, 2, 5, 4], Some(vec![2, 2, 2, 3])),
    ]
}

#[test]
fn every_type_shape_and_profile() {
    let folder = tempfile::tempdir().unwrap();
    for profile in PROFILES {
        let path = folder.path().join(format!("{profile:?}.ambar"));
        let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
        let mut expected = Vec::new();
        for name in DTYPES {
            let dtype = dtype(name);
            for (shape_name, shape, chunks) in shapes() {
                let elements: u64 = shape.iter().product();
                let values = random_values(&dtype, elements as usize);
                let mut spec = ArraySpec::new(dtype.clone(), &shape).profile(profile);
                spec.chunk_shape = chunks;
                let node = format!("{}/{shape_name}", name.replace(['[', ']', '<', '|'], "_"));
                writer
                    .write_array(&node, &spec, ArrayData::Fixed(&values))
                    .unwrap();
                expected.push((node, spec, values));
            }
        }
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        for (node, spec, values) in expected {
            let array = store.array(&node).unwrap();
            assert_eq!(array.shape(), spec.shape);
            assert_eq!(*array.dtype(), spec.dtype);
            let all: Vec<Slice> = spec.shape.iter().copied().map(Slice::all).collect();
            for threads in [1, 3] {
                let mut out = vec![0xa5; values.len()];
                with_threads(Some(threads), || array.read(&all, &mut out)).unwrap();
                assert!(out == values, "{node} {profile:?} {}", array.codecs());
            }
            if let [rows] = *spec.shape {
                let mut out = vec![0xa5; values.len()];
                array.read_rows(0..rows, &mut out).unwrap();
                assert!(out == values, "{node} by rows");
            }
        }
        let report = store.verify(&|_, _| true).unwrap();
        assert_eq!(report.damage, Vec::<String>::new());
        assert!(report.chunks > 0);
    }
}

#[test]
fn a_long_array_takes_several_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.ambar");
    let rows = 20_000_000u64;
    let values: Vec<i64> = (0..rows as i64).map(|i| i / 3).collect();
    let values: &[u8] = bytemuck::cast_slice(&values);
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Int64, &[rows]);
    writer
        .write_array("long", &spec, ArrayData::Fixed(values))
        .unwrap();
    writer.commit().unwrap();
    let array = Store::open(&path).unwrap().array("/long").unwrap();
    assert!(array.shard_shape().unwrap()[0] * 8 <= 64 << 20);
    assert_eq!(array.chunk_count(), 610);
    let mut out = vec![0; values.len()];
    array.read(&[Slice::all(rows)], &mut out).unwrap();
    assert!(out == values);
    let mut part = vec![0; 8 * 100_000];
    array.read_rows(8_350_000..8_450_000, &mut part).unwrap();
    assert!(part == values[8 * 8_350_000..8 * 8_450_000]);
}

#[test]
fn strings_and_byte_strings() {
    let folder = tempfile::tempdir().unwrap();
    for profile in PROFILES {
        let path = folder.path().join(format!("{profile:?}.ambar"));
        let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
        let texts: Strings = (0..1001).map(|i| "žluťoučký kůň".repeat(i % 5)).collect();
        let bytes: Strings = (0..1001u32)
            .map(|i| vec![i as u8; i as usize % 7])
            .collect();
        let mut nodes = Vec::new();
        for (dtype, values) in [(DataType::String, &texts), (DataType::Bytes, &bytes)] {
            for (shape, chunks) in [
                (vec![1001], vec![1001]),
                (vec![1001], vec![64]),
                (vec![7, 143], vec![3, 50]),
            ] {
                let spec = ArraySpec::new(dtype.clone(), &shape)
                    .profile(profile)
                    .chunks(&chunks);
                let node = format!("{dtype}_{}_{}", shape.len(), chunks[0]);
                writer
                    .write_array(&node, &spec, ArrayData::Strings(values))
                    .unwrap();
                nodes.push((node, shape, values));
            }
            let none = Strings::default();
            let spec = ArraySpec::new(dtype.clone(), &[0]);
            writer
                .write_array(&format!("{dtype}_none"), &spec, ArrayData::Strings(&none))
                .unwrap();
        }
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        for (node, shape, values) in nodes {
            let array = store.array(&node).unwrap();
            let all: Vec<Slice> = shape.iter().copied().map(Slice::all).collect();
            assert!(array.read_strings(&all).unwrap() == *values, "{node}");
        }
        let part = store.array("string_1_64").unwrap();
        let part = part
            .read_strings(&[Slice {
                start: 3,
                stop: 900,
                step: 70,
            }])
            .unwrap();
        assert_eq!(part.len(), 13);
        for i in 0..part.len() {
            assert_eq!(part.get(i), texts.get(3 + 70 * i));
        }
        assert!(
            store
                .array("string_none")
                .unwrap()
                .read_strings(&[Slice::all(0)])
                .unwrap()
                .is_empty()
        );
        assert!(store.verify(&|_, _| true).unwrap().damage.is_empty());
    }
}

#[test]
fn selections_equal_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ambar");
    let shape = [23u64, 31, 19];
    let values: Vec<u32> = (0..23 * 31 * 19).collect();
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::UInt32, &shape).chunks(&[5, 8, 19]);
    writer
        .write_array("a", &spec, ArrayData::Fixed(bytemuck::cast_slice(&values)))
        .unwrap();
    writer.commit().unwrap();
    let array = Store::open(&path).unwrap().array("a").unwrap();
    let mut random = common::Random::new(7);
    for _ in 0..500 {
        let selection: Vec<Slice> = shape
            .iter()
            .map(|length| {
                let start = random.below(length + 1);
                let stop = start + random.below(length - start + 1);
                Slice {
                    start,
                    stop,
                    step: 1 + random.below(12) * random.below(2),
                }
            })
            .collect();
        let mut expected = Vec::new();
        let indices =
            |d: usize| (selection[d].start..selection[d].stop).step_by(selection[d].step as usize);
        for i in indices(0) {
            for j in indices(1) {
                expected.extend(indices(2).map(|k| ((i * 31 + j) * 19 + k) as u32));
            }
        }
        let mut out = vec![0u32; expected.len()];
        array
            .read(&selection, bytemuck::cast_slice_mut(&mut out))
            .unwrap();
        assert!(out == expected, "{selection:?}");
    }
}

#[test]
fn invalid_calls_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let spec = ArraySpec::new(DataType::Float32, &[10]);
    let data = ArrayData::Fixed(&[0; 40]);
    for (node, spec, data) in [
        ("/", &spec, data),
        ("../a", &spec, data),
        ("a//b", &spec, data),
        ("a/zarr.json", &spec, data),
        ("a", &spec, ArrayData::Fixed(&[0; 41])),
        ("a", &spec.clone().chunks(&[0]), data),
        ("a", &spec.clone().chunks(&[2, 2]), data),
        ("a", &spec.clone().dimensions(&["x", "y"]), data),
        ("a", &ArraySpec::new(DataType::String, &[10]), data),
        (
            "a",
            &ArraySpec::new(DataType::Bool, &[1]),
            ArrayData::Fixed(&[2]),
        ),
    ] {
        assert!(writer.write_array(node, spec, data).is_err(), "{node}");
    }
    let latin1 = Strings {
        offsets: vec![0, 1],
        bytes: vec![0xe9],
    };
    let text = ArraySpec::new(DataType::String, &[1]);
    assert!(
        writer
            .write_array("a", &text, ArrayData::Strings(&latin1))
            .is_err()
    );
    writer.write_array("a", &spec, data).unwrap();
    assert!(writer.write_array("a/b", &spec, data).is_err());
    for paths in [["x", "x"], ["x/y", "x"]] {
        let arrays = paths.map(|path| NewArray {
            path,
            spec: &spec,
            data,
        });
        assert!(writer.write_arrays(&arrays).is_err(), "{paths:?}");
    }
    assert!(writer.group("a", Default::default()).is_err());
    assert!(writer.remove("nothing").is_err());
    writer.commit().unwrap();
    let array = Store::open(&path).unwrap().array("a").unwrap();
    let mut out = [0; 40];
    assert!(array.read(&[Slice::all(10)], &mut out[..39]).is_err());
    assert!(array.read(&[Slice::all(11)], &mut out).is_err());
    assert!(
        array
            .read(
                &[Slice {
                    start: 0,
                    stop: 10,
                    step: 0
                }],
                &mut out
            )
            .is_err()
    );
    assert!(array.read(&[], &mut out).is_err());
    assert!(array.read_rows(5..11, &mut [0; 24]).is_err());
    assert!(array.read_strings(&[Slice::all(10)]).is_err());
}

#[test]
fn nodes_are_replaced_removed_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    for directory in [false, true] {
        let path = folder.path().join(if directory { "d" } else { "f.ambar" });
        let options = CreateOptions {
            directory,
            ..scratch_options()
        };
        let mut writer = StoreWriter::create(&path, &options).unwrap();
        let long = ArraySpec::new(DataType::UInt8, &[1000]).chunks(&[10]);
        let short = ArraySpec::new(DataType::UInt8, &[3]);
        let mut attributes = ambar::metadata::Attributes::new();
        attributes.insert("units".into(), "K".into());
        writer.group("/", attributes.clone()).unwrap();
        writer.group("z", attributes.clone()).unwrap();
        writer
            .write_array("z/long", &long, ArrayData::Fixed(&[1; 1000]))
            .unwrap();
        writer
            .write_array("a/b/c", &short, ArrayData::Fixed(&[1; 3]))
            .unwrap();
        writer.commit().unwrap();
        drop(writer);
        let paths = |store: &Store| -> Vec<String> {
            store
                .nodes()
                .unwrap()
                .into_iter()
                .map(|(path, _)| path)
                .collect()
        };
        let before = Store::open(&path).unwrap();
        assert_eq!(paths(&before), ["/z", "/z/long", "/a", "/a/b", "/a/b/c"]);
        assert_eq!(before.group("/").unwrap().attributes()["units"], "K");
        assert_eq!(
            before.group("/").unwrap().attributes()["ambar"]["version"],
            1
        );
        assert_eq!(before.group("z").unwrap().attributes()["units"], "K");
        assert_eq!(before.children("/").unwrap().len(), 2);

        let mut writer = StoreWriter::append(&path, Durability::None).unwrap();
        writer
            .write_array("z/long", &short, ArrayData::Fixed(&[7; 3]))
            .unwrap();
        writer.set_attributes("z/long", attributes).unwrap();
        writer.remove("a/b").unwrap();
        writer.commit().unwrap();
        let after = writer.last_commit().unwrap();
        assert_eq!(paths(&after), ["/z", "/z/long", "/a"]);
        let array = after.array("/z/long").unwrap();
        assert_eq!(array.attributes()["units"], "K");
        let mut out = [0; 3];
        array.read_rows(0..3, &mut out).unwrap();
        assert_eq!(out, [7; 3]);
        assert!(after.verify(&|_, _| true).unwrap().damage.is_empty());
        writer.remove("z").unwrap();
        writer
            .write_array("z/long", &long, ArrayData::Fixed(&[3; 1000]))
            .unwrap();
        writer.commit().unwrap();
        let again = writer.last_commit().unwrap();
        assert_eq!(paths(&again), ["/a", "/z", "/z/long"]);
        let mut out = [0; 1000];
        again
            .array("/z/long")
            .unwrap()
            .read_rows(0..1000, &mut out)
            .unwrap();
        assert_eq!(out, [3; 1000]);
        assert!(again.verify(&|_, _| true).unwrap().damage.is_empty());
        let error = after.array("/z/lang").unwrap_err();
        assert!(error.to_string().contains("z/long"), "{error}");
    }
}

#[test]
fn profiles_are_ordered_by_size() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<f64> = (0..100_000).map(|i| (f64::from(i) * 1e-3).sin()).collect();
    let mut sizes = Vec::new();
    for profile in [Profile::Fast, Profile::Balanced, Profile::Small] {
        let path = folder.path().join(format!("{profile:?}.ambar"));
        let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
        let spec = ArraySpec::new(DataType::Float64, &[100_000]).profile(profile);
        writer
            .write_array("a", &spec, ArrayData::Fixed(bytemuck::cast_slice(&values)))
            .unwrap();
        writer.commit().unwrap();
        sizes.push(
            Store::open(&path)
                .unwrap()
                .array("a")
                .unwrap()
                .stored_bytes()
                .unwrap(),
        );
    }
    assert!(sizes[1] < sizes[0] && sizes[2] <= sizes[1], "{sizes:?}");
}
