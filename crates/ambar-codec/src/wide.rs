//! Decoding with 32 states: eight at once, where the processor's vectors can look up tables (AVX2).
//!
//! Source of the method: F. Giesen, "Interleaved entropy coders" (arXiv:1402.3392), section 3.

use crate::frequencies::{BITS, SLOTS};
use crate::rans::WIDE_STATES;
use crate::slots::Slots;
use core::arch::x86_64::*;

/// States of a vector.
const LANES: usize = 8;
/// Bytes of words that a group of symbols takes at most.
const MOST: usize = 2 * WIDE_STATES;

/// Of which word, counted from the next one, a lane takes its own, where the set bits are lanes that take one.
static PLACES: [[u8; LANES]; 256] = places();

const fn places() -> [[u8; LANES]; 256] {
    let mut all = [[0; LANES]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut taken) = (0, 0);
        while lane < LANES {
            all[mask][lane] = taken;
            taken += (mask >> lane & 1) as u8;
            lane += 1;
        }
        mask += 1;
    }
    all
}

/// Words, and where the next one begins. Behind the last there are zeros.
pub(crate) struct Words<'a> {
    pub words: &'a [u8],
    pub position: usize,
}

/// Decodes whole groups of symbols: those of bin `b` by the table of the number `numbers[b]`.
pub(crate) fn decode(
    (slots, numbers): (&[Slots], &[u8; 256]),
    (bins, groups): (&[[u8; WIDE_STATES]], &mut [[u8; WIDE_STATES]]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    assert!(numbers.iter().all(|n| usize::from(*n) < slots.len()));
    let tables = |group: usize| bins[group].map(|bin| numbers[usize::from(bin)]);
    // SAFETY: there are tables of all these numbers.
    unsafe { decode_by(slots, tables, groups, states, from) }
}

/// Decodes whole groups of symbols, all by the table of one number.
pub(crate) fn decode_alike(
    (slots, number): (&[Slots], u8),
    groups: &mut [[u8; WIDE_STATES]],
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    assert!(usize::from(number) < slots.len());
    // SAFETY: there is a table of this number.
    unsafe { decode_by(slots, |_| [number; WIDE_STATES], groups, states, from) }
}

/// Decodes whole groups of symbols; `tables` gives the numbers of a group's tables.
///
/// # Safety
/// There must be tables of these numbers.
#[inline(always)]
unsafe fn decode_by(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    groups: &mut [[u8; WIDE_STATES]],
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    let mut done = 0;
    while done < groups.len() {
        let left = from.words.get(from.position..).unwrap_or_default();
        let sure = (left.len() / MOST).min(groups.len() - done);
        let (mut last, mut words, mut count) = ([0; 2 * MOST], left, sure);
        if sure == 0 {
            last[..left.len()].copy_from_slice(left);
            (words, count) = (&last, 1);
        }
        let groups = &mut groups[done..][..count];
        // SAFETY: there are tables of these numbers.
        from.position += unsafe { vectors(slots, |k| tables(done + k), groups, states, words) };
        done += count;
    }
}

/// Decodes groups that there are words for in any case; says how many bytes of these they took.
///
/// # Safety
/// There must be tables of the numbers that `tables` gives.
#[inline(always)]
unsafe fn vectors(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    groups: &mut [[u8; WIDE_STATES]],
    all: &mut [u32; WIDE_STATES],
    words: &[u8],
) -> usize {
    assert!(words.len() >= MOST * groups.len());
    let mut position = 0;
    // SAFETY: the vectors are within `all`, `tables` and the groups: four of eight each. Each of the steps
    // reads 16 bytes of words and moves on by as many at most, so that a group reads `MOST` bytes from
    // where it begins, which there are. What is looked up is below `SLOTS` in a table that there is.
    unsafe {
        let mut states: [__m256i; WIDE_STATES / LANES] =
            std::array::from_fn(|v| _mm256_loadu_si256(all.as_ptr().add(LANES * v).cast()));
        for (number, group) in groups.iter_mut().enumerate() {
            let tables = tables(number);
            for (v, state) in states.iter_mut().enumerate() {
                let table = _mm_loadl_epi64(tables.as_ptr().add(LANES * v).cast());
                let entries = look_up(slots, _mm256_cvtepu8_epi32(table), *state);
                _mm_storel_epi64(group.as_mut_ptr().add(LANES * v).cast(), symbols(entries));
                let next = words.as_ptr().add(position).cast();
                let taken;
                (*state, taken) = renewed(entries, *state, _mm_loadu_si128(next));
                position += 2 * taken;
            }
        }
        for (v, state) in states.into_iter().enumerate() {
            _mm256_storeu_si256(all.as_mut_ptr().add(LANES * v).cast(), state);
        }
    }
    position
}

/// The entries of the states' slots in tables of these numbers.
///
/// # Safety
/// There must be tables of these numbers.
#[inline(always)]
unsafe fn look_up(slots: &[Slots], tables: __m256i, states: __m256i) -> __m256i {
    // SAFETY: the slot is below `SLOTS`, and the table is there. Vectors of integers need AVX2 only.
    unsafe {
        let slot = _mm256_and_si256(states, _mm256_set1_epi32(SLOTS as i32 - 1));
        let at = _mm256_or_si256(_mm256_slli_epi32::<{ BITS as i32 }>(tables), slot);
        _mm256_i32gather_epi32::<4>(slots.as_ptr().cast(), at)
    }
}

/// The lowest bytes of entries, side by side.
#[inline(always)]
fn symbols(entries: __m256i) -> __m128i {
    // SAFETY: vectors of integers need AVX2 only.
    unsafe {
        let lowest = _mm256_set1_epi64x(0x0c08_0400);
        let halves = _mm256_shuffle_epi8(entries, lowest);
        let pair = _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
        _mm256_castsi256_si128(pair)
    }
}

/// The next states, with words where they lack one, and how many words these are.
#[inline(always)]
fn renewed(entries: __m256i, states: __m256i, words: __m128i) -> (__m256i, usize) {
    // SAFETY: vectors of integers need AVX2 only; the mask has eight bits.
    unsafe {
        let frequency = _mm256_srli_epi32::<20>(entries);
        let number = _mm256_and_si256(_mm256_srli_epi32::<8>(entries), _mm256_set1_epi32(0xfff));
        let quotient = _mm256_srli_epi32::<{ BITS as i32 }>(states);
        let next = _mm256_add_epi32(_mm256_mullo_epi32(frequency, quotient), number);
        let short = _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(next), _mm256_setzero_si256());
        let mask = _mm256_movemask_ps(_mm256_castsi256_ps(short)) as usize;
        let places = _mm_loadl_epi64(PLACES[mask].as_ptr().cast());
        let own =
            _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(words), _mm256_cvtepu8_epi32(places));
        let longer = _mm256_or_si256(_mm256_slli_epi32::<16>(next), own);
        let taken = mask.count_ones() as usize;
        (_mm256_blendv_epi8(next, longer, short), taken)
    }
}
