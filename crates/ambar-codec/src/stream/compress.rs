//! Encoding by a given plan, or by one that is tuned to the values.

use crate::domain::regions::Layout;
use crate::element::Element;
use crate::error::Result;
use crate::stream::encode::{Workspace, encode_planned};
use crate::stream::params::Plan;
use crate::stream::tune::tune;

/// Encodes `values`, none of which will differ by more than `bound` (absolute; 0: not at all).
///
/// NaN, infinities and other values that cannot be predicted come back bit for bit. `plan` is what
/// [`tune`] chose; `None` chooses for these values.
///
/// # Errors
/// `Invalid` where the layout does not fit the values, or the bound is no finite number from 0 on.
pub fn encode<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    plan: Option<Plan>,
    workspace: &mut Workspace<T>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_into(values, layout, bound, plan, workspace, &mut out)?;
    Ok(out)
}

/// The same, into `out`, whose memory is used again and whose content is lost.
///
/// # Errors
/// As [`encode`].
pub fn encode_into<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    plan: Option<Plan>,
    workspace: &mut Workspace<T>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let plan = match plan {
        Some(plan) => plan,
        None => tune(values, layout, bound)?,
    };
    encode_planned(values, layout, bound, plan, workspace, out)
}
