//! RAMSES outputs: folders of Fortran files, one of each kind for every domain.

mod info;
mod request;

use std::path::Path;

use ambar::{Column, Error, Result};

pub use info::Info;
pub use request::{
    Cells, CellsRequest, Component, ComponentKind, Field, Missing, ParticlesRequest, Progress,
};

/// One output: what lies in its folder. Nothing but headers is read before it is asked for.
#[derive(Debug)]
pub struct Output {
    info: Info,
    components: Vec<Component>,
}

impl Output {
    /// Opens `output_NNNNN` (the folder, a `group_XXXXX` folder in it, or its `info_NNNNN.txt`).
    ///
    /// # Errors
    /// `NotFound` where there is no such folder or no info file in it; `Corrupt` where a domain's
    /// amr file is missing, or a header is damaged or contradicts another; `Io`.
    pub fn open(_path: &Path) -> Result<Self> {
        Err(Error::unsupported("not yet"))
    }

    /// What the output tells about its run.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Every component of `ComponentKind::ALL`, in that order, with its fields or why it is missing.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Reads leaf cells, on the threads of the current rayon pool.
    ///
    /// # Errors
    /// `NotFound` for a field or component that is not there, `Invalid` for a region of other
    /// dimensions or levels upside down; `Corrupt` where a file is damaged, cut short or
    /// contradicts another, or cells are missing; `Limit` for more than memory holds; `Io`.
    pub fn read_cells(&self, _request: &CellsRequest<'_>) -> Result<Cells> {
        Err(Error::unsupported("not yet"))
    }

    /// Reads particles, domain by domain in the files' order, on the threads of the current pool.
    ///
    /// # Errors
    /// As `read_cells`.
    pub fn read_particles(&self, _request: &ParticlesRequest<'_>) -> Result<Vec<(String, Column)>> {
        Err(Error::unsupported("not yet"))
    }

    /// Reads the sinks; `None` where the output has no sink file.
    ///
    /// # Errors
    /// `Corrupt` for a line that cannot be read; `Io`.
    pub fn read_sinks(&self) -> Result<Option<Vec<(String, Column)>>> {
        Err(Error::unsupported("not yet"))
    }

    /// Reads the clumps of all domains; `None` where the output has no clump file.
    ///
    /// # Errors
    /// `Corrupt` for a line that cannot be read; `Io`.
    pub fn read_clumps(&self) -> Result<Option<Vec<(String, Column)>>> {
        Err(Error::unsupported("not yet"))
    }
}
