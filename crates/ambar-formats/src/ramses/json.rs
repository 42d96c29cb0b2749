//! Descriptions of an output as JSON, for the attributes of stores and for the bindings.

use serde_json::{Map, Value, json};

use ambar::Result;

use super::component::{Component, MissingReason};
use super::output::Output;

/// The run information under the names of RAMSES.
///
/// # Errors
/// As `Output::root`.
pub fn info(output: &Output) -> Result<Map<String, Value>> {
    let info = output.info();
    let mut json = Map::new();
    let mut add = |name: &str, value: Value| json.insert(name.to_owned(), value);
    add("output", json!(info.number));
    add("ncpu", json!(info.ncpu));
    add("ndim", json!(info.ndim));
    add("levelmin", json!(info.levelmin));
    add("levelmax", json!(info.levelmax));
    add("ngridmax", json!(info.ngridmax));
    add("nstep_coarse", json!(info.nstep_coarse));
    add("boxlen", json!(info.boxlen));
    add("time", json!(info.time));
    add("aexp", json!(info.aexp));
    add("H0", json!(info.h0));
    add("omega_m", json!(info.omega_m));
    add("omega_l", json!(info.omega_l));
    add("omega_k", json!(info.omega_k));
    add("omega_b", json!(info.omega_b));
    add("unit_l", json!(info.unit_l));
    add("unit_d", json!(info.unit_d));
    add("unit_t", json!(info.unit_t));
    add("ordering", json!(info.ordering));
    add("gamma", json!(info.gamma));
    add("cosmological", json!(info.cosmological));
    add("coarse", json!(info.coarse));
    add("nboundary", json!(info.nboundary));
    add("real_bytes", json!(info.real_bytes));
    add("families", pairs(&info.families));
    add("rt", pairs(&info.rt));
    add(
        "namelist",
        json!(info.namelist.as_deref().unwrap_or_default()),
    );
    add("other", pairs(&info.other));
    add("root", json!(output.root()?));
    add("periodic", json!(output.periodic()?));
    Ok(json)
}

fn pairs<T: serde::Serialize>(pairs: &[(String, T)]) -> Value {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

/// The reasons why components are missing, by name.
pub fn missing(components: &[Component]) -> Value {
    let missing = components.iter().filter_map(|component| {
        let why = component.missing.as_ref()?.why();
        Some((component.kind.name().to_owned(), json!(why)))
    });
    Value::Object(missing.collect())
}

/// Every component: `name`, `present`, its `fields`, their `aliases` and `dtypes`, or `why` it is
/// missing.
pub fn components(components: &[Component]) -> Value {
    let all = components.iter().map(|component| {
        let fields: Vec<_> = component.fields.iter().map(|field| &field.name).collect();
        let aliases = component.fields.iter().filter_map(|field| {
            field
                .alias
                .as_ref()
                .map(|alias| (alias.clone(), json!(field.name)))
        });
        let dtypes: Vec<_> = component
            .fields
            .iter()
            .map(|f| f.dtype.to_string())
            .collect();
        json!({
            "name": component.kind.name(),
            "present": component.missing.is_none(),
            "fields": fields,
            "aliases": aliases.collect::<Map<_, _>>(),
            "dtypes": dtypes,
            "why": component.missing.as_ref().map(MissingReason::why),
        })
    });
    all.collect()
}
