//! How functions end: a status, and the text of the calling thread's last error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use ambar::{Error, ErrorKind, Result};

use super::arguments::exclusive;
use super::writer::ambar_writer;

/// It went well.
pub const AMBAR_OK: i32 = 0;
/// The bytes are damaged, cut short or hostile: restore them from a copy.
pub const AMBAR_CORRUPT: i32 = 1;
/// The file is sound but needs something this version lacks.
pub const AMBAR_UNSUPPORTED: i32 = 2;
/// The call makes no sense: change it.
pub const AMBAR_INVALID: i32 = 3;
/// There is no such file, node or step.
pub const AMBAR_NOT_FOUND: i32 = 4;
/// The file exists already, or another writer has it.
pub const AMBAR_BUSY: i32 = 5;
/// A limit on memory or size was passed.
pub const AMBAR_LIMIT: i32 = 6;
/// Somebody asked to stop.
pub const AMBAR_INTERRUPTED: i32 = 7;
/// The operating system refused.
pub const AMBAR_IO: i32 = 8;
/// A mistake in ambar itself; a writer that was used can only be closed.
pub const AMBAR_PANIC: i32 = 9;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn ambar_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What went wrong in the last call of this thread that did not return `AMBAR_OK`: file, node, what was
/// expected and found, and what to do. Valid until the thread's next such call; empty before the first.
#[unsafe(no_mangle)]
pub extern "C" fn ambar_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Keeps `text` for `ambar_last_error`, where `status` is not `AMBAR_OK`, and returns the status. For code that
/// adds to this API, such as `ambar_mpi.h`.
///
/// # Safety
/// `text` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_fail(status: i32, text: *const c_char) -> i32 {
    if status == AMBAR_OK || text.is_null() {
        return status;
    }
    // SAFETY: the caller says so.
    failed(status, &unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Notes an error's text, and gives its status.
fn failed(status: i32, text: &str) -> i32 {
    // C's texts end at a zero.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    LAST.set(text);
    status
}

fn status(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::Corrupt => AMBAR_CORRUPT,
        ErrorKind::Unsupported => AMBAR_UNSUPPORTED,
        ErrorKind::Invalid => AMBAR_INVALID,
        ErrorKind::NotFound => AMBAR_NOT_FOUND,
        ErrorKind::Busy => AMBAR_BUSY,
        ErrorKind::Limit => AMBAR_LIMIT,
        ErrorKind::Interrupted => AMBAR_INTERRUPTED,
        _ => AMBAR_IO,
    }
}

/// The error of a status that a caller's function has returned.
pub(super) fn error_of(status: i32, what: &str) -> Error {
    Error::new(ErrorKind::Io, format!("{what} has failed with {status}"))
}

/// Runs a function's body: errors become statuses, panics do, too.
pub(super) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => AMBAR_OK,
        Ok(Err(error)) => failed(status(error.kind()), &error.to_string()),
        Err(_) => failed(AMBAR_PANIC, PANIC),
    }
}

const PANIC: &str = "a mistake in ambar itself: please report it, with the message above";

/// Runs what uses a writer. After an error or a panic nothing is committed, on no rank: something that was to be
/// written was not.
///
/// # Safety
/// The writer is null, or one that no other thread uses meanwhile.
pub(super) unsafe fn with_writer(
    writer: *mut ambar_writer,
    body: impl FnOnce(&mut ambar_writer) -> Result<()>,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        match catch_unwind(AssertUnwindSafe(|| body(writer))) {
            Ok(done) => done.inspect_err(|error| writer.ranks.fail(error)),
            Err(panic) => {
                writer.ranks.fail(&Error::invalid(PANIC));
                resume_unwind(panic)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::undocumented_unsafe_blocks)] // every pointer is a local variable's

    use super::*;
    use crate::api::{ambar_close, ambar_commit, ambar_create, ambar_group};

    /// After a panic the next commit succeeded, without what was to be written.
    #[test]
    fn after_a_panic_nothing_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let mut writer = std::ptr::null_mut();
        let create = unsafe { ambar_create(name.as_ptr(), std::ptr::null(), &raw mut writer) };
        assert_eq!(create, AMBAR_OK);
        let panicked = unsafe { with_writer(writer, |_| panic!("a mistake")) };
        assert_eq!(panicked, AMBAR_PANIC);
        let group = unsafe { ambar_group(writer, c"g".as_ptr(), std::ptr::null()) };
        assert_eq!(group, AMBAR_INVALID);
        assert_eq!(unsafe { ambar_commit(writer) }, AMBAR_INVALID);
        assert_eq!(unsafe { ambar_close(writer) }, AMBAR_OK);
        assert!(!path.exists());
    }
}
