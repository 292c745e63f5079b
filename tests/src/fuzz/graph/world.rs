//! The driver's objects beside their models, and one step in both.

use std::collections::{BTreeMap, BTreeSet};

use cuda_graph::{ChildGraphNode, ContextExt, Graph, GraphParam, Node, Result};
use cuda_handles::{Buffer, Context, Slice, Stream};

use super::cells::{CELLS, Cells};
use super::executables::Exec;
use super::ops::{NewOperand, NewWork, Number, Op, ParamValue};
use super::plan::{Id, Operand, Plan, Work};
use crate::things::add_to;

const MAX_GRAPHS: usize = 4;

/// A graph that is in no other one, with the graphs in its nodes.
pub(super) struct Root {
    pub(super) number: u64,
    pub(super) graph: Graph,
    pub(super) plan: Plan,
    pub(super) handles: BTreeMap<Id, Node>,
    /// Nodes that were removed.
    pub(super) gone: Vec<Node>,
    pub(super) params: Vec<Param>,
    /// Grows with each change of nodes and edges.
    pub(super) structure: u32,
}

/// A graph parameter with its first value.
pub(super) enum Param {
    Number(GraphParam<u32>, u32),
    Cell(GraphParam<[u32]>, u32),
}

impl Param {
    pub(super) fn initial(&self) -> u32 {
        match self {
            Self::Number(_, value) | Self::Cell(_, value) => *value,
        }
    }
}

impl Root {
    pub(super) fn initial(&self) -> Vec<u32> {
        self.params.iter().map(Param::initial).collect()
    }

    /// The handle of the graph at the end of a path.
    pub(super) fn graph_at(&self, path: &[Id]) -> Graph {
        let Some(last) = path.last() else { return self.graph.clone() };
        self.child(*last).embedded().expect("a graph in a node")
    }

    pub(super) fn child(&self, id: Id) -> ChildGraphNode {
        ChildGraphNode::try_from(self.handles[&id].clone()).expect("a child graph node")
    }
}

/// A graph in the hierarchy of a root.
pub(super) struct Place {
    pub(super) root: usize,
    pub(super) path: Vec<Id>,
}

pub(super) struct World<'c> {
    pub(super) context: &'c Context,
    pub(super) streams: [Stream; 2],
    pub(super) add: add_to,
    pub(super) buffer: Buffer<u32>,
    pub(super) cells: Cells,
    pub(super) roots: Vec<Root>,
    /// The nodes of roots that were dropped, by the numbers of these. Executables keep the graphs.
    dropped: BTreeMap<u64, BTreeSet<Id>>,
    pub(super) execs: Vec<Exec>,
    last: u64,
}

impl<'c> World<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        let stream = || context.stream().expect("a stream");
        let streams = [stream(), stream()];
        let buffer = streams[0].zeros(CELLS).expect("memory");
        let add = add_to::load(context).expect("a kernel");
        let (cells, roots, dropped, execs) = (Cells::all(0), Vec::new(), BTreeMap::new(), Vec::new());
        let mut world = Self { context, streams, add, buffer, cells, roots, dropped, execs, last: 0 };
        world.new_graph();
        world
    }

    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn next_id(&mut self) -> Id {
        self.next() as Id
    }

    fn new_graph(&mut self) {
        let graph = self.context.graph().expect("a graph");
        self.push(graph, Plan::default(), BTreeMap::new());
    }

    pub(super) fn may_push(&self) -> bool {
        self.roots.len() < MAX_GRAPHS
    }

    pub(super) fn push(&mut self, graph: Graph, plan: Plan, handles: BTreeMap<Id, Node>) {
        let number = self.next();
        let (gone, params) = (Vec::new(), Vec::new());
        self.roots.push(Root { number, graph, plan, handles, gone, params, structure: 0 });
    }

    fn drop_graph(&mut self, root: Number) {
        let Some(root) = self.root(root) else { return };
        let Root { number, plan, .. } = self.roots.swap_remove(root);
        self.dropped.insert(number, plan.ids().into_iter().collect());
    }

    /// The nodes that are in a root, also after it was dropped. Nothing if it was moved.
    pub(super) fn nodes_of(&self, root: u64) -> Option<BTreeSet<Id>> {
        let found = self.roots.iter().find(|found| found.number == root);
        let nodes = found.map(|found| found.plan.ids().into_iter().collect());
        nodes.or_else(|| self.dropped.get(&root).cloned())
    }

    /// A root by its number.
    pub(super) fn root(&self, number: Number) -> Option<usize> {
        usize::from(number).checked_rem(self.roots.len())
    }

    /// A graph by its number: a root, or one in a node.
    pub(super) fn place(&self, number: Number) -> Option<Place> {
        let places = self
            .roots
            .iter()
            .enumerate()
            .flat_map(|(root, of)| of.plan.paths().into_iter().map(move |path| Place { root, path }));
        let mut places: Vec<Place> = places.collect();
        let at = usize::from(number).checked_rem(places.len())?;
        Some(places.swap_remove(at))
    }

    pub(super) fn plan(&self, place: &Place) -> &Plan {
        self.roots[place.root].plan.at(&place.path).expect("places are of now")
    }

    pub(super) fn plan_mut(&mut self, place: &Place) -> &mut Plan {
        self.roots[place.root].plan.at_mut(&place.path).expect("places are of now")
    }

    pub(super) fn graph(&self, place: &Place) -> Graph {
        self.roots[place.root].graph_at(&place.path)
    }

    /// A node of a graph by its number.
    pub(super) fn node(&self, place: &Place, number: Number) -> Option<Id> {
        let nodes = &self.plan(place).nodes;
        nodes.keys().nth(usize::from(number).checked_rem(nodes.len())?).copied()
    }

    pub(super) fn handle(&self, place: &Place, id: Id) -> &Node {
        &self.roots[place.root].handles[&id]
    }

    pub(super) fn cell(&self, cell: u32) -> Slice<'_, u32> {
        let cell = cell as usize;
        self.buffer.slice(cell..=cell).expect("a cell")
    }

    /// The operand that a number stands for. `is_cell` says which parameters can be one.
    fn operand(&self, root: usize, new: NewOperand, is_cell: bool) -> Operand {
        let fixed = |value: u8| Operand::Fixed(u32::from(value) % if is_cell { CELLS as u32 } else { 256 });
        let number = match new {
            NewOperand::Fixed(value) => return fixed(value),
            NewOperand::Param(number) => number,
        };
        let fits = |param: &Param| matches!(param, Param::Cell(..)) == is_cell;
        let params = self.roots[root].params.iter().enumerate().filter(|(_, param)| fits(param));
        let params: Vec<usize> = params.map(|(at, _)| at).collect();
        let at = usize::from(number).checked_rem(params.len());
        at.map_or(fixed(number), |at| Operand::Param(params[at]))
    }

    /// The work that is asked for; `root` has the parameters.
    pub(super) fn work(&self, root: usize, new: NewWork) -> Work {
        match new {
            NewWork::Empty => Work::Empty,
            NewWork::Add { cell, amount } => {
                Work::Add { cell: self.operand(root, cell, true), amount: self.operand(root, amount, false) }
            }
            NewWork::Fill { cell, value } => {
                Work::Fill { cell: self.operand(root, cell, true), value: self.operand(root, value, false) }
            }
        }
    }

    pub(super) fn step(&mut self, op: Op) {
        match op {
            Op::NewGraph if self.may_push() => self.new_graph(),
            Op::NewGraph => {}
            Op::Add { at, work, after, before } => self.add_node(at, work, after, before),
            Op::AddEdge { at, from, to } => self.add_edges(at, &[(from, to)]),
            Op::AddEdges { at, edges } => self.add_edges(at, &edges),
            Op::RemoveEdge { at, edge } => self.remove_edge(at, edge),
            Op::SetInEdges { at, node, from } => self.set_in_edges(at, node, from),
            Op::RemoveNode { at, node } => self.remove_node(at, node, false),
            Op::RemoveBridging { at, node } => self.remove_node(at, node, true),
            Op::UseRemoved { root, node } => self.use_removed(root, node),
            Op::SetNode { at, node, work } => self.set_node(at, node, work),
            Op::NewParam { root, value } => self.new_param(root, value),
            Op::Clone { at } => self.clone_graph(at),
            Op::Embed { at, of, after } => self.embed(at, of, after),
            Op::Move { at, of, after } => self.move_graph(at, of, after),
            Op::Replace { at, node, of } => self.replace(at, node, of),
            Op::DropGraph { root } => self.drop_graph(root),
            Op::Instantiate { root } => self.instantiate(root),
            Op::SetExecNode { exec, at, node, work } => self.set_exec_node(exec, at, node, work),
            Op::Enable { exec, at, node, on } => self.enable(exec, at, node, on),
            Op::SetParam { exec, param, value } => self.set_param(exec, param, value),
            Op::Update { exec, root, or_rebuild } => self.update(exec, root, or_rebuild),
            Op::Launch { exec, stream } => self.launch(exec, stream),
            Op::DropExec { exec } => {
                if let Some(exec) = self.exec(exec) {
                    drop(self.execs.swap_remove(exec));
                }
            }
            Op::Reset { value } => {
                // The fill waits for all launches, which order both streams.
                self.streams[0].fill(&self.buffer, u32::from(value)).expect("a fill");
                self.streams[1].wait_for(&self.streams[0]).expect("the wait is enqueued");
                self.cells = Cells::all(value.into());
            }
            Op::Check => self.check(),
        }
    }

    fn new_param(&mut self, root: Number, value: ParamValue) {
        const MAX_PARAMS: usize = 4;
        let Some(root) = self.root(root).filter(|root| self.roots[*root].params.len() < MAX_PARAMS) else {
            return;
        };
        let graph = &self.roots[root].graph;
        let param = match value {
            ParamValue::Number(value) => {
                graph.param(u32::from(value)).map(|param| Param::Number(param, value.into()))
            }
            ParamValue::Cell(cell) => {
                let cell = u32::from(cell) % CELLS as u32;
                graph.param(self.cell(cell)).map(|param| Param::Cell(param, cell))
            }
        };
        self.roots[root].params.push(param.expect("a parameter"));
    }

    /// Compares memory and all graphs with their models.
    fn check(&self) {
        let found = self.buffer.read_blocking(&self.streams[0]).expect("the memory is read");
        self.cells.check(&found);
        for root in &self.roots {
            for path in root.plan.paths() {
                let plan = root.plan.at(&path).expect("a path of now");
                check_graph(root, &root.graph_at(&path), plan).expect("a graph is read");
            }
        }
    }

    /// Launches all that is left, so that nothing is dropped without having run.
    pub(super) fn finish(mut self) {
        for exec in 0..self.execs.len() {
            self.launch(exec as Number, exec % 2 == 1);
        }
        self.check();
    }
}

/// Compares the nodes and edges of a graph with the model's.
fn check_graph(root: &Root, graph: &Graph, plan: &Plan) -> Result<()> {
    let id_of = |node: &Node| {
        let found = plan.nodes.keys().find(|id| root.handles[id] == *node);
        *found.unwrap_or_else(|| panic!("{node} is not in the model"))
    };
    let nodes = graph.nodes()?;
    assert_eq!((nodes.len(), graph.len()?), (plan.nodes.len(), plan.nodes.len()));
    for node in &nodes {
        id_of(node);
    }
    let mut edges: Vec<(Id, Id)> =
        graph.edges()?.iter().map(|edge| (id_of(&edge.from), id_of(&edge.to))).collect();
    edges.sort_unstable();
    assert_eq!(edges, plan.edges.iter().copied().collect::<Vec<_>>(), "edges");
    Ok(())
}
