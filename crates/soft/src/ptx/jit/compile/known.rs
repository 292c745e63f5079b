//! The functions of `math` that have a translation of their own. Every other one is called.

use std::collections::HashMap;
use std::sync::OnceLock;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Type, types};

use crate::ptx::math::value::Value;
use crate::ptx::math::{F1, F2, F3, F4, bits, compare, convert, float, integer};

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) bits: u32,
    pub(super) is_signed: bool,
}

impl Kind {
    fn of<T>(is_signed: bool) -> Kind {
        Kind { bits: 8 * size_of::<T>() as u32, is_signed }
    }

    pub(super) fn ty(self) -> Type {
        match self.bits {
            8 => types::I8,
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        }
    }
}

/// Operations on integers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integer {
    Add,
    Sub,
    Mul,
    Min,
    Max,
    ShiftLeft,
    ShiftRight,
    MulWide,
    Mad,
    MadWide,
    Neg,
    Abs,
    Div,
    Rem,
}

/// Operations on floats, correctly rounded to nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Float {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Sqrt,
    Min,
    Max,
    Neg,
    Abs,
}

/// Operations on all bits of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bits {
    And,
    Or,
    Xor,
    Not,
    NotTruth,
    Field,
    Insert,
    Lop3,
    RotateLeft,
    RotateRight,
    Count32,
    Leading32,
}

/// The translation of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Integer(Integer, Kind),
    Compare(IntCC, Kind),
    Single(Float),
    Double(Float),
    CompareFloat(FloatCC, Type),
    Bits(Bits),
    /// Reads the first type, and writes it as the second.
    Extend(Kind, Kind),
    FromInteger(Kind, Type),
    Promote,
    Demote,
}

/// The translation of the function at this address. The linker may give functions of the same code
/// one address: then they do the same.
pub(super) fn known(address: usize) -> Option<Known> {
    static TABLE: OnceLock<HashMap<usize, Known>> = OnceLock::new();
    TABLE.get_or_init(table).get(&address).copied()
}

#[derive(Default)]
struct Table(HashMap<usize, Known>);

impl Table {
    fn one(&mut self, f: F1, known: Known) {
        self.0.insert(f as usize, known);
    }
    fn two(&mut self, f: F2, known: Known) {
        self.0.insert(f as usize, known);
    }
    fn three(&mut self, f: F3, known: Known) {
        self.0.insert(f as usize, known);
    }
    fn four(&mut self, f: F4, known: Known) {
        self.0.insert(f as usize, known);
    }

    fn integer<T: integer::Int>(&mut self, is_signed: bool) {
        let kind = Kind::of::<T>(is_signed);
        let known = |operation| Known::Integer(operation, kind);
        self.two(integer::add::<T>, known(Integer::Add));
        self.two(integer::sub::<T>, known(Integer::Sub));
        self.two(integer::mul::<T>, known(Integer::Mul));
        self.two(integer::min::<T>, known(Integer::Min));
        self.two(integer::max::<T>, known(Integer::Max));
        self.two(integer::shl::<T>, known(Integer::ShiftLeft));
        self.two(integer::shr::<T>, known(Integer::ShiftRight));
        self.two(integer::div::<T>, known(Integer::Div));
        self.two(integer::rem::<T>, known(Integer::Rem));
        self.three(integer::mad::<T>, known(Integer::Mad));
        self.one(integer::neg::<T>, known(Integer::Neg));
        self.one(integer::abs::<T>, known(Integer::Abs));
        if kind.bits < 64 {
            self.two(integer::mul_wide::<T>, known(Integer::MulWide));
            self.three(integer::mad_wide::<T>, known(Integer::MadWide));
        }
        let compared =
            |order, unsigned_order| Known::Compare(if is_signed { order } else { unsigned_order }, kind);
        self.two(compare::eq::<T>, compared(IntCC::Equal, IntCC::Equal));
        self.two(compare::ne::<T>, compared(IntCC::NotEqual, IntCC::NotEqual));
        self.two(compare::lt::<T>, compared(IntCC::SignedLessThan, IntCC::UnsignedLessThan));
        self.two(compare::le::<T>, compared(IntCC::SignedLessThanOrEqual, IntCC::UnsignedLessThanOrEqual));
        self.two(compare::gt::<T>, compared(IntCC::SignedGreaterThan, IntCC::UnsignedGreaterThan));
        self.two(
            compare::ge::<T>,
            compared(IntCC::SignedGreaterThanOrEqual, IntCC::UnsignedGreaterThanOrEqual),
        );
        self.extend::<T, u8>(is_signed, false);
        self.extend::<T, u16>(is_signed, false);
        self.extend::<T, u32>(is_signed, false);
        self.extend::<T, u64>(is_signed, false);
        self.extend::<T, i8>(is_signed, true);
        self.extend::<T, i16>(is_signed, true);
        self.extend::<T, i32>(is_signed, true);
        self.extend::<T, i64>(is_signed, true);
    }

    fn extend<S: Value, D: Value>(&mut self, from_signed: bool, to_signed: bool) {
        let known = Known::Extend(Kind::of::<S>(from_signed), Kind::of::<D>(to_signed));
        self.one(convert::extend_from::<S, D>, known);
    }

    fn float<T: float::Float>(&mut self, ty: Type, known: fn(Float) -> Known) {
        self.two(float::add::<T, 0>, known(Float::Add));
        self.two(float::sub::<T, 0>, known(Float::Sub));
        self.two(float::mul::<T, 0>, known(Float::Mul));
        self.two(float::div::<T, 0>, known(Float::Div));
        self.three(float::fma::<T, 0>, known(Float::Fma));
        self.one(float::sqrt::<T, 0>, known(Float::Sqrt));
        self.two(float::min::<T>, known(Float::Min));
        self.two(float::max::<T>, known(Float::Max));
        self.one(float::neg::<T>, known(Float::Neg));
        self.one(float::abs::<T>, known(Float::Abs));
        let compared = |order| Known::CompareFloat(order, ty);
        self.two(compare::eq::<T>, compared(FloatCC::Equal));
        self.two(compare::ne::<T>, compared(FloatCC::OrderedNotEqual));
        self.two(compare::lt::<T>, compared(FloatCC::LessThan));
        self.two(compare::le::<T>, compared(FloatCC::LessThanOrEqual));
        self.two(compare::gt::<T>, compared(FloatCC::GreaterThan));
        self.two(compare::ge::<T>, compared(FloatCC::GreaterThanOrEqual));
        self.two(compare::equ::<T>, compared(FloatCC::UnorderedOrEqual));
        self.two(compare::neu::<T>, compared(FloatCC::NotEqual));
        self.two(compare::ltu::<T>, compared(FloatCC::UnorderedOrLessThan));
        self.two(compare::leu::<T>, compared(FloatCC::UnorderedOrLessThanOrEqual));
        self.two(compare::gtu::<T>, compared(FloatCC::UnorderedOrGreaterThan));
        self.two(compare::geu::<T>, compared(FloatCC::UnorderedOrGreaterThanOrEqual));
        self.two(compare::num::<T>, compared(FloatCC::Ordered));
        self.two(compare::nan::<T>, compared(FloatCC::Unordered));
    }
}

fn table() -> HashMap<usize, Known> {
    let mut table = Table::default();
    table.integer::<u8>(false);
    table.integer::<u16>(false);
    table.integer::<u32>(false);
    table.integer::<u64>(false);
    table.integer::<i8>(true);
    table.integer::<i16>(true);
    table.integer::<i32>(true);
    table.integer::<i64>(true);
    table.float::<f32>(types::F32, Known::Single);
    table.float::<f64>(types::F64, Known::Double);
    table.two(bits::and, Known::Bits(Bits::And));
    table.two(bits::or, Known::Bits(Bits::Or));
    table.two(bits::xor, Known::Bits(Bits::Xor));
    table.one(bits::not, Known::Bits(Bits::Not));
    table.one(bits::not_pred, Known::Bits(Bits::NotTruth));
    table.two(bits::field, Known::Bits(Bits::Field));
    table.three(bits::insert, Known::Bits(Bits::Insert));
    table.four(bits::lop3, Known::Bits(Bits::Lop3));
    table.three(bits::shf_left::<true>, Known::Bits(Bits::RotateLeft));
    table.three(bits::shf_right::<true>, Known::Bits(Bits::RotateRight));
    table.one(bits::popc32, Known::Bits(Bits::Count32));
    table.one(bits::clz32, Known::Bits(Bits::Leading32));
    let signed = |bits| Kind { bits, is_signed: true };
    table.one(convert::i32_to_f32, Known::FromInteger(signed(32), types::F32));
    table.one(convert::u32_to_f32, Known::FromInteger(Kind { bits: 32, is_signed: false }, types::F32));
    table.one(convert::i32_to_f64, Known::FromInteger(signed(32), types::F64));
    table.one(convert::f32_to_f64, Known::Promote);
    table.one(convert::f64_to_f32, Known::Demote);
    table.0
}
