//! Symbols: the input of the entropy coder, which is tokens with their contexts, and raw bits.

use crate::entropy::bitio::{BitReader, BitWriter};

/// Maximum number of level packets of a stream.
pub(crate) const MAX_PACKETS: usize = 4;

/// The level packet, of `count`, that holds the symbols of a level. Level 0 is in the last.
pub(crate) fn packet_of_level(level: usize, count: usize) -> usize {
    count - 1 - level.min(count - 1)
}

/// The symbols of regions: tokens, the context of each token, and raw bits.
#[derive(Default)]
pub(crate) struct Symbols {
    pub tokens: Vec<u8>,
    pub contexts: Vec<u8>,
    /// Runs of tokens with one context, which are decoded in one call: their starts and lengths.
    pub runs: Vec<(usize, usize)>,
    pub raw: BitWriter,
    /// The start of each level of each region, in the order of the traversal.
    sections: Vec<Section>,
    /// The number of literals.
    pub literals: usize,
    /// The sum of squared errors in squared steps of the finest level, if the encoder minimises it.
    pub square_error: f64,
}

/// The start of the symbols of a level of a region.
#[derive(Clone, Copy)]
struct Section {
    level: usize,
    /// The number of earlier tokens, runs and raw bits.
    tokens: usize,
    runs: usize,
    raw: usize,
}

impl Symbols {
    /// Discards the symbols, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.contexts.clear();
        self.runs.clear();
        self.raw.clear();
        self.sections.clear();
        self.literals = 0;
        self.square_error = 0.0;
    }

    /// Begins a level of a region: the symbols that follow are of that level.
    pub(crate) fn begin_level(&mut self, level: usize) {
        let section = self.section(level);
        self.sections.push(section);
    }

    fn section(&self, level: usize) -> Section {
        Section {
            level,
            tokens: self.tokens.len(),
            runs: self.runs.len(),
            raw: self.raw.bits(),
        }
    }

    /// Splits the symbols into `count` level packets, that of the coarsest levels first.
    pub(crate) fn split(&self, count: usize) -> Vec<Self> {
        let mut packets: Vec<Self> = (0..count).map(|_| Self::default()).collect();
        let end = self.section(0);
        let ends = self.sections.iter().skip(1).chain([&end]);
        let mut raw = BitReader::new(self.raw.bytes());
        for (section, end) in self.sections.iter().zip(ends) {
            let packet = &mut packets[packet_of_level(section.level, count)];
            let shift = packet.tokens.len();
            let tokens = section.tokens..end.tokens;
            packet
                .tokens
                .extend_from_slice(&self.tokens[tokens.clone()]);
            packet.contexts.extend_from_slice(&self.contexts[tokens]);
            let runs = self.runs[section.runs..end.runs].iter();
            packet
                .runs
                .extend(runs.map(|(begin, count)| (begin - section.tokens + shift, *count)));
            let mut left = end.raw - section.raw;
            while left > 0 {
                let width = left.min(56) as u32;
                packet.raw.write(raw.read(width), width);
                left -= width as usize;
            }
        }
        packets
    }
}
