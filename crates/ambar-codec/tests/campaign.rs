//! The bound holds for all float32 bit patterns.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use ambar_codec::{ErrorBound, Layout, Workspace, decode, encode};

const CHUNK: u32 = 1 << 18;

/// All bit patterns, in chunks of consecutive and of scattered patterns, with one thread for each of six combinations.
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

/// Encodes and decodes all patterns, in the order of the multiples of an odd number.
fn all_float32(bound: f64, odd: u32) {
    let layout = Layout::Array(&[64, 64, 64]);
    let (mut workspace, mut out) = (Workspace::default(), vec![0f32; CHUNK as usize]);
    let mut params = None;
    for chunk in 0..1u32 << 14 {
        let pattern = |i: u32| f32::from_bits((chunk * CHUNK + i).wrapping_mul(odd));
        let values: Vec<f32> = (0..CHUNK).map(pattern).collect();
        params = params.or_else(|| ambar_codec::tune(&values, &layout, bound).ok());
        let stream = encode(&values, &layout, bound, params, &mut workspace).unwrap();
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

/// All bit patterns with all kinds of bounds that apply to single values. `AMBAR_STRIDE=16` tests every 16th chunk.
#[test]
#[ignore = "eleven minutes of processor time: make campaign"]
fn every_float32_keeps_every_kind_of_bound() {
    let bounds = [
        "1e-3 relative",
        "1e-3 relative above 1e-10",
        "1e-6 relative",
        "12 bits",
    ];
    let bounds: Vec<ErrorBound> = bounds.iter().map(|bound| bound.parse().unwrap()).collect();
    let mut workspace = Workspace::default();
    const COUNT: u64 = 1 << 22;
    let mut out = vec![0f32; COUNT as usize];
    let stride = std::env::var("AMBAR_STRIDE").map_or(1, |stride| stride.parse().unwrap());
    for chunk in (0..1u64 << 10).step_by(stride) {
        // Consecutive patterns, and patterns spread over all exponents.
        for spread in [1, 0x9e37_79b1] {
            let pattern = |i: u64| ((chunk * COUNT + i).wrapping_mul(spread)) as u32;
            let values: Vec<f32> = (0..COUNT).map(|i| f32::from_bits(pattern(i))).collect();
            for bound in &bounds {
                let layout = Layout::Array(&[COUNT as usize]);
                let params = ambar_codec::EncoderParams::default()
                    .with_level_contexts()
                    .with_bit_packing();
                let stream =
                    encode(&values, &layout, *bound, Some(params), &mut workspace).unwrap();
                decode(&stream, &mut out, &mut workspace).unwrap();
                for (original, decoded) in values.iter().zip(&out) {
                    let is_kept = match bound {
                        _ if !original.is_finite() => original.to_bits() == decoded.to_bits(),
                        // Half a unit of the last kept bit; for denormals, of that of the smallest normal number.
                        ErrorBound::Bits(bits) => {
                            let unit = original.abs().max(f32::MIN_POSITIVE).to_bits() >> 23 << 23;
                            let half =
                                f64::from(f32::from_bits(unit)) * 0.5f64.powi(*bits as i32 + 1);
                            let error = (f64::from(*original) - f64::from(*decoded)).abs();
                            error <= half
                        }
                        bound => bound.is_satisfied(f64::from(*original), f64::from(*decoded)),
                    };
                    assert!(is_kept, "{bound}: {original:e} came back as {decoded:e}");
                }
            }
        }
    }
}
