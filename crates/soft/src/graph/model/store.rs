//! The tables of graphs, nodes and executables, under one lock.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_sys::CUgraphNodeType;

use super::executable::Exec;
use super::param_block::ParamBlock;
use super::payload::Payload;
use super::task::Task;
use super::user_object::Holdings;
use crate::device::loss::crash;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::model::address_space::Arena;
use crate::graph::model::edge::Edge;
use crate::graph::model::node_limits::Census;
use crate::graph::model::ordered_map::Ordered;
use crate::stream::callback::Callback;

/// What a graph is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nothing: the user destroys it.
    User,
    /// A child node, into which it was cloned or moved.
    Child { node: u64, moved: bool },
    /// A conditional node, whose body it is.
    Body { node: u64 },
}

/// The handle of a condition, known to the root graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionHandle {
    pub(crate) default: Option<u32>,
    pub(crate) context: u64,
    /// The node that uses it, and its uid: it may be gone.
    pub(crate) node: Option<(u64, u64)>,
}

/// A graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Never reused.
    pub(crate) uid: u64,
    pub(crate) owner: Owner,
    /// A graph that it lies in, be it far out, and the uid of that; as long as both live, it does.
    /// 0 where none is known.
    above: Cell<(u64, u64)>,
    /// The nodes in the order of creation, by their numbers in the graph.
    pub(crate) order: BTreeMap<u32, u64>,
    next_local: u32,
    pub(crate) census: Census,
    pub(crate) objects: Holdings,
    /// In a clone: the node here and its uid, for the uid of each node of the original.
    pub(crate) from_original: HashMap<u64, (u64, u64)>,
    /// The root graph's conditions by number.
    pub(crate) conditions: BTreeMap<u64, ConditionHandle>,
    pub(crate) next_condition: u64,
    pub(crate) arena: Arena,
    /// Executables that live, counted where only one may.
    pub(crate) live_execs: usize,
    /// Moved into itself or into its own part: lost for good.
    pub(crate) is_lost: bool,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Never reused, unlike the handle.
    pub(crate) uid: u64,
    /// Its number in its graph, counting up and never reused.
    pub(crate) local: u32,
    pub(crate) graph: u64,
    pub(crate) payload: Payload,
    /// What a read-back of kernel parameters points into, once there was one.
    pub(crate) block: Option<ParamBlock>,
    /// What it depended on as it was added.
    pub(crate) added_after: Box<[u64]>,
    /// What it depends on, in the order added.
    pub(crate) dependencies: Ordered<Edge>,
    /// What depends on it, in the order added.
    pub(crate) dependents: Ordered<Edge>,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Graphs {
    pub(crate) graphs: Slots<Graph>,
    pub(crate) nodes: Slots<Node>,
    /// The types of destroyed nodes whose handle was not given out again.
    graves: BTreeMap<u64, CUgraphNodeType>,
    pub(crate) execs: Slots<Exec>,
}

static GRAPHS: Mutex<Graphs> = Mutex::new(Graphs {
    graphs: Slots::new(Kind::Graph),
    nodes: Slots::new(Kind::Node),
    graves: BTreeMap::new(),
    execs: Slots::new(Kind::Exec),
});

static NEXT_UID: AtomicU64 = AtomicU64::new(1);

pub(crate) fn graphs() -> MutexGuard<'static, Graphs> {
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn new_uid() -> u64 {
    NEXT_UID.fetch_add(1, Ordering::Relaxed)
}

/// How many graphs of the user (children and bodies not counted) and how many executables live.
pub(crate) fn counts() -> (usize, usize) {
    let all = graphs();
    (all.graphs.values().filter(|graph| graph.owner == Owner::User).count(), all.execs.len())
}

impl Graphs {
    pub(crate) fn create(&mut self, owner: Owner) -> u64 {
        self.graphs.insert(Graph {
            uid: new_uid(),
            owner,
            above: Cell::new((0, 0)),
            order: BTreeMap::new(),
            next_local: 0,
            census: Census::default(),
            objects: Holdings::default(),
            from_original: HashMap::new(),
            conditions: BTreeMap::new(),
            next_condition: 1,
            arena: Arena::default(),
            live_execs: 0,
            is_lost: false,
        })
    }

    pub(crate) fn graph(&self, handle: u64) -> Answer<&Graph> {
        self.graphs.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn graph_mut(&mut self, handle: u64) -> Answer<&mut Graph> {
        self.graphs.get_mut(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node(&self, handle: u64) -> Answer<&Node> {
        self.nodes.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node_mut(&mut self, handle: u64) -> Answer<&mut Node> {
        self.nodes.get_mut(handle).ok_or(INVALID_VALUE)
    }

    /// The type of a node, also of a destroyed one.
    pub(crate) fn kind(&self, handle: u64) -> Answer<CUgraphNodeType> {
        match self.nodes.get(handle) {
            Some(node) => Ok(node.payload.kind()),
            None => self.graves.get(&handle).copied().ok_or(INVALID_VALUE),
        }
    }

    /// Whether the handle is that of a node that was destroyed.
    pub(crate) fn is_destroyed(&self, handle: u64) -> bool {
        self.graves.contains_key(&handle)
    }

    /// The nodes of a graph in the order of creation.
    pub(crate) fn nodes_of(&self, graph: u64) -> Answer<Vec<u64>> {
        Ok(self.graph(graph)?.order.values().copied().collect())
    }

    /// The graph of the user that a child or body is in the end part of. All on the way there know
    /// it from then on, so that asking for graphs that are nested deep costs little for each.
    pub(crate) fn root(&self, graph: u64) -> u64 {
        let mut root = graph;
        while let Some(above) = self.above(root) {
            root = above;
        }
        let uid = self.graph(root).map_or(0, |root| root.uid);
        let mut at = graph;
        while at != root
            && let Some(above) = self.above(at)
        {
            if let Ok(own) = self.graph(at) {
                own.above.set((root, uid));
            }
            at = above;
        }
        root
    }

    /// A graph that another one lies in.
    fn above(&self, graph: u64) -> Option<u64> {
        let own = self.graph(graph).ok()?;
        let (above, uid) = own.above.get();
        if self.graph(above).is_ok_and(|above| above.uid == uid) {
            return Some(above);
        }
        match own.owner {
            Owner::User => None,
            Owner::Child { node, .. } | Owner::Body { node } => self.node(node).ok().map(|node| node.graph),
        }
    }

    /// Whether `inner` is `outer` or lies in it.
    pub(crate) fn is_inside(&self, mut inner: u64, outer: u64) -> bool {
        if self.graph(outer).is_ok_and(|outer| outer.owner == Owner::User) {
            return self.root(inner) == outer;
        }
        loop {
            if inner == outer {
                return true;
            }
            match self.graph(inner).map(|graph| graph.owner) {
                Ok(Owner::Child { node, .. } | Owner::Body { node }) => match self.node(node) {
                    Ok(node) => inner = node.graph,
                    Err(_) => return false,
                },
                _ => return false,
            }
        }
    }

    /// The graph and all in it, the outer before the inner.
    pub(crate) fn tree(&self, graph: u64) -> Vec<u64> {
        let mut all = vec![graph];
        let mut at = 0;
        while let Some(graph) = all.get(at).copied() {
            for node in self.nodes_of(graph).unwrap_or_default() {
                all.extend(self.node(node).map(|node| node.payload.graphs()).unwrap_or_default());
            }
            at += 1;
        }
        all
    }

    /// Whether every child and body in these nodes is there: one into which a capture failed is
    /// gone, and its node is not.
    fn are_whole(&self, mut nodes: Vec<u64>) -> bool {
        while let Some(node) = nodes.pop() {
            let parts = match self.node(node).map(|node| &node.payload) {
                Ok(Payload::Child(child)) => vec![*child],
                Ok(Payload::Conditional(conditional)) => conditional.bodies.to_vec(),
                _ => continue,
            };
            for part in parts {
                match self.graph(part).map(|part| part.owner) {
                    Ok(Owner::Child { node: own, .. } | Owner::Body { node: own }) if own == node => {}
                    _ => return false,
                }
                nodes.extend(self.nodes_of(part).unwrap_or_default());
            }
        }
        true
    }

    /// With nodes that are not whole nothing can be done any more.
    pub(crate) fn ensure_whole(&self, nodes: Vec<u64>, what: &str) {
        if !self.are_whole(nodes) {
            crash(&format!("{what}, and a capture into a body or child in it has failed"));
        }
    }

    /// The dependencies of an add: nodes of the graph, none of them twice.
    pub(crate) fn check_dependencies(&self, graph: u64, dependencies: &[(u64, Edge)]) -> Answer {
        self.graph(graph)?;
        let mut seen = HashSet::new();
        for (dependency, _) in dependencies {
            let is_new = dependencies.len() == 1 || seen.insert(*dependency);
            if self.node(*dependency)?.graph != graph || !is_new {
                return Err(INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Adds a node whose dependencies have been checked.
    pub(crate) fn insert(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        payload: Payload,
    ) -> Answer<u64> {
        let uid = new_uid();
        let census = self.census_of(&payload);
        let own = self.graph_mut(graph)?;
        let local = own.next_local;
        own.next_local += 1;
        let handle = self.nodes.insert(Node {
            uid,
            local,
            graph,
            payload,
            block: None,
            added_after: dependencies.iter().map(|(node, _)| *node).collect(),
            dependencies: dependencies.iter().copied().collect(),
            dependents: Ordered::default(),
        });
        self.graves.remove(&handle);
        self.graph_mut(graph)?.order.insert(local, handle);
        self.count_in(graph, census);
        for (dependency, edge) in dependencies {
            self.node_mut(*dependency)?.dependents.push(handle, *edge);
        }
        Ok(handle)
    }

    /// Another payload for a node. What has to be called and dropped without the lock.
    pub(crate) fn replace(&mut self, handle: u64, payload: Payload) -> Answer<Leftovers> {
        let (old, new) = (self.census_of(&self.node(handle)?.payload), self.census_of(&payload));
        let node = self.node_mut(handle)?;
        let graph = node.graph;
        let replaced = std::mem::replace(&mut node.payload, payload);
        if let (Some(spec), Some(block)) = (node.payload.kernel(), node.block.take()) {
            node.block = Some(block.renewed(spec));
        }
        self.count_out(graph, old);
        self.count_in(graph, new);
        let mut leftovers = Leftovers::default();
        let inside = self.end_payload(replaced, &mut leftovers);
        self.discard_all(inside, &mut leftovers);
        Ok(leftovers)
    }

    /// Removes a node with its edges and everything in it.
    pub(crate) fn remove(&mut self, handle: u64) -> Leftovers {
        let mut leftovers = Leftovers::default();
        if let Ok(node) = self.node(handle) {
            self.count_out(node.graph, self.census_of(&node.payload));
        }
        let inside = self.remove_one(handle, &mut leftovers);
        self.discard_all(inside, &mut leftovers);
        leftovers
    }

    /// Removes a node with its edges, which is not counted any more; the graphs in it are the
    /// caller's to discard.
    fn remove_one(&mut self, handle: u64, leftovers: &mut Leftovers) -> Vec<u64> {
        let Some(node) = self.nodes.remove(handle) else { return Vec::new() };
        self.graves.insert(handle, node.payload.kind());
        for dependency in node.dependencies.keys() {
            if let Ok(dependency) = self.node_mut(dependency) {
                dependency.dependents.remove(handle);
            }
        }
        for dependent in node.dependents.keys() {
            if let Ok(dependent) = self.node_mut(dependent) {
                dependent.dependencies.remove(handle);
            }
        }
        if let Ok(graph) = self.graph_mut(node.graph) {
            graph.order.remove(&node.local);
        }
        self.end_payload(node.payload, leftovers)
    }

    /// What was in a node ends; the graphs in it are the caller's to discard.
    fn end_payload(&mut self, payload: Payload, leftovers: &mut Leftovers) -> Vec<u64> {
        match payload {
            Payload::Child(child) => vec![child],
            Payload::Conditional(conditional) => conditional.bodies.into_vec(),
            Payload::Task(task) => {
                leftovers.tasks.push(task);
                Vec::new()
            }
        }
    }

    /// Removes a graph with everything in it.
    pub(crate) fn discard(&mut self, handle: u64) -> Leftovers {
        let mut leftovers = Leftovers::default();
        self.discard_all(vec![handle], &mut leftovers);
        leftovers
    }

    /// Removes graphs with everything in them, one after the other: they may be nested deeper than
    /// a stack is.
    fn discard_all(&mut self, mut graphs: Vec<u64>, leftovers: &mut Leftovers) {
        while let Some(graph) = graphs.pop() {
            let inside = self.discard_one(graph, leftovers);
            graphs.extend(inside);
        }
    }

    /// Removes a graph; those in its nodes are the caller's to discard.
    fn discard_one(&mut self, handle: u64, leftovers: &mut Leftovers) -> Vec<u64> {
        let mut inside = Vec::new();
        let nodes = self.nodes_of(handle).unwrap_or_default();
        // The edges go with the nodes, none has to be taken off its other end.
        for node in &nodes {
            if let Ok(node) = self.node_mut(*node) {
                (node.dependencies, node.dependents) = (Ordered::default(), Ordered::default());
            }
        }
        for node in nodes {
            inside.extend(self.remove_one(node, leftovers));
        }
        if let Some(mut graph) = self.graphs.remove(handle) {
            leftovers.destructors.extend(graph.objects.release_all());
        }
        inside
    }
}

/// What is left of removed nodes and graphs: to be ended without the lock.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Leftovers {
    destructors: Vec<Callback>,
    tasks: Vec<Task>,
}

impl Leftovers {
    /// Calls the destructors of user objects and drops the rest.
    pub(crate) fn end(self) {
        self.destructors.into_iter().for_each(Callback::destruct);
    }
}
