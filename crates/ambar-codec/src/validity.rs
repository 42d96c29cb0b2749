//! Which points of a region are there, on every lattice of the walk; and what stands for the others.

use crate::element::Element;
use crate::lattice::{self, Phases};
use crate::passes::continued;

/// For each lattice but the coarsest, and each phase, padded as the values: 1 where a point is there.
pub(crate) struct Validity {
    levels: Vec<[Vec<u8>; 8]>,
    anchor: [u8; 1],
}

impl Validity {
    /// From the dense `valid` of a region of `shape`: 1 where a value is there, else 0.
    pub(crate) fn new(shape: [usize; 3], valid: &[u8]) -> Self {
        let lattices = lattice::levels(shape);
        let levels = lattices[..lattices.len() - 1].iter().enumerate();
        let levels = levels.map(|(number, fine)| split(shape, valid, number, *fine));
        Self {
            levels: levels.collect(),
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

fn split(shape: [usize; 3], valid: &[u8], number: usize, fine: [usize; 3]) -> [Vec<u8>; 8] {
    let phases = Phases::new(fine);
    let step = 2usize << number;
    std::array::from_fn(|t| {
        let mut out = vec![0; phases.len];
        let [nz, ny, nx] = phases.points(t);
        let at = |d: usize, k: usize| (2 * k + (t >> d & 1)) << number;
        for z in 0..nz {
            for y in 0..ny {
                let row = phases.row(z, y);
                let start = (at(0, z) * shape[1] + at(1, y)) * shape[2] + at(2, 0);
                let from = valid[start.min(valid.len())..].iter().step_by(step);
                for (to, from) in out[row..row + nx].iter_mut().zip(from) {
                    *to = *from;
                }
            }
        }
        out
    })
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
            for at in row..row + points[2] {
                if valid[at] == 1 {
                    continue;
                }
                let (mut sum, mut count) = (T::default(), 0);
                for d in &dimensions {
                    let stride = phases.stride[*d] as isize;
                    for direction in [stride, -stride] {
                        if let Some(value) = beyond(values, valid, at, direction) {
                            sum = sum.plus(value);
                            count += 1;
                        }
                    }
                }
                if count > 0 {
                    values[at] = sum.times(T::from_f64(1.0 / f64::from(count)));
                }
            }
        }
    }
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
