//! Loops that are compiled twice: for the vectors that every processor has, and for ones of 512 bits, which
//! are taken where the processor has these.
//!
//! Both do the same operations on each value, in the same order, so that results are the same.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes a function with a copy for vectors of 512 bits. It is never inlined: so the compiler knows what is
/// written to be apart from what is read. In brackets, generic parameters; behind `of`, their names alone.
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
            fn all<$($generic)*>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
                fn widest<$($generic)*>($($argument: $type),*) $(-> $result)? {
                    all::<$($parameter),*>($($argument),*)
                }
                if $crate::simd::dispatch::are_widest() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { widest::<$($parameter),*>($($argument),*) };
                }
            }
            all::<$($parameter),*>($($argument),*)
        }
    };
}
pub(crate) use vectorised;

/// Whether the processor has the instructions for vectors of 512 bits: of those that do, the ones that are not
/// slowed down by them (Ice Lake, Zen 4 and what came after).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn are_widest() -> bool {
    #[cfg(test)]
    if NARROW.get() {
        return false;
    }
    // Asked for every row: one word is looked at, not what the processor says of each of them.
    match WIDEST.load(Ordering::Relaxed) {
        UNKNOWN => find_out(),
        known => known == YES,
    }
}

#[cfg(target_arch = "x86_64")]
static WIDEST: AtomicU8 = AtomicU8::new(UNKNOWN);
#[cfg(target_arch = "x86_64")]
const UNKNOWN: u8 = 0;
#[cfg(target_arch = "x86_64")]
const NO: u8 = 1;
#[cfg(target_arch = "x86_64")]
const YES: u8 = 2;

#[cfg(target_arch = "x86_64")]
#[cold]
fn find_out() -> bool {
    let all = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2");
    WIDEST.store(if all { YES } else { NO }, Ordering::Relaxed);
    all
}

#[cfg(test)]
thread_local! {
    /// Whether a test does without vectors of 512 bits.
    static NARROW: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Does something on this thread as a processor without vectors of 512 bits does it.
#[cfg(test)]
pub(crate) fn narrowly<R>(what: impl FnOnce() -> R) -> R {
    NARROW.set(true);
    let result = what();
    NARROW.set(false);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::regions::Layout;
    use crate::stream::encode::Workspace;
    use crate::stream::params::Plan;
    use crate::{decode, element::Element, encode};

    /// Streams, and the bits that they are decoded to, must be those of narrow vectors.
    fn both_ways<T: Element>(layout: &Layout<'_>, count: usize) {
        let values: Vec<T> = (0..count)
            .map(|i| match i % 997 {
                5 => T::from_f64(1e30),
                9 => T::from_f64(f64::NAN),
                13 => T::from_f64(-0.0),
                _ => T::from_f64((i as f64 * 0.011).sin() * 1e3 + (i * i % 11) as f64),
            })
            .collect();
        let bounds = [0.0, 0.4, 3.0, 40.0];
        let cases = bounds
            .iter()
            .flat_map(|b| (0..192).step_by(9).map(move |p| (*b, p)));
        for (bound, plan) in cases {
            let plan = Plan::numbered(plan);
            let run = || {
                let mut workspace = Workspace::default();
                let stream = encode(&values, layout, bound, Some(plan), &mut workspace).unwrap();
                let mut out = vec![T::default(); count];
                decode(&stream, &mut out, &mut Workspace::default()).unwrap();
                let bits: Vec<u64> = out.iter().map(|x| x.to_word()).collect();
                (stream, bits)
            };
            assert!(run() == narrowly(run), "{plan:?} {bound}");
        }
    }

    #[test]
    fn vectors_of_both_widths_give_the_same() {
        both_ways::<f64>(&Layout::Array(&[10, 21, 35]), 10 * 21 * 35);
        both_ways::<f32>(&Layout::Array(&[5, 20, 150]), 5 * 20 * 150);
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
        both_ways::<f64>(&layout, 512 * places.len());
    }
}
