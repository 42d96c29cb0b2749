//! The tree of an expression: nodes in an arena, operands before their operators.
//!
//! Evaluation, ranges and units are loops over the nodes, without recursion: deep nesting cannot
//! overflow the stack.

use crate::numbers::{self, Number as _};

/// Maximum number of nodes. It limits the memory and the time of evaluation.
pub(super) const MAX_NODES: usize = 1024;

/// An expression; the last node is its root.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    /// The fields that it names, in the order of the text.
    pub fields: Vec<String>,
}

/// Operands are indices of earlier nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Index into `Tree::fields`.
    Field(usize),
    Number(Number),
    Text(String),
    Negate(usize),
    Call(Function, usize),
    Binary(Arithmetic, usize, usize),
    /// Of a field and a literal, the field comes first.
    Compare(Operator, usize, usize),
    In {
        value: usize,
        items: Items,
        /// `not in`.
        negated: bool,
    },
    Not(usize),
    And(usize, usize),
    Or(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Sqrt,
    Log10,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// A number as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    pub literal: Literal,
    /// A physical unit that is still to be converted to code units.
    pub unit: Option<UnitName>,
}

/// A unit, and the character that it begins at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnitName {
    pub name: String,
    pub position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Literal {
    pub value: f64,
    /// The number exactly, where it was written as an integer.
    pub integer: Option<i128>,
}

/// The list of `in`, sorted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Items {
    Numbers(Vec<Number>),
    Texts(Vec<String>),
}

impl Operator {
    /// The equivalent operator after an exchange of the sides.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }
}

impl Function {
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::Abs => value.abs(),
            Self::Sqrt => value.sqrt(),
            Self::Log10 => value.log10(),
        }
    }
}

impl Arithmetic {
    /// As NumPy: `min` and `max` of NaN are NaN.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Power => power(b)(a),
            Self::Min if a.is_nan() || a < b => a,
            Self::Max if a.is_nan() || a > b => a,
            Self::Min | Self::Max => b,
        }
    }
}

/// The function that raises to `exponent`, with the shortcuts of NumPy.
pub(super) fn power(exponent: f64) -> impl Fn(f64) -> f64 {
    enum Shortcut {
        Root,
        Same,
        Square,
        Inverse,
        None,
    }
    let shortcut = match exponent {
        0.5 => Shortcut::Root,
        1.0 => Shortcut::Same,
        2.0 => Shortcut::Square,
        -1.0 => Shortcut::Inverse,
        _ => Shortcut::None,
    };
    move |base| match shortcut {
        Shortcut::Root => base.sqrt(),
        Shortcut::Same => base,
        Shortcut::Square => base * base,
        Shortcut::Inverse => 1.0 / base,
        Shortcut::None => base.powf(exponent),
    }
}

impl Literal {
    pub fn integer(integer: i128) -> Self {
        Self {
            value: integer as f64,
            integer: Some(integer),
        }
    }

    pub fn float(value: f64) -> Self {
        Self {
            value,
            integer: None,
        }
    }

    pub fn negated(self) -> Self {
        Self {
            value: -self.value,
            integer: self.integer.and_then(i128::checked_neg),
        }
    }

    /// The largest f64 not above it and the smallest not below it.
    pub fn bounds(self) -> [f64; 2] {
        match self.integer {
            Some(integer) => numbers::bounds(integer),
            None => [self.value; 2],
        }
    }

    /// The largest integer not above it and the smallest not below it.
    pub fn floor_ceil(self) -> (i128, i128) {
        match self.integer {
            Some(integer) => (integer, integer),
            None => (self.value.floor().to_i128(), self.value.ceil().to_i128()),
        }
    }
}

impl From<Literal> for Number {
    fn from(literal: Literal) -> Self {
        Self {
            literal,
            unit: None,
        }
    }
}

impl Items {
    /// Sorts them. Numbers are never NaN; integers are sorted exactly.
    pub fn sort(&mut self) {
        match self {
            Self::Numbers(numbers) => numbers.sort_by(|a, b| {
                let (a, b) = (a.literal, b.literal);
                let by_value = f64::total_cmp(&a.value, &b.value);
                by_value.then_with(|| a.floor_ceil().cmp(&b.floor_ceil()))
            }),
            Self::Texts(texts) => texts.sort_unstable(),
        }
    }
}

impl Tree {
    /// The fields, each once.
    pub fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<&str> = Vec::new();
        for field in &self.fields {
            if !fields.contains(&field.as_str()) {
                fields.push(field);
            }
        }
        fields
    }

    pub fn rename(&mut self, full_name: impl Fn(&str) -> Option<String>) {
        for field in &mut self.fields {
            if let Some(name) = full_name(field) {
                *field = name;
            }
        }
    }

    /// The units of its numbers, each once.
    pub fn units(&self) -> Vec<&str> {
        let mut units: Vec<&str> = Vec::new();
        for unit in self.numbers().filter_map(|number| number.unit.as_ref()) {
            if !units.contains(&unit.name.as_str()) {
                units.push(&unit.name);
            }
        }
        units
    }

    /// The numbers that it contains.
    fn numbers(&self) -> impl Iterator<Item = &Number> {
        self.nodes.iter().flat_map(|node| match node {
            Node::Number(number) => std::slice::from_ref(number),
            Node::In {
                items: Items::Numbers(numbers),
                ..
            } => numbers,
            _ => &[],
        })
    }
}
