//! Stores back into native plotfiles.

use std::path::Path;

use ambar::kinds::amr::PatchAmr;
use ambar::kinds::attributes;
use ambar::kinds::morton::permute;
use ambar::kinds::particles::Particles;
use ambar::kinds::select::Selection;
use ambar::store::{NodeKind, Store};
use ambar::{Column, DataType, Error, ErrorKind, Result};
use serde_json::Value;

use super::convert::{LAYOUT, ORDER, RUN, layout_of, read_text};
use super::layout::Run;
use super::write::{Progress, SpeciesData, WriteRequest, write_plotfile};

/// Writes the snapshot in the group at `path` of a store as a native plotfile at `target`. One that
/// was converted from a plotfile, all of it, becomes the same files again, byte by byte (ghost cells
/// aside); of others the values, boxes and names are the same.
///
/// # Errors
/// `Unsupported` where the snapshot has no patches; `Busy` where `target` exists; `Corrupt`; `Io`;
/// what `progress` returns.
pub fn export(
    store: &Store,
    path: &str,
    target: &Path,
    progress: Option<&Progress<'_>>,
) -> Result<()> {
    let path = path.trim_end_matches('/');
    let cells = PatchAmr::open(store, &format!("{path}/amr")).map_err(|error| {
        let none = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported);
        if !none {
            return error;
        }
        Error::unsupported(
            "expected cells in patches (layout \"patches\") for a plotfile, found none; export the \
             cells of a tree to a file with the suffix .vtkhdf",
        )
        .in_file(store.location())
    })?;
    let layout = layout_of(store, &format!("{path}/{LAYOUT}"))?;
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

fn run(store: &Store, path: &str) -> Result<Run> {
    let Some(text) = read_text(store, path)? else {
        return Ok(Run::default());
    };
    serde_json::from_str(&text).map_err(|error| {
        Error::corrupt(format!("what is told of the run: {error}"))
            .at_node(path)
            .in_file(store.location())
    })
}

type Named = (String, Vec<(String, Column)>);

/// All species in a group, their particles in the order of the files they came from.
fn species(store: &Store, path: &str) -> Result<Vec<Named>> {
    if store.kind(path)? != Some(NodeKind::Group) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for (group, _) in store.children(path)? {
        let name = group.rsplit('/').next().unwrap_or_default().to_owned();
        let particles = attributes::kind(store, &group)?.as_deref() == Some("particles");
        if particles {
            let columns = in_order(store, &group)
                .map_err(|error| error.at_node(&group).in_file(store.location()))?;
            all.push((name, columns));
        }
    }
    Ok(all)
}

fn in_order(store: &Store, group: &str) -> Result<Vec<(String, Column)>> {
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
    let wrong = || {
        Error::corrupt(
            "the places of the particles in the files are no permutation; restore the \
                        file from a copy",
        )
    };
    if *places.dtype() != DataType::UInt32 {
        return Err(wrong());
    }
    let mut order = vec![u32::MAX; places.rows()];
    for (row, place) in (0u32..).zip(places.values::<u32>()) {
        let to = order.get_mut(*place as usize).filter(|to| **to == u32::MAX);
        *to.ok_or_else(wrong)? = row;
    }
    permute(columns.iter_mut().map(|(_, column)| column), &order)?;
    Ok(columns)
}
