//! The filter itself: a chunk in memory of malloc's becomes a packet, or a packet a chunk.

use std::borrow::Cow;
use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use ambar_codec::Error;
use ambar_codec::packet::{self, Chunk, Workspaces};

use super::library::Hdf5;
use super::options::Options;

/// HDF5's flags: that a packet is to be decoded, and that a chunk may be left as it is.
const REVERSE: c_uint = 0x0100;
const OPTIONAL: c_uint = 0x0001;
/// The largest chunk that HDF5 had before 2.0; a packet that nothing else is known of decodes to no
/// more.
const MOST: usize = u32::MAX as usize;
/// Bytes of the largest chunk whose workspace is kept for the next one.
const KEPT: usize = 16 << 20;

/// What chunks are worked on in, kept from one to the next.
static WORKSPACES: Mutex<Option<Box<Workspaces>>> = Mutex::new(None);

/// HDF5's callback. Returns the number of bytes in the buffer, or 0 where something is wrong.
///
/// # Safety
/// `buffer` points to memory of malloc's, of which there are `*size` bytes and `length` are used; of
/// `values` there are `count`.
pub(super) unsafe extern "C" fn filter(
    flags: c_uint,
    count: usize,
    values: *const c_uint,
    length: usize,
    size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    let work = || {
        // SAFETY: the caller promises them.
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
                hdf5.tell(&message);
            }
            0
        })
    };
    // The buffer is changed only where nothing can panic any more.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(0)
}

/// What is wrong, for HDF5's error stack.
type Message = Cow<'static, str>;

/// HDF5's buffer.
struct Memory<'a> {
    buffer: &'a mut *mut c_void,
    size: &'a mut usize,
    used: usize,
}

impl Memory<'_> {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `filter`'s caller promises so many bytes.
        unsafe { std::slice::from_raw_parts(self.buffer.cast::<u8>(), self.used) }
    }

    fn encode(&mut self, values: &[c_uint], optional: bool) -> Result<usize, Message> {
        let options = Options::parse(values)?;
        let local = options
            .local
            .ok_or("the filter was not told of the dataset's type and chunk")?;
        let chunk = Chunk {
            of: local.of,
            big_endian: local.big_endian,
            shape: &local.shape,
            bound: options.bound,
        };
        let bytes = self.bytes();
        let packet = with_workspaces(bytes.len(), |all| packet::encode(bytes, &chunk, all));
        match packet.map_err(message)? {
            Some(packet) => self.replace(&packet),
            // HDF5 then stores the chunk as it is, and notes that the filter was left out.
            None if optional => Ok(0),
            None => {
                let packet = packet::store(self.bytes());
                self.replace(&packet)
            }
        }
    }

    /// Puts a packet in the place of a chunk.
    fn replace(&mut self, packet: &[u8]) -> Result<usize, Message> {
        if packet.len() > *self.size {
            self.exchange(Allocation::new(packet.len())?);
        }
        // SAFETY: there is room for it, in memory of HDF5's.
        unsafe {
            std::ptr::copy_nonoverlapping(packet.as_ptr(), self.buffer.cast(), packet.len());
        }
        Ok(packet.len())
    }

    fn decode(&mut self, values: &[c_uint]) -> Result<usize, Message> {
        let packet = self.bytes();
        let length = packet::decoded_length(packet).map_err(message)?;
        // Options that cannot be read are not needed: a packet says all of itself.
        let known = Options::parse(values)
            .ok()
            .and_then(|options| options.local?.bytes());
        if known.map_or(length > MOST, |known| known != length) {
            return Err(
                "a chunk has another number of bytes than the dataset's chunks; the file is \
                        damaged: restore it from a copy"
                    .into(),
            );
        }
        if length == 0 {
            return Err("a chunk is empty; the file is damaged: restore it from a copy".into());
        }
        let mut out = Allocation::new(length)?;
        with_workspaces(length, |all| packet::decode(packet, out.bytes(), all)).map_err(message)?;
        self.exchange(out);
        Ok(length)
    }

    /// Gives HDF5 other memory.
    fn exchange(&mut self, other: Allocation) {
        let (memory, length) = other.into_parts();
        // SAFETY: the old memory is malloc's, and nothing refers to it any more.
        unsafe { libc::free(std::mem::replace(self.buffer, memory)) };
        *self.size = length;
    }
}

/// Memory of malloc's.
struct Allocation {
    memory: *mut c_void,
    length: usize,
}

impl Allocation {
    fn new(length: usize) -> Result<Self, &'static str> {
        // SAFETY: any length may be asked for. Zeroed, for slices hold no undefined bytes; large
        // memory comes zeroed anyway.
        let memory = unsafe { libc::calloc(length.max(1), 1) };
        if memory.is_null() {
            return Err("there is not enough memory for a chunk");
        }
        Ok(Self { memory, length })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes were allocated, zeroed, and are this one's alone.
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
        // SAFETY: it was allocated by malloc, and not given away.
        unsafe { libc::free(self.memory) };
    }
}

/// Lends workspaces: those kept, or for much, and while another thread has them, new ones.
fn with_workspaces<R>(bytes: usize, work: impl FnOnce(&mut Workspaces) -> R) -> R {
    if bytes > KEPT {
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
    match error {
        Error::Invalid(message) | Error::Corrupt(message) => message.into(),
        Error::UnsupportedVersion { .. } | Error::ReservedBits(..) => error.to_string().into(),
    }
}
