//! `printf` of device code.

use super::print_float::{exponential, general, hexadecimal, put_point};
use super::thread_fault::Checked;
use crate::ptx::code::Cell;

/// The source of arguments.
pub(super) trait Source {
    /// The next argument of that size.
    fn argument(&mut self, cell: Cell) -> Checked<u64>;
    /// The string at an address.
    fn text(&mut self, address: u64) -> Checked<Vec<u8>>;
}

/// Wider fields are limited to this.
const MOST_WIDTH: usize = 1000;

#[derive(Debug, Default, Clone, Copy)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    width_is_argument: bool,
    precision: Option<usize>,
    is_long: bool,
    /// The number of `h`.
    halves: u8,
    kind: u8,
}

/// The formatted text and the number of arguments used.
pub(super) fn format(pattern: &[u8], source: &mut dyn Source) -> Checked<(Vec<u8>, u64)> {
    let mut out = Vec::new();
    let mut used = 0;
    let mut rest = pattern;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let Some((mut conversion, tail)) = specification(rest) else {
            // As on GPUs, an invalid conversion is printed as it stands and takes no argument.
            out.push(b'%');
            continue;
        };
        rest = tail;
        if conversion.kind == b'%' {
            out.push(b'%');
            continue;
        }
        if conversion.width_is_argument {
            used += 1;
            let width = source.argument(Cell::S32)? as i32;
            conversion.left |= width < 0;
            conversion.width = (width.unsigned_abs() as usize).min(MOST_WIDTH);
        }
        used += 1;
        convert(conversion, source, &mut out)?;
    }
    Ok((out, used))
}

/// The conversion after a `%` and the rest of the text; `None` if it is invalid.
fn specification(mut rest: &[u8]) -> Option<(Conversion, &[u8])> {
    let mut conversion = Conversion::default();
    rest = flags(rest, &mut conversion);
    if let [b'*', tail @ ..] = rest {
        conversion.width_is_argument = true;
        rest = tail;
    } else {
        (conversion.width, rest) = number(rest);
    }
    if let [b'.', tail @ ..] = rest {
        // GPUs lack `.*`.
        let (precision, tail) = number(tail);
        conversion.precision = Some(precision);
        rest = tail;
    }
    // GPUs lack `L`.
    while let [length @ (b'h' | b'l'), tail @ ..] = rest {
        match length {
            b'h' => conversion.halves = conversion.halves.saturating_add(1),
            _ => conversion.is_long = true,
        }
        rest = tail;
    }
    let [kind, tail @ ..] = rest else { return None };
    conversion.kind = *kind;
    b"%diuxXopcsfFeEgGaA".contains(kind).then_some((conversion, tail))
}

fn flags<'a>(mut rest: &'a [u8], conversion: &mut Conversion) -> &'a [u8] {
    while let [flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), tail @ ..] = rest {
        match flag {
            b'-' => conversion.left = true,
            b'+' => conversion.plus = true,
            b' ' => conversion.space = true,
            b'#' => conversion.alternate = true,
            _ => conversion.zero = true,
        }
        rest = tail;
    }
    rest
}

/// A width or precision.
fn number(mut rest: &[u8]) -> (usize, &[u8]) {
    let mut value = 0_usize;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        value = (value * 10 + usize::from(digit - b'0')).min(MOST_WIDTH);
        rest = tail;
    }
    (value, rest)
}

fn convert(conversion: Conversion, source: &mut dyn Source, out: &mut Vec<u8>) -> Checked<()> {
    let prefix =
        |prefix: &'static str, wanted: bool| if conversion.alternate && wanted { prefix } else { "" };
    match conversion.kind {
        b'd' | b'i' => {
            let value = source.argument(if conversion.is_long { Cell::U64 } else { Cell::S32 })? as i64;
            let value = match conversion.halves {
                0 => value,
                1 => i64::from(value as i16),
                _ => i64::from(value as i8),
            };
            integer(value < 0, "", value.unsigned_abs().to_string(), conversion, true, out);
        }
        b'u' | b'x' | b'X' | b'o' => {
            let value = source.argument(if conversion.is_long { Cell::U64 } else { Cell::U32 })?;
            let value = match conversion.halves {
                0 => value,
                1 => u64::from(value as u16),
                _ => u64::from(value as u8),
            };
            let (prefix, digits) = match conversion.kind {
                b'x' => (prefix("0x", value != 0), format!("{value:x}")),
                b'X' => (prefix("0X", value != 0), format!("{value:X}")),
                b'o' => (prefix("0", value != 0), format!("{value:o}")),
                _ => ("", value.to_string()),
            };
            integer(false, prefix, digits, conversion, false, out);
        }
        b'p' => match source.argument(Cell::U64)? {
            0 => padded(b"(nil)", conversion, out),
            // As `%#lx`, but with a sign if one is asked for.
            value => integer(false, "0x", format!("{value:x}"), conversion, true, out),
        },
        b'c' => padded(&[source.argument(Cell::U32)? as u8], conversion, out),
        b's' => {
            let address = source.argument(Cell::U64)?;
            let mut text = if address == 0 { b"(null)".to_vec() } else { source.text(address)? };
            text.truncate(conversion.precision.unwrap_or(usize::MAX));
            padded(&text, conversion, out);
        }
        kind => {
            let value = f64::from_bits(source.argument(Cell::U64)?);
            float(kind, value, conversion, out);
        }
    }
    Ok(())
}

fn sign(negative: bool, conversion: Conversion) -> &'static str {
    match (negative, conversion.plus, conversion.space) {
        (true, _, _) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(
    negative: bool,
    prefix: &str,
    digits: String,
    conversion: Conversion,
    signed: bool,
    out: &mut Vec<u8>,
) {
    let sign = if signed { sign(negative, conversion) } else { "" };
    let zeros = conversion.precision.unwrap_or(1).saturating_sub(digits.len());
    let digits = if conversion.precision == Some(0) && digits == "0" { String::new() } else { digits };
    let body = format!("{}{digits}", "0".repeat(zeros));
    if conversion.zero && !conversion.left && conversion.precision.is_none() {
        let zeros = conversion.width.saturating_sub(sign.len() + prefix.len() + body.len());
        out.extend_from_slice(format!("{sign}{prefix}{}{body}", "0".repeat(zeros)).as_bytes());
    } else {
        padded(format!("{sign}{prefix}{body}").as_bytes(), conversion, out);
    }
}

fn padded(text: &[u8], conversion: Conversion, out: &mut Vec<u8>) {
    let padding = conversion.width.saturating_sub(text.len());
    if !conversion.left {
        out.resize(out.len() + padding, b' ');
    }
    out.extend_from_slice(text);
    if conversion.left {
        out.resize(out.len() + padding, b' ');
    }
}

fn float(kind: u8, value: f64, conversion: Conversion, out: &mut Vec<u8>) {
    let sign = sign(value.is_sign_negative(), conversion);
    let magnitude = value.abs();
    let mut text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        let precision = conversion.precision.unwrap_or(6);
        match kind.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponential(magnitude, precision),
            b'g' => general(magnitude, precision.max(1), conversion.alternate),
            _ => hexadecimal(magnitude, conversion.precision),
        }
    };
    if conversion.alternate && value.is_finite() {
        put_point(&mut text);
    }
    if kind.is_ascii_uppercase() {
        text.make_ascii_uppercase();
    }
    if conversion.zero && !conversion.left && value.is_finite() {
        let zeros = conversion.width.saturating_sub(sign.len() + text.len());
        let (prefix, digits) = text.split_at(if kind.eq_ignore_ascii_case(&b'a') { 2 } else { 0 });
        out.extend_from_slice(format!("{sign}{prefix}{}{digits}", "0".repeat(zeros)).as_bytes());
    } else {
        padded(format!("{sign}{text}").as_bytes(), conversion, out);
    }
}

#[cfg(test)]
mod tests;
