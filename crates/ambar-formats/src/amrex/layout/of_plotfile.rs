//! The layout of an existing plotfile.

use std::collections::BTreeMap;
use std::path::Path;

use ambar::kinds::amr::patches::{IndexBox, PatchSource};
use ambar::{Error, Result};

use super::run::{RunInfo, RunLevel, build_header};
use super::{LevelLayout, ParticleBoxes, PlotfileLayout, SpeciesLayout};
use crate::amrex::files::cell_header::format_boxes;
use crate::amrex::files::extrema::Extrema;
use crate::amrex::files::fab::LINE_LIMIT;
use crate::amrex::files::folder::small_text;
use crate::amrex::files::header::HeaderLevel;
use crate::amrex::files::level::{LevelFiles, header_path};
use crate::amrex::files::names::renamed;
use crate::amrex::files::species::SpeciesFiles;
use crate::amrex::files::text::read_text;
use crate::amrex::plotfile::Plotfile;

impl Plotfile {
    /// The run information.
    pub fn run(&self) -> RunInfo {
        let level = |level: &HeaderLevel| RunLevel {
            step: level.step,
            own_step: level.own_step,
            time: level.time,
        };
        RunInfo {
            version: self.header.version.clone(),
            time: self.header.time,
            coordinates: self.header.coordinates,
            boundary: self.header.boundary,
            levels: self.header.levels.iter().map(level).collect(),
            rest: self.header.rest.clone(),
            text_files: self.text_files().clone(),
            renamed: renamed(self.names(), &self.header.fields),
        }
    }

    /// The layout of the plotfile's files, with which `write_plotfile` writes the same files again. Reads
    /// the text files again.
    ///
    /// # Errors
    /// As `open`.
    pub fn layout(&self) -> Result<PlotfileLayout> {
        let run = self.run();
        let text = read_text(&self.path().join("Header"))?;
        let paths: Vec<_> = self.levels.iter().map(|level| level.path.clone()).collect();
        let header = build_header(self.hierarchy(), self.names(), &run, &paths);
        let boxes: Vec<_> = self
            .levels
            .iter()
            .map(|level| level.header.boxes.clone())
            .collect();
        let precision = [17, 15, 16, 6, 10, 12];
        let precision = precision
            .into_iter()
            .find(|p| header.format(&boxes, *p) == text);
        let levels = self.levels.iter().map(|level| self.level_layout(level));
        let species = self
            .species()
            .iter()
            .filter(|species| species.missing().is_none());
        let species = species.map(|species| {
            let files = self.species_files(&species.name)?;
            species_layout(&species.name, files, &boxes)
        });
        Ok(PlotfileLayout {
            precision: precision.unwrap_or(17),
            header: precision.is_none().then_some(text),
            levels: levels.collect::<Result<_>>()?,
            species: species.collect::<Result<_>>()?,
            run,
        })
    }

    /// The layout as JSON, as `PlotfileLayout::to_json`.
    ///
    /// # Errors
    /// As `layout`.
    pub fn layout_json(&self) -> Result<String> {
        self.layout()?.to_json()
    }

    fn level_layout(&self, level: &LevelFiles) -> Result<LevelLayout> {
        let header = &level.header;
        let has_no_ghosts = header.ghosts == [0; 3];
        let text = read_text(&header_path(self.path(), &level.path)?)?;
        let hex = |values: &[f64]| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            bytes.map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let mut numbers: Vec<_> = level
            .fabs
            .iter()
            .map(|fab| (fab.descriptor.double, fab.descriptor.little))
            .collect();
        if numbers.windows(2).all(|pair| pair[0] == pair[1]) {
            numbers.truncate(1);
        }
        let offsets =
            (!is_in_order(level)).then(|| level.fabs.iter().map(|fab| fab.start).collect());
        Ok(LevelLayout {
            path: level.path.clone(),
            version: header.version,
            how: header.how,
            files: header.files.clone(),
            file: level.fabs.iter().map(|fab| fab.file).collect(),
            // Ghost cells are not written, so FABs with ghost cells become shorter.
            offsets: offsets.filter(|_| has_no_ghosts),
            numbers,
            lines: if has_no_ghosts {
                self.lines(level)?
            } else {
                BTreeMap::new()
            },
            extrema: header.extrema.as_ref().map(|e| [hex(&e.min), hex(&e.max)]),
            text: Some(text).filter(|text| has_no_ghosts && header.format(self.ndim()) != *text),
        })
    }

    /// Lines before FABs that differ from those that current AMReX writes.
    fn lines(&self, level: &LevelFiles) -> Result<BTreeMap<usize, String>> {
        let mut lines = BTreeMap::new();
        for (index, fab) in level
            .fabs
            .iter()
            .enumerate()
            .filter(|(_, fab)| !fab.is_usual)
        {
            let file = self.files.get(&level.file(fab.file))?;
            let len = (fab.line as usize).min(LINE_LIMIT);
            let line = file.start(fab.start, len, "a FAB's line")?;
            lines.insert(index, String::from_utf8_lossy(&line).into_owned());
        }
        Ok(lines)
    }
}

impl PlotfileLayout {
    /// Removes the minima and maxima of the levels whose values have them: `computed` returns those of a level's boxes,
    /// or with `true` those of the level.
    pub fn omit_extrema(&mut self, plotfile: &Plotfile, computed: impl Fn(usize, bool) -> Extrema) {
        for (number, layout) in self.levels.iter_mut().enumerate() {
            let header = &plotfile.levels[number].header;
            if let (Some(stored), Some(is_total)) = (&header.extrema, header.has_totals())
                && computed(number, is_total).is_identical(stored)
            {
                layout.extrema = None;
            }
        }
    }
}

/// True if the FABs of each file are consecutive, in box order.
fn is_in_order(level: &LevelFiles) -> bool {
    level.by_file().into_iter().all(|boxes| {
        let mut end = 0;
        let is_sorted = boxes.windows(2).all(|pair| pair[0] < pair[1]);
        is_sorted
            && boxes.into_iter().all(|index| {
                let fab = &level.fabs[index];
                let is_next = fab.start == end;
                end = fab.start
                    + u64::from(fab.line)
                    + level.bytes(index, fab.descriptor).unwrap_or(0);
                is_next
            })
    })
}

fn species_layout(
    name: &str,
    species: &SpeciesFiles,
    boxes: &[Vec<IndexBox>],
) -> Result<SpeciesLayout> {
    let ndim = species.header.ndim;
    let mut lists = Vec::new();
    for level in 0..species.header.levels.len() {
        let path = species.folder.join(format!("Level_{level}/Particle_H"));
        lists.push(match path.is_file() {
            false => ParticleBoxes::Missing,
            true => {
                let text = read_text(&path)?;
                let usual = boxes
                    .get(level)
                    .is_some_and(|boxes| format_boxes(boxes, ndim) == text);
                if usual {
                    ParticleBoxes::Level
                } else {
                    ParticleBoxes::Text(text)
                }
            }
        });
    }
    Ok(SpeciesLayout {
        name: name.to_owned(),
        header: read_text(&species.folder.join("Header"))?,
        ints: species.record.ints > 0,
        digits: species.digits,
        boxes: lists,
        text_files: text_files_beside(&species.folder)?,
    })
}

/// The text files in a species' folder, except its `Header`.
fn text_files_beside(folder: &Path) -> Result<BTreeMap<String, String>> {
    let io = |e| Error::io(e, folder, "listing a folder of particles");
    let mut text_files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name != "Header"
            && let Some(text) = small_text(&entry.path())
        {
            text_files.insert(name, text);
        }
    }
    Ok(text_files)
}
