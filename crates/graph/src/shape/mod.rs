//! Shaping: an executable of another graph than the one drawn, which does the same faster.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | the steps: reading, planning, making |
//! | [`levels`] | the graph and the bodies in it, each of which is shaped by itself |
//! | [`made`] | how the graph is made, once or again |
//! | [`options`] | [`Shape`], the shapes that can be asked for |
//! | [`overlap`](mod@overlap) | which kernels can be at programmatic edges |
//! | [`planning`] | the shape: which nodes and edges the other graph has |
//! | [`read`] | the graph as shaping sees it, and why some graphs are left as drawn |
//! | [`reliance`] | what a shape relies on, so that updates leave it |
//! | [`substitute`] | kernels in place of fills and copies that the host submits |
//! | [`shaped`] | the graph that the executable is made of, with a map from the user's nodes |
//! | [`report`] | [`ShapeReport`], what was done and left |

mod levels;
mod made;
pub(crate) mod options;
mod overlap;
mod planning;
mod read;
mod reliance;
pub(crate) mod report;
pub(crate) mod shaped;
pub(crate) mod substitute;

use std::sync::Arc;

use crate::error::Result;
use crate::exec::options::InstantiateOptions;
use crate::graph::Graph;
use crate::own_kernels::{Own, OwnImage};
use crate::shape::levels::{Level, plan_levels};
use crate::shape::made::NotMade;
use crate::shape::options::Shape;
use crate::shape::planning::drawn::Overlap;
use crate::shape::planning::plan::ShapePlan;
use crate::shape::planning::report::Action;
use crate::shape::planning::wish::{Wish, Wishes};
use crate::shape::report::ShapeReport;
use crate::shape::shaped::ShapedGraph;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::state::guard::GraphGuard;

/// The graph that an executable is to be made of.
pub(crate) struct Shaping {
    /// `None` for the graph as drawn.
    pub(crate) graph: Option<ShapedGraph>,
    pub(crate) report: ShapeReport,
}

impl Graph {
    /// The library's own kernels for a shape, if the options ask for one. Loaded without the lock,
    /// since compiling takes a while.
    pub(crate) fn kernels_of_shape(&self, options: &InstantiateOptions) -> Option<Result<Arc<Own>>> {
        let is_shaped = options.wanted_shape() != Shape::AsBuilt;
        is_shaped.then(|| Own::of(self.context(), OwnImage::Shaping))
    }
}

impl Shaping {
    fn as_drawn(shape: Shape, why: impl Into<String>) -> Self {
        Self { graph: None, report: ShapeReport::as_drawn(shape, why) }
    }

    /// The same without a shaped graph.
    pub(crate) fn left(&self, why: impl Into<String>) -> Self {
        Self::as_drawn(self.report.shape(), why)
    }
}

impl GraphGuard<'_> {
    /// Makes the graph of the shape that the options ask for; `None` if they ask for none. `own` is
    /// from [`kernels_of_shape`](Graph::kernels_of_shape). The context is current. If the driver
    /// refuses a step, the graph is left as drawn.
    ///
    /// # Errors
    /// The context cannot be used.
    pub(crate) fn shape(
        &mut self,
        options: &InstantiateOptions,
        own: Option<Result<Arc<Own>>>,
    ) -> Result<Option<Shaping>> {
        let shape = options.wanted_shape();
        let Some(own) = own else { return Ok(None) };
        if let Ok(own) = &own {
            // Also for a graph that is left as drawn, which would load them each time.
            self.own_kernels = Some(Arc::clone(own));
        }
        if let Some(why) = self.reason_to_leave(options) {
            return Ok(Some(Shaping::as_drawn(shape, why)));
        }
        match own.map_err(NotMade::from).and_then(|own| self.make_shaped(&own, options)) {
            Ok(shaping) => Ok(Some(shaping)),
            Err(why) => {
                self.context().ensure_usable()?;
                Ok(Some(Shaping::as_drawn(shape, why.to_string())))
            }
        }
    }

    fn knows_edge_kinds(&self) -> bool {
        self.driver().table().cuGraphAddNode_v12030.is_some()
    }

    fn make_shaped(&mut self, own: &Arc<Own>, options: &InstantiateOptions) -> Result<Shaping, NotMade> {
        let (shape, assume_progress) = (options.wanted_shape(), options.assumes_progress());
        let substitutes = SubstituteKernels::wanted(options, own, self.context())?;
        let levels = self.levels(&substitutes, assume_progress)?;
        let wish = match shape {
            Shape::AsBuilt => Wish::AsBuilt,
            Shape::Reduced => Wish::Reduced,
            Shape::Lanes(lanes) => Wish::Lanes(lanes.get()),
            Shape::Auto => Wish::Auto,
        };
        let wishes = Wishes {
            shape: wish,
            assume_progress,
            programmatic: options.makes_programmatic_edges() && self.knows_edge_kinds(),
            no_ops: if own.waits_at_entry() { Overlap::Both } else { Overlap::Never },
        };
        let plans = plan_levels(&levels, wishes);
        let is_changed = plans.iter().any(|plan| plan.report.actions.iter().any(Action::is_change));
        let names = levels.iter().map(|level| self.body_name(level));
        let reports = names.zip(plans.iter().map(|plan| &plan.report));
        let report = ShapeReport::of(shape, reports, is_changed);
        if !is_changed {
            return Ok(Shaping { graph: None, report });
        }
        let levels: Vec<(Level, ShapePlan)> = levels.into_iter().zip(plans).collect();
        let graph = ShapedGraph::make(self, &levels, (own, substitutes), assume_progress)?;
        Ok(Shaping { graph: Some(graph), report })
    }
}
