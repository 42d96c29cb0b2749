//! The filter, called as HDF5 calls it, without HDF5: round trips in buffers from `malloc`, and damage.

use crc_fast::crc32_iscsi as crc32c;
use std::ffi::{c_uint, c_void};

use ambar_codec::ErrorBound;
use ambar_codec::packet::ValueType;

use super::FILTER;
use super::options::{Local, Options};

const REVERSE: c_uint = 0x0100;
const OPTIONAL: c_uint = 1;

/// A buffer from `malloc`, as HDF5 passes it.
struct Buffer {
    memory: *mut c_void,
    size: usize,
    used: usize,
}

impl Buffer {
    fn new(bytes: &[u8]) -> Self {
        // SAFETY: the buffer has room for the copied bytes.
        let memory = unsafe {
            let memory = libc::malloc(bytes.len().max(1));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len());
            memory
        };
        Self {
            memory,
            size: bytes.len(),
            used: bytes.len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the filter returned the number of bytes in the buffer.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), self.used) }
    }

    fn filter(&mut self, flags: c_uint, values: &[c_uint]) -> usize {
        let filter = FILTER.filter.unwrap();
        // SAFETY: the buffer is from `malloc`, and has this size.
        let done = unsafe {
            filter(
                flags,
                values.len(),
                values.as_ptr(),
                self.used,
                &raw mut self.size,
                &raw mut self.memory,
            )
        };
        if done > 0 {
            self.used = done;
        }
        assert!(self.used <= self.size);
        done
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the test or the filter allocated it with `malloc`.
        unsafe { libc::free(self.memory) };
    }
}

fn options(dtype: ValueType, shape: &[usize], bound: f64) -> Vec<c_uint> {
    let local = Local {
        dtype,
        big_endian: false,
        shape: shape.to_vec(),
    };
    Options {
        bound: bound.into(),
        local: Some(local),
    }
    .to_values()
    .unwrap()
}

fn wave(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|i| ((i as f64 * 0.01).sin() * 9.0).to_ne_bytes())
        .collect()
}

fn noise(count: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// The bound that the filter parses from its options, for a bound given as text to `ambar_h5z_options`.
fn given(text: &str, range: Option<[f64; 2]>) -> Result<ErrorBound, String> {
    let ends = range.unwrap_or([f64::NAN; 2]).map(f64::to_bits);
    let ends = ends.map(|bits| [bits as c_uint, (bits >> 32) as c_uint]);
    let words = text.as_bytes().chunks(4).map(|bytes| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        c_uint::from_le_bytes(word)
    });
    let values: Vec<c_uint> = [1, 6]
        .into_iter()
        .chain(ends.concat())
        .chain(words)
        .collect();
    let options = Options::parse(&values).map_err(|message| message.into_owned())?;
    assert_eq!(options.local, None);
    Ok(options.bound)
}

#[test]
fn options_round_trip() {
    for (dtype, bound) in [
        (ValueType::Float32, "1e-3"),
        (ValueType::Float64, "lossless"),
        (ValueType::Other(12), "2.5"),
        (ValueType::Float32, "1e-3 relative"),
        (ValueType::Float64, "0.5 relative above 0.25"),
        (ValueType::Float32, "12 bits"),
        (ValueType::Float64, "0.1 rms"),
    ] {
        let bound: ErrorBound = bound.parse().unwrap();
        let local = Local {
            dtype,
            big_endian: dtype == ValueType::Float32,
            shape: vec![3, 4, 5],
        };
        let options = Options {
            bound,
            local: Some(local),
        };
        assert_eq!(
            Options::parse(&options.to_values().unwrap()).unwrap(),
            options
        );
        let given = Options { bound, local: None };
        assert_eq!(Options::parse(&given.to_values().unwrap()).unwrap(), given);
    }
    assert_eq!(
        Options::parse(&[]).unwrap(),
        Options {
            bound: 0.0.into(),
            local: None
        }
    );
    let nan = f64::NAN.to_bits();
    assert_eq!(given("1e-3 relative", None), Ok(ErrorBound::Relative(1e-3)));
    assert_eq!(
        given("0.25 of range", Some([-1.0, 3.0])),
        Ok(ErrorBound::Absolute(1.0))
    );
    assert!(given("80 dB", None).unwrap_err().contains("value_range"));
    assert!(
        given("1 bit", None)
            .unwrap_err()
            .starts_with("invalid error bound: \"1 bit\"")
    );
    for wrong in [
        &[2, 0, 0, 0][..],
        &[1],
        &[1, 2, 0, 0],
        &[1, 3, 0, 0],
        &[1, 4, 0, 0],
        &[1, 5, 0, 0],
        &[1, 6, 0, 0],
        &[1, 1, nan as c_uint, (nan >> 32) as c_uint],
        &[1, 0, 0, 0, 1],
        &[1, 0, 0, 0, 1, 8, 1, 5],
        &[1, 0, 0, 0, 1, 4, 2, 5],
        &[1, 0, 0, 0, 1, 4, 1, 0],
        &[1, 0, 0, 0, 0, 0, 1, 5],
        &[1, 0, 0, 0, 0, u32::MAX, 3, u32::MAX, u32::MAX, u32::MAX],
    ] {
        assert!(Options::parse(wrong).is_err(), "{wrong:?}");
    }
    let large = Local {
        dtype: ValueType::Float32,
        big_endian: false,
        shape: vec![1 << 33],
    };
    assert!(
        Options {
            bound: 0.0.into(),
            local: Some(large)
        }
        .to_values()
        .is_err()
    );
}

#[test]
fn chunks_round_trip_with_and_without_options() {
    let bytes = wave(3000);
    for bound in [0.0, 1e-4] {
        let values = options(ValueType::Float64, &[30, 100], bound);
        let mut buffer = Buffer::new(&bytes);
        let stored = buffer.filter(0, &values);
        assert!(stored > 0 && stored < bytes.len());
        let packet = buffer.bytes().to_vec();
        assert_eq!(buffer.filter(REVERSE, &values), bytes.len());
        let found = buffer.bytes().to_vec();
        assert!(bound > 0.0 || found == bytes);
        for (a, b) in bytes.as_chunks().0.iter().zip(found.as_chunks().0) {
            assert!((f64::from_ne_bytes(*a) - f64::from_ne_bytes(*b)).abs() <= bound);
        }
        for values in [&[][..], &[9, 9]] {
            let mut buffer = Buffer::new(&packet);
            assert_eq!(buffer.filter(REVERSE, values), bytes.len());
            assert_eq!(buffer.bytes(), found);
        }
        let other = options(ValueType::Float64, &[30, 101], bound);
        assert_eq!(Buffer::new(&packet).filter(REVERSE, &other), 0);
    }
}

#[test]
fn incompressible_chunks_are_skipped_or_stored() {
    let bytes = noise(4000);
    let values = options(ValueType::Float64, &[500], 0.0);
    let mut buffer = Buffer::new(&bytes);
    assert_eq!(buffer.filter(OPTIONAL, &values), 0);
    assert_eq!(buffer.bytes(), bytes);
    assert!(buffer.filter(0, &values) > bytes.len());
    assert_eq!(buffer.filter(REVERSE, &values), bytes.len());
    assert_eq!(buffer.bytes(), bytes);
}

#[test]
fn invalid_arguments_are_errors() {
    let bytes = wave(100);
    let mut buffer = Buffer::new(&bytes);
    for values in [
        &[][..],
        &[1, 0, 0, 0],
        &options(ValueType::Float64, &[99], 0.0),
    ] {
        assert_eq!(buffer.filter(0, values), 0);
        assert_eq!(buffer.bytes(), bytes);
    }
    let values = options(ValueType::Float64, &[100], 1e-3);
    buffer.filter(0, &values);
    let packet = buffer.bytes().to_vec();
    for length in 0..packet.len() {
        assert_eq!(Buffer::new(&packet[..length]).filter(REVERSE, &values), 0);
    }
    let filter = FILTER.filter.unwrap();
    // SAFETY: the function checks for null pointers.
    let done = unsafe {
        filter(
            REVERSE,
            0,
            std::ptr::null(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(done, 0);
}

/// The offset of the stream of a packet, from its length, which is the second number.
fn stream_of(packet: &[u8]) -> usize {
    let end = packet.len().saturating_sub(4);
    let mut numbers = [0usize; 2];
    let mut bytes = packet.iter().skip(4);
    for number in &mut numbers {
        for (shift, byte) in (0..63).step_by(7).zip(&mut bytes) {
            *number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    end.saturating_sub(numbers[1])
}

/// Damaged packets with valid checksums, and random bytes.
fn fuzz(rounds: usize) -> usize {
    let random = noise(8 * rounds);
    let mut errors = 0;
    for dtype in [ValueType::Float64, ValueType::Other(8)] {
        let values = options(dtype, &[6, 7, 8], 1e-2);
        let mut buffer = Buffer::new(&wave(336));
        buffer.filter(0, &values);
        for bytes in random.as_chunks::<8>().0 {
            let mut damaged = buffer.bytes().to_vec();
            let at = usize::from(bytes[0]) % (damaged.len() - 8);
            match bytes[1] % 3 {
                0 => damaged[at] = bytes[2],
                1 => damaged.truncate(at + 8),
                _ => damaged[at..][..4].copy_from_slice(&bytes[4..]),
            }
            let (end, begin) = (damaged.len() - 4, stream_of(&damaged));
            if let Some((body, checksum)) = damaged[begin..end].split_last_chunk_mut::<4>() {
                *checksum = crc32c(body).to_le_bytes();
            }
            let checksum = crc32c(&damaged[..begin]);
            damaged[end..].copy_from_slice(&checksum.to_le_bytes());
            let known: &[c_uint] = if bytes[3] % 2 == 0 { &values } else { &[] };
            errors += usize::from(Buffer::new(&damaged).filter(REVERSE, known) == 0);
            errors += usize::from(Buffer::new(bytes).filter(REVERSE, known) == 0);
        }
    }
    errors
}

#[test]
fn hostile_packets_are_errors() {
    let rounds = 3_000;
    let errors = fuzz(rounds);
    // All random bytes are errors, and most damaged packets.
    assert!(errors > 3 * rounds && errors < 4 * rounds, "{errors}");
}

#[test]
#[ignore = "part of the campaign: minutes"]
fn many_hostile_packets_are_errors() {
    assert!(fuzz(1_000_000) > 3_000_000);
}
