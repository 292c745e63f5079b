//! Parsing function bodies. Nested blocks become opening and closing statements, so that depth
//! needs no stack.

use super::cursor::Cursor;
use super::{constant, location, variable};
use crate::ptx::error::{MOST_ERRORS, Parsed, PtxError};
use crate::ptx::lex::Kind;
use crate::ptx::syntax::{Guard, Instruction, Linkage, Operand, Statement, StatementKind};
use crate::ptx::types::Type;

/// The deepest nesting of blocks.
const MOST_DEPTH: u32 = 1000;

/// Parses a body with its braces. Errors inside are collected and skipped.
pub(super) fn statements<'t>(
    cursor: &mut Cursor<'_, 't>,
    errors: &mut Vec<PtxError>,
) -> Parsed<Vec<Statement<'t>>> {
    let start = cursor.line();
    cursor.expect(b'{')?;
    let mut depth = 1_u32;
    let mut all = Vec::new();
    while !cursor.is_end() && errors.len() < MOST_ERRORS {
        let line = cursor.line();
        if cursor.take(b'{') {
            depth += 1;
            if depth > MOST_DEPTH {
                return Err(PtxError::new(line, "blocks are nested too deep"));
            }
            all.push(Statement { line, kind: StatementKind::Open });
        } else if cursor.take(b'}') {
            depth -= 1;
            if depth == 0 {
                return Ok(all);
            }
            all.push(Statement { line, kind: StatementKind::Close });
        } else if let Err(error) = statement(cursor, &mut all) {
            errors.push(error);
            cursor.recover();
        }
    }
    if cursor.is_end() {
        return Err(PtxError::new(start, "this body has no end"));
    }
    // Here also when there were too many errors to go on.
    Ok(all)
}

fn statement<'t>(cursor: &mut Cursor<'_, 't>, all: &mut Vec<Statement<'t>>) -> Parsed<()> {
    let line = cursor.line();
    match (cursor.peek(), cursor.peek_at(1)) {
        (Some(Kind::Mark(b';')), _) => cursor.bump(),
        (Some(Kind::Word(name)), Some(Kind::Mark(b':'))) => {
            cursor.bump();
            cursor.bump();
            all.push(Statement { line, kind: label(cursor, name)? });
        }
        (Some(Kind::Dotted("reg")), _) => registers(cursor, all)?,
        (Some(Kind::Dotted("local" | "shared" | "param" | "global" | "const")), _) => {
            for variable in variable::declarations(cursor, Linkage::Local)? {
                all.push(Statement { line, kind: StatementKind::Variable(Box::new(variable)) });
            }
        }
        (Some(Kind::Dotted("loc")), _) => {
            if let Some((file, line_there)) = location::location(cursor) {
                all.push(Statement { line, kind: StatementKind::Location { file, line: line_there } });
            }
        }
        (Some(Kind::Dotted("file")), _) => cursor.skip_line(),
        (Some(Kind::Dotted("pragma")), _) => cursor.skip_past(b';'),
        (Some(Kind::Dotted(name)), _) => {
            let message = format!("directive `.{name}` is not supported by the software driver");
            return Err(PtxError::new(line, message));
        }
        _ => {
            let instruction = instruction(cursor)?;
            all.push(Statement { line, kind: StatementKind::Instruction(Box::new(instruction)) });
        }
    }
    Ok(())
}

/// Parses what follows a label: nothing, or a list for an indirect branch or call.
fn label<'t>(cursor: &mut Cursor<'_, 't>, name: &'t str) -> Parsed<StatementKind<'t>> {
    match cursor.peek() {
        Some(Kind::Dotted("branchtargets")) => {
            cursor.bump();
            let mut labels = vec![cursor.word()?];
            while cursor.take(b',') {
                labels.push(cursor.word()?);
            }
            cursor.expect(b';')?;
            Ok(StatementKind::Targets { name, labels })
        }
        Some(Kind::Dotted("callprototype" | "calltargets")) => {
            cursor.skip_past(b';');
            Ok(StatementKind::Prototype(name))
        }
        _ => Ok(StatementKind::Label(name)),
    }
}

fn registers<'t>(cursor: &mut Cursor<'_, 't>, all: &mut Vec<Statement<'t>>) -> Parsed<()> {
    cursor.bump();
    let line = cursor.line();
    let lanes = match cursor.peek() {
        Some(Kind::Dotted("v2")) => 2,
        Some(Kind::Dotted("v4")) => 4,
        _ => 1,
    };
    if lanes > 1 {
        cursor.bump();
    }
    let ty: Type = match cursor.next() {
        Some(Kind::Dotted(name)) => variable::fundamental(name, line)?,
        _ => return Err(PtxError::new(line, "`.reg` takes a type")),
    };
    if lanes > 1 && (ty == Type::Pred || ty.bits() * u32::from(lanes) > 128) {
        return Err(PtxError::new(line, "a vector register has at most 128 bits, and no predicates"));
    }
    loop {
        let line = cursor.line();
        let name = cursor.word()?;
        let mut count = None;
        if cursor.take(b'<') {
            let number = u32::try_from(cursor.integer()?);
            count = Some(number.map_err(|_| PtxError::new(line, "too many registers"))?);
            cursor.expect(b'>')?;
        }
        all.push(Statement { line, kind: StatementKind::Registers { ty, name, count, lanes } });
        if !cursor.take(b',') {
            return cursor.expect(b';');
        }
    }
}

fn instruction<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Instruction<'t>> {
    let mut guard = None;
    if cursor.take(b'@') {
        let negated = cursor.take(b'!');
        guard = Some(Guard { negated, predicate: cursor.word()? });
    }
    let opcode = match cursor.peek() {
        Some(Kind::Word(word)) => word,
        _ => return Err(cursor.unexpected("an instruction")),
    };
    cursor.bump();
    let mut modifiers = Vec::new();
    while let Some(Kind::Dotted(name)) = cursor.peek() {
        modifiers.push(name);
        cursor.bump();
    }
    let mut operands = Vec::new();
    while !cursor.take(b';') {
        if !operands.is_empty() {
            cursor.expect(b',')?;
        }
        operands.push(operand(cursor, opcode == "call")?);
        // A hint on the address of a load: all memory is unified here.
        if opcode == "ld" && cursor.peek() == Some(Kind::Dotted("unified")) {
            cursor.bump();
        }
    }
    Ok(Instruction { guard, opcode, modifiers, operands })
}

/// Parses an operand. Parentheses are a list in calls and part of a number elsewhere.
fn operand<'t>(cursor: &mut Cursor<'_, 't>, is_call: bool) -> Parsed<Operand<'t>> {
    let first = match cursor.peek() {
        Some(Kind::Mark(b'{')) => list(cursor, b'}').map(Operand::Vector)?,
        Some(Kind::Mark(b'(')) if is_call => list(cursor, b')').map(Operand::Group)?,
        Some(Kind::Mark(b'[')) => address(cursor)?,
        _ => simple(cursor)?,
    };
    if cursor.take(b'|') {
        let second = simple(cursor)?;
        return Ok(Operand::Pair(Box::new([first, second])));
    }
    Ok(first)
}

fn list<'t>(cursor: &mut Cursor<'_, 't>, end: u8) -> Parsed<Vec<Operand<'t>>> {
    cursor.bump();
    let mut all = Vec::new();
    while !cursor.take(end) {
        if !all.is_empty() {
            cursor.expect(b',')?;
        }
        all.push(simple(cursor)?);
    }
    Ok(all)
}

fn address<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Operand<'t>> {
    cursor.bump();
    let base = match cursor.peek() {
        Some(Kind::Word(word)) => {
            cursor.bump();
            Some(word)
        }
        _ => None,
    };
    let mut offset = 0_i64;
    if !matches!(cursor.peek(), Some(Kind::Mark(b']' | b','))) {
        offset = constant::integer(cursor)?;
    }
    if cursor.peek() == Some(Kind::Mark(b',')) {
        let (at, has_sampler) = coordinates(cursor)?;
        return Ok(Operand::Coordinates { base, offset, at, has_sampler });
    }
    cursor.expect(b']')?;
    Ok(Operand::Address { base, offset })
}

/// The rest of the brackets of a texture, surface or tensor: the elements of its lists, and whether
/// there are other operands.
fn coordinates<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<(Vec<Operand<'t>>, bool)> {
    let mut at = Vec::new();
    let mut has_others = false;
    while cursor.take(b',') {
        if cursor.peek() == Some(Kind::Mark(b'{')) {
            at.append(&mut list(cursor, b'}')?);
        } else {
            simple(cursor)?;
            has_others = true;
        }
    }
    cursor.expect(b']')?;
    Ok((at, has_others))
}

fn simple<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Operand<'t>> {
    if constant::begins(cursor) {
        return constant::expression(cursor).map(Operand::Number);
    }
    match cursor.peek() {
        Some(Kind::Mark(b'!')) => {
            cursor.bump();
            Ok(Operand::Not(cursor.word()?))
        }
        Some(Kind::Mark(b'-')) => {
            cursor.bump();
            let name = cursor.word()?;
            Ok(Operand::Negated(Box::new(named(cursor, name)?)))
        }
        Some(Kind::Word("_")) => {
            cursor.bump();
            Ok(Operand::Ignore)
        }
        Some(Kind::Word(name)) => {
            cursor.bump();
            named(cursor, name)
        }
        _ => Err(cursor.unexpected("an operand")),
    }
}

/// An operand that begins with a name.
fn named<'t>(cursor: &mut Cursor<'_, 't>, name: &'t str) -> Parsed<Operand<'t>> {
    match cursor.peek() {
        Some(Kind::Dotted(member)) => {
            cursor.bump();
            Ok(Operand::Member(name, member))
        }
        Some(Kind::Mark(b'+' | b'-')) => Ok(Operand::Offset(name, constant::integer(cursor)?)),
        _ => Ok(Operand::Name(name)),
    }
}
