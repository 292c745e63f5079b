//! Bugs of older drivers, so that workarounds for them can be tested.
//!
//! Where such a driver hangs or misbehaves, the context is lost here, with a message. This is
//! stricter than those drivers, which do not always fail.

use cuda_sys::{CUresult, Version};

use crate::device::loss::Loss;
use crate::driver;
use crate::graph::model::payload::ConditionalKind;
use crate::graph::model::program::{Level, Program, Work};

/// Fails if the driver that this one poses as mishandles this conditional node.
pub(crate) fn check(
    program: &Program,
    node: u64,
    condition: ConditionalKind,
    bodies: &[Level],
) -> Result<(), Loss> {
    let version = driver::version();
    if version < Version::new(12, 8) && bodies.iter().any(|body| body.created.is_empty()) {
        let sentence = format!(
            "a driver of CUDA {version} hangs at the conditional node {node:#x}: it has an empty body"
        );
        return Err(Loss::new(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, sentence));
    }
    let is_faulty = version >= Version::new(12, 8) && version < Version::new(13, 0);
    let two = condition == ConditionalKind::If && bodies.len() == 2;
    if is_faulty && two && bodies.iter().any(|body| holds_child(program, body)) {
        let sentence = format!(
            "a driver of CUDA {version} misbehaves at the conditional node {node:#x}: it is an IF with two bodies, and one holds a child graph"
        );
        return Err(Loss::new(CUresult::CUDA_ERROR_LAUNCH_FAILED, sentence));
    }
    Ok(())
}

fn holds_child(program: &Program, body: &Level) -> bool {
    let is_child =
        |index: &usize| program.steps.get(*index).is_some_and(|step| matches!(step.work, Work::Child(_)));
    body.created.iter().any(is_child)
}
