//! Geometry: which chunks a selection touches, and copying between a chunk and the caller's array.

use super::{Indices, Slice};
use crate::error::{Error, Result};

/// The chunks that a selection touches.
#[derive(Debug)]
pub(super) struct ReadPlan<'a> {
    chunk_shape: &'a [u64],
    /// Lengths of the result.
    pub out_shape: Vec<u64>,
    /// What is wanted of each dimension.
    axes: Vec<Axis>,
    /// Number of chunks in all, some of which a step may leave out.
    pub count: usize,
}

/// What a selection wants of one dimension.
#[derive(Debug)]
enum Axis {
    /// A slice; its first chunk and number of chunks.
    Slice(Slice, u64, u64),
    /// A list of indices.
    List(List),
}

/// A list of indices by the chunks they are in.
#[derive(Debug)]
struct List {
    /// Chunks in ascending order, and what is wanted of each.
    chunks: Vec<(u64, Vec<Span>)>,
    indices: Vec<u64>,
}

/// What a selection wants of one chunk.
#[derive(Debug)]
pub(super) struct Block {
    /// Which chunk it is, in each dimension.
    pub chunk: Vec<u64>,
    /// In each dimension one span, or several where indices were listed.
    spans: Vec<Vec<Span>>,
}

/// Indices of one dimension that are in one chunk, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first index within the chunk.
    pub inside: usize,
    /// Number of indices.
    pub count: usize,
    /// The place of the first in the result.
    pub outside: usize,
    /// Distance between indices; where there is only one, 1.
    pub step: usize,
}

impl<'a> ReadPlan<'a> {
    /// Plans the reading of `selection` from an array of `shape`.
    pub fn new(shape: &[u64], chunk_shape: &'a [u64], selection: &[Indices<'_>]) -> Result<Self> {
        if selection.len() != shape.len() {
            return Err(Error::invalid(format!(
                "a selection of {} dimensions of an array of {}",
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
        let count =
            count.ok_or_else(|| Error::limit("a selection of more chunks than can be counted"))?;
        Ok(Self {
            chunk_shape,
            out_shape: selection.iter().map(Indices::len).collect(),
            axes,
            count,
        })
    }

    /// What is wanted of the chunk `index`, below `count`; `None` where a step leaves it out.
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

    /// Which chunk (below `count`) holds the element of the result at `position`, and where in it.
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
                        "{}..{} in steps of {} is not inside of a dimension of {length}",
                        slice.start, slice.stop, slice.step
                    )));
                }
                let Some(steps) = slice.len().checked_sub(1) else {
                    return Ok(Self::Slice(slice, 0, 0));
                };
                let last = slice.start + steps * slice.step;
                let first = slice.start / chunk;
                Ok(Self::Slice(slice, first, last / chunk - first + 1))
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
            Self::Slice(_, _, count) => usize::try_from(*count).unwrap_or(usize::MAX),
            Self::List(list) => list.chunks.len(),
        }
    }

    /// The chunk number `index` of those touched, and what is wanted of it.
    fn part(&self, index: usize, length: u64) -> Option<(u64, Vec<Span>)> {
        match self {
            Self::Slice(slice, first, _) => {
                let chunk = first + index as u64;
                Some((chunk, vec![span(*slice, chunk, length)?]))
            }
            Self::List(list) => list.chunks.get(index).cloned(),
        }
    }

    /// The index at `position` of the result, and which of the chunks touched it is in.
    fn locate(&self, position: u64, length: u64) -> (u64, usize) {
        match self {
            Self::Slice(slice, first, _) => {
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
        // Stable: what follows each other in the list does so within a chunk.
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
                .is_some_and(|span| span.take(inside, place))
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
    /// Continues to `inside`, which is wanted at `outside`, where that follows at the same distance.
    fn take(&mut self, inside: usize, outside: usize) -> bool {
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
    /// Calls `f` with every combination of spans, one a dimension, up to the first error.
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
