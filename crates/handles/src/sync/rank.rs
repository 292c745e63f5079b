//! Lock ranks: the order in which a thread may take locks, and its check in debug builds.
//!
//! Every lock of this crate and of cuda-graph has a [`Rank`]. A thread takes a lock only if its
//! rank is behind the ranks of all locks that the thread holds, so no two threads wait for each
//! other. The one exception is a pair of hierarchies, whose second lock `GuardPair` takes by an
//! order of its own. Debug builds keep the held ranks of each thread on a small stack, without an
//! allocation, and panic on the first lock that is out of order, whether or not it was free.
//! Release builds check nothing and store nothing.
//!
//! `docs/lock-order.md` is written from this list; a test fails where the two differ.

macro_rules! ranks {
    ($($(#[$nests:ident])? $name:ident: $owner:literal, $why:literal;)+) => {
        /// The rank of a lock. The order of the variants is the order in which locks are taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rank {
            $(#[doc = $why] $name),+
        }

        impl Rank {
            /// All ranks in order, with the crate of the lock, the reason for the place, and
            /// whether a thread may hold several locks of the rank.
            pub const ALL: &'static [(Self, &'static str, &'static str, bool)] =
                &[$((Self::$name, $owner, $why, ranks!(@nests $($nests)?))),+];
        }
    };
    (@nests) => { false };
    (@nests nests) => { true };
}

ranks! {
    ExecPool: "graph", "The executables of a pool: held for moments, over no driver call and no code of users.";
    GraphCache: "graph", "The executables of a cache: held for moments, over no driver call and no code of users.";
    #[nests] ScratchRuns: "handles",
        "The last launch of graphs that share scratch memory: held from the wait for it over the next launch. Several are taken in the order of `Scratch::sort`.";
    Hierarchy: "graph",
        "The state of a hierarchy of graphs: held over driver calls on it. Two are taken by `GuardPair` alone, in the order of their addresses.";
    LastRuns: "graph", "The streams of an executable's last runs.";
    SetKernels: "graph", "The libraries of this library's own kernels, for each context.";
    SetKernelsOfContext: "graph", "The kernels of such a library that were looked up.";
    RawHandleMap: "graph", "Raw graph handles to hierarchies. Only hierarchy roots are locked under it.";
    HierarchyRoot: "graph", "Which hierarchy a graph belongs to; taken under the raw handle map.";
    RemovedNames: "graph", "Names of removed nodes, for errors.";
    DeviceLimits: "graph", "Limits of devices, read once.";
    CaptureSession: "graph", "The forks, bodies and nodes of a capture; held for moments, over no driver call.";
    KeptForGood: "graph", "Owners that are kept to the end of the process.";
    ExclusiveAccess: "handles",
        "Waiting for exclusive access of a stream: with no lock of this crate held, as readers need them.";
    PrimaryContext: "handles", "Retaining a primary context, over a driver call that may take long.";
    Imports: "handles", "The table of imported events and memory, over the driver call that imports.";
    Compiler: "handles", "The compiler log of a library, over driver calls that may compile.";
    #[nests] Event: "handles",
        "The last record of an event: held over the call that records it or waits for it. Several are taken in the order of their addresses.";
    Reaper: "handles", "The reaper's state: its thread holds it over frees and fences, which lock all that follows.";
    Staging: "handles", "The staging memory of a stream: taken before the stream's gate and access.";
    Gate: "handles", "The gate of a stream: from recording its marker to the wait for it.";
    StreamAccess: "handles", "Waiting for read access of a stream.";
    CaptureRecords: "handles",
        "The records of an open capture, over the driver call that is captured: taken with read access of its stream held.";
    Clones: "handles", "Calls that make or destroy clones of graphs, over the driver call; an adopted graph retains user objects meanwhile.";
    UserObject: "handles", "The graphs that hold a user object; taken on a capturing stream, too.";
    LentLog: "graph", "The owners that a lent graph retains; written while a node is added to it under `Clones`.";
    GraphCalls: "handles", "This crate's own calls on a graph, over the driver call.";
    PrimaryContexts: "handles", "The table of primary contexts. From here on: held for moments, over no driver call.";
    AllStreams: "handles", "The list of all streams.";
    AllRetired: "handles", "The executables that have given up owners.";
    Retired: "handles", "The owners that an executable has given up.";
    FenceMembers: "handles", "The streams that fences span.";
    OpenCaptures: "handles", "The open captures and their streams.";
    CaptureScratch: "handles", "The scratch memory of open captures.";
    ScratchBlocks: "handles", "The memory that captures share; taken under `CaptureScratch`.";
    ScratchHomes: "handles", "The streams on which memory of captures is allocated.";
    StreamWaits: "handles", "The points of other streams that a stream has waited for.";
    HostUsers: "handles", "The streams that use host memory.";
    PoolHomes: "handles", "The streams on which memory of a pool is freed.";
    GraphMemory: "handles", "The stream of the last launch that left memory of an allocation node.";
    Attachments: "handles", "What the crates above attach to a graph.";
    KernelSettings: "handles", "The settings of kernels.";
    LibraryVariables: "handles", "The variables of a library.";
    SharedLibraries: "handles", "The libraries that are shared by image.";
    AllStagings: "handles", "The list of all staging memory.";
    HostCache: "handles", "The cache of host memory.";
    StuckBlocks: "handles", "Registered memory that the driver has refused to unregister.";
    Payload: "handles", "The value of a user object.";
    DeferredBatch: "handles", "Executables that a thread made for that destroys.";
    ThreadSlots: "handles", "Which thread has which slots; taken with the first read of a thread.";
    Closures: "handles", "The closures that the driver calls; taken wherever a call finds the context lost.";
    Peers: "handles", "The contexts to whose memory a context has access.";
    DropHook: "handles", "The hook for failures of drops.";
    CallbackHook: "handles", "The hook for panics in host functions.";
}

impl Rank {
    /// Checks the order for a wait that is not a lock: with this rank, and without holding it
    /// afterwards.
    #[inline]
    pub fn check(self) {
        held::check(self);
    }

    /// Whether a thread may hold several locks of this rank.
    #[cfg(debug_assertions)]
    fn nests(self) -> bool {
        Self::ALL.get(self as usize).is_some_and(|rank| rank.3)
    }

    /// The list as a page of Markdown.
    #[must_use]
    pub fn page() -> String {
        use core::fmt::Write;
        let mut page = String::from(
            "# Lock order\n\n\
             A thread takes a lock only if its rank is behind the ranks of all locks that the thread\n\
             holds. Debug builds check this and panic with the names of both locks\n\
             (`crates/handles/src/sync/rank.rs`, from which this page is written; after a change run\n\
             `CUDA_WRITE_LOCK_ORDER=1 cargo test -p cuda-handles --test lock_order`). Hooks\n\
             start with no ranks held: they may use the library from its beginning.\n\n\
             Not ranked: read and exclusive access of streams, whose guards may be forgotten and may\n\
             move between threads (only waits for them are checked), and the registries of raw\n\
             handles, under whose guards nothing is locked and nothing dropped.\n\n\
             | | lock | crate | why there |\n| --- | --- | --- | --- |\n",
        );
        for (index, (rank, owner, why, nests)) in Self::ALL.iter().enumerate() {
            let several = if *nests { " (several at once)" } else { "" };
            let _ = writeln!(page, "| {} | `{rank:?}`{several} | {owner} | {why} |", index + 1);
        }
        page
    }
}

/// The ranks that a thread holds, in debug builds.
#[cfg(debug_assertions)]
mod held {
    use core::cell::Cell;
    use core::marker::PhantomData;

    use super::Rank;

    /// More locks than a thread ever holds at once.
    const DEPTH: usize = 32;

    /// A copy on each use: neither an allocation nor a destructor, so that it works in every
    /// destructor and while a thread ends.
    #[derive(Clone, Copy)]
    struct Stack {
        len: usize,
        ranks: [Option<Rank>; DEPTH],
    }

    const EMPTY: Stack = Stack { len: 0, ranks: [None; DEPTH] };

    thread_local! {
        static STACK: Cell<Stack> = const { Cell::new(EMPTY) };
    }

    /// A rank that the thread holds until this is dropped.
    #[derive(Debug)]
    pub(crate) struct Held {
        rank: Rank,
        _thread: PhantomData<*mut ()>,
    }

    // SAFETY: sharing it shares nothing; only its drop touches the thread's stack.
    unsafe impl Sync for Held {}
    // SAFETY: dropped on another thread, it takes nothing off that thread's stack.
    unsafe impl Send for Held {}

    pub(super) fn check(rank: Rank) {
        let Stack { len, ranks } = STACK.get();
        let in_the_way = |held: &Rank| *held > rank || *held == rank && !rank.nests();
        if let Some(held) = ranks.into_iter().take(len).flatten().find(in_the_way) {
            out_of_order(rank, held);
        }
    }

    pub(crate) fn hold(rank: Rank) -> Held {
        let mut stack = STACK.get();
        if let Some(place) = stack.ranks.get_mut(stack.len) {
            *place = Some(rank);
            stack.len += 1;
            STACK.set(stack);
        }
        Held { rank, _thread: PhantomData }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let mut stack = STACK.get();
            // Mostly the last; guards may be dropped in any order.
            let last = stack.ranks.iter().take(stack.len).rposition(|rank| *rank == Some(self.rank));
            if let Some(index) = last {
                stack.ranks.copy_within(index + 1..stack.len, index);
                stack.len -= 1;
                STACK.set(stack);
            }
        }
    }

    /// Runs code of others with no ranks held: it may use this library from its beginning.
    pub(crate) fn outside<R>(run: impl FnOnce() -> R) -> R {
        struct Restore(Stack);
        impl Drop for Restore {
            fn drop(&mut self) {
                STACK.set(self.0);
            }
        }
        let _restore = Restore(STACK.replace(EMPTY));
        run()
    }

    #[cold]
    #[allow(clippy::panic)]
    fn out_of_order(rank: Rank, held: Rank) -> ! {
        let message = format!(
            "lock order: `{rank:?}` is taken while `{held:?}` is held, which comes later (docs/lock-order.md)"
        );
        if std::thread::panicking() {
            // A second panic would end the process without the message.
            eprintln!("{message}");
            std::process::abort();
        }
        panic!("{message}");
    }
}

/// Nothing is held and nothing checked.
#[cfg(not(debug_assertions))]
mod held {
    use super::Rank;

    #[derive(Debug)]
    pub(crate) struct Held;

    #[inline(always)]
    pub(super) fn check(_rank: Rank) {}

    #[inline(always)]
    pub(crate) fn hold(_rank: Rank) -> Held {
        Held
    }

    #[inline(always)]
    pub(crate) fn outside<R>(run: impl FnOnce() -> R) -> R {
        run()
    }
}

pub(crate) use held::{Held, hold, outside};

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::sync::Lock;

    fn message(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
        match std::panic::catch_unwind(run) {
            Ok(()) => "nothing was told".to_owned(),
            Err(payload) => crate::sync::panics::message(&*payload).into(),
        }
    }

    static FIRST: Lock<()> = Lock::new(Rank::Gate, ());
    static SECOND: Lock<()> = Lock::new(Rank::HostCache, ());

    #[test]
    fn locks_in_order_are_taken_and_given_back_in_any_order() {
        let first = FIRST.lock();
        let second = SECOND.lock();
        drop(first);
        drop(second);
        let _first = FIRST.lock();
    }

    #[test]
    fn two_locks_in_the_wrong_order_are_told() {
        let text = message(|| {
            let _second = SECOND.lock();
            let _first = FIRST.lock();
        });
        assert!(text.contains("`Gate` is taken while `HostCache` is held"), "{text}");
        // Nothing is held any more.
        let _first = FIRST.lock();
    }

    #[test]
    fn a_lock_that_its_thread_holds_is_told_rather_than_waited_for() {
        let text = message(|| {
            let _first = FIRST.lock();
            let _again = FIRST.lock();
        });
        assert!(text.contains("`Gate` is taken while `Gate` is held"), "{text}");
    }

    #[test]
    fn several_locks_of_a_rank_that_nests() {
        let (one, other) = (Lock::new(Rank::Event, ()), Lock::new(Rank::Event, ()));
        let _one = one.lock();
        let _other = other.lock();
    }

    #[test]
    fn code_of_others_starts_with_nothing_held() {
        let _second = SECOND.lock();
        outside(|| drop(FIRST.lock()));
        let text = message(|| Rank::Gate.check());
        assert!(text.contains("`HostCache` is held"), "{text}");
    }
}
