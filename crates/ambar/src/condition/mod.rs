//! Conditions on the values of fields, and arithmetic of fields.
//!
//! Both are parsed from strings and evaluated on columns. Interval arithmetic on the value ranges of
//! fields decides which chunks a reader skips.
//!
//! ```text
//! condition  = all { "or" all }
//! all        = negation { "and" negation }
//! negation   = "not" negation | "(" condition ")" | comparison
//! comparison = sum link { link }
//! link       = ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum | [ "not" ] "in" list
//! sum        = product { ( "+" | "-" ) product }
//! product    = signed { ( "*" | "/" ) signed }
//! signed     = ( "+" | "-" ) signed | power
//! power      = atom [ "**" signed ]
//! atom       = field | literal | "(" sum ")" | function "(" sum { "," sum } ")"
//! function   = "abs" | "sqrt" | "log10" | "min" | "max"
//! list       = "[" [ item { "," item } [ "," ] ] "]" | "(" [ item { "," item } [ "," ] ] ")"
//! item       = { "+" | "-" } literal
//! literal    = number [ unit ] | string | "inf" | "True" | "False"
//! unit       = name { "/" name }
//! ```
//!
//! A field is a name of letters, digits, `_` and `.` that does not begin with a digit; any other
//! name is between backquotes. Strings are between single or double quotes. `True` and `False` are 1
//! and 0. A unit follows its number after a space, without spaces in it ([`Condition::convert_units`]).
//!
//! A field and a literal compare as the real numbers they are: integers exactly, a float32 after
//! widening, bool as 0 and 1. So do two integer fields. Arithmetic, and comparisons of its results,
//! are in float64. Comparisons with NaN are false, except for `!=`, which is true. Comparisons with
//! a missing value, or with arithmetic of one, are false. A column of strings does not compare with
//! numbers, nor a column of numbers with strings.

mod evaluate;
mod interval;
mod lexer;
mod parser;
mod problem;
mod tree;
mod units;

pub use evaluate::{ColumnValues, Value};
pub(crate) use interval::Outcome;
pub use units::{Quantity, UnitSystem};

use crate::error::Result;
use parser::Goal;
use tree::{Literal, Node, Operator, Tree};

/// A condition on the values of fields. [The module](self) has the grammar.
///
/// ```
/// use ambar::condition::Condition;
///
/// let condition = Condition::parse("rho * vx**2 > 1e-3 and level in [5, 6]")?;
/// assert_eq!(condition.fields(), ["rho", "vx", "level"]);
/// # Ok::<(), ambar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    tree: Tree,
}

/// Arithmetic of fields: the same grammar, but a number for each row.
///
/// ```
/// use ambar::DataType;
/// use ambar::condition::{ColumnValues, Expression};
///
/// let speed = Expression::parse("sqrt(vx**2 + vy**2)")?;
/// let (x, y) = (3f64.to_ne_bytes(), 4f64.to_ne_bytes());
/// let column = |name: &str| Ok(match name {
///     "vx" => ColumnValues::Numbers(&DataType::Float64, &x),
///     _ => ColumnValues::Numbers(&DataType::Float64, &y),
/// });
/// assert_eq!(speed.evaluate(1, column)?, [5.0]);
/// # Ok::<(), ambar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    tree: Tree,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// `Invalid`, with the position of the first character that does not fit and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let tree = parser::parse(text, Goal::Condition).map_err(|error| error.of("condition"))?;
        Ok(Self { tree })
    }

    /// `lo <= field <= hi`.
    pub(crate) fn between(field: &str, lo: i64, hi: i64) -> Self {
        let number = |integer: i64| Node::Number(Literal::integer(integer.into()).into());
        let nodes = vec![
            Node::Field(0),
            number(lo),
            number(hi),
            Node::Compare(Operator::GreaterEqual, 0, 1),
            Node::Compare(Operator::LessEqual, 0, 2),
            Node::And(3, 4),
        ];
        let fields = vec![field.to_owned()];
        Self {
            tree: Tree { nodes, fields },
        }
    }

    /// The fields it names, each once, in the order of the text.
    pub fn fields(&self) -> Vec<&str> {
        self.tree.fields()
    }

    /// Replaces field names for which `full_name` has another (aliases).
    pub fn rename(&mut self, full_name: impl Fn(&str) -> Option<String>) {
        self.tree.rename(full_name);
    }

    /// The physical units of its numbers, each once, in the order of the text.
    pub fn units(&self) -> Vec<&str> {
        self.tree.units()
    }

    /// Replaces numbers that have a unit by their values in code units.
    ///
    /// # Errors
    /// `Invalid`, with the position, if a unit is unknown, or the two sides of a comparison that has
    /// units differ in their dimension, or the dimension of a field in it is unknown.
    pub fn convert_units(&self, system: &UnitSystem) -> Result<Self> {
        let tree = units::convert(&self.tree, system).map_err(|error| error.of("condition"))?;
        Ok(Self { tree })
    }

    /// Returns one flag for each of `rows` rows. `column` returns the values of a field.
    ///
    /// # Errors
    /// `Invalid` if values cannot be compared, a column has another number of rows, or numbers have
    /// units that have not been converted; the errors of `column`.
    pub fn evaluate<'a>(
        &self,
        rows: usize,
        column: impl Fn(&str) -> Result<ColumnValues<'a>>,
    ) -> Result<Vec<bool>> {
        let mut mask = vec![true; rows];
        self.narrow(&mut mask, column)?;
        Ok(mask)
    }

    /// Clears the flags of rows for which it is false. Otherwise as [`Condition::evaluate`].
    pub(crate) fn narrow<'a>(
        &self,
        mask: &mut [bool],
        column: impl Fn(&str) -> Result<ColumnValues<'a>>,
    ) -> Result<()> {
        evaluate::flags(&self.tree, mask, column)
    }

    /// The values that it can have in a chunk. `range` returns the outward-rounded range of a field
    /// there, and whether the field can contain NaN; `None` if the range is unknown.
    pub(crate) fn outcome(
        &self,
        range: impl Fn(&str) -> Result<Option<([f64; 2], bool)>>,
    ) -> Result<Outcome> {
        interval::outcome(&self.tree, range)
    }
}

impl Expression {
    /// Parses arithmetic of fields.
    ///
    /// # Errors
    /// `Invalid`, with the position of the first character that does not fit and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let tree = parser::parse(text, Goal::Number).map_err(|error| error.of("expression"))?;
        Ok(Self { tree })
    }

    /// The fields it names, each once, in the order of the text.
    pub fn fields(&self) -> Vec<&str> {
        self.tree.fields()
    }

    /// Replaces field names for which `full_name` has another (aliases).
    pub fn rename(&mut self, full_name: impl Fn(&str) -> Option<String>) {
        self.tree.rename(full_name);
    }

    /// The range of its values in a chunk, widened where rounding could exceed it; all numbers if it is unknown.
    /// `range` is as for [`Condition::outcome`]. Values can be NaN besides.
    pub(crate) fn range(&self, range: impl Fn(&str) -> Option<([f64; 2], bool)>) -> [f64; 2] {
        interval::range(&self.tree, range)
    }

    /// Returns its value in each of `rows` rows; NaN where a value is missing.
    ///
    /// # Errors
    /// As [`Condition::evaluate`].
    pub fn evaluate<'a>(
        &self,
        rows: usize,
        column: impl Fn(&str) -> Result<ColumnValues<'a>>,
    ) -> Result<Vec<f64>> {
        let mut values = vec![0.0; rows];
        evaluate::numbers(&self.tree, &mut values, column)?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
