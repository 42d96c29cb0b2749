//! The filter callback: converts chunks in HDF5's buffer to packets, and packets to chunks.

use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use ambar_codec::Error;
use ambar_codec::packet::{self, Chunk, Workspaces};

use super::library::Hdf5;
use super::options::{Message, Options};

/// Flags of HDF5: decode a packet; the filter is optional, so that a chunk may stay unfiltered.
const REVERSE: c_uint = 0x0100;
const OPTIONAL: c_uint = 0x0001;
/// Maximum bytes of a chunk before HDF5 2.0, and of a decoded packet whose chunk size is unknown.
const MAX_CHUNK: usize = u32::MAX as usize;
/// Maximum bytes of a chunk whose workspace is reused.
const MAX_REUSED: usize = 16 << 20;

/// The workspaces of the codec, reused between chunks.
static WORKSPACES: Mutex<Option<Box<Workspaces>>> = Mutex::new(None);

/// The callback. Returns the number of bytes in the buffer, or 0 for an error.
///
/// # Safety
/// As HDF5 documents: `*buffer` is memory from malloc with `*size` bytes, of which the first `length` are used, and `values`
/// has `count` options.
pub(super) unsafe extern "C" fn filter(
    flags: c_uint,
    count: usize,
    values: *const c_uint,
    length: usize,
    size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    let work = || {
        // SAFETY: none of the pointers is null where it is dereferenced. HDF5 passes `count` options at `values`, and exclusive
        // access to `*size` and `*buffer` until the callback returns.
        let (values, size, buffer) = unsafe {
            if buffer.is_null() || size.is_null() || (*buffer).is_null() {
                return 0;
            }
            let values = if values.is_null() || count == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(values, count)
            };
            (values, &mut *size, &mut *buffer)
        };
        let mut memory = Memory {
            buffer,
            size,
            used: length,
        };
        let done = if flags & REVERSE != 0 {
            memory.decode(values)
        } else {
            memory.encode(values, flags & OPTIONAL != 0)
        };
        done.unwrap_or_else(|message| {
            if let Some(hdf5) = Hdf5::calling() {
                hdf5.report(&message);
            }
            0
        })
    };
    // The buffer is replaced last, so a panic leaves it unchanged.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(0)
}

/// The buffer of HDF5.
struct Memory<'a> {
    buffer: &'a mut *mut c_void,
    size: &'a mut usize,
    used: usize,
}

impl Memory<'_> {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `buffer` is not null, and its first `used` bytes are initialized: the contract of `filter`, which made `self`. A
        // replaced buffer is not read again.
        unsafe { std::slice::from_raw_parts(self.buffer.cast::<u8>(), self.used) }
    }

    fn encode(&mut self, values: &[c_uint], is_optional: bool) -> Result<usize, Message> {
        let options = Options::parse(values)?;
        let local = options
            .local
            .ok_or("expected the dataset's type and chunk in the filter's options, found none; create the dataset with this filter")?;
        let chunk = Chunk {
            dtype: local.dtype,
            is_big_endian: local.big_endian,
            shape: &local.shape,
            bound: options.bound,
        };
        let bytes = self.bytes();
        let packet = with_workspaces(bytes.len(), |all| packet::encode(bytes, &chunk, all));
        match packet.map_err(message)? {
            Some(packet) => self.replace(&packet),
            // HDF5 then stores the chunk verbatim, and marks the filter as skipped.
            None if is_optional => Ok(0),
            None => {
                let packet = packet::store(self.bytes());
                self.replace(&packet)
            }
        }
    }

    /// Replaces the chunk by a packet.
    fn replace(&mut self, packet: &[u8]) -> Result<usize, Message> {
        if packet.len() > *self.size {
            self.exchange(Allocation::new(packet.len())?);
        }
        // SAFETY: the buffer has at least `packet.len()` bytes, after `exchange` if necessary. `packet` is memory of the codec, so
        // they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(packet.as_ptr(), self.buffer.cast(), packet.len());
        }
        Ok(packet.len())
    }

    fn decode(&mut self, values: &[c_uint]) -> Result<usize, Message> {
        let packet = self.bytes();
        let length = packet::decoded_length(packet).map_err(message)?;
        // Invalid options are ignored: a packet describes itself.
        let known = Options::parse(values)
            .ok()
            .and_then(|options| options.local?.bytes());
        if known.map_or(length > MAX_CHUNK, |known| known != length) {
            return Err(
                "expected the size of the dataset's chunks, found a chunk of another size; the file is \
                        damaged: restore it from a copy"
                    .into(),
            );
        }
        if length == 0 {
            return Err("expected a chunk with values, found an empty one; the file is damaged: restore it from a copy".into());
        }
        let mut out = Allocation::new(length)?;
        with_workspaces(length, |all| packet::decode(packet, out.bytes(), all)).map_err(message)?;
        self.exchange(out);
        Ok(length)
    }

    /// Replaces the buffer, and frees the old one.
    fn exchange(&mut self, other: Allocation) {
        let (memory, length) = other.into_parts();
        // SAFETY: the old buffer is from malloc (the contract of `filter`), and `&mut self` excludes slices of it.
        unsafe { libc::free(std::mem::replace(self.buffer, memory)) };
        *self.size = length;
    }
}

/// Memory from malloc.
struct Allocation {
    memory: *mut c_void,
    length: usize,
}

impl Allocation {
    fn new(length: usize) -> Result<Self, &'static str> {
        // SAFETY: `calloc` accepts any length. The bytes are zeroed, because slices must be initialized; large allocations are
        // zeroed by the system anyway.
        let memory = unsafe { libc::calloc(length.max(1), 1) };
        if memory.is_null() {
            return Err("cannot allocate memory for a chunk; use smaller chunks");
        }
        Ok(Self { memory, length })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `length` bytes were allocated and zeroed, and `self` owns them exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.cast(), self.length) }
    }

    fn into_parts(self) -> (*mut c_void, usize) {
        let parts = (self.memory, self.length);
        std::mem::forget(self);
        parts
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the memory is from `calloc`, and `into_parts` was not called, since it forgets `self`.
        unsafe { libc::free(self.memory) };
    }
}

/// Runs `work` with the shared workspaces, or with new ones for large chunks and while another thread uses the shared ones.
fn with_workspaces<R>(bytes: usize, work: impl FnOnce(&mut Workspaces) -> R) -> R {
    if bytes > MAX_REUSED {
        return work(&mut Workspaces::default());
    }
    let taken = WORKSPACES.try_lock().ok().and_then(|mut kept| kept.take());
    let mut workspaces = taken.unwrap_or_default();
    let done = work(&mut workspaces);
    if let Ok(mut kept) = WORKSPACES.try_lock() {
        *kept = Some(workspaces);
    }
    done
}

fn message(error: Error) -> Message {
    error.to_string().into()
}
