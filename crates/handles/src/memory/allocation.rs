//! Owners of memory that the device can use, and when a stream may.

use core::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_sys::{CUdeviceptr, CUresult, Call};

use super::graph_life::{Freeing, GraphMemory};
use super::pool::MemPool;
use super::space::MemorySpace;
use super::users::Users;
use crate::context::{Context, capture_mode};
use crate::destroy::{self, Kept, Node};
use crate::error::{Error, MemoryKind, Result, WrongContext};
use crate::raw_stream::RawStream;
use crate::reclaim::host_cache;
use crate::reclaim::{self, Free, Freed, FreedWith, HostBlock, HostKind};
use crate::stream::Stream;
use crate::sync::process;

/// Used off its home: freeing it takes a fence.
const SHARED: u64 = 1;
/// Its allocation point has been reached: no stream has to wait for it.
const SETTLED: u64 = 2;
/// Above the bits is the number of the stream that was made ready last.
const LAST: u32 = 2;

/// Memory that the device can use, of any [kind](MemoryKind).
///
/// Pooled memory has a **home**: the stream in whose order it was allocated and first written, and
/// will be freed. The home may use it at once. Another stream has to wait once until the home has
/// reached the allocation, unless the host has seen that already (*settled*:
/// [`Stream::synchronize_blocking`] on the home does it). Memory of the other kinds has no home and
/// is settled from the beginning.
///
/// Whoever enqueues work that uses the memory calls [`ready_on`](Self::ready_on) first; everything
/// safe in these crates does.
pub struct Allocation {
    address: CUdeviceptr,
    bytes: usize,
    /// The home's number, which no stream has if there is no home.
    home_id: u64,
    /// The home's count when the memory had been allocated and first written.
    ticket: u64,
    state: AtomicU64,
    belongs: Belongs,
    backing: Backing,
    /// The reaper's order to free it, made when it is first shared: the drop allocates nothing
    /// then.
    order: OnceLock<Box<Node<Free>>>,
}

/// What it belongs to. A home has the context; to hold that as well would be one count of
/// references more for every buffer.
enum Belongs {
    Home(Stream),
    Context(Context),
}

/// What is behind it.
enum Backing {
    Pooled(Option<MemPool>),
    Plain,
    Host(HostMemory),
    Foreign(Kept),
    /// A variable of a library, which is its owner.
    Variable {
        owner: Kept,
        managed: bool,
    },
    Imported(MemPool),
    /// That of an allocation node, which its graph alone uses and frees.
    Graph(Arc<GraphMemory>),
    /// What a launch left of the memory of an allocation node.
    Output(Arc<GraphMemory>),
}

struct HostMemory {
    /// `None` if it has no bytes.
    block: Option<HostBlock>,
    kind: HostKind,
    /// Whether somebody of the host looks at it.
    viewed: AtomicBool,
    /// The streams that were made ready for it since it was last unique.
    users: Mutex<Users>,
}

impl Allocation {
    /// Allocates pooled memory on a stream, from a pool or else the device's own. Nothing is
    /// allocated for 0 bytes.
    pub(super) fn pooled(home: &Stream, pool: Option<&MemPool>, bytes: usize) -> Result<Self> {
        home.context().ensure_usable()?;
        let address = if bytes == 0 { 0 } else { allocate_on(home, pool, bytes)? };
        if let Some(pool) = pool.filter(|_| bytes > 0) {
            pool.expect_frees_on(home);
        }
        let backing = Backing::Pooled(pool.cloned());
        let mut allocation = Self::with(Belongs::Home(home.clone()), address, bytes, backing);
        allocation.stamp();
        Ok(allocation)
    }

    /// Allocates plain device memory. Nothing is allocated for 0 bytes.
    pub(super) fn plain(context: &Context, bytes: usize) -> Result<Self> {
        context.ensure_usable()?;
        let address = if bytes == 0 { 0 } else { allocate_plain(context, bytes)? };
        Ok(Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Plain))
    }

    /// Wraps host memory that is nobody else's.
    pub(super) fn host(context: &Context, kind: HostKind, block: Option<HostBlock>, bytes: usize) -> Self {
        let address = block.as_ref().map_or(0, |block| block.start.get().expose_provenance() as CUdeviceptr);
        let address = if bytes == 0 { 0 } else { address };
        let memory = HostMemory { block, kind, viewed: AtomicBool::new(false), users: Mutex::default() };
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Host(memory))
    }

    /// Wraps somebody else's memory.
    pub(super) fn foreign(context: &Context, address: CUdeviceptr, bytes: usize, owner: Kept) -> Self {
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Foreign(owner))
    }

    /// Wraps a variable of a library.
    pub(crate) fn variable(
        context: &Context,
        address: CUdeviceptr,
        bytes: usize,
        managed: bool,
        owner: Kept,
    ) -> Self {
        let backing = Backing::Variable { owner, managed };
        Self::with(Belongs::Context(context.clone()), address, bytes, backing)
    }

    /// Wraps memory that was imported from another process into `pool`.
    pub(crate) fn imported(pool: &MemPool, address: CUdeviceptr, bytes: usize) -> Self {
        let context = pool.context().clone();
        Self::with(Belongs::Context(context), address, bytes, Backing::Imported(pool.clone()))
    }

    /// Memory of an allocation node.
    pub(super) fn of_graph(
        context: &Context,
        address: CUdeviceptr,
        bytes: usize,
        memory: Arc<GraphMemory>,
    ) -> Self {
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Graph(memory))
    }

    /// What a launch on `home`, enqueued just now, left of the memory of an allocation node.
    pub(super) fn output(node: &Self, memory: &Arc<GraphMemory>, home: &Stream) -> Self {
        let (address, bytes) = (node.address, node.bytes);
        let backing = Backing::Output(Arc::clone(memory));
        let mut output = Self::with(Belongs::Home(home.clone()), address, bytes, backing);
        output.stamp();
        output
    }

    /// What is known of it if it is that of an allocation node.
    #[inline]
    pub(super) fn graph_memory(&self) -> Option<&Arc<GraphMemory>> {
        match &self.backing {
            Backing::Graph(memory) => Some(memory),
            _ => None,
        }
    }

    /// Does not free it: somebody else does.
    pub(super) fn forget(&mut self) {
        self.bytes = 0;
    }

    fn with(belongs: Belongs, address: CUdeviceptr, bytes: usize, backing: Backing) -> Self {
        let (home_id, state) = match &belongs {
            Belongs::Home(home) => (home.id(), 0),
            Belongs::Context(_) => (0, SETTLED),
        };
        Self {
            address,
            bytes,
            home_id,
            ticket: 0,
            state: AtomicU64::new(state),
            belongs,
            backing,
            order: OnceLock::new(),
        }
    }

    /// Counts what was enqueued on the home just now as part of the allocation.
    pub(super) fn stamp(&mut self) {
        match &self.belongs {
            Belongs::Home(home) if self.bytes > 0 => self.ticket = home.ticket(),
            _ => *self.state.get_mut() = SETTLED,
        }
    }

    /// Where it starts; 0 if it has no bytes.
    #[must_use]
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What kind of memory it is.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        match &self.backing {
            Backing::Pooled(_) => MemoryKind::Pooled,
            Backing::Plain => MemoryKind::Plain,
            Backing::Host(HostMemory { kind: HostKind::Pinned, .. }) => MemoryKind::Pinned,
            Backing::Host(HostMemory { kind: HostKind::Registered, .. }) => MemoryKind::Registered,
            Backing::Host(HostMemory { kind: HostKind::Managed, .. }) => MemoryKind::Managed,
            Backing::Foreign(_) => MemoryKind::Foreign,
            Backing::Variable { managed: false, .. } => MemoryKind::Global,
            Backing::Variable { managed: true, .. } => MemoryKind::Managed,
            Backing::Imported(_) => MemoryKind::Imported,
            Backing::Graph(_) | Backing::Output(_) => MemoryKind::Graph,
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn space(&self) -> MemorySpace {
        match &self.backing {
            Backing::Graph(memory) | Backing::Output(memory) => memory.space(),
            _ => self.kind().space(),
        }
    }

    /// The context it belongs to.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        match &self.belongs {
            Belongs::Home(home) => home.context(),
            Belongs::Context(context) => context,
        }
    }

    /// The stream in whose order it was allocated and will be freed; pooled memory has one.
    #[must_use]
    #[inline]
    pub fn home(&self) -> Option<&Stream> {
        match &self.belongs {
            Belongs::Home(home) => Some(home),
            Belongs::Context(_) => None,
        }
    }

    /// The pool it came from, unless that is the one that the device had at the time.
    #[must_use]
    pub fn pool(&self) -> Option<&MemPool> {
        match &self.backing {
            Backing::Pooled(pool) => pool.as_ref(),
            Backing::Imported(pool) => Some(pool),
            _ => None,
        }
    }

    /// Whether the host has seen that the allocation point was reached. No driver call.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.load(Ordering::Acquire) & SETTLED != 0
            || self.home().is_none_or(|home| home.has_synced(self.ticket))
    }

    /// Whether it was made ready for a stream other than its home; memory without one is shared by
    /// its first use.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHARED != 0
    }

    /// Makes the memory usable by what is enqueued on `stream` next, and lets it be freed only
    /// after that. On the home, and wherever it was called before for a settled allocation or for
    /// this stream last, it costs a few loads and no driver call; else `stream` is made to wait for
    /// the home, once.
    ///
    /// # Errors
    /// `stream` is of another context; it would have to wait and one of the two is capturing; or
    /// what the driver answers.
    #[inline]
    pub fn ready_on(&self, stream: &Stream) -> Result<()> {
        if stream.id() == self.home_id {
            return Ok(());
        }
        let state = self.state.load(Ordering::Acquire);
        if state >> LAST == stream.id() {
            return Ok(());
        }
        self.share_with(stream, state)
    }

    /// As [`ready_on`](Self::ready_on), for a copy between devices: `stream` may be of another
    /// context.
    pub(super) fn ready_across(&self, stream: &Stream) -> Result<()> {
        if self.context().is_same(stream.context()) {
            return self.ready_on(stream);
        }
        self.context().ensure_usable()?;
        reclaim::expect_across();
        self.use_on(stream, self.state.load(Ordering::Acquire))
    }

    fn share_with(&self, stream: &Stream, state: u64) -> Result<()> {
        if !self.context().is_same(stream.context()) {
            return Err(self.elsewhere(stream));
        }
        self.use_on(stream, state)
    }

    #[cold]
    fn elsewhere(&self, stream: &Stream) -> Error {
        let (found, needed) = (self.context(), stream.context());
        WrongContext::new("the memory", found, "the stream", needed).advise(WrongContext::MEMORY).into()
    }

    /// As [`ready_on`](Self::ready_on), for one call that is over when the result is dropped. So of
    /// host memory it is known behind which point of the stream the use lies.
    #[inline]
    pub(super) fn ready_once<'a>(&'a self, stream: &'a Stream) -> Result<Once<'a>> {
        match &self.backing {
            Backing::Host(memory) if self.bytes > 0 => self.begin_use(memory, stream),
            _ => self.ready_on(stream).map(|()| Once(None)),
        }
    }

    fn begin_use<'a>(&'a self, memory: &'a HostMemory, stream: &'a Stream) -> Result<Once<'a>> {
        if !self.context().is_same(stream.context()) {
            return Err(self.elsewhere(stream));
        }
        stream.context().ensure_usable()?;
        memory.begin(stream.raw_stream());
        let once = Once(Some((memory, stream)));
        reclaim::join(stream.raw_stream());
        self.order.get_or_init(|| self.order());
        self.state.fetch_or(SHARED, Ordering::AcqRel);
        Ok(once)
    }

    fn use_on(&self, stream: &Stream, state: u64) -> Result<()> {
        const BOTH: u64 = SHARED | SETTLED;
        if self.bytes == 0 {
            return Ok(());
        }
        if matches!(self.backing, Backing::Graph(_)) {
            return Err(Error::MemoryOfGraph);
        }
        // Before the users of host memory are locked.
        stream.context().ensure_usable()?;
        match &self.backing {
            Backing::Host(memory) => memory.add(stream.raw_stream()),
            _ if state & BOTH == BOTH && stream.raw_stream().is_in_fence() => return Ok(()),
            _ => {}
        }
        reclaim::join(stream.raw_stream());
        self.order.get_or_init(|| self.order());
        let settled = self.is_settled();
        if let Some(home) = self.home()
            && !settled
        {
            stream.wait_for_ticket(home, self.ticket)?;
        }
        let bits = SHARED | if settled { SETTLED } else { 0 };
        let mark = |old: u64| Some(stream.id() << LAST | old & BOTH | bits);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, mark);
        Ok(())
    }

    /// Where the host finds it, if it can.
    pub(super) fn host_start(&self) -> Option<*mut core::ffi::c_void> {
        match &self.backing {
            Backing::Host(memory) => memory.block.as_ref().map(|block| block.start.get()),
            _ => None,
        }
    }

    /// The block of host memory, for its end.
    pub(super) fn host_block(&self) -> Option<&HostBlock> {
        match &self.backing {
            Backing::Host(memory) => memory.block.as_ref(),
            _ => None,
        }
    }

    /// Takes the block of host memory, which somebody else ends, and all that names it. The memory
    /// must not be shared.
    pub(super) fn take_host_block(&mut self) -> Option<HostBlock> {
        // It may have been shared once.
        drop(self.order.take());
        self.forget();
        match &mut self.backing {
            Backing::Host(memory) => memory.block.take(),
            _ => None,
        }
    }

    /// Whether somebody of the host looks at it; host memory has this.
    pub(super) fn view_flag(&self) -> Option<&AtomicBool> {
        match &self.backing {
            Backing::Host(memory) => Some(&memory.viewed),
            _ => None,
        }
    }

    /// Makes host memory unshared again if no work can be using it: every stream that was made
    /// ready for it is idle.
    pub(super) fn unshare(&mut self) -> bool {
        let is_usable = self.context().ensure_usable().is_ok();
        let Backing::Host(memory) = &mut self.backing else { return false };
        let users = memory.users.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !is_usable || !users.are_over() {
            return false;
        }
        users.clear();
        *self.state.get_mut() = SETTLED;
        true
    }

    /// Makes host memory unshared again, after a wait for all that is enqueued on the streams that
    /// use it.
    pub(super) fn unshare_blocking(&mut self) -> Result<()> {
        self.context().ensure_usable()?;
        let Backing::Host(memory) = &mut self.backing else { return Err(Error::StillShared) };
        let users = memory.users.get_mut().unwrap_or_else(PoisonError::into_inner);
        users.wait()?;
        users.clear();
        *self.state.get_mut() = SETTLED;
        Ok(())
    }
}

/// One use of memory, over when this is dropped; see [`Allocation::ready_once`].
#[must_use]
pub(super) struct Once<'a>(Option<(&'a HostMemory, &'a Stream)>);

impl Drop for Once<'_> {
    fn drop(&mut self) {
        if let Some((memory, stream)) = self.0 {
            // Behind the call, whatever came of it.
            memory.users().end(stream.id(), stream.ticket());
        }
    }
}

impl HostMemory {
    fn begin(&self, stream: &Arc<RawStream>) {
        let others = self.users().begin(stream);
        others.into_iter().for_each(|others| self.forget_gone(others));
    }

    fn add(&self, stream: &Arc<RawStream>) {
        let others = self.users().add(stream);
        others.into_iter().for_each(|others| self.forget_gone(others));
    }

    /// Forgets those whose handles are gone and whose work is done.
    fn forget_gone(&self, others: Vec<Arc<RawStream>>) {
        // Without the lock: the driver is asked, which may be waiting for a host function that
        // wants the lock. Streams whose handles are gone can only become idle.
        let over: Vec<_> = others.into_iter().filter(|user| user.is_closed() && user.is_idle()).collect();
        // The last reference destroys the stream: not under the lock either.
        let forgotten = self.users().forget(&over);
        drop((over, forgotten));
    }

    /// Under a lock that nobody holds over a driver call.
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if !destroy::may_call(self.context()) {
            self.leave();
            return;
        }
        match (&self.backing, *self.state.get_mut() & SHARED != 0) {
            (Backing::Pooled(pool), false) if self.free_at_home(pool.as_ref()) => {}
            (Backing::Graph(_), _) => {}
            (Backing::Output(_), false) if self.free_output_at_home() => self.end_life(),
            (Backing::Host(HostMemory { block: Some(block), .. }), false) => host_cache::give(block.clone()),
            (Backing::Foreign(_) | Backing::Variable { .. }, false) => {}
            _ => self.free_later(),
        }
    }
}

impl Allocation {
    /// At the end of the process the device may still be using what other code owns.
    #[cold]
    fn leave(&self) {
        if let Backing::Foreign(owner) | Backing::Variable { owner, .. } = &self.backing
            && self.is_shared()
            && process::is_exiting()
        {
            core::mem::forget(owner.clone());
        }
    }

    /// Frees it in the order of its home. False if that has to be left to the reaper.
    fn free_at_home(&self, pool: Option<&MemPool>) -> bool {
        let Some(home) = self.home() else { return false };
        let context = home.context();
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the memory is ours, and only its home has used it: every use is in front of this
        // point.
        let code = unsafe { context.driver().cuMemFreeAsync(self.address, home.as_raw()) };
        drop(mode);
        if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
            return false;
        }
        match context.check(Call::cuMemFreeAsync, code) {
            Err(Error::Driver { code, .. }) if home.is_capturing() || is_of_capture(code) => return false,
            Err(error) => {
                if let Backing::Output(memory) = &self.backing {
                    memory.note_failure(&error);
                }
                destroy::report("freeing a buffer", error);
            }
            Ok(()) => {}
        }
        if let Some(pool) = pool {
            pool.note_free(home);
        }
        true
    }

    /// [`free_at_home`](Self::free_at_home) for what a launch left. While its home captures, the
    /// driver would take the free for one of the graph that comes of that, as it does where memory
    /// of one graph is freed by another.
    fn free_output_at_home(&self) -> bool {
        let Some(home) = self.home() else { return false };
        let Ok(_turn) = home.raw_stream().enqueue() else { return false };
        home.refuse_capture("freeing what a launch left").is_ok() && self.free_at_home(None)
    }

    fn order(&self) -> Box<Node<Free>> {
        let pool = |pool: &MemPool| {
            pool.expect_fenced_frees();
            Arc::new(pool.clone()) as Arc<dyn FreedWith>
        };
        let device = |pool| Freed::Device { address: self.address, keep: pool };
        let what = match &self.backing {
            Backing::Pooled(own) => device(own.as_ref().map(pool)),
            Backing::Imported(own) => device(Some(pool(own))),
            Backing::Host(HostMemory { block: Some(block), .. }) => Freed::Host(block.clone()),
            Backing::Foreign(owner) | Backing::Variable { owner, .. } => Freed::Owned(owner.clone()),
            Backing::Output(memory) => device(Some(Arc::new(Freeing(Arc::clone(memory))))),
            Backing::Plain | Backing::Host(_) | Backing::Graph(_) => device(None),
        };
        let home = self.home().map(|home| Arc::clone(home.raw_stream()));
        Node::new(Free { context: self.context().clone(), home, what })
    }

    /// The free was called: the next launch may come.
    fn end_life(&mut self) {
        // Before that, since it says when it goes that the reaper is through.
        drop(self.order.take());
        if let Backing::Output(memory) = &self.backing {
            memory.freed();
        }
    }

    fn free_later(&mut self) {
        let order = self.order.take().unwrap_or_else(|| self.order());
        if let Backing::Output(memory) = &self.backing {
            memory.queued();
        }
        reclaim::push_free(order);
    }
}

/// Whether a free may have been refused with this because its stream was capturing then, whether or
/// not it still is: a capture can end, or begin anew, before anybody asks.
fn is_of_capture(code: CUresult) -> bool {
    let first = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0;
    let last = CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0;
    matches!(code, CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_ILLEGAL_STATE)
        || (first..=last).contains(&code.0)
}

impl fmt::Debug for Allocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Allocation")
            .field("kind", &self.kind())
            .field("address", &format_args!("{:#x}", self.address))
            .field("bytes", &self.bytes)
            .field("home", &self.home().map(Stream::id))
            .field("settled", &self.is_settled())
            .field("shared", &self.is_shared())
            .finish()
    }
}

/// The driver's allocation in a stream's order. When memory is short, what waits to be freed is
/// freed first, and the stream waits for that.
fn allocate_on(home: &Stream, pool: Option<&MemPool>, bytes: usize) -> Result<CUdeviceptr> {
    let driver = home.context().driver();
    let mut address = 0;
    // The turn is for one attempt: freeing in between needs it as well.
    let attempt = || -> Result<CUresult> {
        let _turn = home.raw_stream().enqueue()?;
        home.refuse_capture("allocating a buffer")?;
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: stream and pool are alive and the out pointer valid.
        let code = unsafe {
            match pool {
                Some(pool) => {
                    driver.cuMemAllocFromPoolAsync(&raw mut address, bytes, pool.as_raw(), home.as_raw())
                }
                None => driver.cuMemAllocAsync(&raw mut address, bytes, home.as_raw()),
            }
        };
        Ok(code)
    };
    let code = insist(attempt, || reclaim::wait_for_frees(home.raw_stream()))?;
    let call = match pool {
        Some(_) => Call::cuMemAllocFromPoolAsync,
        None => Call::cuMemAllocAsync,
    };
    match (allocated(home.context(), call, code, bytes), pool.and_then(MemPool::max_bytes)) {
        // The device has what the pool may not take.
        (Err(Error::OutOfMemory { asked, free, .. }), Some(limit)) if free >= asked => {
            Err(Error::PoolFull { asked, limit })
        }
        (outcome, _) => outcome.map(|()| address),
    }
}

/// The driver's allocation for all streams.
fn allocate_plain(context: &Context, bytes: usize) -> Result<CUdeviceptr> {
    let mut address = 0;
    let attempt = || -> Result<CUresult> {
        let _current = context.enter()?;
        let _mode = capture_mode::relaxed(context.driver());
        // SAFETY: the context is current and the out pointer valid.
        Ok(unsafe { context.driver().cuMemAlloc(&raw mut address, bytes) })
    };
    let code = insist(attempt, || ())?;
    allocated(context, Call::cuMemAlloc, code, bytes)?;
    Ok(address)
}

/// Allocates; where memory is short, once more when what waits is freed, and last when the
/// executables are gone in whose end the driver waits for the device.
fn insist(mut attempt: impl FnMut() -> Result<CUresult>, freed: impl Fn()) -> Result<CUresult> {
    const SHORT: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let mut code = attempt()?;
    if code == SHORT {
        reclaim::free_pending();
        freed();
        code = attempt()?;
    }
    if code == SHORT && reclaim::make_room() {
        freed();
        code = attempt()?;
    }
    Ok(code)
}

/// The result of an allocation, with the numbers if memory is short.
fn allocated(context: &Context, call: Call, code: CUresult, bytes: usize) -> Result<()> {
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let (free, total) = context.memory_info().unwrap_or((0, 0));
        return Err(Error::OutOfMemory { asked: bytes, free, total });
    }
    context.check(call, code)
}
