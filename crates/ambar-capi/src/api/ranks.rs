//! Many ranks write one store: every step that involves other ranks takes bytes and returns bytes. `ambar_mpi.h` transports
//! them over MPI.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::{c_char, c_void};

use ambar::Result;
use ambar::ranks::RankWriter;

use super::arguments::{Out, ambar_bytes, from_c};
use super::blocks::byte_lists;
use super::spec::ambar_options;
use super::status::{error_of, guard, with_writer};
use super::writer::{Start, ambar_writer, begin};

/// Adds `bytes` to the counter that all ranks share, which starts at 0, and writes its previous value to `offset`. Returns 0 on
/// success. Called on the thread that writes.
pub type ambar_reserve =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: u64, offset: *mut u64) -> i32>;

/// Creates a store that `ranks` ranks write. Returns the writer of rank 0, and the bytes with which the other ranks call
/// `ambar_ranks_join`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_create(
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
    writer: *mut *mut ambar_writer,
    invitation: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(writer = out(writer, "the place of the writer"));
        from_c!(invitation = out(invitation, "the place of the invitation"));
        // SAFETY: this function has the same contract as `begin`.
        let begun = unsafe { begin(Start::Create, path, options, ranks) }?;
        invite(begun, writer, invitation)
    })
}

/// Opens an existing store to which `ranks` ranks append; see `ambar_ranks_create`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_append(
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
    writer: *mut *mut ambar_writer,
    invitation: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(writer = out(writer, "the place of the writer"));
        from_c!(invitation = out(invitation, "the place of the invitation"));
        // SAFETY: this function has the same contract as `begin`.
        let begun = unsafe { begin(Start::Append, path, options, ranks) }?;
        invite(begun, writer, invitation)
    })
}

/// Returns the writer of rank 0, and its invitation to the other ranks.
fn invite(
    mut ranks: RankWriter,
    writer: Out<*mut ambar_writer>,
    invitation: Out<ambar_bytes>,
) -> Result<()> {
    invitation.set(ranks.invitation()?.into());
    writer.hand_over(ambar_writer { ranks });
    Ok(())
}

/// Joins a store with the bytes of rank 0. Returns the writer of `rank`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_join(
    invitation: *const u8,
    len: usize,
    rank: u32,
    writer: *mut *mut ambar_writer,
) -> i32 {
    guard(|| {
        from_c!(writer = out(writer, "the place of the writer"));
        from_c!(invitation = list(invitation, len, "the invitation"));
        let ranks = RankWriter::join(invitation, rank)?;
        writer.hand_over(ambar_writer { ranks });
        Ok(())
    })
}

/// The argument of the caller's counter function.
struct Context(*mut c_void);

// SAFETY: the pointer is only passed to the caller's function, which runs on the thread that uses the writer; a writer is used by
// one thread at a time.
unsafe impl Send for Context {}

impl Context {
    /// Reserves bytes from the caller's counter.
    fn reserve(
        &self,
        reserve: unsafe extern "C" fn(*mut c_void, u64, *mut u64) -> i32,
        bytes: u64,
    ) -> Result<u64> {
        let mut before = 0;
        // SAFETY: `ambar_ranks_counter` requires that this function can be called with this context as long as the writer is
        // used; `before` is a local variable.
        match unsafe { reserve(self.0, bytes, &raw mut before) } {
            0 => Ok(before),
            status => Err(error_of(status, "the counter of the ranks")),
        }
    }
}

/// Sets the counter from which this writer takes extents of the file. All ranks share it.
///
/// # Safety
/// `reserve` can be called with `context` as long as the writer is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_counter(
    writer: *mut ambar_writer,
    reserve: ambar_reserve,
    context: *mut c_void,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let reserve = reserve.ok_or_else(|| {
            ambar::Error::invalid("expected a counter function, found null; pass a function")
        })?;
        let context = Context(context);
        writer
            .ranks
            .count_with(Box::new(move |bytes| context.reserve(reserve, bytes)));
        Ok(())
    };
    with_writer!(writer, body)
}

/// Returns the bytes to send to rank `to` after this rank has written all its values of the step; often empty.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_message_to(
    writer: *mut ambar_writer,
    to: u32,
    bytes: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(bytes = out(bytes, "the place of the message"));
        bytes.set(writer.ranks.message_to(to).into());
        Ok(())
    };
    with_writer!(writer, body)
}

/// Receives the message of rank `from`. After an error, the seal informs the other ranks.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_receive(
    writer: *mut ambar_writer,
    from: u32,
    bytes: *const u8,
    len: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(bytes = list(bytes, len, "the bytes"));
        writer.ranks.receive(from, bytes)
    };
    with_writer!(writer, body)
}

/// Ends this rank's part of the step: encodes remaining values, syncs them to disk, and returns the bytes for
/// `ambar_ranks_commit`. The bytes also report failures, so gather them in any case.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_seal(
    writer: *mut ambar_writer,
    index: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(index = out(index, "the place of the index"));
        let bytes = writer.ranks.seal()?;
        index.set(bytes.into());
        Ok(())
    };
    with_writer!(writer, body)
}

/// Commits on rank 0 what all ranks have sealed, or nothing if one has failed. Returns the bytes for `ambar_ranks_conclude`.
///
/// # Safety
/// `indices` and `lens` have pointer and length of the sealed bytes of each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_commit(
    writer: *mut ambar_writer,
    indices: *const *const u8,
    lens: *const usize,
    outcome: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(outcome = out(outcome, "the place of the outcome"));
        let ranks = writer.ranks.options().ranks;
        // SAFETY: this function has the same contract as `byte_lists`; the writer knows the number of ranks.
        let indices = unsafe { byte_lists(ranks, indices, lens) }?;
        let bytes = writer.ranks.commit(&indices)?;
        outcome.set(bytes.into());
        Ok(())
    };
    with_writer!(writer, body)
}

/// Ends the commit on every rank, including rank 0. It fails if any rank has failed: then nothing was committed, and the writer
/// can only be closed.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_conclude(
    writer: *mut ambar_writer,
    outcome: *const u8,
    len: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(outcome = list(outcome, len, "the outcome"));
        writer.ranks.conclude(outcome)
    };
    with_writer!(writer, body)
}
