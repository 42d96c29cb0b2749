//! The rANS decoder for 32 states with AVX-512, sixteen states per vector.

use crate::entropy::frequencies::{PROBABILITY_BITS, SLOTS};
use crate::entropy::rans::decode_table::Slots;
use crate::entropy::rans::{WIDE_STATES, lowest_bits};
use core::arch::x86_64::*;

/// States of a vector.
const LANES: usize = 16;
/// Maximum number of bytes of words that a group of symbols reads.
const GROUP_BYTES: usize = 2 * WIDE_STATES;

/// Decodes groups for which enough words remain; returns the number of bytes read.
///
/// # Safety
/// The indices that `tables` returns must be valid.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) unsafe fn decode_groups(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    groups: &mut [[u8; WIDE_STATES]],
    all: &mut [u32; WIDE_STATES],
    words: &[u8],
) -> usize {
    assert!(words.len() >= GROUP_BYTES * groups.len());
    let (mut position, mut states) = (0, load(all));
    for (number, group) in groups.iter_mut().enumerate() {
        let tables = tables(number);
        let parts = tables
            .as_chunks()
            .0
            .iter()
            .zip(group.as_chunks_mut::<LANES>().0);
        for ((tables, out), state) in parts.zip(&mut states) {
            // SAFETY: the indices are valid. Each of two steps reads 32 bytes of words, and moves on by at most as
            // many, so that a group reads at most `GROUP_BYTES` from its start, which the assertion checks.
            let (symbols, taken) = unsafe {
                let from = words.as_ptr().add(position);
                step(slots, tables, state, (from, LANES), ALL_LANES)
            };
            // SAFETY: the vector has the length of the array.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), symbols) };
            position += 2 * taken;
        }
    }
    store(states, all);
    position
}

/// Decodes the first symbols of a group, or all, and rotates the states so that the next one is the first. Returns the
/// number of bytes read. `words` holds `count` words, followed by zeros.
///
/// # Safety
/// The indices must be valid.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) unsafe fn decode_tail(
    slots: &[Slots],
    tables: [u8; WIDE_STATES],
    out: &mut [u8],
    all: &mut [u32; WIDE_STATES],
    (words, count): (&[u8; GROUP_BYTES], usize),
) -> usize {
    let (mut taken, mut states) = (0, load(all));
    let parts = out.chunks_mut(LANES).zip(tables.as_chunks().0);
    for ((out, tables), state) in parts.zip(&mut states) {
        let active = ALL_LANES >> (LANES - out.len());
        // SAFETY: the indices are valid. Each of two steps reads 32 bytes of words, and moves on by at most as many.
        let (symbols, more) = unsafe {
            let from = words.as_ptr().add(2 * taken);
            step(slots, tables, state, (from, count - taken), active)
        };
        // SAFETY: the mask excludes bytes after the end.
        unsafe { _mm_mask_storeu_epi8(out.as_mut_ptr().cast(), active, symbols) };
        taken += more;
    }
    // The highest bit of an index selects the vector.
    let rotated = |first: usize| {
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let from = _mm512_add_epi32(lanes, _mm512_set1_epi32((first + out.len()) as i32));
        _mm512_permutex2var_epi32(states[0], from, states[1])
    };
    store([rotated(0), rotated(LANES)], all);
    2 * taken
}

/// All lanes.
const ALL_LANES: u16 = u16::MAX;

#[target_feature(enable = "avx512f")]
#[inline]
fn load(all: &[u32; WIDE_STATES]) -> [__m512i; WIDE_STATES / LANES] {
    // SAFETY: the vectors are within `all`.
    std::array::from_fn(|v| unsafe { _mm512_loadu_si512(all.as_ptr().add(LANES * v).cast()) })
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(states: [__m512i; WIDE_STATES / LANES], all: &mut [u32; WIDE_STATES]) {
    for (state, to) in states.into_iter().zip(all.as_chunks_mut::<LANES>().0) {
        // SAFETY: the vector has the length of the array.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), state) };
    }
}

/// Decodes a symbol for each lane in `active`, with the tables of these indices. Returns the symbols, and the number of
/// words read, which is at most `count`.
///
/// # Safety
/// The indices must be valid, and 32 bytes of words readable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn step(
    slots: &[Slots],
    tables: &[u8; LANES],
    state: &mut __m512i,
    (words, count): (*const u8, usize),
    active: u16,
) -> (__m128i, usize) {
    // SAFETY: slots are below `SLOTS`, the indices are valid, and the words are readable.
    let (entries, words) = unsafe {
        let table = _mm512_cvtepu8_epi32(_mm_loadu_si128(tables.as_ptr().cast()));
        let slot = _mm512_and_si512(*state, _mm512_set1_epi32(SLOTS as i32 - 1));
        let at = _mm512_or_si512(_mm512_slli_epi32::<PROBABILITY_BITS>(table), slot);
        let entries = _mm512_i32gather_epi32::<4>(at, slots.as_ptr().cast());
        (entries, _mm256_loadu_si256(words.cast()))
    };
    let frequency = _mm512_srli_epi32::<20>(entries);
    let number = _mm512_and_si512(_mm512_srli_epi32::<8>(entries), _mm512_set1_epi32(0xfff));
    let quotient = _mm512_srli_epi32::<PROBABILITY_BITS>(*state);
    let next = _mm512_add_epi32(_mm512_mullo_epi32(frequency, quotient), number);
    let short = _mm512_mask_cmplt_epu32_mask(active, next, _mm512_set1_epi32(1 << 16));
    let short = lowest_bits(short.into(), count) as u16;
    let own = _mm512_maskz_expand_epi32(short, _mm512_cvtepu16_epi32(words));
    let next = _mm512_or_si512(_mm512_mask_slli_epi32::<16>(next, short, next), own);
    *state = _mm512_mask_mov_epi32(*state, active, next);
    (_mm512_cvtepi32_epi8(entries), short.count_ones() as usize)
}
