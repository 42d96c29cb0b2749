//! What identifies an output.

/// What identifies an output, known before its files are read.
#[derive(Clone, Debug)]
pub struct OutputIdentity {
    /// The name of its files, as reported.
    pub name: String,
    /// Its number, which names the step.
    pub number: u32,
    /// Bytes of its files.
    pub bytes: u64,
    /// Changes when its files change.
    pub fingerprint: String,
}
