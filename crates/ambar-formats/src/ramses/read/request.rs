//! Requests for cells and particles, and the cells returned.

use ambar::Column;
use ambar::kinds::amr::Leaves;
use ambar::kinds::region::Region;

use crate::progress::Progress;
use crate::ramses::component::ComponentKind;

/// Which cells and fields to read.
#[derive(Clone, Default)]
pub struct CellsRequest<'a> {
    /// Components whose fields are read; `None` for all that are present.
    pub components: Option<Vec<ComponentKind>>,
    /// Names (or aliases) of the fields, in the order wanted; `None` for all of `components`.
    pub fields: Option<Vec<String>>,
    /// Reads only cells whose centre is in this region (code length, `0..boxlen`).
    pub region: Option<Region>,
    /// First and last level of the leaf cells to return, both included.
    pub levels: Option<(u8, u8)>,
    /// The level at which the tree ends: refined cells of this level become leaves. Their value is
    /// the one that RAMSES stores in them, the mean of the finer cells. `levels` selects among the
    /// leaves of the tree that ends there.
    pub max_level: Option<u8>,
    /// Adds a last column `domain` (`uint32`): the number of the file that holds the cell.
    pub domain: bool,
    /// Called after each file, with the number of files read and the number of files to read.
    pub progress: Option<&'a Progress<'a>>,
}

/// Leaf cells along the Morton curve, and their fields.
#[derive(Debug)]
pub struct LeafCells {
    /// Positions and levels of the cells.
    pub leaves: Leaves,
    /// A column for each field requested, with one row per leaf.
    pub columns: Vec<(String, Column)>,
}

/// Which particles and columns to read.
#[derive(Clone, Default)]
pub struct ParticlesRequest<'a> {
    /// Names (or aliases) of the columns, in the order wanted; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Reads only particles whose position is in this region (code length).
    pub region: Option<Region>,
    /// Adds a last column `domain` (`uint32`): the number of the file that holds the particle.
    pub domain: bool,
    /// Called after each file, with the number of files read and the number of files to read.
    pub progress: Option<&'a Progress<'a>>,
}
