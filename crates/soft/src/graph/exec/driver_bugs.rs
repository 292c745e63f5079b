//! Faults of older drivers, so that what a library does about them can be tested.
//!
//! Where such a driver hangs or computes nonsense, the context is lost here, with a sentence that
//! says so. This is stricter than those drivers, which may get away with it.

use cuda_sys::{CUresult, Version};

use crate::device::loss::Loss;
use crate::driver;
use crate::graph::model::payload::ConditionalKind;
use crate::graph::model::program::{Level, Program, Work};

/// What the driver that this one poses as gets wrong about a conditional node that is reached.
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
