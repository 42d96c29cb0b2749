//! Evaluates conditions and expressions on columns, block by block.
//!
//! Comparisons of a field with a literal use the type of the field. Arithmetic uses float64. Blocks
//! keep intermediate values in the cache.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::tree::{Arithmetic, Function, Items, Literal, Node, Operator, Tree, power};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::numbers::{self, Number, with_number};

/// Number of rows of a block.
const BLOCK: usize = 2048;

/// The values of a field.
#[derive(Clone, Copy, Debug)]
pub enum ColumnValues<'a> {
    /// Real numbers of one type, in native byte order.
    Numbers(&'a DataType, &'a [u8]),
    /// Values of any kind. Values of different kinds are never equal, and have no order.
    Values(&'a [Value]),
}

/// A value of a column of any kind.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value. All comparisons with it, and with arithmetic of it, are false.
    Missing,
    /// An integer, or bool as 0 and 1.
    Integer(i128),
    /// A number.
    Float(f64),
    /// A string.
    Text(String),
}

/// Clears the flags of rows for which the condition is false.
pub(super) fn flags<'a>(
    tree: &Tree,
    mask: &mut [bool],
    column: impl Fn(&str) -> Result<ColumnValues<'a>>,
) -> Result<()> {
    let mut evaluation = Evaluation::new(tree, mask.len(), column)?;
    let mut start = 0;
    for mask in mask.chunks_mut(BLOCK) {
        evaluation.block(start..start + mask.len());
        start += mask.len();
        for (keep, flag) in mask.iter_mut().zip(&evaluation.root().flags) {
            *keep &= *flag;
        }
    }
    Ok(())
}

/// The values of an expression.
pub(super) fn numbers<'a>(
    tree: &Tree,
    values: &mut [f64],
    column: impl Fn(&str) -> Result<ColumnValues<'a>>,
) -> Result<()> {
    let mut evaluation = Evaluation::new(tree, values.len(), column)?;
    let mut start = 0;
    for values in values.chunks_mut(BLOCK) {
        evaluation.block(start..start + values.len());
        start += values.len();
        values.copy_from_slice(&evaluation.root().numbers[..values.len()]);
    }
    Ok(())
}

/// Writes flags for a range of rows of a column.
type Test<'x> = Box<dyn Fn(Range<usize>, &mut [bool]) + 'x>;

/// The work of a node in each block. Operands are indices of earlier steps.
enum Step<'x> {
    /// A literal, whose slot has its value, or a field that is only an operand of `Test`.
    Nothing,
    Convert(ColumnValues<'x>),
    Negate(usize),
    Call(Function, usize),
    /// With the second operand, if it is a literal.
    Binary(Arithmetic, usize, usize, Option<f64>),
    Compare(Operator, usize, usize),
    /// The sorted list, and whether it must not contain the value.
    In(usize, Vec<f64>, bool),
    /// A comparison of fields in their own types.
    Test(Test<'x>),
    Not(usize),
    And(usize, usize),
    Or(usize, usize),
}

/// The value of a node in each row of a block: numbers, or flags of a condition.
#[derive(Default)]
struct Slot<'x> {
    numbers: Vec<f64>,
    flags: Vec<bool>,
    /// The columns with missing values that a number or a comparison derives from.
    incomplete: Vec<&'x [Value]>,
}

/// A tree with columns for its fields.
struct Evaluation<'x> {
    steps: Vec<Step<'x>>,
    slots: Vec<Slot<'x>>,
}

impl<'x> Evaluation<'x> {
    fn new<'a: 'x>(
        tree: &'x Tree,
        rows: usize,
        column: impl Fn(&str) -> Result<ColumnValues<'a>>,
    ) -> Result<Self> {
        if let Some(unit) = tree.units().first() {
            return Err(Error::invalid(format!(
                "expected numbers without units, found the unit {unit:?}; the units of the fields \
                 are not known here"
            )));
        }
        let columns = tree.fields.iter().map(|name| {
            let values = column(name)?;
            values.check(name, rows)?;
            let content = values.content();
            Ok(Column {
                name,
                values,
                content,
            })
        });
        let columns: Vec<Column<'_>> = columns.collect::<Result<_>>()?;
        let mut is_operand = vec![false; tree.nodes.len()];
        if let Some(root) = is_operand.last_mut() {
            *root = true;
        }
        let mut steps = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let step = step(tree, &columns, node)?;
            match step {
                Step::Negate(a) | Step::Call(_, a) | Step::In(a, ..) => is_operand[a] = true,
                Step::Binary(_, a, b, _) | Step::Compare(_, a, b) => {
                    [is_operand[a], is_operand[b]] = [true; 2];
                }
                _ => {}
            }
            steps.push(step);
        }
        let rows = rows.min(BLOCK);
        let mut slots: Vec<Slot<'_>> = Vec::with_capacity(steps.len());
        for ((node, step), is_operand) in tree.nodes.iter().zip(&mut steps).zip(is_operand) {
            let mut slot = Slot {
                incomplete: incomplete(node, &columns, &slots),
                ..Slot::default()
            };
            match node {
                Node::Field(_) if !is_operand => *step = Step::Nothing,
                Node::Field(field) => {
                    columns[*field].check_numbers("numbers for arithmetic")?;
                    slot.numbers = vec![0.0; rows];
                }
                Node::Number(number) if is_operand => {
                    slot.numbers = vec![number.literal.value; rows];
                }
                Node::Number(_) | Node::Text(_) => {}
                Node::Negate(_) | Node::Call(..) | Node::Binary(..) => {
                    slot.numbers = vec![0.0; rows];
                }
                _ => slot.flags = vec![false; rows],
            }
            slots.push(slot);
        }
        Ok(Self { steps, slots })
    }

    /// Evaluates all nodes for some rows, at most `BLOCK`.
    fn block(&mut self, rows: Range<usize>) {
        let len = rows.len();
        for (index, step) in self.steps.iter().enumerate() {
            let (operands, rest) = self.slots.split_at_mut(index);
            let Slot {
                numbers,
                flags,
                incomplete,
            } = &mut rest[0];
            let number = |node: usize| &operands[node].numbers[..len];
            let flag = |node: usize| &operands[node].flags[..len];
            match step {
                Step::Nothing => {}
                Step::Convert(values) => values.to_f64(rows.clone(), &mut numbers[..len]),
                Step::Negate(a) => one(number(*a), numbers, |a| -a),
                Step::Call(function, a) => match function {
                    Function::Abs => one(number(*a), numbers, f64::abs),
                    Function::Sqrt => one(number(*a), numbers, f64::sqrt),
                    Function::Log10 => one(number(*a), numbers, f64::log10),
                },
                Step::Binary(Arithmetic::Power, a, _, Some(exponent)) => match exponent {
                    2.0 => one(number(*a), numbers, |a| a * a),
                    _ => one(number(*a), numbers, power(*exponent)),
                },
                Step::Binary(operator, a, b, _) => {
                    let (a, b) = (number(*a), number(*b));
                    match operator {
                        Arithmetic::Add => two(a, b, numbers, |a, b| a + b),
                        Arithmetic::Subtract => two(a, b, numbers, |a, b| a - b),
                        Arithmetic::Multiply => two(a, b, numbers, |a, b| a * b),
                        Arithmetic::Divide => two(a, b, numbers, |a, b| a / b),
                        other => two(a, b, numbers, |a, b| other.apply(a, b)),
                    }
                }
                Step::Compare(operator, a, b) => {
                    let (a, b) = (number(*a), number(*b));
                    match operator {
                        Operator::Less => two(a, b, flags, |a, b| a < b),
                        Operator::LessEqual => two(a, b, flags, |a, b| a <= b),
                        Operator::Greater => two(a, b, flags, |a, b| a > b),
                        Operator::GreaterEqual => two(a, b, flags, |a, b| a >= b),
                        Operator::Equal => two(a, b, flags, |a, b| a == b),
                        Operator::NotEqual => two(a, b, flags, |a, b| a != b),
                    }
                }
                Step::In(a, items, negated) => {
                    one(number(*a), flags, |a| contains(items, &a) != *negated);
                }
                Step::Test(test) => test(rows.clone(), &mut flags[..len]),
                Step::Not(a) => one(flag(*a), flags, |a| !a),
                Step::And(a, b) => two(flag(*a), flag(*b), flags, |a, b| a & b),
                Step::Or(a, b) => two(flag(*a), flag(*b), flags, |a, b| a | b),
            }
            for values in incomplete {
                for (flag, value) in flags.iter_mut().zip(&values[rows.clone()]) {
                    *flag &= !matches!(value, Value::Missing);
                }
            }
        }
    }

    /// The root's values. A tree has at least one node.
    fn root(&self) -> &Slot<'x> {
        &self.slots[self.slots.len() - 1]
    }
}

/// The columns with missing values that the number or comparison `node` derives from.
fn incomplete<'x>(node: &Node, columns: &[Column<'x>], slots: &[Slot<'x>]) -> Vec<&'x [Value]> {
    match node {
        Node::Field(field) => match columns[*field].values {
            ColumnValues::Values(values) if values.contains(&Value::Missing) => vec![values],
            _ => Vec::new(),
        },
        Node::Negate(a) | Node::Call(_, a) | Node::In { value: a, .. } => {
            slots[*a].incomplete.clone()
        }
        Node::Binary(_, a, b) | Node::Compare(_, a, b) => {
            [&slots[*a].incomplete[..], &slots[*b].incomplete].concat()
        }
        _ => Vec::new(),
    }
}

fn one<A: Copy, B>(a: &[A], out: &mut [B], function: impl Fn(A) -> B) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = function(*a);
    }
}

fn two<A: Copy, B>(a: &[A], b: &[A], out: &mut [B], function: impl Fn(A, A) -> B) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = function(*a, *b);
    }
}

/// The kinds of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Numbers,
    Strings,
    /// Numbers and strings, or only missing values.
    Any,
}

/// A field and its values.
#[derive(Clone, Copy)]
struct Column<'x> {
    name: &'x str,
    values: ColumnValues<'x>,
    content: Content,
}

impl Column<'_> {
    /// An error if the values are strings.
    fn check_numbers(&self, wanted: &str) -> Result<()> {
        if self.content == Content::Strings {
            return Err(Error::invalid(format!(
                "{:?} contains strings; expected {wanted}",
                self.name
            )));
        }
        Ok(())
    }

    /// An error if the values are numbers, so that they cannot equal a string.
    fn check_strings(&self, found: &str) -> Result<()> {
        if self.content == Content::Numbers {
            let values = match self.values {
                ColumnValues::Numbers(dtype, _) => format!("{dtype} values"),
                ColumnValues::Values(_) => "numbers".to_owned(),
            };
            return Err(Error::invalid(format!(
                "{:?} contains {values}; expected a comparison with numbers, found {found}",
                self.name
            )));
        }
        Ok(())
    }
}

/// The step of `node` on these columns.
fn step<'x>(tree: &'x Tree, columns: &[Column<'x>], node: &'x Node) -> Result<Step<'x>> {
    Ok(match node {
        Node::Field(field) => Step::Convert(columns[*field].values),
        Node::Number(_) | Node::Text(_) => Step::Nothing,
        Node::Negate(a) => Step::Negate(*a),
        Node::Call(function, a) => Step::Call(*function, *a),
        Node::Binary(operator, a, b) => {
            let second = match &tree.nodes[*b] {
                Node::Number(number) => Some(number.literal.value),
                _ => None,
            };
            Step::Binary(*operator, *a, *b, second)
        }
        Node::Compare(operator, a, b) => {
            let test = match (&tree.nodes[*a], &tree.nodes[*b]) {
                (Node::Field(field), Node::Number(number)) => {
                    let column = &columns[*field];
                    column.check_numbers("a comparison with strings, found a number")?;
                    Some(compare_number(column.values, *operator, number.literal))
                }
                (Node::Field(field), Node::Text(text)) => {
                    columns[*field].check_strings("a string")?;
                    let literal = Value::Text(text.clone());
                    Some(compare_value(columns[*field].values, *operator, literal))
                }
                (Node::Field(a), Node::Field(b)) => {
                    let (a, b) = (&columns[*a], &columns[*b]);
                    for (a, b) in [(a, b), (b, a)] {
                        if b.content == Content::Strings {
                            a.check_strings(&format!("strings in {:?}", b.name))?;
                        }
                    }
                    compare_fields(a.values, *operator, b.values)
                }
                _ => None,
            };
            test.map_or(Step::Compare(*operator, *a, *b), Step::Test)
        }
        Node::In {
            value,
            items,
            negated,
        } => match (&tree.nodes[*value], items) {
            (Node::Field(field), _) => {
                let column = &columns[*field];
                match items {
                    Items::Texts(_) => column.check_strings("a string")?,
                    Items::Numbers(items) if items.is_empty() => {}
                    Items::Numbers(_) => {
                        column.check_numbers("a comparison with strings, found a number")?;
                    }
                }
                Step::Test(within(column.values, items, *negated))
            }
            (_, Items::Numbers(items)) => {
                let values = items.iter().map(|item| item.literal.value);
                Step::In(*value, values.collect(), *negated)
            }
            // The parser allows strings only after a field.
            (_, Items::Texts(_)) => Step::In(*value, Vec::new(), *negated),
        },
        Node::Not(a) => Step::Not(*a),
        Node::And(a, b) => Step::And(*a, *b),
        Node::Or(a, b) => Step::Or(*a, *b),
    })
}

impl<'x> ColumnValues<'x> {
    fn check(self, name: &str, rows: usize) -> Result<()> {
        let found = match self {
            Self::Values(values) => values.len(),
            Self::Numbers(dtype, _) if !numbers::is_number(dtype) => {
                return Err(numbers::not_numeric(name, dtype));
            }
            Self::Numbers(dtype, bytes) => bytes.len() / dtype.size().unwrap_or(1),
        };
        if found != rows {
            return Err(Error::invalid(format!(
                "expected {rows} values of {name:?}, found {found}"
            )));
        }
        Ok(())
    }

    fn content(self) -> Content {
        let Self::Values(values) = self else {
            return Content::Numbers;
        };
        let has_strings = values.iter().any(|value| matches!(value, Value::Text(_)));
        let has_numbers = values
            .iter()
            .any(|value| matches!(value, Value::Integer(_) | Value::Float(_)));
        match (has_numbers, has_strings) {
            (true, false) => Content::Numbers,
            (false, true) => Content::Strings,
            _ => Content::Any,
        }
    }

    fn to_f64(self, rows: Range<usize>, out: &mut [f64]) {
        match self {
            Self::Numbers(dtype, bytes) => with_number!(
                dtype,
                int T => convert::<T>(part(dtype, bytes, rows), out),
                float T => convert::<T>(part(dtype, bytes, rows), out),
                other => out.fill(f64::NAN)
            ),
            Self::Values(values) => one_of(&values[rows], out, |value| match value {
                Value::Integer(integer) => *integer as f64,
                Value::Float(float) => *float,
                Value::Missing | Value::Text(_) => f64::NAN,
            }),
        }
    }

    /// The value of a row.
    fn get(self, row: usize) -> Cow<'x, Value> {
        match self {
            Self::Values(values) => Cow::Borrowed(&values[row]),
            Self::Numbers(dtype, bytes) => {
                let bytes = part(dtype, bytes, row..row + 1);
                Cow::Owned(with_number!(
                    dtype,
                    int T => first::<T>(bytes, |value| Value::Integer(value.to_i128())),
                    float T => first::<T>(bytes, |value| Value::Float(value.to_f64())),
                    other => Value::Missing
                ))
            }
        }
    }
}

fn convert<T: Number>(bytes: &[u8], out: &mut [f64]) {
    for (out, value) in out.iter_mut().zip(T::all(bytes)) {
        *out = value.to_f64();
    }
}

fn first<T: Number>(bytes: &[u8], value: impl Fn(T) -> Value) -> Value {
    T::all(bytes).next().map_or(Value::Missing, value)
}

fn one_of<A, B>(a: &[A], out: &mut [B], function: impl Fn(&A) -> B) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = function(a);
    }
}

/// The bytes of some rows.
fn part<'x>(dtype: &DataType, bytes: &'x [u8], rows: Range<usize>) -> &'x [u8] {
    let size = dtype.size().unwrap_or(0);
    &bytes[rows.start * size..rows.end * size]
}

fn compare_number<'x>(values: ColumnValues<'x>, operator: Operator, literal: Literal) -> Test<'x> {
    match values {
        ColumnValues::Numbers(dtype, bytes) => with_number!(
            dtype,
            int T => compare_integers::<T>(dtype, bytes, operator, literal, [T::MIN.into(), T::MAX.into()]),
            float T => compare_floats::<T>(dtype, bytes, operator, literal),
            other => Box::new(|_, out| out.fill(false))
        ),
        ColumnValues::Values(_) => compare_value(values, operator, literal.into()),
    }
}

/// Each operator is an interval of integers, or all but one, so that one loop serves all.
fn compare_integers<'x, T>(
    dtype: &'x DataType,
    bytes: &'x [u8],
    operator: Operator,
    literal: Literal,
    [min, max]: [i128; 2],
) -> Test<'x>
where
    T: Number + TryFrom<i128> + 'x,
{
    let (floor, ceil) = literal.floor_ceil();
    let (lo, hi) = match operator {
        Operator::Less => (min, ceil.saturating_sub(1)),
        Operator::LessEqual => (min, floor),
        Operator::Greater => (floor.saturating_add(1), max),
        Operator::GreaterEqual => (ceil, max),
        // Empty where the number is between two integers.
        Operator::Equal | Operator::NotEqual => (ceil, floor),
    };
    let (lo, hi) = (lo.max(min), hi.min(max));
    let negate = operator == Operator::NotEqual;
    match (T::try_from(lo), T::try_from(hi)) {
        (Ok(low), Ok(high)) if lo <= hi => {
            test::<T>(dtype, bytes, move |v| ((low <= v) & (v <= high)) != negate)
        }
        _ => Box::new(move |_, out| out.fill(negate)),
    }
}

fn compare_floats<'x, T: Number + 'x>(
    dtype: &'x DataType,
    bytes: &'x [u8],
    operator: Operator,
    literal: Literal,
) -> Test<'x> {
    let [below, above] = literal.bounds();
    if below < above {
        // The number is between two consecutive floats.
        return match operator {
            Operator::Less | Operator::LessEqual => {
                test::<T>(dtype, bytes, move |v| v.to_f64() <= below)
            }
            Operator::Greater | Operator::GreaterEqual => {
                test::<T>(dtype, bytes, move |v| v.to_f64() >= above)
            }
            Operator::Equal | Operator::NotEqual => {
                Box::new(move |_, out| out.fill(operator == Operator::NotEqual))
            }
        };
    }
    let number = literal.value;
    match operator {
        Operator::Less => test::<T>(dtype, bytes, move |v| v.to_f64() < number),
        Operator::LessEqual => test::<T>(dtype, bytes, move |v| v.to_f64() <= number),
        Operator::Greater => test::<T>(dtype, bytes, move |v| v.to_f64() > number),
        Operator::GreaterEqual => test::<T>(dtype, bytes, move |v| v.to_f64() >= number),
        Operator::Equal => test::<T>(dtype, bytes, move |v| v.to_f64() == number),
        Operator::NotEqual => test::<T>(dtype, bytes, move |v| v.to_f64() != number),
    }
}

fn test<'x, T: Number>(
    dtype: &'x DataType,
    bytes: &'x [u8],
    holds: impl Fn(T) -> bool + 'x,
) -> Test<'x> {
    Box::new(move |rows, out| {
        for (out, value) in out.iter_mut().zip(T::all(part(dtype, bytes, rows))) {
            *out = holds(value);
        }
    })
}

/// A comparison of two fields that float64 does not represent: integers, and values of any kind.
/// `None` for other fields.
fn compare_fields<'x>(
    a: ColumnValues<'x>,
    operator: Operator,
    b: ColumnValues<'x>,
) -> Option<Test<'x>> {
    if let (ColumnValues::Numbers(a, _), ColumnValues::Numbers(b, _)) = (a, b)
        && (numbers::has_nan(a) || numbers::has_nan(b))
    {
        return None;
    }
    Some(Box::new(move |rows, out| {
        for (out, row) in out.iter_mut().zip(rows) {
            *out = operator.holds(&a.get(row), &b.get(row));
        }
    }))
}

fn compare_value<'x>(values: ColumnValues<'x>, operator: Operator, literal: Value) -> Test<'x> {
    Box::new(move |rows, out| {
        for (out, row) in out.iter_mut().zip(rows) {
            *out = operator.holds(&values.get(row), &literal);
        }
    })
}

/// A field in a list, or not in it.
fn within<'x>(values: ColumnValues<'x>, items: &'x Items, negated: bool) -> Test<'x> {
    match (values, items) {
        (ColumnValues::Numbers(dtype, bytes), Items::Numbers(items)) => {
            let literals = items.iter().map(|item| item.literal);
            with_number!(
                dtype,
                int T => {
                    let items: Vec<T> = literals
                        .filter_map(|literal| match literal.floor_ceil() {
                            (floor, ceil) if floor == ceil => T::try_from(floor).ok(),
                            _ => None,
                        })
                        .collect();
                    test::<T>(dtype, bytes, move |v| contains(&items, &v) != negated)
                },
                float T => {
                    let items: Vec<f64> = literals
                        .filter_map(|literal| match literal.bounds() {
                            [below, above] if below == above => Some(below),
                            _ => None,
                        })
                        .collect();
                    test::<T>(dtype, bytes, move |v| contains(&items, &v.to_f64()) != negated)
                },
                other => Box::new(|_, out| out.fill(false))
            )
        }
        (ColumnValues::Values(values), Items::Numbers(items)) => {
            let items: Vec<Value> = items.iter().map(|item| item.literal.into()).collect();
            Box::new(move |rows, out| {
                one_of(&values[rows], out, |value| match value {
                    Value::Missing => false,
                    value => contains(&items, value) != negated,
                });
            })
        }
        (ColumnValues::Values(values), Items::Texts(items)) => Box::new(move |rows, out| {
            one_of(&values[rows], out, |value| match value {
                Value::Missing => false,
                Value::Text(text) => items.binary_search(text).is_ok() != negated,
                _ => negated,
            });
        }),
        // `check_strings` has refused it.
        (ColumnValues::Numbers(..), Items::Texts(_)) => Box::new(|_, out| out.fill(false)),
    }
}

/// Whether a sorted list contains a value.
fn contains<T: PartialOrd>(items: &[T], value: &T) -> bool {
    let found = items.binary_search_by(|item| item.partial_cmp(value).unwrap_or(Ordering::Less));
    found.is_ok()
}

impl Operator {
    fn holds(self, a: &Value, b: &Value) -> bool {
        if *a == Value::Missing || *b == Value::Missing {
            return false;
        }
        let Some(order) = a.partial_cmp(b) else {
            return self == Self::NotEqual;
        };
        match self {
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}

impl PartialOrd for Value {
    /// Numbers compare exactly, strings by code points. Values of different kinds have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Integer(a), Self::Float(b)) => compare_exactly(*a, *b),
            (Self::Float(a), Self::Integer(b)) => compare_exactly(*b, *a).map(Ordering::reverse),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Missing, Self::Missing) => Some(Ordering::Equal),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

fn compare_exactly(integer: i128, float: f64) -> Option<Ordering> {
    let [below, above] = numbers::bounds(integer);
    if below == above {
        return below.partial_cmp(&float);
    }
    // The integer is between two consecutive floats.
    if float.is_nan() {
        None
    } else if float <= below {
        Some(Ordering::Greater)
    } else {
        Some(Ordering::Less)
    }
}

impl From<Literal> for Value {
    fn from(literal: Literal) -> Self {
        match literal.integer {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(literal.value),
        }
    }
}
