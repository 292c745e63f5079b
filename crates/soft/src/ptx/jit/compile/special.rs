//! Special registers.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::translate::{Translator, fixed};
use crate::ptx::code::{RESERVED_SHARED, Reg};
use crate::ptx::jit::context::Context;
use crate::ptx::special::Special;
use crate::ptx::windows::WORKSPACE_WINDOW;

/// Whether the interpreter has to read a special register.
pub(super) fn stops(which: Special) -> bool {
    matches!(which, Special::GlobalTimer | Special::GlobalTimerLow | Special::GlobalTimerHigh)
}

impl Translator<'_, '_> {
    /// Sets a register to the value of a special one; `None` if the interpreter has to read it.
    pub(super) fn special(&mut self, pc: usize, d: Reg, which: Special) -> Option<()> {
        let axis = |field: usize, axis: u8| field + 4 * usize::from(axis % 3);
        let value = match which {
            Special::Tid(of) => self.word(axis(offset_of!(Context, index), of)),
            Special::Ctaid(of) => self.word(axis(offset_of!(Context, block), of)),
            Special::Ntid(of) => self.word(axis(offset_of!(Context, block_size), of)),
            Special::Nctaid(of) => self.word(axis(offset_of!(Context, grid_size), of)),
            Special::LaneId => self.lane(),
            Special::WarpId => {
                let linear = self.word(offset_of!(Context, linear));
                self.builder.ins().ushr_imm_u(linear, 5)
            }
            Special::LanemaskEq
            | Special::LanemaskLt
            | Special::LanemaskLe
            | Special::LanemaskGe
            | Special::LanemaskGt => self.lane_mask(which),
            Special::Clock64 => self.steps_behind(pc),
            Special::Clock { high: false } => {
                let clock = self.steps_behind(pc);
                self.builder.ins().band_imm_u(clock, i64::from(u32::MAX))
            }
            Special::Clock { high: true } => {
                let clock = self.steps_behind(pc);
                self.builder.ins().ushr_imm_u(clock, 32)
            }
            Special::WarpCount => self.fixed_field(offset_of!(Context, warps)),
            Special::DynamicShared => self.fixed_field(offset_of!(Context, dynamic_shared)),
            Special::TotalShared => self.fixed_field(offset_of!(Context, total_shared)),
            Special::AggregateShared => {
                let total = self.fixed_field(offset_of!(Context, total_shared));
                self.builder.ins().iadd_imm_s(total, i64::from(RESERVED_SHARED))
            }
            Special::Reserved { offset } => {
                let start = self.fixed_field(offset_of!(Context, reserved_shared));
                self.builder.ins().iadd_imm_s(start, i64::from(offset))
            }
            Special::GridId => self.fixed_field(offset_of!(Context, grid_number)),
            Special::Fixed(value) => self.builder.ins().iconst(types::I64, i64::from(value)),
            Special::Workspace { high } => {
                let half = if high { WORKSPACE_WINDOW >> 32 } else { WORKSPACE_WINDOW & u64::from(u32::MAX) };
                self.builder.ins().iconst(types::I64, half as i64)
            }
            Special::GlobalTimer | Special::GlobalTimerLow | Special::GlobalTimerHigh => return None,
        };
        self.set(d, value);
        Some(())
    }

    /// A 32-bit field of the context, extended.
    fn word(&mut self, field: usize) -> Value {
        let value = self.builder.ins().load(types::I32, fixed(), self.context, field as i32);
        self.builder.ins().uextend(types::I64, value)
    }

    fn lane(&mut self) -> Value {
        let linear = self.word(offset_of!(Context, linear));
        self.builder.ins().band_imm_u(linear, 31)
    }

    fn lane_mask(&mut self, which: Special) -> Value {
        let lane = self.lane();
        let one = self.builder.ins().iconst(types::I64, 1);
        let own = self.builder.ins().ishl(one, lane);
        // The lanes below, and those up to this one.
        let below = self.builder.ins().iadd_imm_s(own, -1);
        let up_to = self.builder.ins().bor(own, below);
        let others = i64::from(u32::MAX);
        match which {
            Special::LanemaskEq => own,
            Special::LanemaskLt => below,
            Special::LanemaskLe => up_to,
            Special::LanemaskGe => self.builder.ins().bxor_imm_u(below, others),
            _ => self.builder.ins().bxor_imm_u(up_to, others),
        }
    }
}
