//! Run-time dispatch: loops that are compiled for several levels of instructions, of which the processor's is
//! taken when they are called.
//!
//! The library is built for the baseline x86-64 processor. Functions made by [`vectorised`] have a copy for AVX2
//! (with BMI and LZCNT) and one for AVX-512. All copies do the same operations on each value in the same order,
//! and no copy fuses operations, so that results do not depend on the processor.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes a function with copies for the levels above the baseline. It is never inlined: so the compiler knows
/// what is written to be apart from what is read. In brackets, generic parameters; behind `of`, their names alone.
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
                    // SAFETY: the processor has the instructions of its level.
                    $crate::simd::dispatch::Level::Avx512 => return unsafe {
                        avx512::<$($parameter),*>($($argument),*)
                    },
                    // SAFETY: as above.
                    $crate::simd::dispatch::Level::Avx2 => return unsafe {
                        avx2::<$($parameter),*>($($argument),*)
                    },
                    $crate::simd::dispatch::Level::Baseline => {}
                }
            }
            baseline::<$($parameter),*>($($argument),*)
        }
    };
}
pub(crate) use vectorised;

/// Levels of instructions, each with those of the levels before it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// x86-64 without extensions.
    Baseline = 1,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT: Haswell, Zen and later.
    Avx2 = 2,
    /// Vectors of 512 bits, with VBMI2: Ice Lake, Zen 4 and later. Older processors that have AVX-512 slow down
    /// for such vectors.
    Avx512 = 3,
}

/// The variable of the environment that limits the level: `baseline` or `avx2`.
#[cfg(target_arch = "x86_64")]
const VARIABLE: &str = "AMBAR_SIMD";

/// The level that loops run at.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> Level {
    #[cfg(test)]
    if let Some(level) = LIMIT.get() {
        return level;
    }
    // Asked for every row: one byte is looked at, not what the processor says of each of the instructions.
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Baseline,
        _ => find_out(),
    }
}

/// The level, once it is known; 0 before.
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

#[cfg(target_arch = "x86_64")]
#[cold]
fn find_out() -> Level {
    let limit = match std::env::var(VARIABLE).as_deref() {
        Ok("baseline") => Level::Baseline,
        Ok("avx2") => Level::Avx2,
        _ => Level::Avx512,
    };
    let level = of_processor().min(limit);
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// The highest level whose instructions the processor has.
#[cfg(target_arch = "x86_64")]
fn of_processor() -> Level {
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
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        (false, _) => Level::Baseline,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
thread_local! {
    /// The level that a test runs loops at.
    static LIMIT: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// Does something on this thread at each level that the processor has, the highest first.
#[cfg(test)]
pub(crate) fn at_each_level<R>(mut what: impl FnMut() -> R) -> Vec<R> {
    #[cfg(target_arch = "x86_64")]
    return [Level::Avx512, Level::Avx2, Level::Baseline]
        .into_iter()
        .filter(|level| *level <= of_processor())
        .map(|level| {
            LIMIT.set(Some(level));
            let result = what();
            LIMIT.set(None);
            result
        })
        .collect();
    #[cfg(not(target_arch = "x86_64"))]
    vec![what()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::regions::Layout;
    use crate::stream::encode::Workspace;
    use crate::stream::params::Plan;
    use crate::{decode, element::Element, encode};

    /// Streams, and the bits that they are decoded to, must be the same at all levels.
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
        let coded = (0..192).step_by(9).map(Plan::numbered);
        let plans: Vec<Plan> = coded.chain([Plan::default().packed()]).collect();
        let cases = bounds
            .iter()
            .flat_map(|bound| plans.iter().map(move |plan| (*bound, *plan)));
        for (bound, plan) in cases {
            let run = || {
                let mut workspace = Workspace::default();
                let stream = encode(&values, layout, bound, Some(plan), &mut workspace).unwrap();
                let mut out = vec![T::default(); count];
                decode(&stream, &mut out, &mut Workspace::default()).unwrap();
                let bits: Vec<u64> = out.iter().map(|x| x.to_word()).collect();
                (stream, bits)
            };
            let results = at_each_level(run);
            assert!(
                results.iter().all(|one| *one == results[0]),
                "{plan:?} {bound}"
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
        assert!(at_each_level(level).contains(&Level::Baseline));
    }

    #[test]
    fn all_levels_give_the_same() {
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
