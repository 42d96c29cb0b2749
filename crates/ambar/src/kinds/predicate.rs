//! Conditions on values, the `where` of a selection: parsed from text, tried on ranges, then rows.
//!
//! ```text
//! condition  := all { "or" all }
//! all        := one { "and" one }
//! one        := "not" one | "(" condition ")" | comparison
//! comparison := side operator side { operator side }
//! operator   := "<" | "<=" | ">" | ">=" | "==" | "!="
//! side       := field | number
//! ```
//!
//! Of two neighbouring sides one is a field, the other a number: `density > 1e-3`,
//! `0.1 < density <= 3`, `family == 2 and not (age < 0 or metallicity == 0)`. A field is a name of
//! letters, digits, `_` and `.` that does not begin with a digit; any other name stands between
//! backquotes. Numbers are decimal (`3`, `-1.5e3`) or `inf`. Values are compared as the real
//! numbers they are: integers exactly, a float32 after widening, bool as 0 and 1. Comparisons with
//! NaN are false, except for `!=`, which is true.

mod parse;

use crate::dtype::DataType;
use crate::error::Result;
use crate::kinds::numbers::{self, Number, with_number};

/// A condition on the values of fields. The module says how it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// In postfix order: no recursion, however deep the parentheses.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Compare(Comparison),
    And,
    Or,
    Not,
}

/// `field operator number`.
#[derive(Clone, Debug, PartialEq)]
struct Comparison {
    field: String,
    operator: Operator,
    number: Literal,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Literal {
    value: f64,
    /// The number exactly, where it was written as an integer.
    integer: Option<i128>,
}

/// What a condition may be among the rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// It may be true for some row.
    pub may_hold: bool,
    /// It may be false for some row.
    pub may_fail: bool,
}

impl Predicate {
    /// The condition that `text` says.
    ///
    /// # Errors
    /// `Invalid`, with the position of the first character that does not fit and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let steps = parse::steps(text)?;
        Ok(Self { steps })
    }

    /// `lo <= field <= hi`.
    pub(crate) fn between(field: &str, lo: i64, hi: i64) -> Self {
        let compare = |operator, integer: i64| {
            Step::Compare(Comparison {
                field: field.to_owned(),
                operator,
                number: Literal {
                    value: integer as f64,
                    integer: Some(integer.into()),
                },
            })
        };
        Self {
            steps: vec![
                compare(Operator::GreaterEqual, lo),
                compare(Operator::LessEqual, hi),
                Step::And,
            ],
        }
    }

    /// The fields it names, each once, in the order of the text.
    pub fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<&str> = Vec::new();
        for comparison in self.comparisons() {
            if !fields.contains(&comparison.field.as_str()) {
                fields.push(&comparison.field);
            }
        }
        fields
    }

    /// Replaces field names for which `full_name` has another (aliases).
    pub fn rename(&mut self, full_name: impl Fn(&str) -> Option<String>) {
        for step in &mut self.steps {
            if let Step::Compare(comparison) = step
                && let Some(name) = full_name(&comparison.field)
            {
                comparison.field = name;
            }
        }
    }

    fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.steps.iter().filter_map(|step| match step {
            Step::Compare(comparison) => Some(comparison),
            _ => None,
        })
    }

    /// What it may be in a chunk. `range` gives a field's outward-rounded range there and whether it
    /// can hold NaN; `None` if nothing is known.
    pub(crate) fn outcome(
        &self,
        range: impl Fn(&str) -> Result<Option<([f64; 2], bool)>>,
    ) -> Result<Outcome> {
        let unknown = Outcome {
            may_hold: true,
            may_fail: true,
        };
        let mut stack: Vec<Outcome> = Vec::new();
        for step in &self.steps {
            let top = match step {
                Step::Compare(comparison) => match range(&comparison.field)? {
                    Some((range, nan)) => comparison.outcome(range, nan),
                    None => unknown,
                },
                Step::Not => {
                    let one = stack.pop().unwrap_or(unknown);
                    Outcome {
                        may_hold: one.may_fail,
                        may_fail: one.may_hold,
                    }
                }
                Step::And | Step::Or => {
                    let b = stack.pop().unwrap_or(unknown);
                    let a = stack.pop().unwrap_or(unknown);
                    combine(step, a, b)
                }
            };
            stack.push(top);
        }
        Ok(stack.pop().unwrap_or(unknown))
    }

    /// Clears the flags of rows for which it is false. `column` gives a field's type and values of
    /// these rows.
    ///
    /// # Errors
    /// `Invalid` if a field's type is not numeric, and what `column` returns.
    pub(crate) fn narrow<'a>(
        &self,
        mask: &mut [bool],
        column: impl Fn(&str) -> Result<(&'a DataType, &'a [u8])>,
    ) -> Result<()> {
        let mut stack: Vec<Vec<bool>> = Vec::new();
        for step in &self.steps {
            match step {
                Step::Compare(comparison) => {
                    let (dtype, bytes) = column(&comparison.field)?;
                    let mut flags = vec![false; mask.len()];
                    comparison.evaluate(dtype, bytes, &mut flags)?;
                    stack.push(flags);
                }
                Step::Not => {
                    for flag in stack.last_mut().into_iter().flatten() {
                        *flag = !*flag;
                    }
                }
                Step::And | Step::Or => {
                    let other = stack.pop().unwrap_or_default();
                    let both = matches!(step, Step::And);
                    let flags = stack.last_mut().into_iter().flatten();
                    for (flag, other) in flags.zip(other) {
                        *flag = if both { *flag & other } else { *flag | other };
                    }
                }
            }
        }
        for (keep, flag) in mask.iter_mut().zip(stack.pop().unwrap_or_default()) {
            *keep &= flag;
        }
        Ok(())
    }
}

fn combine(step: &Step, a: Outcome, b: Outcome) -> Outcome {
    match step {
        Step::And => Outcome {
            may_hold: a.may_hold && b.may_hold,
            may_fail: a.may_fail || b.may_fail,
        },
        _ => Outcome {
            may_hold: a.may_hold || b.may_hold,
            may_fail: a.may_fail && b.may_fail,
        },
    }
}

impl Comparison {
    fn outcome(&self, [lo, hi]: [f64; 2], nan: bool) -> Outcome {
        // The number may lie between two f64: both are used, each on its safe side.
        let [below, above] = match self.number.integer {
            Some(integer) => numbers::bounds(integer),
            None => [self.number.value; 2],
        };
        if lo > hi {
            return Outcome {
                may_hold: self.operator == Operator::NotEqual,
                may_fail: self.operator != Operator::NotEqual,
            };
        }
        let equal = lo <= above && hi >= below;
        let differs = nan || !(lo == hi && below == above && lo == below);
        let (may_hold, may_fail) = match self.operator {
            Operator::Less => (lo < above, hi >= below || nan),
            Operator::LessEqual => (lo <= above, hi > below || nan),
            Operator::Greater => (hi > below, lo <= above || nan),
            Operator::GreaterEqual => (hi >= below, lo < above || nan),
            Operator::Equal => (equal, differs),
            Operator::NotEqual => (differs, equal),
        };
        Outcome { may_hold, may_fail }
    }

    fn evaluate(&self, dtype: &DataType, bytes: &[u8], flags: &mut [bool]) -> Result<()> {
        with_number!(
            dtype,
            int T => self.evaluate_integers::<T>(bytes, T::MIN.into(), T::MAX.into(), flags),
            float T => self.evaluate_floats::<T>(bytes, flags),
            other => return Err(numbers::not_numeric(&self.field, dtype))
        );
        Ok(())
    }

    /// Each operator is an interval of integers, or all but one, so that one loop serves all.
    fn evaluate_integers<T>(&self, bytes: &[u8], min: i128, max: i128, flags: &mut [bool])
    where
        T: Number + TryFrom<i128>,
    {
        let (floor, ceil) = self.number.floor_ceil();
        let (lo, hi) = match self.operator {
            Operator::Less => (min, ceil.saturating_sub(1)),
            Operator::LessEqual => (min, floor),
            Operator::Greater => (floor.saturating_add(1), max),
            Operator::GreaterEqual => (ceil, max),
            // Empty where the number lies between two integers.
            Operator::Equal | Operator::NotEqual => (ceil, floor),
        };
        let (lo, hi) = (lo.max(min), hi.min(max));
        let negate = self.operator == Operator::NotEqual;
        match (T::try_from(lo), T::try_from(hi)) {
            (Ok(low), Ok(high)) if lo <= hi => {
                for (flag, value) in flags.iter_mut().zip(T::all(bytes)) {
                    *flag = ((low <= value) & (value <= high)) != negate;
                }
            }
            _ => flags.fill(negate),
        }
    }

    fn evaluate_floats<T: Number>(&self, bytes: &[u8], flags: &mut [bool]) {
        fn fill<T: Number>(bytes: &[u8], flags: &mut [bool], test: impl Fn(f64) -> bool) {
            for (flag, value) in flags.iter_mut().zip(T::all(bytes)) {
                *flag = test(value.to_f64());
            }
        }
        let number = self.number.value;
        match self.operator {
            Operator::Less => fill::<T>(bytes, flags, |v| v < number),
            Operator::LessEqual => fill::<T>(bytes, flags, |v| v <= number),
            Operator::Greater => fill::<T>(bytes, flags, |v| v > number),
            Operator::GreaterEqual => fill::<T>(bytes, flags, |v| v >= number),
            Operator::Equal => fill::<T>(bytes, flags, |v| v == number),
            Operator::NotEqual => fill::<T>(bytes, flags, |v| v != number),
        }
    }
}

impl Literal {
    /// The largest integer not above it and the smallest not below it.
    fn floor_ceil(self) -> (i128, i128) {
        match self.integer {
            Some(integer) => (integer, integer),
            None => (self.value.floor() as i128, self.value.ceil() as i128),
        }
    }
}

#[cfg(test)]
mod tests;
