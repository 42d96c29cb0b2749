//! Hierarchies of other programs, and forged ones: valid ones are read, others refused before large allocations.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use crc_fast::crc32_iscsi as crc32c;
use std::fs;
use std::path::Path;

use ambar::array::{ArrayData, ArraySpec, Slice, Strings};
use ambar::container::CreateOptions;
use ambar::store::{NodeKind, Store, StoreWriter};
use ambar::{DataType, ErrorKind, Limits, Result};
use serde_json::{Value, json};

/// An array of 8 numbers in two shards of two chunks, as zarr-python writes it.
fn sharded_document() -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 9, "attributes": {}, "storage_transformers": [],
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "end",
        }}],
    })
}

fn shard(chunks: &[u8], index: &[u64]) -> Vec<u8> {
    let index: &[u8] = bytemuck::cast_slice(index);
    [chunks, index, &crc32c(index).to_le_bytes()].concat()
}

/// Writes a directory of a root group and an array `a`, and reads the array.
fn read(document: &Value, shards: &[Vec<u8>]) -> Result<Vec<u16>> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        "zarr.json",
        json!({"zarr_format": 3, "node_type": "group"})
            .to_string()
            .as_bytes(),
    );
    write(root, "a/zarr.json", document.to_string().as_bytes());
    for (index, shard) in shards.iter().enumerate() {
        write(root, &format!("a/c/{index}"), shard);
    }
    let array = Store::open(root)?.array("a")?;
    let selection: Vec<Slice> = array.shape().iter().copied().map(Slice::all).collect();
    let mut out = vec![0u16; 8];
    array.read(&selection, bytemuck::cast_slice_mut(&mut out))?;
    Ok(out)
}

fn write(root: &Path, key: &str, bytes: &[u8]) {
    let path = root.join(key);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn missing_chunks_and_shards_of_other_programs_are_filled() {
    let none = u64::MAX;
    let first = shard(&[1, 0, 2, 0], &[none, none, 0, 4]);
    assert_eq!(
        read(&sharded_document(), &[first]).unwrap(),
        [9, 9, 1, 2, 9, 9, 9, 9]
    );
    // Both chunks may be the same bytes.
    let first = shard(&[1, 0, 2, 0], &[0, 4, 0, 4]);
    assert_eq!(
        read(&sharded_document(), &[first]).unwrap(),
        [1, 2, 1, 2, 9, 9, 9, 9]
    );
}

#[test]
fn forged_shard_indices_are_refused() {
    let chunks = [1, 0, 2, 0, 3, 0, 4, 0];
    let whole = chunks.len() as u64 + 36;
    for index in [
        [0, 4, 4, whole],
        [0, 4, whole, 1],
        [0, 4, u64::MAX - 100, 200],
        [0, 4, u64::MAX, 4],
        [0, 4, 4, u64::MAX],
        [0, u64::MAX - 1, 4, 4],
        [0, 4, 4, 5],
        [0, 4, 4, 3],
        [0, 4, 4, 0],
    ] {
        let error = read(&sharded_document(), &[shard(&chunks, &index)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{index:?}: {error}");
        assert!(error.node().starts_with("/a, chunk "), "{error}");
    }
    for len in [0, 3, 35] {
        assert!(read(&sharded_document(), &[vec![0; len]]).is_err());
    }
    let mut damaged = shard(&chunks, &[0, 4, 4, 4]);
    damaged[10] ^= 1;
    assert!(read(&sharded_document(), &[damaged]).is_err());
}

#[test]
fn forged_metadata_is_refused() {
    let change = |path: &str, value: Value| {
        let mut document = sharded_document();
        *document.pointer_mut(path).unwrap() = value;
        document
    };
    let inner = "/codecs/0/configuration";
    let huge = json!([u64::MAX]);
    for document in [
        change("/shape", json!([-1])),
        change("/shape", json!([8, 8])),
        change("/shape", json!([1u64 << 60, 1u64 << 60])),
        change("/shape", json!(vec![1; 40])),
        change("/shape", json!("8")),
        change("/zarr_format", json!(2)),
        change("/data_type", json!("float1024")),
        change(
            "/data_type",
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 7}}),
        ),
        change("/fill_value", json!(70_000)),
        change("/fill_value", json!("NaN")),
        change("/fill_value", json!(null)),
        change("/chunk_grid/name", json!("rectangular")),
        change("/chunk_grid/configuration/chunk_shape", json!([0])),
        change("/chunk_grid/configuration/chunk_shape", json!([3])),
        change("/chunk_grid/configuration/chunk_shape", huge.clone()),
        change("/chunk_grid/configuration", json!({})),
        change("/chunk_key_encoding/name", json!("hashed")),
        change("/chunk_key_encoding/configuration/separator", json!("..")),
        change(&format!("{inner}/chunk_shape"), json!([0])),
        change(&format!("{inner}/chunk_shape"), json!([2, 2])),
        change(&format!("{inner}/chunk_shape"), huge),
        change(&format!("{inner}/index_location"), json!("middle")),
        change(&format!("{inner}/index_codecs"), json!(["bytes", "zstd"])),
        change(&format!("{inner}/index_codecs"), json!([])),
        change(&format!("{inner}/codecs"), json!([])),
        change(
            &format!("{inner}/codecs"),
            json!([sharded_document()["codecs"][0]]),
        ),
        change("/codecs", json!(["numcodecs.bz2"])),
        change("/storage_transformers", json!([{"name": "indirection"}])),
    ] {
        let error = read(&document, &[]).unwrap_err();
        assert!(
            error.kind() != ErrorKind::Io && error.kind() != ErrorKind::Invalid,
            "{document}: {error:?}"
        );
    }
    // The maximum size, without chunks: only the memory of the caller limits reading.
    let mut vast = change("/shape", json!([1u64 << 40]));
    vast["chunk_grid"]["configuration"]["chunk_shape"] = json!([1u64 << 20]);
    assert_eq!(read(&vast, &[]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn invalid_roots_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let deep = "[".repeat(100_000);
    for root in [
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
        deep,
        json!({"zarr_format": 2}).to_string(),
        json!({"zarr_format": 3, "node_type": "group", "attributes": []}).to_string(),
        json!({"zarr_format": 3, "node_type": "group",
               "consolidated_metadata": {"metadata": [1]}})
        .to_string(),
        json!({"zarr_format": 3, "node_type": "group",
               "attributes": {"ambar": {"checksum": "crc32c:00000000"}}})
        .to_string(),
        json!({"zarr_format": 3, "node_type": "group",
               "attributes": {"ambar": {"checksum": "md5:0"}}})
        .to_string(),
        json!({"zarr_format": 3, "node_type": "group",
               "attributes": {"amba": {"checksum": "crc32c:00000000"}}})
        .to_string(),
        format!(
            r#"{{"zarr_format":3,"node_type":"group","consolidated_metadata":
                 {{"metadata":{{"a":{group},"a":{group}}}}}}}"#
        ),
    ] {
        write(folder.path(), "zarr.json", root.as_bytes());
        let error = Store::open(folder.path()).unwrap_err();
        assert!(
            !error.file().is_empty() && error.kind() != ErrorKind::Io,
            "{error:?}"
        );
    }
    fs::remove_file(folder.path().join("zarr.json")).unwrap();
    assert!(Store::open(folder.path()).is_err());
}

#[test]
fn hierarchies_of_other_programs_are_read_but_not_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let group =
        |n: u8| json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": n}}).to_string();
    write(root, "zarr.json", group(0).as_bytes());
    write(root, "g/zarr.json", group(1).as_bytes());
    let mut array = sharded_document();
    array["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
    array["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    write(root, "g/a/zarr.json", array.to_string().as_bytes());
    write(root, "g/a/0", &[0, 1, 0, 2, 0, 3, 0, 4]);
    let store = Store::open(root).unwrap();
    assert_eq!(store.group("g").unwrap().attributes()["n"], 1);
    let nodes = [
        ("/g".to_owned(), NodeKind::Group),
        ("/g/a".to_owned(), NodeKind::Array),
    ];
    let mut found = store.nodes().unwrap();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, nodes);
    let mut out = [0u16; 8];
    store
        .array("g/a")
        .unwrap()
        .read_rows(0..8, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    assert_eq!(out, [1, 2, 3, 4, 9, 9, 9, 9]);
    drop(store);
    assert!(StoreWriter::append(root, Default::default()).is_err());
}

/// Opens a directory whose root holds changed `nodes`, with a valid checksum, and reads the attributes of the group `g`.
fn open_checked(change: impl FnOnce(&mut Value)) -> Result<()> {
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let mut root = json!({
        "zarr_format": 3, "node_type": "group",
        "attributes": {"ambar": {"version": 1, "checksum": "crc32c:00000000"}},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {
            "g": group, "g/h": group, "a": sharded_document(),
        }},
    });
    change(&mut root);
    let text = root.to_string();
    let digits = format!("crc32c:{:08x}", crc32c(text.as_bytes()));
    let folder = tempfile::tempdir().unwrap();
    let text = text.replacen("crc32c:00000000", &digits, 1);
    write(folder.path(), "zarr.json", text.as_bytes());
    Store::open(folder.path())?.group("g").map(|_| ())
}

#[test]
fn forged_roots_with_a_valid_checksum_are_refused() {
    open_checked(|_| {}).unwrap();
    let nodes = "/consolidated_metadata/metadata";
    let group = || json!({"zarr_format": 3, "node_type": "group"});
    let long = "x".repeat(256);
    for name in [
        "",
        "..",
        "/g",
        "g/",
        "g//i",
        "g/../i",
        "Zarr.json",
        "g/zarr.json",
        "ambar",
        "AMBAR",
        ".ambar",
        "g\\i",
        "i/j",
        "g/i/j",
        "a/i",
        &long,
    ] {
        let error = open_checked(|root| root.pointer_mut(nodes).unwrap()[name] = group());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt, "{name:?}");
    }
    let late = json!({"b/c": group(), "b": group()});
    let error = open_checked(|root| *root.pointer_mut(nodes).unwrap() = late).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Corrupt, "b/c"));
    let error = open_checked(|root| {
        root.as_object_mut()
            .unwrap()
            .remove("consolidated_metadata");
    });
    // The nodes' own documents are not there.
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    let error = open_checked(|root| root["consolidated_metadata"] = Value::Null);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn groups_have_no_fields_that_must_be_understood() {
    type Change = fn(&mut Value);
    let refused: [Change; 5] = [
        |root| root["shape"] = json!([1]),
        |root| root["consolidated_metadata"]["metadata"]["g"]["shape"] = json!([1]),
        |root| root["novelty"] = json!({"must_understand": true}),
        |root| root["consolidated_metadata"]["kind"] = json!("outline"),
        |root| root["consolidated_metadata"]["must_understand"] = json!(true),
    ];
    for (case, change) in refused.into_iter().enumerate() {
        let error = open_checked(change).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "case {case}: {error}");
    }
    let nested = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    open_checked(|root| {
        root["novelty"] = json!({"must_understand": false, "name": "x"});
        root["consolidated_metadata"]["metadata"]["g"]["consolidated_metadata"] = nested;
    })
    .unwrap();
}

/// The decoded size in a compressed chunk is compared with the limits of the store, not with the defaults.
#[test]
fn decoders_apply_the_limits_of_their_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let texts: Strings = ["x".repeat(1 << 20)].into_iter().collect();
    let spec = ArraySpec::new(DataType::String, &[1]);
    writer
        .write_array("t", &spec, ArrayData::Strings(&texts))
        .unwrap();
    writer.commit().unwrap();
    let read = |limits: Limits| {
        let store = Store::open_with_limits(&path, limits)?;
        store.array("t")?.read_strings(&[Slice::all(1)])
    };
    assert_eq!(read(Limits::default()).unwrap(), texts);
    let limits = Limits {
        chunk_bytes: 1 << 19,
        ..Limits::default()
    };
    assert_eq!(read(limits).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn lists_of_entries_are_within_the_limits_of_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    for directory in [false, true] {
        let path = folder.path().join(format!("{directory}.ambar"));
        let options = CreateOptions {
            directory,
            ..CreateOptions::default()
        };
        let mut writer = StoreWriter::create(&path, &options).unwrap();
        let spec = ArraySpec::new(DataType::UInt8, &[1]);
        let values = ArrayData::Fixed(&[7]);
        writer.write_array("values", &spec, values).unwrap();
        writer.commit().unwrap();
        let open = |directory_bytes| {
            let limits = Limits {
                directory_bytes,
                ..Limits::default()
            };
            Store::open_with_limits(&path, limits)
        };
        open(1 << 20).unwrap();
        let error = open(16).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}
