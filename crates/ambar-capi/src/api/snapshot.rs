//! Metadata of a snapshot written in situ, as in a converted plotfile.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::c_char;

use ambar::kinds::amr::patches::PatchHierarchy;
use ambar::kinds::attributes::VERSION;
use ambar::metadata::Attributes;
use ambar::{DataType, Error, Result};
use serde_json::{Value, json};

use super::amr::ambar_amr;
use super::arguments::{Extensible, from_c};
use super::particles::ambar_particles;
use super::status::with_writer;
use super::writer::ambar_writer;

/// Names of AMReX's coordinate systems.
const COORDINATES: [&str; 3] = ["cartesian", "cylindrical", "spherical"];

/// Run information of a snapshot, equal on all ranks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_run {
    /// `sizeof(ambar_run)`.
    pub size: usize,
    /// Name of the snapshot, such as `plt00010`.
    pub name: *const c_char,
    /// Name of the format, such as `HyperCLaw-V1.1`.
    pub format: *const c_char,
    /// Time in units of the run.
    pub time: f64,
    /// 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i32,
    /// For each level, the number of its steps.
    pub steps: *const i64,
    /// Number of particle species.
    pub species_count: i32,
    /// The species, which are defined in the snapshot's groups `particles/<name>`.
    pub species: *const *const ambar_particles,
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all other fields are numbers and raw pointers, for which zeros are
// valid.
unsafe impl Extensible for ambar_run {
    const NAME: &'static str = "ambar_run";
    const FIRST: usize = size_of::<Self>();
}

/// Makes the group at `path` (empty: the root) an AMReX snapshot with the cells `amr`, which are in its group `amr`. All ranks
/// call it before the commit. `ambar.open` and other readers then read it like a converted plotfile.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_snapshot(
    writer: *mut ambar_writer,
    path: *const c_char,
    amr: *const ambar_amr,
    run: *const ambar_run,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        from_c!(amr = reference(amr, "the hierarchy"));
        from_c!(run = structure(ambar_run::read_from, run, "the run"));
        // SAFETY: the caller's structure has pointers that follow the contract of the API, and `run` is a copy of it.
        let information = unsafe { run.read(amr.hierarchy.levels.len()) }?;
        let path = path.trim_end_matches('/');
        let attributes = information.attributes(&amr.hierarchy, &amr.fields);
        let group = if path.is_empty() { "/" } else { path };
        writer
            .ranks
            .define_group("snapshot", group, attributes, Attributes::new())?;
        let run = information.plotfile_run(amr.hierarchy.levels.len());
        let path = format!("{path}/source/run");
        writer.ranks.write_text(&path, &run.to_string())
    };
    with_writer!(writer, body)
}

/// The contents of an `ambar_run`.
struct RunInformation<'a> {
    name: &'a str,
    format: &'a str,
    time: f64,
    coordinates: usize,
    steps: &'a [i64],
    species: Vec<&'a ambar_particles>,
}

impl ambar_run {
    /// Reads the information of a run with this number of levels.
    ///
    /// # Safety
    /// Its pointers follow the contract of the API.
    unsafe fn read(&self, levels: usize) -> Result<RunInformation<'_>> {
        let coordinates = usize::try_from(self.coordinates).ok().filter(|n| *n < 3);
        let coordinates = coordinates.ok_or_else(|| {
            let found = self.coordinates;
            Error::invalid(format!(
                "invalid coordinates: {found}; must be Cartesian (0), cylindrical (1) or spherical (2)"
            ))
        })?;
        let species = usize::try_from(self.species_count).map_err(|_| {
            Error::invalid(format!(
                "negative number of species: {}",
                self.species_count
            ))
        })?;
        from_c!(pointers = list(self.species, species, "the species"));
        let mut species = Vec::with_capacity(pointers.len());
        for pointer in pointers {
            from_c!(particles = reference(*pointer, "a species"));
            species.push(particles);
        }
        from_c!(name = text(self.name, "the name of the run"));
        from_c!(format = text(self.format, "the format"));
        from_c!(steps = list(self.steps, levels, "the steps"));
        Ok(RunInformation {
            name,
            format,
            time: self.time,
            coordinates,
            steps,
            species,
        })
    }
}

impl RunInformation<'_> {
    /// The attributes of the snapshot, as in a converted plotfile.
    fn attributes(&self, hierarchy: &PatchHierarchy, fields: &[(String, DataType)]) -> Attributes {
        let ndim = hierarchy.ndim;
        let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
        let levels = hierarchy.levels.iter().map(|level| {
            let last: Vec<i64> = level.domain.hi[..ndim].iter().map(|hi| hi - 1).collect();
            let cells: u64 = level.boxes.iter().map(|cells| cells.cells() as u64).sum();
            json!({
                "domain": {"lo": &level.domain.lo[..ndim], "hi": last},
                "cell_size": &level.cell_size[..ndim],
                "ratio": &level.ratio[..ndim],
                "boxes": level.boxes.len(),
                "cells": cells,
                "ghosts": vec![0; ndim],
            })
        });
        let mut components = Attributes::new();
        components.insert("cells".into(), json!(names));
        for species in &self.species {
            let columns = species.columns.iter().map(|(name, _)| json!(name));
            components.insert(format!("particles/{}", species.name()), columns.collect());
        }
        let mut attributes = Attributes::new();
        attributes.insert(
            "ambar".into(),
            json!({
                "version": VERSION,
                "kind": "snapshot",
                "source": {"format": "amrex", "name": self.name, "in_situ": true},
                "info": {
                    "format": self.format,
                    "ndim": ndim,
                    "time": self.time,
                    "steps": self.steps,
                    "coordinates": COORDINATES.get(self.coordinates),
                    "aexp": null,
                    "lower": &hierarchy.lower[..ndim],
                    "upper": &hierarchy.upper[..ndim],
                    "fields": names,
                    "dtype": fields.first().map(|(_, dtype)| dtype.to_string()),
                    "levels": levels.collect::<Vec<_>>(),
                    "particles": [],
                    "text_files": [],
                    "left_out": {},
                },
                "components": components,
                "missing": {},
            }),
        );
        attributes
    }

    /// The run information for exporting a plotfile, as in `source/run` of a converted plotfile.
    fn plotfile_run(&self, levels: usize) -> Value {
        // JSON has no infinity and no NaN.
        let time = match self.time.is_finite() {
            true => json!(self.time),
            false => json!(self.time.to_string()),
        };
        let levels = self.steps[..levels].iter();
        let levels = levels.map(|step| json!({"step": step, "own_step": step, "time": time}));
        json!({
            "version": self.format,
            "time": time,
            "coordinates": self.coordinates,
            "boundary": 0,
            "levels": levels.collect::<Vec<_>>(),
            "rest": "",
            "text_files": {},
        })
    }
}
