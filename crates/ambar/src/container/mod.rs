//! Containers: where a store's entries lie. The only place that touches the file system for stores.
//!
//! A container maps keys (`amr/density/c/0`) to bytes and knows nothing of Zarr. There are two, a
//! single ZIP file and a directory, behind the same two traits: a [`Container`] reads one commit,
//! a [`ContainerWriter`] makes the next one. `docs/format.md`, chapter 1, specifies both and argues
//! why a writer that is killed at any moment leaves the last commit readable. Both can also be read
//! from object stores and HTTP servers, by URL.

mod ahead;
mod directory;
#[cfg(test)]
mod faults;
mod file;
mod interface;
mod key;
mod ranges;
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

pub use ahead::Ahead;
use interface::EntryLocation;
pub use interface::{
    CommitId, Compacted, Container, ContainerWriter, CreateOptions, Durability, Entry, EntryRange,
    NewEntry, Repaired, Share, SharedEntry, Usage,
};
pub(crate) use key::broken_rule;
pub use key::validate_key;
pub use source::Owner;
pub use zip::SharedFile;
pub(crate) use zip::entry_bytes;

/// Opens the last commit of the container at `path`: a ZIP file or a directory, by what is there.
///
/// # Errors
/// `NotFound` where there is nothing; `Corrupt` where it is damaged, cut short or no store at all;
/// `Unsupported` where it needs a newer version, or is a ZIP with compressed entries.
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

/// Opens the last commit of the container whose file is in memory: a ZIP. Messages call it `location`.
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

/// Opens the container at `url`: `s3://bucket/key` or `http(s)://host/path`, of a single file or (best
/// with a `/` at the end) of a directory. It can only be read.
///
/// `options` are those of the service, such as `endpoint`, `region`, `access_key_id`,
/// `secret_access_key`, `anonymous`, `allow_http` and `timeout`; for S3 those that are not given are
/// taken from the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...).
///
/// # Errors
/// As [`open`]; `Invalid` where the URL or an option is invalid; `Unsupported` where the server
/// does not serve ranges, or this build cannot read from object stores; `Io` where the server cannot
/// be reached, or refuses.
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
        Err(crate::error::Error::unsupported(
            "this build of ambar cannot read from object stores; build it with the feature \
             `object-store`",
        )
        .in_file(url))
    }
}

/// Creates a container. Nothing is seen under `path` until the first commit.
///
/// # Errors
/// `Exists` where the file exists (and `overwrite` is not set); `Busy` where another writer has it open;
/// `NotFound` where its folder is missing; `Invalid` where `overwrite` would replace a file by a
/// directory or the reverse, or a directory that is not a store; `Io`.
pub fn create(path: &Path, options: &CreateOptions) -> Result<Box<dyn ContainerWriter>> {
    if options.directory {
        return Ok(Box::new(DirectoryWriter::create(path, options)?));
    }
    Ok(Box::new(ZipWriter::create(path, options)?))
}

/// Continues writing the container at `path`. What a killed writer left behind is cut off first.
///
/// # Errors
/// `Busy` where another writer has it; `Unsupported` where another program made the ZIP (compact
/// it first); else as [`open`].
pub fn append(path: &Path, durability: Durability) -> Result<Box<dyn ContainerWriter>> {
    if path.is_dir() {
        return Ok(Box::new(DirectoryWriter::append(path, durability)?));
    }
    Ok(Box::new(ZipWriter::append(path, durability)?))
}

/// Brings the container into the form that every ZIP or Zarr reader understands: cuts off what a
/// killed writer left after the last commit, and restores damaged commit records. In a directory
/// it also takes over what other programs have written there.
///
/// # Errors
/// `Busy` where a writer has it; `Corrupt` where no whole commit can be found, or an entry of it is
/// missing; `Io`.
pub fn repair(path: &Path) -> Result<Repaired> {
    if path.is_dir() {
        return directory::repair(path);
    }
    zip::repair(path)
}

/// Rewrites the container without its dead bytes, verifying every entry on the way. What another
/// program made becomes ambar's own, so that it can be appended to.
///
/// # Errors
/// As [`open`], and `Busy` where a writer has it. The container is as before after any error.
pub fn compact(path: &Path) -> Result<Compacted> {
    if path.is_dir() {
        return directory::compact(path);
    }
    zip::compact(path)
}
