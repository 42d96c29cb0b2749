//! The facets of cells that were met, behind which another cell may lie, and how they touch.

/// No facet.
const NONE: u32 = u32::MAX;

/// Facets of one slot of the table that are compared at most; those behind are not found, which costs a
/// few bits in meshes of no sensible kind, and keeps streams from taking for ever.
const MOST_COMPARED: usize = 48;

/// What there is behind a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not known yet.
    Open,
    /// No cell.
    Wall,
    /// A cell that was met: the facet is gone.
    Met,
}

/// A facet of a cell: all of its corners but one.
///
/// Two facets touch in a ridge: all corners of a facet but one, in a tetrahedron an edge. Around a ridge
/// cells that were met alternate with gaps, and a facet touches the one on the other side of its gap.
/// The ridge without corner number i has number i, and as an end of that contact the number
/// `ENDS` times that of the facet and i.
#[derive(Clone, Copy)]
pub(super) struct Facet<const F: usize> {
    /// The corners, in the order of the cell's row.
    pub corners: [u32; F],
    /// For each ridge the other end of the contact, if that one's other end is this.
    pub ends: [u32; F],
    /// The next and the one before in the same slot of the table.
    next: u32,
    before: u32,
    /// The row of the cell.
    pub cell: u32,
    /// How many cells lie around each ridge between the two facets, up to 255.
    pub around: [u8; F],
    /// Which of the row's corners is none of the facet's.
    pub missing: u8,
    pub state: State,
}

impl<const F: usize> Facet<F> {
    const NEW: Self = Self {
        corners: [NONE; F],
        ends: [NONE; F],
        next: NONE,
        before: NONE,
        cell: 0,
        around: [1; F],
        missing: 0,
        state: State::Open,
    };

    /// Makes it an open facet of a cell, whose corners and ends are still to be told.
    #[inline(always)]
    pub fn begin(&mut self, cell: u32, missing: u8) {
        self.cell = cell;
        self.around = [1; F];
        self.missing = missing;
        self.state = State::Open;
    }
}

/// Ends of contacts that a facet has numbers for.
const ENDS: u32 = 4;

/// An end of a contact.
#[inline(always)]
pub(super) fn end(facet: u32, ridge: usize) -> u32 {
    ENDS * facet + ridge as u32
}

/// All facets that matter still.
pub(super) struct Facets<const F: usize> {
    all: Vec<Facet<F>>,
    unused: Vec<u32>,
    /// The first open facet of each slot, by its corners.
    table: Vec<u32>,
    bits: u32,
}

impl<const F: usize> Default for Facets<F> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            unused: Vec::new(),
            table: Vec::new(),
            bits: 0,
        }
    }
}

impl<const F: usize> std::ops::Index<u32> for Facets<F> {
    type Output = Facet<F>;

    #[inline(always)]
    fn index(&self, facet: u32) -> &Facet<F> {
        &self.all[facet as usize]
    }
}

impl<const F: usize> std::ops::IndexMut<u32> for Facets<F> {
    #[inline(always)]
    fn index_mut(&mut self, facet: u32) -> &mut Facet<F> {
        &mut self.all[facet as usize]
    }
}

impl<const F: usize> Facets<F> {
    /// Forgets all, and makes a table for the facets that are open at a time in a mesh of so many cells.
    pub fn reset(&mut self, cells: usize) {
        self.all.clear();
        self.unused.clear();
        self.bits = (cells / 4).clamp(64, 1 << 18).next_power_of_two().ilog2();
        self.table.clear();
        self.table.resize(1 << self.bits, NONE);
    }

    /// A number for a facet.
    #[inline(always)]
    pub fn reserve(&mut self) -> u32 {
        if let Some(number) = self.unused.pop() {
            return number;
        }
        self.all.push(Facet::NEW);
        (self.all.len() - 1) as u32
    }

    /// Lets the number of a facet be used for another.
    pub fn release(&mut self, facet: u32) {
        self.unused.push(facet);
    }

    /// The slot of corners: the same in any order.
    #[inline(always)]
    fn slot(&self, corners: &[u32; F]) -> usize {
        let mixed = |corner: &u32| {
            let product = u64::from(*corner).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ product >> 29
        };
        let sum = corners.iter().map(mixed).fold(0, u64::wrapping_add);
        (sum.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - self.bits)) as usize
    }

    /// Enters an open facet into the table.
    #[inline(always)]
    pub fn enter(&mut self, facet: u32) {
        let slot = self.slot(&self[facet].corners);
        let next = std::mem::replace(&mut self.table[slot], facet);
        (self[facet].next, self[facet].before) = (next, NONE);
        if next != NONE {
            self[next].before = facet;
        }
    }

    /// Takes a facet out of the table.
    #[inline(always)]
    pub fn leave(&mut self, facet: u32) {
        let Facet { next, before, .. } = self[facet];
        if before == NONE {
            let slot = self.slot(&self[facet].corners);
            self.table[slot] = next;
        } else {
            self[before].next = next;
        }
        if next != NONE {
            self[next].before = before;
        }
    }

    /// The open facet of these corners, in any order.
    #[inline(always)]
    pub fn find(&self, corners: &[u32; F]) -> Option<u32> {
        let mut facet = self.table[self.slot(corners)];
        for _ in 0..MOST_COMPARED {
            if facet == NONE {
                break;
            }
            if same(&self[facet].corners, corners) {
                return Some(facet);
            }
            facet = self[facet].next;
        }
        None
    }

    /// The other end of a contact with another facet, if there is one.
    #[inline(always)]
    pub fn other(&self, one: u32) -> Option<u32> {
        let at = |end: u32| {
            let facet = self.all.get((end / ENDS) as usize);
            facet.and_then(|facet| facet.ends.get((end % ENDS) as usize).copied())
        };
        at(one).filter(|other| at(*other) == Some(one) && other / ENDS != one / ENDS)
    }

    /// The facet of an end, and its corner that is not on the ridge; twice `NONE` for no end.
    #[inline(always)]
    pub fn apex(&self, end: u32) -> (u32, u32) {
        let facet = end / ENDS;
        match self.all.get(facet as usize) {
            Some(of_end) => (facet, of_end.corners[(end % ENDS) as usize]),
            None => (NONE, NONE),
        }
    }

    /// Makes two ends those of one contact, with so many cells around the ridge.
    #[inline(always)]
    pub fn touch(&mut self, one: u32, two: u32, around: u8) {
        for (end, other) in [(one, two), (two, one)] {
            let (facet, ridge) = (&mut self[end / ENDS], (end % ENDS) as usize);
            (facet.ends[ridge], facet.around[ridge]) = (other, around);
        }
    }

    /// Puts two facets of the same corners together: both are gone, and what touched them touches now.
    #[inline(always)]
    pub fn join(&mut self, one: u32, two: u32) {
        let corners = self[two].corners;
        for number in 0..F {
            let corner = self[one].corners[number];
            let mut of_two = 0;
            for (place, other) in corners.iter().enumerate() {
                of_two = if *other == corner { place } else { of_two };
            }
            let ends = (self.other(end(one, number)), self.other(end(two, of_two)));
            let (Some(a), Some(b)) = ends else {
                continue;
            };
            // Where the two touch each other, the gap between them is closed.
            if a / ENDS != two && b / ENDS != one {
                let around = self[one].around[number].saturating_add(self[two].around[of_two]);
                self.touch(a, b, around);
            }
        }
        self.meet(one);
        self.meet(two);
    }

    /// Lets a facet be one behind which a cell was met: it touches nothing any more.
    #[inline(always)]
    pub fn meet(&mut self, facet: u32) {
        let facet = &mut self[facet];
        (facet.state, facet.ends) = (State::Met, [NONE; F]);
    }
}

/// Whether corners are the same in any order.
#[inline(always)]
fn same<const F: usize>(one: &[u32; F], two: &[u32; F]) -> bool {
    let sum = |corners: &[u32; F]| corners.iter().fold(0, |sum: u32, n| sum.wrapping_add(*n));
    if sum(one) != sum(two) {
        return false;
    }
    let (mut one, mut two) = (*one, *two);
    sort(&mut one);
    sort(&mut two);
    one == two
}

/// Sorts a few numbers, by exchanging neighbours.
#[inline(always)]
pub(super) fn sort(numbers: &mut [u32]) {
    for end in (1..numbers.len()).rev() {
        for i in 0..end {
            let (a, b) = (numbers[i], numbers[i + 1]);
            (numbers[i], numbers[i + 1]) = (a.min(b), a.max(b));
        }
    }
}
