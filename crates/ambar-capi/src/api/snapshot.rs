//! What a snapshot of a run tells beside its cells and particles, as a converted plotfile does.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::c_char;

use ambar::kinds::amr::patches::PatchHierarchy;
use ambar::kinds::attributes::VERSION;
use ambar::metadata::Attributes;
use ambar::{DataType, Error, Result};
use serde_json::{Value, json};

use super::amr::ambar_amr;
use super::arguments::{Extensible, list, reference, text};
use super::particles::ambar_particles;
use super::status::with_writer;
use super::writer::ambar_writer;

/// By AMReX's numbers.
const COORDINATES: [&str; 3] = ["cartesian", "cylindrical", "spherical"];

/// What a snapshot says of its run. The same on all ranks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_run {
    /// Its size: `sizeof(ambar_run)`.
    pub size: usize,
    /// The snapshot's name, such as `plt00010`.
    pub name: *const c_char,
    /// The format's name, such as `HyperCLaw-V1.1`.
    pub format: *const c_char,
    /// The time, in the run's own units.
    pub time: f64,
    /// 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i32,
    /// Of each level the number of its steps.
    pub steps: *const i64,
    /// Number of species of particles.
    pub species_count: i32,
    /// The species, each defined in the snapshot's group `particles/<name>`.
    pub species: *const *const ambar_particles,
}

// SAFETY: the first field is its size; zeros are valid numbers and null pointers.
unsafe impl Extensible for ambar_run {
    const NAME: &'static str = "ambar_run";
    const FIRST: usize = size_of::<Self>();
}

/// Makes the group at `path` (empty: the root) a snapshot of AMReX, whose cells are `amr`, in the group `amr` there.
/// All ranks call it, before the commit; then `ambar.open` and the other readers know it as they do a plotfile.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_snapshot(
    writer: *mut ambar_writer,
    path: *const c_char,
    amr: *const ambar_amr,
    run: *const ambar_run,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so, here and below.
        let (path, amr) = unsafe { (text(path, "the path")?, reference(amr, "the hierarchy")?) };
        // SAFETY: as above.
        let run = unsafe { ambar_run::read_from(run, "the run") }?;
        // SAFETY: as above.
        let told = unsafe { run.read(amr.hierarchy.levels.len()) }?;
        let path = path.trim_end_matches('/');
        let own = told.snapshot(&amr.hierarchy, &amr.fields);
        let group = if path.is_empty() { "/" } else { path };
        writer
            .ranks
            .define_group("snapshot", group, own, Attributes::new())?;
        let run = told.run(amr.hierarchy.levels.len());
        let place = format!("{path}/source/run");
        writer.ranks.write_text(&place, &run.to_string())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// What an `ambar_run` says.
struct Told<'a> {
    name: &'a str,
    format: &'a str,
    time: f64,
    coordinates: usize,
    steps: &'a [i64],
    species: Vec<&'a ambar_particles>,
}

impl ambar_run {
    /// # Safety
    /// Its pointers are null, or point to what they say.
    unsafe fn read(&self, levels: usize) -> Result<Told<'_>> {
        let coordinates = usize::try_from(self.coordinates).ok().filter(|n| *n < 3);
        let coordinates = coordinates.ok_or_else(|| {
            let found = self.coordinates;
            Error::invalid(format!(
                "coordinates are Cartesian (0), cylindrical (1) or spherical (2), not {found}"
            ))
        })?;
        let species = usize::try_from(self.species_count)
            .map_err(|_| Error::invalid(format!("{} species", self.species_count)))?;
        // SAFETY: the caller says so, here and below.
        let names = unsafe { list(self.species, species, "the species") }?.iter();
        // SAFETY: as above.
        let names = names.map(|name| unsafe { reference(*name, "a species") });
        Ok(Told {
            // SAFETY: as above.
            name: unsafe { text(self.name, "the name of the run") }?,
            // SAFETY: as above.
            format: unsafe { text(self.format, "the format") }?,
            time: self.time,
            coordinates,
            // SAFETY: as above.
            steps: unsafe { list(self.steps, levels, "the steps") }?,
            species: names.collect::<Result<_>>()?,
        })
    }
}

impl Told<'_> {
    /// The attributes of a snapshot, as those of a converted plotfile.
    fn snapshot(&self, hierarchy: &PatchHierarchy, fields: &[(String, DataType)]) -> Attributes {
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
        let mut own = Attributes::new();
        own.insert(
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
                    "texts": [],
                    "left_out": {},
                },
                "components": components,
                "missing": {},
            }),
        );
        own
    }

    /// What writing a plotfile of it needs, as in `source/run` of a converted one.
    fn run(&self, levels: usize) -> Value {
        // JSON knows no infinity, and no NaN.
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
            "texts": {},
        })
    }
}
