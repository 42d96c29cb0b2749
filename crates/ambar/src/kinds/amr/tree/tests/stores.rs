//! Trees round trip through a store.

use super::*;
use crate::array::{ArrayData, ArraySpec};
use crate::container::CreateOptions;
use crate::error::ErrorKind;
use crate::kinds::bound::Compression;
use crate::kinds::region::Region;
use crate::kinds::select::Selection;
use crate::store::{Store, StoreWriter};

fn recipe() -> Recipe {
    Recipe {
        seed: 11,
        ndim: 2,
        root: [3, 2, 1],
        levels: 4,
        deepest: 30,
        gaps: 9,
        chunk_rows: 64,
    }
}

fn write(sample: &Sample, folder: &tempfile::TempDir) -> StoreWriter {
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let (leaves, columns) = (sample.leaves(), sample.columns());
    let mut more = Attributes::new();
    more.insert(
        "components".into(),
        serde_json::json!({"hydro": ["density", "mass"]}),
    );
    AmrTree::write(
        &mut writer,
        "/amr",
        &leaves,
        &columns,
        more,
        &Compression::default(),
    )
    .unwrap();
    writer
}

fn open(writer: &mut StoreWriter, folder: &tempfile::TempDir) -> Store {
    writer.commit().unwrap();
    Store::open(&folder.path().join("run.ambar")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn trees_round_trip_through_a_store(recipe in recipes(30)) {
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::new(&recipe);
        let store = open(&mut write(&sample, &folder), &folder);
        let stored = AmrTree::open(&store, "/amr").unwrap();
        let memory = AmrTree::from_leaves(sample.leaves(), sample.columns()).unwrap();
        prop_assert_eq!(stored.shape(), memory.shape());
        prop_assert_eq!(stored.fields(), memory.fields());
        prop_assert_eq!(stored.cells_per_level(), memory.cells_per_level());
        prop_assert_eq!(stored.geometry().unwrap(), memory.geometry().unwrap());
        for name in ["density", "mass", "level", "x"] {
            prop_assert_eq!(stored.dtype(name).unwrap(), memory.dtype(name).unwrap());
            let ranges = |tree: &AmrTree| crate::kinds::select::Rows::ranges(tree, name).unwrap();
            // The store of a tree of one chunk has no ranges of fields.
            let expected = ranges(&memory).filter(|_| !stored.fields().contains(&name.to_owned()));
            prop_assert_eq!(ranges(&stored), expected);
        }
        let names: Vec<String> = crate::kinds::select::Rows::names(&stored);
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let all = Selection::default();
        let (a, b) = (stored.cells(&names, &all).unwrap(), memory.cells(&names, &all).unwrap());
        for ((name, a), (_, b)) in a.iter().zip(&b) {
            prop_assert_eq!(a.bytes(), b.bytes(), "{}", name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn selected_cells_are_written_in_batches(
        recipe in recipes(12),
        coarsest in 0u8..4,
        radius in 0.1f64..0.9,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::new(&recipe);
        let tree = sample.tree(recipe.chunk_rows);
        let selection = Selection {
            region: Some(Region::sphere(&[0.3; 3][..recipe.ndim], radius).unwrap()),
            levels: Some((coarsest, 30)),
            ..Selection::default()
        };
        let names: Vec<String> = crate::kinds::select::Rows::names(&tree);
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let expected = tree.cells(&names, &selection).unwrap();
        let path = folder.path().join("run.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let (fields, more) = (["density", "mass"], Attributes::new());
        let compression = Compression::default();
        let written =
            tree.write_selected(&mut writer, "/amr", &fields, &selection, more, &compression);
        if expected[0].1.rows() == 0 {
            prop_assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
            return Ok(());
        }
        written.unwrap();
        let store = open(&mut writer, &folder);
        let stored = AmrTree::open(&store, "/amr").unwrap();
        let found = stored.cells(&names, &Selection::default()).unwrap();
        for ((name, a), (_, b)) in found.iter().zip(&expected) {
            prop_assert_eq!(a.bytes(), b.bytes(), "{}", name);
        }
    }
}

#[test]
fn a_damaged_index_is_an_error() {
    let sample = Sample::new(&recipe());
    let folder = tempfile::tempdir().unwrap();
    let rows = sample.leaves.len() as u64;
    let chunks = rows.div_ceil(crate::array::table_chunk_rows(rows));
    let geometry = |writer: &mut StoreWriter| {
        let tree = AmrTree::from_leaves(sample.leaves(), sample.columns()).unwrap();
        crate::kinds::amr::tree::write::write_geometry(writer, "/amr", tree.geometry().unwrap(), 2)
            .unwrap();
    };
    let words = |words: &[i64]| bytemuck::cast_slice::<i64, u8>(words).to_vec();
    let cases = [
        ("corner", DataType::Int64, vec![chunks, 2], words(&[-1, 0])),
        (
            "corner",
            DataType::Int64,
            vec![chunks, 2],
            words(&[0, 1 << 60]),
        ),
        (
            "corner",
            DataType::Int64,
            vec![chunks + 1, 2],
            words(&[0, 0, 1, 1]),
        ),
        ("corner", DataType::UInt64, vec![chunks, 2], words(&[0, 0])),
        ("level", DataType::UInt8, vec![chunks], vec![0]),
        ("box", DataType::Float64, vec![chunks, 2, 3], words(&[0; 6])),
        ("jump_corner", DataType::Int64, vec![1, 2], words(&[0, 0])),
        ("jump_row", DataType::UInt64, vec![1], words(&[0])),
    ];
    assert_eq!(chunks, 1, "the cases are made for one chunk");
    for (name, dtype, shape, bytes) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = write(&sample, &folder);
        // This index is not written for one chunk, but read.
        geometry(&mut writer);
        let spec = ArraySpec::new(dtype, &shape);
        let path = format!("/amr/index/{name}");
        writer
            .write_array(&path, &spec, ArrayData::Fixed(&bytes))
            .unwrap();
        let store = open(&mut writer, &folder);
        let tree = AmrTree::open(&store, "/amr").unwrap();
        let error = tree.cells(&["x"], &Selection::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} {error}");
        assert!(
            error.to_string().contains("run.ambar: /amr/index"),
            "{error}"
        );
        assert!(tree.cells(&["density"], &Selection::default()).is_ok());
    }
    drop(folder);
}

#[test]
fn groups_that_are_not_trees_are_errors() {
    let sample = Sample::new(&recipe());
    let changes: [(&str, serde_json::Value, ErrorKind); 8] = [
        ("cells", serde_json::json!(1), ErrorKind::Corrupt),
        ("kind", serde_json::json!("table"), ErrorKind::Invalid),
        ("version", serde_json::json!(2), ErrorKind::Unsupported),
        (
            "layout",
            serde_json::json!("patches"),
            ErrorKind::Unsupported,
        ),
        ("ndim", serde_json::json!(4), ErrorKind::Corrupt),
        ("lattice_level", serde_json::json!(200), ErrorKind::Corrupt),
        ("fields", serde_json::json!([1]), ErrorKind::Corrupt),
        (
            "fields",
            serde_json::json!(["density", "gone"]),
            ErrorKind::NotFound,
        ),
    ];
    for (key, value, kind) in changes {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = write(&sample, &folder);
        let store = open(&mut writer, &folder);
        let mut attributes = store.group("/amr").unwrap().attributes().clone();
        attributes["ambar"][key] = value;
        writer.set_attributes("/amr", attributes).unwrap();
        let store = open(&mut writer, &folder);
        let error = AmrTree::open(&store, "/amr").err().unwrap();
        assert_eq!(error.kind(), kind, "{key}: {error}");
        assert!(error.to_string().contains("/amr"), "{error}");
    }
}

#[test]
fn large_trees_have_many_chunks() {
    use crate::kinds::amr::tree::write::chunk_rows;
    assert_eq!(chunk_rows(204_667), 34_112);
    for rows in [
        1u64 << 20,
        1_390_000,
        5_500_000,
        100_000_000,
        10_000_000_000,
    ] {
        let chunk = chunk_rows(rows);
        let chunks = rows.div_ceil(chunk) as f64;
        let touched = (0.01f64.cbrt() + chunks.cbrt().recip()).powi(3);
        assert!(touched < 0.05, "{rows} cells in chunks of {chunk}");
        assert!(
            (2048..=32_768).contains(&chunk),
            "{rows} cells in chunks of {chunk}"
        );
    }
}
