//! Bins of histograms: the bin of each row, in any number of dimensions.

use crate::error::{Error, Result};

/// Maximum number of entries of a table.
const MOST_ENTRIES: usize = 1 << 16;

/// Entries of a table for each bin: most entries contain at most one edge.
const ENTRIES_PER_BIN: usize = 4;

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
    steps: Steps,
    /// The number of edges in the steps before each step.
    before: Vec<usize>,
}

/// How values map to steps.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// Steps per unit, from the first edge on.
    Linear(f64),
    /// Steps of `2^shift` representable numbers, which are nearly logarithmic; the bits of the first edge.
    Logarithmic { first: u64, shift: u32 },
}

impl Bins {
    /// Bins with these edges. `is_log` says that their logarithms are about equidistant, otherwise they are themselves; it
    /// affects the time only.
    ///
    /// # Errors
    /// `Invalid` if there are less than two edges, or an edge is not a number or less than the one before.
    pub fn new(edges: Vec<f64>, is_log: bool) -> Result<Self> {
        let is_sorted = edges.windows(2).all(|pair| pair[0] <= pair[1]);
        let (Some(&low), Some(&high), true) =
            (edges.first(), edges.get(1).and(edges.last()), is_sorted)
        else {
            return Err(Error::invalid(format!(
                "invalid edges of bins: {edges:?}; expected at least two increasing numbers"
            )));
        };
        let entries = (edges.len() * ENTRIES_PER_BIN).min(MOST_ENTRIES);
        let steps = if is_log && low > 0.0 {
            let first = low.to_bits();
            let used = u64::BITS - (high.to_bits() - first).leading_zeros();
            let shift = used.saturating_sub(entries.ilog2());
            Steps::Logarithmic { first, shift }
        } else {
            Steps::Linear(entries as f64 / (high - low))
        };
        let mut bins = Self {
            edges,
            low,
            high,
            steps,
            before: vec![0; entries + 1],
        };
        for edge in &bins.edges {
            let step = bins.step(*edge);
            bins.before[step + 1] += 1;
        }
        for step in 1..bins.before.len() {
            bins.before[step] += bins.before[step - 1];
        }
        Ok(bins)
    }

    /// The number of bins.
    pub fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The bin of a value; `None` outside of all bins and for NaN.
    pub fn find(&self, value: f64) -> Option<usize> {
        if !(self.low <= value && value <= self.high) {
            return None;
        }
        let step = self.step(value);
        let (from, to) = (self.before[step], self.before[step + 1]);
        let below = from + self.edges[from..to].partition_point(|edge| *edge <= value);
        Some((below - 1).min(self.count() - 1))
    }

    /// The step of a value between the first and the last edge.
    fn step(&self, value: f64) -> usize {
        let step = match self.steps {
            // NaN, for infinite edges, becomes 0.
            Steps::Linear(scale) => ((value - self.low) * scale) as usize,
            Steps::Logarithmic { first, shift } => ((value.to_bits() - first) >> shift) as usize,
        };
        step.min(self.before.len() - 2)
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
    let total: usize = bins.iter().map(Bins::count).product();
    found.fill(0);
    for (bins, column) in bins.iter().zip(columns) {
        let count = bins.count() as i64;
        for (found, value) in found.iter_mut().zip(*column) {
            // Outside of the bins of an earlier column, it stays negative.
            *found = match bins.find(*value) {
                Some(bin) if *found >= 0 => *found * count + bin as i64,
                _ => -1,
            };
        }
    }
    for found in found.iter_mut().filter(|found| **found < 0) {
        *found = total as i64;
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
