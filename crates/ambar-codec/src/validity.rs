//! Which points of a region are there, on every lattice of the walk; and what stands for the others.

use crate::element::Element;
use crate::lattice::{self, Phases};
use crate::passes::continued;
use crate::predict::{LANES, lanes};

/// For each lattice but the coarsest, and each phase, padded as the values: 1 where a point is there.
pub(crate) struct Validity {
    levels: Vec<[Vec<u8>; 8]>,
    anchor: [u8; 1],
}

impl Validity {
    /// From the dense `valid` of a region of `shape`: 1 where a value is there, else 0.
    pub(crate) fn new(shape: [usize; 3], valid: &[u8]) -> Self {
        let lattices = lattice::levels(shape);
        let mut levels: Vec<[Vec<u8>; 8]> = Vec::with_capacity(lattices.len());
        let mut coarse = Vec::new();
        for fine in &lattices[..lattices.len() - 1] {
            let phases = Phases::new(*fine);
            let split = split(&phases, if levels.is_empty() { valid } else { &coarse });
            let [nz, ny, nx] = phases.points(0);
            coarse = (0..nz * ny)
                .flat_map(|row| {
                    let row = phases.row(row / ny, row % ny);
                    split[0][row..row + nx].iter().copied()
                })
                .collect();
            levels.push(split);
        }
        Self {
            levels,
            anchor: [valid[0]],
        }
    }

    /// Of the single point of the coarsest lattice.
    pub(crate) fn anchor(&self) -> &[u8] {
        &self.anchor
    }

    /// Of the phases of lattice `number`.
    pub(crate) fn phases(&self, number: usize) -> &[Vec<u8>; 8] {
        &self.levels[number]
    }
}

/// The phases of a dense lattice, with room for lanes behind the last row.
fn split(phases: &Phases, dense: &[u8]) -> [Vec<u8>; 8] {
    let mut out: [Vec<u8>; 8] = std::array::from_fn(|_| vec![0; phases.len + LANES]);
    let [nz, ny, nx] = phases.fine;
    for z in 0..nz {
        for y in 0..ny {
            let t = (z & 1) | (y & 1) << 1;
            let row = phases.row(z / 2, y / 2);
            let from = &dense[(z * ny + y) * nx..][..nx];
            let (evens, odds) = out.split_at_mut(4);
            let even = &mut evens[t][row..row + nx.div_ceil(2)];
            let odd = &mut odds[t][row..row + nx / 2];
            let (pairs, last) = from.as_chunks::<2>();
            for ((pair, even), odd) in pairs.iter().zip(even.iter_mut()).zip(odd) {
                (*even, *odd) = (pair[0], pair[1]);
            }
            if let ([last], Some(even)) = (last, even.last_mut()) {
                *even = *last;
            }
        }
    }
    out
}

/// Finds points of a phase that a near neighbour along an odd dimension is missing of.
pub(crate) struct Mend<'a> {
    own: &'a [u8],
    /// Odd dimensions: number, validity of the phase that is even in it, distance of its points.
    lines: [Option<(usize, &'a [u8], usize)>; 3],
}

impl<'a> Mend<'a> {
    pub(crate) fn new(t: usize, phases: &Phases, valid: &'a [Vec<u8>; 8]) -> Self {
        let line = |d: usize| (d, &valid[t ^ 1 << d][..], phases.stride[d]);
        let lines = std::array::from_fn(|d| (t >> d & 1 == 1).then(|| line(d)));
        Self {
            own: &valid[t],
            lines,
        }
    }

    /// Calls `mend(k, dimensions)` for each such point `k` of a row, with bits of the dimensions in
    /// which both near neighbours are there.
    pub(crate) fn broken(&self, row: usize, nx: usize, mut mend: impl FnMut(usize, u8)) {
        for begin in (0..nx).step_by(LANES) {
            let mut sound = [0u8; LANES];
            let mut wanted = 0;
            for (d, valid, stride) in self.lines.iter().flatten() {
                wanted |= 1 << d;
                let at = row + begin;
                if let (Some(one), Some(two)) = (lanes(valid, at), lanes(valid, at + stride)) {
                    for k in 0..LANES {
                        sound[k] |= (one[k] & two[k]) << d;
                    }
                }
            }
            let Some(own) = lanes(self.own, row + begin) else {
                return;
            };
            let mut broken = 0u8;
            for k in 0..LANES {
                broken |= (sound[k] ^ wanted) * own[k];
            }
            if broken == 0 {
                continue;
            }
            for k in (0..LANES).filter(|k| own[*k] == 1 && sound[*k] != wanted) {
                if begin + k < nx {
                    mend(begin + k, sound[k]);
                }
            }
        }
    }
}

/// Gives points of phase `t` that are not there, but next to some that are along an even dimension,
/// the value that continues these.
pub(crate) fn fill<T: Element>(values: &mut [T], valid: &[u8], phases: &Phases, t: usize) {
    let points = phases.points(t);
    let dimensions: Vec<usize> = (0..3)
        .filter(|d| t >> d & 1 == 0 && phases.fine[*d] > 1)
        .collect();
    for z in 0..points[0] {
        for y in 0..points[1] {
            let row = phases.row(z, y);
            if !valid[row..row + points[2]].contains(&0) {
                continue;
            }
            for begin in (row..row + points[2]).step_by(LANES) {
                let edge = edges(valid, begin, phases, &dimensions);
                if edge == [0; LANES] {
                    continue;
                }
                let end = (row + points[2]).min(begin + LANES);
                for at in (begin..end).filter(|at| edge[at - begin] != 0) {
                    if let Some(value) = continuation(values, valid, at, phases, &dimensions) {
                        values[at] = value;
                    }
                }
            }
        }
    }
}

/// 1 for the lanes from `at` on that are not there, but next to one that is.
fn edges(valid: &[u8], at: usize, phases: &Phases, dimensions: &[usize]) -> [u8; LANES] {
    let mut near = [0u8; LANES];
    for d in dimensions {
        let stride = phases.stride[*d];
        for at in [at + stride, at.wrapping_sub(stride)] {
            if let Some(valid) = lanes(valid, at) {
                for k in 0..LANES {
                    near[k] |= valid[k];
                }
            }
        }
    }
    if let Some(own) = lanes(valid, at) {
        for k in 0..LANES {
            near[k] &= own[k] ^ 1;
        }
    }
    near
}

/// The mean of what continues the points on all sides along some dimensions.
fn continuation<T: Element>(
    values: &[T],
    valid: &[u8],
    at: usize,
    phases: &Phases,
    dimensions: &[usize],
) -> Option<T> {
    let (mut sum, mut count) = (T::default(), 0);
    for d in dimensions {
        let stride = phases.stride[*d] as isize;
        for direction in [stride, -stride] {
            if let Some(value) = beyond(values, valid, at, direction) {
                sum = sum.plus(value);
                count += 1;
            }
        }
    }
    (count > 0).then(|| sum.times(T::from_f64(1.0 / f64::from(count))))
}

/// The value at `at` that continues the points in a direction, where the next of them is there.
fn beyond<T: Element>(values: &[T], valid: &[u8], at: usize, direction: isize) -> Option<T> {
    let place = |k: isize| {
        let place = at.checked_add_signed(k * direction)?;
        (*valid.get(place)? == 1).then_some(place)
    };
    let a = values[place(1)?];
    let Some(second) = place(2) else {
        return Some(a);
    };
    let b = values[second];
    let c = place(3).map_or(b.plus(b).minus(a), |third| values[third]);
    Some(continued(a, b, c))
}
