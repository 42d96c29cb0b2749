//! How often differences are to be taken, and along which dimensions: tried on a few blocks.

use std::ops::Range;

use super::block::{self, BLOCK, Buffers};
use super::differences::{self, ORDERS};
use super::distances;
use super::lanes::GROUP;
use super::word::Word;
use crate::simd::dispatch::vectorised;

/// Blocks that are tried.
const SAMPLES: usize = 4;
/// An order must save so much of what a lower one takes, as it takes time: a part of it for each order.
const WORTH: f64 = 0.01;

/// The bits that words take by the order of their differences.
#[derive(Default)]
pub(super) struct Costs([f64; ORDERS + 1]);

impl Costs {
    pub fn add(&mut self, other: &Self) {
        for (sum, cost) in self.0.iter_mut().zip(other.0) {
            *sum += cost;
        }
    }

    /// The order that takes least, time included.
    pub fn order(&self) -> usize {
        let mut best = 0;
        for order in 1..=ORDERS {
            let saved = WORTH * (order - best) as f64 * self.0[best];
            if self.0[order] + saved < self.0[best] {
                best = order;
            }
        }
        best
    }

    /// What that order takes.
    pub fn least(&self) -> f64 {
        self.0[self.order()]
    }
}

/// The blocks of so many values that are tried: evenly spread.
pub(super) fn samples(count: usize) -> impl Iterator<Item = Range<usize>> {
    let blocks = count.div_ceil(BLOCK);
    let tried = blocks.min(SAMPLES);
    (0..tried).map(move |i| {
        let first = (2 * i + 1) * blocks / (2 * tried) * BLOCK;
        first..count.min(first + BLOCK)
    })
}

vectorised! {
    /// What the first `count` words of the buffers take, which are lost.
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

/// The dimensions along which differences are taken of the words of an array, and the order of those along
/// the last.
pub(super) fn of_array(words: &[u32], shape: &[usize]) -> (u8, usize) {
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
        let along_least = along.least() * (1.0 + WORTH * f64::from(across.count_ones()));
        if along_least < least {
            (best, least) = ((across, along.order()), along_least);
        }
    }
    best
}

/// The sets of dimensions that are tried: the last but one, and that and those before it, but for the first of
/// four, which counts arrays.
fn candidates(shape: &[usize]) -> impl Iterator<Item = u8> {
    let last = shape.len() - 1;
    let first = last.saturating_sub(2);
    let mut across = 0;
    (first..last).rev().map(move |d| {
        across |= 1 << d;
        across
    })
}

/// The difference at a place along several dimensions: the sum over the corners of a cuboid, with signs.
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
