//! A large hierarchy that is moved into a small one: its table becomes that one's, and the few rows
//! of the small one come in. So each row is entered anew only when the hierarchy that it is of at
//! least doubles, and graphs that are moved into one another from the inside out cost n log n.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_handles::{Owner, graph_memory};
use cuda_sys::CUgraph;

use super::{Around, Embedded, Row, Table};
use crate::memory::Noted;
use crate::state::ids::{NodeId, Place, RawGraph};
use crate::state::lineage::{Moved, Renamed};
use crate::state::owners::Uses;
use crate::state::params::Detail;
use crate::toposort::Index;

/// Below this many rows a table is copied.
const FEW: usize = 8;

/// The root graph of a hierarchy that is moved.
pub(crate) struct MovedRoot {
    pub(crate) raw: CUgraph,
    /// The number of its hierarchy, and that by which its memory is known.
    pub(crate) hierarchy: u64,
    pub(crate) memory: u64,
    /// Its rows.
    pub(crate) rows: Vec<Index>,
}

impl Table {
    /// Whether to take over the table of a hierarchy that is moved into a graph of this one, rather
    /// than to copy that: it is larger, and nothing in it has to be looked at node by node.
    pub(crate) fn is_to_take_over(&self, moved: &Self, into: Place) -> bool {
        let taken_in = self.rows.len() + self.embedded.len() + moved.free.len() + moved.free_embedded.len();
        let is_larger = moved.rows.len() - moved.free.len() > FEW + taken_in;
        let is_plain = moved.conditions.is_empty()
            && moved.incomplete.is_empty()
            && moved.given.is_empty()
            && moved.conditionals == 0
            && !moved.may_be_unread;
        is_larger && is_plain && !moved.is_shared() && !self.is_shared() && self.body_around(into).is_none()
    }

    /// Takes over the table of a hierarchy whose root graph was moved into a node of this one. The
    /// nodes and graphs of this one are known by what they were; of the other's, those that are in
    /// their way get new names. Gives the place of the root graph, those of all graphs that are to
    /// be entered anew, and what is left, to be dropped after the lock.
    pub(crate) fn take_over(
        &mut self,
        mut moved: Self,
        root: MovedRoot,
        into: NodeId,
    ) -> (Place, Vec<Place>, Self) {
        moved.next = moved.next.max(self.next);
        moved.latest = moved.latest.max(self.latest);
        moved.newest = moved.newest.max(self.newest);
        let (rows, graphs) = (self.rows.len(), self.embedded.len());
        let mut renamed = Renamed { rows, graphs, ..Renamed::default() };
        moved.clear_rows(self.rows.len(), &mut renamed);
        moved.clear_embedded(self.embedded.len(), &mut renamed);
        let place = moved.end_as_root(&root, into, &mut renamed);
        let mut places: Vec<Place> = renamed.places.values().copied().collect();
        places.extend(self.shared_places());
        let renamed = Arc::new(renamed);
        moved.moved.retain_mut(|earlier| earlier.move_on(&renamed));
        moved.moved.push(Moved::new(root.hierarchy, renamed));
        moved.moved.append(&mut self.moved);
        moved.memory_of = Some(root.memory);
        moved.take_rows_of(self);
        let left = core::mem::replace(self, moved);
        if let Some(row) = self.row_mut(into) {
            row.detail.set_embedded(place);
        }
        (place, places, left)
    }

    /// Where the graphs are that are found by their raw values, as all are but bodies that the
    /// driver has.
    fn shared_places(&self) -> impl Iterator<Item = Place> {
        let graphs = (0..).zip(&self.embedded).filter_map(|(index, graph)| Some((index, graph.as_ref()?)));
        let shared = graphs.filter(|(_, graph)| !graph.is_body || graph.own.is_some());
        shared.map(|(index, graph)| Place::embedded(index, graph.number))
    }

    /// Makes room for the rows of another table: those at the first so many indices go elsewhere.
    fn clear_rows(&mut self, count: usize, renamed: &mut Renamed) {
        let mut within = HashSet::new();
        for index in 0..count.min(self.rows.len()) {
            let Some(mut row) = self.rows.get_mut(index).and_then(Option::take) else { continue };
            let old = NodeId { index: index as Index, number: row.number };
            let new = NodeId { index: self.rows.len() as Index, number: self.next };
            self.next += 1;
            row.number = new.number;
            within.insert(row.within);
            self.let_follow(old, new, &row);
            self.rows.push(Some(row));
            renamed.nodes.insert(old, new);
        }
        for place in within {
            if let Some(about) = self.about_mut(place) {
                about.lineage.rename(renamed);
            }
        }
        self.free.retain(|index| *index as usize >= count);
    }

    /// What is known of a row by its index or number follows it.
    fn let_follow(&mut self, old: NodeId, new: NodeId, row: &Row) {
        if let Some(graph) = self.embedded_mut(row.within) {
            graph.nodes.remove(&old.index);
            graph.nodes.insert(new.index);
        }
        for &place in row.detail.inside() {
            if let Some(graph) = self.embedded_mut(place) {
                graph.node = new;
            }
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.insert(row.raw.key(), new.index);
        }
        if let Some(kept) = self.kept.remove(&old.index) {
            self.kept.insert(new.index, kept);
        }
        if let Some(decision) = self.deciding.remove(&old.index) {
            self.deciding.insert(new.index, decision);
        }
        if let Some(noted) = Noted::of(&row.detail) {
            self.memory.rename(old, new, noted);
        }
    }

    /// The same for embedded graphs.
    fn clear_embedded(&mut self, count: usize, renamed: &mut Renamed) {
        for index in 0..count.min(self.embedded.len()) {
            let Some(mut graph) = self.embedded.get_mut(index).and_then(Option::take) else { continue };
            let old = Place::embedded(index as u32, graph.number);
            self.latest += 1;
            graph.number = self.latest;
            let new = Place::embedded(self.embedded.len() as u32, graph.number);
            self.let_lie_in(&graph.nodes, new);
            if let Some(Some(row)) = self.rows.get_mut(graph.node.index as usize) {
                row.detail.set_embedded(new);
            }
            self.embedded.push(Some(graph));
            renamed.places.insert(old, new);
        }
        self.free_embedded.retain(|index| *index as usize >= count);
    }

    fn let_lie_in<'i>(&mut self, rows: impl IntoIterator<Item = &'i Index>, place: Place) {
        for &index in rows {
            if let Some(Some(row)) = self.rows.get_mut(index as usize) {
                row.within = place;
            }
        }
    }

    /// The root graph becomes one that is embedded in a node.
    fn end_as_root(&mut self, root: &MovedRoot, node: NodeId, renamed: &mut Renamed) -> Place {
        let by_index: HashMap<Index, Index> =
            renamed.nodes.iter().map(|(old, new)| (old.index, new.index)).collect();
        let nodes: HashSet<Index> =
            root.rows.iter().map(|index| by_index.get(index).copied().unwrap_or(*index)).collect();
        self.latest += 1;
        let number = self.latest;
        let place = Place::embedded(self.embedded.len() as u32, number);
        self.let_lie_in(&nodes, place);
        let about = core::mem::take(&mut self.about);
        self.embedded.push(Some(Embedded {
            own: None,
            raw: RawGraph(root.raw),
            number,
            node,
            is_body: false,
            around: Around::default(),
            nodes,
            about,
            there: Arc::new(()),
        }));
        renamed.places.insert(Place::ROOT, place);
        place
    }

    /// Takes all that the table of the hierarchy around has, as it is; nothing here is in its way.
    fn take_rows_of(&mut self, other: &mut Self) {
        let memory_of = self.memory_of;
        for (index, slot) in other.rows.iter_mut().enumerate() {
            let Some(mut row) = slot.take() else { continue };
            // Each is held by the other table as well, until that is dropped.
            let owners = row.uses.iter().filter_map(|&one| other.store.get(one));
            let uses: Uses = owners
                .map(|owner| match owner {
                    Owner::Allocation(memory) => self.store.keep_allocation(memory),
                    owner => self.store.keep(owner.clone()),
                })
                .collect();
            row.uses = uses;
            if let (Detail::Alloc { memory, .. }, Some(hierarchy)) = (&row.detail, memory_of) {
                // SAFETY: its node is in the hierarchy that is known by this number now.
                unsafe { graph_memory::moved(memory, hierarchy) };
            }
            if let Some(by_raw) = &mut self.by_raw {
                by_raw.insert(row.raw.key(), index as Index);
            }
            put(&mut self.rows, index, row);
        }
        for (index, slot) in other.embedded.iter_mut().enumerate() {
            if let Some(graph) = slot.take() {
                put(&mut self.embedded, index, graph);
            }
        }
        self.free.append(&mut other.free);
        self.free_embedded.append(&mut other.free_embedded);
        self.about = core::mem::take(&mut other.about);
        self.kept.extend(core::mem::take(&mut other.kept));
        self.conditions = core::mem::take(&mut other.conditions);
        self.deciding.extend(core::mem::take(&mut other.deciding));
        self.incomplete.extend(core::mem::take(&mut other.incomplete));
        self.memory.take_in(core::mem::take(&mut other.memory));
        self.executable = core::mem::take(&mut other.executable);
        self.removed = Arc::clone(&other.removed);
        self.last_runs = other.last_runs.clone();
        self.place_holders = other.place_holders;
        self.conditionals = other.conditionals;
        self.may_be_unread |= other.may_be_unread;
        self.home = self.home.take().or_else(|| other.home.take());
        if let Some(leaving) = other.leaving.take() {
            let own = self.leaving.get_or_insert_default();
            own.rows.extend(leaving.rows);
            own.owners.extend(leaving.owners);
        }
    }
}

/// Puts something at an index at which nothing is.
fn put<T>(slots: &mut Vec<Option<T>>, index: usize, value: T) {
    if slots.len() <= index {
        slots.resize_with(index + 1, || None);
    }
    if let Some(slot) = slots.get_mut(index) {
        *slot = Some(value);
    }
}
