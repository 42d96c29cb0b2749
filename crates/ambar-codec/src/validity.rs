//! Which points of a region are there, on every lattice of the walk; and what stands for the others.

use crate::bitmap::Bitmap;
use crate::continuation::continued;
use crate::element::Element;
use crate::lattice::Phases;

/// The points that are there: of each lattice but the coarsest, and each of its phases.
pub(crate) struct Validity {
    levels: Vec<[Bitmap; 8]>,
    anchor: bool,
}

impl Validity {
    /// From the points of a region that are there.
    pub(crate) fn new(region: &Bitmap) -> Self {
        let mut levels: Vec<[Bitmap; 8]> = Vec::new();
        loop {
            let lattice = levels.last().map_or(region, |phases| &phases[0]);
            if lattice.shape() == [1; 3] {
                break;
            }
            levels.push(std::array::from_fn(|t| lattice.phase(t)));
        }
        Self {
            levels,
            anchor: region.get([0; 3]),
        }
    }

    /// Whether the single point of the coarsest lattice is there.
    pub(crate) fn anchor(&self) -> bool {
        self.anchor
    }

    /// The phases of lattice `number`.
    pub(crate) fn phases(&self, number: usize) -> &[Bitmap; 8] {
        &self.levels[number]
    }
}

/// The points of a word of a row of phase `t` for which the near neighbours before and behind are
/// there, along each odd dimension.
#[inline(always)]
pub(crate) fn near(
    phases: &[Bitmap; 8],
    t: usize,
    [z, y]: [usize; 2],
    word: usize,
) -> [[u64; 3]; 2] {
    let mut near = [[0; 3]; 2];
    for d in 0..3 {
        if t >> d & 1 == 0 {
            continue;
        }
        let phase = &phases[t ^ 1 << d];
        near[0][d] = phase.word([z, y], word);
        near[1][d] = match d {
            0 => phase.word([z + 1, y], word),
            1 => phase.word([z, y + 1], word),
            _ => phase.ahead([z, y], word, 1),
        };
    }
    near
}

/// Gives points of phase `t` that are not there, but next to some that are along an even dimension,
/// the value that continues these. Points one beyond the borders are such points too.
pub(crate) fn fill<T: Element>(values: &mut [T], valid: &Bitmap, phases: &Phases, t: usize) {
    let even = std::array::from_fn(|d| t >> d & 1 == 0 && phases.fine[d] > 1);
    let filler = Filler {
        valid,
        even,
        strides: phases.stride.map(|stride| stride as isize),
    };
    let [nz, ny, nx] = valid.shape();
    let origin = phases.row(0, 0) as isize;
    let beyond_z = isize::from(even[0]);
    let beyond_y = isize::from(even[1]);
    for z in -beyond_z..nz as isize + beyond_z {
        for y in -beyond_y..ny as isize + beyond_y {
            let row = (origin + z * filler.strides[0] + y * filler.strides[1]) as usize;
            let place = [z as usize, y as usize];
            for word in 0..valid.words() {
                let within = u64::MAX >> (64 - (nx - 64 * word).min(64));
                filler.fill(values, place, word, row + 64 * word, within);
            }
            if even[2] {
                filler.fill_ends(values, place, row, nx);
            }
        }
    }
}

/// Fills points of a phase.
struct Filler<'a> {
    valid: &'a Bitmap,
    /// The dimensions along which points continue others.
    even: [bool; 3],
    strides: [isize; 3],
}

impl Filler<'_> {
    /// Fills the points of a word of a row, whose first has the index `start`.
    #[inline(always)]
    fn fill<T: Element>(
        &self,
        values: &mut [T],
        row: [usize; 2],
        word: usize,
        start: usize,
        within: u64,
    ) {
        let missing = !self.valid.word(row, word) & within;
        if missing == 0 {
            return;
        }
        let mut near = 0;
        for d in 0..3 {
            if !self.even[d] {
                continue;
            }
            near |= self.neighbour(row, word, d, 1) | self.neighbour(row, word, d, -1);
        }
        let mut edge = missing & near;
        if edge == 0 {
            return;
        }
        // Which points are there at a distance of 1, 2 and 3, for each direction.
        let mut there = [[0u64; 3]; 6];
        for d in 0..3 {
            if !self.even[d] {
                continue;
            }
            for (side, sign) in [1, -1].into_iter().enumerate() {
                there[2 * d + side] = [1, 2, 3].map(|k| self.neighbour(row, word, d, sign * k));
            }
        }
        while edge != 0 {
            let bit = edge.trailing_zeros();
            edge &= edge - 1;
            let at = start + bit as usize;
            let (mut sum, mut count) = (T::default(), 0);
            for (direction, there) in there.iter().enumerate() {
                if there[0] >> bit & 1 == 1 {
                    let stride = self.strides[direction / 2];
                    let stride = if direction % 2 == 0 { stride } else { -stride };
                    let value = beyond(values, at, stride, there.map(|w| w >> bit & 1 == 1));
                    sum = if count == 0 { value } else { sum.plus(value) };
                    count += 1;
                }
            }
            values[at] = sum.times(T::from_f64(1.0 / f64::from(count)));
        }
    }

    /// Fills the points before and behind a row.
    #[inline(always)]
    fn fill_ends<T: Element>(&self, values: &mut [T], place: [usize; 2], row: usize, nx: usize) {
        let first = self.valid.word(place, 0);
        if first & 1 == 1 {
            let near = [1, 2, 3].map(|k| first >> (k - 1) & 1 == 1);
            values[row - 1] = beyond(values, row - 1, 1, near);
        }
        let (word, bit) = ((nx - 1) / 64, (nx - 1) % 64);
        if self.valid.word(place, word) >> bit & 1 == 1 {
            let near = [0, 1, 2].map(|k| self.valid.behind(place, word, k) >> bit & 1 == 1);
            values[row + nx] = beyond(values, row + nx, -1, near);
        }
    }

    /// The word of the points `k` further on along dimension `d`.
    #[inline(always)]
    fn neighbour(&self, [z, y]: [usize; 2], word: usize, d: usize, k: isize) -> u64 {
        match d {
            0 => self.valid.word([z.wrapping_add_signed(k), y], word),
            1 => self.valid.word([z, y.wrapping_add_signed(k)], word),
            _ if k > 0 => self.valid.ahead([z, y], word, k as u32),
            _ => self.valid.behind([z, y], word, k.unsigned_abs() as u32),
        }
    }
}

/// The value at `at` that continues the points in a direction, of which the first is there.
#[inline(always)]
fn beyond<T: Element>(values: &[T], at: usize, direction: isize, there: [bool; 3]) -> T {
    let value = |k: isize| values[at.wrapping_add_signed(k * direction)];
    let a = value(1);
    let b = if there[1] { value(2) } else { a };
    let c = if there[1] && there[2] {
        value(3)
    } else {
        b.plus(b).minus(a)
    };
    continued(a, b, c)
}
