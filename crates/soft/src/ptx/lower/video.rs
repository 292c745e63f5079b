//! Video instructions: arithmetic on parts of words, alone or side by side.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::{F1, F2, F3, compare, video};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    bits: u32,
    shift: u32,
}

const WORD: Part = Part { bits: 32, shift: 0 };
const UPPER_HALF: Part = Part { bits: 16, shift: 16 };

impl Part {
    fn parse(name: &str) -> Lowered<Part> {
        Ok(match name {
            "b0" => Part { bits: 8, shift: 0 },
            "b1" => Part { bits: 8, shift: 8 },
            "b2" => Part { bits: 8, shift: 16 },
            "b3" => Part { bits: 8, shift: 24 },
            "h0" => Part { bits: 16, shift: 0 },
            "h1" => Part { bits: 16, shift: 16 },
            _ => return Err(format!("`.{name}` is not a part of a word").into()),
        })
    }

    fn extract(self, is_signed: bool) -> F2 {
        match (self.bits, is_signed) {
            (8, false) => video::part::<8, false>,
            (8, true) => video::part::<8, true>,
            (16, false) => video::part::<16, false>,
            (16, true) => video::part::<16, true>,
            (_, false) => video::part::<32, false>,
            (_, true) => video::part::<32, true>,
        }
    }

    fn clamp(self, is_signed: bool) -> F1 {
        match (self.bits, is_signed) {
            (8, false) => video::clamp::<8, false>,
            (8, true) => video::clamp::<8, true>,
            (16, false) => video::clamp::<16, false>,
            (16, true) => video::clamp::<16, true>,
            (_, false) => video::clamp::<32, false>,
            (_, true) => video::clamp::<32, true>,
        }
    }

    /// Saturates the result of a single operation.
    fn saturate(self, family: Family, is_signed: bool) -> F1 {
        match (family, self.bits, is_signed) {
            (Family::Shift, _, false) => video::saturate_shifted::<false>,
            (Family::Shift, _, true) => video::saturate_shifted::<true>,
            (_, 8, false) => video::saturate_part::<8, false>,
            (_, 8, true) => video::saturate_part::<8, true>,
            (_, 16, false) => video::saturate_part::<16, false>,
            (_, 16, true) => video::saturate_part::<16, true>,
            (_, _, false) => video::saturate_unsigned,
            (_, _, true) => video::clamp::<32, true>,
        }
    }

    fn merge(self) -> F3 {
        match self.bits {
            8 => video::merge::<8>,
            16 => video::merge::<16>,
            _ => video::merge::<32>,
        }
    }
}

const COMPARISONS: &[(&str, F2)] = &[
    ("eq", compare::eq::<i64>),
    ("ne", compare::ne::<i64>),
    ("lt", compare::lt::<i64>),
    ("le", compare::le::<i64>),
    ("gt", compare::gt::<i64>),
    ("ge", compare::ge::<i64>),
];

/// An operation on the result of another and the last source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    Add,
    Min,
    Max,
}

const SECOND: &[(&str, Second)] = &[("add", Second::Add), ("min", Second::Min), ("max", Second::Max)];

impl Second {
    fn function(self, is_signed: bool) -> F2 {
        match (self, is_signed) {
            (Second::Add, _) => video::add,
            (Second::Min, true) => video::min_signed,
            (Second::Min, false) => video::min_unsigned,
            (Second::Max, true) => video::max_signed,
            (Second::Max, false) => video::max_unsigned,
        }
    }
}

/// Operations whose results become narrow in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Sums and differences, of which a further operation sees the low word.
    Sum,
    /// The smaller, the greater, and the absolute difference.
    Choice,
    Shift,
    /// 0 or 1.
    Truth,
}

/// The types and the function of an instruction.
struct Operation {
    f: F2,
    family: Family,
    /// The result and the two sources are signed. The result of a comparison counts as its first
    /// source.
    signed: [bool; 3],
    saturates: bool,
    /// A further operation, with the last source.
    second: Option<Second>,
}

/// Whether the next type is `.s32`, not `.u32`.
fn signed(reader: &mut InstructionReader<'_, '_>) -> Lowered<bool> {
    match reader.ty()? {
        Type::S32 => Ok(true),
        Type::U32 => Ok(false),
        _ => Err(LowerError::Unsupported),
    }
}

fn operation(reader: &mut InstructionReader<'_, '_>, name: &str) -> Lowered<Operation> {
    let (family, f): (Family, F2) = match name {
        "vadd" => (Family::Sum, video::add),
        "vsub" => (Family::Sum, video::sub),
        "vavrg" => (Family::Sum, video::average),
        "vabsdiff" => (Family::Choice, video::abs_diff),
        "vmin" => (Family::Choice, video::min_signed),
        "vmax" => (Family::Choice, video::max_signed),
        "vset" => (Family::Truth, reader.one_of(COMPARISONS).ok_or(LowerError::Unsupported)?),
        "vshl" | "vshr" => {
            let clamps = reader.one_of(&[("clamp", true), ("wrap", false)]).ok_or(LowerError::Unsupported)?;
            let f: F2 = match (name, clamps) {
                ("vshl", true) => video::shl_clamp,
                ("vshl", false) => video::shl_wrap,
                (_, true) => video::shr_clamp,
                (_, false) => video::shr_wrap,
            };
            (Family::Shift, f)
        }
        _ => return Err(LowerError::Unsupported),
    };
    let result = if family == Family::Truth { None } else { Some(signed(reader)?) };
    let (a, b) = (signed(reader)?, signed(reader)?);
    if family == Family::Shift && b {
        return Err(LowerError::Unsupported);
    }
    let saturates = family != Family::Truth && reader.flag("sat");
    let signed = [result.unwrap_or(a), a, b];
    Ok(Operation { f, family, signed, saturates, second: reader.one_of(SECOND) })
}

/// A register or number, and the part of it that is named.
fn part_of<'t>(operand: &Operand<'t>) -> Lowered<(Operand<'t>, Option<&'t str>)> {
    match operand {
        Operand::Member(name, part) => Ok((Operand::Name(name), Some(part))),
        other => Ok((other.clone(), None)),
    }
}

impl<'t> Body<'_, 't> {
    /// A part of a source, as a number of 64 bits.
    fn video_source(&mut self, operand: &Operand<'t>, is_signed: bool) -> Lowered<Reg> {
        let (operand, part) = part_of(operand)?;
        let part = part.map_or(Ok(WORD), Part::parse)?;
        let a = self.source(&operand, Type::B32)?;
        Ok(self.video_part(a, part, is_signed))
    }

    fn video_part(&mut self, a: Reg, part: Part, is_signed: bool) -> Reg {
        let (d, b) = (self.fresh(), self.constant(u64::from(part.shift)));
        self.emit(Inst::Binary { f: part.extract(is_signed), d, a, b });
        d
    }

    /// The result of a single operation on two numbers, whose destination is a part.
    fn single_result(&mut self, how: &Operation, [a, b]: [Reg; 2], part: Part) -> Reg {
        let d = self.fresh();
        self.emit(Inst::Binary { f: how.f, d, a, b });
        if how.saturates {
            self.emit(Inst::Unary { f: part.saturate(how.family, how.signed[0]), d, a: d });
        }
        if how.family == Family::Sum || (how.family == Family::Shift && how.saturates) {
            self.emit(Inst::Unary { f: video::word, d, a: d });
        }
        d
    }

    /// Writes a result into a part of `c`.
    fn merge_part(&mut self, d: Reg, result: Reg, c: Reg, part: Part) {
        // For `.h1` assemblers take the upper half of the result.
        let a = if part == UPPER_HALF { self.video_part(result, part, false) } else { result };
        let shift = self.constant(u64::from(part.shift));
        self.emit(Inst::Ternary { f: part.merge(), d, a, b: c, c: shift });
    }

    /// The result of an operation side by side, saturated to the width of a part.
    fn packed_result(&mut self, how: &Operation, [a, b]: [Reg; 2], part: Part) -> Reg {
        let d = self.fresh();
        self.emit(Inst::Binary { f: how.f, d, a, b });
        if how.saturates {
            self.emit(Inst::Unary { f: part.clamp(how.signed[0]), d, a: d });
        }
        d
    }

    /// The low word of a number.
    fn low_word(&mut self, d: Reg, a: Reg) {
        self.field_to(d, a, 0, 32);
    }
}

/// The video instructions. Every other opcode is unsupported.
pub(super) fn instruction<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    match reader.opcode() {
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vset" => scalar(body, reader),
        "vmad" => mad(body, reader),
        "vadd2" | "vsub2" | "vavrg2" | "vabsdiff2" | "vmin2" | "vmax2" | "vset2" | "vadd4" | "vsub4"
        | "vavrg4" | "vabsdiff4" | "vmin4" | "vmax4" | "vset4" => packed(body, reader),
        _ => Err(LowerError::Unsupported),
    }
}

/// Instructions on one part of each source.
fn scalar<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let how = operation(reader, reader.opcode())?;
    let (d, a, b, c) = match reader.all_operands()? {
        [d, a, b] => (d, a, b, None),
        [d, a, b, c] => (d, a, b, Some(c)),
        other => return Err(format!("expected 3 or 4 operands, found {}", other.len()).into()),
    };
    let (d, target) = part_of(d)?;
    if (target.is_some() || how.second.is_some()) != c.is_some() || (target.is_some() && how.second.is_some())
    {
        let words = "the last source belongs to a further operation or to a part as the destination";
        return Err(words.to_owned().into());
    }
    let target = target.map(Part::parse).transpose()?;
    let sources = [body.video_source(a, how.signed[1])?, body.video_source(b, how.signed[2])?];
    let c = match c {
        Some(c) => body.source(c, Type::B32)?,
        None => body.constant(0),
    };
    let d = body.dest(&d, Type::B32)?;
    let result = body.single_result(&how, sources, target.unwrap_or(WORD));
    if let Some(part) = target {
        body.merge_part(d, result, c, part);
    } else if let Some(second) = how.second {
        let (f, whole) = (second.function(how.signed[0]), body.fresh());
        let b = body.video_part(c, WORD, how.signed[0]);
        body.emit(Inst::Binary { f, d: whole, a: result, b });
        body.low_word(d, whole);
    } else {
        body.low_word(d, result);
    }
    Ok(())
}

/// `vmad`.
fn mad<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let types = [signed(reader)?, signed(reader)?, signed(reader)?];
    let plus_one = reader.flag("po");
    let saturate = reader.flag("sat");
    let scale = reader.one_of(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
    let [d, a, b, c] = reader.operands()?;
    let strip = |operand: &Operand<'t>| match operand {
        Operand::Negated(inner) => ((**inner).clone(), true),
        other => (other.clone(), false),
    };
    let ((a, negate_a), (b, negate_b), (c, negate_c)) = (strip(a), strip(b), strip(c));
    let negate_product = negate_a != negate_b;
    if u32::from(negate_product) + u32::from(negate_c) + u32::from(plus_one) > 1 {
        return Err("the product, the sum and `.po` exclude each other's minus".to_owned().into());
    }
    let is_signed = types[1] || types[2] || negate_product || negate_c;
    let how = video::Mad { negate_product, negate_c, plus_one, is_signed, saturate, scale };
    let (a, b) = (body.video_source(&a, types[1])?, body.video_source(&b, types[2])?);
    let c = body.source(&c, Type::B32)?;
    let d = body.dest(d, Type::B32)?;
    let e = body.constant(how.bits());
    body.emit(Inst::Quaternary { f: video::mad, d, a, b, c, e });
    Ok(())
}

/// The lanes that digits name, the last digit first.
fn lanes(name: Option<&str>, prefix: char, default: &[u32], most: u32) -> Lowered<Vec<u32>> {
    let Some(name) = name else { return Ok(default.to_vec()) };
    let wrong = || LowerError::Wrong(format!("`.{name}` does not select parts of words"));
    let digits = name.strip_prefix(prefix).ok_or_else(wrong)?;
    let lanes: Vec<u32> = digits.chars().rev().filter_map(|digit| digit.to_digit(10)).collect();
    let all_fit = lanes.iter().all(|lane| *lane < most);
    if lanes.len() == digits.len() && !lanes.is_empty() && all_fit { Ok(lanes) } else { Err(wrong()) }
}

/// Instructions on two halves or four bytes side by side. Sources are selected from both words.
fn packed<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let opcode = reader.opcode();
    let (name, count) = match (opcode.strip_suffix('2'), opcode.strip_suffix('4')) {
        (Some(name), _) => (name, 2),
        (_, Some(name)) => (name, 4),
        _ => return Err(LowerError::Unsupported),
    };
    let how = operation(reader, name)?;
    let has_sum = match how.second {
        Some(_) if how.saturates => return Err(LowerError::Unsupported),
        Some(_) => true,
        None => false,
    };
    let [d, a, b, c] = reader.operands()?;
    let ((d, mask), (a, a_lanes), (b, b_lanes)) = (part_of(d)?, part_of(a)?, part_of(b)?);
    let prefix = if count == 2 { 'h' } else { 'b' };
    let plain: Vec<u32> = (0..count).collect();
    let others: Vec<u32> = (count..2 * count).collect();
    let mask = lanes(mask, prefix, &plain, count)?;
    let a_lanes = lanes(a_lanes, prefix, &plain, 2 * count)?;
    let b_lanes = lanes(b_lanes, prefix, &others, 2 * count)?;
    let is_falling = mask.windows(2).all(|pair| pair[0] < pair[1]);
    if a_lanes.len() != count as usize || b_lanes.len() != count as usize || !is_falling {
        return Err(format!("expected {count} parts of each source, and a mask of falling parts").into());
    }
    let words = [body.source(&a, Type::B32)?, body.source(&b, Type::B32)?];
    let c = body.source(c, Type::B32)?;
    let d = body.dest(&d, Type::B32)?;
    let bits = 32 / count;
    let part = |lane: u32| Part { bits, shift: lane % count * bits };
    let mut whole = c;
    for (lane, (&from_a, &from_b)) in (0..count).zip(a_lanes.iter().zip(&b_lanes)) {
        if !mask.contains(&lane) {
            continue;
        }
        let [a, b] = [(from_a, how.signed[1]), (from_b, how.signed[2])]
            .map(|(from, is_signed)| body.video_part(words[(from / count) as usize], part(from), is_signed));
        let result = body.packed_result(&how, [a, b], part(lane));
        let next = body.fresh();
        if has_sum {
            body.emit(Inst::Add32 { d: next, a: whole, b: result });
        } else {
            let shift = body.constant(u64::from(part(lane).shift));
            body.emit(Inst::Ternary { f: part(lane).merge(), d: next, a: result, b: whole, c: shift });
        }
        whole = next;
    }
    body.low_word(d, whole);
    Ok(())
}
