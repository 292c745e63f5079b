//! The launch properties of a kernel, collected over all functions that it can call.

use std::sync::Arc;

use super::variable::layout;
use crate::ptx::code::{Inst, Place, Program, Target};
use crate::ptx::error::PtxError;
use crate::ptx::image::{Kernel, Param, UNUSED};
use crate::ptx::jit::Cache;
use crate::ptx::syntax::Function;

/// The most parameter bytes of a kernel on the newest devices.
const MOST_PARAMETERS: u32 = 32764;

pub(super) fn kernel(
    source: &Function<'_>,
    function: u32,
    program: &Arc<Program>,
    native: &Arc<Cache>,
) -> Result<Kernel, PtxError> {
    let (places, end) = layout(source.params.iter().map(|param| (param.size, param.align)), 0);
    if end > MOST_PARAMETERS {
        let message =
            format!("kernel `{}` has {end} bytes of parameters, more than {MOST_PARAMETERS}", source.name);
        return Err(PtxError::new(source.line, message));
    }
    let mut params = Vec::new();
    for (formal, param) in places.iter().zip(&source.params) {
        if let Place::Frame(offset) = formal.place {
            params.push(Param { offset, size: param.size, align: param.align });
        }
    }
    let reached = reachable(function, program);
    let (shared_offsets, static_shared) = place_shared(&reached, program);
    let local_bytes = reached
        .iter()
        .filter_map(|&index| program.functions.get(index as usize))
        .fold(0_u32, |sum, function| sum.saturating_add(function.frame_bytes));
    Ok(Kernel {
        name: source.name.to_owned(),
        params,
        program: Arc::clone(program),
        native: Arc::clone(native),
        function,
        shared_offsets,
        static_shared,
        local_bytes,
        max_threads: source.max_threads.unwrap_or(1024),
        required: source.required,
    })
}

/// The functions that can run in a launch. An indirect call can reach every function that is not a
/// kernel.
fn reachable(kernel: u32, program: &Program) -> Vec<u32> {
    let mut seen = vec![false; program.functions.len()];
    let mut todo = vec![kernel];
    let mut reached = Vec::new();
    while let Some(index) = todo.pop() {
        let Some(mark) = seen.get_mut(index as usize) else { continue };
        if std::mem::replace(mark, true) {
            continue;
        }
        reached.push(index);
        let Some(function) = program.functions.get(index as usize) else { continue };
        for call in &function.calls {
            match call.target {
                Target::Function(target) => todo.push(target),
                Target::Indirect(_) => {
                    todo.extend((0..program.functions.len() as u32).filter(|&other| other != kernel));
                }
                Target::Intrinsic(_) => {}
            }
        }
    }
    reached.sort_unstable();
    reached
}

/// Assigns offsets to the shared variables that the functions use. Dynamic arrays follow the
/// others.
fn place_shared(functions: &[u32], program: &Program) -> (Vec<u32>, u32) {
    let mut is_used = vec![false; program.shared.len()];
    for &function in functions {
        let Some(function) = program.functions.get(function as usize) else { continue };
        for inst in &function.code {
            if let Inst::SharedAddress { index, .. } = inst
                && let Some(mark) = is_used.get_mut(*index as usize)
            {
                *mark = true;
            }
        }
    }
    let mut offsets = vec![UNUSED; program.shared.len()];
    let mut end = 0_u32;
    for dynamic in [false, true] {
        for ((variable, offset), &is_used) in program.shared.iter().zip(&mut offsets).zip(&is_used) {
            if !is_used || variable.is_dynamic != dynamic {
                continue;
            }
            *offset = end.next_multiple_of(variable.align.max(1));
            end = if dynamic { *offset } else { offset.saturating_add(variable.size).min(1 << 28) };
        }
    }
    (offsets, end)
}
