//! Reading the octs that one domain owns, from its amr file.

use ambar::Result;

use super::buffers::ReadBuffers;
use crate::ramses::files::amr::AmrFile;
use crate::ramses::files::blocks::{BlockFile, BlockShape, LevelBlocks};
use crate::ramses::files::fortran::FortranFile;
use crate::ramses::output::Output;
use crate::ramses::tree::lattice::Lattice;
use crate::ramses::tree::morton_key::MortonKey;
use crate::ramses::tree::octs::{self, CellFilter, OwnOcts};

/// The octs that a domain owns, and the blocks of its files.
pub struct DomainOcts<K> {
    /// The octs.
    pub octs: OwnOcts<K>,
    /// For each level, where the domain's own block is; empty if the domain was not read.
    pub levels: Vec<LevelBlocks>,
}

impl<K> Default for DomainOcts<K> {
    fn default() -> Self {
        Self {
            octs: OwnOcts::default(),
            levels: Vec::new(),
        }
    }
}

/// Reads the octs that `domain` (counted from 0) owns.
///
/// # Errors
/// `Corrupt` if the amr file is missing, damaged, or contradicts that of the first domain; `Io`.
pub fn read_domain<K: MortonKey>(
    output: &Output,
    domain: u64,
    shape: &BlockShape,
    lattice: &Lattice,
    filter: &CellFilter<'_>,
    buffers: &mut ReadBuffers,
) -> Result<DomainOcts<K>> {
    let path = output.folder.domain("amr", domain)?;
    let file = FortranFile::open(&path, std::mem::take(&mut buffers.window))?;
    let amr = AmrFile::new(file)?;
    amr.check(&output.mesh)?;
    let levels = amr.levels(domain as usize);
    let mut blocks = BlockFile::new(amr.file, shape, amr.start, &levels, Some(&amr.octs))?;
    let octs = octs::read(&mut blocks, lattice, filter, &mut buffers.block)?;
    buffers.window = blocks.file.into_buffer();
    Ok(DomainOcts { octs, levels })
}
