//! Executables: updates, parameters, launches.

use std::collections::BTreeSet;

use cuda_graph::{
    Error, GraphExec, KernelNode, MemsetNode, NodeError, ParamError, Result, Update, UpdateError,
};
use cuda_launch::per;

use super::cells::CELLS;
use super::ops::{NewWork, Number};
use super::plan::{Id, Operand, Plan, Values, Work};
use super::world::{Param, Root, World};

const MAX_EXECS: usize = 4;

/// An executable with what it does.
pub(super) struct Exec {
    exec: GraphExec,
    plan: Plan,
    params: Vec<u32>,
    /// The values of the parameters at the last launch.
    applied: Vec<u32>,
    /// The parameters that were set since.
    touched: BTreeSet<usize>,
    disabled: BTreeSet<Id>,
    /// The number of the root whose nodes and parameters it knows.
    root: u64,
    /// The number of the root that it was made of, by whose nodes the driver finds its own.
    origin: u64,
    /// The nodes that the origin had then.
    keys: BTreeSet<Id>,
    /// The root's structure when it was made or updated.
    structure: u32,
    /// Whether the model knows which node of the executable is which of the root.
    is_paired: bool,
}

impl Exec {
    fn new(exec: GraphExec, root: &Root) -> Self {
        let mut made = Self {
            exec,
            plan: Plan::default(),
            params: Vec::new(),
            applied: Vec::new(),
            touched: BTreeSet::new(),
            disabled: BTreeSet::new(),
            root: root.number,
            origin: root.number,
            keys: BTreeSet::new(),
            structure: 0,
            is_paired: true,
        };
        made.be_made_of(root);
        made
    }

    /// Is one that is made of the root now.
    fn be_made_of(&mut self, root: &Root) {
        (self.origin, self.keys) = (root.number, root.plan.ids().into_iter().collect());
        (self.disabled, self.is_paired) = (BTreeSet::new(), true);
        self.become_one_of(root);
    }

    /// Does from now on what the root does.
    fn become_one_of(&mut self, root: &Root) {
        (self.plan, self.params) = (root.plan.clone(), root.initial());
        (self.applied, self.touched) = (root.initial(), BTreeSet::new());
        (self.root, self.structure) = (root.number, root.structure);
    }
}

/// Errors of an update of a node that is not in the executable, or not any more.
fn is_of_other_node(error: &Error) -> bool {
    matches!(
        error,
        Error::Update(UpdateError::NotInExecutable { .. } | UpdateError::Unpaired { .. })
            | Error::Node(NodeError::Removed { .. } | NodeError::GraphRemoved | NodeError::GraphMoved)
    )
}

impl World<'_> {
    pub(super) fn exec(&self, number: Number) -> Option<usize> {
        usize::from(number).checked_rem(self.execs.len())
    }

    /// An executable of which the model knows the nodes.
    fn paired_exec(&self, number: Number) -> Option<usize> {
        self.exec(number).filter(|exec| self.execs[*exec].is_paired)
    }

    pub(super) fn instantiate(&mut self, root: Number) {
        let Some(root) = self.root(root).filter(|_| self.execs.len() < MAX_EXECS) else { return };
        let root = &self.roots[root];
        let exec = root.graph.instantiate().expect("an executable");
        self.execs.push(Exec::new(exec, root));
    }

    pub(super) fn set_exec_node(&mut self, exec: Number, at: Number, node: Number, new: NewWork) {
        let Some((exec, place)) = self.paired_exec(exec).zip(self.place(at)) else { return };
        let Some(id) = self.node(&place, node) else { return };
        let work = self.work(place.root, new);
        let (handle, root) = (self.handle(&place, id).clone(), self.roots[place.root].number);
        let kind = self.plan(&place).nodes[&id].clone();
        let Self { execs, buffer, add, .. } = self;
        let cell = |cell: u32| buffer.slice(cell as usize..=cell as usize).expect("a cell");
        let found = &mut execs[exec];
        let outcome = match (&kind, &work) {
            (Work::Add { .. }, &Work::Add { cell: Operand::Fixed(to), amount: Operand::Fixed(amount) }) => {
                let handle = KernelNode::try_from(handle).expect("a kernel node");
                found.exec.node(&handle).set(&*add, per(1, 1), (amount, cell(to)))
            }
            (Work::Fill { .. }, &Work::Fill { cell: Operand::Fixed(to), value: Operand::Fixed(value) }) => {
                let handle = MemsetNode::try_from(handle).expect("a fill");
                found.exec.node(&handle).set(cell(to), value)
            }
            _ => return,
        };
        if let Some(known) = found.judge(outcome, root, id) {
            *known = work;
        }
    }

    pub(super) fn enable(&mut self, exec: Number, at: Number, node: Number, on: bool) {
        let Some((exec, place)) = self.paired_exec(exec).zip(self.place(at)) else { return };
        let Some(id) = self.node(&place, node) else { return };
        let (handle, root) = (self.handle(&place, id).clone(), self.roots[place.root].number);
        let Ok(handle) = KernelNode::try_from(handle) else { return };
        let found = &mut self.execs[exec];
        let outcome = found.exec.node(&handle).set_enabled(on);
        let is_bound = found.plan.work_mut(id).is_some_and(|work| work.is_bound());
        let outcome = match outcome {
            // Enabling takes no parameter.
            Ok(()) if is_bound => {
                found.set_enabled(id, on);
                return;
            }
            outcome => outcome,
        };
        if found.judge(outcome, root, id).is_some() {
            found.set_enabled(id, on);
        }
    }

    pub(super) fn set_param(&mut self, exec: Number, param: Number, value: Number) {
        let Some(exec) = self.exec(exec) else { return };
        let Self { execs, roots, buffer, .. } = self;
        let exec = &mut execs[exec];
        let Some(root) = roots.iter().find(|root| root.number == exec.root) else { return };
        let Some(at) = usize::from(param).checked_rem(root.params.len()) else { return };
        let (outcome, value) = match &root.params[at] {
            Param::Number(param, _) => (exec.exec.set(param, u32::from(value)), u32::from(value)),
            Param::Cell(param, _) => {
                let cell = usize::from(value) % CELLS;
                let slice = buffer.slice(cell..=cell).expect("a cell");
                (exec.exec.set(param, slice), cell as u32)
            }
        };
        match outcome {
            Ok(()) => {
                exec.params[at] = value;
                exec.touched.insert(at);
            }
            Err(Error::Param(ParamError::MadeLater)) => {
                let is_used = !exec.plan.users(at).is_empty();
                assert!(at >= exec.params.len() || !is_used, "a parameter of before");
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn update(&mut self, exec: Number, root: Number, or_rebuild: bool) {
        let Some((exec, root)) = self.exec(exec).zip(self.root(root)) else { return };
        let (exec, root) = (&mut self.execs[exec], &self.roots[root]);
        let is_same = exec.is_paired && (exec.root, exec.structure) == (root.number, root.structure);
        if !is_same && !exec.disabled.is_empty() {
            // Which nodes stay disabled depends on how the driver pairs them.
            return;
        }
        let refusal = if or_rebuild {
            exec.exec.update_or_rebuild(&root.graph).expect("another executable at worst")
        } else {
            match exec.exec.update(&root.graph).expect("an update or a refusal") {
                Update::Updated => None,
                Update::Refused(refusal) => Some(refusal),
            }
        };
        match refusal {
            None => {
                exec.is_paired = is_same;
                exec.become_one_of(root);
            }
            Some(refusal) => {
                assert!(!is_same, "refused, with the same nodes and edges: {refusal}");
                if or_rebuild {
                    exec.be_made_of(root);
                }
            }
        }
    }

    /// Launches on one stream after the other, so that the order of all launches is known.
    pub(super) fn launch(&mut self, exec: Number, stream: bool) {
        let Some(exec) = self.exec(exec) else { return };
        let [one, two] = &self.streams;
        let (here, other) = if stream { (two, one) } else { (one, two) };
        let origin = self.nodes_of(self.execs[exec].origin);
        let (is_moved, there) = (origin.is_none(), origin.unwrap_or_default());
        let exec = &mut self.execs[exec];
        let launched = exec.exec.launch(here);
        let changed = exec.touched.iter().filter(|param| exec.params[**param] != exec.applied[**param]);
        let mut has_users = changed.map(|param| exec.has_users(&there, *param));
        if let Err(error) = launched {
            let is_due = has_users.any(|known| is_moved || known != Some(true));
            assert!(is_of_other_node(&error) && is_due, "{error}");
            return;
        }
        assert!(has_users.all(|known| known != Some(false)), "a node is updated that was removed");
        other.wait_for(here).expect("the wait is enqueued");
        let values = Values { params: &exec.params, disabled: &exec.disabled };
        self.cells.run(&exec.plan.effects(&values));
        (exec.applied, exec.touched) = (exec.params.clone(), BTreeSet::new());
    }
}

impl Exec {
    /// The work of the node that was updated. Nothing if the update is refused, as the model says
    /// that it must be.
    #[track_caller]
    fn judge(&mut self, outcome: Result<()>, root: u64, id: Id) -> Option<&mut Work> {
        let is_root = self.root == root;
        let known = self.plan.work_mut(id).filter(|_| is_root);
        match (outcome, known) {
            (Ok(()), Some(known)) => {
                assert!(!known.is_bound(), "a parameter gives the node its values");
                Some(known)
            }
            (Ok(()), None) => panic!("a node of another graph is updated"),
            (Err(Error::Param(ParamError::Bound { .. })), Some(known)) if known.is_bound() => None,
            (Err(error), None) if is_of_other_node(&error) => None,
            (Err(error), known) => panic!("{error}: {known:?}"),
        }
    }

    /// Whether all nodes that take a parameter are still there, among the nodes of the origin.
    /// Nothing if it is not known which of these they are, after an update from another graph.
    fn has_users(&self, there: &BTreeSet<Id>, param: usize) -> Option<bool> {
        let users: BTreeSet<Id> = self.plan.users(param).into_iter().collect();
        if self.is_paired || users.is_empty() {
            return Some(users.is_subset(there));
        }
        match self.keys.intersection(there).count() {
            0 => Some(false),
            left if left == self.keys.len() => Some(true),
            _ => None,
        }
    }

    fn set_enabled(&mut self, id: Id, on: bool) {
        if on {
            self.disabled.remove(&id);
        } else {
            self.disabled.insert(id);
        }
    }
}
