//! Stores on object stores and HTTP servers: a single object, or the objects of a directory.
//!
//! Objects are written and replaced as a whole, so the end of an object determines the last
//! commit. Ranges that are read together are fetched by concurrent requests.

mod client;
mod entry_sender;
mod errors;
mod object;
mod prefix;
#[cfg(test)]
mod prefix_tests;
mod prefix_writer;
#[cfg(test)]
mod recording_store;
mod runtime;
mod service;
mod task_entries;
#[cfg(test)]
mod tests;
mod upload;
#[cfg(test)]
mod upload_tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use object::Object;
use prefix::PrefixReader;
use prefix_writer::PrefixWriter;
use service::Service;
use task_entries::TaskEntries;
use upload::ObjectUpload;

use super::zip::{UploadWriter, ZipReader};
use super::{Container, ContainerWriter, CreateOptions, EntryPutter, SharedObjectsInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Opens the last commit of the container at `url`: a single object or, if the URL ends with `/` or the
/// object does not exist, a directory.
///
/// # Errors
/// As [`super::open_url`].
pub fn open(
    url: &str,
    options: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Arc<dyn Container>> {
    let service = Arc::new(Service::new(url, options)?);
    open_service(service, is_directory(url), limits)
}

/// Whether `url` is that of a directory.
fn is_directory(url: &str) -> bool {
    let path = url.split('?').next();
    path.is_some_and(|path| path.ends_with('/'))
}

/// Creates a container at `url`.
///
/// # Errors
/// As [`super::create_url`].
pub fn create(
    url: &str,
    storage: &BTreeMap<String, String>,
    options: &CreateOptions,
) -> Result<Box<dyn ContainerWriter>> {
    let service = Arc::new(Service::new(url, storage)?);
    if is_directory(url) || options.directory {
        let writer = PrefixWriter::create(service, options)?;
        return Ok(Box::new(writer.shared_at(url, storage)));
    }
    let upload = ObjectUpload::new(Arc::clone(&service), options.overwrite)?;
    let writer = UploadWriter::new(Box::new(upload), &service.location, options.limits)?;
    Ok(Box::new(writer))
}

/// Opens the directory at `url` to write further commits.
///
/// # Errors
/// As [`super::append_url`].
pub fn append(
    url: &str,
    storage: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Box<dyn ContainerWriter>> {
    let service = Arc::new(Service::new(url, storage)?);
    if is_directory(url) {
        let writer = PrefixWriter::append(service, limits)?;
        return Ok(Box::new(writer.shared_at(url, storage)));
    }
    let message = "an object is written as a whole, so it cannot be changed; write it again, or write to a URL that \
                   ends with `/`";
    Err(Error::unsupported(message).in_file(&service.location))
}

/// Joins a commit of another process.
///
/// # Errors
/// As [`super::join_objects`].
pub fn join(info: &SharedObjectsInfo) -> Result<Box<dyn EntryPutter>> {
    let service = Arc::new(Service::new(&info.url, &info.storage)?);
    Ok(Box::new(TaskEntries::join(service, info.clone())?))
}

/// Ends a commit for other processes.
///
/// # Errors
/// `Io`.
pub fn end(info: &SharedObjectsInfo) -> Result<()> {
    let service = Service::new(&info.url, &info.storage)?;
    task_entries::end(&service, info)
}

fn open_service(
    service: Arc<Service>,
    directory: bool,
    limits: &Limits,
) -> Result<Arc<dyn Container>> {
    if directory {
        return Ok(Arc::new(PrefixReader::open(service, limits)?));
    }
    match Object::open(Arc::clone(&service)) {
        Ok(object) => Ok(Arc::new(ZipReader::of(Arc::new(object), limits)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match PrefixReader::open(service, limits) {
                Ok(found) => Ok(Arc::new(found)),
                Err(_) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}
