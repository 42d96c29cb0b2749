//! Vector instructions: chosen when a loop is called, by what the processor has.

pub(crate) mod compact;
#[cfg(target_arch = "x86_64")]
mod compact_avx512;
pub(crate) mod dispatch;
