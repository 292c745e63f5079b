//! Parsing declarations of variables and their initialisers.

use super::constant;
use super::cursor::Cursor;
use crate::ptx::error::{Parsed, PtxError};
use crate::ptx::lex::Kind;
use crate::ptx::syntax::{Initial, InitialValue, Linkage, Literal, Space, Variable};
use crate::ptx::types::Type;

/// The largest variable: small enough that sizes can be added without overflow.
const MOST_BYTES: u64 = 1 << 40;
/// The most dimensions of an array.
const MOST_DIMENSIONS: usize = 16;

/// `.global .align 8 .b8 a[16] = {...}, b;`
pub(super) fn declarations<'t>(cursor: &mut Cursor<'_, 't>, linkage: Linkage) -> Parsed<Vec<Variable<'t>>> {
    let line = cursor.line();
    let space = state_space(cursor).ok_or_else(|| PtxError::new(line, "expected a state space"))?;
    let mut align = None;
    let mut elements = 1_u64;
    let mut is_managed = false;
    let mut is_reference = false;
    let mut ty = None;
    while let Some(Kind::Dotted(name)) = cursor.peek() {
        cursor.bump();
        match name {
            "align" => align = Some(alignment(cursor)?),
            "attribute" => {
                is_managed |= matches!(cursor.peek_at(1), Some(Kind::Dotted("managed")));
                cursor.skip_past(b')');
            }
            "v2" => elements = 2,
            "v4" => elements = 4,
            "texref" | "samplerref" | "surfref" if space == Space::Global => {
                is_reference = true;
                ty = Some(Type::B64);
            }
            _ => ty = Some(fundamental(name, line)?),
        }
    }
    let ty = ty.ok_or_else(|| PtxError::new(line, "this variable has no type"))?;
    let element = u64::from(ty.bytes()) * elements;
    let mut all = Vec::new();
    loop {
        let line = cursor.line();
        let name = cursor.word()?;
        let dims = dimension_list(cursor)?;
        let mut variable = Variable {
            line,
            name,
            space,
            align: align.unwrap_or(element),
            size: None,
            initial: Vec::new(),
            linkage,
            is_managed,
            is_reference,
        };
        let mut end = 0;
        if cursor.take(b'=') {
            end = initialiser(cursor, ty, &dims, &mut variable.initial)?;
        }
        variable.size = size_of(&dims, element, end).ok_or_else(|| impossible(line, name))?;
        if linkage != Linkage::Extern && variable.size.unwrap_or(0) == 0 {
            return Err(PtxError::new(
                line,
                format!("`{name}` has no size, which only `.extern` variables may"),
            ));
        }
        all.push(variable);
        if !cursor.take(b',') {
            break;
        }
    }
    cursor.expect(b';')?;
    Ok(all)
}

fn state_space(cursor: &mut Cursor<'_, '_>) -> Option<Space> {
    match cursor.next()? {
        Kind::Dotted("global") => Some(Space::Global),
        Kind::Dotted("const") => Some(Space::Const),
        Kind::Dotted("shared") => Some(Space::Shared),
        Kind::Dotted("local") => Some(Space::Local),
        Kind::Dotted("param") => Some(Space::Param),
        _ => None,
    }
}

/// The size of a variable whose initialiser ends at `end`: `Some(None)` if it is open, `None` if it
/// is impossible.
fn size_of(dims: &[Option<u64>], element: u64, end: u64) -> Option<Option<u64>> {
    match product(dims) {
        None if end > MOST_BYTES => None,
        None if end > 0 => Some(Some(end)),
        None => Some(None),
        Some(count) => count.checked_mul(element).filter(|&size| size <= MOST_BYTES && end <= size).map(Some),
    }
}

fn impossible(line: u32, name: &str) -> PtxError {
    PtxError::new(line, format!("the size of `{name}` is impossible"))
}

/// The number after `.align`.
pub(super) fn alignment(cursor: &mut Cursor<'_, '_>) -> Parsed<u64> {
    let line = cursor.line();
    let align = cursor.integer()?;
    if align.is_power_of_two() && align <= 1 << 16 {
        Ok(align)
    } else {
        Err(PtxError::new(line, format!("alignment {align} is not a power of two up to 65536")))
    }
}

pub(super) fn fundamental(name: &str, line: u32) -> Parsed<Type> {
    Type::parse(name).ok_or_else(|| {
        PtxError::new(line, format!("type or attribute `.{name}` is not supported by the software driver"))
    })
}

/// The number of elements: `None` for a scalar, `Some(None)` for an array without a size.
pub(super) fn dimensions(cursor: &mut Cursor<'_, '_>) -> Parsed<Option<Option<u64>>> {
    let dims = dimension_list(cursor)?;
    Ok(if dims.is_empty() { None } else { Some(product(&dims)) })
}

fn product(dims: &[Option<u64>]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |product, &dim| Some(product.saturating_mul(dim?)))
}

fn dimension_list(cursor: &mut Cursor<'_, '_>) -> Parsed<Vec<Option<u64>>> {
    let mut dims = Vec::new();
    while cursor.take(b'[') {
        let line = cursor.line();
        if dims.len() == MOST_DIMENSIONS {
            return Err(PtxError::new(line, "this array has too many dimensions"));
        }
        if cursor.take(b']') {
            if !dims.is_empty() {
                return Err(PtxError::new(line, "only the first dimension of an array may be left open"));
            }
            dims.push(None);
        } else {
            dims.push(Some(cursor.integer()?));
            cursor.expect(b']')?;
        }
    }
    Ok(dims)
}

/// Reads what follows `=` and returns the byte after the last element.
fn initialiser<'t>(
    cursor: &mut Cursor<'_, 't>,
    ty: Type,
    dims: &[Option<u64>],
    out: &mut Vec<Initial<'t>>,
) -> Parsed<u64> {
    let width = ty.bytes();
    let mut offset = 0_u64;
    let mut end = 0_u64;
    // Starts of the open braces: a closing one moves on by the size of one element of the level
    // outside it.
    let mut open: Vec<u64> = Vec::new();
    loop {
        let line = cursor.line();
        if cursor.take(b'{') {
            if open.len() > MOST_DIMENSIONS {
                return Err(PtxError::new(line, "this initialiser is nested too deep"));
            }
            open.push(offset);
            continue;
        }
        if cursor.take(b'}') {
            let Some(start) = open.pop() else { return Err(PtxError::new(line, "`}` without `{`")) };
            if let Some(inner) = dims.get(open.len()..).and_then(product) {
                offset = start.saturating_add(inner.saturating_mul(u64::from(width)));
            }
        } else {
            let value = initial_value(cursor, ty)?;
            out.push(Initial { line, offset, width, value });
            offset = offset.saturating_add(u64::from(width));
            end = end.max(offset);
        }
        if open.is_empty() {
            return Ok(end);
        }
        if !cursor.take(b',') && cursor.peek() != Some(Kind::Mark(b'}')) {
            return Err(cursor.unexpected("`,` or `}`"));
        }
    }
}

fn initial_value<'t>(cursor: &mut Cursor<'_, 't>, ty: Type) -> Parsed<InitialValue<'t>> {
    let line = cursor.line();
    if let Some(Kind::Word(_)) = cursor.peek()
        && !constant::begins(cursor)
    {
        let (name, addend) = address(cursor)?;
        if ty.bytes() != 8 {
            let message = format!("the address of `{name}` needs an element of 8 bytes");
            return Err(PtxError::new(line, message));
        }
        return Ok(InitialValue::Address { name, addend, shift: 0 });
    }
    let literal = constant::expression(cursor)?;
    if cursor.peek() != Some(Kind::Mark(b'(')) {
        return Ok(InitialValue::Bits(literal.bits(ty)));
    }
    let shift = match literal {
        Literal::Int(mask) if mask != 0 && mask >> (mask.trailing_zeros() & !7) == 0xff => {
            mask.trailing_zeros() & !7
        }
        _ => return Err(PtxError::new(line, "the mask of an address is one byte of ones")),
    };
    if ty.bytes() != 1 {
        return Err(PtxError::new(line, "a byte of an address needs an element of 1 byte"));
    }
    cursor.bump();
    let (name, addend) = address(cursor)?;
    cursor.expect(b')')?;
    Ok(InitialValue::Address { name, addend, shift })
}

/// `name`, `generic(name)`, `name+8`
fn address<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<(&'t str, u64)> {
    let mut name = cursor.word()?;
    if name == "generic" && cursor.take(b'(') {
        name = cursor.word()?;
        cursor.expect(b')')?;
    }
    let has_addend = matches!(cursor.peek(), Some(Kind::Mark(b'+' | b'-')));
    let addend = if has_addend { constant::integer(cursor)? } else { 0 };
    Ok((name, addend as u64))
}
