//! Instructions that compute registers from registers.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Type, Value, types};

use super::known::{Bits, Float, Integer, Kind, Known, known};
use super::translate::Translator;
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::convert::{Conversion, convert};
use crate::ptx::math::{F1, F2, F3, F4};

/// The NaN of single-precision results.
const NAN_F32: f32 = f32::from_bits(0x7fff_ffff);

const WORD: Kind = Kind { bits: 32, is_signed: false };
const LONG: Kind = Kind { bits: 64, is_signed: false };

/// Calls a function of `math`: native code only knows the C calling convention.
///
/// # Safety
/// `f` is an [`F1`].
unsafe extern "C" fn call1(f: *const (), a: u64) -> u64 {
    // SAFETY: the caller's promise.
    let f = unsafe { std::mem::transmute::<*const (), F1>(f) };
    f(a)
}
/// # Safety
/// `f` is an [`F2`].
unsafe extern "C" fn call2(f: *const (), a: u64, b: u64) -> u64 {
    // SAFETY: the caller's promise.
    let f = unsafe { std::mem::transmute::<*const (), F2>(f) };
    f(a, b)
}
/// # Safety
/// `f` is an [`F3`].
unsafe extern "C" fn call3(f: *const (), a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: the caller's promise.
    let f = unsafe { std::mem::transmute::<*const (), F3>(f) };
    f(a, b, c)
}
/// # Safety
/// `f` is an [`F4`].
unsafe extern "C" fn call4(f: *const (), a: u64, b: u64, c: u64, e: u64) -> u64 {
    // SAFETY: the caller's promise.
    let f = unsafe { std::mem::transmute::<*const (), F4>(f) };
    f(a, b, c, e)
}
/// # Safety
/// `how` points to a conversion.
unsafe extern "C" fn call_convert(how: *const Conversion, a: u64) -> u64 {
    // SAFETY: the caller's promise.
    convert(unsafe { *how }, a)
}

impl Translator<'_, '_> {
    /// Translates an instruction that only uses registers; `None` if it is another one.
    pub(super) fn arithmetic(&mut self, inst: &Inst) -> Option<()> {
        match *inst {
            Inst::Unary { f, d, a } => self.function_of(f as usize, d, &[a]),
            Inst::Binary { f, d, a, b } => self.function_of(f as usize, d, &[a, b]),
            Inst::Ternary { f, d, a, b, c } => self.function_of(f as usize, d, &[a, b, c]),
            Inst::Quaternary { f, d, a, b, c, e } => self.function_of(f as usize, d, &[a, b, c, e]),
            // The instruction stays where it is as long as its program, which owns this code.
            Inst::Convert { d, a, ref how } => {
                let how = self.builder.ins().iconst(types::I64, std::ptr::from_ref(how).addr() as i64);
                let a = self.get(a);
                let value = self.call(call_convert as *const () as usize, &[how, a]);
                self.set(d, value);
            }
            Inst::Add32 { d, a, b } => self.integer(Integer::Add, WORD, d, &[a, b]),
            Inst::Add64 { d, a, b } => self.integer(Integer::Add, LONG, d, &[a, b]),
            Inst::Mul32 { d, a, b } => self.integer(Integer::Mul, WORD, d, &[a, b]),
            Inst::Mad32 { d, a, b, c } => self.integer(Integer::Mad, WORD, d, &[a, b, c]),
            Inst::And { d, a, b } => self.bits(Bits::And, d, &[a, b])?,
            Inst::AddF32 { d, a, b } => self.single(Float::Add, d, &[a, b]),
            Inst::MulF32 { d, a, b } => self.single(Float::Mul, d, &[a, b]),
            Inst::Select { d, a, b, c } => {
                let truth = self.truth(c);
                let (a, b) = (self.get(a), self.get(b));
                let value = self.builder.ins().select(truth, a, b);
                self.set(d, value);
            }
            _ => return None,
        }
        Some(())
    }

    /// A function of `math`: translated if it is known, otherwise called.
    fn function_of(&mut self, address: usize, d: Reg, sources: &[Reg]) {
        let is_done = known(address).and_then(|known| self.translated(known, address, d, sources));
        if is_done.is_none() {
            let value = self.call_function(address, sources);
            self.set(d, value);
        }
    }

    /// Translates a known function; `None` if not with these operands, or on this processor.
    fn translated(&mut self, known: Known, address: usize, d: Reg, sources: &[Reg]) -> Option<()> {
        match known {
            // The host refuses to divide the least number by -1.
            Known::Integer(Integer::Div | Integer::Rem, Kind { bits: 64, is_signed: true }) => return None,
            Known::Integer(operation, kind) => self.integer(operation, kind, d, sources),
            Known::Compare(order, kind) => {
                let (a, b) = (self.low(sources[0], kind), self.low(sources[1], kind));
                let truth = self.builder.ins().icmp(order, a, b);
                self.set_truth(d, truth);
            }
            Known::Single(Float::Fma) if !has_fma() => return None,
            Known::Single(operation) => self.single(operation, d, sources),
            Known::Double(operation) => self.double(operation, address, d, sources)?,
            Known::CompareFloat(order, ty) => {
                let (a, b) = (self.float(sources[0], ty), self.float(sources[1], ty));
                let truth = self.builder.ins().fcmp(order, a, b);
                self.set_truth(d, truth);
            }
            Known::Bits(operation) => self.bits(operation, d, sources)?,
            Known::Extend(from, to) => {
                let value = self.low(sources[0], from);
                let value = self.extended(value, from);
                let value = self.reduced(value, to);
                self.put(d, value, to);
            }
            Known::FromInteger(from, ty) => self.integer_to_float(from, ty, d, sources[0]),
            Known::Promote => {
                let value = self.float(sources[0], types::F32);
                let value = self.builder.ins().fpromote(types::F64, value);
                self.set_double(d, value);
            }
            Known::Demote => {
                let value = self.float(sources[0], types::F64);
                let value = self.builder.ins().fdemote(types::F32, value);
                self.set_single(d, value);
            }
        }
        Some(())
    }

    fn call_function(&mut self, address: usize, sources: &[Reg]) -> Value {
        let caller = match sources.len() {
            1 => call1 as *const (),
            2 => call2 as *const (),
            3 => call3 as *const (),
            _ => call4 as *const (),
        };
        let mut arguments = vec![self.builder.ins().iconst(types::I64, address as i64)];
        arguments.extend(sources.iter().map(|&source| self.get(source)));
        self.call(caller as usize, &arguments)
    }

    /// The low bits of a register.
    fn low(&mut self, register: Reg, kind: Kind) -> Value {
        let value = self.get(register);
        self.reduced(value, kind)
    }

    fn reduced(&mut self, value: Value, kind: Kind) -> Value {
        if kind.bits == 64 { value } else { self.builder.ins().ireduce(kind.ty(), value) }
    }

    fn extended(&mut self, value: Value, kind: Kind) -> Value {
        match kind {
            Kind { bits: 64, .. } => value,
            Kind { is_signed: true, .. } => self.builder.ins().sextend(types::I64, value),
            Kind { is_signed: false, .. } => self.builder.ins().uextend(types::I64, value),
        }
    }

    fn put(&mut self, d: Reg, value: Value, kind: Kind) {
        let value = self.extended(value, kind);
        self.set(d, value);
    }

    fn set_truth(&mut self, d: Reg, truth: Value) {
        self.set_narrow(d, truth);
        self.truths.insert(d, truth);
    }

    fn float(&mut self, register: Reg, ty: Type) -> Value {
        if ty == types::F64 {
            let value = self.get(register);
            return self.builder.ins().bitcast(types::F64, MemFlagsData::new(), value);
        }
        if let Some(&single) = self.singles.get(&register) {
            return single;
        }
        let value = match self.constant(register) {
            Some(bits) => self.builder.ins().f32const(f32::from_bits(bits as u32)),
            None => {
                let value = self.low(register, WORD);
                self.builder.ins().bitcast(types::F32, MemFlagsData::new(), value)
            }
        };
        self.singles.insert(register, value);
        value
    }

    /// Sets a register to a single-precision result. Every NaN becomes the same one.
    fn set_single(&mut self, d: Reg, value: Value) {
        let nan = self.builder.ins().f32const(NAN_F32);
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let value = self.builder.ins().select(is_nan, nan, value);
        let bits = self.builder.ins().bitcast(types::I32, MemFlagsData::new(), value);
        self.set_narrow(d, bits);
        self.singles.insert(d, value);
    }

    fn set_double(&mut self, d: Reg, value: Value) {
        let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), value);
        self.set(d, bits);
    }

    fn integer_to_float(&mut self, from: Kind, ty: Type, d: Reg, a: Reg) {
        let value = self.low(a, from);
        // Every such integer fits into 64 signed bits.
        let value = if from.is_signed { value } else { self.extended(value, from) };
        let value = self.builder.ins().fcvt_from_sint(ty, value);
        if ty == types::F32 { self.set_single(d, value) } else { self.set_double(d, value) }
    }

    fn integer(&mut self, operation: Integer, kind: Kind, d: Reg, sources: &[Reg]) {
        if matches!(operation, Integer::ShiftLeft | Integer::ShiftRight) {
            return self.shift(operation, kind, d, sources[0], sources[1]);
        }
        let values: Vec<Value> = sources.iter().map(|&source| self.low(source, kind)).collect();
        let a = values[0];
        let b = values.get(1).copied().unwrap_or(a);
        let value = match operation {
            Integer::Add => self.builder.ins().iadd(a, b),
            Integer::Sub => self.builder.ins().isub(a, b),
            Integer::Mul => self.builder.ins().imul(a, b),
            Integer::Mad => {
                let product = self.builder.ins().imul(a, b);
                self.builder.ins().iadd(product, values[2])
            }
            Integer::MulWide | Integer::MadWide => {
                let (a, b) = (self.extended(a, kind), self.extended(b, kind));
                let mut value = self.builder.ins().imul(a, b);
                if operation == Integer::MadWide {
                    let c = self.get(sources[2]);
                    value = self.builder.ins().iadd(value, c);
                }
                return self.set(d, value);
            }
            Integer::Min if kind.is_signed => self.builder.ins().smin(a, b),
            Integer::Min => self.builder.ins().umin(a, b),
            Integer::Max if kind.is_signed => self.builder.ins().smax(a, b),
            Integer::Max => self.builder.ins().umax(a, b),
            Integer::Neg => self.builder.ins().ineg(a),
            Integer::Abs if kind.is_signed => {
                let negated = self.builder.ins().ineg(a);
                let is_negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, a, 0);
                self.builder.ins().select(is_negative, negated, a)
            }
            Integer::Abs => a,
            Integer::Div | Integer::Rem => return self.divide(operation, kind, d, a, b),
            Integer::ShiftLeft | Integer::ShiftRight => a,
        };
        self.put(d, value, kind);
    }

    /// Quotients and remainders, where 0 as a divisor gives all ones or the dividend. Signed types
    /// have at most 32 bits, so that no quotient overflows in 64.
    fn divide(&mut self, operation: Integer, kind: Kind, d: Reg, a: Value, b: Value) {
        let (a, b) = (self.extended(a, kind), self.extended(b, kind));
        let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let one = self.builder.ins().iconst(types::I64, 1);
        let divisor = self.builder.ins().select(is_zero, one, b);
        let (value, otherwise) = match (operation, kind.is_signed) {
            (Integer::Div, true) => (self.builder.ins().sdiv(a, divisor), None),
            (Integer::Div, false) => (self.builder.ins().udiv(a, divisor), None),
            (_, true) => (self.builder.ins().srem(a, divisor), Some(a)),
            (_, false) => (self.builder.ins().urem(a, divisor), Some(a)),
        };
        let otherwise = otherwise.unwrap_or_else(|| self.builder.ins().iconst(types::I64, -1));
        let value = self.builder.ins().select(is_zero, otherwise, value);
        let value = self.reduced(value, kind);
        self.put(d, value, kind);
    }

    /// Shifts, where the host takes the distance modulo the width.
    fn shift(&mut self, operation: Integer, kind: Kind, d: Reg, a: Reg, by: Reg) {
        let value = self.low(a, kind);
        let is_arithmetic = operation == Integer::ShiftRight && kind.is_signed;
        let last = i64::from(kind.bits) - 1;
        let known = self.constant(by).map(|by| i64::from(by as u32));
        let distance = match known {
            Some(by) => self.builder.ins().iconst(types::I32, by.min(last)),
            None => self.low(by, WORD),
        };
        let shifted = match operation {
            Integer::ShiftLeft => self.builder.ins().ishl(value, distance),
            _ if is_arithmetic => {
                let most = self.builder.ins().iconst(types::I32, last);
                let distance = self.builder.ins().umin(distance, most);
                self.builder.ins().sshr(value, distance)
            }
            _ => self.builder.ins().ushr(value, distance),
        };
        let value = match known {
            _ if is_arithmetic => shifted,
            Some(by) if by <= last => shifted,
            _ => {
                let zero = self.builder.ins().iconst(kind.ty(), 0);
                let distance = self.low(by, WORD);
                let is_over = self.builder.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, distance, last);
                self.builder.ins().select(is_over, zero, shifted)
            }
        };
        self.put(d, value, kind);
    }

    fn bits(&mut self, operation: Bits, d: Reg, sources: &[Reg]) -> Option<()> {
        let value = match operation {
            Bits::Lop3 => {
                let table = self.constant(sources[3])?;
                let value = self.lop3([sources[0], sources[1], sources[2]], table);
                self.set_narrow(d, value);
                return Some(());
            }
            Bits::Field | Bits::Insert => {
                let spec = self.constant(*sources.last()?)?;
                let (shift, width) = ((spec & 63) as i64, (spec >> 8) as u32);
                let mask = if width >= 64 { -1 } else { (1_i64 << width) - 1 };
                let a = self.get(sources[0]);
                if operation == Bits::Field {
                    let a = self.builder.ins().ushr_imm_u(a, shift);
                    self.builder.ins().band_imm_s(a, mask)
                } else {
                    let b = self.get(sources[1]);
                    let b = self.builder.ins().band_imm_s(b, mask);
                    let b = self.builder.ins().ishl_imm_u(b, shift);
                    self.builder.ins().bor(a, b)
                }
            }
            Bits::RotateLeft | Bits::RotateRight => {
                let (a, b) = (self.get(sources[0]), self.get(sources[1]));
                let low = self.builder.ins().ireduce(types::I32, a);
                let low = self.builder.ins().uextend(types::I64, low);
                let high = self.builder.ins().ishl_imm_u(b, 32);
                let pair = self.builder.ins().bor(high, low);
                let distance = self.get(sources[2]);
                let distance = self.builder.ins().band_imm_s(distance, 31);
                let value = if operation == Bits::RotateLeft {
                    let pair = self.builder.ins().ishl(pair, distance);
                    self.builder.ins().ushr_imm_u(pair, 32)
                } else {
                    self.builder.ins().ushr(pair, distance)
                };
                let value = self.builder.ins().ireduce(types::I32, value);
                self.set_narrow(d, value);
                return Some(());
            }
            Bits::Count32 | Bits::Leading32 => {
                let value = self.low(sources[0], WORD);
                let value = match operation {
                    Bits::Count32 => self.builder.ins().popcnt(value),
                    _ => self.builder.ins().clz(value),
                };
                self.set_narrow(d, value);
                return Some(());
            }
            Bits::Not => {
                let a = self.get(sources[0]);
                self.builder.ins().bnot(a)
            }
            Bits::NotTruth => {
                let truth = self.truths.get(&sources[0]).copied();
                let a = self.get(sources[0]);
                let value = self.builder.ins().bxor_imm_s(a, 1);
                self.set(d, value);
                if let Some(truth) = truth {
                    let truth = self.builder.ins().bxor_imm_s(truth, 1);
                    self.truths.insert(d, truth);
                }
                return Some(());
            }
            Bits::And | Bits::Or | Bits::Xor => return self.logic(operation, d, sources[0], sources[1]),
        };
        self.set(d, value);
        Some(())
    }

    fn logic(&mut self, operation: Bits, d: Reg, a: Reg, b: Reg) -> Option<()> {
        let truths = self.truths.get(&a).copied().zip(self.truths.get(&b).copied());
        let (a, b) = (self.get(a), self.get(b));
        let mut apply = |a, b| match operation {
            Bits::And => self.builder.ins().band(a, b),
            Bits::Or => self.builder.ins().bor(a, b),
            _ => self.builder.ins().bxor(a, b),
        };
        let value = apply(a, b);
        let truth = truths.map(|(a, b)| apply(a, b));
        self.set(d, value);
        truth.map(|truth| self.truths.insert(d, truth));
        Some(())
    }

    /// A function of three bits, as the sum of the products in its table.
    fn lop3(&mut self, sources: [Reg; 3], table: u64) -> Value {
        let values = sources.map(|source| self.low(source, WORD));
        let opposites = values.map(|value| self.builder.ins().bnot(value));
        let mut sum = self.builder.ins().iconst(types::I32, 0);
        for row in (0..8_usize).filter(|row| (table >> row) & 1 == 1) {
            let pick = |at: usize, bit: usize| if (row >> bit) & 1 == 1 { values[at] } else { opposites[at] };
            let product = self.builder.ins().band(pick(0, 2), pick(1, 1));
            let product = self.builder.ins().band(product, pick(2, 0));
            sum = self.builder.ins().bor(sum, product);
        }
        sum
    }

    fn single(&mut self, operation: Float, d: Reg, sources: &[Reg]) {
        let values: Vec<Value> = sources.iter().map(|&source| self.float(source, types::F32)).collect();
        let value = self.float_operation(operation, &values);
        self.set_single(d, value);
    }

    fn float_operation(&mut self, operation: Float, values: &[Value]) -> Value {
        let a = values[0];
        let b = values.get(1).copied().unwrap_or(a);
        match operation {
            Float::Add => self.builder.ins().fadd(a, b),
            Float::Sub => self.builder.ins().fsub(a, b),
            Float::Mul => self.builder.ins().fmul(a, b),
            Float::Div => self.builder.ins().fdiv(a, b),
            Float::Fma => self.builder.ins().fma(a, b, values.get(2).copied().unwrap_or(a)),
            Float::Sqrt => self.builder.ins().sqrt(a),
            Float::Neg => self.builder.ins().fneg(a),
            Float::Abs => self.builder.ins().fabs(a),
            Float::Min | Float::Max => {
                // A NaN loses against a number.
                let value = match operation {
                    Float::Min => self.builder.ins().fmin(a, b),
                    _ => self.builder.ins().fmax(a, b),
                };
                let b_is_nan = self.builder.ins().fcmp(FloatCC::Unordered, b, b);
                let a_is_nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
                let value = self.builder.ins().select(b_is_nan, a, value);
                self.builder.ins().select(a_is_nan, b, value)
            }
        }
    }

    /// A double-precision operation. Which NaN results is left to the function at `address`.
    fn double(&mut self, operation: Float, address: usize, d: Reg, sources: &[Reg]) -> Option<()> {
        match operation {
            Float::Min | Float::Max => return None,
            Float::Fma if !has_fma() => return None,
            Float::Neg | Float::Abs => {
                let a = self.get(sources[0]);
                let sign = self.builder.ins().iconst(types::I64, i64::MIN);
                let value = match operation {
                    Float::Neg => self.builder.ins().bxor(a, sign),
                    _ => self.builder.ins().band_not(a, sign),
                };
                self.set(d, value);
                return Some(());
            }
            _ => {}
        }
        let values: Vec<Value> = sources.iter().map(|&source| self.float(source, types::F64)).collect();
        let value = self.float_operation(operation, &values);
        let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), value);
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let (odd, done) = (self.builder.create_block(), self.builder.create_block());
        let result = self.builder.append_block_param(done, types::I64);
        self.builder.set_cold_block(odd);
        self.builder.ins().brif(is_nan, odd, &[], done, &[BlockArg::from(bits)]);
        self.builder.switch_to_block(odd);
        let called = self.call_function(address, sources);
        self.builder.ins().jump(done, &[BlockArg::from(called)]);
        self.builder.switch_to_block(done);
        self.set(d, result);
        Some(())
    }
}

/// Whether the processor has fused multiplication and addition.
fn has_fma() -> bool {
    std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx")
}
