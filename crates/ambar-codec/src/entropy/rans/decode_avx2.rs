//! The rANS decoder for 32 states with AVX2, eight states per vector; or with AVX-512, by
//! [`decode_avx512`](super::decode_avx512).
//!
//! Source of the method: F. Giesen, "Interleaved entropy coders" (arXiv:1402.3392), section 3.

use crate::entropy::frequencies::{PROBABILITY_BITS, SLOTS};
use crate::entropy::rans::decode_avx512;
use crate::entropy::rans::decode_table::{ContextTables, NUMBERS, Slots, SymbolContexts};
use crate::entropy::rans::{WIDE_STATES, lowest_bits};
use core::arch::x86_64::*;

/// States of a vector.
const LANES: usize = 8;
/// Maximum number of bytes of words that a group of symbols reads.
const GROUP_BYTES: usize = 2 * WIDE_STATES;

/// For each set of lanes that need a refill: the index of the word that each lane reads.
static WORD_INDICES: [[u8; LANES]; 256] = word_indices();

const fn word_indices() -> [[u8; LANES]; 256] {
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

/// The words, and the position of the next one.
pub(crate) struct RemainingWords<'a> {
    pub words: &'a [u8],
    pub position: usize,
}

impl<'a> RemainingWords<'a> {
    /// The remaining bytes.
    fn remaining(&self) -> &'a [u8] {
        self.words.get(self.position..).unwrap_or_default()
    }
}

/// Decodes symbols.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode(
    context_tables: &ContextTables<'_>,
    contexts: SymbolContexts<'_>,
    symbols: &mut [u8],
    states: &mut [u32; WIDE_STATES],
    from: &mut RemainingWords<'_>,
) {
    // SAFETY: this function enables AVX2.
    unsafe { decode_with::<false>(context_tables, contexts, symbols, states, from) }
}

/// As [`decode`], with vectors of 512 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode_by_512(
    context_tables: &ContextTables<'_>,
    contexts: SymbolContexts<'_>,
    symbols: &mut [u8],
    states: &mut [u32; WIDE_STATES],
    from: &mut RemainingWords<'_>,
) {
    // SAFETY: this function enables AVX-512, which includes AVX2.
    unsafe { decode_with::<true>(context_tables, contexts, symbols, states, from) }
}

/// As [`decode`]; with vectors of 512 bits if `WIDE`.
///
/// # Safety
/// The calling function, into which this one is inlined, must enable AVX2, and AVX-512 if `WIDE`.
#[inline(always)]
unsafe fn decode_with<const WIDE: bool>(
    context_tables: &ContextTables<'_>,
    contexts: SymbolContexts<'_>,
    symbols: &mut [u8],
    states: &mut [u32; WIDE_STATES],
    from: &mut RemainingWords<'_>,
) {
    let (slots, numbers) = (context_tables.slots(), TableNumbers::new(context_tables));
    match contexts {
        SymbolContexts::Each(contexts) => {
            let (contexts, last) = contexts[..symbols.len()].as_chunks();
            let mut padded = [0; WIDE_STATES];
            padded[..last.len()].copy_from_slice(last);
            // The closure is inlined, so that it uses the instructions of the calling function.
            // SAFETY: the indices of tables are valid, and the caller enables the instructions.
            unsafe {
                decode_by::<WIDE>(
                    slots,
                    #[inline(always)]
                    |group| numbers.of(contexts.get(group).unwrap_or(&padded)),
                    symbols,
                    states,
                    from,
                );
            }
        }
        SymbolContexts::Same(context) => {
            let table = numbers.of(&[context; WIDE_STATES]);
            // SAFETY: the indices of tables are valid, and the caller enables the instructions.
            unsafe { decode_by::<WIDE>(slots, |_| table, symbols, states, from) }
        }
    }
}

/// The number of bytes of a table that a byte shuffle can look up.
const HALF: usize = 16;

/// The index of the table of each context, `HALF` of them in both halves of each vector.
struct TableNumbers([__m256i; NUMBERS / HALF]);

impl TableNumbers {
    #[inline(always)]
    fn new(context_tables: &ContextTables<'_>) -> Self {
        const { assert!(NUMBERS.is_multiple_of(HALF)) };
        let parts = context_tables.numbers().as_chunks::<HALF>().0;
        // SAFETY: 16 bytes are read, the length of a part. Callers enable AVX2.
        Self(std::array::from_fn(|part| unsafe {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(parts[part].as_ptr().cast()))
        }))
    }

    /// The indices of the tables of contexts; 0 for contexts from `NUMBERS`.
    #[inline(always)]
    fn of(&self, contexts: &[u8; WIDE_STATES]) -> [u8; WIDE_STATES] {
        let mut numbers = [0; WIDE_STATES];
        // SAFETY: 32 bytes are read and written, the length of both arrays. Callers enable AVX2.
        unsafe {
            let contexts = _mm256_loadu_si256(contexts.as_ptr().cast());
            let mut found = _mm256_setzero_si256();
            for (part, table) in self.0.iter().enumerate() {
                // The shuffle gives 0 for bytes whose highest bit is set: here, for contexts of other parts.
                let place = _mm256_sub_epi8(contexts, _mm256_set1_epi8((HALF * part) as i8));
                let place = _mm256_adds_epu8(place, _mm256_set1_epi8((0x80 - HALF) as i8));
                found = _mm256_or_si256(found, _mm256_shuffle_epi8(*table, place));
            }
            _mm256_storeu_si256(numbers.as_mut_ptr().cast(), found);
        }
        numbers
    }
}

/// Decodes symbols. `tables` returns the indices of the tables of a group.
///
/// # Safety
/// The indices must be valid. The calling function, into which this one is inlined, must enable AVX2, and AVX-512 if
/// `WIDE`.
#[inline(always)]
unsafe fn decode_by<const WIDE: bool>(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    symbols: &mut [u8],
    states: &mut [u32; WIDE_STATES],
    from: &mut RemainingWords<'_>,
) {
    let (groups, rest) = symbols.as_chunks_mut();
    let mut done = 0;
    while done < groups.len() {
        let left = from.remaining();
        let guaranteed = (left.len() / GROUP_BYTES).min(groups.len() - done);
        if guaranteed == 0 {
            // SAFETY: the indices are valid.
            from.position += unsafe {
                decode_tail::<WIDE>(slots, tables(done), &mut groups[done], states, left)
            };
            done += 1;
            continue;
        }
        let groups = &mut groups[done..][..guaranteed];
        // SAFETY: the indices are valid, and the caller enables the instructions of the chosen copy.
        from.position += unsafe {
            if WIDE {
                decode_avx512::decode_groups(
                    slots,
                    #[inline(always)]
                    |k| tables(done + k),
                    groups,
                    states,
                    left,
                )
            } else {
                decode_groups(
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
        // SAFETY: the indices are valid.
        from.position +=
            unsafe { decode_tail::<WIDE>(slots, tables(done), rest, states, from.remaining()) };
    }
}

/// Decodes the first symbols of a group, or all, and rotates the states so that the next one is the first. Returns the
/// number of bytes read.
///
/// # Safety
/// As for [`decode_by`].
#[inline(always)]
unsafe fn decode_tail<const WIDE: bool>(
    slots: &[Slots],
    tables: [u8; WIDE_STATES],
    out: &mut [u8],
    all: &mut [u32; WIDE_STATES],
    left: &[u8],
) -> usize {
    let mut last = [0; GROUP_BYTES];
    let words = left.first_chunk().unwrap_or_else(|| {
        last[..left.len()].copy_from_slice(left);
        &last
    });
    let words = (words, left.len() / 2);
    // SAFETY: the indices are valid, and the caller enables the instructions of the chosen copy.
    unsafe {
        if WIDE {
            decode_avx512::decode_tail(slots, tables, out, all, words)
        } else {
            decode_tail_by_eight(slots, tables, out, all, words)
        }
    }
}

/// As [`decode_tail`]. `words` holds `count` words, followed by zeros.
///
/// # Safety
/// The indices must be valid.
#[inline(always)]
unsafe fn decode_tail_by_eight(
    slots: &[Slots],
    tables: [u8; WIDE_STATES],
    out: &mut [u8],
    all: &mut [u32; WIDE_STATES],
    (words, count): (&[u8; GROUP_BYTES], usize),
) -> usize {
    let (mut taken, tables) = (0, tables.as_chunks::<LANES>().0);
    let parts = out.chunks_mut(LANES).zip(all.as_chunks_mut::<LANES>().0);
    for ((out, states), tables) in parts.zip(tables) {
        // SAFETY: all vectors are within the arrays: each of the four steps reads 16 bytes of words, and moves on by
        // at most as many. The indices are valid.
        unsafe {
            let old = _mm256_loadu_si256(states.as_ptr().cast());
            let table = _mm_loadl_epi64(tables.as_ptr().cast());
            let entries = look_up(slots, _mm256_cvtepu8_epi32(table), old);
            let next = advance(entries, old);
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let lanes = |mask: u32| {
                _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
            };
            let active = (1u32 << out.len()) - 1;
            let mask = _mm256_movemask_ps(_mm256_castsi256_ps(needs_refill(next))) as u32;
            let mask = lowest_bits(mask & active, count - taken);
            let from = _mm_loadu_si128(words.as_ptr().add(2 * taken).cast());
            let new = refill(next, (lanes(mask), mask as usize), from);
            _mm256_storeu_si256(
                states.as_mut_ptr().cast(),
                _mm256_blendv_epi8(old, new, lanes(active)),
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
/// The indices that `tables` returns must be valid.
#[inline(always)]
unsafe fn decode_groups(
    slots: &[Slots],
    tables: impl Fn(usize) -> [u8; WIDE_STATES],
    groups: &mut [[u8; WIDE_STATES]],
    all: &mut [u32; WIDE_STATES],
    words: &[u8],
) -> usize {
    assert!(words.len() >= GROUP_BYTES * groups.len());
    let mut position = 0;
    // SAFETY: the vectors are within `all`, `tables` and the groups, which hold four of eight lanes. Each step reads 16
    // bytes of words, and moves on by at most as many, so that a group reads at most `GROUP_BYTES` from its start, which
    // the assertion checks. Slots are below `SLOTS`, and the indices of tables are valid.
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

/// The entries of the slots of states, in the tables with these indices.
///
/// # Safety
/// The indices must be valid.
#[inline(always)]
unsafe fn look_up(slots: &[Slots], tables: __m256i, states: __m256i) -> __m256i {
    // SAFETY: slots are below `SLOTS`, and the indices are valid. Callers enable AVX2.
    unsafe {
        let slot = _mm256_and_si256(states, _mm256_set1_epi32(SLOTS as i32 - 1));
        let at = _mm256_or_si256(
            _mm256_slli_epi32::<{ PROBABILITY_BITS as i32 }>(tables),
            slot,
        );
        _mm256_i32gather_epi32::<4>(slots.as_ptr().cast(), at)
    }
}

/// The lowest byte of each entry.
#[inline(always)]
fn symbols(entries: __m256i) -> __m128i {
    // SAFETY: callers enable AVX2.
    unsafe {
        let lowest = _mm256_set1_epi64x(0x0c08_0400);
        let halves = _mm256_shuffle_epi8(entries, lowest);
        let pair = _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
        _mm256_castsi256_si128(pair)
    }
}

/// The next states, which may need a refill.
#[inline(always)]
fn advance(entries: __m256i, states: __m256i) -> __m256i {
    // SAFETY: callers enable AVX2.
    unsafe {
        let frequency = _mm256_srli_epi32::<20>(entries);
        let number = _mm256_and_si256(_mm256_srli_epi32::<8>(entries), _mm256_set1_epi32(0xfff));
        let quotient = _mm256_srli_epi32::<{ PROBABILITY_BITS as i32 }>(states);
        _mm256_add_epi32(_mm256_mullo_epi32(frequency, quotient), number)
    }
}

/// The lanes whose states need a refill.
#[inline(always)]
fn needs_refill(states: __m256i) -> __m256i {
    // SAFETY: callers enable AVX2.
    unsafe { _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(states), _mm256_setzero_si256()) }
}

/// Appends words to the states that `lack` one: a mask of lanes, and the same as eight bits.
#[inline(always)]
fn refill(states: __m256i, (lack, mask): (__m256i, usize), words: __m128i) -> __m256i {
    // SAFETY: callers enable AVX2; an entry of `WORD_INDICES` has the eight bytes that are read.
    unsafe {
        let places = _mm_loadl_epi64(WORD_INDICES[mask].as_ptr().cast());
        let own =
            _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(words), _mm256_cvtepu8_epi32(places));
        let longer = _mm256_or_si256(_mm256_slli_epi32::<16>(states), own);
        _mm256_blendv_epi8(states, longer, lack)
    }
}
