//! Components of an output (hydro, gravity, particles, ...), and their fields.

use std::collections::HashSet;

use ambar::DataType;
use ambar::kinds::amr::AmrTree;

/// A component of an output, stored in files of its own.
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

    /// The name in requests and messages: `hydro`, `gravity`, `rt`, `particles`, `sinks`, `clumps`.
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

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How the names of the component's files begin.
    pub fn file_prefix(self) -> &'static str {
        match self {
            Self::Gravity => "grav",
            Self::Particles => "part",
            Self::Clumps => "clump",
            Self::Sinks => "sink",
            other => other.name(),
        }
    }

    /// True for components with one value per cell.
    pub fn is_on_cells(self) -> bool {
        matches!(self, Self::Hydro | Self::Gravity | Self::Rt)
    }
}

/// One column of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the output's descriptor, or this name and `_field` if another column has it; without a descriptor, the
    /// name that current RAMSES uses.
    pub name: String,
    /// The name in current RAMSES, if the output uses an older one (`thermal_pressure`: `pressure`).
    pub alias: Option<String>,
    /// The type of the values in the file.
    pub dtype: DataType,
    /// The unit as written in the file, if it has one (sinks: `m l**-3`).
    pub unit: Option<String>,
}

/// A component of an output, present or missing.
#[derive(Clone, Debug)]
pub struct Component {
    /// The kind of component.
    pub kind: ComponentKind,
    /// Its fields in file order; empty if the component is missing.
    pub fields: Vec<Field>,
    /// Why the component cannot be read; `None` if it can.
    pub missing: Option<MissingReason>,
}

/// Gives fields on cells the suffix `_field` if their name is that of a column which ambar adds (`level`, `x`, `domain`,
/// ...), or of a field of a later component: names of gravity are always the same, those of hydro are the user's.
pub(super) fn distinguish(components: &mut [Component], ndim: usize) {
    let derived = AmrTree::derived_in(ndim).into_iter().map(|(name, _)| name);
    let mut taken: HashSet<String> = derived.chain(["domain".to_owned()]).collect();
    for component in components.iter_mut().rev() {
        if !component.kind.is_on_cells() {
            continue;
        }
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect();
        let own: HashSet<String> = names(&component.fields);
        for field in &mut component.fields {
            if taken.contains(&field.name) {
                field.name += "_field";
                while taken.contains(&field.name) || own.contains(&field.name) {
                    field.name.push('_');
                }
            }
        }
        taken.extend(names(&component.fields));
    }
}

/// Why a component cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// The output has none of its files. Reading all components skips it.
    Absent(String),
    /// Some of its files are missing or damaged. Reading it returns this as an error.
    Broken(String),
}

impl MissingReason {
    /// The reason in words.
    pub fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Broken(why) => why,
        }
    }
}
