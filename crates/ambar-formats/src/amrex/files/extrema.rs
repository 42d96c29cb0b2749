//! Minima and maxima of values, as `Cell_H` has them.

/// Minima and maxima: one row per box (or one row for the level), one column per component.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Extrema {
    /// Minima, row by row.
    pub min: Vec<f64>,
    /// Maxima, row by row.
    pub max: Vec<f64>,
}

/// Minimum and maximum of some values. NaN is ignored, and -0 is less than 0, so that the order of the values does not
/// matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    pub min: f64,
    pub max: f64,
}

impl Extrema {
    /// The extrema of a level from the ranges of its boxes, one row per box: all rows, or with `is_total` one for the
    /// level.
    pub fn of_boxes(rows: &[Vec<ValueRange>], components: usize, is_total: bool) -> Self {
        let mut totals = vec![ValueRange::EMPTY; components];
        let each: Vec<ValueRange> = match is_total {
            false => rows.concat(),
            true => {
                for row in rows {
                    for (total, range) in totals.iter_mut().zip(row) {
                        *total = total.join(*range);
                    }
                }
                totals
            }
        };
        Self {
            min: each.iter().map(|range| range.min).collect(),
            max: each.iter().map(|range| range.max).collect(),
        }
    }

    /// Whether all numbers have the same bits.
    pub fn is_identical(&self, other: &Self) -> bool {
        let same = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        same(&self.min, &other.min) && same(&self.max, &other.max)
    }
}

impl ValueRange {
    /// The range of no values.
    pub const EMPTY: Self = Self {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
    };

    /// The range of values in native byte order: doubles or singles.
    pub fn of(values: &[u8], is_double: bool) -> Self {
        match is_double {
            true => Self::of_numbers(values.as_chunks().0, |bytes| f64::from_ne_bytes(*bytes)),
            false => Self::of_numbers(values.as_chunks().0, |bytes| {
                f64::from(f32::from_ne_bytes(*bytes))
            }),
        }
    }

    fn of_numbers<T>(values: &[T], number: impl Fn(&T) -> f64) -> Self {
        let mut range = Self::EMPTY;
        for value in values {
            let value = number(value);
            range.min = range.min.min(value);
            range.max = range.max.max(value);
        }
        let has_zero = |is_negative: bool| {
            let mut numbers = values.iter().map(&number);
            numbers.any(|value| value == 0.0 && value.is_sign_negative() == is_negative)
        };
        if range.min == 0.0 {
            range.min = if has_zero(true) { -0.0 } else { 0.0 };
        }
        if range.max == 0.0 {
            range.max = if has_zero(false) { 0.0 } else { -0.0 };
        }
        range
    }

    /// The range of the values of both.
    pub fn join(self, other: Self) -> Self {
        let is_less = |a: f64, b: f64| a < b || (a == b && a.is_sign_negative());
        Self {
            min: if is_less(other.min, self.min) {
                other.min
            } else {
                self.min
            },
            max: if is_less(self.max, other.max) {
                other.max
            } else {
                self.max
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_depend_on_the_order_of_zeros() {
        let bytes = |values: &[f64]| {
            values
                .iter()
                .flat_map(|x| x.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        let of = |values: &[f64]| ValueRange::of(&bytes(values), true);
        let bits = |range: ValueRange| [range.min.to_bits(), range.max.to_bits()];
        let expected = [(-0.0f64).to_bits(), 0.0f64.to_bits()];
        for values in [[0.0, -0.0, f64::NAN], [f64::NAN, -0.0, 0.0]] {
            assert_eq!(bits(of(&values)), expected);
            let [a, b, c] = values.map(|value| of(&[value]));
            assert_eq!(bits(a.join(b).join(c)), expected);
            assert_eq!(bits(c.join(b.join(a))), expected);
        }
        assert_eq!(
            of(&[2.0, -3.0, 1.0]),
            ValueRange {
                min: -3.0,
                max: 2.0
            }
        );
        assert_eq!(of(&[]), ValueRange::EMPTY);
        let single = ValueRange::of(&1.5f32.to_ne_bytes(), false);
        assert_eq!(single, ValueRange { min: 1.5, max: 1.5 });
    }
}
