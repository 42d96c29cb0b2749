//! The choice of the order of differences, and of their dimensions, by trials on a few blocks.

use std::ops::Range;

use super::block::{self, BLOCK, Buffers};
use super::differences::{self, ORDERS};
use super::distances;
use super::lanes::GROUP;
use super::word::Word;
use crate::simd::dispatch::vectorised;

/// Maximum number of sampled blocks.
const SAMPLES: usize = 4;
/// Each order must save this part of the bits, because it takes time.
const MIN_SAVING: f64 = 0.01;

/// The bits of words for each order of differences.
#[derive(Default)]
pub(super) struct Costs([f64; ORDERS + 1]);

impl Costs {
    pub fn add(&mut self, other: &Self) {
        for (sum, cost) in self.0.iter_mut().zip(other.0) {
            *sum += cost;
        }
    }

    /// The best order, considering its time.
    pub fn order(&self) -> usize {
        let mut best = 0;
        for order in 1..=ORDERS {
            let saved = MIN_SAVING * (order - best) as f64 * self.0[best];
            if self.0[order] + saved < self.0[best] {
                best = order;
            }
        }
        best
    }

    /// The bits of the best order.
    pub fn least(&self) -> f64 {
        self.0[self.order()]
    }
}

/// Evenly spaced blocks of `count` values.
pub(super) fn samples(count: usize) -> impl Iterator<Item = Range<usize>> {
    let blocks = count.div_ceil(BLOCK);
    let tried = blocks.min(SAMPLES);
    (0..tried).map(move |i| {
        let first = (2 * i + 1) * blocks / (2 * tried) * BLOCK;
        first..count.min(first + BLOCK)
    })
}

vectorised! {
    /// The bits of the first `count` words of the buffers, which are overwritten.
    pub(super) fn costs [W: Word] of [W] (buffers: &mut Buffers<W>, count: usize) -> Costs {
        let Buffers { words, other, .. } = buffers;
        let mut costs = Costs([f64::INFINITY; ORDERS + 1]);
        let base = block::middle(&words[..count]);
        for word in &mut words[..count] {
            *word = word.minus(base);
        }
        for order in 0..=ORDERS.min(count - 1) {
            if order > 0 {
                differences::take(&mut words[..count], &mut other[..count], 1);
            }
            let (mut bits, mut first) = ((16 * order) as f64, order);
            for group in 1..=count.div_ceil(GROUP) {
                let end = (group * GROUP).min(count);
                let all = words[first.min(end)..end]
                    .iter()
                    .fold(W::default(), |all, word| all.or(word.folded()));
                bits += 8.0 + (GROUP as u32 * all.width()) as f64;
                first = end;
            }
            costs.0[order] = bits;
        }
        costs
    }
}

/// Chooses for an array: a mask of the dimensions along which differences are taken, without the last, and the order of
/// differences along the last.
pub(super) fn choose_for_array(words: &[u32], shape: &[usize]) -> (u8, usize) {
    let mut buffers = Buffers::default();
    let mut alone = Costs::default();
    for sample in samples(words.len()) {
        buffers.words[..sample.len()].copy_from_slice(&words[sample.clone()]);
        alone.add(&costs(&mut buffers, sample.len()));
    }
    let (mut best, mut least) = ((0, alone.order()), alone.least());
    for across in candidates(shape) {
        let mut along = Costs::default();
        let far: Vec<(usize, usize)> = distances(shape, across).collect();
        for sample in samples(words.len()) {
            let to = &mut buffers.words[..sample.len()];
            for (at, to) in sample.clone().zip(to) {
                *to = difference(words, at, &far);
            }
            along.add(&costs(&mut buffers, sample.len()));
        }
        let along_least = along.least() * (1.0 + MIN_SAVING * f64::from(across.count_ones()));
        if along_least < least {
            (best, least) = ((across, along.order()), along_least);
        }
    }
    best
}

/// The masks of dimensions to try: the last but one; also the one before it. The first of four dimensions is excluded,
/// because it counts independent arrays.
fn candidates(shape: &[usize]) -> impl Iterator<Item = u8> {
    let last = shape.len() - 1;
    let first = last.saturating_sub(2);
    let mut across = 0;
    (first..last).rev().map(move |d| {
        across |= 1 << d;
        across
    })
}

/// The difference at an index along several dimensions: the sum of the corners of a cuboid with alternating signs.
fn difference(words: &[u32], at: usize, far: &[(usize, usize)]) -> u32 {
    let mut sum = words[at];
    for corner in 1..1usize << far.len() {
        let mut place = Some(at);
        for (bit, (length, distance)) in far.iter().enumerate() {
            if corner >> bit & 1 == 1 {
                let inside = place.filter(|at| at % length >= *distance);
                place = inside.map(|at| at - distance);
            }
        }
        if let Some(place) = place {
            let word = words[place];
            sum = if corner.count_ones() % 2 == 1 {
                sum.minus(word)
            } else {
                sum.plus(word)
            };
        }
    }
    sum
}
