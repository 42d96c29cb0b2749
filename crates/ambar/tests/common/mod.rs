//! Helpers of the tests of stores.

// Each test file uses some of these helpers, which panic like tests.
#![allow(dead_code, clippy::unwrap_used)]

use ambar::DataType;
use ambar::codec::Profile;
use ambar::container::{CreateOptions, Durability};
use serde_json::json;

/// All profiles.
pub const PROFILES: [Profile; 3] = [Profile::Fast, Profile::Balanced, Profile::Small];

/// Names of the types of fixed size, for [`dtype`].
pub const DTYPES: [&str; 19] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "U5",
    "S7",
    "S300",
    "M8",
    "m8",
];

/// The type of this name.
pub fn dtype(name: &str) -> DataType {
    let json = match name {
        "U5" => json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 20}}),
        "S7" => json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 7}}),
        "S300" => json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 300}}),
        "M8" => {
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}})
        }
        "m8" => {
            json!({"name": "numpy.timedelta64", "configuration": {"unit": "ns", "scale_factor": 10}})
        }
        plain => json!(plain),
    };
    DataType::from_json(&json).unwrap()
}

/// Options of a store in one file, without fsync.
pub fn scratch_options() -> CreateOptions {
    CreateOptions {
        durability: Durability::None,
        ..CreateOptions::default()
    }
}

/// Reproducible pseudorandom numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Values with some structure, and all bit patterns of a type.
pub fn random_values(dtype: &DataType, count: usize) -> Vec<u8> {
    let size = dtype.size().unwrap();
    let mut random = Random::new(count as u64 + size as u64);
    let mut bytes = Vec::with_capacity(count * size);
    for index in 0..count {
        for place in 0..size {
            let smooth = (index / 3 + place) as u8;
            let byte = if place % 4 < 2 {
                random.next() as u8
            } else {
                smooth
            };
            bytes.push(if *dtype == DataType::Bool {
                byte & 1
            } else {
                byte
            });
        }
    }
    bytes
}
