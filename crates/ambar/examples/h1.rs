//! Scratch.
#![allow(clippy::all)]
use ambar::container::*;
use std::path::Path;
fn main() {
    let p = Path::new("/tmp/h1/x.ambar");
    let mut w = create(
        p,
        &CreateOptions {
            overwrite: true,
            ..Default::default()
        },
    )
    .unwrap();
    w.put(
        "zarr.json",
        &[br#"{"zarr_format":3,"node_type":"group","attributes":{"x":1}}"#],
    )
    .unwrap();
    w.put(
        "a/zarr.json",
        &[br#"{"zarr_format":3,"node_type":"group"}"#],
    )
    .unwrap();
    w.commit().unwrap();
    w.put(
        "b/zarr.json",
        &[br#"{"zarr_format":3,"node_type":"group"}"#],
    )
    .unwrap();
    w.commit().unwrap();
    let p = Path::new("/tmp/h1/many.ambar");
    let mut w = create(
        p,
        &CreateOptions {
            overwrite: true,
            ..Default::default()
        },
    )
    .unwrap();
    for i in 0..20000 {
        w.put(
            &format!("group/dataset_{i:05}/temperature/c/0"),
            &[b"0123456789"],
        )
        .unwrap();
    }
    let t = std::time::Instant::now();
    w.commit().unwrap();
    eprintln!("commit {:?}", t.elapsed());
    for _ in 0..5 {
        let t = std::time::Instant::now();
        let s = open(p).unwrap();
        eprintln!("open {:?}", t.elapsed());
        let _ = s.entry("x");
    }
}
