//! Run-time dispatch: functions that are compiled for several levels of instructions. A call selects the copy for the
//! processor.
//!
//! The library is built for the baseline x86-64 processor. Functions defined by [`vectorised`] have a copy for AVX2 (with
//! BMI and LZCNT) and one for AVX-512. All copies perform the same operations on each value in the same order, without
//! fused operations, so that results do not depend on the processor.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Defines a function with copies for the levels above the baseline. The function is not inlined, so that the compiler can
/// assume that inputs and outputs do not alias. The brackets hold the generic parameters; those after `of`, their names.
macro_rules! vectorised {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident [$($generic:tt)*] of [$($parameter:ident),*]
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $(#[$attribute])*
        #[inline(never)]
        $visibility fn $name<$($generic)*>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn baseline<$($generic)*>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2<$($generic)*>($($argument: $type),*) $(-> $result)? {
                    baseline::<$($parameter),*>($($argument),*)
                }
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt"
                )]
                fn avx512<$($generic)*>($($argument: $type),*) $(-> $result)? {
                    baseline::<$($parameter),*>($($argument),*)
                }
                match $crate::simd::dispatch::level() {
                    // SAFETY: the level guarantees the instructions.
                    $crate::simd::dispatch::SimdLevel::Avx512 => return unsafe {
                        avx512::<$($parameter),*>($($argument),*)
                    },
                    // SAFETY: the level guarantees the instructions.
                    $crate::simd::dispatch::SimdLevel::Avx2 => return unsafe {
                        avx2::<$($parameter),*>($($argument),*)
                    },
                    $crate::simd::dispatch::SimdLevel::Baseline => {}
                }
            }
            baseline::<$($parameter),*>($($argument),*)
        }
    };
}
pub(crate) use vectorised;

/// Levels of instructions. Each includes the levels before it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum SimdLevel {
    /// x86-64 without extensions.
    Baseline = 1,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT: Haswell, Zen and later.
    Avx2 = 2,
    /// AVX-512 with VBMI2: Ice Lake, Zen 4 and later. Older processors reduce their clock rate for AVX-512.
    Avx512 = 3,
}

/// The environment variable that limits the level to `baseline` or `avx2`.
#[cfg(target_arch = "x86_64")]
const VARIABLE: &str = "AMBAR_SIMD";

/// The level to use.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> SimdLevel {
    #[cfg(test)]
    if let Some(level) = LIMIT.get() {
        return level;
    }
    // Called for every row, so the result of the detection is cached in one byte.
    match LEVEL.load(Ordering::Relaxed) {
        3 => SimdLevel::Avx512,
        2 => SimdLevel::Avx2,
        1 => SimdLevel::Baseline,
        _ => detect(),
    }
}

/// The detected level; 0 before the detection.
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

#[cfg(target_arch = "x86_64")]
#[cold]
fn detect() -> SimdLevel {
    let limit = match std::env::var(VARIABLE).as_deref() {
        Ok("baseline") => SimdLevel::Baseline,
        Ok("avx2") => SimdLevel::Avx2,
        _ => SimdLevel::Avx512,
    };
    let level = processor_level().min(limit);
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// The highest level that the processor supports.
#[cfg(target_arch = "x86_64")]
fn processor_level() -> SimdLevel {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2");
    match (avx2, avx512) {
        (true, true) => SimdLevel::Avx512,
        (true, false) => SimdLevel::Avx2,
        (false, _) => SimdLevel::Baseline,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
thread_local! {
    /// The level that a test uses.
    static LIMIT: std::cell::Cell<Option<SimdLevel>> = const { std::cell::Cell::new(None) };
}

/// Calls `f` on this thread at each level that the processor supports, the highest first.
#[cfg(test)]
pub(crate) fn at_each_level<R>(mut f: impl FnMut() -> R) -> Vec<R> {
    #[cfg(target_arch = "x86_64")]
    return [SimdLevel::Avx512, SimdLevel::Avx2, SimdLevel::Baseline]
        .into_iter()
        .filter(|level| *level <= processor_level())
        .map(|level| {
            LIMIT.set(Some(level));
            let result = f();
            LIMIT.set(None);
            result
        })
        .collect();
    #[cfg(not(target_arch = "x86_64"))]
    vec![f()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::regions::Layout;
    use crate::stream::encode::Workspace;
    use crate::stream::params::EncoderParams;
    use crate::{decode, element::Element, encode};

    /// Streams and decoded values must be equal at all levels.
    fn check<T: Element>(layout: &Layout<'_>, count: usize) {
        let values: Vec<T> = (0..count)
            .map(|i| match i % 997 {
                5 => T::from_f64(1e30),
                9 => T::from_f64(f64::NAN),
                13 => T::from_f64(-0.0),
                _ => T::from_f64((i as f64 * 0.011).sin() * 1e3 + (i * i % 11) as f64),
            })
            .collect();
        let bounds = [0.0, 0.4, 3.0, 40.0];
        let coded = (0..192).step_by(9).map(EncoderParams::numbered);
        let params_list: Vec<EncoderParams> = coded
            .chain([EncoderParams::default().with_bit_packing()])
            .collect();
        let cases = bounds
            .iter()
            .flat_map(|bound| params_list.iter().map(move |params| (*bound, *params)));
        for (bound, params) in cases {
            let run = || {
                let mut workspace = Workspace::default();
                let stream = encode(&values, layout, bound, Some(params), &mut workspace).unwrap();
                let mut out = vec![T::default(); count];
                decode(&stream, &mut out, &mut Workspace::default()).unwrap();
                let bits: Vec<u64> = out.iter().map(|x| x.to_word()).collect();
                (stream, bits)
            };
            let results = at_each_level(run);
            assert!(
                results.iter().all(|one| *one == results[0]),
                "{params:?} {bound}"
            );
        }
    }

    /// Libraries built for AVX2 end with SIGILL on processors without it. Builds with custom compiler flags may require
    /// more than the baseline.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_build_asks_for_no_more_than_the_baseline() {
        if option_env!("RUSTFLAGS").is_none() && option_env!("CARGO_ENCODED_RUSTFLAGS").is_none() {
            let beyond = cfg!(any(
                target_feature = "sse3",
                target_feature = "avx",
                target_feature = "avx2",
                target_feature = "bmi2",
                target_feature = "popcnt"
            ));
            assert!(!beyond);
        }
        assert!(at_each_level(level).contains(&SimdLevel::Baseline));
    }

    #[test]
    fn all_levels_give_equal_results() {
        check::<f64>(&Layout::Array(&[10, 21, 35]), 10 * 21 * 35);
        check::<f32>(&Layout::Array(&[5, 20, 150]), 5 * 20 * 150);
        let places = [
            [0, 0, 0],
            [0, 0, 1],
            [0, 1, 0],
            [0, 1, 1],
            [1, 0, 0],
            [1, 1, 0],
        ];
        let origins = places.map(|place| place.map(|k: i64| 8 * k));
        let layout = Layout::Blocks {
            side: [8; 3],
            origins: &origins,
        };
        check::<f64>(&layout, 512 * places.len());
    }
}
