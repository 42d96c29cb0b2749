//! Python bindings: each function converts arguments, calls the library, and converts the result.

mod amrex;
mod arrow;
mod binning;
mod bound;
mod cells;
mod codec;
mod computed;
mod condition;
mod conversion;
mod errors;
mod exclusive_writer;
mod json;
mod kinds;
mod memory;
mod progress;
mod ramses;
mod ranks;
mod region;
mod regions;
mod render;
mod spec;
mod store;
mod threads;
mod writer;

use pyo3::prelude::*;

/// The default number of threads of a call.
#[pyfunction]
fn default_threads() -> usize {
    ambar::parallel::default_threads()
}

/// The memory limit of this process in bytes.
#[pyfunction]
fn memory_limit() -> u64 {
    ambar::memory_limit()
}

/// Sets the memory limit, or resets it to that of the machine if `limit` is None. Returns the previous limit.
#[pyfunction]
fn set_memory_limit(limit: Option<u64>) -> Option<u64> {
    ambar::set_memory_limit(limit)
}

/// The compiled part of the package `ambar`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    ambar::process::prepare();
    errors::register(module)?;
    memory::register(module)?;
    json::register(module.py())?;
    module.add_class::<store::Store>()?;
    module.add_class::<store::ReadAhead>()?;
    module.add_class::<store::Array>()?;
    module.add_class::<store::ChunkRange>()?;
    module.add_class::<spec::ArraySpec>()?;
    module.add_class::<writer::Writer>()?;
    module.add_class::<ranks::Blocks>()?;
    module.add_class::<ranks::RankWriter>()?;
    module.add_class::<regions::SharedCommit>()?;
    module.add_class::<regions::RegionWriter>()?;
    module.add_class::<cells::Amr>()?;
    module.add_class::<kinds::Table>()?;
    module.add_class::<condition::Condition>()?;
    module.add_class::<computed::ComputedColumns>()?;
    module.add_function(wrap_pyfunction!(computed::expression_fields, module)?)?;
    module.add_class::<condition::Quantity>()?;
    module.add_class::<region::Region>()?;
    module.add_class::<render::Camera>()?;
    module.add_class::<binning::Binning>()?;
    module.add_class::<ramses::Ramses>()?;
    codec::register(module)?;
    module.add_class::<bound::PartBound>()?;
    module.add_function(wrap_pyfunction!(bound::error_bound, module)?)?;
    module.add_function(wrap_pyfunction!(bound::select_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(bound::refuse_bound_of, module)?)?;
    module.add_function(wrap_pyfunction!(bound::bound_needs_range, module)?)?;
    module.add_function(wrap_pyfunction!(bound::bound_parts, module)?)?;
    module.add_function(wrap_pyfunction!(bound::lossy_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(bound::format_bound, module)?)?;
    module.add_class::<amrex::Amrex>()?;
    module.add_class::<amrex::Patches>()?;
    module.add_function(wrap_pyfunction!(arrow::arrow_stream, module)?)?;
    module.add_function(wrap_pyfunction!(default_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads::check_argument, module)?)?;
    module.add_function(wrap_pyfunction!(memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(set_memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(ramses::convert_ramses, module)?)?;
    module.add_function(wrap_pyfunction!(amrex::convert_amrex, module)?)?;
    module.add_function(wrap_pyfunction!(amrex::export_amrex, module)?)?;
    module.add_function(wrap_pyfunction!(amrex::is_plotfile, module)?)?;
    module.add_function(wrap_pyfunction!(store::compact, module)?)?;
    module.add_function(wrap_pyfunction!(store::repair, module)?)
}
