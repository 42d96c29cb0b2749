//! Operator-precedence parser with explicit stacks. Its time is linear in the length of the text.

use std::collections::HashMap;

use super::lexer::{Located, Token, tokens};
use super::problem::Problem;
use super::tree::{
    Arithmetic, Function, Items, Literal, MAX_NODES, Node, Number, Operator, Tree, UnitName,
};

/// Maximum length of a text in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// The expected result of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// True or false.
    Condition,
    /// A number.
    Number,
}

/// The tree of `text`.
pub(super) fn parse(text: &str, goal: Goal) -> Result<Tree, Problem> {
    if text.len() > MAX_LENGTH {
        let length = text.len();
        let message = format!("expected at most {MAX_LENGTH} bytes, found {length}");
        return Err(Problem::new(0, message));
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        tree: Tree::default(),
        fields: HashMap::new(),
        operands: Vec::new(),
        pending: Vec::new(),
    };
    parser.run(goal)?;
    Ok(parser.tree)
}

/// A part of the text that has been read.
#[derive(Clone, Copy)]
struct Operand {
    node: usize,
    start: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number, or arithmetic of numbers.
    Constant,
    Text,
    Field,
    /// Arithmetic of fields.
    Arithmetic,
    Condition,
}

/// An operator whose last operand is not complete yet.
#[derive(Clone, Copy)]
enum Pending {
    Open,
    Call {
        callee: Callee,
        arguments: usize,
    },
    Or,
    And,
    Not,
    /// `chain` is the part of a chained comparison before it: `0 < a` in `0 < a < 1`.
    Compare {
        operator: Operator,
        chain: Option<usize>,
    },
    Binary(Arithmetic),
    Sign {
        negative: bool,
    },
}

#[derive(Clone, Copy)]
enum Callee {
    One(Function),
    /// `min` and `max`.
    Several(Arithmetic),
}

const COMPARISON: u8 = 4;
/// The weakest operators of arithmetic.
const ARITHMETIC: u8 = COMPARISON + 1;

impl Pending {
    fn strength(self) -> u8 {
        match self {
            Self::Open | Self::Call { .. } => 0,
            Self::Or => 1,
            Self::And => 2,
            Self::Not => 3,
            Self::Compare { .. } => COMPARISON,
            Self::Binary(Arithmetic::Multiply | Arithmetic::Divide) => ARITHMETIC + 1,
            Self::Binary(Arithmetic::Power) => ARITHMETIC + 3,
            Self::Binary(_) => ARITHMETIC,
            Self::Sign { .. } => ARITHMETIC + 2,
        }
    }
}

struct Parser {
    tokens: Vec<Located>,
    next: usize,
    tree: Tree,
    /// The nodes of the fields read so far.
    fields: HashMap<String, usize>,
    operands: Vec<Operand>,
    pending: Vec<(Pending, usize)>,
}

impl Parser {
    fn peek(&self) -> &Located {
        // The last token is `End`, and `take` never passes it.
        &self.tokens[self.next]
    }

    fn take(&mut self) -> Located {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn run(&mut self, goal: Goal) -> Result<(), Problem> {
        loop {
            self.operand()?;
            if self.operators(goal)? {
                return Ok(());
            }
        }
    }

    /// Reads the prefix operators of an operand, and the operand.
    fn operand(&mut self) -> Result<(), Problem> {
        loop {
            let needs_value = self.pending.last().is_some_and(|(top, _)| {
                top.strength() >= COMPARISON || matches!(top, Pending::Call { .. })
            });
            let located = self.take();
            let start = located.start;
            match located.token {
                Token::Not if !needs_value => self.pending.push((Pending::Not, start)),
                Token::Open => self.pending.push((Pending::Open, start)),
                Token::Plus | Token::Minus => {
                    let negative = located.token == Token::Minus;
                    self.pending.push((Pending::Sign { negative }, start));
                }
                Token::Name(name) if self.peek().token == Token::Open => {
                    self.take();
                    let callee = callee(&name).map_err(|message| Problem::new(start, message))?;
                    let call = Pending::Call {
                        callee,
                        arguments: 1,
                    };
                    self.pending.push((call, start));
                }
                Token::Name(name) | Token::Quoted(name) => return self.field(name, start),
                Token::Number(literal) => {
                    let unit = self.unit();
                    let node = Node::Number(Number { literal, unit });
                    return self.push(node, start, Kind::Constant);
                }
                Token::Text(text) => return self.push(Node::Text(text), start, Kind::Text),
                other => {
                    let expected = if needs_value {
                        "a field or a number"
                    } else {
                        "a field, a number, not, or \"(\""
                    };
                    let found = other.describe();
                    let message = format!("expected {expected}, found {found}");
                    return Err(Problem::new(start, message));
                }
            }
        }
    }

    /// Reads the tokens between two operands. Returns true at the end of the text.
    fn operators(&mut self, goal: Goal) -> Result<bool, Problem> {
        loop {
            let located = self.take();
            match &located.token {
                Token::And | Token::Or => {
                    let operator = match located.token {
                        Token::And => Pending::And,
                        _ => Pending::Or,
                    };
                    self.reduce(operator.strength(), &located)?;
                    self.check_condition(&located)?;
                    self.pending.push((operator, located.start));
                    return Ok(false);
                }
                Token::Operator(operator) => {
                    let chain = self.chain(&located)?;
                    let operator = *operator;
                    let compare = Pending::Compare { operator, chain };
                    self.pending.push((compare, located.start));
                    return Ok(false);
                }
                Token::Plus | Token::Minus | Token::Times | Token::Divide | Token::Power => {
                    let (arithmetic, left_to_right) = match located.token {
                        Token::Plus => (Arithmetic::Add, true),
                        Token::Minus => (Arithmetic::Subtract, true),
                        Token::Times => (Arithmetic::Multiply, true),
                        Token::Divide => (Arithmetic::Divide, true),
                        _ => (Arithmetic::Power, false),
                    };
                    let operator = Pending::Binary(arithmetic);
                    let strength = operator.strength() + u8::from(!left_to_right);
                    self.reduce(strength, &located)?;
                    self.pending.push((operator, located.start));
                    return Ok(false);
                }
                Token::In => self.membership(false, &located)?,
                Token::Not if self.peek().token == Token::In => {
                    self.take();
                    self.membership(true, &located)?;
                }
                Token::Close => self.close(&located)?,
                Token::Comma => {
                    self.reduce(1, &located)?;
                    let Some((Pending::Call { arguments, .. }, _)) = self.pending.last_mut() else {
                        let message = "\",\" is only valid between the arguments of a function";
                        return Err(Problem::new(located.start, message));
                    };
                    *arguments += 1;
                    return Ok(false);
                }
                Token::End => {
                    self.reduce(1, &located)?;
                    if let Some((_, start)) = self.pending.pop() {
                        return Err(Problem::new(
                            start,
                            "expected \")\" to close \"(\", found the end",
                        ));
                    }
                    match goal {
                        Goal::Condition => self.check_condition(&located)?,
                        Goal::Number => {
                            self.number()?;
                        }
                    }
                    return Ok(true);
                }
                _ => return Err(self.unexpected(&located)),
            }
        }
    }

    /// The error for a token after an operand.
    fn unexpected(&self, located: &Located) -> Problem {
        let is_compared = (self.pending.iter().rev())
            .take_while(|(top, _)| top.strength() > 0)
            .any(|(top, _)| matches!(top, Pending::Compare { .. }));
        let is_condition = self.top().kind == Kind::Condition;
        if is_compared || is_condition {
            let found = located.token.describe();
            let message = format!("expected and, or, an operator or the end, found {found}");
            return Problem::new(located.start, message);
        }
        not_compared(located)
    }

    fn top(&self) -> Operand {
        // Operators are only read after an operand, and keep one on the stack.
        self.operands[self.operands.len() - 1]
    }

    fn check_condition(&self, located: &Located) -> Result<(), Problem> {
        match self.top().kind {
            Kind::Condition => Ok(()),
            _ => Err(not_compared(located)),
        }
    }

    /// Removes the last operand, which has to be a number.
    fn number(&mut self) -> Result<Operand, Problem> {
        let operand = self.pop();
        let found = match operand.kind {
            Kind::Text => "a string",
            Kind::Condition => "a condition",
            _ => return Ok(operand),
        };
        let message = format!("expected a field or a number, found {found}");
        Err(Problem::new(operand.start, message))
    }

    fn pop(&mut self) -> Operand {
        let top = self.top();
        self.operands.pop();
        top
    }

    fn field(&mut self, name: String, start: usize) -> Result<(), Problem> {
        if let Some(&node) = self.fields.get(&name) {
            self.operands.push(Operand {
                node,
                start,
                kind: Kind::Field,
            });
            return Ok(());
        }
        self.tree.fields.push(name.clone());
        self.push(Node::Field(self.tree.fields.len() - 1), start, Kind::Field)?;
        self.fields.insert(name, self.top().node);
        Ok(())
    }

    /// The unit after a number: names with exponents, "/" without spaces and spaces between them, perhaps after "1/".
    fn unit(&mut self) -> Option<UnitName> {
        let position = self.peek().start;
        let is_inverse = matches!(&self.peek().token, Token::Number(one) if one.integer == Some(1));
        let mut name = String::new();
        if is_inverse {
            name = format!("1/{}", self.name_below(self.next + 1)?);
            self.next += 3;
        } else {
            self.take_name(&mut name)?;
        }
        loop {
            self.exponent(&mut name);
            if let Some(below) = self.name_below(self.next) {
                name.push('/');
                name.push_str(below);
                self.next += 2;
            } else if matches!(self.peek().token, Token::Name(_)) {
                name.push(' ');
                self.take_name(&mut name)?;
            } else {
                return Some(UnitName { name, position });
            }
        }
    }

    fn take_name(&mut self, unit: &mut String) -> Option<()> {
        let Token::Name(name) = &self.peek().token else {
            return None;
        };
        unit.push_str(name);
        self.take();
        Some(())
    }

    /// The name after "/", the token of this number, if there are no spaces around it.
    fn name_below(&self, divide: usize) -> Option<&str> {
        let [before, divide, below, ..] = self.tokens.get(divide.checked_sub(1)?..)? else {
            return None;
        };
        match (&divide.token, &below.token) {
            (Token::Divide, Token::Name(name))
                if (before.end, divide.end) == (divide.start, below.start) =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// Reads the exponent after a name of a unit: "**" and a number, or an integer with a sign without spaces.
    fn exponent(&mut self, unit: &mut String) {
        let is_power = self.peek().token == Token::Power;
        let first = self.next + usize::from(is_power);
        let sign = match self.tokens.get(first).map(|located| &located.token) {
            Some(Token::Minus) => "-",
            Some(Token::Plus) => "+",
            _ => "",
        };
        let number = first + sign.len();
        let Some(Token::Number(literal)) = self.tokens.get(number).map(|located| &located.token)
        else {
            return;
        };
        if is_power {
            unit.push_str(&format!("**{sign}{}", literal.value));
        } else {
            let tokens = &self.tokens[self.next - 1..=number];
            let is_dense = tokens.windows(2).all(|pair| pair[0].end == pair[1].start);
            let (Some(integer), true, true) = (literal.integer, is_dense, !sign.is_empty()) else {
                return;
            };
            unit.push_str(&format!("{sign}{integer}"));
        }
        self.next = number + 1;
    }

    /// Adds a node, which becomes an operand.
    fn push(&mut self, node: Node, start: usize, kind: Kind) -> Result<(), Problem> {
        let node = self.add(node, start)?;
        self.operands.push(Operand { node, start, kind });
        Ok(())
    }

    fn add(&mut self, node: Node, start: usize) -> Result<usize, Problem> {
        if self.tree.nodes.len() >= MAX_NODES {
            let message =
                format!("expected at most {MAX_NODES} fields, numbers and operators, found more");
            return Err(Problem::new(start, message));
        }
        self.tree.nodes.push(node);
        Ok(self.tree.nodes.len() - 1)
    }

    /// Applies the pending operators that bind at least as tightly as `strength`.
    fn reduce(&mut self, strength: u8, cause: &Located) -> Result<(), Problem> {
        while let Some(&(top, position)) = self.pending.last()
            && top.strength() >= strength
        {
            self.pending.pop();
            match top {
                Pending::Not => {
                    self.check_condition(cause)?;
                    let operand = self.pop();
                    self.push(Node::Not(operand.node), position, Kind::Condition)?;
                }
                Pending::And | Pending::Or => {
                    self.check_condition(cause)?;
                    let (right, left) = (self.pop(), self.pop());
                    let node = match top {
                        Pending::And => Node::And(left.node, right.node),
                        _ => Node::Or(left.node, right.node),
                    };
                    self.push(node, left.start, Kind::Condition)?;
                }
                Pending::Compare { operator, chain } => {
                    let (right, left) = (self.pop(), self.pop());
                    self.compare(left, operator, right, chain)?;
                }
                Pending::Binary(arithmetic) => {
                    let (right, left) = (self.number()?, self.number()?);
                    self.binary(arithmetic, left, right)?;
                }
                Pending::Sign { negative } => {
                    let operand = self.number()?;
                    self.sign(negative, operand, position)?;
                }
                // Their strength is 0, and `strength` is at least 1.
                Pending::Open | Pending::Call { .. } => {}
            }
        }
        Ok(())
    }

    /// Prepares the last operand for a comparison. A comparison before it becomes a chain.
    fn chain(&mut self, cause: &Located) -> Result<Option<usize>, Problem> {
        self.reduce(ARITHMETIC, cause)?;
        let Some(&(Pending::Compare { operator, chain }, _)) = self.pending.last() else {
            return Ok(None);
        };
        self.pending.pop();
        let (right, left) = (self.pop(), self.pop());
        self.compare(left, operator, right, chain)?;
        let before = self.pop();
        self.operands.push(right);
        Ok(Some(before.node))
    }

    /// The condition `left operator right`, and `chain`.
    fn compare(
        &mut self,
        left: Operand,
        operator: Operator,
        right: Operand,
        chain: Option<usize>,
    ) -> Result<(), Problem> {
        for side in [left, right] {
            if side.kind == Kind::Condition {
                let message = "expected a field or a number, found a condition";
                return Err(Problem::new(side.start, message));
            }
        }
        let is_literal = |side: Operand| matches!(side.kind, Kind::Constant | Kind::Text);
        if is_literal(left) && is_literal(right) {
            return Err(self.no_field(left));
        }
        for (text, other) in [(left, right), (right, left)] {
            if text.kind == Kind::Text && other.kind != Kind::Field {
                let message = "expected a number, found a string; strings compare with fields";
                return Err(Problem::new(text.start, message));
            }
        }
        let node = if is_literal(left) && right.kind == Kind::Field {
            Node::Compare(operator.mirrored(), right.node, left.node)
        } else {
            Node::Compare(operator, left.node, right.node)
        };
        self.condition(node, left.start, chain)
    }

    /// The error for a comparison of two literals.
    fn no_field(&self, left: Operand) -> Problem {
        if let Node::Number(Number {
            unit: Some(unit), ..
        }) = &self.tree.nodes[left.node]
        {
            let name = &unit.name;
            let message = format!("expected and, or, an operator or the end, found {name:?}");
            return Problem::new(unit.position, message);
        }
        Problem::new(
            left.start,
            "expected a field on one side, found two literals",
        )
    }

    fn condition(&mut self, node: Node, start: usize, chain: Option<usize>) -> Result<(), Problem> {
        self.push(node, start, Kind::Condition)?;
        if let Some(chain) = chain {
            let last = self.pop();
            self.push(Node::And(chain, last.node), start, Kind::Condition)?;
        }
        Ok(())
    }

    /// `in` and `not in` with their list, after the value.
    fn membership(&mut self, negated: bool, cause: &Located) -> Result<(), Problem> {
        let chain = self.chain(cause)?;
        let value = self.number()?;
        if value.kind == Kind::Constant {
            return Err(Problem::new(
                value.start,
                "expected a field, found a number",
            ));
        }
        let list = self.take();
        let close = match list.token {
            Token::OpenList => Token::CloseList,
            Token::Open => Token::Close,
            other => {
                let found = other.describe();
                let message = format!("expected a list such as [1, 2], found {found}");
                return Err(Problem::new(list.start, message));
            }
        };
        let items = self.items(&close)?;
        if matches!(items, Items::Texts(_)) && value.kind != Kind::Field {
            let message = "expected numbers, found strings; strings compare with fields";
            return Err(Problem::new(list.start, message));
        }
        let node = Node::In {
            value: value.node,
            items,
            negated,
        };
        self.condition(node, value.start, chain)
    }

    /// The items of a list up to `close`: all numbers, or all strings.
    fn items(&mut self, close: &Token) -> Result<Items, Problem> {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        let mut first = true;
        loop {
            if !first {
                let located = self.take();
                match located.token {
                    Token::Comma => {}
                    token if token == *close => break,
                    other => {
                        let (end, found) = (close.describe(), other.describe());
                        let message = format!("expected \",\" or {end}, found {found}");
                        return Err(Problem::new(located.start, message));
                    }
                }
            }
            first = false;
            if self.peek().token == *close {
                self.take();
                break;
            }
            let mut negative = false;
            while let Token::Plus | Token::Minus = self.peek().token {
                negative ^= self.take().token == Token::Minus;
            }
            let located = self.take();
            match located.token {
                Token::Number(literal) if texts.is_empty() => numbers.push(Number {
                    literal: if negative { literal.negated() } else { literal },
                    unit: self.unit(),
                }),
                Token::Text(text) if numbers.is_empty() && !negative => texts.push(text),
                other => {
                    let expected = match (numbers.is_empty() && !negative, texts.is_empty()) {
                        (true, true) => "a number or a string",
                        (false, _) => "a number",
                        _ => "a string",
                    };
                    let found = other.describe();
                    let message = format!("expected {expected}, found {found}");
                    return Err(Problem::new(located.start, message));
                }
            }
        }
        let mut items = match texts.is_empty() {
            true => Items::Numbers(numbers),
            false => Items::Texts(texts),
        };
        items.sort();
        Ok(items)
    }

    fn close(&mut self, cause: &Located) -> Result<(), Problem> {
        self.reduce(1, cause)?;
        match self.pending.pop() {
            None => Err(Problem::new(cause.start, "\")\" has no matching \"(\"")),
            Some((Pending::Call { callee, arguments }, start)) => {
                self.call(callee, arguments, start)
            }
            Some(_) => Ok(()),
        }
    }

    fn call(&mut self, callee: Callee, arguments: usize, start: usize) -> Result<(), Problem> {
        match callee {
            Callee::One(function) => {
                if arguments != 1 {
                    let message = format!("expected one argument, found {arguments}");
                    return Err(Problem::new(start, message));
                }
                let operand = self.number()?;
                if let Some(value) = self.constant(operand) {
                    let folded = function.apply(value);
                    if folded.is_finite() {
                        return self.fold(operand, folded);
                    }
                }
                self.push(
                    Node::Call(function, operand.node),
                    start,
                    arithmetic(&[operand]),
                )
            }
            Callee::Several(arithmetic) => {
                if arguments < 2 {
                    let message = format!("expected two or more arguments, found {arguments}");
                    return Err(Problem::new(start, message));
                }
                for _ in 1..arguments {
                    let (right, left) = (self.number()?, self.number()?);
                    self.binary(arithmetic, left, right)?;
                }
                Ok(())
            }
        }
    }

    fn binary(
        &mut self,
        operator: Arithmetic,
        left: Operand,
        right: Operand,
    ) -> Result<(), Problem> {
        if let (Some(a), Some(b)) = (self.constant(left), self.constant(right)) {
            let folded = operator.apply(a, b);
            if folded.is_finite() {
                return self.fold(left, folded);
            }
        }
        let kind = arithmetic(&[left, right]);
        self.push(
            Node::Binary(operator, left.node, right.node),
            left.start,
            kind,
        )
    }

    fn sign(&mut self, negative: bool, operand: Operand, start: usize) -> Result<(), Problem> {
        match &mut self.tree.nodes[operand.node] {
            Node::Number(number) => {
                if negative {
                    number.literal = number.literal.negated();
                }
                self.operands.push(Operand { start, ..operand });
                Ok(())
            }
            _ if negative => {
                let kind = arithmetic(&[operand]);
                self.push(Node::Negate(operand.node), start, kind)
            }
            _ => {
                self.operands.push(Operand { start, ..operand });
                Ok(())
            }
        }
    }

    /// The value of a number without a unit.
    fn constant(&self, operand: Operand) -> Option<f64> {
        match &self.tree.nodes[operand.node] {
            Node::Number(Number {
                literal,
                unit: None,
            }) => Some(literal.value),
            _ => None,
        }
    }

    /// Replaces the last numbers, the first of which is `first`, by one.
    fn fold(&mut self, first: Operand, value: f64) -> Result<(), Problem> {
        // Nothing was read since these numbers, so that their nodes are the last ones.
        self.tree.nodes.truncate(first.node);
        let node = Node::Number(Literal::float(value).into());
        self.push(node, first.start, Kind::Constant)
    }
}

fn callee(name: &str) -> Result<Callee, String> {
    Ok(match name {
        "abs" => Callee::One(Function::Abs),
        "sqrt" => Callee::One(Function::Sqrt),
        "log10" => Callee::One(Function::Log10),
        "min" => Callee::Several(Arithmetic::Min),
        "max" => Callee::Several(Arithmetic::Max),
        _ => {
            return Err(format!(
                "unknown function {name:?}; available: abs, sqrt, log10, min, max"
            ));
        }
    })
}

fn arithmetic(operands: &[Operand]) -> Kind {
    let is_constant = operands
        .iter()
        .all(|operand| operand.kind == Kind::Constant);
    if is_constant {
        Kind::Constant
    } else {
        Kind::Arithmetic
    }
}

/// The error for a value in place of a condition, reported at the token after it.
fn not_compared(located: &Located) -> Problem {
    let found = located.token.describe();
    let message = format!("expected <, <=, >, >=, ==, != or in, found {found}");
    Problem::new(located.start, message)
}
