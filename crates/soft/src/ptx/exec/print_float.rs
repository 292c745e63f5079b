//! Texts of floating-point numbers, as `printf` writes them.

/// Adds a point after the digits if there is none.
pub(super) fn put_point(text: &mut String) {
    if text.contains('.') {
        return;
    }
    // In hexadecimal, `e` is a digit, and `p` precedes the exponent.
    let end = text.find('p').or_else(|| text.find('e').filter(|_| !text.starts_with("0x")));
    text.insert(end.unwrap_or(text.len()), '.');
}

/// With at least two digits of exponent, as C writes it.
pub(super) fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

pub(super) fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let exponent: i32 = if value == 0.0 {
        0
    } else {
        let text = format!("{value:.*e}", precision - 1);
        text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
    };
    let text = if exponent < -4 || exponent >= precision as i32 {
        exponential(value, precision - 1)
    } else {
        format!("{value:.*}", (precision as i32 - 1 - exponent).max(0) as usize)
    };
    if keep_zeros {
        return text;
    }
    let (digits, tail) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{tail}")
}

pub(super) fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    const FRACTION: usize = 13;
    let bits = value.to_bits();
    let raw = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (lead, exponent) = match (raw, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, raw - 1023),
    };
    // Lead and fraction as one number, rounded to the digits wanted; a carry goes into the lead.
    let kept = precision.unwrap_or(FRACTION).min(FRACTION);
    let unit = 1_u64 << (4 * (FRACTION - kept));
    let whole = (lead << 52) | fraction;
    let (down, rest) = (whole / unit, whole % unit);
    let up = rest * 2 > unit || (rest * 2 == unit && down % 2 == 1);
    let rounded = (down + u64::from(up)) * unit;
    let digits = format!("{:013x}", rounded & ((1 << 52) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => format!("{digits:0<precision$}").chars().take(precision).collect(),
    };
    let dot = if digits.is_empty() { "" } else { "." };
    format!("0x{:x}{dot}{digits}p{exponent:+}", rounded >> 52)
}
