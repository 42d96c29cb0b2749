//! Geometry: which chunks a selection touches, and copying between a chunk and the caller's array.

use super::Slice;
use crate::error::{Error, Result};

/// The chunks that a selection touches.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    selection: &'a [Slice],
    chunk_shape: &'a [u64],
    /// Lengths of the result.
    pub out_shape: Vec<u64>,
    /// First chunk and number of chunks in each dimension.
    chunks: Vec<(u64, u64)>,
    /// Number of chunks in all, some of which a step may leave out.
    pub count: usize,
}

/// What a selection wants of one chunk.
#[derive(Debug)]
pub(super) struct Block {
    /// Which chunk it is, in each dimension.
    pub chunk: Vec<u64>,
    /// In each dimension: first index within the chunk, number of indices, first index in the
    /// result.
    pub spans: Vec<Span>,
}

/// One dimension of a [`Block`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub inside: usize,
    pub count: usize,
    pub outside: usize,
}

impl<'a> Plan<'a> {
    /// Plans the reading of `selection` from an array of `shape`.
    pub fn new(shape: &[u64], chunk_shape: &'a [u64], selection: &'a [Slice]) -> Result<Self> {
        if selection.len() != shape.len() {
            return Err(Error::invalid(format!(
                "a selection of {} dimensions of an array of {}",
                selection.len(),
                shape.len()
            )));
        }
        for (slice, length) in selection.iter().zip(shape) {
            if slice.step == 0 || slice.start > slice.stop || slice.stop > *length {
                return Err(Error::invalid(format!(
                    "{}..{} in steps of {} is not inside of a dimension of {length}",
                    slice.start, slice.stop, slice.step
                )));
            }
        }
        let out_shape: Vec<u64> = selection.iter().map(Slice::len).collect();
        let chunks: Vec<(u64, u64)> = selection
            .iter()
            .zip(&out_shape)
            .zip(chunk_shape)
            .map(|((slice, count), chunk)| match count.checked_sub(1) {
                None => (0, 0),
                Some(steps) => {
                    let last = slice.start + steps * slice.step;
                    (slice.start / chunk, last / chunk - slice.start / chunk + 1)
                }
            })
            .collect();
        let count = chunks.iter().try_fold(1usize, |count, (_, number)| {
            usize::try_from(*number)
                .ok()
                .and_then(|number| count.checked_mul(number))
        });
        let count =
            count.ok_or_else(|| Error::limit("a selection of more chunks than can be counted"))?;
        Ok(Self {
            selection,
            chunk_shape,
            out_shape,
            chunks,
            count,
        })
    }

    /// What is wanted of the chunk `index`, below `count`; `None` where a step leaves it out.
    pub fn block(&self, index: usize) -> Option<Block> {
        let dimensions = self.selection.len();
        let mut chunk = vec![0; dimensions];
        let mut spans = vec![
            Span {
                inside: 0,
                count: 0,
                outside: 0
            };
            dimensions
        ];
        let mut rest = index as u64;
        for d in (0..dimensions).rev() {
            let (first, number) = self.chunks[d];
            chunk[d] = first + rest % number;
            rest /= number;
            spans[d] = span(self.selection[d], chunk[d], self.chunk_shape[d])?;
        }
        Some(Block { chunk, spans })
    }

    /// Which chunk (below `count`) holds the element of the result at `position`, and where in it.
    pub fn locate(&self, position: &[u64]) -> (usize, usize) {
        let (mut chunk, mut inside) = (0, 0);
        for (d, slice) in self.selection.iter().enumerate() {
            let index = slice.start + position[d] * slice.step;
            let (first, number) = self.chunks[d];
            let length = self.chunk_shape[d];
            chunk = chunk * number + (index / length - first);
            inside = inside * length + index % length;
        }
        (chunk as usize, inside as usize)
    }
}

fn span(slice: Slice, chunk: u64, length: u64) -> Option<Span> {
    let start = chunk * length;
    let skipped = start.saturating_sub(slice.start).div_ceil(slice.step);
    let first = slice.start + skipped * slice.step;
    let stop = slice.stop.min(start + length);
    let count = stop.checked_sub(first)?.div_ceil(slice.step);
    (count > 0).then_some(Span {
        inside: (first - start) as usize,
        count: count as usize,
        outside: skipped as usize,
    })
}

/// Moves to the next position in C order; `false` behind the last.
pub(super) fn advance(position: &mut [u64], shape: &[u64]) -> bool {
    for (place, length) in position.iter_mut().zip(shape).rev() {
        *place += 1;
        if *place < *length {
            return true;
        }
        *place = 0;
    }
    false
}

/// A piece that is contiguous both in a chunk and in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First byte in the chunk.
    pub inside: usize,
    /// First byte in the array.
    pub outside: usize,
}

/// How the runs of a block lie.
#[derive(Debug)]
pub(super) struct Runs {
    /// Bytes of each run.
    pub len: usize,
    dims: Vec<RunDim>,
    first: Run,
}

#[derive(Debug)]
struct RunDim {
    count: usize,
    inside: usize,
    outside: usize,
}

impl Runs {
    /// The runs of `spans` between a chunk of `chunk_shape` and an array of `out_shape`, of values
    /// of `size` bytes; indices inside of the chunk are `steps` apart.
    pub fn new(
        spans: &[Span],
        chunk_shape: &[u64],
        out_shape: &[u64],
        steps: impl Fn(usize) -> u64,
        size: usize,
    ) -> Self {
        let (mut inside, mut outside) = (size, size);
        let mut first = Run {
            inside: 0,
            outside: 0,
        };
        let mut dims = Vec::with_capacity(spans.len());
        let mut len = size;
        let mut contiguous = true;
        for (d, span) in spans.iter().enumerate().rev() {
            let step = if span.count == 1 {
                1
            } else {
                steps(d) as usize
            };
            first.inside += span.inside * inside;
            first.outside += span.outside * outside;
            if contiguous && step == 1 && len == inside && len == outside {
                len *= span.count;
            } else {
                contiguous = false;
                dims.push(RunDim {
                    count: span.count,
                    inside: inside * step,
                    outside,
                });
            }
            inside *= chunk_shape[d] as usize;
            outside *= out_shape[d] as usize;
        }
        dims.reverse();
        Self { len, dims, first }
    }

    /// Whether the block is one run.
    pub fn is_single(&self) -> bool {
        self.dims.iter().all(|dim| dim.count == 1)
    }

    /// Where the first run begins.
    pub fn first(&self) -> Run {
        self.first
    }

    /// Calls `f` with every run, up to the first error.
    pub fn try_for_each(&self, mut f: impl FnMut(Run) -> Result<()>) -> Result<()> {
        let mut counters = vec![0usize; self.dims.len()];
        let mut run = self.first;
        loop {
            f(run)?;
            let mut d = self.dims.len();
            loop {
                let Some(next) = d.checked_sub(1) else {
                    return Ok(());
                };
                d = next;
                let dim = &self.dims[d];
                counters[d] += 1;
                run.inside += dim.inside;
                run.outside += dim.outside;
                if counters[d] < dim.count {
                    break;
                }
                run.inside -= dim.inside * dim.count;
                run.outside -= dim.outside * dim.count;
                counters[d] = 0;
            }
        }
    }
}
