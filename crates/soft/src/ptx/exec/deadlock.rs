//! The words for a deadlock.

/// Threads that wait at the same place for the same.
struct Group {
    is_warp: bool,
    what: String,
    position: String,
    threads: Vec<usize>,
}

/// The waits of the threads of a block.
#[derive(Default)]
pub(super) struct Waits(Vec<Group>);

/// More groups are counted, not listed.
const MOST_GROUPS: usize = 8;

impl Waits {
    pub(super) fn add(&mut self, thread: usize, is_warp: bool, what: String, position: String) {
        let found = self.0.iter_mut().find(|group| group.what == what && group.position == position);
        match found {
            Some(group) => group.threads.push(thread),
            None => self.0.push(Group { is_warp, what, position, threads: vec![thread] }),
        }
    }

    /// The thread to report: one that waits for its warp, if there is one.
    pub(super) fn first(&self) -> usize {
        let group = self.0.iter().find(|group| group.is_warp).or(self.0.first());
        group.and_then(|group| group.threads.first()).copied().unwrap_or(0)
    }

    /// Names every group, the threads that only arrived at a barrier, and how many have ended.
    pub(super) fn words(&self, arrived: &[(u32, Option<u32>, usize)], ended: usize) -> String {
        let mut parts: Vec<String> = self.0.iter().take(MOST_GROUPS).map(Group::words).collect();
        if self.0.len() > MOST_GROUPS {
            parts.push(format!("{} more groups wait elsewhere", self.0.len() - MOST_GROUPS));
        }
        let mut barriers: Vec<u32> = arrived.iter().map(|(barrier, _, _)| *barrier).collect();
        barriers.sort_unstable();
        barriers.dedup();
        for barrier in barriers {
            let threads = arrived.iter().filter(|(at, _, _)| *at == barrier).map(|(_, _, thread)| *thread);
            let threads = threads_in_words(&threads.collect::<Vec<_>>());
            parts.push(format!("{threads} arrived at barrier {barrier} without waiting"));
        }
        format!("no thread can go on: {}; {ended} have ended", parts.join("; "))
    }
}

impl Group {
    fn words(&self) -> String {
        let threads = threads_in_words(&self.threads);
        let verb = if self.threads.len() == 1 { "waits" } else { "wait" };
        format!("{threads} {verb} {} at {}", self.what, self.position)
    }
}

/// `32 threads (numbers 0 to 31)`: the numbers count as `threadIdx` does, x first.
fn threads_in_words(threads: &[usize]) -> String {
    let (first, last) = (threads.first().unwrap_or(&0), threads.last().unwrap_or(&0));
    match threads.len() {
        1 => format!("thread number {first}"),
        count if last - first + 1 == count => format!("{count} threads (numbers {first} to {last})"),
        count => format!("{count} threads (numbers {first} to {last}, not all)"),
    }
}
