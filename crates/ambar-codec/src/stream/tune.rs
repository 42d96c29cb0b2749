//! Tuning: which plan suits values like those of a sample, tried on a part of it.

use crate::domain::blocks;
use crate::domain::regions::{Layout, volume};
use crate::element::Element;
use crate::error::Result;
use crate::stream::encode::{Input, Workspace, encode_planned, estimate};
use crate::stream::header::Contexts;
use crate::stream::params::Plan;
use crate::stream::prelude::Prelude;

/// The part of the values that each plan is tried on, and the least number.
const PART: usize = 40;
const LEAST: usize = 1 << 13;

/// Chooses settings for values like these: for the chunks of an array, whose samples they are.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune<T: Element>(values: &[T], layout: &Layout<'_>, bound: f64) -> Result<Plan> {
    let contexts = if bound > 0.0 && layout.has_planes() {
        Contexts::Plane
    } else {
        Contexts::Row
    };
    let plan = Plan::default().with_contexts(contexts);
    tune_with(values, layout, bound, plan)
}

/// Chooses settings for streams as small as can be: their contexts come from the row before, so that they
/// take one or two hundredths less, and a fifth more time to decode.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune_small<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
) -> Result<Plan> {
    tune_with(values, layout, bound, Plan::default())
}

/// Chooses settings, of those with the contexts of `plan`.
fn tune_with<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: f64,
    plan: Plan,
) -> Result<Plan> {
    let well = plan.contexts() != Contexts::Row;
    // What makes no sense is refused whatever the part.
    layout.check(values.len())?;
    let input = match layout {
        Layout::Array(shape) => {
            let (shape, part) = busiest_tile(values, shape, bound);
            Input::new(&part, &Layout::Array(&shape), bound, well)?
        }
        Layout::Blocks { side, origins } => {
            blocks::keys(origins, *side)?;
            let cells = volume(*side).unwrap_or(1);
            let (first, end) = busiest_run(values, cells, bound);
            let layout = Layout::Blocks {
                side: *side,
                origins: &origins[first..end],
            };
            Input::new(&values[first * cells..end * cells], &layout, bound, well)?
        }
        Layout::Cells {
            dimensions,
            levels,
            origins,
        } => {
            let (first, end) = busiest_run(&values[..levels.len()], 1, bound);
            let layout = Layout::Cells {
                dimensions: *dimensions,
                levels: &levels[first..end],
                origins: &origins[first..end],
            };
            Input::new(&values[first..end], &layout, bound, well)?
        }
    };
    Ok(choose(
        &input,
        (bound, plan),
        values.len() as f64 / input.count.max(1) as f64,
    ))
}

/// Packed streams are chosen where they are at most so many times as large as quick ones.
const WORTH: f64 = 1.25;
/// Values of a row that both are tried on.
const ROW: usize = 1 << 15;

/// Chooses settings for encoding and decoding as fast as can be: packed streams for arrays, unless they are
/// more than a quarter larger than quick ones; those for all else.
///
/// # Errors
/// As [`encode`](crate::encode).
pub(crate) fn tune_fast<T: Element>(values: &[T], layout: &Layout<'_>, bound: f64) -> Result<Plan> {
    layout.check(values.len())?;
    let Layout::Array(shape) = layout else {
        return Ok(tune(values, layout, bound)?.quick());
    };
    if bound == 0.0 {
        return Ok(Plan::default().quick().packed());
    }
    // Of a row, its middle.
    let row = [values.len().min(ROW)];
    let (values, layout) = match shape.len() {
        1 => (
            &values[(values.len() - row[0]) / 2..][..row[0]],
            &Layout::Array(&row),
        ),
        _ => (values, layout),
    };
    let quick = tune(values, layout, bound)?.quick();
    let mut workspace = Workspace::default();
    let mut size = |plan| -> Result<usize> {
        let (prelude, mut out) = (Prelude::default(), Vec::new());
        encode_planned(
            values,
            layout,
            bound,
            plan,
            &prelude,
            &mut workspace,
            &mut out,
        )?;
        Ok(out.len())
    };
    let (packed, walked) = (size(quick.packed())?, size(quick)?);
    let is_worth = packed as f64 <= WORTH * walked as f64;
    Ok(if is_worth { quick.packed() } else { quick })
}

/// The number of values that plans are tried on.
fn wanted(values: usize) -> usize {
    (values / PART).max(LEAST)
}

/// About how many bits values take, that stand behind each other; of some of them.
fn busyness<T: Element>(values: &[T], bound: f64) -> f64 {
    let inverse = 0.5 / bound.max(f64::MIN_POSITIVE);
    let mut sum = 0.0;
    for eight in values.as_chunks::<8>().0.iter().step_by(4) {
        for pair in eight.windows(2) {
            let steps = (pair[0].to_f64() - pair[1].to_f64()).abs() * inverse;
            // Half the logarithm to base 2, more or less; what is no number counts as nothing.
            sum += if steps < 1e300 {
                ((steps + 1.0).to_bits() >> 51) as f64 - 2046.0
            } else {
                0.0
            };
        }
    }
    sum
}

/// The run of blocks, first and end, that take the most bits.
fn busiest_run<T: Element>(values: &[T], cells: usize, bound: f64) -> (usize, usize) {
    // A power of two from a multiple of it on: most often a cuboid.
    let count = wanted(values.len()).div_ceil(cells).next_power_of_two();
    let all = values.len() / cells;
    let mut best = (-1.0, 0);
    for first in (0..all).step_by(count) {
        let end = (first + count).min(all);
        let busy = busyness(&values[first * cells..end * cells], bound);
        if busy > best.0 {
            best = (busy, first);
        }
    }
    (best.1, (best.1 + count).min(all))
}

/// The tile of an array that takes the most bits: its shape, and a copy.
fn busiest_tile<T: Element>(values: &[T], shape: &[usize], bound: f64) -> (Vec<usize>, Vec<T>) {
    let mut tile = shape.to_vec();
    // The longest dimension is halved until there are no more than wanted.
    while tile.iter().product::<usize>() > wanted(values.len()) {
        if let Some(longest) = tile.iter_mut().max_by_key(|n| **n) {
            *longest = longest.div_ceil(2);
        }
    }
    let mut origins = vec![vec![]];
    for (n, part) in shape.iter().zip(&tile) {
        let firsts = (0..n / part.max(&1)).map(|k| k * part);
        origins = firsts
            .flat_map(|first| {
                origins
                    .iter()
                    .map(move |o: &Vec<usize>| [&o[..], &[first]].concat())
            })
            .collect();
    }
    let (mut best, mut most) = (Vec::new(), -1.0);
    for origin in origins {
        let copy = copy_tile(values, shape, &origin, &tile);
        let busy = busyness(&copy, bound);
        if busy > most {
            (best, most) = (copy, busy);
        }
    }
    (tile, best)
}

fn copy_tile<T: Element>(
    values: &[T],
    shape: &[usize],
    origin: &[usize],
    tile: &[usize],
) -> Vec<T> {
    let mut rows = vec![0];
    for d in 0..shape.len() - 1 {
        let range = origin[d]..origin[d] + tile[d];
        rows = rows
            .iter()
            .flat_map(|row| range.clone().map(move |k| row * shape[d] + k))
            .collect();
    }
    let Some(((n, first), length)) = shape.last().zip(origin.last()).zip(tile.last()) else {
        return Vec::new();
    };
    rows.iter()
        .flat_map(|row| &values[row * n + first..][..*length])
        .copied()
        .collect()
}

/// The plan, with the contexts of `plan`, under which values of which the sample is one part in `scale` take the fewest bits.
fn choose<T: Element>(sample: &Input<T>, (bound, plan): (f64, Plan), scale: f64) -> Plan {
    let mut workspace = Workspace::default();
    let mut bits = |plan| estimate(sample, bound, plan, scale, &mut workspace);
    let mut best = plan.with_tightening(u8::from(bound > 0.0));
    let mut least = bits(best);
    for level in 0..2 {
        let plan = best.with_linear(level);
        let bits = bits(plan);
        if bits < least {
            (best, least) = (plan, bits);
        }
    }
    if bound > 0.0 {
        let loosest = best.with_tightening(0);
        for tightening in 2..4 {
            let plan = best.with_tightening(tightening);
            let bits = bits(plan);
            if bits > least {
                break;
            }
            (best, least) = (plan, bits);
        }
        // A part has less of the coarse levels than all, and shows less of what tightening is good for.
        if best == loosest.with_tightening(1) && bits(loosest) < 0.995 * least {
            best = loosest;
        }
    }
    best
}
