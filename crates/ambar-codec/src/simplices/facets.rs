//! The facets of visited cells, behind which another cell may be, and their contacts.

/// No facet.
const NONE: u32 = u32::MAX;

/// Maximum number of facets of a slot of the table to compare. Further ones are not found, which costs a few bits in
/// degenerate meshes, and bounds the time for hostile streams.
const MAX_COMPARED: usize = 48;

/// The state of the other side of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FacetState {
    /// Not yet coded.
    Open,
    /// There is no cell: the facet is part of the boundary.
    Boundary,
    /// A visited cell: the facet has no contacts.
    Closed,
}

/// A facet of a cell: all corners except one.
///
/// Two facets touch in a ridge: all corners of a facet except one; in a tetrahedron, an edge. Around a ridge, visited cells
/// alternate with gaps, and a facet has a contact with the facet on the other side of its gap. The ridge without corner *i*
/// has number *i*. As an end of a contact, it has the number `ENDS` times that of the facet, plus *i*.
#[derive(Clone, Copy)]
pub(super) struct Facet<const F: usize> {
    /// The corners, in the order of the cell.
    pub corners: [u32; F],
    /// For each ridge, the other end of the contact. It is valid if the other end refers back to this one.
    pub ends: [u32; F],
    /// The next facet in the same slot of the table, and the one before.
    next: u32,
    before: u32,
    /// The index of the cell.
    pub cell: u32,
    /// For each ridge, the number of cells between the two facets of the contact, at most 255.
    pub around: [u8; F],
    /// The position of the cell's corner that the facet lacks.
    pub missing: u8,
    pub state: FacetState,
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
        state: FacetState::Open,
    };

    /// Resets it to an open facet of a cell. The caller sets corners and ends.
    #[inline(always)]
    pub fn begin(&mut self, cell: u32, missing: u8) {
        self.cell = cell;
        self.around = [1; F];
        self.missing = missing;
        self.state = FacetState::Open;
    }
}

/// The numbers of ends that are reserved for each facet.
const ENDS: u32 = 4;

/// The number of an end of a contact.
#[inline(always)]
pub(super) fn end(facet: u32, ridge: usize) -> u32 {
    ENDS * facet + ridge as u32
}

/// All facets in use.
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
    /// Removes all facets, and sizes the table for the facets that are open at a time in a mesh of `cells` cells.
    pub fn reset(&mut self, cells: usize) {
        self.all.clear();
        self.unused.clear();
        self.bits = (cells / 4).clamp(64, 1 << 18).next_power_of_two().ilog2();
        self.table.clear();
        self.table.resize(1 << self.bits, NONE);
    }

    /// Allocates a facet.
    #[inline(always)]
    pub fn reserve(&mut self) -> u32 {
        if let Some(number) = self.unused.pop() {
            return number;
        }
        self.all.push(Facet::NEW);
        (self.all.len() - 1) as u32
    }

    /// Frees a facet.
    pub fn release(&mut self, facet: u32) {
        self.unused.push(facet);
    }

    /// The slot of corners, which is independent of their order.
    #[inline(always)]
    fn slot(&self, corners: &[u32; F]) -> usize {
        let mixed = |corner: &u32| {
            let product = u64::from(*corner).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ product >> 29
        };
        let sum = corners.iter().map(mixed).fold(0, u64::wrapping_add);
        (sum.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - self.bits)) as usize
    }

    /// Inserts an open facet into the table.
    #[inline(always)]
    pub fn insert(&mut self, facet: u32) {
        let slot = self.slot(&self[facet].corners);
        let next = std::mem::replace(&mut self.table[slot], facet);
        (self[facet].next, self[facet].before) = (next, NONE);
        if next != NONE {
            self[next].before = facet;
        }
    }

    /// Removes a facet from the table.
    #[inline(always)]
    pub fn remove(&mut self, facet: u32) {
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

    /// Finds the open facet with these corners in any order.
    #[inline(always)]
    pub fn find(&self, corners: &[u32; F]) -> Option<u32> {
        let mut facet = self.table[self.slot(corners)];
        for _ in 0..MAX_COMPARED {
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

    /// The other end of a contact with another facet, if it exists.
    #[inline(always)]
    pub fn other(&self, one: u32) -> Option<u32> {
        let at = |end: u32| {
            let facet = self.all.get((end / ENDS) as usize);
            facet.and_then(|facet| facet.ends.get((end % ENDS) as usize).copied())
        };
        at(one).filter(|other| at(*other) == Some(one) && other / ENDS != one / ENDS)
    }

    /// The facet of an end, and its corner that is not part of the ridge; `NONE` twice for an invalid end.
    #[inline(always)]
    pub fn apex(&self, end: u32) -> (u32, u32) {
        let facet = end / ENDS;
        match self.all.get(facet as usize) {
            Some(of_end) => (facet, of_end.corners[(end % ENDS) as usize]),
            None => (NONE, NONE),
        }
    }

    /// Connects two ends, with `around` cells between them.
    #[inline(always)]
    pub fn connect(&mut self, one: u32, two: u32, around: u8) {
        for (end, other) in [(one, two), (two, one)] {
            let (facet, ridge) = (&mut self[end / ENDS], (end % ENDS) as usize);
            (facet.ends[ridge], facet.around[ridge]) = (other, around);
        }
    }

    /// Joins two facets with the same corners: closes both, and connects their contacts.
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
            // A contact between the two facets is a gap that vanishes.
            if a / ENDS != two && b / ENDS != one {
                let around = self[one].around[number].saturating_add(self[two].around[of_two]);
                self.connect(a, b, around);
            }
        }
        self.close(one);
        self.close(two);
    }

    /// Marks a facet as closed, and removes its contacts.
    #[inline(always)]
    pub fn close(&mut self, facet: u32) {
        let facet = &mut self[facet];
        (facet.state, facet.ends) = (FacetState::Closed, [NONE; F]);
    }
}

/// Whether corners are equal in any order.
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

/// Sorts a few numbers by bubble sort.
#[inline(always)]
pub(super) fn sort(numbers: &mut [u32]) {
    for end in (1..numbers.len()).rev() {
        for i in 0..end {
            let (a, b) = (numbers[i], numbers[i + 1]);
            (numbers[i], numbers[i + 1]) = (a.min(b), a.max(b));
        }
    }
}
