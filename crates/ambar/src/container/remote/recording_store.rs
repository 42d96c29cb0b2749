//! An object store in memory that records requests, and lets one of them fail, for tests.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::future::Future;
use std::path::Path as FilePath;
use std::sync::Mutex;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartId, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result as Answer,
};

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no effect.
    Refused,
    /// It takes effect, and its answer is lost.
    Lost,
    /// It takes effect, and the connection breaks before its answer.
    Interrupted,
    /// It and all later ones have no effect: the client has died.
    Dead,
}

/// An object store in memory that records requests.
#[derive(Debug, Default)]
pub struct RecordingStore {
    inner: InMemory,
    requests: Mutex<Vec<String>>,
    /// The number of requests that succeed, and how the next one fails.
    fault: Mutex<Option<(usize, Fault)>>,
    /// Whether conditions of puts are ignored, as some services do.
    ignores_conditions: bool,
    /// Uploads that are neither complete nor aborted.
    uploads: Mutex<BTreeSet<MultipartId>>,
}

impl fmt::Display for RecordingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordingStore")
    }
}

fn failed() -> Error {
    Error::Generic {
        store: "RecordingStore",
        source: "on purpose".into(),
    }
}

fn interrupted() -> Error {
    let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    Error::Generic {
        store: "RecordingStore",
        source: Box::new(HttpError::new(HttpErrorKind::Interrupted, broken)),
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
        let mode = match &options.mode {
            PutMode::Create => "create",
            PutMode::Update(_) => "update",
            PutMode::Overwrite => "put",
        };
        let options = match self.ignores_conditions {
            true => PutOptions::default(),
            false => options,
        };
        let put = self.inner.put_opts(at, bytes, options);
        self.request(format!("{at} {mode}"), put).await
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
        let get = self.inner.get_opts(at, options);
        self.request(format!("{at} {what}"), get).await
    }

    fn delete_stream(
        &self,
        places: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        match self.next_fault("delete".to_owned()) {
            None => self.inner.delete_stream(places),
            Some(Fault::Interrupted) => {
                let deleted = self.inner.delete_stream(places);
                deleted.map(|_| Err(interrupted())).boxed()
            }
            Some(_) => places.map(|_| Err(failed())).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.requests.lock().unwrap().push("list".to_owned());
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let copy = self.inner.copy_opts(from, to, options);
        self.request(format!("{from} copy {to}"), copy).await
    }
}

#[async_trait::async_trait]
impl MultipartStore for RecordingStore {
    async fn create_multipart(&self, path: &Path) -> Answer<MultipartId> {
        let create = async {
            let id = self.inner.create_multipart(path).await?;
            self.uploads.lock().unwrap().insert(id.clone());
            Ok(id)
        };
        self.request(format!("{path} upload"), create).await
    }

    async fn put_part(
        &self,
        path: &Path,
        id: &MultipartId,
        index: usize,
        bytes: PutPayload,
    ) -> Answer<PartId> {
        let put = self.inner.put_part(path, id, index, bytes);
        self.request(format!("{path} part {index}"), put).await
    }

    async fn complete_multipart(
        &self,
        path: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Answer<PutResult> {
        let complete = async {
            let put = self.inner.complete_multipart(path, id, parts).await?;
            self.uploads.lock().unwrap().remove(id);
            Ok(put)
        };
        self.request(format!("{path} complete"), complete).await
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Answer<()> {
        let abort = async {
            self.uploads.lock().unwrap().remove(id);
            self.inner.abort_multipart(path, id).await
        };
        self.request(format!("{path} abort"), abort).await
    }
}

impl RecordingStore {
    /// A store that ignores the conditions of puts.
    pub fn without_conditions() -> Self {
        Self {
            ignores_conditions: true,
            ..Self::default()
        }
    }

    /// Lets `count` requests succeed, and the next one fail.
    pub fn fail_after(&self, count: usize, fault: Fault) {
        *self.fault.lock().unwrap() = Some((count, fault));
    }

    /// Lets all requests succeed. Returns whether one has failed.
    pub fn heal(&self) -> bool {
        let left = self.fault.lock().unwrap().take();
        left.is_none_or(|(count, fault)| count == 0 && fault == Fault::Dead)
    }

    /// The number of uploads that are neither complete nor aborted.
    pub fn uploads(&self) -> usize {
        self.uploads.lock().unwrap().len()
    }

    /// Records a request. Returns how it fails; `None` if it succeeds.
    fn next_fault(&self, name: String) -> Option<Fault> {
        // One lock for both, so that the requests are in the order in which they are counted.
        let mut requests = self.requests.lock().unwrap();
        requests.push(name);
        let mut fault = self.fault.lock().unwrap();
        match *fault {
            Some((0, found)) => {
                if found != Fault::Dead {
                    *fault = None;
                }
                Some(found)
            }
            Some((count, found)) => {
                *fault = Some((count - 1, found));
                None
            }
            None => None,
        }
    }

    async fn request<T>(&self, name: String, effect: impl Future<Output = Answer<T>>) -> Answer<T> {
        match self.next_fault(name) {
            None => effect.await,
            Some(Fault::Lost) => effect.await.and(Err(failed())),
            Some(Fault::Interrupted) => effect.await.and(Err(interrupted())),
            Some(_) => Err(failed()),
        }
    }

    /// Puts `bytes` as the object `key`.
    pub fn insert(&self, key: &str, bytes: Vec<u8>) {
        let key = Path::parse(key).unwrap();
        let put = async { self.inner.put(&key, bytes.into()).await.unwrap() };
        futures_util::FutureExt::now_or_never(put).unwrap();
    }

    /// The content of the object `key`; `None` if it does not exist.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        let key = Path::parse(key).unwrap();
        let get = async { self.inner.get(&key).await.ok()?.bytes().await.ok() };
        let bytes = futures_util::FutureExt::now_or_never(get).unwrap();
        bytes.map(|bytes| bytes.to_vec())
    }

    /// Puts an object as another program does.
    pub fn put_foreign(&self, key: &str, content: &'static [u8]) {
        let key = Path::parse(key).unwrap();
        let put = async { self.inner.put(&key, content.into()).await.unwrap() };
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
