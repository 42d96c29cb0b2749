//! Containers: the files and directories that store entries. Only this module accesses the file system for stores.
//!
//! A container maps keys (`amr/density/c/0`) to bytes; it does not depend on Zarr. There are two kinds, a
//! single ZIP file and a directory, with the same two traits: a [`Container`] reads one commit,
//! a [`ContainerWriter`] writes the next one. `docs/format.md`, chapter 1, specifies both and argues
//! why a writer that is killed at any moment leaves the last commit readable. Both can also be read
//! from object stores and HTTP servers, by URL.

mod claims;
mod directory;
#[cfg(test)]
mod faults;
mod file;
mod interface;
mod key;
mod ranges;
mod read_ahead;
#[cfg(feature = "object-store")]
mod remote;
mod source;
mod state;
mod zip;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::limits::Limits;

use directory::{DirectoryReader, DirectoryWriter};
use source::InMemory;
use zip::{ZipReader, ZipWriter};

pub(crate) use claims::Claims;
use interface::EntryLocation;
pub use interface::{
    CommitId, CommitInfo, CompactReport, Container, ContainerWriter, CreateOptions, Durability,
    Entry, EntryPutter, EntryRange, NewEntry, RepairReport, SharedEntry, SharedFileInfo,
    SharedLocation, SharedObjectsInfo, Usage,
};
pub(crate) use key::broken_rule;
pub use key::validate_key;
pub use read_ahead::ReadAhead;
pub use source::Owner;
pub use zip::SharedFile;
pub(crate) use zip::entry_bytes;

/// Opens the last commit of the container at `path`: a ZIP file or a directory.
///
/// # Errors
/// `NotFound` if it does not exist; `Corrupt` if it is damaged, cut short or not a store;
/// `Unsupported` if it needs a newer version, or is a ZIP with compressed entries.
pub fn open(path: &Path) -> Result<Arc<dyn Container>> {
    open_with_limits(path, &Limits::default())
}

/// As [`open`]; the list of entries must not be larger than `limits` allow.
///
/// # Errors
/// As [`open`], and `Limit`.
pub fn open_with_limits(path: &Path, limits: &Limits) -> Result<Arc<dyn Container>> {
    if path.is_dir() {
        return Ok(Arc::new(DirectoryReader::open(path, limits)?));
    }
    Ok(Arc::new(ZipReader::open(path, limits)?))
}

/// Opens the last commit of a container whose ZIP file is in memory. Messages call it `location`.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(bytes: Owner, location: &str, limits: &Limits) -> Result<Arc<dyn Container>> {
    let source = InMemory::new(bytes, location);
    Ok(Arc::new(ZipReader::of(Arc::new(source), limits)?))
}

/// Whether `location` is a URL (`s3://`, `https://`, ...) rather than a path.
pub fn is_url(location: &str) -> bool {
    let Some((scheme, _)) = location.split_once("://") else {
        return false;
    };
    let mut letters = scheme.bytes();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Opens the container at `url` for reading: `s3://bucket/key` or `http(s)://host/path`, of a single file or
/// of a directory (preferably with a trailing `/`).
///
/// `options` are those of the service, such as `endpoint`, `region`, `access_key_id`,
/// `secret_access_key`, `anonymous`, `allow_http` and `timeout`; for S3 missing options are
/// read from the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...).
///
/// # Errors
/// As [`open`]; `Invalid` if the URL or an option is invalid; `Unsupported` if the server
/// does not serve ranges, or this build cannot read from object stores; `Io` if the server cannot
/// be reached, or denies access.
pub fn open_url(
    url: &str,
    options: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Arc<dyn Container>> {
    #[cfg(feature = "object-store")]
    return remote::open(url, options, limits);
    #[cfg(not(feature = "object-store"))]
    {
        let _ = (options, limits);
        Err(without_object_stores(url))
    }
}

/// Creates a container. It appears at `path` with the first commit.
///
/// # Errors
/// `Exists` if the path exists (and `overwrite` is not set); `Busy` if another writer has it open;
/// `NotFound` if its folder does not exist; `Invalid` if `overwrite` would replace a file by a
/// directory or the reverse, or a directory that is not a store; `Io`.
pub fn create(path: &Path, options: &CreateOptions) -> Result<Box<dyn ContainerWriter>> {
    if options.directory {
        return Ok(Box::new(DirectoryWriter::create(path, options)?));
    }
    Ok(Box::new(ZipWriter::create(path, options)?))
}

/// Creates a container at `url`: at `s3://bucket/key` as one object that appears when the writer is finished
/// ([`ContainerWriter::finish`]), at `s3://bucket/prefix/` as a directory of objects that appears with the first
/// commit. `storage` are the options of the service, as for [`open_url`].
///
/// # Errors
/// `Exists` if the object exists (and `overwrite` is not set); `Invalid` if the URL or an option is invalid;
/// `Unsupported` if objects cannot be written there, or this build cannot access object stores; `Io`.
pub fn create_url(
    url: &str,
    storage: &BTreeMap<String, String>,
    options: &CreateOptions,
) -> Result<Box<dyn ContainerWriter>> {
    #[cfg(feature = "object-store")]
    return remote::create(url, storage, options);
    #[cfg(not(feature = "object-store"))]
    {
        let _ = (storage, options);
        Err(without_object_stores(url))
    }
}

/// Opens the directory at `url`, which ends with `/`, to write further commits. `storage` are the options of the
/// service, as for [`open_url`].
///
/// # Errors
/// `NotFound` if it does not exist; `Unsupported` if another program wrote it, if the URL is that of an object, or this
/// build cannot access object stores; `Corrupt`, `Limit`, `Io`.
pub fn append_url(
    url: &str,
    storage: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Box<dyn ContainerWriter>> {
    #[cfg(feature = "object-store")]
    return remote::append(url, storage, limits);
    #[cfg(not(feature = "object-store"))]
    {
        let _ = (storage, limits);
        Err(without_object_stores(url))
    }
}

/// Joins a commit whose coordinator is another process, which shares it with [`ContainerWriter::share_objects`].
///
/// # Errors
/// `Invalid` if the options of the service are invalid on this machine; `Unsupported` if this build cannot access
/// object stores.
pub(crate) fn join_objects(info: &SharedObjectsInfo) -> Result<Box<dyn EntryPutter>> {
    #[cfg(feature = "object-store")]
    return remote::join(info);
    #[cfg(not(feature = "object-store"))]
    Err(without_object_stores(&info.url))
}

/// Ends a commit for the processes that have joined it.
///
/// # Errors
/// `Io`.
pub(crate) fn end_objects(info: &SharedObjectsInfo) -> Result<()> {
    #[cfg(feature = "object-store")]
    return remote::end(info);
    #[cfg(not(feature = "object-store"))]
    Err(without_object_stores(&info.url))
}

/// The error for URLs in a build without object stores.
#[cfg(not(feature = "object-store"))]
fn without_object_stores(url: &str) -> crate::error::Error {
    crate::error::Error::unsupported(
        "this build of ambar cannot access object stores; build it with the feature `object-store`",
    )
    .in_file(url)
}

/// Opens the container at `path` to append to it. First, the bytes of a killed writer after the last commit
/// are cut off. Entries are read back within `limits`.
///
/// # Errors
/// `Busy` if another writer has it open; `Unsupported` if another program wrote the container
/// (compact it first); otherwise as [`open`].
pub fn append(
    path: &Path,
    durability: Durability,
    limits: &Limits,
) -> Result<Box<dyn ContainerWriter>> {
    if path.is_dir() {
        return Ok(Box::new(DirectoryWriter::append(path, durability, limits)?));
    }
    Ok(Box::new(ZipWriter::append(path, durability, limits)?))
}

/// Repairs the container so that every ZIP or Zarr reader can open it: cuts off the bytes of a
/// killed writer after the last commit, and restores damaged commit records. In a directory
/// it also adopts the files that other programs have written.
///
/// # Errors
/// `Busy` if a writer has it open; `Corrupt` if no intact commit is found, or an entry of it is
/// missing; `Limit`; `Io`.
pub fn repair(path: &Path, limits: &Limits) -> Result<RepairReport> {
    if path.is_dir() {
        return directory::repair(path, limits);
    }
    zip::repair(path, limits)
}

/// Returns the numbers of the earlier commits to keep, from a reader of the last commit.
pub type KeptCommits<'a> = &'a dyn Fn(Arc<dyn Container>) -> Result<Vec<u64>>;

/// Rewrites the container without its dead bytes, and verifies every entry. A container of another
/// program gets ambar's records, so that it can be appended to. Of a single file, the earlier commits remain whose
/// numbers `kept` returns for the last commit.
///
/// # Errors
/// As [`open`], and `Busy` if a writer has it open. The container is unchanged after an error.
pub fn compact(path: &Path, limits: &Limits, kept: KeptCommits<'_>) -> Result<CompactReport> {
    if path.is_dir() {
        return directory::compact(path, limits);
    }
    zip::compact(path, limits, kept)
}
