//! Results of functions: a status, and the message of the calling thread's last error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use ambar::{Error, ErrorKind, Result};

use super::arguments::from_c;
use super::writer::ambar_writer;

/// Success.
pub const AMBAR_OK: i32 = 0;
/// The bytes are damaged, truncated or malicious: restore them from a copy.
pub const AMBAR_CORRUPT: i32 = 1;
/// The file is valid, but needs a feature that this version lacks.
pub const AMBAR_UNSUPPORTED: i32 = 2;
/// An argument or the order of calls is invalid: change the call.
pub const AMBAR_INVALID: i32 = 3;
/// The file, node or step does not exist.
pub const AMBAR_NOT_FOUND: i32 = 4;
/// Another writer has the file open, or it changed while it was read.
pub const AMBAR_BUSY: i32 = 5;
/// A limit on memory or size was exceeded.
pub const AMBAR_LIMIT: i32 = 6;
/// Cancelled by a callback.
pub const AMBAR_INTERRUPTED: i32 = 7;
/// The operating system returned an error.
pub const AMBAR_IO: i32 = 8;
/// A bug in ambar. A writer that was used can only be closed.
pub const AMBAR_PANIC: i32 = 9;
/// The file exists, and the option `overwrite` is not set.
pub const AMBAR_EXISTS: i32 = 10;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Returns the version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn ambar_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the message of the last call of this thread that did not return `AMBAR_OK`: file, node, what was
/// expected, what was found, and what to do. Valid until the thread's next such call; empty before the first.
#[unsafe(no_mangle)]
pub extern "C" fn ambar_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Sets `text` as the message of `ambar_last_error` unless `status` is `AMBAR_OK`, and returns `status`. For code that
/// extends this API, such as `ambar_mpi.h`.
///
/// # Safety
/// `text` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_fail(status: i32, text: *const c_char) -> i32 {
    if status == AMBAR_OK || text.is_null() {
        return status;
    }
    // SAFETY: `text` is not null, as just checked, and ends with a zero: the contract of this function.
    failed(status, &unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Sets the message of `ambar_last_error`, and returns `status`.
fn failed(status: i32, text: &str) -> i32 {
    // C strings end at a zero.
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
        ErrorKind::Exists => AMBAR_EXISTS,
        ErrorKind::Busy => AMBAR_BUSY,
        ErrorKind::Limit => AMBAR_LIMIT,
        ErrorKind::Interrupted => AMBAR_INTERRUPTED,
        _ => AMBAR_IO,
    }
}

/// The error for a status that a callback returned.
pub(super) fn error_of(status: i32, what: &str) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("expected 0 from {what}, found {status}; see the callback"),
    )
}

/// Runs the body of a function, and converts errors and panics to statuses.
pub(super) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => AMBAR_OK,
        Ok(Err(error)) => failed(status(error.kind()), &error.to_string()),
        Err(_) => failed(AMBAR_PANIC, PANIC),
    }
}

const PANIC: &str = "a bug in ambar; please report it with the message printed above";

/// Runs `run_with_writer`, for functions that are `unsafe` because they take a writer from C.
macro_rules! with_writer {
    ($writer:expr, $body:expr) => {{
        let (writer, body) = ($writer, $body);
        // SAFETY: the caller passes null, or a writer of this API that is not closed and that no other thread uses until
        // the function returns.
        unsafe { $crate::api::status::run_with_writer(writer, body) }
    }};
}
pub(super) use with_writer;

/// Runs the body of a function that uses a writer. After an error or a panic, nothing is committed on any rank, since
/// something that was to be written is missing.
///
/// # Safety
/// `writer` is null, or a writer of this API that no other thread uses until the function returns.
pub(super) unsafe fn run_with_writer(
    writer: *mut ambar_writer,
    body: impl FnOnce(&mut ambar_writer) -> Result<()>,
) -> i32 {
    guard(|| {
        from_c!(writer = exclusive(writer, "the writer"));
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
    #![allow(clippy::undocumented_unsafe_blocks)] // all pointers are to local variables

    use super::*;
    use crate::api::{ambar_close, ambar_commit, ambar_create, ambar_group};

    /// A commit after a panic would succeed without the values that were to be written.
    #[test]
    fn after_a_panic_nothing_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let mut writer = std::ptr::null_mut();
        let create = unsafe { ambar_create(name.as_ptr(), std::ptr::null(), &raw mut writer) };
        assert_eq!(create, AMBAR_OK);
        let panicked = unsafe { run_with_writer(writer, |_| panic!("a bug")) };
        assert_eq!(panicked, AMBAR_PANIC);
        let group = unsafe { ambar_group(writer, c"g".as_ptr(), std::ptr::null()) };
        assert_eq!(group, AMBAR_INVALID);
        assert_eq!(unsafe { ambar_commit(writer) }, AMBAR_INVALID);
        assert_eq!(unsafe { ambar_close(writer) }, AMBAR_OK);
        assert!(!path.exists());
    }
}
