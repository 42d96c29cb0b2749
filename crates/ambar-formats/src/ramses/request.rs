//! What can be asked of an output, and what comes back.

use ambar::kinds::amr::Leaves;
use ambar::kinds::region::Region;
use ambar::{Column, DataType, Result};

/// A part of an output that is read as a whole or by fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ComponentKind {
    /// Gas (and magnetic fields) on the cells: `hydro_NNNNN.outCCCCC`.
    Hydro,
    /// Potential and acceleration on the cells: `grav_NNNNN.outCCCCC`.
    Gravity,
    /// Photons on the cells: `rt_NNNNN.outCCCCC`.
    Rt,
    /// Dark matter, stars, tracers: `part_NNNNN.outCCCCC`.
    Particles,
    /// Sink particles: `sink_NNNNN.csv`.
    Sinks,
    /// Clumps of the clump finder: `clump_NNNNN.txtCCCCC`.
    Clumps,
}

impl ComponentKind {
    /// Every kind, in the order in which `Output::components` lists them.
    pub const ALL: [Self; 6] = [
        Self::Hydro,
        Self::Gravity,
        Self::Rt,
        Self::Particles,
        Self::Sinks,
        Self::Clumps,
    ];

    /// Its name in requests and messages: `hydro`, `gravity`, `rt`, `particles`, `sinks`, `clumps`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hydro => "hydro",
            Self::Gravity => "gravity",
            Self::Rt => "rt",
            Self::Particles => "particles",
            Self::Sinks => "sinks",
            Self::Clumps => "clumps",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether its values belong to cells.
    pub fn on_cells(self) -> bool {
        matches!(self, Self::Hydro | Self::Gravity | Self::Rt)
    }
}

/// One column of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the output's own descriptor; where there is none, today's RAMSES name.
    pub name: String,
    /// Today's RAMSES name, where the output's own is an older one (`thermal_pressure`: `pressure`).
    pub alias: Option<String>,
    /// The values' type, as they lie in the file.
    pub dtype: DataType,
    /// The unit in the file's own words, where it has any (sinks: `m l**-3`).
    pub unit: Option<String>,
}

/// A component, there or missing.
#[derive(Clone, Debug)]
pub struct Component {
    /// Which one.
    pub kind: ComponentKind,
    /// Its fields in their order in the file; none where it is missing.
    pub fields: Vec<Field>,
    /// Why it cannot be read: `None` where it can.
    pub missing: Option<Missing>,
}

/// Why a component cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The output has none of its files: a whole read leaves it out.
    Absent(String),
    /// Some of its files are missing or damaged: reading it is an error that says this.
    Broken(String),
}

impl Missing {
    /// The reason in words.
    pub fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Broken(why) => why,
        }
    }
}

/// Called with the number of files read and of all files to read; an error ends the read with it.
pub type Progress<'a> = dyn Fn(u64, u64) -> Result<()> + Send + Sync + 'a;

/// Which cells and fields to read.
#[derive(Clone, Default)]
pub struct CellsRequest<'a> {
    /// Components whose fields are read; `None` for all that are there.
    pub components: Option<Vec<ComponentKind>>,
    /// Names (or aliases) of the fields, in the order wanted; `None` for all of `components`.
    pub fields: Option<Vec<String>>,
    /// Only cells whose centre lies in it (code length, `0..boxlen`).
    pub region: Option<Region>,
    /// First and last level of the leaf cells that are kept, both included.
    pub levels: Option<(u8, u8)>,
    /// The level at which the tree ends: its refined cells become leaves with the value that RAMSES
    /// stores in them, the mean of the finer ones. Of this tree `levels` keeps leaves.
    pub max_level: Option<u8>,
    /// Adds a last column `domain` (`uint32`): the number of the file that holds the cell.
    pub domain: bool,
    /// Told of each file read.
    pub progress: Option<&'a Progress<'a>>,
}

/// Leaf cells along the Morton curve, and their fields.
#[derive(Debug)]
pub struct Cells {
    /// Where the cells lie.
    pub leaves: Leaves,
    /// A column for each field asked for, as many rows as there are leaves.
    pub columns: Vec<(String, Column)>,
}

/// Which particles and columns to read.
#[derive(Clone, Default)]
pub struct ParticlesRequest<'a> {
    /// Names (or aliases) of the columns, in the order wanted; `None` for all.
    pub fields: Option<Vec<String>>,
    /// Only particles whose position lies in it (code length).
    pub region: Option<Region>,
    /// Adds a last column `domain` (`uint32`): the number of the file that holds the particle.
    pub domain: bool,
    /// Told of each file read.
    pub progress: Option<&'a Progress<'a>>,
}
