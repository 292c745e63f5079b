//! The forms of the measured graphs, as plain data.

/// How the nodes of a graph depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each node waits for the one before it.
    Line,
    /// All wait for the first node, and the last one waits for all.
    ForkJoin,
    /// As many chains as each has nodes, about.
    Chains,
}

impl Form {
    pub(crate) const ALL: [Self; 3] = [Self::Line, Self::ForkJoin, Self::Chains];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::ForkJoin => "fork-join",
            Self::Chains => "chains",
        }
    }

    /// For each node, the earlier ones that it waits for.
    pub(crate) fn dependencies(self, nodes: usize) -> Vec<Vec<usize>> {
        let last = nodes.saturating_sub(1);
        let chains = nodes.isqrt();
        let of = |node: usize| match self {
            _ if node == 0 => Vec::new(),
            Self::Line => vec![node - 1],
            Self::ForkJoin if node == last && last > 1 => (1..last).collect(),
            Self::ForkJoin => vec![0],
            Self::Chains => node.checked_sub(chains).into_iter().collect(),
        };
        (0..nodes).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_as_their_names_say() {
        assert_eq!(Form::Line.dependencies(4), [vec![], vec![0], vec![1], vec![2]]);
        assert_eq!(Form::ForkJoin.dependencies(5), [vec![], vec![0], vec![0], vec![0], vec![1, 2, 3]]);
        let chains = Form::Chains.dependencies(9);
        assert_eq!(chains.iter().filter(|before| before.is_empty()).count(), 3);
        assert_eq!(chains[8], [5]);
    }

    #[test]
    fn nodes_wait_for_earlier_ones_alone() {
        for form in Form::ALL {
            for nodes in [0, 1, 2, 3, 10, 1000] {
                let found = form.dependencies(nodes);
                assert_eq!(found.len(), nodes, "{form:?}");
                let is_earlier =
                    |(node, before): (usize, &Vec<usize>)| before.iter().all(|before| *before < node);
                assert!(found.iter().enumerate().all(is_earlier), "{form:?} of {nodes}");
            }
        }
    }
}
