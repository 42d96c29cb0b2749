//! One row in chunks, each predicted from the value before and coded on its own, as HDF5's filters
//! see what AMReX writes.

use crate::bytes::Cursor;
use crate::quantizer::{Decoding, Encoding, Residuals};
use crate::schemes::Result;
use crate::schemes::{read_body, write_body};
use crate::value::Value;

/// Values of a chunk: AMReX's default.
const CHUNK: usize = 1024;

pub(crate) fn encode<T: Value>(values: &[T], bound: f64, out: &mut Vec<u8>) -> Result<()> {
    let mut decoded = [T::default(); CHUNK];
    for chunk in values.chunks(CHUNK) {
        let mut residuals = Encoding::new(chunk, bound);
        walk(&mut residuals, &mut decoded[..chunk.len()]);
        let mut body = Vec::new();
        residuals.finish(&mut body);
        write_body(&body, out)?;
    }
    Ok(())
}

pub(crate) fn decode<T: Value>(cursor: &mut Cursor<'_>, bound: f64, out: &mut [T]) -> Result<()> {
    for chunk in out.chunks_mut(CHUNK) {
        let body = read_body(cursor, chunk.len())?;
        let mut residuals = Decoding::read::<T>(&mut Cursor(&body), chunk.len(), bound)?;
        walk(&mut residuals, chunk);
        residuals.finish()?;
    }
    Ok(())
}

fn walk<T: Value>(residuals: &mut impl Residuals<T>, out: &mut [T]) {
    let mut last = 0.0;
    for (at, value) in out.iter_mut().enumerate() {
        *value = residuals.value(at, last);
        last = value.to_f64();
    }
}
