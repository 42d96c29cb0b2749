//! Reads decode only the chunks that they need, each once; opening reads no other nodes than the requested ones.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

mod common;

use std::sync::Arc;
use std::sync::Mutex;

use ambar::array::{ArrayData, ArraySpec, Slice};
use ambar::container::{self, Container, Entry, Usage};
use ambar::kinds::source::ColumnSource;
use ambar::kinds::stored::StoredColumns;
use ambar::metadata::Attributes;
use ambar::parallel::with_threads;
use ambar::store::{Store, StoreWriter};
use ambar::{DataType, ErrorKind, Limits, Result};

use common::scratch_options;

/// A container that records reads.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn Container>,
    /// Offset and length of each read of a part of an entry.
    reads: Mutex<Vec<(u64, u64)>>,
    whole: Mutex<Vec<String>>,
}

impl Counting {
    fn open(path: &std::path::Path) -> Arc<Self> {
        let inner = container::open(path).unwrap();
        Arc::new(Self {
            inner,
            reads: Mutex::default(),
            whole: Mutex::default(),
        })
    }

    /// The lengths of the reads since the last call.
    fn take(&self) -> Vec<u64> {
        let reads = std::mem::take(&mut *self.reads.lock().unwrap());
        reads.into_iter().map(|(_, len)| len).collect()
    }
}

impl Container for Counting {
    fn location(&self) -> &str {
        self.inner.location()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>> {
        self.inner.entry(key)
    }

    fn read_at(&self, entry: &Entry, offset: u64, out: &mut [u8]) -> Result<()> {
        self.reads.lock().unwrap().push((offset, out.len() as u64));
        self.inner.read_at(entry, offset, out)
    }

    fn read_whole(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.whole.lock().unwrap().push(key.to_owned());
        self.inner.read_whole(key, limit)
    }

    fn verify(&self, key: &str, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.inner.verify(key, progress)
    }

    fn verify_records(&self) -> Result<u64> {
        self.inner.verify_records()
    }

    fn keys(&self) -> Result<Vec<String>> {
        self.inner.keys()
    }

    fn usage(&self) -> Result<Usage> {
        self.inner.usage()
    }
}

#[test]
fn reads_touch_the_chunks_they_need_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let values: Vec<u64> = (0..60 * 50 * 40).map(|i| i * i).collect();
    let values = ArrayData::Fixed(bytemuck::cast_slice(&values));
    let cube = ArraySpec::new(DataType::UInt64, &[60, 50, 40]).chunks(&[10, 10, 10]);
    let line = ArraySpec::new(DataType::UInt64, &[120_000]).chunks(&[1000]);
    writer.write_array("t/cube", &cube, values).unwrap();
    writer.write_array("t/line", &line, values).unwrap();
    writer.commit().unwrap();
    drop(writer);

    let counting = Counting::open(&path);
    let store = Store::from_container(counting.clone(), Limits::default()).unwrap();
    assert_eq!(*counting.whole.lock().unwrap(), ["zarr.json"]);
    let cube = store.array("t/cube").unwrap();
    let line = store.array("t/line").unwrap();
    assert_eq!((cube.chunk_count(), line.chunk_count()), (120, 120));
    assert_eq!(counting.take().len(), 0, "opening reads no chunk");

    let read = |selection: [Slice; 3]| {
        let count: u64 = selection.iter().map(Slice::len).product();
        let mut out = vec![0; 8 * count as usize];
        // One thread: two concurrent ones may both read the index of the shard.
        with_threads(Some(1), || cube.read(&selection, &mut out)).unwrap();
        counting.take()
    };
    let first = read([Slice::from(5..6), Slice::from(0..50), Slice::from(12..18)]);
    assert_eq!(first.len(), 1 + 5, "the shard's index and five chunks");
    assert_eq!(first[0], 120 * (16 + 4) + 4, "index and tags");
    assert_eq!(
        read([Slice::from(9..11), Slice::from(9..11), Slice::from(9..11)]).len(),
        8
    );
    assert_eq!(
        read([
            Slice::from(10..20),
            Slice::from(10..20),
            Slice::from(10..20)
        ])
        .len(),
        1
    );
    let sparse = Slice {
        start: 3,
        stop: 60,
        step: 25,
    };
    assert_eq!(
        read([sparse, Slice::from(0..1), Slice::from(0..1)]).len(),
        3
    );
    assert_eq!(
        read([Slice::from(7..7), Slice::from(0..50), Slice::from(0..40)]).len(),
        0
    );

    line.read_rows(1500..3001, &mut vec![0; 8 * 1501]).unwrap();
    assert_eq!(counting.take().len(), 1 + 3);
    let columns = StoredColumns::open(&store, "t", &["line".to_owned()]).unwrap();
    columns
        .read("line", 4000..5000, &mut vec![0; 8000])
        .unwrap();
    let reads = counting.take();
    assert_eq!(
        reads.len(),
        2,
        "an array of its own reads the index again, then one chunk"
    );
    columns.read("line", 5000..5001, &mut [0; 8]).unwrap();
    assert_eq!(counting.take().len(), 1);
    assert!(columns.ranges("line").unwrap().is_none());
    assert_eq!(
        columns.read("x", 0..1, &mut [0; 8]).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(counting.whole.lock().unwrap().len(), 1);
}

#[test]
fn an_array_of_ten_thousand_is_opened_with_two_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.ambar");
    let mut writer = StoreWriter::create(&path, &scratch_options()).unwrap();
    let mut attributes = Attributes::new();
    attributes.insert("units".into(), "K".into());
    attributes.insert("long_name".into(), "air temperature".into());
    let spec = ArraySpec::new(DataType::Float64, &[100])
        .dimensions(&["x"])
        .attributes(attributes);
    for i in 0..10_000 {
        let values = [f64::from(i); 100];
        let data = ArrayData::Fixed(bytemuck::cast_slice(&values));
        writer
            .write_array(&format!("dataset_{i:05}/temperature"), &spec, data)
            .unwrap();
    }
    writer.commit().unwrap();
    drop(writer);
    let counting = Counting::open(&path);
    let store = Store::from_container(counting.clone(), Limits::default()).unwrap();
    let array = store.array("dataset_05000/temperature").unwrap();
    let mut out = [0.0; 100];
    array
        .read_rows(0..100, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    assert_eq!(out, [5000.0; 100]);
    let documents = ["zarr.json", "dataset_05000/temperature/zarr.json"];
    assert_eq!(*counting.whole.lock().unwrap(), documents);
    assert_eq!(counting.take().len(), 1, "the chunk");
    assert_eq!(store.nodes().unwrap().len(), 20_000);
}
