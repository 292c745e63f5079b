//! The memory of the model: cells, and effects on them.

pub(super) const CELLS: usize = 8;

/// What a run does to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Add(u32),
    Set(u32),
    /// The order of the nodes decides, and the edges do not say it.
    Open,
}

pub(super) type Effects = [Effect; CELLS];

impl Effect {
    pub(super) const NONE: Self = Self::Add(0);

    /// This effect, then another.
    pub(super) fn then(self, next: Self) -> Self {
        match (self, next) {
            (_, Self::Set(_) | Self::Open) => next,
            (Self::Add(one), Self::Add(two)) => Self::Add(one.wrapping_add(two)),
            (Self::Set(value), Self::Add(amount)) => Self::Set(value.wrapping_add(amount)),
            (Self::Open, Self::Add(_)) => Self::Open,
        }
    }
}

/// What is known of the cells. `None` where the edges of a graph have left the value open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cells([Option<u32>; CELLS]);

impl Cells {
    pub(super) fn all(value: u32) -> Self {
        Self([Some(value); CELLS])
    }

    pub(super) fn run(&mut self, effects: &Effects) {
        for (cell, effect) in self.0.iter_mut().zip(effects) {
            *cell = match effect {
                Effect::Add(amount) => cell.map(|value| value.wrapping_add(*amount)),
                Effect::Set(value) => Some(*value),
                Effect::Open => None,
            };
        }
    }

    /// Compares what is known with what is found.
    #[track_caller]
    pub(super) fn check(&self, found: &[u32]) {
        assert_eq!(found.len(), CELLS);
        for (cell, (known, found)) in self.0.iter().zip(found).enumerate() {
            assert!(known.is_none_or(|known| known == *found), "cell {cell}: {found}, not {known:?}");
        }
    }
}
