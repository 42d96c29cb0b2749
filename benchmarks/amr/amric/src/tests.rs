use crate::schemes::{Scheme, decode, encode};
use crate::value::Value;

const SCHEMES: [Scheme; 4] = [
    Scheme::OneDimensional,
    Scheme::LorenzoRegression,
    Scheme::InterpolationLinear,
    Scheme::InterpolationClustered,
];

fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Blocks of a smooth field at different positions.
fn smooth(count: usize, side: usize) -> Vec<f64> {
    let mut values = Vec::new();
    for block in 0..count {
        for z in 0..side {
            for y in 0..side {
                for x in 0..side {
                    let [z, y, x] = [z, y, x].map(|i| i as f64 / 9.0);
                    values.push((x + block as f64).sin() * (0.7 * y).cos() * 40.0 + z * z + 3.0);
                }
            }
        }
    }
    values
}

fn check<T: Value>(scheme: Scheme, values: &[T], side: usize, bound: f64) -> usize {
    let stream = encode(scheme, values, side, bound).unwrap();
    let mut out = vec![T::default(); values.len()];
    decode(scheme, &stream, side, &mut out).unwrap();
    for (at, (value, decoded)) in values.iter().zip(&out).enumerate() {
        let (value, decoded) = (value.to_f64(), decoded.to_f64());
        let held = (value - decoded).abs() <= bound || value.to_bits() == decoded.to_bits();
        assert!(
            held,
            "{scheme:?} {at}: {value} became {decoded}, bound {bound}"
        );
    }
    stream.len()
}

#[test]
fn values_are_restored_within_the_bound() {
    for scheme in SCHEMES {
        for (count, side) in [
            (0, 8),
            (1, 1),
            (3, 2),
            (1, 3),
            (5, 8),
            (29, 4),
            (9, 16),
            (2, 64),
        ] {
            let values = smooth(count, side);
            let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            for bound in [1.0, 1e-3, 1e-12, 0.0] {
                check(scheme, &values, side, bound);
                check(scheme, &single, side, bound);
            }
        }
    }
}

#[test]
fn noise_and_special_values_are_restored() {
    let mut random = noise(7);
    let mut values: Vec<f64> = (0..20 * 512).map(|_| random() - 0.5).collect();
    for (at, odd) in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        5e-324,
        -0.0,
    ]
    .into_iter()
    .enumerate()
    {
        values[700 * at + 3] = odd;
    }
    let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    for scheme in SCHEMES {
        for bound in [0.3, 1e-4, 1e-300] {
            check(scheme, &values, 8, bound);
            check(scheme, &single, 8, bound);
        }
    }
}

#[test]
fn smooth_blocks_compress_well() {
    let values = smooth(64, 16);
    let raw = 8 * values.len();
    let sizes = SCHEMES.map(|scheme| check(scheme, &values, 16, 1e-2));
    let most = [raw / 6, raw / 25, raw / 20, raw / 15];
    for (size, most) in sizes.into_iter().zip(most) {
        assert!(size < most, "{sizes:?}");
    }
    assert!(sizes[1] < sizes[0] / 2, "{sizes:?}");
}

#[test]
fn damaged_streams_never_panic() {
    let values = smooth(9, 8);
    let mut random = noise(3);
    for scheme in SCHEMES {
        let stream = encode(scheme, &values, 8, 1e-3).unwrap();
        let mut out = vec![0.0f64; values.len()];
        for length in (0..stream.len()).step_by(7) {
            assert!(decode(scheme, &stream[..length], 8, &mut out).is_err());
        }
        for _ in 0..400 {
            let mut damaged = stream.clone();
            let at = (random() * damaged.len() as f64) as usize;
            damaged[at] ^= 1 << (random() * 8.0) as u32;
            let _ = decode(scheme, &damaged, 8, &mut out);
        }
        let mut longer = stream.clone();
        longer.push(0);
        assert!(decode(scheme, &longer, 8, &mut out).is_err());
        let mut fewer = vec![0.0f64; values.len() - 512];
        assert!(decode(scheme, &stream, 8, &mut fewer).is_err());
    }
}

#[test]
fn invalid_arguments_are_refused() {
    for scheme in &SCHEMES[1..] {
        assert!(encode(*scheme, &[0.0f64; 7], 2, 1.0).is_err());
        assert!(encode(*scheme, &[0.0f64; 8], 0, 1.0).is_err());
    }
    assert!(encode(Scheme::OneDimensional, &[0.0f64; 7], 0, f64::NAN).is_err());
    assert!(encode(Scheme::OneDimensional, &[0.0f64; 7], 0, -1.0).is_err());
}
