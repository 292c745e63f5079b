//! Loads, stores and atomic operations.
//!
//! Each has a fast path for an access that is aligned and lies where the last one lay. Everything
//! else is left to the interpreter's own functions, faults included.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value, types};

use super::operands::elements;
use super::translate::Translator;
use crate::ptx::code::{Access, Cell, NONE, Reg, Space};
use crate::ptx::jit::context::{Context, MOST_ELEMENTS, Slot, pack};
use crate::ptx::windows::{LOCAL_WINDOW, SHARED_WINDOW};

/// A base register, which may be [`NONE`], and an offset.
type Place = (Reg, i32);

/// Where an access lies on the fast path.
#[derive(Clone, Copy)]
struct Fast {
    host: Value,
    is_global: bool,
}

impl Translator<'_, '_> {
    pub(super) fn load(&mut self, pc: usize, d: Reg, place: Place, access: Access) -> Option<()> {
        let registers: Vec<Reg> = elements(self.function, d, access.count).collect();
        if registers.len() != usize::from(access.count) || registers.len() > MOST_ELEMENTS {
            return None;
        }
        let done = self.builder.create_block();
        let values: Vec<Value> =
            registers.iter().map(|_| self.builder.append_block_param(done, types::I64)).collect();
        self.paths(pc, place, access, None, |translator, fast| {
            let arguments: Vec<BlockArg> = match fast {
                Some(fast) => {
                    (0..registers.len()).map(|index| translator.element(fast, access.cell, index)).collect()
                }
                None => {
                    let slot = |index: usize| (offset_of!(Context, values) + index * 8) as i32;
                    let load = |index| {
                        let flags = MemFlagsData::trusted();
                        let context = translator.context;
                        translator.builder.ins().load(types::I64, flags, context, slot(index)).into()
                    };
                    (0..registers.len()).map(load).collect()
                }
            };
            translator.builder.ins().jump(done, &arguments);
        });
        self.builder.switch_to_block(done);
        for (register, value) in registers.into_iter().zip(values) {
            self.set(register, value);
        }
        Some(())
    }

    pub(super) fn store(&mut self, pc: usize, a: Reg, place: Place, access: Access) -> Option<()> {
        let registers: Vec<Reg> = elements(self.function, a, access.count).collect();
        if registers.len() != usize::from(access.count) || registers.len() > MOST_ELEMENTS {
            return None;
        }
        let values: Vec<Value> = registers.iter().map(|&register| self.get(register)).collect();
        let done = self.builder.create_block();
        self.paths(pc, place, access, Some(&values), |translator, fast| {
            if let Some(fast) = fast {
                for (index, &value) in values.iter().enumerate() {
                    let ty = element_type(access.cell);
                    let value =
                        if ty == types::I64 { value } else { translator.builder.ins().ireduce(ty, value) };
                    let offset = (index as u32 * access.cell.bytes()) as i32;
                    let flags = MemFlagsData::new().with_notrap();
                    translator.builder.ins().store(flags, value, fast.host, offset);
                }
            }
            translator.builder.ins().jump(done, &[]);
        });
        self.builder.switch_to_block(done);
        Some(())
    }

    pub(super) fn atomic(&mut self, pc: usize, d: Reg, place: Place, [b, c]: [Reg; 2]) {
        let address = self.address(place);
        let b = self.get(b);
        let c = if c == NONE { self.builder.ins().iconst(types::I64, 0) } else { self.get(c) };
        let at = self.builder.ins().iconst(types::I64, pack(self.index, pc) as i64);
        let helper = self.helpers.atomic as usize;
        let fault = self.call(helper, &[self.context, address, at, b, c]);
        self.check(fault, pc);
        if d != NONE {
            let flags = MemFlagsData::trusted();
            let field = offset_of!(Context, values) as i32;
            let old = self.builder.ins().load(types::I64, flags, self.context, field);
            self.set(d, old);
        }
    }

    fn address(&mut self, (base, offset): Place) -> Value {
        if base == NONE {
            return self.builder.ins().iconst(types::I64, i64::from(offset));
        }
        let base = self.get(base);
        if offset == 0 { base } else { self.builder.ins().iadd_imm_s(base, i64::from(offset)) }
    }

    /// Emits the fast paths of an access and the slow one, which has called the helper. `finish`
    /// ends each of them.
    fn paths(
        &mut self,
        pc: usize,
        place: Place,
        access: Access,
        stored: Option<&[Value]>,
        mut finish: impl FnMut(&mut Self, Option<Fast>),
    ) {
        let address = self.address(place);
        let mut slot = None;
        match access.space {
            Space::Global => {
                slot = Some(self.new_slot());
                let fast = self.global(address, access, slot.unwrap_or(0));
                finish(self, Some(fast.0));
                self.builder.switch_to_block(fast.1);
            }
            Space::Generic => {
                slot = Some(self.new_slot());
                let fast = self.global(address, access, slot.unwrap_or(0));
                finish(self, Some(fast.0));
                self.builder.switch_to_block(fast.1);
                let window = self.builder.ins().iconst(types::I64, SHARED_WINDOW as i64);
                let offset = self.builder.ins().isub(address, window);
                let (start, len) = (offset_of!(Context, shared), offset_of!(Context, shared_len));
                let fast = self.window(offset, access, start, len);
                finish(self, Some(fast.0));
                self.builder.switch_to_block(fast.1);
                if self.function.frame_bytes > 0 {
                    let window = self.builder.ins().iconst(types::I64, LOCAL_WINDOW as i64);
                    let offset = self.builder.ins().isub(address, window);
                    let (start, len) = (offset_of!(Context, local), offset_of!(Context, local_len));
                    let fast = self.window(offset, access, start, len);
                    finish(self, Some(fast.0));
                    self.builder.switch_to_block(fast.1);
                }
            }
            Space::Shared | Space::Local => {
                let (start, len) = match access.space {
                    Space::Shared => (offset_of!(Context, shared), offset_of!(Context, shared_len)),
                    _ => (offset_of!(Context, local), offset_of!(Context, local_len)),
                };
                let fast = self.window(address, access, start, len);
                finish(self, Some(fast.0));
                self.builder.switch_to_block(fast.1);
            }
            // The offset is known, and so are the sizes: see `Native::fits`.
            Space::Entry if stored.is_none() => {
                let params = self.fixed_field(offset_of!(Context, params));
                let host = self.builder.ins().iadd(params, address);
                return finish(self, Some(Fast { host, is_global: false }));
            }
            Space::Frame if self.is_in_frame(place, access) => {
                let local = self.fixed_field(offset_of!(Context, local));
                let base = self.fixed_field(offset_of!(Context, local_base));
                let frame = self.builder.ins().iadd(local, base);
                let host = self.builder.ins().iadd(frame, address);
                return finish(self, Some(Fast { host, is_global: false }));
            }
            Space::Entry | Space::Frame | Space::Param => {}
        }
        for (index, &value) in stored.unwrap_or(&[]).iter().enumerate() {
            self.set_field(value, offset_of!(Context, values) + index * 8);
        }
        let at = self.builder.ins().iconst(types::I64, pack(self.index, pc) as i64);
        let slot = self.builder.ins().iconst(types::I64, slot.map_or(-1, i64::from));
        let helper = self.helpers.access as usize;
        let fault = self.call(helper, &[self.context, address, at, slot]);
        self.check(fault, pc);
        finish(self, None);
    }

    fn new_slot(&mut self) -> u32 {
        self.slots += 1;
        self.slots - 1
    }

    /// Whether an offset in the frame is aligned and inside.
    fn is_in_frame(&self, (base, offset): Place, access: Access) -> bool {
        let (at, bytes) = (i64::from(offset), i64::from(access.bytes()));
        base == NONE && at >= 0 && at % bytes == 0 && at + bytes <= i64::from(self.function.frame_bytes)
    }

    /// Branches on whether a slot of the cache holds the access; returns the fast path, which is
    /// current then, and the block of the slow one.
    fn global(&mut self, address: Value, access: Access, slot: u32) -> (Fast, Block) {
        let slots = self.fixed_field(offset_of!(Context, slots));
        let at = |field: usize| (slot as usize * size_of::<Slot>() + field) as i32;
        let flags = MemFlagsData::trusted();
        let ins =
            |translator: &mut Self, field| translator.builder.ins().load(types::I64, flags, slots, at(field));
        // The epoch may change at any time. Its load also keeps other loads in their order.
        let counter = self.fixed_field(offset_of!(Context, epoch_now));
        let now = self.builder.ins().atomic_load(types::I64, flags, counter);
        let known =
            self.builder.ins().load(types::I64, flags, self.context, offset_of!(Context, epoch) as i32);
        let start = ins(self, offset_of!(Slot, start));
        let count = ins(self, offset_of!(Slot, count));
        let offset = self.builder.ins().isub(address, start);
        let number = self.number(offset, access);
        let is_same = self.builder.ins().icmp(IntCC::Equal, now, known);
        let is_inside = self.builder.ins().icmp(IntCC::UnsignedLessThan, number, count);
        let (fresh, fast, slow) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(slow);
        self.builder.ins().brif(is_same, fresh, &[], slow, &[]);
        self.builder.switch_to_block(fresh);
        self.builder.ins().brif(is_inside, fast, &[], slow, &[]);
        self.builder.switch_to_block(fast);
        let host = ins(self, offset_of!(Slot, host));
        let host = self.builder.ins().iadd(host, offset);
        (Fast { host, is_global: true }, slow)
    }

    /// As `global`, for memory with its start and length in the context.
    fn window(&mut self, offset: Value, access: Access, start: usize, len: usize) -> (Fast, Block) {
        let len = self.fixed_field(len);
        let count = self.builder.ins().ushr_imm_u(len, i64::from(access.bytes().trailing_zeros()));
        let number = self.number(offset, access);
        let is_inside = self.builder.ins().icmp(IntCC::UnsignedLessThan, number, count);
        let (fast, slow) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(slow);
        self.builder.ins().brif(is_inside, fast, &[], slow, &[]);
        self.builder.switch_to_block(fast);
        let start = self.fixed_field(start);
        let host = self.builder.ins().iadd(start, offset);
        (Fast { host, is_global: false }, slow)
    }

    /// The number of an access among those side by side. One that is not aligned gets a number
    /// beyond all, since its low bits become the highest.
    fn number(&mut self, offset: Value, access: Access) -> Value {
        let shift = access.bytes().trailing_zeros();
        if shift == 0 { offset } else { self.builder.ins().rotr_imm_u(offset, i64::from(shift)) }
    }

    /// An element on the fast path, extended.
    fn element(&mut self, fast: Fast, cell: Cell, index: usize) -> BlockArg {
        let ty = element_type(cell);
        let offset = index as u32 * cell.bytes();
        let raw = if fast.is_global {
            // Loops may wait for other threads to write here, so no load may be left out.
            let host = self.builder.ins().iadd_imm_s(fast.host, i64::from(offset));
            let flags = MemFlagsData::new().with_notrap();
            self.builder.ins().atomic_load(ty, flags, host)
        } else {
            let flags = MemFlagsData::new().with_notrap();
            self.builder.ins().load(ty, flags, fast.host, offset as i32)
        };
        let value = match cell {
            Cell::U64 => raw,
            Cell::S8 | Cell::S16 | Cell::S32 => self.builder.ins().sextend(types::I64, raw),
            Cell::U8 | Cell::U16 | Cell::U32 => self.builder.ins().uextend(types::I64, raw),
        };
        value.into()
    }
}

fn element_type(cell: Cell) -> Type {
    match cell.bytes() {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
