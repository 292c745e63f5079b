//! Graphs of several forms and sizes beside the same graphs made by raw calls.

mod form;
mod made;
mod sizes;
mod timing;

use std::time::Duration;

use cuda_graph::Shape;

use crate::Outcome;
use crate::bench::{Bench, load};
use crate::driver::Choice;
use crate::record::{OURS, Part, RAW, Row, Side};
use form::Form;
use made::{Made, Ours};
use timing::Samples;

pub(crate) use sizes::each_node;
pub(crate) use timing::{Patience, rounds};

/// The side of the library's executables that are shaped by themselves.
pub(crate) const SHAPED: &str = "shaped";
/// How the names of rows with launches end, apart from first ones.
pub(crate) const LAUNCH: &str = ", launch";

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
/// A graph with so many nodes is large.
const LARGE: u32 = 10_000;

/// How much to measure of graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    /// Whether device times are measured.
    has_device: bool,
    is_quick: bool,
    filter: Option<&'a str>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(driver: &Choice, is_quick: bool, filter: Option<&'a str>) -> Self {
        Self { has_device: *driver != Choice::Null, is_quick, filter }
    }

    /// A run of a large graph takes so long that few have to do.
    fn patience(self, nodes: u32) -> Patience {
        let (seconds, rounds, in_a_row, cold) = match nodes {
            _ if self.is_quick => (0, [1, 1], 6, 2),
            ..LARGE => (1, [7, 1_000], 24, 4),
            LARGE.. => (2, [3, 1_000], 6, 2),
        };
        Patience { time: Duration::from_secs(seconds), rounds, in_a_row, cold }
    }

    /// The sizes to measure: of a quick run, those that take moments.
    fn sizes(self, sizes: &[u32]) -> impl Iterator<Item = u32> {
        let most = if self.is_quick { 100 } else { u32::MAX };
        sizes.iter().copied().filter(move |nodes| *nodes <= most)
    }

    /// Whether a row of this name is asked for.
    fn has(self, name: &str) -> bool {
        self.filter.is_none_or(|text| name.contains(text))
    }
}

/// Measures all forms in all sizes.
pub(crate) fn forms(
    bench: &Bench,
    scope: Scope<'_>,
    done: &mut dyn FnMut(Row) -> Outcome<()>,
) -> Outcome<()> {
    for form in Form::ALL {
        for nodes in scope.sizes(&SIZES) {
            let name = format!("{} of {nodes}", form.name());
            if scope.has(&name) {
                of_form(bench, form, nodes, scope)?.into_iter().try_for_each(&mut *done)?;
            }
        }
    }
    Ok(())
}

fn of_form(bench: &Bench, form: Form, nodes: u32, scope: Scope<'_>) -> Outcome<Vec<Row>> {
    let (kernel, dependencies) = (load(&bench.context, "empty")?, form.dependencies(nodes as usize));
    let graph = made::ours(bench, &kernel, &dependencies)?;
    let shaped = Ours { graph: graph.clone(), shape: Some(Shape::Auto) };
    let (ours, raw) = (Ours { graph, shape: None }, made::raw(bench, &kernel, &dependencies)?);
    let sides: [&dyn Made; 3] = [&ours, &raw, &shaped];
    let samples = timing::measure(bench, &sides, scope.patience(nodes), scope.has_device)?;
    let row = |what: &str, part: fn(&Samples) -> &Vec<f64>| {
        let sides = [OURS, RAW, SHAPED].into_iter().zip(&samples);
        let sides = sides.map(|(name, samples)| Side::new(name, part(samples).clone())).collect();
        let name = format!("{} of {nodes}{what}", form.name());
        Row { nodes: Some(nodes), ..Row::in_turn(Part::Graphs, name, sides) }
    };
    let mut rows = vec![
        row(", instantiate", |samples| &samples.instantiate),
        row(", first launch", |samples| &samples.first),
        row(LAUNCH, |samples| &samples.launch),
    ];
    if scope.has_device {
        rows.push(row(", device", |samples| &samples.device));
    }
    Ok(rows)
}
