//! Shaping: an executable of another graph than the one drawn, which does the same faster.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | the steps: reading, ordering, planning, making |
//! | [`options`] | [`Shape`] and [`Order`], which can be asked for |
//! | [`by_default`] | the shape of options that name none |
//! | [`levels`] | the graph and the bodies in it, each of which is planned by itself |
//! | [`by_data`] | the order that accesses need, of the one drawn |
//! | [`overlap`](mod@overlap) | which kernels can be at programmatic edges |
//! | [`planning`] | the shape: which nodes and edges the other graph has |
//! | [`read`] | the graph as shaping sees it, and why some graphs are left as drawn |
//! | [`reliance`] | what a shape relies on, so that updates leave it |
//! | [`substitute`] | kernels in place of fills and copies that the host submits |
//! | [`shaped`] | the graph that the executable is made of, with a map from the user's nodes |
//! | [`report`] | [`ShapeReport`], what was done and left |

pub(crate) mod by_data;
pub(crate) mod by_default;
mod levels;
pub(crate) mod made;
pub(crate) mod options;
mod overlap;
mod planning;
mod read;
mod reliance;
pub(crate) mod report;
pub(crate) mod shaped;
pub(crate) mod substitute;

use std::sync::Arc;

use crate::clone::flattened::{Action as NodeAction, FlatGraph};
use crate::error::Result;
use crate::exec::options::InstantiateOptions;
use crate::footprint::{Footprint, Touches};
use crate::graph::Graph;
use crate::own_kernels::{Own, OwnImage};
use crate::shape::by_data::apart::{Apart, ApartLevel};
use crate::shape::by_data::dropped::dropped;
use crate::shape::by_data::{Left, Limits, order_by_data};
use crate::shape::levels::{Level, plan_levels};
use crate::shape::made::NotMade;
use crate::shape::options::{Order, Shape};
use crate::shape::planning::drawn::{Drawn, Overlap};
use crate::shape::planning::plan::{ShapePlan, figures};
use crate::shape::planning::report::Action;
use crate::shape::planning::wish::{Wish, Wishes};
use crate::shape::report::{OrderReport, ShapeReport};
use crate::shape::shaped::ShapedGraph;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The graph that an executable is to be made of.
pub(crate) struct Shaping {
    /// `None` for the graph as drawn.
    pub(crate) graph: Option<ShapedGraph>,
    /// The nodes that are apart there, if edges were left out.
    pub(crate) apart: Option<Apart>,
    pub(crate) report: ShapeReport,
}

/// The wishes of an executable's options.
#[derive(Clone, Copy, Debug)]
struct Asked {
    shape: Shape,
    order: Order,
    assume_progress: bool,
}

impl From<&InstantiateOptions> for Asked {
    fn from(options: &InstantiateOptions) -> Self {
        Self {
            shape: options.wanted_shape(),
            order: options.wanted_order(),
            assume_progress: options.assumes_progress(),
        }
    }
}

impl Graph {
    /// The library's own kernels for a shape, if the options ask for one. Loaded without the lock,
    /// since compiling takes a while.
    pub(crate) fn kernels_of_shape(&self, options: &InstantiateOptions) -> Option<Result<Arc<Own>>> {
        options.is_shaped().then(|| Own::of(self.context(), OwnImage::Shaping))
    }
}

impl Shaping {
    fn as_drawn(asked: Asked, why: impl Into<String>) -> Self {
        let report = ShapeReport::as_drawn(asked.shape, asked.order, why);
        Self { graph: None, apart: None, report }
    }

    /// The same without a shaped graph.
    pub(crate) fn left(&self, why: impl Into<String>) -> Self {
        let report = ShapeReport::as_drawn(self.report.shape(), self.report.order(), why);
        Self { graph: None, apart: None, report }
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
        let asked = Asked::from(options);
        let Some(own) = own else { return Ok(None) };
        if let Ok(own) = &own {
            // Also for a graph that is left as drawn, which would load them each time.
            self.own_kernels = Some(Arc::clone(own));
        }
        if let Some(why) = self.reason_to_leave(options) {
            return Ok(Some(Shaping::as_drawn(asked, why)));
        }
        match own.map_err(NotMade::from).and_then(|own| self.make_shaped(&own, options)) {
            Ok(shaping) => Ok(Some(shaping)),
            Err(why) => {
                self.context().ensure_usable()?;
                Ok(Some(Shaping::as_drawn(asked, why.to_string())))
            }
        }
    }

    fn knows_edge_kinds(&self) -> bool {
        self.driver().table().cuGraphAddNode_v12030.is_some()
    }

    fn make_shaped(&mut self, own: &Arc<Own>, options: &InstantiateOptions) -> Result<Shaping, NotMade> {
        let asked = Asked::from(options);
        let substitutes = SubstituteKernels::wanted(options, own, self.context())?;
        let mut levels = self.levels(&substitutes, asked.assume_progress)?;
        // Ordering changes what is drawn.
        let mut before = None;
        let ordered = match asked.order {
            Order::ByData => {
                before = levels.first().and_then(|level| figures(&level.drawn));
                self.order_levels_by_data(&mut levels)?
            }
            Order::AsDrawn => Ordered::default(),
        };
        let mut plans = plan_levels(&levels, self.wishes(own, options));
        if plans.first().is_some_and(|plan| plan.report.actions.contains(&Action::CycleLeft)) {
            return Ok(Shaping::as_drawn(asked, "it has a cycle"));
        }
        if let (Some(plan), Some(before)) = (plans.first_mut(), before) {
            plan.report.before = before;
        }
        let is_changed = ordered.report.has_dropped()
            || plans.iter().any(|plan| plan.report.actions.iter().any(Action::is_change));
        let names = levels.iter().map(|level| self.body_name(level));
        let plan_reports = names.zip(plans.iter().map(|plan| &plan.report));
        let report = ShapeReport::of((asked.shape, asked.order), plan_reports, ordered.report, is_changed);
        if !is_changed {
            return Ok(Shaping { graph: None, apart: None, report });
        }
        let levels: Vec<(Level, ShapePlan)> = levels.into_iter().zip(plans).collect();
        let graph = ShapedGraph::make(self, &levels, (own, substitutes), asked.assume_progress)?;
        Ok(Shaping { graph: Some(graph), apart: ordered.apart, report })
    }

    fn wishes(&self, own: &Own, options: &InstantiateOptions) -> Wishes {
        Wishes {
            shape: match (options.wanted_shape(), options.wanted_order()) {
                (Shape::AsBuilt, Order::AsDrawn) => Wish::AsBuilt,
                (Shape::AsBuilt, Order::ByData) => Wish::FewerEdges,
                (Shape::Reduced, _) => Wish::Reduced,
                (Shape::Lanes(lanes), _) => Wish::Lanes(lanes.get()),
                (Shape::Auto, _) => Wish::Auto,
            },
            assume_progress: options.assumes_progress(),
            programmatic: options.makes_programmatic_edges() && self.knows_edge_kinds(),
            no_ops: if own.waits_at_entry() { Overlap::Both } else { Overlap::Never },
        }
    }

    /// Leaves out the order that no access needs, in the graph and in each body.
    fn order_levels_by_data(&mut self, levels: &mut [Level]) -> Result<Ordered> {
        let mut aparts = Vec::new();
        let mut report = OrderReport::default();
        for level in levels {
            let body = self.body_name(level);
            let Level { flat, drawn, .. } = level;
            let (apart, of_level) = self.order_by_data(flat, drawn)?;
            aparts.extend(apart);
            report.add(body.as_deref(), of_level);
        }
        Ok(Ordered { apart: Apart::of(aparts), report })
    }

    /// Leaves out the order that no access needs, in one level.
    fn order_by_data(
        &mut self,
        flat: &FlatGraph,
        drawn: &mut Drawn,
    ) -> Result<(Option<ApartLevel>, OrderReport)> {
        let footprints = flat.nodes.iter().map(|node| match node.action {
            NodeAction::Run(_) => self.footprint(node.id),
            NodeAction::Nothing => Ok(Footprint::Known(Touches::default())),
            NodeAction::Decide(..) | NodeAction::Enter(_) => Ok(Footprint::OPAQUE),
        });
        let footprints: Vec<Footprint> = footprints.collect::<Result<_>>()?;
        let by_data = match order_by_data(drawn, &footprints, Limits::DEFAULT) {
            Ok(by_data) => by_data,
            Err(Left::Cycle) => return Ok((None, OrderReport::default())),
            Err(Left::TooLarge) => return Ok((None, OrderReport::too_large())),
        };
        let dropped = dropped(drawn, &footprints, &by_data);
        let ids: Vec<NodeId> = flat.nodes.iter().map(|node| node.id).collect();
        let report = OrderReport::new(dropped, &footprints, |number| self.name_among(&ids, number));
        drawn.edges.clone_from(&by_data.edges);
        let apart = if report.has_dropped() { by_data.apart(ids.into_iter(), footprints) } else { None };
        Ok((apart, report))
    }

    fn name_among(&self, ids: &[NodeId], number: u32) -> Arc<str> {
        ids.get(number as usize).map_or_else(|| Arc::from("?"), |id| Arc::from(&*self.name(*id)))
    }
}

/// The outcome of ordering by data.
#[derive(Debug, Default)]
struct Ordered {
    apart: Option<Apart>,
    report: OrderReport,
}
