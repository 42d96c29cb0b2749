//! Requests for ranges of objects, concurrent, each checked to be of the version that was opened.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    PutResult, path::Path,
};

use super::super::ranges;
use super::errors::{self, replaced};
use super::runtime;
use super::service::{Service, WritableStore};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Parts of an object at most this number of bytes apart are fetched with one request.
pub const JOINED_GAP: u64 = 256 << 10;

/// Maximum number of concurrent requests.
const CONCURRENT_REQUESTS: usize = 16;

/// Maximum bytes of a request; longer ranges are fetched by several requests.
pub const PIECE_BYTES: u64 = 8 << 20;

/// Minimum bytes of the requests for a range: more requests are faster as long as all are concurrent.
pub const SMALL_PIECE_BYTES: u64 = 1 << 20;

/// Maximum number of repetitions of a request whose connection breaks, and the time before the first one.
const REPETITIONS: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Identifies a version of an object, to detect a replacement.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag.
    pub tag: Option<String>,
    /// Its version, if the service keeps several.
    pub version: Option<String>,
    /// The time of writing in nanoseconds; 0 if it is unknown.
    pub modified: i64,
}

impl PartialEq for Version {
    /// Compares times only if the service has no tags.
    fn eq(&self, other: &Self) -> bool {
        let is_same_time = self.tag.is_some() || self.modified == other.modified;
        (self.size, &self.tag) == (other.size, &other.tag) && is_same_time
    }
}

/// A range of an object.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    /// The object's key below the URL; empty for the one that the URL names.
    pub key: Arc<str>,
    /// The requested bytes.
    pub range: Range<u64>,
    /// The expected version, if known.
    pub version: Option<Version>,
}

/// The last `most` bytes of an object, or all if it has fewer, and its version.
pub fn tail(service: &Arc<Service>, most: u64) -> Result<(Vec<u8>, Version)> {
    let client = service.client()?;
    let path = service.object("")?;
    let found = runtime::wait(async move {
        match suffix(&*client, &path, most).await {
            // Some services do not support ranges counted from the end, and none does for empty objects; the
            // errors differ between services.
            Err(error) if is_final(&error) => Err(error),
            Err(_) => bounded_tail(&*client, &path, most).await,
            found => found,
        }
    })?;
    let (bytes, version) = found.map_err(|error| to_error(&error, service, ""))?;
    let expected = version.size.min(most) as usize;
    check_length(bytes.len(), expected).map_err(|error| error.in_file(&service.location))?;
    Ok((bytes, version))
}

fn is_final(error: &object_store::Error) -> bool {
    use object_store::Error as Refusal;
    matches!(
        error,
        Refusal::NotFound { .. }
            | Refusal::PermissionDenied { .. }
            | Refusal::Unauthenticated { .. }
    )
}

async fn suffix(
    client: &dyn ObjectStore,
    path: &Path,
    most: u64,
) -> object_store::Result<(Vec<u8>, Version)> {
    let options = GetOptions {
        range: Some(GetRange::Suffix(most)),
        ..GetOptions::default()
    };
    let answer = client.get_opts(path, options).await?;
    let version = version_of(&answer);
    let bytes = answer.bytes().await?;
    Ok((bytes.into(), version))
}

async fn bounded_tail(
    client: &dyn ObjectStore,
    path: &Path,
    most: u64,
) -> object_store::Result<(Vec<u8>, Version)> {
    let options = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    let version = version_of(&client.get_opts(path, options).await?);
    if version.size == 0 {
        return Ok((Vec::new(), version));
    }
    let start = version.size.saturating_sub(most);
    let options = GetOptions {
        range: Some(GetRange::Bounded(start..version.size)),
        ..GetOptions::default()
    };
    let answer = client.get_opts(path, options).await?;
    let version = version_of(&answer);
    let bytes = answer.bytes().await?;
    Ok((bytes.into(), version))
}

fn version_of(answer: &GetResult) -> Version {
    let meta = &answer.meta;
    Version {
        size: meta.size,
        tag: meta.e_tag.clone(),
        version: meta.version.clone(),
        modified: meta.last_modified.timestamp_nanos_opt().unwrap_or_default(),
    }
}

/// All bytes and the version of the object `key`, of at most `limit` bytes; `None` if it does not exist.
pub fn whole(service: &Arc<Service>, key: &str, limit: u64) -> Result<Option<(Vec<u8>, Version)>> {
    let client = service.client()?;
    let path = service.object(key)?;
    let found = runtime::wait(async move {
        let answer = match client.get_opts(&path, GetOptions::default()).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            answer => answer?,
        };
        let version = version_of(&answer);
        if version.size > limit {
            return Ok(Some((Vec::new(), version)));
        }
        let bytes = answer.bytes().await?;
        Ok(Some((bytes.into(), version)))
    })?;
    let found: Option<(Vec<u8>, Version)> =
        found.map_err(|error: object_store::Error| to_error(&error, service, key))?;
    if let Some((bytes, version)) = &found {
        let len = Limits::check("the object", version.size, limit)?;
        check_length(bytes.len(), len).map_err(|error| error.in_file(&service.location))?;
    }
    Ok(found)
}

/// The version of the object `key`; `None` if it does not exist, or the server does not say.
pub fn look(service: &Arc<Service>, key: &str) -> Result<Option<Version>> {
    match head(service, key)? {
        Ok(version) => Ok(Some(version)),
        // Without the permission to list, some services deny access to objects that do not exist.
        Err(
            object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. },
        ) => Ok(None),
        Err(error) => Err(to_error(&error, service, key)),
    }
}

/// As `look`; an error if the server does not say whether the object exists.
pub fn find(service: &Arc<Service>, key: &str) -> Result<Option<Version>> {
    match head(service, key)? {
        Ok(version) => Ok(Some(version)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(to_error(&error, service, key)),
    }
}

fn head(service: &Arc<Service>, key: &str) -> Result<object_store::Result<Version>> {
    let client = service.client()?;
    let path = service.object(key)?;
    runtime::wait(async move {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let answer = client.get_opts(&path, options).await;
        answer.map(|answer| version_of(&answer))
    })
}

/// Checks that the bucket exists, unless the permission to list its objects is missing.
pub fn check_bucket(service: &Arc<Service>) -> Result<()> {
    match first(service)? {
        Ok(_) => Ok(()),
        Err(error) if errors::is_denial(&error) && !service.features.has_all_permissions => Ok(()),
        Err(error) => Err(bucket_error(&error, service)),
    }
}

/// Puts an object if the condition of `mode` holds. The request is repeated if the connection breaks. If the first
/// request had an effect, the condition of the second one fails: the caller looks whether the object is its own.
pub async fn put_if(
    store: &dyn WritableStore,
    path: &Path,
    payload: PutPayload,
    mode: PutMode,
) -> object_store::Result<PutResult> {
    let put = || store.put_opts(path, payload.clone(), mode.clone().into());
    repeat(put).await
}

/// Deletes an object. The request is repeated if the connection breaks.
pub async fn delete(store: &dyn WritableStore, path: &Path) -> object_store::Result<()> {
    repeat(|| store.delete(path)).await
}

/// Sends a request, and repeats it if the connection breaks, which the client does for some requests alone.
async fn repeat<T, F>(request: impl Fn() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 0..REPETITIONS {
        match request().await {
            Err(error) if errors::is_interruption(&error) => tokio::time::sleep(pause).await,
            answer => return answer,
        }
        pause *= 3;
    }
    request().await
}

/// Whether there is no object below the prefix.
pub fn is_empty(service: &Arc<Service>) -> Result<bool> {
    let first = first(service)?.map_err(|error| bucket_error(&error, service))?;
    Ok(first.is_none())
}

/// An object below the prefix.
fn first(service: &Arc<Service>) -> Result<object_store::Result<Option<ObjectMeta>>> {
    let client = service.client()?;
    let base = service.base.clone();
    runtime::wait(async move {
        let prefix = (!base.as_ref().is_empty()).then_some(base);
        client.list(prefix.as_ref()).try_next().await
    })
}

/// Converts an error of listing objects, which exist in an existing bucket.
fn bucket_error(error: &object_store::Error, service: &Service) -> Error {
    match errors::is_absence(error) {
        true => errors::missing_bucket().in_file(&service.location),
        false => to_error(error, service, ""),
    }
}

/// The keys and lengths of all objects below `folder`, or below the URL if it is empty.
pub fn list(service: &Arc<Service>, folder: &str) -> Result<Vec<(String, u64)>> {
    let client = service.client()?;
    let base = service.base.clone();
    let prefix = service.object(folder)?;
    let found = runtime::wait(async move {
        let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
        client.list(prefix.as_ref()).try_collect::<Vec<_>>().await
    })?;
    let found = found.map_err(|error| to_error(&error, service, folder))?;
    let below = format!("{base}/");
    let keys = found.into_iter().filter_map(|meta| {
        let path = meta.location.as_ref();
        let key = match base.as_ref() {
            "" => path,
            _ => path.strip_prefix(&below)?,
        };
        Some((key.to_owned(), meta.size))
    });
    Ok(keys.collect())
}

/// The bytes and the version of each of `wanted`, in order. Longer ranges are divided into requests of at least
/// `least` bytes.
///
/// # Errors
/// `Busy` if an object does not have the expected version; `NotFound`; `Corrupt` if it is too
/// short; `Io`.
pub fn fetch(
    service: &Arc<Service>,
    wanted: Vec<RangeRequest>,
    least: u64,
) -> Result<Vec<(Vec<u8>, Version)>> {
    let client = service.client()?;
    let lengths = wanted
        .iter()
        .map(|part| part.range.end.saturating_sub(part.range.start));
    let most = lengths.fold(0, u64::saturating_add) / CONCURRENT_REQUESTS as u64;
    let most = most.clamp(least, PIECE_BYTES);
    let mut requests = Vec::new();
    let mut counts = Vec::with_capacity(wanted.len());
    for part in &wanted {
        let path = service.object(&part.key)?;
        let before = requests.len();
        for piece in ranges::pieces(&part.range, most) {
            requests.push((path.clone(), piece, part.version.clone()));
        }
        counts.push(requests.len() - before);
    }
    let keys: Vec<Arc<str>> = wanted
        .iter()
        .zip(&counts)
        .flat_map(|(part, count)| std::iter::repeat_n(Arc::clone(&part.key), *count))
        .collect();
    let shared = Arc::clone(service);
    let answers = runtime::wait(async move {
        stream::iter(requests.into_iter().zip(keys))
            .map(|((path, range, version), key)| {
                let (client, service) = (Arc::clone(&client), Arc::clone(&shared));
                async move {
                    piece(&*client, &path, range, version)
                        .await
                        .map_err(|error| error.into_error(&service, &key))
                }
            })
            .buffered(CONCURRENT_REQUESTS)
            .try_collect::<Vec<_>>()
            .await
    })??;
    let mut answers = answers.into_iter();
    let joined = counts.iter().zip(&wanted).map(|(count, part)| {
        let pieces: Vec<(Vec<u8>, Version)> = answers.by_ref().take(*count).collect();
        join(pieces).map_err(|error| error.at_node(&part.key).in_file(&service.location))
    });
    joined.collect()
}

/// Joins the pieces of a range, which must be of one version.
fn join(pieces: Vec<(Vec<u8>, Version)>) -> Result<(Vec<u8>, Version)> {
    let mut pieces = pieces.into_iter();
    let Some((mut bytes, version)) = pieces.next() else {
        return Err(Error::invalid(
            "the requested range is empty; request at least one byte",
        ));
    };
    for (piece, other) in pieces {
        if other != version {
            return Err(replaced());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, version))
}

/// The error of a request.
enum FetchError {
    Request(object_store::Error),
    Replaced,
    Short(u64),
}

impl FetchError {
    fn into_error(self, service: &Service, key: &str) -> Error {
        let error = match self {
            Self::Request(error) => return to_error(&error, service, key),
            Self::Replaced => replaced(),
            Self::Short(end) => return super::super::file::cut_short(end, &service.location),
        };
        match key {
            "" => error,
            key => error.at_node(key),
        }
        .in_file(&service.location)
    }
}

async fn piece(
    client: &dyn ObjectStore,
    path: &Path,
    range: Range<u64>,
    version: Option<Version>,
) -> std::result::Result<(Vec<u8>, Version), FetchError> {
    // Weak tags, which begin with W/, never satisfy `If-Match`.
    let tag = version.as_ref().and_then(|version| version.tag.clone());
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: tag.filter(|tag| !tag.starts_with("W/")),
        ..GetOptions::default()
    };
    let answer = client
        .get_opts(path, options)
        .await
        .map_err(FetchError::Request)?;
    let found = version_of(&answer);
    if version.is_some_and(|version| version != found) {
        return Err(FetchError::Replaced);
    }
    // At most a piece is read, even if the server sends more.
    let len = (range.end - range.start) as usize;
    let mut out = Vec::with_capacity(len);
    let mut body = answer.into_stream();
    while let Some(part) = body.next().await {
        let part = part.map_err(FetchError::Request)?;
        if out.len() + part.len() > len {
            return Err(FetchError::Short(range.end));
        }
        out.extend_from_slice(&part);
    }
    match out.len() == len {
        true => Ok((out, found)),
        false => Err(FetchError::Short(range.end)),
    }
}

fn check_length(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Io,
        format!("the server sent {found} bytes; expected {expected}; try again"),
    ))
}

/// Converts an error of reading `key` of `service`.
fn to_error(error: &object_store::Error, service: &Service, key: &str) -> Error {
    errors::to_error(error, &service.access, &service.location, key)
}
