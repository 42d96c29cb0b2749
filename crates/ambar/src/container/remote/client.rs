//! Requests: ranges of objects, several at once, each checked to be of the object that was opened.

use std::ops::Range;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetRange, GetResult, ObjectStore, path::Path};

use super::super::ranges;
use super::errors::{self, replaced};
use super::runtime;
use super::service::Service;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Parts of an object at most this number of bytes apart are fetched with one request.
pub const NEAR: u64 = 256 << 10;

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 16;

/// A longer range is fetched by several requests of at most so many bytes.
pub const PIECE: u64 = 8 << 20;

/// As long as all requests can be concurrent, more of them are faster: down to so many bytes.
pub const SMALL_PIECE: u64 = 1 << 20;

/// Identifies a version of an object, to detect a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its length in bytes.
    pub size: u64,
    tag: Option<String>,
    /// When it was written, in nanoseconds: where the service gives no tag.
    time: Option<i64>,
}

/// A range of an object.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The object's key below the URL; empty for the one that the URL names.
    pub key: Arc<str>,
    /// Which of its bytes.
    pub range: Range<u64>,
    /// The object they must be of, where it is known.
    pub version: Option<Version>,
}

/// The last `most` bytes of an object, or all if it has fewer, and which object it is.
pub fn tail(service: &Arc<Service>, most: u64) -> Result<(Vec<u8>, Version)> {
    let client = service.client()?;
    let path = service.object("")?;
    let found = runtime::wait(async move {
        match suffix(&*client, &path, most).await {
            // Some services know no ranges counted from the end, and none knows one of an empty
            // object; some of them say so in strange ways.
            Err(error) if is_final(&error) => Err(error),
            Err(_) => bounded_tail(&*client, &path, most).await,
            found => found,
        }
    })?;
    let (bytes, version) = found.map_err(|error| explained(&error, service, ""))?;
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
    let time = meta
        .e_tag
        .is_none()
        .then(|| meta.last_modified.timestamp_nanos_opt());
    Version {
        size: meta.size,
        tag: meta.e_tag.clone(),
        time: time.flatten(),
    }
}

/// All of the object `key`, if there is one and it has at most `limit` bytes, and which it is.
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
        found.map_err(|error: object_store::Error| explained(&error, service, key))?;
    if let Some((bytes, version)) = &found {
        let len = Limits::check("the object", version.size, limit)?;
        check_length(bytes.len(), len).map_err(|error| error.in_file(&service.location))?;
    }
    Ok(found)
}

/// Which object `key` is; `None` where there is none, or where the server does not tell whether.
pub fn look(service: &Arc<Service>, key: &str) -> Result<Option<Version>> {
    let client = service.client()?;
    let path = service.object(key)?;
    let found = runtime::wait(async move {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        client
            .get_opts(&path, options)
            .await
            .map(|answer| version_of(&answer))
    })?;
    match found {
        Ok(version) => Ok(Some(version)),
        // Who may not list a bucket is refused what is not there, too.
        Err(
            object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. },
        ) => Ok(None),
        Err(error) => Err(explained(&error, service, key)),
    }
}

/// Keys of all objects below `folder` (or the URL itself, where it is empty) with their lengths.
pub fn list(service: &Arc<Service>, folder: &str) -> Result<Vec<(String, u64)>> {
    let client = service.client()?;
    let base = service.base.clone();
    let prefix = service.object(folder)?;
    let found = runtime::wait(async move {
        let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
        client.list(prefix.as_ref()).try_collect::<Vec<_>>().await
    })?;
    let found = found.map_err(|error| explained(&error, service, folder))?;
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

/// The bytes of each of `wanted`, in order, with the object they are of. Requests are of at least
/// `least` bytes, where so many are wanted at one place.
///
/// # Errors
/// `Busy` where an object is not the version it must be; `NotFound`, `Corrupt` where it is too
/// short; `Io`.
pub fn fetch(
    service: &Arc<Service>,
    wanted: Vec<Wanted>,
    least: u64,
) -> Result<Vec<(Vec<u8>, Version)>> {
    let client = service.client()?;
    let lengths = wanted
        .iter()
        .map(|part| part.range.end.saturating_sub(part.range.start));
    let most = lengths.fold(0, u64::saturating_add) / AT_ONCE as u64;
    let most = most.clamp(least, PIECE);
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
    let asked = Arc::clone(service);
    let answers = runtime::wait(async move {
        stream::iter(requests.into_iter().zip(keys))
            .map(|((path, range, version), key)| {
                let (client, service) = (Arc::clone(&client), Arc::clone(&asked));
                async move {
                    piece(&*client, &path, range, version)
                        .await
                        .map_err(|failed| failed.explained(&service, &key))
                }
            })
            .buffered(AT_ONCE)
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

/// One range from its pieces, which must be of one object.
fn join(pieces: Vec<(Vec<u8>, Version)>) -> Result<(Vec<u8>, Version)> {
    let mut pieces = pieces.into_iter();
    let Some((mut bytes, version)) = pieces.next() else {
        return Err(Error::invalid("an empty range was asked for"));
    };
    for (piece, other) in pieces {
        if other != version {
            return Err(replaced());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, version))
}

/// Why a request gave nothing.
enum Failed {
    Refused(object_store::Error),
    Replaced,
    Short(u64),
}

impl Failed {
    fn explained(self, service: &Service, key: &str) -> Error {
        let error = match self {
            Self::Refused(error) => return explained(&error, service, key),
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
) -> std::result::Result<(Vec<u8>, Version), Failed> {
    // Tags that begin with W/ never match where a match is asked for.
    let tag = version.as_ref().and_then(|version| version.tag.clone());
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: tag.filter(|tag| !tag.starts_with("W/")),
        ..GetOptions::default()
    };
    let answer = client
        .get_opts(path, options)
        .await
        .map_err(Failed::Refused)?;
    let found = version_of(&answer);
    if version.is_some_and(|version| version != found) {
        return Err(Failed::Replaced);
    }
    // No more than a piece, whatever the server says.
    let len = (range.end - range.start) as usize;
    let mut out = Vec::with_capacity(len);
    let mut body = answer.into_stream();
    while let Some(part) = body.next().await {
        let part = part.map_err(Failed::Refused)?;
        if out.len() + part.len() > len {
            return Err(Failed::Short(range.end));
        }
        out.extend_from_slice(&part);
    }
    match out.len() == len {
        true => Ok((out, found)),
        false => Err(Failed::Short(range.end)),
    }
}

fn check_length(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Io,
        format!("the server sent {found} bytes of {expected}; try again"),
    ))
}

/// The library's error for `error`, which reading `key` of `service` returned.
fn explained(error: &object_store::Error, service: &Service, key: &str) -> Error {
    errors::explained(error, service.hint, &service.location, key)
}
