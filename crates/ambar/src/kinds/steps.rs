//! Series that grow by one group at a time: arrays of a running program, and snapshots of a run.

use serde_json::{Value, json};

use super::attributes::{self, KEY};
use crate::error::{Error, Result};
use crate::metadata::Attributes;
use crate::ranks::RankWriter;
use crate::store::{Store, StoreWriter};

/// The kind of the steps, in the attributes of the series.
const OF: &str = "arrays";

/// Creates the group of the next step of the series at `series` (empty or `/`: the root), and the
/// series if it does not exist. The group is visible after the next commit. Returns its path.
///
/// # Errors
/// `Invalid` if the group is of another kind, or `time` is not a finite number.
pub fn begin_step(writer: &mut StoreWriter, series: &str, time: f64) -> Result<String> {
    if !time.is_finite() {
        return Err(Error::invalid(format!(
            "expected a finite number as the time of a step, found {time}"
        )));
    }
    let series = series.trim_matches('/');
    let mut all = writer.attributes(series)?.unwrap_or_default();
    let mut times = match all.get(KEY).filter(|own| own.get("kind").is_some()) {
        None => Vec::new(),
        Some(own) => known_times(own).ok_or_else(|| {
            Error::invalid(
                "expected a series of steps, found a group of another kind; choose another path",
            )
            .at_node(format!("/{series}"))
        })?,
    };
    let step = match series {
        "" => format!("step_{:06}", times.len()),
        _ => format!("{series}/step_{:06}", times.len()),
    };
    times.push(json!(time));
    let mut own = Attributes::new();
    own.insert("of".into(), json!(OF));
    own.insert("times".into(), Value::Array(times));
    all.extend(attributes::group("series", own));
    writer.group(series, all)?;
    let mut of_step = Attributes::new();
    of_step.insert("time".into(), json!(time));
    writer.group(&step, of_step)?;
    Ok(step)
}

/// A step of a series in a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The path of its group.
    pub path: String,
    /// Its time; NaN if it is not known.
    pub time: f64,
}

/// The steps of the series at `series` (empty or `/`: the root), in their order: of arrays, meshes or snapshots.
///
/// # Errors
/// `NotFound` if the group does not exist; `Invalid` if it is not a series; `Corrupt`.
pub fn steps(store: &Store, series: &str) -> Result<Vec<Step>> {
    let series = series.trim_matches('/');
    let below = |name: &str| match series {
        "" => name.to_owned(),
        _ => format!("{series}/{name}"),
    };
    let group = store.group(series)?;
    let own = group.attributes().get(KEY).cloned().unwrap_or_default();
    if own.get("kind").and_then(Value::as_str) != Some("series") {
        return Err(Error::invalid(
            "expected a series of steps, found a group of another kind; choose another path",
        )
        .at_node(format!("/{series}")));
    }
    if is_series_of_snapshots(&own) {
        let mut numbers: Vec<(u32, String)> = (store.children(series)?.into_iter())
            .filter_map(|(path, _)| {
                let name = path.rsplit('/').next()?;
                let number = name.strip_prefix("output_")?.parse().ok()?;
                Some((number, name.to_owned()))
            })
            .collect();
        numbers.sort_unstable();
        let step = |(_, name): (u32, String)| {
            let path = below(&name);
            let group = store.group(&path)?;
            let own = group.attributes().get(KEY);
            let time = own.and_then(|own| own.get("info")?.get("time")?.as_f64());
            let time = time.unwrap_or(f64::NAN);
            Ok(Step { path, time })
        };
        return numbers.into_iter().map(step).collect();
    }
    let times = own.get("times").and_then(Value::as_array);
    let times = times.ok_or_else(|| {
        Error::corrupt("expected a list of times in the attributes of the series")
            .at_node(format!("/{series}"))
    })?;
    let step = |(number, time): (usize, &Value)| Step {
        path: below(&format!("step_{number:06}")),
        time: time.as_f64().unwrap_or(f64::NAN),
    };
    Ok(times.iter().enumerate().map(step).collect())
}

/// The name of the output `number` of a run as a step of a series of snapshots.
pub fn output_name(number: u32) -> String {
    format!("output_{number:05}")
}

/// Begins the step `output_name(number)` of the series of snapshots at the root, and creates the series if
/// the store is empty. A step that exists is removed: the next commit replaces it. Returns the path of the
/// step, whose group does not exist yet. With `name`, such as `plt00010`, a step that exists must have it.
///
/// # Errors
/// `Invalid` if the root is of another kind, or the step has another name.
pub fn begin_output(writer: &mut StoreWriter, number: u32, name: Option<&str>) -> Result<String> {
    let root = writer.attributes("/")?.unwrap_or_default();
    match root.get(KEY) {
        None => {
            let mut root = root;
            root.extend(attributes::group("series", Attributes::new()));
            writer.group("/", root)?;
        }
        Some(own) if is_series_of_snapshots(own) => {}
        Some(own) => {
            let found = own.get("kind").and_then(Value::as_str).unwrap_or("?");
            return Err(Error::invalid(format!(
                "expected a series of outputs, found a store of the kind {found:?}; choose another file"
            )));
        }
    }
    let step = output_name(number);
    if let Some(stored) = writer.attributes(&step)? {
        if let Some(name) = name {
            check_name(&stored, number, name)?;
        }
        writer.remove(&step)?;
    }
    Ok(step)
}

/// Returns an error unless the output with the attributes `stored` has this name.
fn check_name(stored: &Attributes, number: u32, name: &str) -> Result<()> {
    let source = stored.get(KEY).and_then(|own| own.get("source"));
    match source.and_then(|source| source.get("name")) {
        Some(Value::String(found)) if found == name => Ok(()),
        found => Err(Error::invalid(format!(
            "expected an output of the run in the series, whose output {number} is {}, found {name:?}; write it \
             to another store",
            found.unwrap_or(&Value::Null)
        ))),
    }
}

/// True for the `ambar` attributes of a series of snapshots, which has no key `of`.
pub fn is_series_of_snapshots(own: &Value) -> bool {
    own.get("kind").and_then(Value::as_str) == Some("series") && own.get("of").is_none()
}

impl RankWriter {
    /// Begins an output of the series of snapshots at the root, as [`begin_output`], on rank 0; only
    /// returns the path on other ranks.
    ///
    /// # Errors
    /// As [`begin_output`].
    pub fn begin_output(&mut self, number: u32, name: Option<&str>) -> Result<String> {
        self.check_usable()?;
        if self.rank() != 0 {
            return Ok(output_name(number));
        }
        let begun = begin_output(self.store()?, number, name);
        self.record_failure(begun)
    }

    /// Creates the group of the next step of a series, as [`begin_step`], on rank 0. The caller sends
    /// the returned path to the other ranks.
    ///
    /// # Errors
    /// As [`begin_step`]; `Invalid` on a rank other than 0.
    pub fn begin_step(&mut self, series: &str, time: f64) -> Result<String> {
        self.check_usable()?;
        let begun = begin_step(self.store()?, series, time);
        self.record_failure(begun)
    }
}

/// The times of a series of steps by its `ambar` attributes; `None` if it is not one.
fn known_times(own: &Value) -> Option<Vec<Value>> {
    let is = |key: &str, value: &str| own.get(key).and_then(Value::as_str) == Some(value);
    if !is("kind", "series") || !is("of", OF) {
        return None;
    }
    own.get("times").and_then(Value::as_array).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{CreateOptions, Durability};

    #[test]
    fn an_output_is_added_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let snapshot = || {
            let mut source = Attributes::new();
            source.insert("source".into(), json!({"name": "plt00007"}));
            attributes::group("snapshot", source)
        };
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let step = begin_output(&mut writer, 7, Some("plt00007")).unwrap();
        assert_eq!(step, "output_00007");
        writer.group(&step, snapshot()).unwrap();
        writer.group("output_00007/old", Attributes::new()).unwrap();
        writer.commit().unwrap();
        drop(writer);
        let mut writer = StoreWriter::append(&path, Durability::Full).unwrap();
        let error = begin_output(&mut writer, 7, Some("smallplt00007")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(r#"output 7 is "plt00007", found "smallplt00007""#),
            "{error}"
        );
        for (number, name) in [(7, "plt00007"), (100_000, "plt100000")] {
            let step = begin_output(&mut writer, number, Some(name)).unwrap();
            writer.group(&step, snapshot()).unwrap();
        }
        writer.commit().unwrap();
        drop(writer);
        let store = Store::open(&path).unwrap();
        let steps: Vec<_> = store.children("/").unwrap().into_iter().collect();
        let names: Vec<_> = steps.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().all(|name| name.contains("output_")));
        assert!(store.children("output_00007").unwrap().is_empty());
        let paths = super::steps(&store, "").unwrap();
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[1].path, "output_100000");
        assert!(paths[1].time.is_nan());
        let other = folder.path().join("other.ambar");
        let mut writer = StoreWriter::create(&other, &CreateOptions::default()).unwrap();
        begin_step(&mut writer, "", 0.0).unwrap();
        assert!(begin_output(&mut writer, 0, None).is_err());
    }

    #[test]
    fn steps_are_counted_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        assert_eq!(
            begin_step(&mut writer, "run", 0.0).unwrap(),
            "run/step_000000"
        );
        assert_eq!(
            begin_step(&mut writer, "/run/", 0.5).unwrap(),
            "run/step_000001"
        );
        assert!(begin_step(&mut writer, "run", f64::NAN).is_err());
        writer.commit().unwrap();
        drop(writer);
        let mut writer = StoreWriter::append(&path, Durability::Full).unwrap();
        assert_eq!(
            begin_step(&mut writer, "run", 1.0).unwrap(),
            "run/step_000002"
        );
        writer
            .group("other", attributes::group("table", Attributes::new()))
            .unwrap();
        assert!(begin_step(&mut writer, "other", 0.0).is_err());
        assert_eq!(begin_step(&mut writer, "", 0.0).unwrap(), "step_000000");
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        let third = Step {
            path: "run/step_000002".into(),
            time: 1.0,
        };
        assert_eq!(steps(&store, "/run").unwrap()[2], third);
        assert!(steps(&store, "other").is_err());
        assert!(steps(&store, "none").is_err());
        let group = store.group("run").unwrap();
        assert_eq!(group.attributes()[KEY]["times"], json!([0.0, 0.5, 1.0]));
        assert_eq!(
            store.group("run/step_000002").unwrap().attributes()["time"],
            json!(1.0)
        );
    }
}
