//! The store of a series, to which outputs are added.

use std::path::Path;

use ambar::kinds::attributes::{self, KEY};
use ambar::kinds::steps::{begin_output, is_series_of_snapshots};
use ambar::metadata::Attributes;
use ambar::store::StoreWriter;
use ambar::{Error, Result};
use serde_json::Value;

use super::identity::OutputIdentity;
use super::options::StoreOptions;

/// The store of a series that is being extended.
pub struct SeriesTarget<'a> {
    target: &'a Path,
    options: &'a StoreOptions,
    /// `None` only while it is reopened.
    writer: Option<StoreWriter>,
    /// True if the store has committed steps, from an earlier call or this one.
    is_committed: bool,
}

/// What a series knows of the source of a step.
pub struct StoredStep {
    /// `None` for a step that was not converted from files.
    pub fingerprint: Option<String>,
    /// The name of the output's files, if the step has it.
    pub name: Option<String>,
}

impl<'a> SeriesTarget<'a> {
    /// Creates a series, or opens an existing one.
    ///
    /// # Errors
    /// `Invalid` if the store is of another kind; `Exists`, `Busy`, `Io`.
    pub fn open(target: &'a Path, options: &'a StoreOptions) -> Result<Self> {
        let is_committed = options.extends(target)?;
        if is_committed {
            let own = attributes::of_kind(&options.open(target)?, "/", &["series"])?;
            if !is_series_of_snapshots(&Value::Object(own)) {
                return Err(Error::invalid(
                    "expected a series of outputs, found a series of another kind; choose another name",
                )
                .in_file(target.display()));
            }
        }
        let mut series = Self {
            target,
            options,
            writer: None,
            is_committed,
        };
        series.discard()?;
        Ok(series)
    }

    fn writer(&mut self) -> Result<&mut StoreWriter> {
        self.writer.as_mut().ok_or_else(|| {
            Error::invalid(
                "expected a series open for writing, found a closed one; convert it again",
            )
        })
    }

    /// Reopens the store at the last commit, and discards later writes.
    ///
    /// # Errors
    /// As `open`.
    pub fn discard(&mut self) -> Result<()> {
        // The old writer holds the store's lock.
        self.writer = None;
        let writer = if self.is_committed {
            self.options.append(self.target)?
        } else {
            self.options.create(self.target)?
        };
        self.writer = Some(writer);
        Ok(())
    }

    /// Ends writing, as [`StoreWriter::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&mut self) -> Result<()> {
        self.writer()?.finish()
    }

    /// The source of a step; `None` if the step does not exist.
    ///
    /// # Errors
    /// `Corrupt` if its metadata is invalid.
    pub fn stored(&mut self, step: &str) -> Result<Option<StoredStep>> {
        let attributes = self.writer()?.attributes(step)?;
        Ok(attributes.map(|attributes| {
            let own = attributes.get(KEY).and_then(|own| own.get("source"));
            let text = |key: &str| own.and_then(|own| own.get(key)).and_then(Value::as_str);
            StoredStep {
                fingerprint: text("fingerprint").map(str::to_owned),
                name: text("name").map(str::to_owned),
            }
        }))
    }

    /// Adds an output, or replaces the one of the same number, and commits it. `write` writes the group of
    /// which it gets the path.
    ///
    /// # Errors
    /// Those of `write`; `Io`.
    pub fn add(
        &mut self,
        output: &OutputIdentity,
        write: impl FnOnce(&mut StoreWriter, &str) -> Result<()>,
    ) -> Result<()> {
        let (is_committed, settings) = (self.is_committed, &self.options.settings);
        let writer = self.writer()?;
        let step = begin_output(writer, output.number, None)?;
        if !is_committed {
            set_settings(writer, settings)?;
        }
        write(writer, &format!("/{step}"))?;
        writer.set_message(&output.name)?;
        writer.commit()?;
        self.is_committed = true;
        Ok(())
    }
}

/// Stores the options of the conversion in the attributes of a new series.
fn set_settings(writer: &mut StoreWriter, settings: &Attributes) -> Result<()> {
    if settings.is_empty() {
        return Ok(());
    }
    let mut root = writer.attributes("/")?.unwrap_or_default();
    if let Some(Value::Object(own)) = root.get_mut(KEY) {
        own.insert("conversion".into(), Value::Object(settings.clone()));
    }
    writer.group("/", root)
}
