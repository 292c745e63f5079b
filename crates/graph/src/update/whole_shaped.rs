//! Whole updates of shaped executables: what a shape permits, and a copy in the same shape.

use cuda_handles::GraphHandle;

use crate::error::{Refusal, RefusalReason, Result};
use crate::exec::GraphExec;
use crate::shape::by_data::apart::{Apart, Changes};
use crate::shape::shaped::ShapedGraph;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::update::source::UpdateSource;

impl GraphExec {
    /// Refuses a graph with other nodes or edges than the one that was shaped, and parameters that
    /// the shape does not permit.
    pub(super) fn refusal_of_shape(
        &self,
        shaped: &ShapedGraph,
        guard: &GraphGuard<'_>,
        source: &UpdateSource,
    ) -> Option<Refusal> {
        if !source.is_known() {
            let why = "the executable was shaped, and its shape is right only for the nodes and edges of its own \
                       graph as they were then";
            return Some(Refusal::new(RefusalReason::Shaped, why));
        }
        if let Some(why) = guard.reason_to_leave(self.options()) {
            let why = format!("the executable was shaped, and this graph cannot be: {why}");
            return Some(Refusal::new(RefusalReason::Shaped, why));
        }
        let (node, why) = shaped.forbidden(guard, &|key| source.of_key(key))?;
        Some(Refusal::new(RefusalReason::Shaped, why).at(guard.name(node)))
    }

    /// [`check_apart`] of a copy, for a question.
    pub(super) fn refusal_of_apart(
        &self,
        guard: &GraphGuard<'_>,
        source: &UpdateSource,
    ) -> Result<Option<Refusal>> {
        if !source.is_known() {
            return Ok(None);
        }
        let mut apart = self.apart.clone();
        Ok(check_apart(apart.as_deref_mut(), guard, source)?.err())
    }

    /// A copy of the locked graph in the shape of the executable, if that was shaped. If the driver
    /// refuses a step, the update is refused, so that a rebuild goes on.
    pub(super) fn copy_of_shape(
        &self,
        guard: &GraphGuard<'_>,
        source: &UpdateSource,
    ) -> Result<Result<Option<GraphHandle>, Refusal>> {
        let Some(shaped) = self.shaped() else { return Ok(Ok(None)) };
        match self.context().with_current(|| shaped.again(guard, &|key| source.of_key(key)))? {
            Ok(copy) => Ok(Ok(Some(copy))),
            Err(why) => {
                self.context().ensure_usable()?;
                Ok(Err(Refusal::new(RefusalReason::Shaped, why.to_string())))
            }
        }
    }
}

/// The footprints of nodes after an update from a graph, or a refusal if two would meet that are
/// ordered no more.
pub(super) fn check_apart(
    apart: Option<&mut Apart>,
    guard: &GraphGuard<'_>,
    source: &UpdateSource,
) -> Result<Result<Changes, Refusal>> {
    let mut changes = Changes::default();
    let Some(apart) = apart else { return Ok(Ok(changes)) };
    let keys: Vec<NodeId> = apart.ids().collect();
    for key in keys {
        // All nodes are known, or the update was refused.
        let id = source.of_key(key).unwrap_or(key);
        apart.add(&mut changes, key, guard.footprint(id)?);
    }
    Ok(match apart.check(&changes) {
        Ok(()) => Ok(changes),
        Err(met) => {
            let met = met.among(|key| source.of_key(key));
            let refusal = Refusal::new(RefusalReason::Shaped, met.error(guard).to_string());
            Err(refusal.at(guard.name(met.node)))
        }
    })
}
