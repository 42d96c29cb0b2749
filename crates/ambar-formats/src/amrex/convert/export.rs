//! Exporting a snapshot in a store to a native plotfile.

use std::path::Path;

use ambar::kinds::amr::PatchAmr;
use ambar::kinds::attributes;
use ambar::kinds::morton::permute;
use ambar::kinds::particles::Particles;
use ambar::kinds::select::Selection;
use ambar::store::{NodeKind, Store};
use ambar::{Column, DataType, Error, ErrorKind, Result};
use serde_json::Value;

use super::stored::{LAYOUT, ORDER, RUN, read_layout, read_text};
use crate::amrex::layout::run::RunInfo;
use crate::amrex::write::request::{SpeciesData, WriteRequest};
use crate::amrex::write::write_plotfile;
use crate::progress::Progress;

/// Writes the snapshot in the group at `path` of a store as a native plotfile at `target`. A snapshot of
/// a completely converted plotfile becomes the same files again, byte for byte (except ghost cells);
/// other snapshots keep values, boxes and names.
///
/// # Errors
/// `Unsupported` if the snapshot has no patches; `Exists` if `target` exists; `Corrupt`; `Io`; those of
/// `progress`.
pub fn export(
    store: &Store,
    path: &str,
    target: &Path,
    progress: Option<&Progress<'_>>,
) -> Result<()> {
    let path = path.trim_end_matches('/');
    let cells = PatchAmr::open(store, &format!("{path}/amr")).map_err(|error| {
        let has_no_patches = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported);
        if !has_no_patches {
            return error;
        }
        Error::unsupported(
            "expected cells in patches for a plotfile, found none; export the \
             cells of a tree to a file with the suffix .vtkhdf",
        )
        .in_file(store.location())
    })?;
    let layout = read_layout(store, &format!("{path}/{LAYOUT}"))?;
    let run = match &layout {
        Some(layout) => layout.run.clone(),
        None => run(store, &format!("{path}/{RUN}"))?,
    };
    let particles = species(store, &format!("{path}/particles"))?;
    let species: Vec<SpeciesData<'_>> = particles
        .iter()
        .map(|(name, columns)| SpeciesData { name, columns })
        .collect();
    let request = WriteRequest {
        source: &cells,
        run: &run,
        layout: layout.as_ref(),
        species: &species,
        progress,
    };
    write_plotfile(target, &request)
}

fn run(store: &Store, path: &str) -> Result<RunInfo> {
    let Some(text) = read_text(store, path)? else {
        return Ok(RunInfo::default());
    };
    serde_json::from_str(&text).map_err(|error| {
        Error::corrupt(format!(
            "invalid run information of a plotfile: {error}; restore the file from a copy"
        ))
        .at_node(path)
        .in_file(store.location())
    })
}

/// Name and columns of a species.
type NamedSpecies = (String, Vec<(String, Column)>);

/// All species in a group, with their particles in the order of the original files.
fn species(store: &Store, path: &str) -> Result<Vec<NamedSpecies>> {
    if store.kind(path)? != Some(NodeKind::Group) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for (group, _) in store.children(path)? {
        let name = group.rsplit('/').next().unwrap_or_default().to_owned();
        let is_species = attributes::kind(store, &group)?.as_deref() == Some("particles");
        if is_species {
            let columns = read_in_file_order(store, &group)
                .map_err(|error| error.at_node(&group).in_file(store.location()))?;
            all.push((name, columns));
        }
    }
    Ok(all)
}

fn read_in_file_order(store: &Store, group: &str) -> Result<Vec<(String, Column)>> {
    let particles = Particles::open(store, group)?;
    let names: Vec<&str> = particles.columns().iter().map(String::as_str).collect();
    let mut columns = particles.read(&names, &Selection::default())?;
    let order = particles
        .table()
        .attributes()
        .get(ORDER)
        .and_then(Value::as_str);
    let Some(place) = columns.iter().position(|(name, _)| Some(&**name) == order) else {
        return Ok(columns);
    };
    let (_, places) = columns.remove(place);
    let invalid = || {
        Error::corrupt(
            "expected a permutation as the rows of the particles in the files, found another column; \
             restore the file from a copy",
        )
    };
    if *places.dtype() != DataType::UInt32 {
        return Err(invalid());
    }
    let mut order = vec![u32::MAX; places.rows()];
    for (row, place) in (0u32..).zip(places.values::<u32>()) {
        let to = order.get_mut(*place as usize).filter(|to| **to == u32::MAX);
        *to.ok_or_else(invalid)? = row;
    }
    permute(columns.iter_mut().map(|(_, column)| column), &order)?;
    Ok(columns)
}
