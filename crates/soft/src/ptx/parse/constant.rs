//! Constant expressions.

use super::cursor::Cursor;
use crate::ptx::error::{Parsed, PtxError};
use crate::ptx::lex::Kind;
use crate::ptx::syntax::Literal;

/// The deepest nesting of expressions.
const MOST_DEPTH: u32 = 50;

/// The name of the number of threads in a warp.
const WARP_SIZE: &str = "WARP_SZ";

/// Whether a constant expression begins here.
pub(super) fn begins(cursor: &Cursor<'_, '_>) -> bool {
    match cursor.peek() {
        Some(Kind::Number(_) | Kind::Word(WARP_SIZE) | Kind::Mark(b'+' | b'~' | b'(')) => true,
        // A minus before a name belongs to an operand.
        Some(Kind::Mark(b'-')) => !matches!(cursor.peek_at(1), Some(Kind::Word(name)) if name != WARP_SIZE),
        Some(Kind::Mark(b'!')) => {
            matches!(cursor.peek_at(1), Some(Kind::Number(_) | Kind::Word(WARP_SIZE) | Kind::Mark(b'(')))
        }
        _ => false,
    }
}

/// A constant expression.
pub(super) fn expression(cursor: &mut Cursor<'_, '_>) -> Parsed<Literal> {
    choice(cursor, 0)
}

/// A constant expression that is an integer, with its sign.
pub(super) fn integer(cursor: &mut Cursor<'_, '_>) -> Parsed<i64> {
    let line = cursor.line();
    match expression(cursor)? {
        Literal::Int(value) => Ok(value as i64),
        _ => Err(PtxError::new(line, "expected an integer")),
    }
}

/// `condition ? a : b`
fn choice(cursor: &mut Cursor<'_, '_>, depth: u32) -> Parsed<Literal> {
    let condition = binary(cursor, 0, depth)?;
    if !cursor.take(b'?') {
        return Ok(condition);
    }
    let first = choice(cursor, deeper(cursor, depth)?)?;
    cursor.expect(b':')?;
    let second = choice(cursor, deeper(cursor, depth)?)?;
    Ok(if is_true(condition) { first } else { second })
}

fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Parsed<u32> {
    if depth < MOST_DEPTH {
        Ok(depth + 1)
    } else {
        Err(PtxError::new(cursor.line(), "this expression is nested too deep"))
    }
}

/// The next operator: its name, precedence, and number of tokens.
fn operator(cursor: &Cursor<'_, '_>) -> Option<(&'static str, u8, usize)> {
    let second = cursor.peek_at(1);
    let follows = |mark: u8| second == Some(Kind::Mark(mark));
    Some(match cursor.peek()? {
        Kind::Mark(b'|') if follows(b'|') => ("||", 1, 2),
        Kind::Mark(b'&') if follows(b'&') => ("&&", 2, 2),
        Kind::Mark(b'|') => ("|", 3, 1),
        Kind::Mark(b'^') => ("^", 4, 1),
        Kind::Mark(b'&') => ("&", 5, 1),
        Kind::Mark(b'=') if follows(b'=') => ("==", 6, 2),
        Kind::Mark(b'!') if follows(b'=') => ("!=", 6, 2),
        Kind::Mark(b'<') if follows(b'<') => ("<<", 8, 2),
        Kind::Mark(b'>') if follows(b'>') => (">>", 8, 2),
        Kind::Mark(b'<') if follows(b'=') => ("<=", 7, 2),
        Kind::Mark(b'>') if follows(b'=') => (">=", 7, 2),
        Kind::Mark(b'<') => ("<", 7, 1),
        Kind::Mark(b'>') => (">", 7, 1),
        Kind::Mark(b'+') => ("+", 9, 1),
        Kind::Mark(b'-') => ("-", 9, 1),
        Kind::Mark(b'*') => ("*", 10, 1),
        Kind::Mark(b'/') => ("/", 10, 1),
        Kind::Word("%") => ("%", 10, 1),
        _ => return None,
    })
}

/// Parses operators of at least the precedence `least`, from left to right.
fn binary(cursor: &mut Cursor<'_, '_>, least: u8, depth: u32) -> Parsed<Literal> {
    let mut value = unary(cursor, depth)?;
    while let Some((name, strength, tokens)) = operator(cursor) {
        if strength < least.max(1) {
            break;
        }
        let line = cursor.line();
        (0..tokens).for_each(|_| cursor.bump());
        let right = binary(cursor, strength + 1, deeper(cursor, depth)?)?;
        value = apply(name, value, right).map_err(|words| PtxError::new(line, words))?;
    }
    Ok(value)
}

fn unary(cursor: &mut Cursor<'_, '_>, depth: u32) -> Parsed<Literal> {
    let line = cursor.line();
    let mut operators = Vec::new();
    while let Some(Kind::Mark(mark @ (b'-' | b'+' | b'~' | b'!'))) = cursor.peek() {
        cursor.bump();
        operators.push(mark);
    }
    let mut value = primary(cursor, depth)?;
    for operator in operators.into_iter().rev() {
        value = match (operator, value) {
            (b'+', value) => value,
            (b'-', Literal::Int(value)) => Literal::Int(value.wrapping_neg()),
            (b'-', Literal::F32(bits)) => Literal::F32(bits ^ (1 << 31)),
            (b'-', Literal::F64(bits)) => Literal::F64(bits ^ (1 << 63)),
            (b'~', Literal::Int(value)) => Literal::Int(!value),
            (b'!', Literal::Int(value)) => Literal::Int(u64::from(value == 0)),
            _ => return Err(PtxError::new(line, "expected an integer")),
        };
    }
    Ok(value)
}

fn primary(cursor: &mut Cursor<'_, '_>, depth: u32) -> Parsed<Literal> {
    if cursor.peek() == Some(Kind::Word(WARP_SIZE)) {
        cursor.bump();
        return Ok(Literal::Int(32));
    }
    if !cursor.take(b'(') {
        return cursor.number();
    }
    if let Some(Kind::Dotted("s64" | "u64")) = cursor.peek() {
        // All integers have 64 bits; only their sign would be another.
        cursor.bump();
        cursor.expect(b')')?;
        return unary(cursor, deeper(cursor, depth)?);
    }
    let value = choice(cursor, deeper(cursor, depth)?)?;
    cursor.expect(b')')?;
    Ok(value)
}

fn is_true(value: Literal) -> bool {
    match value {
        Literal::Int(value) => value != 0,
        Literal::F32(bits) => f32::from_bits(bits) != 0.0,
        Literal::F64(bits) => f64::from_bits(bits) != 0.0,
    }
}

fn apply(operator: &str, a: Literal, b: Literal) -> Result<Literal, String> {
    let (Literal::Int(a), Literal::Int(b)) = (a, b) else {
        return apply_to_floats(operator, as_float(a), as_float(b));
    };
    let truth = u64::from;
    let (x, y) = (a as i64, b as i64);
    Ok(Literal::Int(match operator {
        "||" => truth(a != 0 || b != 0),
        "&&" => truth(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(x < y),
        ">" => truth(x > y),
        "<=" => truth(x <= y),
        ">=" => truth(x >= y),
        "<<" => a.checked_shl(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(0),
        ">>" => x.checked_shr(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(x >> 63) as u64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err("this expression divides by zero".into()),
        "/" => x.wrapping_div(y) as u64,
        _ => x.wrapping_rem(y) as u64,
    }))
}

fn as_float(value: Literal) -> f64 {
    match value {
        Literal::Int(value) => value as i64 as f64,
        Literal::F32(bits) => f64::from(f32::from_bits(bits)),
        Literal::F64(bits) => f64::from_bits(bits),
    }
}

fn apply_to_floats(operator: &str, a: f64, b: f64) -> Result<Literal, String> {
    let truth = |truth: bool| Literal::Int(u64::from(truth));
    let value = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "==" => return Ok(truth(a == b)),
        "!=" => return Ok(truth(a != b)),
        "<" => return Ok(truth(a < b)),
        ">" => return Ok(truth(a > b)),
        "<=" => return Ok(truth(a <= b)),
        ">=" => return Ok(truth(a >= b)),
        "&&" => return Ok(truth(a != 0.0 && b != 0.0)),
        "||" => return Ok(truth(a != 0.0 || b != 0.0)),
        _ => return Err(format!("`{operator}` takes integers")),
    };
    Ok(Literal::F64(value.to_bits()))
}
