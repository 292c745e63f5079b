//! The cache of compiled programs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::compiled::Compiled;
use crate::program::Program;

/// The capacity. Beyond it, the least recently used program is dropped.
pub(crate) const LIMIT: usize = 256;

#[derive(Default)]
pub(crate) struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Each with the number of its last look-up.
    programs: HashMap<Program, (Arc<Compiled>, u64)>,
    look_ups: u64,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, program: &Program) -> Option<Arc<Compiled>> {
        let mut kept = self.lock();
        kept.look_ups += 1;
        let now = kept.look_ups;
        let (compiled, asked) = kept.programs.get_mut(program)?;
        *asked = now;
        Some(Arc::clone(compiled))
    }

    /// Stores a program. If another thread stored it first, returns that one.
    pub(crate) fn keep(&self, program: &Program, compiled: Compiled) -> Arc<Compiled> {
        let mut kept = self.lock();
        let now = kept.look_ups;
        if kept.programs.len() >= LIMIT && !kept.programs.contains_key(program) {
            let oldest = kept.programs.iter().min_by_key(|(_, (_, asked))| *asked);
            if let Some(oldest) = oldest.map(|(program, _)| program.clone()) {
                kept.programs.remove(&oldest);
            }
        }
        let (compiled, _) = kept.programs.entry(program.clone()).or_insert_with(|| (Arc::new(compiled), now));
        Arc::clone(compiled)
    }

    pub(crate) fn clear(&self) {
        self.lock().programs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    fn compiled(text: &str) -> Compiled {
        let (ptx, compiler) = (Some(text.to_owned()), Version::new(12, 0));
        Compiled { ptx, cubin: None, log: String::new(), names: Vec::new(), compiler }
    }

    #[test]
    fn keeps_what_was_asked_for_last() {
        let cache = Cache::default();
        let program = |number: usize| Program::new(number.to_string(), "");
        for number in 0..LIMIT {
            assert!(cache.find(&program(number)).is_none());
            cache.keep(&program(number), compiled("once"));
        }
        assert!(cache.find(&program(0)).is_some());
        assert!(cache.find(&program(LIMIT)).is_none());
        cache.keep(&program(LIMIT), compiled("more"));
        assert!(cache.find(&program(0)).is_some() && cache.find(&program(LIMIT)).is_some());
        assert!(cache.find(&program(1)).is_none());
        assert_eq!(cache.lock().programs.len(), LIMIT);
        let first = cache.keep(&program(0), compiled("again"));
        assert_eq!(first.ptx(), Some("once"));
        assert!(cache.find(&program(0).define("N", "1")).is_none());
        cache.clear();
        assert!(cache.find(&program(0)).is_none());
    }
}
