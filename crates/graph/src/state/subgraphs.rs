//! The graphs that are in nodes, and what is known of each graph of a hierarchy.

use std::collections::HashSet;
use std::sync::Arc;

use cuda_handles::GraphHandle;
use cuda_sys::CUgraph;

use super::{About, Around, Embedded, Table};
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, Place, RawGraph};

impl Table {
    /// A place for the graph embedded in a node.
    pub(crate) fn embed(&mut self, raw: CUgraph, node: NodeId) -> Place {
        self.latest += 1;
        let number = self.latest;
        let about = About::default();
        let (nodes, there) = (HashSet::new(), Arc::new(()));
        let raw = RawGraph(raw);
        let around = self.around_node(node);
        let graph =
            Some(Embedded { own: None, raw, number, node, is_body: false, around, nodes, about, there });
        let index = self.free_embedded.pop().unwrap_or_else(|| {
            self.embedded.push(None);
            (self.embedded.len() - 1) as u32
        });
        self.embedded[index as usize] = graph;
        Place::embedded(index, number)
    }

    /// A place for a body of a conditional node that has its row.
    pub(crate) fn embed_body(&mut self, raw: CUgraph, node: NodeId) -> Place {
        let place = self.embed(raw, node);
        self.make_body(place, node);
        place
    }

    /// The same for a body that is a graph of its own for the driver.
    pub(crate) fn embed_own(&mut self, body: GraphHandle, node: NodeId) -> Place {
        let place = self.embed_body(body.as_raw(), node);
        if let Some(graph) = self.embedded_mut(place) {
            graph.own = Some(body);
            graph.around.place_holder = Some(node);
            self.place_holders += 1;
        }
        place
    }

    /// Whether there are conditional nodes that the driver does not have.
    pub(crate) fn counts_place_holders(&self) -> bool {
        self.place_holders > 0
    }

    /// What the graphs in a node lie in, besides the node.
    fn around_node(&self, node: NodeId) -> Around {
        let within = self.row(node).and_then(|row| self.embedded(row.within));
        within.map_or(Around::default(), |graph| graph.around)
    }

    /// Says that the graph is a body of a conditional node.
    fn make_body(&mut self, place: Place, node: NodeId) {
        let mut around = self.around_node(node);
        around.body = Some(node);
        if self.row(node).is_some_and(|row| row.detail.kind() == NodeKind::IfElse) {
            around.of_two = Some(node);
        }
        if let Some(graph) = self.embedded_mut(place) {
            (graph.node, graph.is_body, graph.around) = (node, true, around);
        }
    }

    /// The conditional node that the driver does not have, in whose body a graph lies, be it in a
    /// graph embedded there.
    pub(crate) fn place_holder_around(&self, place: Place) -> Option<NodeId> {
        self.embedded(place)?.around.place_holder
    }

    /// The conditional node in whose body a graph lies, be it in a graph embedded there.
    pub(crate) fn body_around(&self, place: Place) -> Option<NodeId> {
        self.embedded(place)?.around.body
    }

    /// The conditional node with two bodies in one of which a graph lies, be it in a graph embedded
    /// there.
    pub(crate) fn two_bodies_around(&self, place: Place) -> Option<NodeId> {
        self.embedded(place)?.around.of_two
    }

    /// Says which node an embedded graph is in.
    pub(crate) fn put_in(&mut self, place: Place, node: NodeId) {
        let around = self.around_node(node);
        if let Some(graph) = self.embedded_mut(place) {
            (graph.node, graph.around) = (node, around);
        }
        if let Some(row) = self.row_mut(node) {
            row.detail.set_embedded(place);
        }
    }

    /// Says which conditional node these graphs are the bodies of.
    pub(crate) fn put_bodies_in(&mut self, places: Box<[Place]>, node: NodeId) {
        places.iter().for_each(|place| self.make_body(*place, node));
        if let Some(row) = self.row_mut(node) {
            row.detail.set_bodies(places);
        }
    }

    /// An embedded graph; `None` for the root, and once the node that it was embedded in is gone.
    pub(crate) fn embedded(&self, place: Place) -> Option<&Embedded> {
        let graph = self.embedded.get(place.index()? as usize)?;
        graph.as_ref().filter(|graph| graph.number == place.number())
    }

    #[inline]
    pub(crate) fn embedded_mut(&mut self, place: Place) -> Option<&mut Embedded> {
        let graph = self.embedded.get_mut(place.index()? as usize)?;
        graph.as_mut().filter(|graph| graph.number == place.number())
    }

    pub(crate) fn take_embedded(&mut self, place: Place) -> Option<Embedded> {
        let graph = self.embedded(place)?;
        self.place_holders -= usize::from(graph.own.is_some());
        let index = place.index()?;
        self.free_embedded.push(index);
        self.embedded.get_mut(index as usize)?.take()
    }

    /// What there is to know of a graph; `None` once it is gone.
    pub(crate) fn about(&self, place: Place) -> Option<&About> {
        if place.is_root() { Some(&self.about) } else { Some(&self.embedded(place)?.about) }
    }

    pub(crate) fn about_mut(&mut self, place: Place) -> Option<&mut About> {
        if place.is_root() { Some(&mut self.about) } else { Some(&mut self.embedded_mut(place)?.about) }
    }

    /// The graph that a graph is embedded in; `None` for the root.
    pub(crate) fn outer(&self, place: Place) -> Option<Place> {
        self.row(self.embedded(place)?.node).map(|row| row.within)
    }

    /// A graph and those that it is embedded in, from the inside out.
    pub(crate) fn outwards(&self, place: Place) -> impl Iterator<Item = Place> {
        core::iter::successors(Some(place), |place| self.outer(*place))
    }

    /// Says all there is to know of a graph that is new.
    pub(crate) fn describe(&mut self, place: Place, about: About) {
        self.lending |= about.lent.is_some();
        about.kept.iter().for_each(|owner| self.log(place, [owner.clone()]));
        if let Some(known) = self.about_mut(place) {
            *known = about;
        }
    }
}
