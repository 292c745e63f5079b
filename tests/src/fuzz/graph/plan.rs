//! The model of a graph: nodes, edges, and what they do to each cell.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{CELLS, Effect, Effects};

/// The number of a node: no two nodes of a run have the same.
pub(super) type Id = u32;

/// A value, or the graph parameter of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Fixed(u32),
    Param(usize),
}

/// What a node does. A cell goes by its number.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Empty,
    Add { cell: Operand, amount: Operand },
    Fill { cell: Operand, value: Operand },
    Child(Plan),
}

impl Work {
    /// Whether a graph parameter gives the node a value.
    pub(super) fn is_bound(&self) -> bool {
        match self {
            Self::Empty | Self::Child(_) => false,
            Self::Add { cell, amount: other } | Self::Fill { cell, value: other } => {
                [cell, other].iter().any(|operand| matches!(operand, Operand::Param(_)))
            }
        }
    }

    fn takes(&self, param: usize) -> bool {
        match self {
            Self::Empty | Self::Child(_) => false,
            Self::Add { cell, amount: other } | Self::Fill { cell, value: other } => {
                [cell, other].contains(&&Operand::Param(param))
            }
        }
    }
}

/// What the nodes of a graph depend on when they run.
pub(super) struct Values<'v> {
    /// The values of the graph parameters.
    pub(super) params: &'v [u32],
    pub(super) disabled: &'v BTreeSet<Id>,
}

impl Values<'_> {
    pub(super) fn of(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Fixed(value) => value,
            Operand::Param(param) => self.params[param],
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) nodes: BTreeMap<Id, Work>,
    pub(super) edges: BTreeSet<(Id, Id)>,
}

impl Plan {
    /// The graph at the end of a path of child graph nodes.
    pub(super) fn at(&self, path: &[Id]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self.nodes.get(first)? {
            Work::Child(plan) => plan.at(rest),
            _ => None,
        }
    }

    pub(super) fn at_mut(&mut self, path: &[Id]) -> Option<&mut Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self.nodes.get_mut(first)? {
            Work::Child(plan) => plan.at_mut(rest),
            _ => None,
        }
    }

    /// The paths to this graph and to all graphs in its nodes.
    pub(super) fn paths(&self) -> Vec<Vec<Id>> {
        let mut paths = vec![Vec::new()];
        for (&id, work) in &self.nodes {
            if let Work::Child(plan) = work {
                paths.extend(plan.paths().into_iter().map(|path| [vec![id], path].concat()));
            }
        }
        paths
    }

    /// The nodes of this graph and of all graphs in its nodes.
    pub(super) fn ids(&self) -> Vec<Id> {
        let mut ids = Vec::new();
        for (&id, work) in &self.nodes {
            ids.push(id);
            if let Work::Child(plan) = work {
                ids.extend(plan.ids());
            }
        }
        ids
    }

    /// A node's work, wherever it is in the hierarchy.
    pub(super) fn work_mut(&mut self, id: Id) -> Option<&mut Work> {
        if self.nodes.contains_key(&id) {
            return self.nodes.get_mut(&id);
        }
        self.nodes.values_mut().find_map(|work| match work {
            Work::Child(plan) => plan.work_mut(id),
            _ => None,
        })
    }

    /// The nodes that take a parameter, wherever they are in the hierarchy.
    pub(super) fn users(&self, param: usize) -> Vec<Id> {
        let mut users = Vec::new();
        for (&id, work) in &self.nodes {
            match work {
                Work::Child(plan) => users.extend(plan.users(param)),
                work => users.extend(work.takes(param).then_some(id)),
            }
        }
        users
    }

    /// The same graph with other numbers and with values in place of graph parameters. Notes each
    /// old number with the new one.
    pub(super) fn copied(
        &self,
        params: &[u32],
        next: &mut impl FnMut() -> Id,
        twins: &mut BTreeMap<Id, Id>,
    ) -> Self {
        let none = BTreeSet::new();
        let values = Values { params, disabled: &none };
        let fixed = |operand: &Operand| Operand::Fixed(values.of(*operand));
        let mut copy = Self::default();
        for (&id, work) in &self.nodes {
            let work = match work {
                Work::Empty => Work::Empty,
                Work::Add { cell, amount } => Work::Add { cell: fixed(cell), amount: fixed(amount) },
                Work::Fill { cell, value } => Work::Fill { cell: fixed(cell), value: fixed(value) },
                Work::Child(plan) => Work::Child(plan.copied(params, next, twins)),
            };
            let twin = next();
            twins.insert(id, twin);
            copy.nodes.insert(twin, work);
        }
        copy.edges = self.edges.iter().map(|(from, to)| (twins[from], twins[to])).collect();
        copy
    }

    /// All nodes that one leads to, without itself.
    fn reached(&self, from: Id) -> BTreeSet<Id> {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(node) = waiting.pop() {
            let next = self.edges.range((node, Id::MIN)..=(node, Id::MAX)).map(|edge| edge.1);
            waiting.extend(next.filter(|to| seen.insert(*to)));
        }
        seen
    }

    pub(super) fn is_cyclic(&self) -> bool {
        self.nodes.keys().any(|&node| self.reached(node).contains(&node))
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Work> {
        self.edges.retain(|(from, to)| *from != id && *to != id);
        self.nodes.remove(&id)
    }

    /// What one run does to each cell.
    pub(super) fn effects(&self, values: &Values<'_>) -> Effects {
        let after: BTreeMap<Id, BTreeSet<Id>> =
            self.nodes.keys().map(|&node| (node, self.reached(node))).collect();
        let mut order: Vec<Id> = self.nodes.keys().copied().collect();
        // A node reaches more than any node behind it.
        order.sort_by_key(|node| core::cmp::Reverse(after[node].len()));
        let each: BTreeMap<Id, Effects> =
            self.nodes.iter().map(|(&id, work)| (id, Self::effects_of(id, work, values))).collect();
        let is_ordered = |one: Id, other: Id| after[&one].contains(&other) || after[&other].contains(&one);
        core::array::from_fn(|cell| {
            let of = |node: Id| each[&node][cell];
            let touching: Vec<Id> = order.iter().copied().filter(|&node| of(node) != Effect::NONE).collect();
            let is_open = touching.iter().any(|&one| {
                !matches!(of(one), Effect::Add(_))
                    && touching.iter().any(|&other| one != other && !is_ordered(one, other))
            });
            if is_open {
                return Effect::Open;
            }
            touching.iter().fold(Effect::NONE, |done, &node| done.then(of(node)))
        })
    }

    fn effects_of(id: Id, work: &Work, values: &Values<'_>) -> Effects {
        let mut effects = [Effect::NONE; CELLS];
        if values.disabled.contains(&id) {
            return effects;
        }
        match work {
            Work::Empty => {}
            Work::Add { cell, amount } => {
                effects[values.of(*cell) as usize] = Effect::Add(values.of(*amount))
            }
            Work::Fill { cell, value } => effects[values.of(*cell) as usize] = Effect::Set(values.of(*value)),
            Work::Child(plan) => return plan.effects(values),
        }
        effects
    }
}
