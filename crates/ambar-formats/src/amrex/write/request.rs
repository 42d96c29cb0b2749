//! Requests for writing a plotfile.

use ambar::Column;
use ambar::kinds::amr::patches::PatchSource;

use crate::amrex::layout::PlotfileLayout;
use crate::amrex::layout::run::RunInfo;
use crate::progress::Progress;

/// The particles of a species, with the columns of `Plotfile::read_particles`.
#[derive(Clone, Copy, Debug)]
pub struct SpeciesData<'a> {
    /// Name of its folder.
    pub name: &'a str,
    /// Columns of equal length: `position_x`, ..., `level` (uint8), `grid` (uint32), and any real (of the
    /// type of the positions, float32 or float64) and integer (int32) components. `id` (int64) and `cpu`
    /// (int32) are required with integers.
    pub columns: &'a [(String, Column)],
}

/// The contents of a plotfile.
pub struct WriteRequest<'a> {
    /// The hierarchy of patches, with fields and values.
    pub source: &'a dyn PatchSource,
    /// Time, steps, coordinates, text files.
    pub run: &'a RunInfo,
    /// The layout of the files. Levels without a layout, or with other boxes than their layout, are
    /// written to files of about 128 MiB.
    pub layout: Option<&'a PlotfileLayout>,
    /// The particles.
    pub species: &'a [SpeciesData<'a>],
    /// Called after each field of a box, with the bytes of values written and to write.
    pub progress: Option<&'a Progress<'a>>,
}
