//! Prediction: the traversal of lattices, interpolation along them, and contexts of residuals.

pub(crate) mod batch;
pub(crate) mod batch_geometry;
pub(crate) mod context;
pub(crate) mod diagonals;
pub(crate) mod differences;
pub(crate) mod extrapolate;
pub(crate) mod interpolate;
pub(crate) mod interpolation;
pub(crate) mod mask_pyramid;
pub(crate) mod presence;
pub(crate) mod reconstruct;
pub(crate) mod row;
pub(crate) mod traversal;
