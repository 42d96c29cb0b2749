//! The text of a condition into its steps in postfix order.

use super::{Comparison, Literal, Operator, Step};
use crate::error::{Error, Result};

/// More comparisons than anyone writes by hand; bounds the memory of masks.
pub(super) const MAX_COMPARISONS: usize = 256;

/// The steps of the condition that `text` says.
pub(super) fn steps(text: &str) -> Result<Vec<Step>> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        steps: Vec::new(),
        comparisons: 0,
    };
    parser.condition()?;
    Ok(parser.steps)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(Literal),
    Operator(Operator),
    And,
    Or,
    Not,
    Open,
    Close,
    End,
}

/// Precedence climbing with explicit stacks.
struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    steps: Vec<Step>,
    comparisons: usize,
}

impl Parser {
    fn peek(&self) -> (&Token, usize) {
        // The last token is `End`, and `take` never passes it.
        let (token, position) = &self.tokens[self.next];
        (token, *position)
    }

    fn take(&mut self) -> (Token, usize) {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn condition(&mut self) -> Result<()> {
        let mut waiting: Vec<(Token, usize)> = Vec::new();
        loop {
            match self.peek().0 {
                Token::Not | Token::Open => {
                    let token = self.take();
                    waiting.push(token);
                    continue;
                }
                _ => self.comparison()?,
            }
            loop {
                let (token, position) = self.take();
                match token {
                    Token::And | Token::Or => {
                        self.settle(&mut waiting, &token);
                        waiting.push((token, position));
                        break;
                    }
                    Token::Close => {
                        self.settle(&mut waiting, &token);
                        if waiting.pop().is_none() {
                            return Err(wrong(position, "\")\" without \"(\" before it"));
                        }
                    }
                    Token::End => {
                        self.settle(&mut waiting, &token);
                        return match waiting.pop() {
                            Some((_, position)) => {
                                Err(wrong(position, "\"(\" without \")\" behind it"))
                            }
                            None => Ok(()),
                        };
                    }
                    other => {
                        let found = describe(&other);
                        let expected = format!("expected and, or, or the end, found {found}");
                        return Err(wrong(position, &expected));
                    }
                }
            }
        }
    }

    /// Emits the operators in waiting that bind at least as strongly as `token`.
    fn settle(&mut self, waiting: &mut Vec<(Token, usize)>, token: &Token) {
        let strength = |token: &Token| match token {
            Token::Not => 3,
            Token::And => 2,
            Token::Or => 1,
            _ => 0,
        };
        while let Some((top, _)) = waiting.last()
            && *top != Token::Open
            && strength(top) >= strength(token)
        {
            self.steps.push(match top {
                Token::Not => Step::Not,
                Token::And => Step::And,
                _ => Step::Or,
            });
            waiting.pop();
        }
    }

    fn comparison(&mut self) -> Result<()> {
        let (mut left, mut at) = self.take();
        if !matches!(left, Token::Name(_) | Token::Number(_)) {
            let found = describe(&left);
            let expected = format!("expected a field, a number, not, or \"(\", found {found}");
            return Err(wrong(at, &expected));
        }
        let mut links = 0;
        loop {
            let position = self.peek().1;
            let Token::Operator(operator) = *self.peek().0 else {
                if links > 0 {
                    return Ok(());
                }
                let found = describe(self.peek().0);
                let expected = format!("expected <, <=, >, >=, == or !=, found {found}");
                return Err(wrong(position, &expected));
            };
            self.take();
            let (right, right_at) = self.take();
            let comparison = match (left, &right) {
                (Token::Name(field), Token::Number(number)) => Comparison {
                    field,
                    operator,
                    number: *number,
                },
                (Token::Number(number), Token::Name(field)) => Comparison {
                    field: field.clone(),
                    operator: operator.mirrored(),
                    number,
                },
                (_, Token::Name(_) | Token::Number(_)) => {
                    return Err(wrong(
                        at,
                        "expected a field on one side and a number on the other",
                    ));
                }
                _ => {
                    let found = describe(&right);
                    let expected = format!("expected a field or a number, found {found}");
                    return Err(wrong(right_at, &expected));
                }
            };
            self.comparisons += 1;
            if self.comparisons > MAX_COMPARISONS {
                let most = format!("more than {MAX_COMPARISONS} comparisons");
                return Err(wrong(right_at, &most));
            }
            self.steps.push(Step::Compare(comparison));
            if links > 0 {
                self.steps.push(Step::And);
            }
            links += 1;
            (left, at) = (right, right_at);
        }
    }
}

impl Operator {
    /// The operator that says the same with the sides exchanged.
    fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }
}

fn wrong(position: usize, what: &str) -> Error {
    Error::invalid(format!(
        "the condition cannot be read at character {}: {what}",
        position + 1
    ))
}

fn describe(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("{name:?}"),
        Token::Number(number) => number.value.to_string(),
        Token::Operator(_) => "an operator".into(),
        Token::And => "and".into(),
        Token::Or => "or".into(),
        Token::Not => "not".into(),
        Token::Open => "\"(\"".into(),
        Token::Close => "\")\"".into(),
        Token::End => "the end".into(),
    }
}

/// The tokens of `text` with the characters they begin at; the last is `End`.
fn tokens(text: &str) -> Result<Vec<(Token, usize)>> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at].is_whitespace() {
            at += 1;
            continue;
        }
        let (token, len) = token(&text[at..]).map_err(|what| wrong(at, &what))?;
        tokens.push((token, at));
        at += len;
    }
    tokens.push((Token::End, text.len()));
    Ok(tokens)
}

/// The token that `text`, which is not empty, begins with, and its length in characters.
fn token(text: &[char]) -> std::result::Result<(Token, usize), String> {
    let second = text.get(1).copied().unwrap_or(' ');
    Ok(match (text[0], second) {
        ('<', '=') => (Token::Operator(Operator::LessEqual), 2),
        ('>', '=') => (Token::Operator(Operator::GreaterEqual), 2),
        ('=', '=') => (Token::Operator(Operator::Equal), 2),
        ('!', '=') => (Token::Operator(Operator::NotEqual), 2),
        ('<', _) => (Token::Operator(Operator::Less), 1),
        ('>', _) => (Token::Operator(Operator::Greater), 1),
        ('(', _) => (Token::Open, 1),
        (')', _) => (Token::Close, 1),
        ('`', _) => {
            let len = text[1..].iter().position(|c| *c == '`');
            let len = len.ok_or("\"`\" without another behind the name")?;
            (Token::Name(text[1..=len].iter().collect()), len + 2)
        }
        (c, _) if c.is_alphabetic() || c == '_' => {
            let len = text.iter().take_while(|c| in_name(**c)).count();
            let name: String = text[..len].iter().collect();
            (word(name), len)
        }
        (c, _) if c.is_ascii_digit() || "+-.".contains(c) => number(text)?,
        ('=', _) => return Err("write == for equality".into()),
        (c, _) => return Err(format!("{c:?} has no meaning here")),
    })
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

fn word(name: String) -> Token {
    match name.as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "inf" => Token::Number(Literal {
            value: f64::INFINITY,
            integer: None,
        }),
        _ => Token::Name(name),
    }
}

fn number(text: &[char]) -> std::result::Result<(Token, usize), String> {
    let mut len = usize::from("+-".contains(text[0]));
    while let Some(&c) = text.get(len) {
        let after_exponent = matches!(text[len - usize::from(len > 0)], 'e' | 'E');
        if !(in_name(c) || after_exponent && "+-".contains(c)) {
            break;
        }
        len += 1;
    }
    let literal: String = text[..len].iter().collect();
    // Rust also reads words such as "nan"; the first character here is a digit, a sign or a point.
    let plain = literal.trim_start_matches(['+', '-']);
    let value = match literal.parse::<f64>() {
        Ok(value)
            if plain == "inf" || plain.starts_with(|c: char| c == '.' || c.is_ascii_digit()) =>
        {
            value
        }
        _ => return Err(format!("{literal:?} is not a number")),
    };
    let integer = literal.parse::<i128>().ok();
    Ok((Token::Number(Literal { value, integer }), len))
}
