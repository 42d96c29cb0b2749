//! RAMSES outputs: folders of Fortran files, one of each kind for every domain.

mod amr;
mod blocks;
mod cellfiles;
mod cells;
mod complete;
mod convert;
mod cover;
mod folder;
mod fortran;
mod gather;
mod hilbert;
mod info;
pub mod json;
mod key;
mod names;
mod numbers;
mod octs;
mod on_demand;
mod particles;
mod plan;
mod progress;
mod request;
mod rows;
mod run;
mod tables;

use std::path::Path;

use ambar::process::SetOnce;
use ambar::{Column, Error, Result};

use amr::{AmrFile, Mesh};
use cellfiles::{CellFiles, file_start};
use folder::Folder;
use fortran::FortranFile;
use particles::ParticleFiles;

pub use convert::{ConvertOptions, Converted, OnError, convert};
pub use info::Info;
pub use on_demand::{OutputCells, particles_on_demand};
pub use request::{
    Cells, CellsRequest, Component, ComponentKind, Field, Missing, ParticlesRequest, Progress,
};

/// One output: what lies in its folder. Nothing but headers is read before it is asked for.
#[derive(Debug)]
pub struct Output {
    folder: Folder,
    info: Info,
    mesh: Mesh,
    /// Where the domains begin and end on the Hilbert curve; empty in other orderings.
    bounds: Vec<f64>,
    components: Vec<Component>,
    cell_files: Vec<CellFiles>,
    particle_files: Option<ParticleFiles>,
    /// Root cells and the first of them, once they were looked for.
    root: SetOnce<([u64; 3], [u64; 3])>,
}

impl Output {
    /// Opens `output_NNNNN` (the folder, a `group_XXXXX` folder in it, or its `info_NNNNN.txt`).
    ///
    /// # Errors
    /// `NotFound` where there is no such folder or no info file in it; `Corrupt` where a domain's
    /// amr file is missing, or a header is damaged or contradicts another; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(Folder::open(path)?)
    }

    fn of(folder: Folder) -> Result<Self> {
        let mut info = read_info(&folder)?;
        for domain in 0..info.ncpu {
            folder.domain("amr", domain)?;
        }
        let first = folder.domain("amr", 0)?;
        let amr = AmrFile::new(FortranFile::open(&first, Vec::new())?)?;
        check_info(&info, &amr.mesh).map_err(|error| error.in_file(first.display()))?;
        // The info file has the size of one coarse cell where there are several.
        info.boxlen = amr.mesh.boxlen;
        info.ordering = amr.mesh.ordering.clone();
        info.coarse = amr.mesh.coarse;
        info.nboundary = amr.mesh.nboundary;
        info.real_bytes = amr.mesh.real_bytes;
        let levels = amr.levels(0);
        let mut output = Self {
            folder,
            info,
            bounds: amr.bounds,
            mesh: amr.mesh,
            components: Vec::new(),
            cell_files: Vec::new(),
            particle_files: None,
            root: SetOnce::new(),
        };
        for kind in ComponentKind::ALL {
            let component = output.find(kind, &levels);
            output.components.push(component);
        }
        Ok(output)
    }

    /// The output's folder.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// For each dimension, whether the box is periodic: where no boundary cells lie around it.
    ///
    /// # Errors
    /// As `root`.
    pub fn periodic(&self) -> Result<Vec<bool>> {
        let root = self.root()?;
        let is_periodic = |d: usize| self.mesh.coarse[d] == root[d];
        Ok((0..self.mesh.ndim).map(is_periodic).collect())
    }

    /// Root cells in each dimension: RAMSES's coarse cells without those of boundaries.
    ///
    /// # Errors
    /// `Corrupt`, `Io` where the first amr files have to be looked at and cannot be read.
    pub fn root(&self) -> Result<[u64; 3]> {
        Ok(cells::root_cells(self)?.0)
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
    pub fn read_cells(&self, request: &CellsRequest<'_>) -> Result<Cells> {
        cells::read(self, request)
    }

    /// Reads particles, domain by domain in the files' order, on the threads of the current pool.
    ///
    /// # Errors
    /// As `read_cells`.
    pub fn read_particles(&self, request: &ParticlesRequest<'_>) -> Result<Vec<(String, Column)>> {
        particles::read(self, request)
    }

    /// Reads the sinks; `None` where the output has no sink file.
    ///
    /// # Errors
    /// `Corrupt` for a line that cannot be read; `Io`.
    pub fn read_sinks(&self) -> Result<Option<Vec<(String, Column)>>> {
        tables::read_sinks(&self.folder)
    }

    /// Reads the clumps of all domains; `None` where the output has no clump file.
    ///
    /// # Errors
    /// `Corrupt` for a line that cannot be read, or a domain's file that is missing; `Io`.
    pub fn read_clumps(&self) -> Result<Option<Vec<(String, Column)>>> {
        tables::read_clumps(&self.folder, self.mesh.ncpu)
    }

    /// Looks for a component. Damage is kept as a reason, so that the others can be read.
    fn find(&mut self, kind: ComponentKind, levels: &[blocks::Level]) -> Component {
        let (fields, missing) = match self.look(kind, levels) {
            Ok(found) => found,
            Err(error) => (Vec::new(), Some(Missing::Broken(error.to_string()))),
        };
        Component {
            kind,
            fields,
            missing,
        }
    }

    fn look(
        &mut self,
        kind: ComponentKind,
        levels: &[blocks::Level],
    ) -> Result<(Vec<Field>, Option<Missing>)> {
        let start = file_start(kind);
        let missing = match kind {
            ComponentKind::Sinks => self.folder.missing_one(start, ".csv"),
            ComponentKind::Clumps => self.folder.missing(start, "txt", self.mesh.ncpu),
            _ => self.folder.missing(start, "out", self.mesh.ncpu),
        };
        if let Some(missing) = missing {
            return Ok((Vec::new(), Some(missing)));
        }
        if kind.on_cells() {
            let path = self.folder.domain(start, 0)?;
            let mut file = FortranFile::open(&path, Vec::new())?;
            let files = CellFiles::new(kind, &mut file, &self.mesh, levels)?;
            let fields = files.fields(&self.folder, self.mesh.ndim)?;
            if kind == ComponentKind::Hydro {
                self.info.gamma = files.gamma;
            }
            self.cell_files.push(files);
            return Ok((fields, None));
        }
        let fields = match kind {
            ComponentKind::Sinks => tables::sink_fields(&self.folder)?,
            ComponentKind::Clumps => tables::clump_fields(&self.folder)?,
            _ => {
                let files = ParticleFiles::new(&self.folder, &self.mesh)?;
                self.particle_files.insert(files).fields.clone()
            }
        };
        Ok((fields, None))
    }

    /// The component of that kind, as a list of one.
    fn component(&self, kind: ComponentKind) -> Vec<&Component> {
        self.components
            .iter()
            .filter(|component| component.kind == kind)
            .collect()
    }

    /// What is known of the particle files.
    fn particle_files(&self) -> Result<&ParticleFiles> {
        self.particle_files.as_ref().ok_or_else(|| {
            let component = self.component(ComponentKind::Particles);
            let missing = component
                .first()
                .and_then(|component| component.missing.clone());
            let missing = missing.unwrap_or_else(|| Missing::Absent("no particle files".into()));
            self.cannot_read(ComponentKind::Particles, &missing)
        })
    }

    /// The fields of a component.
    fn fields_of(&self, kind: ComponentKind) -> &[Field] {
        let component = self
            .components
            .iter()
            .find(|component| component.kind == kind);
        component.map_or(&[], |component| &component.fields)
    }

    /// The components on cells that are asked for, or all there are. With `whole`, they are going
    /// to be read as a whole: none may be broken, none of those asked for missing.
    fn cell_components(
        &self,
        asked: Option<&[ComponentKind]>,
        whole: bool,
    ) -> Result<Vec<&Component>> {
        let mut found = Vec::new();
        for component in self.components.iter().filter(|c| c.kind.on_cells()) {
            let named = asked.is_some_and(|asked| asked.contains(&component.kind));
            if asked.is_some() && !named {
                continue;
            }
            match &component.missing {
                Some(missing) if whole && (named || matches!(missing, Missing::Broken(_))) => {
                    return Err(self.cannot_read(component.kind, missing));
                }
                _ => found.push(component),
            }
        }
        match asked.and_then(|asked| asked.iter().find(|kind| !kind.on_cells())) {
            None => Ok(found),
            Some(kind) => Err(Error::invalid(format!(
                "{} are not values on cells: read them on their own",
                kind.name()
            ))),
        }
    }

    /// The error for a component that cannot be read.
    fn cannot_read(&self, kind: ComponentKind, missing: &Missing) -> Error {
        let error = match missing {
            Missing::Absent(why) => Error::not_found(why),
            Missing::Broken(why) => Error::corrupt(why),
        };
        error
            .at_node(kind.name())
            .in_file(self.folder.path.display())
    }

    /// The error for a field that none of `components` has.
    fn no_field(&self, name: &str, components: &[&Component]) -> Error {
        let mut there = Vec::new();
        let mut reasons = Vec::new();
        for component in components {
            there.extend(component.fields.iter().map(|field| field.name.as_str()));
            if let Some(Missing::Absent(why) | Missing::Broken(why)) = &component.missing {
                reasons.push(format!("{}: {why}", component.kind.name()));
            }
        }
        let mut message = format!("no field {name:?}; there are {}", there.join(", "));
        for reason in reasons {
            message.push_str("; ");
            message.push_str(&reason);
        }
        Error::not_found(message).in_file(self.folder.path.display())
    }
}

fn read_info(folder: &Folder) -> Result<Info> {
    let text = folder.numbered_text("info", ".txt")?.unwrap_or_default();
    let number = folder.number()?;
    let path = folder.numbered("info", ".txt").unwrap_or_default();
    let mut info = Info::read(&text, number).map_err(|error| error.in_file(path.display()))?;
    info.set_namelist(folder.text("namelist.txt")?);
    if let Some(header) = folder.numbered_text("header", ".txt")? {
        info.families = info::read_families(&header);
    }
    if let Some(rt) = folder.numbered_text("info_rt", ".txt")? {
        info.rt = info::read_rt(&rt);
    }
    Ok(info)
}

/// The info file and the amr files must tell of the same mesh.
fn check_info(info: &Info, mesh: &Mesh) -> Result<()> {
    let says = [
        ("ncpu", info.ncpu, mesh.ncpu),
        ("ndim", info.ndim as u64, mesh.ndim as u64),
        ("levelmax", u64::from(info.levelmax), mesh.nlevelmax),
    ];
    match says.iter().find(|(_, info, amr)| info != amr) {
        None => Ok(()),
        Some((name, info, amr)) => Err(Error::corrupt(format!(
            "{name} is {amr} here, but {info} in the info file: files of different outputs are \
             mixed, or one is damaged; copy the output again"
        ))),
    }
}
