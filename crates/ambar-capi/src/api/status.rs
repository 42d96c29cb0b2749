//! How functions end: a status, and the text of the calling thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ambar::{Error, ErrorKind, Result};

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
/// A mistake in ambar itself; the object that was used is of no further use.
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

/// Notes an error's text, and gives its status.
pub(super) fn failed(status: i32, text: &str) -> i32 {
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
        Err(_) => failed(
            AMBAR_PANIC,
            "a mistake in ambar itself: please report it, with the message above",
        ),
    }
}
