//! Decoding with 32 states, eight at once, where the processor's vectors can look up tables (AVX2); or sixteen, by
//! [`decode_avx512`](super::decode_avx512).
//!
//! Source of the method: F. Giesen, "Interleaved entropy coders" (arXiv:1402.3392), section 3.

use crate::entropy::frequencies::{BITS, SLOTS};
use crate::entropy::rans::decode_avx512;
use crate::entropy::rans::decode_table::{ContextTables, NUMBERS, Slots};
use crate::entropy::rans::{WIDE_STATES, first_of};
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

/// Words, and where the next one begins.
pub(crate) struct Words<'a> {
    pub words: &'a [u8],
    pub position: usize,
}

impl<'a> Words<'a> {
    /// Those that are left.
    fn left(&self) -> &'a [u8] {
        self.words.get(self.position..).unwrap_or_default()
    }
}

/// Decodes symbols, each by the table of its bin.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode(
    context_tables: &ContextTables<'_>,
    coded: (&[u8], &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    // SAFETY: this function has the instructions.
    unsafe { decode_each::<false>(context_tables, coded, states, from) }
}

/// As [`decode`], by vectors of 512 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode_by_512(
    context_tables: &ContextTables<'_>,
    coded: (&[u8], &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    // SAFETY: this function has the instructions.
    unsafe { decode_each::<true>(context_tables, coded, states, from) }
}

/// Decodes symbols, all by the table of one bin.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode_alike(
    context_tables: &ContextTables<'_>,
    coded: (u8, &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    // SAFETY: this function has the instructions.
    unsafe { decode_all_alike::<false>(context_tables, coded, states, from) }
}

/// As [`decode_alike`], by vectors of 512 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode_alike_by_512(
    context_tables: &ContextTables<'_>,
    coded: (u8, &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    // SAFETY: this function has the instructions.
    unsafe { decode_all_alike::<true>(context_tables, coded, states, from) }
}

/// As [`decode`]; where `WIDE`, by vectors of 512 bits.
///
/// # Safety
/// The function that it is part of must have AVX2, and AVX-512 where `WIDE`.
#[inline(always)]
unsafe fn decode_each<const WIDE: bool>(
    context_tables: &ContextTables<'_>,
    (contexts, symbols): (&[u8], &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    let (contexts, last) = contexts[..symbols.len()].as_chunks();
    let mut rest = [0; WIDE_STATES];
    rest[..last.len()].copy_from_slice(last);
    let numbers = Numbers::new(context_tables);
    // Inlined, closures are part of the function that has the instructions.
    // SAFETY: there are tables of the bins' numbers, and the instructions.
    unsafe {
        decode_by::<WIDE>(
            context_tables.slots(),
            #[inline(always)]
            |group| numbers.of(contexts.get(group).unwrap_or(&rest)),
            symbols,
            states,
            from,
        );
    }
}

/// As [`decode_alike`]; where `WIDE`, by vectors of 512 bits.
///
/// # Safety
/// The function that it is part of must have AVX2, and AVX-512 where `WIDE`.
#[inline(always)]
unsafe fn decode_all_alike<const WIDE: bool>(
    context_tables: &ContextTables<'_>,
    (context, symbols): (u8, &mut [u8]),
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    let number = Numbers::new(context_tables).of(&[context; WIDE_STATES]);
    // SAFETY: there are tables of the bins' numbers, and the instructions.
    unsafe { decode_by::<WIDE>(context_tables.slots(), |_| number, symbols, states, from) }
}

/// Bytes of which a vector's half can look one up.
const HALF: usize = 16;

/// The numbers of bins' tables, so many to a vector, twice.
struct Numbers([__m256i; NUMBERS / HALF]);

impl Numbers {
    #[inline(always)]
    fn new(context_tables: &ContextTables<'_>) -> Self {
        const { assert!(NUMBERS.is_multiple_of(HALF)) };
        let parts = context_tables.numbers().as_chunks::<HALF>().0;
        // SAFETY: the numbers have as many bytes as are read. Vectors of integers need AVX2 only, which callers have.
        Self(std::array::from_fn(|part| unsafe {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(parts[part].as_ptr().cast()))
        }))
    }

    /// The numbers of the tables of bins; 0 of those beyond all.
    #[inline(always)]
    fn of(&self, contexts: &[u8; WIDE_STATES]) -> [u8; WIDE_STATES] {
        let mut numbers = [0; WIDE_STATES];
        // SAFETY: as many bytes are read and written as there are. Vectors of integers need AVX2 only, which callers have.
        unsafe {
            let contexts = _mm256_loadu_si256(contexts.as_ptr().cast());
            let mut found = _mm256_setzero_si256();
            for (part, table) in self.0.iter().enumerate() {
                // Of bytes with the highest bit set nothing is looked up: here, of bins of other parts.
                let place = _mm256_sub_epi8(contexts, _mm256_set1_epi8((HALF * part) as i8));
                let place = _mm256_adds_epu8(place, _mm256_set1_epi8((0x80 - HALF) as i8));
                found = _mm256_or_si256(found, _mm256_shuffle_epi8(*table, place));
            }
            _mm256_storeu_si256(numbers.as_mut_ptr().cast(), found);
        }
        numbers
    }
}

/// Decodes symbols; `tables` gives the numbers of the tables of a group of them.
///
/// # Safety
/// There must be tables of these numbers. The function that it is part of must have AVX2, and AVX-512 where `WIDE`.
#[inline(always)]
unsafe fn decode_by<const WIDE: bool>(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    symbols: &mut [u8],
    states: &mut [u32; WIDE_STATES],
    from: &mut Words<'_>,
) {
    let (groups, rest) = symbols.as_chunks_mut();
    let mut done = 0;
    while done < groups.len() {
        let left = from.left();
        let guaranteed = (left.len() / MOST).min(groups.len() - done);
        if guaranteed == 0 {
            // SAFETY: there are tables of these numbers.
            from.position += unsafe {
                decode_tail::<WIDE>(slots, tables(done), &mut groups[done], states, left)
            };
            done += 1;
            continue;
        }
        let groups = &mut groups[done..][..guaranteed];
        // SAFETY: there are tables of these numbers, and the instructions of the copy that is taken.
        from.position += unsafe {
            if WIDE {
                decode_avx512::vectors(
                    slots,
                    #[inline(always)]
                    |k| tables(done + k),
                    groups,
                    states,
                    left,
                )
            } else {
                vectors(
                    slots,
                    #[inline(always)]
                    |k| tables(done + k),
                    groups,
                    states,
                    left,
                )
            }
        };
        done += guaranteed;
    }
    if !rest.is_empty() {
        // SAFETY: there are tables of these numbers.
        from.position +=
            unsafe { decode_tail::<WIDE>(slots, tables(done), rest, states, from.left()) };
    }
}

/// Decodes the first symbols of a group, or all, and turns the states so that the next one is the first; says
/// how many bytes of words they took, of those that are left.
///
/// # Safety
/// As of [`decode_by`].
#[inline(always)]
unsafe fn decode_tail<const WIDE: bool>(
    slots: &[Slots],
    tables: [u8; WIDE_STATES],
    out: &mut [u8],
    all: &mut [u32; WIDE_STATES],
    left: &[u8],
) -> usize {
    let mut last = [0; MOST];
    let words = left.first_chunk().unwrap_or_else(|| {
        last[..left.len()].copy_from_slice(left);
        &last
    });
    let words = (words, left.len() / 2);
    // SAFETY: there are tables of these numbers, and the instructions of the copy that is taken.
    unsafe {
        if WIDE {
            decode_avx512::decode_tail(slots, tables, out, all, words)
        } else {
            decode_tail_by_eight(slots, tables, out, all, words)
        }
    }
}

/// As [`decode_tail`]: of the words, there are `count`, and zeros behind them.
///
/// # Safety
/// There must be tables of these numbers.
#[inline(always)]
unsafe fn decode_tail_by_eight(
    slots: &[Slots],
    tables: [u8; WIDE_STATES],
    out: &mut [u8],
    all: &mut [u32; WIDE_STATES],
    (words, count): (&[u8; MOST], usize),
) -> usize {
    let (mut taken, tables) = (0, tables.as_chunks::<LANES>().0);
    let parts = out.chunks_mut(LANES).zip(all.as_chunks_mut::<LANES>().0);
    for ((out, states), tables) in parts.zip(tables) {
        // SAFETY: all vectors are within the arrays: each of the four steps moves on by 16 bytes of words at
        // most, and reads as many. There are tables of these numbers.
        unsafe {
            let old = _mm256_loadu_si256(states.as_ptr().cast());
            let table = _mm_loadl_epi64(tables.as_ptr().cast());
            let entries = look_up(slots, _mm256_cvtepu8_epi32(table), old);
            let next = advance(entries, old);
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let lanes = |mask: u32| {
                _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
            };
            let ours = (1u32 << out.len()) - 1;
            let mask = _mm256_movemask_ps(_mm256_castsi256_ps(needs_refill(next))) as u32;
            let mask = first_of(mask & ours, count - taken);
            let from = _mm_loadu_si128(words.as_ptr().add(2 * taken).cast());
            let new = refill(next, (lanes(mask), mask as usize), from);
            _mm256_storeu_si256(
                states.as_mut_ptr().cast(),
                _mm256_blendv_epi8(old, new, lanes(ours)),
            );
            let mut eight = [0; LANES];
            _mm_storel_epi64(eight.as_mut_ptr().cast(), symbols(entries));
            out.copy_from_slice(&eight[..out.len()]);
            taken += mask.count_ones() as usize;
        }
    }
    all.rotate_left(out.len() % WIDE_STATES);
    2 * taken
}

/// Decodes groups for which enough words remain; returns the number of bytes read.
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
                let from = _mm_loadu_si128(words.as_ptr().add(position).cast());
                let next = advance(entries, *state);
                let short = needs_refill(next);
                let mask = _mm256_movemask_ps(_mm256_castsi256_ps(short)) as usize;
                *state = refill(next, (short, mask), from);
                position += 2 * mask.count_ones() as usize;
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
    // SAFETY: the slot is below `SLOTS`, and the table is there. Vectors of integers need AVX2 only, which callers have.
    unsafe {
        let slot = _mm256_and_si256(states, _mm256_set1_epi32(SLOTS as i32 - 1));
        let at = _mm256_or_si256(_mm256_slli_epi32::<{ BITS as i32 }>(tables), slot);
        _mm256_i32gather_epi32::<4>(slots.as_ptr().cast(), at)
    }
}

/// The lowest bytes of entries, side by side.
#[inline(always)]
fn symbols(entries: __m256i) -> __m128i {
    // SAFETY: vectors of integers need AVX2 only, which callers have.
    unsafe {
        let lowest = _mm256_set1_epi64x(0x0c08_0400);
        let halves = _mm256_shuffle_epi8(entries, lowest);
        let pair = _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
        _mm256_castsi256_si128(pair)
    }
}

/// The next states, which may lack a word.
#[inline(always)]
fn advance(entries: __m256i, states: __m256i) -> __m256i {
    // SAFETY: vectors of integers need AVX2 only, which callers have.
    unsafe {
        let frequency = _mm256_srli_epi32::<20>(entries);
        let number = _mm256_and_si256(_mm256_srli_epi32::<8>(entries), _mm256_set1_epi32(0xfff));
        let quotient = _mm256_srli_epi32::<{ BITS as i32 }>(states);
        _mm256_add_epi32(_mm256_mullo_epi32(frequency, quotient), number)
    }
}

/// Which of the states lack a word.
#[inline(always)]
fn needs_refill(states: __m256i) -> __m256i {
    // SAFETY: vectors of integers need AVX2 only, which callers have.
    unsafe { _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(states), _mm256_setzero_si256()) }
}

/// The states with words behind those that `lack` one: lanes, and eight bits for them.
#[inline(always)]
fn refill(states: __m256i, (lack, mask): (__m256i, usize), words: __m128i) -> __m256i {
    // SAFETY: vectors of integers need AVX2 only, which callers have; a vector of places has eight bytes.
    unsafe {
        let places = _mm_loadl_epi64(PLACES[mask].as_ptr().cast());
        let own =
            _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(words), _mm256_cvtepu8_epi32(places));
        let longer = _mm256_or_si256(_mm256_slli_epi32::<16>(states), own);
        _mm256_blendv_epi8(states, longer, lack)
    }
}
