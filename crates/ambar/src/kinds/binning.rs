//! Bins of histograms: the bin of each row, in any number of dimensions.

use crate::error::{Error, Result};

/// Maximum number of edges.
const MAX_EDGES: usize = 1 << 31;

/// Maximum number of steps of a table.
const MAX_STEPS: usize = 1 << 16;

/// Steps of a table for each bin: most of them contain at most one edge.
const STEPS_PER_BIN: usize = 4;

/// The bins of values, half-open except the last one.
///
/// A table of equal steps, in the values or nearly in their logarithms, gives the edges among which the bin of a value is.
/// The step of a value never decreases with the value, so that the comparison with these edges is exact.
///
/// ```
/// use ambar::kinds::binning::Bins;
///
/// let bins = Bins::new(vec![1.0, 10.0, 100.0], true)?;
/// let found = [1.0, 9.9, 10.0, 100.0, 0.5, f64::NAN].map(|value| bins.find(value));
/// assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), None, None]);
/// # Ok::<(), ambar::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bins {
    edges: Vec<f64>,
    low: f64,
    high: f64,
    scale: Scale,
    steps: Vec<Step>,
}

/// How values map to steps.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// Steps per unit, from the first edge on.
    Linear { low: f64, steps: f64 },
    /// Steps of `2^shift` representable numbers, which are nearly logarithmic, from the bits of the first edge on.
    Logarithmic { low: u64, shift: u32 },
}

impl Scale {
    /// The step of a value that is not less than the first edge.
    #[inline]
    fn step(self, value: f64) -> usize {
        match self {
            // NaN, for infinite edges, becomes 0.
            Self::Linear { low, steps } => ((value - low) * steps) as usize,
            Self::Logarithmic { low, shift } => ((value.to_bits() - low) >> shift) as usize,
        }
    }
}

/// A step of the table.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The number of edges in earlier steps.
    before: u32,
    /// The number of edges in this step.
    edges: u32,
    /// The first of them; infinite without edges.
    edge: f64,
}

impl Bins {
    /// Bins with these edges. `is_log` says that their logarithms are about equidistant, otherwise they are themselves; it
    /// affects the time only.
    ///
    /// # Errors
    /// `Invalid` if there are less than two edges, or an edge is not a number or less than the one before; `Limit` for more
    /// than 2^31 edges.
    pub fn new(edges: Vec<f64>, is_log: bool) -> Result<Self> {
        let is_sorted = edges.windows(2).all(|pair| pair[0] <= pair[1]);
        let (Some(&low), Some(&high), true) =
            (edges.first(), edges.get(1).and(edges.last()), is_sorted)
        else {
            return Err(Error::invalid(format!(
                "invalid edges of bins: {edges:?}; expected at least two increasing numbers"
            )));
        };
        if edges.len() > MAX_EDGES {
            return Err(Error::limit(format!(
                "{} edges of bins are more than {MAX_EDGES}; choose fewer",
                edges.len()
            )));
        }
        let count = (edges.len() * STEPS_PER_BIN).min(MAX_STEPS);
        let scale = if is_log && low > 0.0 {
            let used = u64::BITS - (high.to_bits() - low.to_bits()).leading_zeros();
            Scale::Logarithmic {
                low: low.to_bits(),
                shift: used.saturating_sub(count.ilog2()),
            }
        } else {
            Scale::Linear {
                low,
                steps: count as f64 / (high - low),
            }
        };
        let empty = Step {
            before: 0,
            edges: 0,
            edge: f64::INFINITY,
        };
        let mut steps = vec![empty; count];
        for edge in edges.iter().rev() {
            let step = &mut steps[scale.step(*edge).min(count - 1)];
            step.edges += 1;
            step.edge = *edge;
        }
        let mut before = 0;
        for step in &mut steps {
            step.before = before;
            before += step.edges;
        }
        Ok(Self {
            edges,
            low,
            high,
            scale,
            steps,
        })
    }

    /// The number of bins.
    pub fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The bin of a value; `None` outside of all bins and for NaN.
    pub fn find(&self, value: f64) -> Option<usize> {
        self.find_on(self.scale, value)
    }

    /// As `find`; `scale` is that of the bins.
    #[inline]
    fn find_on(&self, scale: Scale, value: f64) -> Option<usize> {
        if !(self.low <= value && value <= self.high) {
            return None;
        }
        let step = &self.steps[scale.step(value).min(self.steps.len() - 1)];
        let mut below = step.before as usize + usize::from(step.edge <= value);
        if step.edges > 1 {
            let inner = &self.edges[step.before as usize..][..step.edges as usize];
            below = step.before as usize + inner.partition_point(|edge| *edge <= value);
        }
        Some((below - 1).min(self.count() - 1))
    }

    /// Appends the bin of each value to those in earlier dimensions, which are negative outside.
    fn append(&self, values: &[f64], found: &mut [i64]) {
        let count = self.count() as i64;
        let mut append = |scale: Scale| {
            for (found, value) in found.iter_mut().zip(values) {
                *found = match self.find_on(scale, *value) {
                    Some(bin) if *found >= 0 => *found * count + bin as i64,
                    _ => -1,
                };
            }
        };
        // A loop for each scale.
        match self.scale {
            Scale::Linear { low, steps } => append(Scale::Linear { low, steps }),
            Scale::Logarithmic { low, shift } => append(Scale::Logarithmic { low, shift }),
        }
    }
}

/// The bin of each row in the product of the bins of `columns`, the last one fastest. Rows outside of the bins of a column
/// have the number of all bins.
///
/// # Errors
/// `Invalid` if there is not one column for each of `bins`, or columns differ in length.
pub fn bin_rows(bins: &[Bins], columns: &[&[f64]], found: &mut [i64]) -> Result<()> {
    if bins.len() != columns.len() || columns.iter().any(|column| column.len() != found.len()) {
        return Err(Error::invalid(format!(
            "expected {} columns of {} rows, found {:?} rows",
            bins.len(),
            found.len(),
            columns
                .iter()
                .map(|column| column.len())
                .collect::<Vec<_>>()
        )));
    }
    found.fill(0);
    for (bins, column) in bins.iter().zip(columns) {
        bins.append(column, found);
    }
    let outside = bins.iter().map(Bins::count).product::<usize>() as i64;
    for found in found.iter_mut() {
        *found = if *found < 0 { outside } else { *found };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_are_between_their_edges(
            mut edges in proptest::collection::vec(prop_oneof![-1e3..1e3, 1e-300..1e300, Just(0.0), Just(f64::INFINITY)], 2..80),
            values in proptest::collection::vec(prop_oneof![-1e3..1e3, 1e-300..1e300, Just(f64::NAN)], 100),
            is_log: bool,
        ) {
            edges.sort_by(f64::total_cmp);
            let bins = Bins::new(edges.clone(), is_log).unwrap();
            for value in values.into_iter().chain(edges.iter().copied()) {
                let is_inside = edges[0] <= value && value <= edges[edges.len() - 1];
                let below = edges.iter().filter(|edge| **edge <= value).count();
                let expected = is_inside.then(|| (below - 1).min(edges.len() - 2));
                prop_assert_eq!(bins.find(value), expected);
            }
        }
    }

    #[test]
    fn rows_are_binned_in_all_columns() {
        let bins = [
            Bins::new(vec![0.0, 1.0, 2.0], false).unwrap(),
            Bins::new(vec![1.0, 10.0, 100.0, 1000.0], true).unwrap(),
        ];
        let x = [0.5, 2.0, 1.0, 3.0, 0.5];
        let y = [1.0, 1000.0, 20.0, 5.0, 0.5];
        let mut found = [0; 5];
        bin_rows(&bins, &[&x, &y], &mut found).unwrap();
        assert_eq!(found, [0, 5, 4, 6, 6]);
        assert!(bin_rows(&bins, &[&x], &mut found).is_err());
        assert!(Bins::new(vec![2.0, 1.0], false).is_err());
        assert!(Bins::new(vec![1.0], false).is_err());
    }
}
