//! Conditions, compared with a direct evaluation row by row.

use super::tree::MAX_NODES;
use super::*;
use crate::dtype::DataType;
use crate::error::Error;
use crate::numbers;
use ColumnValues::{Numbers, Values};
use proptest::prelude::*;

const A: [f64; 6] = [0.0, 1.0, 2.5, -3.0, f64::NAN, f64::INFINITY];
const N: [i64; 6] = [0, 1, 2, -3, 9_007_199_254_740_993, i64::MAX];
const FLAG: [u8; 6] = [0, 1, 0, 1, 0, 1];

fn rows(text: &str) -> Vec<usize> {
    let found = Condition::parse(text).unwrap().evaluate(6, column);
    let found = found.unwrap_or_else(|error| panic!("{text}: {error}"));
    (0..6).filter(|&row| found[row]).collect()
}

fn column(name: &str) -> Result<ColumnValues<'static>> {
    Ok(match name {
        "a" => Numbers(&DataType::Float64, bytemuck::cast_slice(&A)),
        "n" => Numbers(&DataType::Int64, bytemuck::cast_slice(&N)),
        "m" => Numbers(&DataType::UInt8, &FLAG),
        "flag" => Numbers(&DataType::Bool, &FLAG),
        "odd name" => Numbers(&DataType::String, &FLAG),
        other => return Err(Error::not_found(other)),
    })
}

#[test]
fn operators_on_floats_integers_and_bool() {
    assert_eq!(rows("a < 1"), [0, 3]);
    assert_eq!(rows("a<=1"), [0, 1, 3]);
    assert_eq!(rows("1 < a"), [2, 5]);
    assert_eq!(rows("a >= 2.5"), [2, 5]);
    assert_eq!(rows("a == inf"), [5]);
    assert_eq!(rows("a > -inf"), [0, 1, 2, 3, 5]);
    assert_eq!(rows("a != 1"), [0, 2, 3, 4, 5]);
    assert_eq!(rows("n == 9007199254740993"), [4]);
    assert_eq!(rows("n != 9007199254740993"), [0, 1, 2, 3, 5]);
    assert_eq!(rows("n < 1.5"), [0, 1, 3]);
    assert_eq!(rows("n <= -2.5"), [3]);
    assert_eq!(rows("n > 1.5 and n < 1e300"), [2, 4, 5]);
    assert_eq!(rows("n == 1.5"), [] as [usize; 0]);
    assert_eq!(rows("n != 1.5").len(), 6);
    assert_eq!(rows("n > 99999999999999999999"), [] as [usize; 0]);
    assert_eq!(rows("flag == 1"), [1, 3, 5]);
    assert_eq!(rows("flag < 1e-3"), [0, 2, 4]);
}

#[test]
fn words_bind_as_in_python() {
    assert_eq!(rows("a > 0 and n < 2 or n == 2"), [1, 2]);
    assert_eq!(rows("a > 0 and (n < 2 or n == 2)"), [1, 2]);
    assert_eq!(rows("n == 0 or a > 0 and n < 2"), [0, 1]);
    assert_eq!(rows("not a > 0 and n == 0"), [0]);
    assert_eq!(rows("not (a > 0 and n == 1)"), [0, 2, 3, 4, 5]);
    assert_eq!(rows("not not a > 0"), [1, 2, 5]);
    assert_eq!(rows("0 < a <= 2.5"), [1, 2]);
    assert_eq!(rows("3 > a > 0 < n"), [1, 2]);
    assert_eq!(rows("(((`a`>+.5e0)))"), [1, 2, 5]);
}

#[test]
fn errors_name_the_position_and_the_cause() {
    for (text, position, what) in [
        ("", 1, "expected a field"),
        ("density", 8, "expected <"),
        ("density = 3", 9, "write =="),
        ("density > ", 11, "expected a field or a number"),
        ("1 < 2", 1, "a field on one side"),
        ("a > 1 b < 2", 7, "expected and"),
        ("(a > 1", 1, "expected \")\" to close"),
        ("a > 1)", 6, "has no matching \"(\""),
        ("a > 1 and", 10, "found the end"),
        ("a > 1 & b < 2", 7, "\"&\""),
        ("`a > 1", 1, "a closing `"),
        ("a > 1x", 5, "not a number"),
        ("a > -nan", 6, "found nan"),
        ("ä > 1 or or", 10, "found or"),
        ("a > 1 < 2", 5, "a field on one side"),
        ("a ^ 2 > 1", 3, "write **"),
        ("a * 2", 6, "expected <"),
        ("(a > 1) + 1 > 2", 2, "found a condition"),
        ("(a > 1) == 1", 2, "found a condition"),
        ("a + not a > 1", 5, "found not"),
        ("a > 1 and b", 12, "expected <"),
        ("not a", 6, "expected <"),
        ("(a) and b > 1", 5, "expected <"),
        ("abs(a > 1) > 1", 5, "found a condition"),
        ("abs(a, a) > 1", 1, "one argument, found 2"),
        ("min(a) > 1", 1, "two or more arguments"),
        ("sin(a) > 1", 1, "unknown function \"sin\""),
        ("abs(a", 1, "expected \")\" to close"),
        ("a, 1 > 2", 2, "only valid between"),
        ("(a, 1) > 2", 3, "only valid between"),
        ("a == 'b", 6, "a closing '"),
        ("a == '\\x'", 6, "unknown escape"),
        ("a + 'b' > 1", 5, "found a string"),
        ("2 * a == 'b'", 10, "strings compare with fields"),
        ("'a' == 'b'", 1, "a field on one side"),
        ("a in 3", 6, "expected a list"),
        ("3 in [3]", 1, "expected a field"),
        ("a in [1, 'b']", 10, "expected a number"),
        ("a in ['b', 1]", 12, "expected a string"),
        ("a in [1 2]", 9, "expected \",\" or \"]\""),
        ("a in [a]", 7, "expected a number or a string"),
        ("a in (1, 2]", 11, "expected \",\" or \")\""),
        ("2 * a in ['b']", 10, "strings compare with fields"),
        ("a > 1] ", 6, "found \"]\""),
    ] {
        let error = Condition::parse(text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("character {position}:")),
            "{text}: {error}"
        );
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn hostile_text_is_an_error_or_harmless() {
    let deep = "(".repeat(100_000) + "a > 1" + &")".repeat(100_000);
    assert!(Condition::parse(&deep).is_ok());
    let long = vec!["a > 1"; MAX_NODES].join(" or ");
    assert!(Condition::parse(&long).is_err());
    let calls = "abs(".repeat(100_000) + "a" + &")".repeat(100_000) + " > 1";
    assert!(Condition::parse(&calls).is_err());
    let folded = "1 + ".repeat(100_000) + "1 < a";
    assert!(Condition::parse(&folded).is_ok());
    let unit = format!("a > 1 {}", "a/".repeat(200_000) + "a");
    assert!(Condition::parse(&unit).is_ok());
    let list = format!("n in [{}]", "1, ".repeat(100_000));
    assert_eq!(rows(&list), [1]);
    let error = Condition::parse(&" ".repeat(1 << 21)).unwrap_err();
    assert!(error.to_string().contains("at most"), "{error}");
}

#[test]
fn arithmetic_binds_as_in_python() {
    let value = |text: &str| {
        Expression::parse(text)
            .unwrap()
            .evaluate(6, column)
            .unwrap()[2]
    };
    // Row 2 has a = 2.5, n = 2, m = 0.
    for (text, expected) in [
        ("a", 2.5),
        ("2 + 3 * 4", 14.0),
        ("a + 3 * n", 8.5),
        ("(a + 3) * n", 11.0),
        ("a - n - 1", -0.5),
        ("8 / n / 2", 2.0),
        ("-a ** 2", -6.25),
        ("(-a) ** 2", 6.25),
        ("2 ** n ** 3", 256.0),
        ("2 ** -n", 0.25),
        ("2 ** -n * 8", 2.0),
        ("a ** 0.5", 2.5f64.sqrt()),
        ("n ** -1", 0.5),
        ("n ** 3", 8.0),
        ("n ** a", 2f64.powf(2.5)),
        ("a--n", 4.5),
        ("a-1", 1.5),
        ("+ - + a", -2.5),
        ("abs(n - 5)", 3.0),
        ("sqrt(n * 8)", 4.0),
        ("log10(n * 50)", 2.0),
        ("min(a, n, 1.5)", 1.5),
        ("max(a, n, m)", 2.5),
        ("max(1, 2) - a", -0.5),
        ("n / m", f64::INFINITY),
        ("True + m", 1.0),
        ("1e3 * .5", 500.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    assert!(value("m / m").is_nan());
    assert!(value("min(0 / m, a)").is_nan(), "NaN, as NumPy's minimum");
    assert!(value("max(a, 0 / m)").is_nan());
    let error = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert!(error("a > 1").contains("invalid expression at character 1: expected a field"));
    assert!(error("'a'").contains("found a string"));
}

#[test]
fn arithmetic_compares() {
    assert_eq!(rows("a * 2 > n"), [1, 2, 5]);
    assert_eq!(rows("a > n"), [2, 5]);
    assert_eq!(rows("n == m"), [0, 1]);
    assert_eq!(rows("-1 <= n - a < 0 or sqrt(a) == 1"), [1, 2]);
    assert_eq!(rows("a != a"), [4]);
    assert_eq!(rows("n - 1 in [0, 1]"), [1, 2]);
    assert_eq!(rows("0 / m != 1"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(rows("n > 0 / 0"), [] as [usize; 0]);
    assert_eq!(rows("2 ** 53 < n <= 2**63"), [4, 5]);
    assert_eq!(rows("n < 2 * 0.75"), [0, 1, 3]);
}

#[test]
fn lists_are_exact() {
    assert_eq!(rows("n in [2, 9007199254740993, 9007199254740992]"), [2, 4]);
    assert_eq!(
        rows("n in [9007199254740992, 9007199254740994]"),
        [] as [usize; 0]
    );
    assert_eq!(rows("n in (-3, 1.0, 2.5,)"), [1, 3]);
    assert_eq!(rows("n not in [0, 1, 2]"), [3, 4, 5]);
    assert_eq!(rows("a in [1, inf, -3]"), [1, 3, 5]);
    assert_eq!(rows("a not in [1]"), [0, 2, 3, 4, 5]);
    assert_eq!(rows("a in [-0.0]"), [0]);
    assert_eq!(rows("flag in [True]"), [1, 3, 5]);
    assert_eq!(rows("n in []"), [] as [usize; 0]);
    assert_eq!(rows("n not in []").len(), 6);
    assert_eq!(rows("not n in [0] and 0 <= n in [0, 1, -3]"), [1]);
}

#[test]
fn values_of_any_kind() {
    let text = |text: &str| Value::Text(text.into());
    let values = [
        text("argo"),
        text("glider"),
        Value::Missing,
        Value::Integer(3),
        Value::Float(2.5),
        Value::Float(f64::NAN),
    ];
    let other = [
        Value::Integer(3),
        text("x"),
        Value::Missing,
        Value::Integer(3),
    ];
    let other: Vec<Value> = other.into_iter().chain([text("argo"), text("b")]).collect();
    let rows = |text: &str| {
        let condition = Condition::parse(text).unwrap();
        let found = condition.evaluate(6, |name| match name {
            "v" => Ok(Values(&values)),
            "w" => Ok(Values(&other)),
            name => column(name),
        });
        let found = found.unwrap();
        (0..6).filter(|&row| found[row]).collect::<Vec<usize>>()
    };
    assert_eq!(rows("v == 'argo'"), [0]);
    assert_eq!(rows("\"argo\" != v"), [1, 3, 4, 5]);
    assert_eq!(rows("'b' < v"), [1]);
    assert_eq!(rows("v > 2"), [3, 4]);
    assert_eq!(rows("v != 3"), [0, 1, 4, 5]);
    assert_eq!(rows("v in ['glider', 'boat']"), [1]);
    assert_eq!(rows("v not in ['glider', 'boat']"), [0, 3, 4, 5]);
    assert_eq!(rows("v in [2.5, 3]"), [3, 4]);
    assert_eq!(rows("not v == 3"), [0, 1, 2, 4, 5]);
    assert_eq!(rows("v == w"), [3]);
    assert_eq!(rows("v * 2 > 5"), [3]);
    assert_eq!(rows("v == n"), [] as [usize; 0]);
    assert_eq!(rows("n + 7 > v"), [3, 4]);
    for missing in [
        "v * 1 != 7",
        "v + 0 not in [7]",
        "v ** 0 == 1",
        "-v != -n - 70",
        "min(abs(v), n - 10) != w",
        "n * 2 != sqrt(v + n)",
    ] {
        assert!(!rows(missing).contains(&2), "{missing}");
        assert!(rows(&format!("not {missing}")).contains(&2), "{missing}");
    }
    assert_eq!(rows("v * 1 != 7"), [0, 1, 3, 4, 5]);
    let texts = [text("a"), Value::Missing];
    let found = |text: &str| {
        let found = Condition::parse(text).unwrap().evaluate(2, |name| {
            let numbers: &[Value] = &[Value::Integer(3), Value::Missing];
            let nothing: &[Value] = &[Value::Missing, Value::Missing];
            match name {
                "t" => Ok(Values(&texts)),
                "n" => Ok(Values(numbers)),
                _ => Ok(Values(nothing)),
            }
        });
        found.map_err(|error| error.to_string())
    };
    for (text, message) in [
        (
            "t > 5",
            "expected a comparison with strings, found a number",
        ),
        (
            "t != 5",
            "expected a comparison with strings, found a number",
        ),
        (
            "t not in [1, 2]",
            "expected a comparison with strings, found a number",
        ),
        (
            "n == 'a'",
            "\"n\" contains numbers; expected a comparison with numbers, found a string",
        ),
        (
            "n in ['a']",
            "expected a comparison with numbers, found a string",
        ),
        (
            "n != t",
            "expected a comparison with numbers, found strings in \"t\"",
        ),
        (
            "t != n",
            "expected a comparison with numbers, found strings in \"t\"",
        ),
    ] {
        let error = found(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
    for none in ["t in []", "missing == 'a'", "missing < 3", "missing != n"] {
        assert_eq!(found(none), Ok(vec![false, false]), "{none}");
    }
    assert_eq!(found("t not in []"), Ok(vec![true, false]));
    let sum = Expression::parse("t + 1").unwrap();
    let error = sum.evaluate(2, |_| Ok(Values(&texts))).unwrap_err();
    assert!(error.to_string().contains("contains strings"), "{error}");
    let error = Condition::parse("a == 'x'").unwrap().evaluate(6, column);
    assert!(error.unwrap_err().to_string().contains("found a string"));
    let error = Condition::parse("a in ['x']").unwrap().evaluate(6, column);
    assert!(error.unwrap_err().to_string().contains("found a string"));
    let error = Condition::parse("a > 1").unwrap().evaluate(7, column);
    assert!(error.unwrap_err().to_string().contains("expected 7 values"));
}

#[test]
fn integers_and_floats_compare_exactly() {
    let large = (1i128 << 53) + 1;
    let float = (1i64 << 53) as f64;
    assert!(Value::Integer(large) > Value::Float(float));
    assert!(Value::Float(float + 2.0) > Value::Integer(large));
    assert!(Value::Integer(large) < Value::Float(f64::INFINITY));
    assert_eq!(Value::Integer(2), Value::Float(2.0));
    assert_eq!(
        Value::Integer(large).partial_cmp(&Value::Float(f64::NAN)),
        None
    );
}

#[test]
fn floats_and_integers_between_them_compare_exactly() {
    let float = (1u64 << 53) as f64;
    let values = [float, float + 2.0, f64::NAN, -float];
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    for (text, expected) in [
        ("a == 9007199254740993", [false; 4]),
        ("a != 9007199254740993", [true; 4]),
        ("a < 9007199254740993", [true, false, false, true]),
        ("a <= 9007199254740993", [true, false, false, true]),
        ("a > 9007199254740993", [false, true, false, false]),
        ("a >= 9007199254740993", [false, true, false, false]),
        (
            "a in [9007199254740993, 9007199254740994]",
            [false, true, false, false],
        ),
        (
            "a not in [9007199254740993, -9007199254740992]",
            [true, true, true, false],
        ),
    ] {
        let condition = Condition::parse(text).unwrap();
        let found = condition.evaluate(4, |_| Ok(Numbers(&DataType::Float64, bytes)));
        assert_eq!(found.unwrap(), expected, "{text}");
    }
}

#[test]
fn many_blocks_are_evaluated() {
    let values: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    let column = |_: &str| Ok(Numbers(&DataType::Float32, bytes));
    let sum = Expression::parse("f * 2 + 1")
        .unwrap()
        .evaluate(10_000, column)
        .unwrap();
    assert!(
        sum.iter()
            .zip(&values)
            .all(|(sum, value)| *sum == f64::from(*value) * 2.0 + 1.0)
    );
    let found = Condition::parse("f ** 2 >= 25e6 and f < 7000").unwrap();
    let found = found.evaluate(10_000, column).unwrap();
    let count = found.iter().filter(|flag| **flag).count();
    assert_eq!((count, found[4999], found[5000]), (2000, false, true));
}

/// Lengths of 2 m, masses of 3 kg and times of 4 s.
fn system() -> UnitSystem {
    let quantity = |name: &str, dimension, units: &[(&str, f64)]| Quantity {
        name: name.into(),
        dimension,
        units: units
            .iter()
            .map(|(name, factor)| ((*name).into(), *factor))
            .collect(),
    };
    let fields = [
        ("x", "length"),
        ("m", "mass"),
        ("vx", "velocity"),
        ("vy", "velocity"),
    ];
    UnitSystem {
        quantities: vec![
            quantity("length", [1.0, 0.0, 0.0], &[("m", 2.0), ("km", 0.002)]),
            quantity("mass", [0.0, 1.0, 0.0], &[("kg", 3.0)]),
            quantity("velocity", [1.0, 0.0, -1.0], &[("m/s", 0.5)]),
            quantity("energy", [2.0, 1.0, -2.0], &[("J", 0.75)]),
            quantity("lengths", [0.0, 1.0, -1.0], &[("none", 0.0)]),
        ],
        spellings: [("kilometre".into(), "km".into())].into(),
        fields: fields
            .map(|(field, name)| (field.into(), name.into()))
            .into(),
    }
}

#[test]
fn units_are_converted() {
    let values = [1.0f64, 2.0, 3.0, 4.0];
    let rows = |text: &str| {
        let condition = Condition::parse(text).unwrap();
        let condition = condition.convert_units(&system());
        let condition = condition.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(condition.units().is_empty());
        let bytes = bytemuck::cast_slice(&values);
        let found = condition
            .evaluate(4, |_| Ok(Numbers(&DataType::Float64, bytes)))
            .unwrap();
        (0..4).filter(|&row| found[row]).collect::<Vec<usize>>()
    };
    assert_eq!(rows("x > 5 m"), [2, 3], "one code unit is 2 m");
    assert_eq!(rows("5 m < x <= 0.006 km"), [2]);
    assert_eq!(rows("x in [2 m, 0.008 kilometre]"), [0, 3]);
    assert_eq!(rows("sqrt(vx**2 + vy**2) > 1.5 m/s"), [2, 3]);
    assert_eq!(rows("m * vx**2 / 2 >= 10.125 J"), [2, 3]);
    assert_eq!(rows("x - 1 > 2 m"), [2, 3], "plain numbers are code units");
    assert_eq!(rows("x / 1 m > 5"), [2, 3]);
    assert_eq!(rows("log10(x / 2 m) > 0"), [1, 2, 3]);
    assert_eq!(rows("max(vx, vy) > 1 m/s or metals > 3"), [2, 3]);
    assert_eq!(
        rows("x > -2 m and metals == vx"),
        [0, 1, 2, 3],
        "other comparisons have no units"
    );
    assert_eq!(
        Condition::parse("x > 1 km/s and vx in [2 m/s, 1 km/s]")
            .unwrap()
            .units(),
        ["km/s", "m/s"]
    );
}

#[test]
fn units_have_exponents() {
    for (text, unit) in [
        ("x > 1 g cm-3 and y < 2", "g cm-3"),
        ("x > 1 cm**-3", "cm**-3"),
        ("x > 1 1/cm**3", "1/cm**3"),
        ("x in [1 g/cm3/s+2]", "g/cm3/s+2"),
        ("x > 2 kpc ** 3 + y", "kpc**3"),
    ] {
        assert_eq!(Condition::parse(text).unwrap().units(), [unit], "{text}");
    }
    for text in [
        "x > 1 km -3",
        "x > 1 km - 3",
        "x > 1 km-3.5",
        "x > 1 km-y",
        "x > (1 km)**2",
    ] {
        assert_eq!(Condition::parse(text).unwrap().units(), ["km"], "{text}");
    }
    assert!(Condition::parse("x > 1 2/cm").is_err() && Condition::parse("x > 1 1 /cm").is_err());
}

#[test]
fn units_of_other_dimensions_are_errors() {
    for (text, position, what) in [
        ("x > 1 kg", 7, "expected length (m, km), found \"kg\", mass"),
        ("1 kg < x", 3, "expected length (m, km), found \"kg\", mass"),
        ("x in [1 m, 2 kg]", 14, "expected length"),
        (
            "metals > 1 kg",
            12,
            "expected fields of known units, found \"metals\"",
        ),
        ("metals * x > 1 m", 16, "found \"metals\""),
        (
            "x > 1 parsec",
            7,
            "unknown unit \"parsec\"; available: length (m, km), mass (kg)",
        ),
        (
            "x + m > 1 m",
            11,
            "of one dimension, found length (m, km) and mass (kg)",
        ),
        ("log10(x) > 1 m", 14, "dimensionless argument"),
        ("x ** m > 1 m", 12, "as the exponent"),
        ("x * x > 1 m", 11, "expected length**2, found"),
        ("x / x > 1 m", 11, "a dimensionless number"),
        ("m > 1 none", 7, "expected a positive number"),
        ("a > 1 b", 7, "unknown unit"),
    ] {
        let condition = Condition::parse(text).unwrap();
        let error = condition.convert_units(&system()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("character {position}:")),
            "{text}: {error}"
        );
        assert!(error.contains(what), "{text}: {error}");
    }
    let condition = Condition::parse("a > 1 kg").unwrap();
    let error = condition.evaluate(6, column).unwrap_err().to_string();
    assert!(error.contains("found the unit \"kg\""), "{error}");
}

#[test]
fn columns_that_are_not_numbers_are_errors() {
    let condition = Condition::parse("`odd name` == 1").unwrap();
    assert_eq!(condition.fields(), ["odd name"]);
    let result = condition.evaluate(1, |_| Ok(Numbers(&DataType::String, &FLAG[..1])));
    assert!(result.unwrap_err().to_string().contains("odd name"));
}

#[test]
fn a_range_does_not_exclude_nan() {
    let outcome = |text: &str, range, nan| {
        let condition = Condition::parse(text).unwrap();
        let outcome = condition.outcome(|_| Ok(Some((range, nan)))).unwrap();
        (outcome.may_hold, outcome.may_fail)
    };
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    for (text, range, clean, with_nan) in [
        ("a == 1", [1.0, 1.0], (true, false), (true, true)),
        ("a != 1", [1.0, 1.0], (false, true), (true, true)),
        ("a < 2", [1.0, 1.0], (true, false), (true, true)),
        ("a <= 1", [1.0, 1.0], (true, false), (true, true)),
        ("a > 0", [1.0, 1.0], (true, false), (true, true)),
        ("a >= 1", [1.0, 1.0], (true, false), (true, true)),
        ("not a > 2", [1.0, 1.0], (true, false), (true, false)),
        ("a > 2", [1.0, 1.0], (false, true), (false, true)),
        ("a != 1", none, (true, false), (true, false)),
        ("a == 1", none, (false, true), (false, true)),
        ("a in [0, 1]", [1.0, 1.0], (true, false), (true, true)),
        ("a in [0, 2]", [1.0, 1.0], (false, true), (false, true)),
        ("a not in [0, 3]", [1.0, 2.0], (true, false), (true, false)),
        ("2 * a + 1 > 2", [1.0, 2.0], (true, false), (true, true)),
        ("a ** 2 < 1", [-3.0, -2.0], (false, true), (false, true)),
        ("a ** 2 >= 0", [-3.0, 2.0], (true, true), (true, true)),
        ("1 / a > 2", [1.0, 2.0], (false, true), (false, true)),
        ("1 / a > 2", [-1.0, 2.0], (true, true), (true, true)),
        ("sqrt(a) >= 2", [4.0, 9.0], (true, false), (true, true)),
        ("sqrt(a) >= 2", [-9.0, -4.0], (false, true), (false, true)),
        ("log10(a) < 1", [100.0, 200.0], (false, true), (false, true)),
        ("abs(a) > 4", [-3.0, 2.0], (false, true), (false, true)),
        ("min(a, 5) > 5", [1.0, 9.0], (false, true), (false, true)),
        ("a - a > 2", [1.0, 2.0], (false, true), (false, true)),
        ("a * inf > 1", [0.0, 0.0], (true, true), (true, true)),
    ] {
        assert_eq!(outcome(text, range, false), clean, "{text}");
        assert_eq!(outcome(text, range, true), with_nan, "{text}");
    }
}

#[test]
fn aliases_are_replaced() {
    let mut condition = Condition::parse("rho > 1 and p < 2 and rho < 5").unwrap();
    condition.rename(|name| (name == "rho").then(|| "density".into()));
    assert_eq!(condition.fields(), ["density", "p"]);
}

fn expressions() -> impl Strategy<Value = String> {
    let number = (-4i32..5, 0..3u8).prop_map(|(n, form)| match form {
        0 => format!("{n}"),
        1 => format!("{n}.5"),
        _ => format!("{n} * inf"),
    });
    let field = prop::sample::select(vec!["f", "i", "g", "n"]).prop_map(str::to_owned);
    let leaf = prop_oneof![3 => field, 1 => number];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "/", "**"]);
        let function = prop::sample::select(vec!["abs", "sqrt", "log10", "-"]);
        let two = prop::sample::select(vec!["min", "max"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, o, b)| format!("({a}) {o} ({b})")),
            (function, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (two, inner.clone(), inner).prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
        ]
    })
}

fn conditions() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let literal = (-4i32..5, prop::bool::ANY).prop_map(|(n, half)| {
        if half {
            format!("{n}.5")
        } else {
            n.to_string()
        }
    });
    let plain = (
        expressions(),
        operator.clone(),
        literal.clone(),
        prop::bool::ANY,
    )
        .prop_map(|(e, o, n, mirrored)| {
            if mirrored {
                format!("{n} {o} f + 0 * ({e})")
            } else {
                format!("i + 0 * ({e}) {o} {n}")
            }
        });
    let field = prop::sample::select(vec!["f", "i", "g", "n"]);
    let simple = (
        field.clone(),
        operator.clone(),
        literal.clone(),
        prop::bool::ANY,
    )
        .prop_map(|(f, o, n, mirrored)| {
            if mirrored {
                format!("{n} {o} {f}")
            } else {
                format!("{f} {o} {n}")
            }
        });
    let fields = (field.clone(), operator.clone(), expressions())
        .prop_map(|(f, o, e)| format!("{f} {o} {e}"));
    let list = (field, prop::bool::ANY, prop::collection::vec(literal, 0..4)).prop_map(
        |(f, not, items)| {
            format!(
                "{f} {}in [{}]",
                if not { "not " } else { "" },
                items.join(", ")
            )
        },
    );
    let leaf = prop_oneof![simple, plain, fields, list];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} or {b}")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-8i32..9).prop_map(|v| f64::from(v) / 2.0),
        2 => prop::num::f64::ANY,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -4i64..5,
        1 => (1i64 << 53) - 2..(1i64 << 53) + 3,
        1 => prop::num::i64::ANY,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn pruning_never_loses_a_row(
        text in conditions(),
        rows in prop::collection::vec((floats(), floats(), -4i8..5, integers()), 1..6),
        margin in prop::sample::select(vec![0.0, 0.5, f64::INFINITY]),
    ) {
        let condition = Condition::parse(&text).unwrap();
        let floats: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let halves: Vec<f32> = rows.iter().map(|row| row.1 as f32).collect();
        let ints: Vec<i8> = rows.iter().map(|row| row.2).collect();
        let large: Vec<i64> = rows.iter().map(|row| row.3).collect();
        let bytes = |name: &str| -> (&DataType, &[u8]) {
            match name {
                "f" => (&DataType::Float64, bytemuck::cast_slice(&floats)),
                "g" => (&DataType::Float32, bytemuck::cast_slice(&halves)),
                "n" => (&DataType::Int64, bytemuck::cast_slice(&large)),
                _ => (&DataType::Int8, bytemuck::cast_slice(&ints)),
            }
        };
        let mask = condition.evaluate(rows.len(), |name| {
            let (dtype, bytes) = bytes(name);
            Ok(Numbers(dtype, bytes))
        }).unwrap();
        let outcome = condition.outcome(|name| {
            let (dtype, bytes) = bytes(name);
            // An error bound widens the ranges of chunks.
            let [lo, hi] = numbers::range(dtype, bytes);
            Ok(Some(([lo - margin, hi + margin], numbers::has_nan(dtype))))
        }).unwrap();
        prop_assert!(outcome.may_hold || !mask.contains(&true), "{}", text);
        prop_assert!(outcome.may_fail || !mask.contains(&false), "{}", text);
    }

    #[test]
    fn any_text_is_parsed_or_an_error(text in "[a-c0-9 .<>=!+*/()\\[\\],'\"`-]{0,40}|(a|1|and|or|not|in|,|\\(|\\)|<|\\*| |'){0,20}") {
        let _ = Condition::parse(&text);
        let _ = Expression::parse(&text);
    }
}
