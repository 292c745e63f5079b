//! `printf` of device code.

use super::trouble::Step;
use crate::ptx::code::Cell;

/// Where the arguments come from.
pub(super) trait Source {
    /// The next argument of that size.
    fn argument(&mut self, cell: Cell) -> Step<u64>;
    /// The string at an address.
    fn text(&mut self, address: u64) -> Step<Vec<u8>>;
}

/// Wider fields are cut down.
const MOST_WIDTH: usize = 1000;

#[derive(Debug, Default, Clone, Copy)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    width_is_argument: bool,
    precision: Option<usize>,
    is_long: bool,
    /// How many `h` there are.
    halves: u8,
    kind: u8,
}

/// The formatted text and the number of arguments used.
pub(super) fn format(pattern: &[u8], source: &mut dyn Source) -> Step<(Vec<u8>, u64)> {
    let mut out = Vec::new();
    let mut used = 0;
    let mut rest = pattern;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let Some((mut spec, tail)) = specification(rest) else {
            // As on GPUs, what is no conversion is printed as it stands and takes no argument.
            out.push(b'%');
            continue;
        };
        rest = tail;
        if spec.kind == b'%' {
            out.push(b'%');
            continue;
        }
        if spec.width_is_argument {
            used += 1;
            let width = source.argument(Cell::S32)? as i32;
            spec.left |= width < 0;
            spec.width = (width.unsigned_abs() as usize).min(MOST_WIDTH);
        }
        used += 1;
        conversion(spec, source, &mut out)?;
    }
    Ok((out, used))
}

/// What follows a `%`, and the text behind it; `None` where it is no conversion.
fn specification(mut rest: &[u8]) -> Option<(Spec, &[u8])> {
    let mut spec = Spec::default();
    rest = flags(rest, &mut spec);
    if let [b'*', tail @ ..] = rest {
        spec.width_is_argument = true;
        rest = tail;
    } else {
        (spec.width, rest) = number(rest);
    }
    if let [b'.', tail @ ..] = rest {
        // GPUs know no `.*`.
        let (precision, tail) = number(tail);
        spec.precision = Some(precision);
        rest = tail;
    }
    // GPUs know no `L`.
    while let [length @ (b'h' | b'l'), tail @ ..] = rest {
        match length {
            b'h' => spec.halves = spec.halves.saturating_add(1),
            _ => spec.is_long = true,
        }
        rest = tail;
    }
    let [kind, tail @ ..] = rest else { return None };
    spec.kind = *kind;
    b"%diuxXopcsfFeEgGaA".contains(kind).then_some((spec, tail))
}

fn flags<'a>(mut rest: &'a [u8], spec: &mut Spec) -> &'a [u8] {
    while let [flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), tail @ ..] = rest {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            _ => spec.zero = true,
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

fn conversion(spec: Spec, source: &mut dyn Source, out: &mut Vec<u8>) -> Step<()> {
    let prefix = |prefix: &'static str, wanted: bool| if spec.alternate && wanted { prefix } else { "" };
    match spec.kind {
        b'd' | b'i' => {
            let value = source.argument(if spec.is_long { Cell::U64 } else { Cell::S32 })? as i64;
            let value = match spec.halves {
                0 => value,
                1 => i64::from(value as i16),
                _ => i64::from(value as i8),
            };
            integer(value < 0, "", value.unsigned_abs().to_string(), spec, true, out);
        }
        b'u' | b'x' | b'X' | b'o' => {
            let value = source.argument(if spec.is_long { Cell::U64 } else { Cell::U32 })?;
            let value = match spec.halves {
                0 => value,
                1 => u64::from(value as u16),
                _ => u64::from(value as u8),
            };
            let (prefix, digits) = match spec.kind {
                b'x' => (prefix("0x", value != 0), format!("{value:x}")),
                b'X' => (prefix("0X", value != 0), format!("{value:X}")),
                b'o' => (prefix("0", value != 0), format!("{value:o}")),
                _ => ("", value.to_string()),
            };
            integer(false, prefix, digits, spec, false, out);
        }
        b'p' => match source.argument(Cell::U64)? {
            0 => padded(b"(nil)", spec, out),
            // As `%#lx`, but with a sign if one is asked for.
            value => integer(false, "0x", format!("{value:x}"), spec, true, out),
        },
        b'c' => padded(&[source.argument(Cell::U32)? as u8], spec, out),
        b's' => {
            let address = source.argument(Cell::U64)?;
            let mut text = if address == 0 { b"(null)".to_vec() } else { source.text(address)? };
            text.truncate(spec.precision.unwrap_or(usize::MAX));
            padded(&text, spec, out);
        }
        kind => {
            let value = f64::from_bits(source.argument(Cell::U64)?);
            float(kind, value, spec, out);
        }
    }
    Ok(())
}

fn sign(negative: bool, spec: Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(negative: bool, prefix: &str, digits: String, spec: Spec, signed: bool, out: &mut Vec<u8>) {
    let sign = if signed { sign(negative, spec) } else { "" };
    let zeros = spec.precision.unwrap_or(1).saturating_sub(digits.len());
    let digits = if spec.precision == Some(0) && digits == "0" { String::new() } else { digits };
    let body = format!("{}{digits}", "0".repeat(zeros));
    if spec.zero && !spec.left && spec.precision.is_none() {
        let zeros = spec.width.saturating_sub(sign.len() + prefix.len() + body.len());
        out.extend_from_slice(format!("{sign}{prefix}{}{body}", "0".repeat(zeros)).as_bytes());
    } else {
        padded(format!("{sign}{prefix}{body}").as_bytes(), spec, out);
    }
}

fn padded(text: &[u8], spec: Spec, out: &mut Vec<u8>) {
    let padding = spec.width.saturating_sub(text.len());
    if !spec.left {
        out.resize(out.len() + padding, b' ');
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + padding, b' ');
    }
}

fn float(kind: u8, value: f64, spec: Spec, out: &mut Vec<u8>) {
    let sign = sign(value.is_sign_negative(), spec);
    let magnitude = value.abs();
    let mut text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        let precision = spec.precision.unwrap_or(6);
        match kind.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponential(magnitude, precision),
            b'g' => general(magnitude, precision.max(1), spec.alternate),
            _ => hexadecimal(magnitude, spec.precision),
        }
    };
    if spec.alternate && value.is_finite() {
        put_point(&mut text);
    }
    if kind.is_ascii_uppercase() {
        text.make_ascii_uppercase();
    }
    if spec.zero && !spec.left && value.is_finite() {
        let zeros = spec.width.saturating_sub(sign.len() + text.len());
        let (prefix, digits) = text.split_at(if kind.eq_ignore_ascii_case(&b'a') { 2 } else { 0 });
        out.extend_from_slice(format!("{sign}{prefix}{}{digits}", "0".repeat(zeros)).as_bytes());
    } else {
        padded(format!("{sign}{text}").as_bytes(), spec, out);
    }
}

/// Puts a point behind the digits where there is none.
fn put_point(text: &mut String) {
    if text.contains('.') {
        return;
    }
    // An `e` is a digit in hexadecimal, where `p` is in front of the exponent.
    let end = text.find('p').or_else(|| text.find('e').filter(|_| !text.starts_with("0x")));
    text.insert(end.unwrap_or(text.len()), '.');
}

/// With at least two digits of exponent, as C writes it.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
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

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
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

#[cfg(test)]
mod tests {
    use super::{Cell, Source, Step, format};

    /// The address of `global!`.
    const TEXT: u64 = 1000;

    /// Arguments in order; strings by their number.
    struct List<'a>(std::slice::Iter<'a, u64>);

    impl Source for List<'_> {
        fn argument(&mut self, cell: Cell) -> Step<u64> {
            let value = *self.0.next().unwrap();
            Ok(if cell == Cell::S32 { value as i32 as u64 } else { value })
        }
        fn text(&mut self, address: u64) -> Step<Vec<u8>> {
            Ok(if address == TEXT { "global!".into() } else { format!("text{address}").into_bytes() })
        }
    }

    fn printed(pattern: &str, args: &[u64]) -> String {
        let (text, used) = format(pattern.as_bytes(), &mut List(args.iter())).unwrap();
        assert_eq!(used, args.len() as u64, "{pattern}");
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn as_c_prints() {
        let minus = u64::from(-5_i32 as u32);
        assert_eq!(
            printed("%d|%5d|%-5d|%05d|%+d|% d", &[minus, 7, 7, minus, 7, 7]),
            "-5|    7|7    |-0005|+7| 7"
        );
        assert_eq!(
            printed("%u %x %#X %o %lld %llu", &[42, 255, 255, 8, -9_i64 as u64, u64::MAX]),
            "42 ff 0XFF 10 -9 18446744073709551615"
        );
        assert_eq!(printed("%.3d|%*d|%.0d|%c|%p|%%", &[7, 4, 7, 0, 65, 4096]), "007|   7||A|0x1000|%");
        assert_eq!(printed("%s|%6s|%.2s|%s", &[1, 2, 3, 0]), "text1| text2|te|(null)");
        let float = |value: f64| value.to_bits();
        assert_eq!(
            printed("%f %.2f %8.1f|%-8.1f|%08.1f", &[1.5, -2.345, 3.25, 3.25, -3.25].map(float)),
            "1.500000 -2.35      3.2|3.2     |-00003.2"
        );
        assert_eq!(printed("%e %.1E", &[12345.678, 0.00012].map(float)), "1.234568e+04 1.2E-04");
        assert_eq!(
            printed("%g %g %g %g %G", &[0.0, 100000.0, 1e6, 0.0001, 1e-10].map(float)),
            "0 100000 1e+06 0.0001 1E-10"
        );
        assert_eq!(
            printed("%f %5.1f %F", &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(float)),
            "nan   inf -INF"
        );
        assert_eq!(printed("%a %a", &[1.0, 0.75].map(float)), "0x1p+0 0x1.8p-1");
        assert_eq!(printed("100%", &[]), "100%");
        // Seen on a GPU.
        let minus_four = u64::from(-4_i32 as u32);
        assert_eq!(printed("%-*d|%*d|%p|%7p", &[4, 7, minus_four, 7, 0, 4096]), "7   |7   |(nil)| 0x1000");
        assert_eq!(printed("%hd %hhd %#o %#x", &[70000, 300, 8, 0]), "4464 44 010 0");
        assert_eq!(printed("%k %d|%.*f|%*.*f|%zu|%5|%l", &[1]), "%k 1|%.*f|%*.*f|%zu|%5|%l");
        assert_eq!(printed("%A %.2a %.0a", &[-3.0, 1.999, 1.5].map(float)), "-0X1.8P+1 0x2.00p+0 0x2p+0");
    }

    /// What an H200 printed.
    #[test]
    fn as_a_gpu_prints() {
        let float = |value: f64| value.to_bits();
        let (inf, nan) = (float(f64::INFINITY), float(f64::NAN));
        let (one, half) = (float(1.0), float(1.5));
        let (minus_one, minus_six) = (u64::from(u32::MAX), u64::from(-6_i32 as u32));
        let wide = 1 << 40;
        let rows: [(&str, &[u64], &str); 36] = [
            ("%k|%d", &[1], "%k|1"),
            ("%lf %Lf|", &[float(1.25)], "1.250000 %Lf|"),
            ("%5%|%d", &[4], "%|4"),
            ("%05s|%+s|% s|%#s|", &[TEXT; 4], "global!|global!|global!|global!|"),
            ("%+u|% u|%+x|%+o|", &[1, 2, 3, 4], "1|2|3|4|"),
            ("%#x %#o %#X", &[0, 0, 0], "0 0 0"),
            ("%.20f", &[float(0.1)], "0.10000000000000000555"),
            ("%.0f %.0f %.0f %#.0f", &[0.5, 1.5, 2.5, 3.0].map(float), "0 2 2 3."),
            ("%hd|%hu|%hx|", &[70000; 3], "4464|4464|1170|"),
            ("%lx %llx %lX %lo %llo", &[wide, wide, wide, 8, 8], "10000000000 10000000000 10000000000 10 10"),
            ("%.10x|%10.4x|%-10.4x|%010x|", &[255; 4], "00000000ff|      00ff|00ff      |00000000ff|"),
            ("%-05d|%0-5d|%+ d|%010.4d|", &[7; 4], "7    |7    |+7|      0007|"),
            ("%10p|%-10p|%010p|", &[4096; 3], "    0x1000|0x1000    |0x00001000|"),
            ("%.8p|%+p|", &[4096; 2], "0x00001000|+0x1000|"),
            ("%c|%05c|%.3c|", &[0x141, 66, 67], "A|    B|C|"),
            ("%c|", &[0], "\0|"),
            ("%.3s|%10.3s|%-10.3s|%.0s|%.s|", &[TEXT; 5], "glo|       glo|glo       |||"),
            ("%.f|%.e|%.g|", &[half; 3], "2|2e+00|2|"),
            ("%#f %#.0e %#x", &[one, one, 5], "1.000000 1.e+00 0x5"),
            ("%g %g %g", &[123456789.0, 0.00001234, 1.0].map(float), "1.23457e+08 1.234e-05 1"),
            ("%.3g %.10g %.0g", &[float(314_159.0 / 100_000.0); 3], "3.14 3.14159 3"),
            ("%#.3g %g", &[3.0, 1234567.0].map(float), "3.00 1.23457e+06"),
            ("%e %e %e", &[0.0, 1e300, -1e-300].map(float), "0.000000e+00 1.000000e+300 -1.000000e-300"),
            ("%a %a %a", &[0.0, -0.0, 1e10].map(float), "0x0p+0 -0x0p+0 0x1.2a05f2p+33"),
            ("%a", &[1], "0x0.0000000000001p-1022"),
            ("%.0a %.1a %.3a", &[half, float(1.96875), one], "0x2p+0 0x2.0p+0 0x1.000p+0"),
            ("%.20a|%20a|", &[half; 2], "0x1.80000000000000000000p+0|            0x1.8p+0|"),
            ("%-20a|%020a|", &[half; 2], "0x1.8p+0            |0x0000000000001.8p+0|"),
            ("%+a|%#a", &[half, one], "+0x1.8p+0|0x1.p+0"),
            ("%5f|%05f|%-10f|", &[inf, inf, nan], "  inf|  inf|nan       |"),
            ("%+.1e|%010.2e", &[2.0, -2.0].map(float), "+2.0e+00|-02.00e+00"),
            ("%E %G %F %A", &[inf, nan, one, inf], "INF NAN 1.000000 INF"),
            ("%f %f", &[1e22, -0.0].map(float), "10000000000000000000000.000000 -0.000000"),
            ("%0*d|%+*d|", &[6, 3, 6, 3], "000003|    +3|"),
            ("%-*d|%*s|", &[minus_six, 3, 10, TEXT], "3     |   global!|"),
            ("%i %u", &[minus_one; 2], "-1 4294967295"),
        ];
        for (pattern, args, expected) in rows {
            let (text, _) = format(pattern.as_bytes(), &mut List(args.iter())).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{pattern}");
        }
    }
}
