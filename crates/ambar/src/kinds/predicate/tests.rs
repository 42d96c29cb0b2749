//! Conditions against a plain reading of the same rows.

use super::parse::MAX_COMPARISONS;
use super::*;
use crate::error::Error;
use proptest::prelude::*;

const A: [f64; 6] = [0.0, 1.0, 2.5, -3.0, f64::NAN, f64::INFINITY];
const N: [i64; 6] = [0, 1, 2, -3, 9_007_199_254_740_993, i64::MAX];
const FLAG: [u8; 6] = [0, 1, 0, 1, 0, 1];

fn rows(text: &str) -> Vec<usize> {
    let predicate = Predicate::parse(text).unwrap();
    let mut mask = vec![true; 6];
    let column = |name: &str| match name {
        "a" => Ok((&DataType::Float64, bytemuck::cast_slice(&A[..]))),
        "n" => Ok((&DataType::Int64, bytemuck::cast_slice(&N[..]))),
        "flag" => Ok((&DataType::Bool, &FLAG[..])),
        "odd name" => Ok((&DataType::String, &FLAG[..])),
        other => Err(Error::not_found(other)),
    };
    predicate.narrow(&mut mask, column).unwrap();
    (0..6).filter(|&row| mask[row]).collect()
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
fn errors_say_where_and_what() {
    for (text, position, what) in [
        ("", 1, "expected a field"),
        ("density", 8, "expected <"),
        ("density = 3", 9, "write =="),
        ("density > ", 11, "expected a field or a number"),
        ("a > b", 1, "a number on the other"),
        ("1 < 2", 1, "a field on one side"),
        ("a > 1 b < 2", 7, "expected and"),
        ("(a > 1", 1, "without \")\""),
        ("a > 1)", 6, "without \"(\""),
        ("a > 1 and", 10, "found the end"),
        ("a > 1 & b < 2", 7, "'&'"),
        ("`a > 1", 1, "without another"),
        ("a > 1x", 5, "not a number"),
        ("a > -nan", 5, "not a number"),
        ("ä > 1 or or", 10, "found or"),
    ] {
        let error = Predicate::parse(text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("character {position}:")),
            "{text}: {error}"
        );
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn text_that_is_hostile_is_an_error_or_harmless() {
    let deep = "(".repeat(100_000) + "a > 1" + &")".repeat(100_000);
    assert!(Predicate::parse(&deep).is_ok());
    let long = vec!["a > 1"; MAX_COMPARISONS + 1].join(" or ");
    assert!(Predicate::parse(&long).is_err());
}

#[test]
fn columns_that_are_not_numbers_are_errors() {
    let predicate = Predicate::parse("`odd name` == 1").unwrap();
    assert_eq!(predicate.fields(), ["odd name"]);
    let result = predicate.narrow(&mut [true], |_| Ok((&DataType::String, &FLAG[..1])));
    assert!(result.unwrap_err().to_string().contains("odd name"));
}

#[test]
fn a_range_says_nothing_of_nan() {
    let outcome = |text: &str, range, nan| {
        let predicate = Predicate::parse(text).unwrap();
        let outcome = predicate.outcome(|_| Ok(Some((range, nan)))).unwrap();
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
    ] {
        assert_eq!(outcome(text, range, false), clean, "{text}");
        assert_eq!(outcome(text, range, true), with_nan, "{text}");
    }
}

#[test]
fn aliases_are_replaced() {
    let mut predicate = Predicate::parse("rho > 1 and p < 2 and rho < 5").unwrap();
    predicate.rename(|name| (name == "rho").then(|| "density".into()));
    assert_eq!(predicate.fields(), ["density", "p"]);
}

fn conditions() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let field = prop::sample::select(vec!["f", "i"]);
    let leaf =
        (field, operator, -4i32..5, 0..3u8).prop_map(|(field, operator, n, form)| match form {
            0 => format!("{field} {operator} {n}"),
            1 => format!("{field} {operator} {n}.5"),
            _ => format!("{n} {operator} {field}"),
        });
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} or {b}")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

proptest! {
    #[test]
    fn ranges_never_contradict_rows(
        text in conditions(),
        rows in prop::collection::vec((prop_oneof![4 => (-8i32..9).prop_map(|v| f64::from(v) / 2.0), 1 => Just(f64::NAN)], -4i8..5), 1..6),
    ) {
        let predicate = Predicate::parse(&text).unwrap();
        let (floats, ints): (Vec<f64>, Vec<i8>) = rows.into_iter().unzip();
        let float_bytes: &[u8] = bytemuck::cast_slice(&floats);
        let int_bytes: &[u8] = bytemuck::cast_slice(&ints);
        let mut mask = vec![true; floats.len()];
        predicate.narrow(&mut mask, |name| Ok(match name {
            "f" => (&DataType::Float64, float_bytes),
            _ => (&DataType::Int8, int_bytes),
        })).unwrap();
        let outcome = predicate.outcome(|name| Ok(Some(match name {
            "f" => (numbers::range(&DataType::Float64, float_bytes), true),
            _ => (numbers::range(&DataType::Int8, int_bytes), false),
        }))).unwrap();
        prop_assert!(outcome.may_hold || !mask.contains(&true), "{}", text);
        prop_assert!(outcome.may_fail || !mask.contains(&false), "{}", text);
    }
}
