//! Arguments and report that conversions of all formats share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ambar::Error;
use ambar_formats::series::{ConvertReport, OnError, StoreOptions};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::json::JsonObject;
use crate::progress::{Progress, check_cancelled};
use crate::writer::durability;

/// How a store of outputs is written, as a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct StoreArguments {
    durability: String,
    overwrite: bool,
    storage_options: BTreeMap<String, String>,
    on_error: String,
    settings: JsonObject,
}

impl StoreArguments {
    /// The options of a conversion that reports to `progress`.
    pub fn options(self, progress: &Arc<Progress>) -> PyResult<StoreOptions> {
        let reported = Arc::clone(progress);
        Ok(StoreOptions {
            durability: durability(&self.durability)?,
            overwrite: self.overwrite,
            storage: self.storage_options,
            on_error: on_error(&self.on_error)?,
            settings: self.settings.0,
            progress: Some(Arc::new(move |done, total| {
                check_cancelled(reported.report(done, total))
            })),
        })
    }
}

fn on_error(name: &str) -> PyResult<OnError> {
    match name {
        "stop" => Ok(OnError::Stop),
        "skip" => Ok(OnError::Skip),
        other => Err(Error::invalid(format!(
            "invalid on_error={other:?}; must be \"stop\" or \"skip\""
        )))
        .or_raise(),
    }
}

/// The report of a conversion, as a dictionary.
#[derive(IntoPyObject)]
pub struct ConversionReport {
    source_bytes: u64,
    stored_bytes: u64,
    seconds: f64,
    converted: Vec<String>,
    replaced: Vec<String>,
    skipped: Vec<String>,
    failed: BTreeMap<String, String>,
    left_out: BTreeMap<String, String>,
}

impl ConversionReport {
    /// The report of a conversion that began at `start`.
    pub fn new(report: ConvertReport, start: Instant) -> Self {
        Self {
            source_bytes: report.source_bytes,
            stored_bytes: report.stored_bytes,
            seconds: start.elapsed().as_secs_f64(),
            converted: report.converted,
            replaced: report.replaced,
            skipped: report.skipped,
            failed: report.failed.into_iter().collect(),
            left_out: report.left_out.into_iter().collect(),
        }
    }
}
