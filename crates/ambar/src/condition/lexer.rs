//! The tokens of a condition.

use super::problem::Problem;
use super::tree::{Literal, Operator};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A field, a function, or a unit.
    Name(String),
    /// A field between backquotes.
    Quoted(String),
    Number(Literal),
    Text(String),
    Operator(Operator),
    Plus,
    Minus,
    Times,
    Divide,
    Power,
    And,
    Or,
    Not,
    In,
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
    End,
}

/// A token, and its range of characters.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub token: Token,
    pub start: usize,
    pub end: usize,
}

/// The tokens of `text`; the last is `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<Located>, Problem> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut start = 0;
    while start < text.len() {
        if text[start].is_whitespace() {
            start += 1;
            continue;
        }
        let (token, len) = token(&text[start..]).map_err(|message| Problem::new(start, message))?;
        let end = start + len;
        tokens.push(Located { token, start, end });
        start = end;
    }
    tokens.push(Located {
        token: Token::End,
        start: text.len(),
        end: text.len(),
    });
    Ok(tokens)
}

/// The token that `text`, which is not empty, begins with, and its length in characters.
fn token(text: &[char]) -> Result<(Token, usize), String> {
    let second = text.get(1).copied().unwrap_or(' ');
    Ok(match (text[0], second) {
        ('<', '=') => (Token::Operator(Operator::LessEqual), 2),
        ('>', '=') => (Token::Operator(Operator::GreaterEqual), 2),
        ('=', '=') => (Token::Operator(Operator::Equal), 2),
        ('!', '=') => (Token::Operator(Operator::NotEqual), 2),
        ('<', _) => (Token::Operator(Operator::Less), 1),
        ('>', _) => (Token::Operator(Operator::Greater), 1),
        ('*', '*') => (Token::Power, 2),
        ('*', _) => (Token::Times, 1),
        ('/', _) => (Token::Divide, 1),
        ('+', _) => (Token::Plus, 1),
        ('-', _) => (Token::Minus, 1),
        ('(', _) => (Token::Open, 1),
        (')', _) => (Token::Close, 1),
        ('[', _) => (Token::OpenList, 1),
        (']', _) => (Token::CloseList, 1),
        (',', _) => (Token::Comma, 1),
        ('`', _) => {
            let len = text[1..].iter().position(|c| *c == '`');
            let len = len.ok_or("expected a closing ` after the name, found the end")?;
            (Token::Quoted(text[1..=len].iter().collect()), len + 2)
        }
        ('"' | '\'', _) => string(text)?,
        (c, _) if c.is_alphabetic() || c == '_' => {
            let len = text.iter().take_while(|c| in_name(**c)).count();
            (word(text[..len].iter().collect())?, len)
        }
        (c, _) if c.is_ascii_digit() => number(text)?,
        ('.', c) if c.is_ascii_digit() => number(text)?,
        ('=', _) => return Err("\"=\" is not an operator; write == for equality".into()),
        ('^', _) => return Err("\"^\" is not an operator; write ** for a power".into()),
        (c @ ('&' | '|' | '~' | '!'), _) => {
            return Err(format!("\"{c}\" is not an operator; write and, or, not"));
        }
        (c, _) => return Err(format!("unexpected character \"{}\"", c.escape_debug())),
    })
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

fn word(name: String) -> Result<Token, String> {
    Ok(match name.as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "in" => Token::In,
        "inf" => Token::Number(Literal::float(f64::INFINITY)),
        "True" => Token::Number(Literal::integer(1)),
        "False" => Token::Number(Literal::integer(0)),
        "nan" => {
            return Err(
                "expected a number, found nan, which equals no value; to select NaN, compare a \
                 field with itself: rho != rho"
                    .into(),
            );
        }
        _ => Token::Name(name),
    })
}

fn number(text: &[char]) -> Result<(Token, usize), String> {
    let mut len = 0;
    while let Some(&c) = text.get(len) {
        let after_exponent = len > 0 && matches!(text[len - 1], 'e' | 'E');
        if !(in_name(c) || after_exponent && "+-".contains(c)) {
            break;
        }
        len += 1;
    }
    let literal: String = text[..len].iter().collect();
    let value = literal
        .parse::<f64>()
        .map_err(|_| format!("{literal:?} is not a number; put a space before a unit"))?;
    let integer = literal.parse::<i128>().ok();
    Ok((Token::Number(Literal { value, integer }), len))
}

fn string(text: &[char]) -> Result<(Token, usize), String> {
    let mut value = String::new();
    let mut at = 1;
    loop {
        match text.get(at) {
            None => {
                return Err(format!(
                    "expected a closing {} after the string, found the end",
                    text[0]
                ));
            }
            Some(c) if *c == text[0] => return Ok((Token::Text(value), at + 1)),
            Some('\\') => {
                at += 1;
                value.push(match text.get(at) {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(c @ ('\\' | '"' | '\'')) => *c,
                    _ => return Err(r#"unknown escape sequence; available: \\ \" \' \n \t"#.into()),
                });
            }
            Some(c) => value.push(*c),
        }
        at += 1;
    }
}

impl Token {
    /// The token in an error message.
    pub fn describe(&self) -> String {
        match self {
            Self::Name(name) | Self::Quoted(name) => format!("{name:?}"),
            Self::Number(number) => number.value.to_string(),
            Self::Text(text) => format!("the string {text:?}"),
            Self::Operator(operator) => operator.symbol().into(),
            Self::Plus => "+".into(),
            Self::Minus => "-".into(),
            Self::Times => "*".into(),
            Self::Divide => "/".into(),
            Self::Power => "**".into(),
            Self::And => "and".into(),
            Self::Or => "or".into(),
            Self::Not => "not".into(),
            Self::In => "in".into(),
            Self::Open => "\"(\"".into(),
            Self::Close => "\")\"".into(),
            Self::OpenList => "\"[\"".into(),
            Self::CloseList => "\"]\"".into(),
            Self::Comma => "\",\"".into(),
            Self::End => "the end".into(),
        }
    }
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}
