//! Many ranks writing one store: every step that needs others is bytes in, bytes out. `ambar_mpi.h` does them
//! over MPI.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};

use ambar::Result;
use ambar::ranks::RankWriter;

use super::arguments::{Out, ambar_bytes, list};
use super::blocks::byte_lists;
use super::spec::ambar_options;
use super::status::{error_of, guard, with_writer};
use super::writer::{Start, ambar_writer, begin};

/// Adds `bytes` to the counter that all ranks share, which was 0 when they came together, and puts what it
/// was before into `offset`. Returns 0 where that went well. It is called on the thread that writes.
pub type ambar_reserve =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: u64, offset: *mut u64) -> i32>;

/// Creates a store that `ranks` write: rank 0's end of it, and the bytes that the others join with.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_create(
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
    writer: *mut *mut ambar_writer,
    invitation: *mut ambar_bytes,
) -> i32 {
    // SAFETY: the caller says so.
    guard(|| unsafe { invite(Start::Create, path, (options, ranks), (writer, invitation)) })
}

/// Opens a store that is there so that `ranks` add to it; as `ambar_ranks_create`.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_append(
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
    writer: *mut *mut ambar_writer,
    invitation: *mut ambar_bytes,
) -> i32 {
    // SAFETY: the caller says so.
    guard(|| unsafe { invite(Start::Append, path, (options, ranks), (writer, invitation)) })
}

/// Begins to write a store with others.
///
/// # Safety
/// Pointers are null or point to what they say.
unsafe fn invite(
    start: Start,
    path: *const c_char,
    (options, ranks): (*const ambar_options, u32),
    (writer, invitation): (*mut *mut ambar_writer, *mut ambar_bytes),
) -> Result<()> {
    let writer = Out::new(writer, "the place of the writer")?;
    let invitation = Out::new(invitation, "the place of the invitation")?;
    // SAFETY: the caller says so, here and below.
    let mut made = unsafe { begin(start, path, options, ranks) }?;
    let bytes = made.invitation()?;
    // SAFETY: as above.
    unsafe {
        invitation.set(bytes.into());
        writer.hand_over(ambar_writer { ranks: made });
    }
    Ok(())
}

/// Another rank's end of a store, by rank 0's bytes.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_join(
    invitation: *const u8,
    len: usize,
    rank: u32,
    writer: *mut *mut ambar_writer,
) -> i32 {
    guard(|| {
        let writer = Out::new(writer, "the place of the writer")?;
        // SAFETY: the caller says so, here and below.
        let invitation = unsafe { list(invitation, len, "the invitation") }?;
        let ranks = RankWriter::join(invitation, rank)?;
        // SAFETY: as above.
        unsafe { writer.hand_over(ambar_writer { ranks }) };
        Ok(())
    })
}

/// What the caller's counter is called with.
struct Context(*mut c_void);

// SAFETY: it is handed to the caller's function only, on the thread that uses the writer.
unsafe impl Send for Context {}

impl Context {
    /// Asks the caller's counter.
    fn ask(
        &self,
        reserve: unsafe extern "C" fn(*mut c_void, u64, *mut u64) -> i32,
        bytes: u64,
    ) -> Result<u64> {
        let mut before = 0;
        // SAFETY: whoever gave the function and the context said that they belong together.
        match unsafe { reserve(self.0, bytes, &raw mut before) } {
            0 => Ok(before),
            status => Err(error_of(status, "the ranks' counter")),
        }
    }
}

/// Has extents come from a counter that all ranks share.
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
        let reserve = reserve.ok_or_else(|| ambar::Error::invalid("the counter is null"))?;
        let context = Context(context);
        writer
            .ranks
            .count_with(Box::new(move |bytes| context.ask(reserve, bytes)));
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// What rank `to` must get once this rank has written all of the step; often nothing.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_outbox(
    writer: *mut ambar_writer,
    to: u32,
    bytes: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let bytes = Out::new(bytes, "the place of the bytes")?;
        // SAFETY: the caller says so.
        unsafe { bytes.set(writer.ranks.outbox(to).into()) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Takes what rank `from` had in its outbox for this one. After an error, the seal tells the others.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_inbox(
    writer: *mut ambar_writer,
    from: u32,
    bytes: *const u8,
    len: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
        let bytes = unsafe { list(bytes, len, "the bytes") }?;
        writer.ranks.inbox(from, bytes)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Ends this rank's part of the step: encodes what is left, brings all to the disk, and gives the bytes that
/// rank 0 commits with. That something has failed is in the bytes, too: they are to be gathered anyway.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_seal(
    writer: *mut ambar_writer,
    index: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let index = Out::new(index, "the place of the index")?;
        let bytes = writer.ranks.seal()?;
        // SAFETY: the caller says so.
        unsafe { index.set(bytes.into()) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Commits on rank 0 what all ranks have sealed, or nothing where one has failed: gives the bytes that all
/// ranks conclude with.
///
/// # Safety
/// `indices` and `lens` point to one number of bytes for each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_commit(
    writer: *mut ambar_writer,
    indices: *const *const u8,
    lens: *const usize,
    outcome: *mut ambar_bytes,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let outcome = Out::new(outcome, "the place of the outcome")?;
        let ranks = writer.ranks.options().ranks;
        // SAFETY: the caller says so, here and below.
        let indices = unsafe { byte_lists(ranks, indices, lens) }?;
        let bytes = writer.ranks.commit(&indices)?;
        // SAFETY: as above.
        unsafe { outcome.set(bytes.into()) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Learns what became of the commit; rank 0 does so, too. It fails where any rank has failed: nothing was
/// committed then, and the writer can only be closed.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_ranks_conclude(
    writer: *mut ambar_writer,
    outcome: *const u8,
    len: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
        let outcome = unsafe { list(outcome, len, "the outcome") }?;
        writer.ranks.conclude(outcome)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}
