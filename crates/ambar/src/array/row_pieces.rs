//! The values of an array in several pieces of memory, consecutive along the first dimension.

use super::read_plan::{Runs, Span};
use crate::error::Result;

/// The memory of an array in pieces, each of whole rows.
pub(super) struct RowPieces<'a> {
    pieces: Vec<&'a [u8]>,
    /// The first row of each piece, and the number of rows; empty for a single piece.
    starts: Vec<usize>,
}

/// The rows of one piece.
struct PieceRows {
    /// The piece's index.
    piece: usize,
    /// The first row.
    start: usize,
    /// The row after the last.
    end: usize,
}

impl<'a> RowPieces<'a> {
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

    /// Rows of an array of which only `pieces` are in memory: the first row of each, and its values. Other
    /// rows must not be accessed.
    pub fn sparse(pieces: &[(usize, &'a [u8])], row_bytes: usize) -> Self {
        let mut sparse = Self {
            pieces: Vec::new(),
            starts: Vec::new(),
        };
        for (start, piece) in pieces {
            // An empty piece represents the rows since the previous one.
            sparse.pieces.extend([&[][..], piece]);
            let end = sparse.starts.pop().unwrap_or(0);
            sparse
                .starts
                .extend([end, *start, start + piece.len() / row_bytes.max(1)]);
        }
        if sparse.starts.is_empty() {
            sparse.starts.push(0);
        }
        sparse
    }

    /// The only piece.
    pub fn single(&self) -> Option<&'a [u8]> {
        match (&self.pieces[..], self.starts.is_empty()) {
            ([only], true) => Some(only),
            _ => None,
        }
    }

    /// The pieces that contain rows of `first..stop`.
    fn overlapping(&self, first: usize, stop: usize) -> impl Iterator<Item = PieceRows> {
        let from = self.starts.partition_point(|start| *start <= first);
        (from.saturating_sub(1)..self.pieces.len())
            .map(|piece| PieceRows {
                piece,
                start: self.starts[piece],
                end: self.starts[piece + 1],
            })
            .take_while(move |rows| rows.start < stop)
            .filter(move |rows| rows.start < rows.end && rows.end > first)
    }

    /// Copies `spans` of an array of `shape` into a chunk of `chunk_shape`.
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
        for PieceRows { piece, start, end } in self.overlapping(rows.outside, stop) {
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
    fn copies_of_pieces_equal_copies_of_one_piece() {
        let all: Vec<u8> = (0..60).collect();
        let cut = [
            &all[..0],
            &all[..6],
            &all[6..7 * 6],
            &all[42..42],
            &all[42..],
        ];
        let pieces = RowPieces::new(&cut, 6);
        let one = RowPieces::one(&all);
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
        }
    }
}
