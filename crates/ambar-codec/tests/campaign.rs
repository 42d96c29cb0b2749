//! The bound for every float32 there is.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use ambar_codec::{Layout, Workspace, decode, encode};

const CHUNK: u32 = 1 << 18;

/// All bit patterns, in chunks of neighbours and in chunks of patterns from everywhere, each of the six
/// ways on a thread of its own.
#[test]
#[ignore = "part of the campaign: all 2^32 float32 at three bounds, twice: a quarter of an hour on two cores"]
fn all_float32_at_three_bounds() {
    std::thread::scope(|scope| {
        for bound in [0.0, 1e-3, 1e30] {
            for odd in [1u32, 0x9e37_79b1] {
                scope.spawn(move || all_float32(bound, odd));
            }
        }
    });
}

/// Encodes and decodes all patterns, in the order of their products with an odd number.
fn all_float32(bound: f64, odd: u32) {
    let layout = Layout::Array(&[64, 64, 64]);
    let (mut workspace, mut out) = (Workspace::default(), vec![0f32; CHUNK as usize]);
    let mut plan = None;
    for chunk in 0..1u32 << 14 {
        let pattern = |i: u32| f32::from_bits((chunk * CHUNK + i).wrapping_mul(odd));
        let values: Vec<f32> = (0..CHUNK).map(pattern).collect();
        plan = plan.or_else(|| ambar_codec::tune(&values, &layout, bound).ok());
        let stream = encode(&values, &layout, bound, plan, &mut workspace).unwrap();
        decode(&stream, &mut out, &mut workspace).unwrap();
        for (a, b) in values.iter().zip(&out) {
            let error = f64::from(*a) - f64::from(*b);
            assert!(
                a.to_bits() == b.to_bits() || bound > 0.0 && error.abs() <= bound,
                "{a:?} came back as {b:?}, bound {bound}"
            );
        }
    }
}
