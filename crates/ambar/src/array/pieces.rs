//! Values in several pieces of memory, consecutive along the first dimension.

use super::blocks::{Runs, Span};
use crate::error::Result;

/// Pieces of an array, each of whole rows.
pub(super) struct Pieces<'a> {
    pieces: Vec<&'a [u8]>,
    /// The first row of each piece, and the number of rows; of a single piece, nothing.
    starts: Vec<usize>,
}

impl<'a> Pieces<'a> {
    /// All values in one piece.
    pub fn one(values: &'a [u8]) -> Self {
        Self {
            pieces: vec![values],
            starts: Vec::new(),
        }
    }

    /// Pieces of rows of `row_bytes` each.
    pub fn new(pieces: &[&'a [u8]], row_bytes: u64) -> Self {
        let mut starts = Vec::with_capacity(pieces.len() + 1);
        let mut row = 0;
        for piece in pieces {
            starts.push(row);
            row += (piece.len() as u64).checked_div(row_bytes).unwrap_or(0) as usize;
        }
        starts.push(row);
        Self {
            pieces: pieces.to_vec(),
            starts,
        }
    }

    /// The only piece.
    pub fn single(&self) -> Option<&'a [u8]> {
        match (&self.pieces[..], self.starts.is_empty()) {
            ([only], true) => Some(only),
            _ => None,
        }
    }

    /// The pieces that have rows from `first` on, below `stop`: number, first row, and row behind
    /// the last.
    fn overlapping(
        &self,
        first: usize,
        stop: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> {
        let from = self.starts.partition_point(|start| *start <= first);
        (from.saturating_sub(1)..self.pieces.len())
            .map(|piece| (piece, self.starts[piece], self.starts[piece + 1]))
            .take_while(move |(_, start, _)| *start < stop)
            .filter(move |(_, start, end)| start < end && *end > first)
    }

    /// The first value of `spans`; nothing where they are empty.
    pub fn value(&self, spans: &[Span], shape: &[u64], size: usize) -> &'a [u8] {
        let mut place = Runs::new(spans, shape, shape, size).first().outside;
        let mut values = self.single();
        if values.is_none()
            && let Some(span) = spans.first()
        {
            let row = shape.iter().skip(1).product::<u64>() as usize * size;
            let piece = self.overlapping(span.outside, span.outside + 1).next();
            if let Some((piece, start, _)) = piece {
                place -= start * row;
                values = self.pieces.get(piece).copied();
            }
        }
        let value = values.and_then(|values| values.get(place..place + size));
        value.unwrap_or_default()
    }

    /// Copies what `spans` say of an array of `shape` into a chunk of `chunk_shape`.
    pub fn copy(
        &self,
        raw: &mut [u8],
        spans: &[Span],
        chunk_shape: &[u64],
        shape: &[u64],
        size: usize,
    ) -> Result<()> {
        let mut copy = |values: &[u8], spans: &[Span]| {
            let runs = Runs::new(spans, chunk_shape, shape, size);
            runs.try_for_each(|run| {
                let source = &values[run.outside..run.outside + runs.len];
                raw[run.inside..run.inside + runs.len].copy_from_slice(source);
                Ok(())
            })
        };
        if let Some(values) = self.single() {
            return copy(values, spans);
        }
        let Some(rows) = spans.first().copied() else {
            return Ok(());
        };
        let stop = rows.outside + rows.count;
        let mut part = spans.to_vec();
        for (piece, start, end) in self.overlapping(rows.outside, stop) {
            let first = rows.outside.max(start);
            part[0] = Span {
                inside: rows.inside + first - rows.outside,
                count: stop.min(end) - first,
                outside: first - start,
                step: 1,
            };
            copy(self.pieces[piece], &part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_copied_as_if_they_were_one() {
        let all: Vec<u8> = (0..60).collect();
        let cut = [
            &all[..0],
            &all[..6],
            &all[6..7 * 6],
            &all[42..42],
            &all[42..],
        ];
        let pieces = Pieces::new(&cut, 6);
        let one = Pieces::one(&all);
        let span = |inside, count, outside| Span {
            inside,
            count,
            outside,
            step: 1,
        };
        for (first, rows) in [(0, 4), (1, 6), (6, 3), (9, 1)] {
            let spans = [span(0, rows, first), span(1, 2, 3)];
            let (mut a, mut b) = ([0; 24], [0; 24]);
            pieces.copy(&mut a, &spans, &[8, 3], &[10, 6], 1).unwrap();
            one.copy(&mut b, &spans, &[8, 3], &[10, 6], 1).unwrap();
            assert_eq!(a, b);
            assert_eq!(a[1], all[first * 6 + 3]);
            assert_eq!(
                pieces.value(&spans, &[10, 6], 1),
                &all[first * 6 + 3..][..1]
            );
        }
    }
}
