//! One output: its folder, its headers, and which components it has.

use std::path::Path;

use ambar::process::SetOnce;
use ambar::{Column, Error, Result};

use super::component::{Component, ComponentKind, Field, MissingReason, distinguish};
use super::files::amr::{AmrFile, Mesh};
use super::files::blocks::LevelBlocks;
use super::files::cell_files::CellFiles;
use super::files::folder::Folder;
use super::files::fortran::FortranFile;
use super::files::info::{self, Info};
use super::files::particle_files::ParticleFiles;
use super::files::text_tables;

/// One output. Opening it reads headers only; values are read on request.
#[derive(Debug)]
pub struct Output {
    pub(super) folder: Folder,
    pub(super) info: Info,
    pub(super) mesh: Mesh,
    /// Keys along the Hilbert curve where the domains begin and end; empty in other orderings.
    pub(super) bounds: Vec<f64>,
    components: Vec<Component>,
    pub(super) cell_files: Vec<CellFiles>,
    particle_files: Option<ParticleFiles>,
    /// The root cells, after the first call of `root`.
    pub(super) root: SetOnce<RootCells>,
}

/// The coarse cells of the box, without those of boundary regions around it.
#[derive(Clone, Copy, Debug)]
pub struct RootCells {
    /// How many there are in each dimension.
    pub count: [u64; 3],
    /// The index of the first one among the coarse cells.
    pub first: [u64; 3],
}

/// What is known of a component's files.
struct ComponentFiles {
    fields: Vec<Field>,
    missing: Option<MissingReason>,
}

impl Output {
    /// Opens `output_NNNNN` (the folder, a `group_XXXXX` folder in it, or its `info_NNNNN.txt`).
    ///
    /// # Errors
    /// `NotFound` if the folder or its info file does not exist; `Corrupt` if a domain's amr file is
    /// missing, or a header is damaged or contradicts another; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_folder(Folder::open(path)?)
    }

    /// Opens the output in a folder that is already listed.
    pub(super) fn from_folder(folder: Folder) -> Result<Self> {
        let mut info = read_info(&folder)?;
        for domain in 0..info.ncpu {
            folder.domain("amr", domain)?;
        }
        let first = folder.domain("amr", 0)?;
        let amr = AmrFile::new(FortranFile::open(&first, Vec::new())?)?;
        check_info(&info, &amr.mesh).map_err(|error| error.in_file(first.display()))?;
        // With several coarse cells, the info file has the side of one of them.
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
            let component = output.find_component(kind, &levels);
            output.components.push(component);
        }
        distinguish(&mut output.components, output.mesh.ndim);
        Ok(output)
    }

    /// The output's folder.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The run information.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Every component of `ComponentKind::ALL`, in that order, with its fields or why it is missing.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Reads the sinks; `None` if the output has no sink file.
    ///
    /// # Errors
    /// `Corrupt` for an invalid line; `Io`.
    pub fn read_sinks(&self) -> Result<Option<Vec<(String, Column)>>> {
        text_tables::read_sinks(&self.folder)
    }

    /// Reads the clumps of all domains; `None` if the output has no clump file.
    ///
    /// # Errors
    /// `Corrupt` for an invalid line, or if a domain's file is missing; `Io`.
    pub fn read_clumps(&self) -> Result<Option<Vec<(String, Column)>>> {
        text_tables::read_clumps(&self.folder, self.mesh.ncpu)
    }

    /// Looks for a component. Damage becomes the reason why it is missing, so that the other
    /// components stay readable.
    fn find_component(&mut self, kind: ComponentKind, levels: &[LevelBlocks]) -> Component {
        let found = self.component_files(kind, levels);
        let ComponentFiles { fields, missing } = found.unwrap_or_else(|error| ComponentFiles {
            fields: Vec::new(),
            missing: Some(MissingReason::Broken(error.to_string())),
        });
        Component {
            kind,
            fields,
            missing,
        }
    }

    fn component_files(
        &mut self,
        kind: ComponentKind,
        levels: &[LevelBlocks],
    ) -> Result<ComponentFiles> {
        let prefix = kind.file_prefix();
        let missing = match kind {
            ComponentKind::Sinks => self.folder.missing_single_file(prefix, ".csv"),
            ComponentKind::Clumps => self.folder.missing(prefix, "txt", self.mesh.ncpu),
            _ => self.folder.missing(prefix, "out", self.mesh.ncpu),
        };
        if missing.is_some() {
            return Ok(ComponentFiles {
                fields: Vec::new(),
                missing,
            });
        }
        let fields = match kind {
            ComponentKind::Hydro | ComponentKind::Gravity | ComponentKind::Rt => {
                let path = self.folder.domain(prefix, 0)?;
                let mut file = FortranFile::open(&path, Vec::new())?;
                let files = CellFiles::new(kind, &mut file, &self.mesh, levels)?;
                let fields = files.fields(&self.folder, self.mesh.ndim)?;
                if kind == ComponentKind::Hydro {
                    self.info.gamma = files.gamma;
                }
                self.cell_files.push(files);
                fields
            }
            ComponentKind::Particles => {
                let files = ParticleFiles::new(&self.folder, &self.mesh)?;
                self.particle_files.insert(files).fields.clone()
            }
            ComponentKind::Sinks => text_tables::sink_fields(&self.folder)?,
            ComponentKind::Clumps => text_tables::clump_fields(&self.folder)?,
        };
        Ok(ComponentFiles {
            fields,
            missing: None,
        })
    }

    /// The component of this kind; `None` only while the output is being opened.
    pub(super) fn component(&self, kind: ComponentKind) -> Option<&Component> {
        self.components
            .iter()
            .find(|component| component.kind == kind)
    }

    /// The particle files.
    ///
    /// # Errors
    /// `NotFound` or `Corrupt` with the reason why they are missing.
    pub(super) fn particle_files(&self) -> Result<&ParticleFiles> {
        self.particle_files.as_ref().ok_or_else(|| {
            let component = self.component(ComponentKind::Particles);
            let missing = component.and_then(|component| component.missing.clone());
            let missing =
                missing.unwrap_or_else(|| MissingReason::Absent("no particle files".into()));
            self.missing_error(ComponentKind::Particles, &missing)
        })
    }

    /// The fields of a component; empty if it is missing.
    pub(super) fn fields(&self, kind: ComponentKind) -> &[Field] {
        self.component(kind)
            .map_or(&[], |component| &component.fields)
    }

    /// The components on cells that are requested, or all that are present. With `is_whole`, the
    /// caller reads all their fields: it is an error if one of them is broken, or a requested one
    /// is missing.
    ///
    /// # Errors
    /// `Invalid` for a requested component without values on cells; `NotFound`, `Corrupt`.
    pub(super) fn cell_components(
        &self,
        requested: Option<&[ComponentKind]>,
        is_whole: bool,
    ) -> Result<Vec<&Component>> {
        let mut found = Vec::new();
        for component in self.components.iter().filter(|c| c.kind.is_on_cells()) {
            let is_named = requested.is_some_and(|kinds| kinds.contains(&component.kind));
            if requested.is_some() && !is_named {
                continue;
            }
            match &component.missing {
                Some(missing)
                    if is_whole && (is_named || matches!(missing, MissingReason::Broken(_))) =>
                {
                    return Err(self.missing_error(component.kind, missing));
                }
                _ => found.push(component),
            }
        }
        match requested.and_then(|kinds| kinds.iter().find(|kind| !kind.is_on_cells())) {
            None => Ok(found),
            Some(kind) => Err(Error::invalid(format!(
                "expected components with values on cells (hydro, gravity, rt), found {:?}; read \
                 it separately",
                kind.name()
            ))),
        }
    }

    /// The error for a component that cannot be read.
    pub(super) fn missing_error(&self, kind: ComponentKind, missing: &MissingReason) -> Error {
        let error = match missing {
            MissingReason::Absent(why) => Error::not_found(why),
            MissingReason::Broken(why) => Error::corrupt(why),
        };
        error
            .at_node(kind.name())
            .in_file(self.folder.path.display())
    }

    /// The error for a field that none of `components` has.
    pub(super) fn unknown_field(&self, name: &str, components: &[&Component]) -> Error {
        let mut available = Vec::new();
        let mut reasons = Vec::new();
        for component in components {
            available.extend(component.fields.iter().map(|field| field.name.as_str()));
            if let Some(missing) = &component.missing {
                reasons.push(format!("; {}: {}", component.kind.name(), missing.why()));
            }
        }
        let error = Error::unknown("field", name, &available);
        let message = format!("{}{}", error.message(), reasons.concat());
        Error::not_found(message).in_file(self.folder.path.display())
    }
}

/// Reads the info file, and what header, namelist and `info_rt` add to it.
pub(super) fn read_info(folder: &Folder) -> Result<Info> {
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

/// Checks that the info file and the amr files describe the same mesh.
fn check_info(info: &Info, mesh: &Mesh) -> Result<()> {
    let pairs = [
        ("ncpu", info.ncpu, mesh.ncpu),
        ("ndim", info.ndim as u64, mesh.ndim as u64),
        ("levelmax", u64::from(info.levelmax), mesh.nlevelmax),
    ];
    match pairs.iter().find(|(_, info, amr)| info != amr) {
        None => Ok(()),
        Some((name, info, amr)) => Err(Error::corrupt(format!(
            "expected {name} = {info} according to the info file, found {amr}: files of different \
             outputs are mixed, or one is damaged; copy the output again"
        ))),
    }
}
