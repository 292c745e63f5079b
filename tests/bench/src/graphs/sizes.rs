//! What a node costs in graphs of several sizes: to build, to instantiate and to launch.

use std::time::Instant;

use cuda_handles::Kernel;

use super::form::Form;
use super::made::{self, Made, Ours};
use super::timing::{self, Patience};
use super::{LAUNCH, Scope};
use crate::Outcome;
use crate::bench::{Bench, load};
use crate::record::{OURS, Part, RAW, Row, Side};

const SIZES: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// Measures lines of all sizes, for each node.
pub(crate) fn each_node(
    bench: &Bench,
    scope: Scope<'_>,
    done: &mut dyn FnMut(Row) -> Outcome<()>,
) -> Outcome<()> {
    for nodes in scope.sizes(&SIZES) {
        if scope.has(&name(nodes)) {
            of_size(bench, nodes, scope)?.into_iter().try_for_each(&mut *done)?;
        }
    }
    Ok(())
}

fn name(nodes: u32) -> String {
    format!("each of {nodes} nodes")
}

fn of_size(bench: &Bench, nodes: u32, scope: Scope<'_>) -> Outcome<Vec<Row>> {
    let (kernel, dependencies) = (load(&bench.context, "empty")?, Form::Line.dependencies(nodes as usize));
    let patience = scope.patience(nodes);
    let built = build(bench, &kernel, &dependencies, patience)?;
    let ours = Ours { graph: made::ours(bench, &kernel, &dependencies)?, shape: None };
    let raw = made::raw(bench, &kernel, &dependencies)?;
    let sides: [&dyn Made; 2] = [&ours, &raw];
    let [ours, raw]: [_; 2] =
        timing::measure(bench, &sides, patience, false)?.try_into().map_err(|_| "each side has samples")?;
    let row = |what: &str, ours: Vec<f64>, raw: Vec<f64>| {
        let each = |samples: Vec<f64>| samples.into_iter().map(|sample| sample / f64::from(nodes)).collect();
        let sides = vec![Side::new(OURS, each(ours)), Side::new(RAW, each(raw))];
        Row { nodes: Some(nodes), ..Row::in_turn(Part::Sizes, name(nodes) + what, sides) }
    };
    let [built_ours, built_raw] = built;
    Ok(vec![
        row(", build", built_ours, built_raw),
        row(", instantiate", ours.instantiate, raw.instantiate),
        row(LAUNCH, ours.launch, raw.launch),
    ])
}

/// The times of builds, ours and raw. The drops of the graphs do not count.
fn build(
    bench: &Bench,
    kernel: &Kernel,
    dependencies: &[Vec<usize>],
    patience: Patience,
) -> Outcome<[Vec<f64>; 2]> {
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    timing::rounds(patience, &mut |counts| {
        let start = Instant::now();
        let graph = made::ours(bench, kernel, dependencies)?;
        let by_library = timing::nanoseconds(start.elapsed());
        drop(graph);
        let start = Instant::now();
        let graph = made::raw(bench, kernel, dependencies)?;
        let by_driver = timing::nanoseconds(start.elapsed());
        drop(graph);
        if counts {
            ours.push(by_library);
            raw.push(by_driver);
        }
        Ok(())
    })?;
    Ok([ours, raw])
}
