//! Progress callbacks: counting work done by many threads, and the share of each phase of a conversion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambar::Result;
use ambar::store::StoreWriter;

/// A progress callback: `(done, total)`, in units that its user documents. An error that it returns
/// cancels the operation, which returns that error.
pub type Progress<'a> = dyn Fn(u64, u64) -> Result<()> + Send + Sync + 'a;

/// Counts units of work done by several threads, and reports them to a callback.
pub struct ProgressCounter<'a> {
    progress: Option<&'a Progress<'a>>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> ProgressCounter<'a> {
    /// A counter from 0 to `total`.
    pub fn new(progress: Option<&'a Progress<'a>>, total: u64) -> Self {
        Self {
            progress,
            done: AtomicU64::new(0),
            total: AtomicU64::new(total),
        }
    }

    /// Adds `units` to the total: more work turned out to be necessary.
    pub fn extend_total(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }

    /// Counts `units` as done, and calls the callback.
    ///
    /// # Errors
    /// Those of the callback.
    pub fn add(&self, units: u64) -> Result<()> {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        match self.progress {
            Some(progress) => progress(done, self.total.load(Ordering::Relaxed)),
            None => Ok(()),
        }
    }
}

/// A phase of a conversion: the hundredths of one input from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Hundredths done when the phase begins.
    pub start: u64,
    /// Hundredths done when it ends.
    pub end: u64,
}

impl Phase {
    /// The phase from `start` to `end` hundredths.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }
}

/// Progress of a conversion of one or several inputs, reported in hundredths of an input.
#[derive(Clone)]
pub struct ConversionProgress {
    progress: Option<Arc<Progress<'static>>>,
    done: u64,
    inputs: u64,
}

impl ConversionProgress {
    /// Progress of a conversion of `inputs` inputs, `done` of which are converted.
    pub fn new(progress: Option<Arc<Progress<'static>>>, done: u64, inputs: u64) -> Self {
        Self {
            progress,
            done,
            inputs,
        }
    }

    /// Reports `hundredths` of the current input.
    ///
    /// # Errors
    /// Those of the callback.
    pub fn report(&self, hundredths: u64) -> Result<()> {
        self.phase(Phase::new(hundredths, hundredths))(0, 1)
    }

    /// A callback that scales its own `(done, total)` to the hundredths of `phase`.
    pub fn phase(
        &self,
        phase: Phase,
    ) -> impl Fn(u64, u64) -> Result<()> + Send + Sync + use<> + 'static {
        let (before, total) = (self.done * 100, self.inputs * 100);
        let progress = self.progress.clone();
        move |part, whole| match &progress {
            Some(progress) => {
                let width = phase.end - phase.start;
                let hundredths = width.saturating_mul(part) / whole.max(1);
                progress(before + phase.start + hundredths, total)
            }
            None => Ok(()),
        }
    }

    /// Makes `writer` report `phase` while it encodes `whole` bytes.
    pub fn observe(&self, writer: &mut StoreWriter, whole: u64, phase: Phase) {
        let (report, encoded) = (self.phase(phase), AtomicU64::new(0));
        writer.observe(Some(Arc::new(move |bytes| {
            let encoded = encoded.fetch_add(bytes, Ordering::Relaxed) + bytes;
            // The last chunk of each array is padded, so the sum can exceed the columns' bytes.
            report(encoded.min(whole), whole)
        })));
    }
}
