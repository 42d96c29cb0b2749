//! Interval arithmetic: whether a condition can be true or false in a chunk, from the value ranges
//! of its fields.
//!
//! Additions, products, quotients and square roots are correctly rounded, and rounding is monotonic.
//! Bounds computed in float64 are therefore bounds of all values computed in float64. Powers and
//! logarithms are not correctly rounded: their bounds are widened.

use super::tree::{Arithmetic, Function, Items, Literal, Node, Operator, Tree};
use crate::error::Result;

/// Which values a condition can have among the rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// It may be true for some row.
    pub may_hold: bool,
    /// It may be false for some row.
    pub may_fail: bool,
}

/// The range of a node's values in a chunk.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// `lo > hi` if there is no number.
    lo: f64,
    hi: f64,
    /// Whether values can be NaN.
    nan: bool,
}

/// The range of a number, or the possible values of a condition.
#[derive(Clone, Copy)]
enum Known {
    Number(Interval),
    Condition(Outcome),
}

const UNKNOWN: Outcome = Outcome {
    may_hold: true,
    may_fail: true,
};

/// As `Condition::outcome`.
pub(super) fn outcome(
    tree: &Tree,
    range: impl Fn(&str) -> Result<Option<([f64; 2], bool)>>,
) -> Result<Outcome> {
    Ok(match root(tree, range)? {
        Some(Known::Condition(outcome)) => outcome,
        _ => UNKNOWN,
    })
}

/// As `Expression::range`.
pub(super) fn range(tree: &Tree, range: impl Fn(&str) -> Option<([f64; 2], bool)>) -> [f64; 2] {
    match root(tree, |name| Ok(range(name))) {
        Ok(Some(Known::Number(interval))) => [interval.lo, interval.hi],
        _ => [f64::NEG_INFINITY, f64::INFINITY],
    }
}

/// What is known of the root's values.
fn root(
    tree: &Tree,
    range: impl Fn(&str) -> Result<Option<([f64; 2], bool)>>,
) -> Result<Option<Known>> {
    let mut known: Vec<Known> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let number = |node: usize| match known[node] {
            Known::Number(interval) => interval,
            Known::Condition(_) => Interval::ANY,
        };
        let condition = |node: usize| match known[node] {
            Known::Condition(outcome) => outcome,
            Known::Number(_) => UNKNOWN,
        };
        let next = match node {
            Node::Field(field) => Known::Number(match range(&tree.fields[*field])? {
                Some(([lo, hi], nan)) if !lo.is_nan() && !hi.is_nan() => Interval { lo, hi, nan },
                _ => Interval::ANY,
            }),
            Node::Number(literal) => {
                let value = literal.literal.value;
                Known::Number(Interval::new(value, value))
            }
            Node::Text(_) => Known::Number(Interval::ANY),
            Node::Negate(a) => {
                let Interval { lo, hi, nan } = number(*a);
                let (lo, hi) = (-hi, -lo);
                Known::Number(Interval { lo, hi, nan })
            }
            Node::Call(function, a) => Known::Number(number(*a).call(*function)),
            Node::Binary(operator, a, b) => Known::Number(number(*a).binary(*operator, number(*b))),
            Node::Compare(operator, a, b) => {
                let second = match (&tree.nodes[*a], &tree.nodes[*b]) {
                    // Fields of integers compare exactly: the number may be between two f64.
                    (Node::Field(_), Node::Number(exact)) => Interval::around(exact.literal),
                    _ => number(*b),
                };
                Known::Condition(number(*a).compare(*operator, second))
            }
            Node::In {
                value,
                items,
                negated,
            } => {
                let outcome = number(*value).within(items);
                Known::Condition(if *negated { outcome.negated() } else { outcome })
            }
            Node::Not(a) => Known::Condition(condition(*a).negated()),
            Node::And(a, b) => Known::Condition(condition(*a).and(condition(*b))),
            Node::Or(a, b) => {
                let neither = condition(*a).negated().and(condition(*b).negated());
                Known::Condition(neither.negated())
            }
        };
        known.push(next);
    }
    Ok(known.pop())
}

impl Outcome {
    fn negated(self) -> Self {
        Self {
            may_hold: self.may_fail,
            may_fail: self.may_hold,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            may_hold: self.may_hold && other.may_hold,
            may_fail: self.may_fail || other.may_fail,
        }
    }
}

impl Interval {
    const ANY: Self = Self {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
        nan: true,
    };
    /// Only NaN.
    const NAN: Self = Self {
        lo: f64::INFINITY,
        hi: f64::NEG_INFINITY,
        nan: true,
    };

    fn new(lo: f64, hi: f64) -> Self {
        Self { lo, hi, nan: false }
    }

    fn around(literal: Literal) -> Self {
        let [lo, hi] = literal.bounds();
        Self::new(lo, hi)
    }

    fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    fn is_infinite(self) -> bool {
        self.lo.is_infinite() || self.hi.is_infinite()
    }

    /// From the smallest to the largest of these values; `ANY` if one of them is NaN.
    fn hull(values: &[f64]) -> Self {
        if values.iter().any(|value| value.is_nan()) {
            return Self::ANY;
        }
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::new(lo, hi)
    }

    fn with_nan(self, nan: bool) -> Self {
        Self {
            nan: self.nan || nan,
            ..self
        }
    }

    /// Widened by four units in the last place at each end.
    fn widened(self) -> Self {
        let (mut lo, mut hi) = (self.lo, self.hi);
        for _ in 0..4 {
            (lo, hi) = (lo.next_down(), hi.next_up());
        }
        Self { lo, hi, ..self }
    }

    fn call(self, function: Function) -> Self {
        if self.is_empty() {
            return Self::NAN;
        }
        let Self { lo, hi, nan } = self;
        match function {
            Function::Abs if self.contains(0.0) => Self {
                lo: 0.0,
                hi: hi.max(-lo),
                nan,
            },
            Function::Abs => Self::hull(&[lo.abs(), hi.abs()]).with_nan(nan),
            _ if hi < 0.0 => Self::NAN,
            Function::Sqrt => Self::new(lo.max(0.0).sqrt(), hi.sqrt()).with_nan(nan || lo < 0.0),
            Function::Log10 => Self::new(lo.max(0.0).log10(), hi.log10())
                .widened()
                .with_nan(nan || lo < 0.0),
        }
    }

    fn binary(self, operator: Arithmetic, other: Self) -> Self {
        if operator == Arithmetic::Power {
            return self.power(other);
        }
        if self.is_empty() || other.is_empty() {
            return Self::NAN;
        }
        let (a, b) = (self, other);
        // Each operator is monotonic in each operand: its extremes are at the ends.
        let ends = |apply: fn(f64, f64) -> f64| {
            Self::hull(&[
                apply(a.lo, b.lo),
                apply(a.lo, b.hi),
                apply(a.hi, b.lo),
                apply(a.hi, b.hi),
            ])
        };
        let found = match operator {
            Arithmetic::Add => ends(|a, b| a + b),
            Arithmetic::Subtract => ends(|a, b| a - b),
            Arithmetic::Multiply => {
                let nan = |a: Self, b: Self| a.contains(0.0) && b.is_infinite();
                ends(|a, b| a * b).with_nan(nan(a, b) || nan(b, a))
            }
            Arithmetic::Divide if b.contains(0.0) => Self::ANY,
            Arithmetic::Divide => ends(|a, b| a / b),
            Arithmetic::Min => ends(f64::min),
            Arithmetic::Max => ends(f64::max),
            Arithmetic::Power => Self::ANY,
        };
        found.with_nan(a.nan || b.nan)
    }

    fn power(self, exponent: Self) -> Self {
        let (a, b) = (self, exponent);
        let nan = a.nan || b.nan;
        // NaN to the power of 0 is 1, and so is 1 to the power of NaN.
        let may_be_one = (a.nan && b.contains(0.0)) || (b.nan && a.contains(1.0));
        let with_one = |found: Self| match may_be_one {
            true => Self::new(found.lo.min(1.0), found.hi.max(1.0)).with_nan(true),
            false => found,
        };
        if a.is_empty() || b.is_empty() {
            return with_one(Self::NAN);
        }
        let found = if b.lo == b.hi && b.lo > 0.0 && b.lo % 1.0 == 0.0 {
            let ends = [a.lo, a.hi].map(|end| end.powf(b.lo));
            // Even powers have their minimum at 0.
            let least = b.lo % 2.0 == 0.0 && a.contains(0.0);
            let [first, last] = ends;
            Self::hull(&[first, last, if least { 0.0 } else { first }])
        } else if a.lo > 0.0 || a.lo >= 0.0 && b.lo >= 0.0 {
            Self::hull(&[
                a.lo.powf(b.lo),
                a.lo.powf(b.hi),
                a.hi.powf(b.lo),
                a.hi.powf(b.hi),
            ])
        } else {
            Self::ANY
        };
        with_one(found.widened().with_nan(nan))
    }

    fn compare(self, operator: Operator, other: Self) -> Outcome {
        let (a, b) = (self, other);
        if a.is_empty() || b.is_empty() {
            let differs = operator == Operator::NotEqual;
            return Outcome {
                may_hold: differs,
                may_fail: !differs,
            };
        }
        let nan = a.nan || b.nan;
        let equal = a.lo <= b.hi && a.hi >= b.lo;
        let differs = nan || !(a.lo == a.hi && b.lo == b.hi && a.lo == b.lo);
        let (may_hold, may_fail) = match operator {
            Operator::Less => (a.lo < b.hi, a.hi >= b.lo || nan),
            Operator::LessEqual => (a.lo <= b.hi, a.hi > b.lo || nan),
            Operator::Greater => (a.hi > b.lo, a.lo <= b.hi || nan),
            Operator::GreaterEqual => (a.hi >= b.lo, a.lo < b.hi || nan),
            Operator::Equal => (equal, differs),
            Operator::NotEqual => (differs, equal),
        };
        Outcome { may_hold, may_fail }
    }

    fn within(self, items: &Items) -> Outcome {
        let Items::Numbers(items) = items else {
            return UNKNOWN;
        };
        let none = Outcome {
            may_hold: false,
            may_fail: true,
        };
        items.iter().fold(none, |all, item| {
            let one = self.compare(Operator::Equal, Self::around(item.literal));
            Outcome {
                may_hold: all.may_hold || one.may_hold,
                may_fail: all.may_fail && one.may_fail,
            }
        })
    }
}
