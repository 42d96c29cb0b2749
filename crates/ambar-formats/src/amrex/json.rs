//! Descriptions of a plotfile as JSON, for the attributes of stores and for the bindings.

use ambar::kinds::amr::patches::{IndexBox, PatchSource};
use serde_json::{Map, Value, json};

use super::files::number_text::json as number;
use super::plotfile::{Plotfile, Species};

/// The run information: `format`, `ndim`, `time`, `steps`, `coordinates` (`cartesian`, `cylindrical` or
/// `spherical`), `aexp` (`comoving_a` of Nyx, else null), `lower`, `upper`, `fields`, `dtype`, `levels`
/// (each with `domain`, inclusive `lo` and `hi`, `cell_size`, `ratio` to the next level, number of
/// `boxes` and `cells`, `ghosts`), `particles`, names of `text_files`, entries that are `left_out` with the
/// reasons, `files` and `bytes`.
pub fn info(plotfile: &Plotfile) -> Map<String, Value> {
    let ndim = plotfile.ndim();
    let hierarchy = plotfile.hierarchy();
    let mut json = Map::new();
    let mut add = |name: &str, value: Value| json.insert(name.to_owned(), value);
    add("format", json!(plotfile.version()));
    add("ndim", json!(ndim));
    add("time", number(plotfile.time()));
    add("steps", json!(plotfile.steps()));
    let coordinates = ["cartesian", "cylindrical", "spherical"];
    add(
        "coordinates",
        json!(coordinates.get(plotfile.coordinates() as usize)),
    );
    let aexp = plotfile.text_files().get("comoving_a");
    let aexp = aexp.and_then(|text| text.trim().parse::<f64>().ok());
    add("aexp", json!(aexp));
    add("lower", json!(hierarchy.lower[..ndim]));
    add("upper", json!(hierarchy.upper[..ndim]));
    add("fields", json!(plotfile.names()));
    let dtype = plotfile
        .names()
        .first()
        .and_then(|name| plotfile.dtype(name).ok());
    add("dtype", json!(dtype.map(|dtype| dtype.to_string())));
    let levels = hierarchy.levels.iter().enumerate().map(|(number, level)| {
        let cells: u64 = level.boxes.iter().map(|cells| cells.cells() as u64).sum();
        json!({
            "domain": corners(&level.domain, ndim),
            "cell_size": level.cell_size[..ndim],
            "ratio": level.ratio[..ndim],
            "boxes": level.boxes.len(),
            "cells": cells,
            "ghosts": plotfile.ghosts(number)[..ndim],
        })
    });
    add("levels", levels.collect());
    add("particles", components(plotfile.species()));
    add(
        "text_files",
        plotfile
            .text_files()
            .keys()
            .map(|name| json!(name))
            .collect(),
    );
    let ignored = plotfile.ignored().iter();
    add(
        "left_out",
        ignored
            .map(|entry| (entry.name.clone(), json!(entry.why)))
            .collect(),
    );
    let usage = plotfile.usage();
    add("files", json!(usage.files));
    add("bytes", json!(usage.bytes));
    json
}

/// Every species: `name`, `present`, its `version`, number of `particles`, `fields` and their
/// `dtypes`, or `why` it cannot be read.
pub fn components(species: &[Species]) -> Value {
    let all = species.iter().map(|species| {
        let (fields, dtypes): (Vec<_>, Vec<_>) = species
            .columns()
            .into_iter()
            .map(|(name, dtype)| (name, dtype.to_string()))
            .unzip();
        json!({
            "name": species.name,
            "present": species.missing().is_none(),
            "version": species.version(),
            "particles": species.particles(),
            "fields": fields,
            "dtypes": dtypes,
            "why": species.missing(),
        })
    });
    all.collect()
}

fn corners(cells: &IndexBox, ndim: usize) -> Value {
    let hi: Vec<_> = cells.hi.iter().take(ndim).map(|hi| hi - 1).collect();
    json!({"lo": cells.lo[..ndim], "hi": hi})
}
