//! An object store in memory that records requests, for tests.

use std::fmt;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Mutex;

use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as Answer,
};

/// An object store in memory that records requests.
#[derive(Debug, Default)]
pub struct RecordingStore {
    inner: InMemory,
    requests: Mutex<Vec<String>>,
}

impl fmt::Display for RecordingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordingStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for RecordingStore {
    async fn put_opts(
        &self,
        at: &Path,
        bytes: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        self.inner.put_opts(at, bytes, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Answer<GetResult> {
        let what = match (options.head, &options.range) {
            (true, _) => "head".to_owned(),
            (_, None) => "all".to_owned(),
            (_, Some(range)) => range.to_string(),
        };
        self.requests.lock().unwrap().push(format!("{at} {what}"));
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        places: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        self.inner.delete_stream(places)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.requests.lock().unwrap().push("list".to_owned());
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

impl RecordingStore {
    /// Puts `bytes` as the object `key`.
    pub fn insert(&self, key: &str, bytes: Vec<u8>) {
        let key = Path::parse(key).unwrap();
        let put = async { self.inner.put(&key, bytes.into()).await.unwrap() };
        futures_util::FutureExt::now_or_never(put).unwrap();
    }

    /// Removes the object `key`.
    pub fn remove(&self, key: &str) {
        let key = Path::parse(key).unwrap();
        let removed = async { self.inner.delete(&key).await.unwrap() };
        futures_util::FutureExt::now_or_never(removed).unwrap();
    }

    /// Uploads the file or folder at `path` as `key`.
    pub fn upload(&self, path: &FilePath, key: &str) {
        if path.is_file() {
            return self.insert(key, fs::read(path).unwrap());
        }
        for item in fs::read_dir(path).unwrap() {
            let item = item.unwrap();
            let name = item.file_name().into_string().unwrap();
            self.upload(&item.path(), &format!("{key}/{name}"));
        }
    }

    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}
