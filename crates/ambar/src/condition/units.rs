//! Physical units of numbers: checked against the dimensions of fields, and converted to code units.

use std::collections::HashMap;

use super::problem::Problem;
use super::tree::{Arithmetic, Function, Items, Literal, Node, Number, Tree, UnitName};

/// Exponents of length, mass and time.
type Dimension = [f64; 3];

const DIMENSIONLESS: Dimension = [0.0; 3];

/// A physical quantity: length, density, velocity, ...
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Its name, for messages.
    pub name: String,
    /// Exponents of length, mass and time.
    pub dimension: [f64; 3],
    /// The names of its units, with the factors that values in code units are multiplied by.
    pub units: Vec<(String, f64)>,
}

/// Code units in terms of physical units, and the quantities of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnitSystem {
    /// The quantities. Each unit belongs to one of them.
    pub quantities: Vec<Quantity>,
    /// Other names of units.
    pub spellings: HashMap<String, String>,
    /// Names of quantities by field; fields of unknown quantities are not among them.
    pub fields: HashMap<String, String>,
}

/// The dimension of a node, as far as it is known.
#[derive(Clone, Debug)]
enum Measure {
    /// A number without a unit. It is in the code units of what it is added to or compared with.
    Plain,
    Known(Dimension),
    /// The reason why a dimension does not exist or is unknown.
    Unknown(String),
}

/// The dimension and the unit of a node.
struct Measured {
    measure: Measure,
    /// The first unit in it.
    unit: Option<UnitName>,
}

/// The tree with numbers in code units.
pub(super) fn convert(tree: &Tree, system: &UnitSystem) -> Result<Tree, Problem> {
    let mut converted = tree.clone();
    let mut measured: Vec<Measured> = Vec::with_capacity(tree.nodes.len());
    for (node, out) in tree.nodes.iter().zip(&mut converted.nodes) {
        let measure = |node: usize| measured[node].measure.clone();
        let mut operands: Vec<usize> = Vec::new();
        let mut unit = None;
        let found = match node {
            Node::Field(field) => system.measure_field(&tree.fields[*field]),
            Node::Number(number) => {
                unit.clone_from(&number.unit);
                let (number, measure) = system.convert(number)?;
                *out = Node::Number(number);
                measure
            }
            Node::Text(_) => Measure::Plain,
            Node::Negate(a) | Node::Call(Function::Abs, a) => {
                operands.push(*a);
                measure(*a)
            }
            Node::Call(Function::Sqrt, a) => {
                operands.push(*a);
                measure(*a).raised(0.5)
            }
            Node::Call(Function::Log10, a) => {
                operands.push(*a);
                system.logarithm(measure(*a))
            }
            Node::Binary(operator, a, b) => {
                operands.extend([*a, *b]);
                let exponent = match &tree.nodes[*b] {
                    Node::Number(number) if number.unit.is_none() => Some(number.literal.value),
                    _ => None,
                };
                system.binary(*operator, measure(*a), measure(*b), exponent)
            }
            Node::Compare(_, a, b) => {
                system.compare(&measured[*a], &measured[*b])?;
                Measure::Plain
            }
            Node::In { value, items, .. } => {
                if let (Items::Numbers(items), Node::In { items: out, .. }) = (items, out) {
                    let items = items.iter().map(|item| {
                        let (number, measure) = system.convert(item)?;
                        let unit = item.unit.clone();
                        system.compare(&measured[*value], &Measured { measure, unit })?;
                        Ok(number)
                    });
                    *out = Items::Numbers(items.collect::<Result<_, Problem>>()?);
                    out.sort();
                }
                Measure::Plain
            }
            Node::Not(_) | Node::And(..) | Node::Or(..) => Measure::Plain,
        };
        for operand in operands {
            unit = unit.or_else(|| measured[operand].unit.clone());
        }
        measured.push(Measured {
            measure: found,
            unit,
        });
    }
    Ok(converted)
}

impl Measure {
    fn raised(self, exponent: f64) -> Self {
        match self {
            Self::Known(dimension) => Self::Known(dimension.map(|own| own * exponent)),
            other => other,
        }
    }
}

/// Exponents are sums and products of few simple fractions.
fn are_equal(a: Dimension, b: Dimension) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

impl UnitSystem {
    fn measure_field(&self, field: &str) -> Measure {
        let name = self.fields.get(field);
        let quantity = self
            .quantities
            .iter()
            .find(|other| Some(&other.name) == name);
        match quantity {
            Some(quantity) => Measure::Known(quantity.dimension),
            None => Measure::Unknown(format!(
                "expected fields of known units, found {field:?}; give the number in code units"
            )),
        }
    }

    /// A number in code units, and its dimension.
    fn convert(&self, number: &Number) -> Result<(Number, Measure), Problem> {
        let Some(unit) = &number.unit else {
            return Ok((number.clone(), Measure::Plain));
        };
        let name = self.spellings.get(&unit.name).unwrap_or(&unit.name);
        let (quantity, factor) = self.find(name).ok_or_else(|| {
            let known: Vec<String> = self.quantities.iter().map(Quantity::describe).collect();
            let known = known.join(", ");
            let message = format!("unknown unit {:?}; available: {known}", unit.name);
            Problem::new(unit.position, message)
        })?;
        let value = number.literal.value / factor;
        if !factor.is_finite() || factor <= 0.0 || value.is_nan() {
            let message = format!("one code unit is {factor} {name}; expected a positive number");
            return Err(Problem::new(unit.position, message));
        }
        let converted = Literal::float(value).into();
        Ok((converted, Measure::Known(quantity.dimension)))
    }

    fn find(&self, unit: &str) -> Option<(&Quantity, f64)> {
        self.quantities.iter().find_map(|quantity| {
            let found = quantity.units.iter().find(|(name, _)| name == unit);
            found.map(|(_, factor)| (quantity, *factor))
        })
    }

    fn binary(
        &self,
        operator: Arithmetic,
        a: Measure,
        b: Measure,
        exponent: Option<f64>,
    ) -> Measure {
        use Measure::{Known, Plain, Unknown};
        let combined = |a: Dimension, b: Dimension, sign: f64| {
            Known(std::array::from_fn(|i| a[i] + sign * b[i]))
        };
        match (operator, a, b) {
            (_, Unknown(why), _) | (_, _, Unknown(why)) => Unknown(why),
            (_, Plain, Plain) => Plain,
            (Arithmetic::Power, a, _) => match exponent {
                Some(exponent) => a.raised(exponent),
                None => Unknown("expected a number as the exponent of a value with units".into()),
            },
            (Arithmetic::Multiply | Arithmetic::Divide, a, Plain) => a,
            (Arithmetic::Multiply, Plain, b) => b,
            (Arithmetic::Divide, Plain, b) => b.raised(-1.0),
            (Arithmetic::Multiply, Known(a), Known(b)) => combined(a, b, 1.0),
            (Arithmetic::Divide, Known(a), Known(b)) => combined(a, b, -1.0),
            (_, Known(a), Known(b)) if !are_equal(a, b) => Unknown(format!(
                "expected a sum, minimum or maximum of one dimension, found {} and {}",
                self.describe(a),
                self.describe(b)
            )),
            (_, Plain, measure) | (_, measure, _) => measure,
        }
    }

    fn logarithm(&self, measure: Measure) -> Measure {
        match measure {
            Measure::Known(dimension) if !are_equal(dimension, DIMENSIONLESS) => {
                let found = self.describe(dimension);
                Measure::Unknown(format!(
                    "expected a dimensionless argument of log10, found {found}; divide it by a \
                     number with a unit"
                ))
            }
            Measure::Unknown(why) => Measure::Unknown(why),
            _ => Measure::Known(DIMENSIONLESS),
        }
    }

    /// Checks the two sides of a comparison, if one of them has units.
    fn compare(&self, a: &Measured, b: &Measured) -> Result<(), Problem> {
        let Some(unit) = b.unit.as_ref().or(a.unit.as_ref()) else {
            return Ok(());
        };
        let (expected, found) = if b.unit.is_some() { (a, b) } else { (b, a) };
        let message = match (&expected.measure, &found.measure) {
            (Measure::Unknown(why), _) | (_, Measure::Unknown(why)) => why.clone(),
            (Measure::Known(expected), Measure::Known(found)) if !are_equal(*expected, *found) => {
                format!(
                    "expected {}, found {:?}, {}",
                    self.describe(*expected),
                    unit.name,
                    self.describe_briefly(*found)
                )
            }
            _ => return Ok(()),
        };
        Err(Problem::new(unit.position, message))
    }

    fn of(&self, dimension: Dimension) -> Vec<&Quantity> {
        let quantities = self.quantities.iter();
        quantities
            .filter(|quantity| are_equal(quantity.dimension, dimension))
            .collect()
    }

    /// The quantities of a dimension, with their units.
    fn describe(&self, dimension: Dimension) -> String {
        let found: Vec<String> = self
            .of(dimension)
            .into_iter()
            .map(Quantity::describe)
            .collect();
        match found.is_empty() {
            true => exponents(dimension),
            false => found.join(" or "),
        }
    }

    fn describe_briefly(&self, dimension: Dimension) -> String {
        let found: Vec<&str> = self
            .of(dimension)
            .iter()
            .map(|other| &*other.name)
            .collect();
        match found.is_empty() {
            true => exponents(dimension),
            false => found.join(" or "),
        }
    }
}

impl Quantity {
    fn describe(&self) -> String {
        let units: Vec<&str> = self.units.iter().map(|(name, _)| &**name).collect();
        match units.is_empty() {
            true => self.name.clone(),
            false => format!("{} ({})", self.name, units.join(", ")),
        }
    }
}

fn exponents(dimension: Dimension) -> String {
    if are_equal(dimension, DIMENSIONLESS) {
        return "a dimensionless number".into();
    }
    let parts = ["length", "mass", "time"].iter().zip(dimension);
    let parts = parts.filter(|(_, exponent)| exponent.abs() >= 1e-9);
    let parts: Vec<String> = parts
        .map(|(name, exponent)| format!("{name}**{exponent}"))
        .collect();
    parts.join(" * ")
}
