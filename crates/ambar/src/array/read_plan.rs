//! Read plans: the chunks that overlap a selection, and the runs to copy from chunks to the caller's array.

use super::{Indices, Slice};
use crate::error::{Error, Result};

/// The chunks that overlap a selection.
#[derive(Debug)]
pub(super) struct ReadPlan<'a> {
    chunk_shape: &'a [u64],
    /// The shape of the result.
    pub out_shape: Vec<u64>,
    /// The selection of each dimension.
    axes: Vec<Axis>,
    /// Number of chunks, including those that a step skips.
    pub count: usize,
}

/// The selection of one dimension.
#[derive(Debug)]
enum Axis {
    /// A slice, which overlaps `count` chunks from `first` on.
    Slice {
        slice: Slice,
        first: u64,
        count: u64,
    },
    /// A list of indices.
    List(List),
}

/// A list of indices, grouped by chunk.
#[derive(Debug)]
struct List {
    /// Chunks in ascending order, with the selected indices of each.
    chunks: Vec<(u64, Vec<Span>)>,
    indices: Vec<u64>,
}

/// The selection of one chunk.
#[derive(Debug)]
pub(super) struct Block {
    /// The chunk's coordinates.
    pub chunk: Vec<u64>,
    /// In each dimension one span for a slice, or several for a list.
    spans: Vec<Vec<Span>>,
}

/// Selected indices of one dimension in one chunk, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first index within the chunk.
    pub inside: usize,
    /// Number of indices.
    pub count: usize,
    /// The position of the first in the result.
    pub outside: usize,
    /// Distance between indices; 1 for a single index.
    pub step: usize,
}

impl<'a> ReadPlan<'a> {
    /// Plans a read of `selection` from an array of `shape`.
    pub fn new(shape: &[u64], chunk_shape: &'a [u64], selection: &[Indices<'_>]) -> Result<Self> {
        if selection.len() != shape.len() {
            return Err(Error::invalid(format!(
                "the selection has {} dimensions, but the array has {}; give one slice for each",
                selection.len(),
                shape.len()
            )));
        }
        let axes = selection.iter().zip(shape).zip(chunk_shape);
        let axes: Vec<Axis> = axes
            .map(|((wanted, length), chunk)| Axis::new(*wanted, *length, *chunk))
            .collect::<Result<_>>()?;
        let count = axes
            .iter()
            .try_fold(1usize, |count, axis| count.checked_mul(axis.chunks()));
        let count = count
            .ok_or_else(|| Error::limit("the selection has more chunks than fit in 64 bits"))?;
        Ok(Self {
            chunk_shape,
            out_shape: selection.iter().map(Indices::len).collect(),
            axes,
            count,
        })
    }

    /// The selection of the chunk `index`, below `count`; `None` if a step skips the chunk.
    pub fn block(&self, index: usize) -> Option<Block> {
        let dimensions = self.axes.len();
        let mut chunk = vec![0; dimensions];
        let mut spans = vec![vec![]; dimensions];
        let mut rest = index;
        for d in (0..dimensions).rev() {
            let number = self.axes[d].chunks();
            (chunk[d], spans[d]) = self.axes[d].part(rest % number, self.chunk_shape[d])?;
            rest /= number;
        }
        Some(Block { chunk, spans })
    }

    /// The chunk (below `count`) that contains the element of the result at `position`, and the index in it.
    pub fn locate(&self, position: &[u64]) -> (usize, usize) {
        let (mut chunk, mut inside) = (0, 0);
        for (d, axis) in self.axes.iter().enumerate() {
            let length = self.chunk_shape[d];
            let (index, place) = axis.locate(position[d], length);
            chunk = chunk * axis.chunks() + place;
            inside = inside * length + index % length;
        }
        (chunk, inside as usize)
    }
}

impl Axis {
    fn new(wanted: Indices<'_>, length: u64, chunk: u64) -> Result<Self> {
        match wanted {
            Indices::Slice(slice) => {
                if slice.step == 0 || slice.start > slice.stop || slice.stop > length {
                    return Err(Error::invalid(format!(
                        "the slice {}..{} in steps of {} is not inside of a dimension of {length}",
                        slice.start, slice.stop, slice.step
                    )));
                }
                let (first, count) = match slice.len().checked_sub(1) {
                    None => (0, 0),
                    Some(steps) => {
                        let last = slice.start + steps * slice.step;
                        let first = slice.start / chunk;
                        (first, last / chunk - first + 1)
                    }
                };
                Ok(Self::Slice {
                    slice,
                    first,
                    count,
                })
            }
            Indices::List(indices) => {
                if let Some(outside) = indices.iter().find(|index| **index >= length) {
                    return Err(Error::invalid(format!(
                        "index {outside} is not inside of a dimension of {length}"
                    )));
                }
                Ok(Self::List(List::new(indices, chunk)))
            }
        }
    }

    /// Number of chunks.
    fn chunks(&self) -> usize {
        match self {
            Self::Slice { count, .. } => usize::try_from(*count).unwrap_or(usize::MAX),
            Self::List(list) => list.chunks.len(),
        }
    }

    /// The selection's chunk number `index`, and the selected indices in it.
    fn part(&self, index: usize, length: u64) -> Option<(u64, Vec<Span>)> {
        match self {
            Self::Slice { slice, first, .. } => {
                let chunk = first + index as u64;
                Some((chunk, vec![span(*slice, chunk, length)?]))
            }
            Self::List(list) => list.chunks.get(index).cloned(),
        }
    }

    /// The index at `position` of the result, and the number of its chunk among those of the selection.
    fn locate(&self, position: u64, length: u64) -> (u64, usize) {
        match self {
            Self::Slice { slice, first, .. } => {
                let index = slice.start + position * slice.step;
                (index, (index / length - first) as usize)
            }
            Self::List(list) => {
                let index = list.indices[position as usize];
                let chunk = index / length;
                (
                    index,
                    list.chunks.partition_point(|(other, _)| *other < chunk),
                )
            }
        }
    }
}

impl List {
    fn new(indices: &[u64], length: u64) -> Self {
        let mut order: Vec<usize> = (0..indices.len()).collect();
        // The sort is stable: within a chunk, indices keep the order of the list.
        order.sort_by_key(|place| indices[*place] / length);
        let mut chunks: Vec<(u64, Vec<Span>)> = Vec::new();
        for place in order {
            let (chunk, inside) = (indices[place] / length, (indices[place] % length) as usize);
            let spans = match chunks.last_mut() {
                Some((last, spans)) if *last == chunk => spans,
                _ => {
                    chunks.push((chunk, vec![]));
                    match chunks.last_mut() {
                        Some((_, spans)) => spans,
                        None => continue,
                    }
                }
            };
            if !spans
                .last_mut()
                .is_some_and(|span| span.extend(inside, place))
            {
                spans.push(Span {
                    inside,
                    count: 1,
                    outside: place,
                    step: 1,
                });
            }
        }
        Self {
            chunks,
            indices: indices.to_vec(),
        }
    }
}

impl Span {
    /// Extends the span by the index `inside`, at `outside` in the result, if that follows at the same distance.
    fn extend(&mut self, inside: usize, outside: usize) -> bool {
        let last = self.inside + (self.count - 1) * self.step;
        let step = if self.count == 1 {
            inside.saturating_sub(last)
        } else {
            self.step
        };
        let follows = step > 0 && inside == last + step && outside == self.outside + self.count;
        if follows {
            self.step = step;
            self.count += 1;
        }
        follows
    }
}

impl Block {
    /// Calls `f` with every combination of spans, one for each dimension, up to the first error.
    pub fn try_for_each(&self, mut f: impl FnMut(&[Span]) -> Result<()>) -> Result<()> {
        let mut spans: Vec<Span> = self.spans.iter().map(|spans| spans[0]).collect();
        let lengths: Vec<u64> = self.spans.iter().map(|spans| spans.len() as u64).collect();
        let mut place = vec![0; lengths.len()];
        loop {
            f(&spans)?;
            if !advance(&mut place, &lengths) {
                return Ok(());
            }
            for d in 0..spans.len() {
                spans[d] = self.spans[d][place[d] as usize];
            }
        }
    }

    /// The only combination of spans.
    pub fn single(&self) -> Option<Vec<Span>> {
        let single = self.spans.iter().all(|spans| spans.len() == 1);
        single.then(|| self.spans.iter().map(|spans| spans[0]).collect())
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
        step: if count == 1 { 1 } else { slice.step as usize },
    })
}

/// Moves to the next position in C order; `false` after the last.
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

/// Bytes that are contiguous both in a chunk and in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First byte in the chunk.
    pub inside: usize,
    /// First byte in the array.
    pub outside: usize,
}

/// The runs of a block.
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
    /// The runs of `spans` between a chunk of `chunk_shape` and an array of `out_shape`, for values
    /// of `size` bytes.
    pub fn new(spans: &[Span], chunk_shape: &[u64], out_shape: &[u64], size: usize) -> Self {
        let (mut inside, mut outside) = (size, size);
        let mut first = Run {
            inside: 0,
            outside: 0,
        };
        let mut dims = Vec::with_capacity(spans.len());
        let mut len = size;
        let mut contiguous = true;
        for (d, span) in spans.iter().enumerate().rev() {
            let step = span.step;
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

    /// The first run.
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
