//! Streams: queues of work, each executed in order by a thread of its own.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::thread;
use std::time::Duration;

use crate::device::context::{self, Context};
use crate::device::loss::{self, Loss};
use crate::driver::abort;
use crate::driver::abort::crash;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, NOT_PERMITTED};
use crate::stream::attribute::Attributes;
use crate::stream::callback;
use crate::stream::default_stream;
use crate::stream::marker::Marker;
use crate::sync::{lock, read, wait, wait_while, write};

/// How a stream synchronises with the legacy stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// The null stream, which waits for all blocking streams, as they do for it.
    Legacy,
    Blocking,
    NonBlocking,
}

type Work = Box<dyn FnOnce() -> Result<(), Loss> + Send>;

struct Job {
    /// Work of other streams that must be done before.
    needs: Vec<Ticket>,
    /// Runs even if the device is lost.
    always: bool,
    work: Work,
    /// Publishes that this is done, at the same moment as the queue does.
    shows: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    pushed: u64,
    done: u64,
    has_worker: bool,
    /// The stream was destroyed: hardly any work comes after this, so no thread waits for it.
    is_ended: bool,
}

/// A stream.
pub(crate) struct Stream {
    /// 0 for the legacy stream and per-thread streams.
    pub(crate) handle: u64,
    pub(crate) id: u64,
    pub(crate) context: Arc<Context>,
    pub(crate) kind: StreamKind,
    pub(crate) priority: i32,
    pub(crate) attributes: Mutex<Attributes>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// A position in a stream's queue.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    stream: Arc<Stream>,
    number: u64,
}

impl Ticket {
    /// Waits until the stream reaches it.
    pub(crate) fn wait(&self) {
        let mut queue = self.stream.lock();
        while queue.done < self.number {
            queue = wait(&self.stream.changed, queue);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.stream.lock().done >= self.number
    }
}

static STREAMS: Mutex<Slots<Arc<Stream>>> = Mutex::new(Slots::new(Kind::Stream));
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// The legacy streams by the id of the context, created at the first use.
static LEGACY: Mutex<Option<HashMap<u64, Arc<Stream>>>> = Mutex::new(None);
/// The per-thread default streams.
static PER_THREAD: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
/// Destroyed streams whose work goes on. Waiting for a context or for all work includes it.
static DRAINING: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
/// What the streams of a context wait for, by the id of the context.
static AWAITED: Mutex<Vec<(u64, Arc<Marker>)>> = Mutex::new(Vec::new());
/// Held for writing by calls during which nothing can be enqueued, for reading while work is
/// enqueued.
static ENQUEUE_GATE: RwLock<()> = RwLock::new(());
/// How long an idle worker thread of a stream that was not destroyed lives.
const IDLE: Duration = Duration::from_secs(2);

thread_local! {
    static OWN: RefCell<HashMap<u64, Arc<Stream>>> = RefCell::default();
}

fn streams() -> MutexGuard<'static, Slots<Arc<Stream>>> {
    lock(&STREAMS)
}

fn draining() -> MutexGuard<'static, Vec<Arc<Stream>>> {
    lock(&DRAINING)
}

fn make(handle: u64, context: Arc<Context>, kind: StreamKind, priority: i32) -> Arc<Stream> {
    Arc::new(Stream {
        handle,
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        context,
        kind,
        priority,
        attributes: Mutex::default(),
        queue: Mutex::default(),
        changed: Condvar::new(),
    })
}

/// `cuStreamCreate`.
pub(crate) fn create(context: &Arc<Context>, kind: StreamKind, priority: i32) -> u64 {
    let handle = streams().insert_with(|handle| make(handle, Arc::clone(context), kind, priority));
    let made = streams().get(handle).cloned();
    made.iter().for_each(catch_up);
    handle
}

/// Removes the stream. Its work goes on.
pub(crate) fn destroy(handle: u64) -> Option<Arc<Stream>> {
    let mut created = streams();
    let stream = created.remove(handle)?;
    let mut draining = draining();
    draining.retain(|other| !other.last().is_done());
    draining.push(Arc::clone(&stream));
    drop((draining, created));
    stream.end();
    Some(stream)
}

/// The number of created streams that are not destroyed.
pub(crate) fn count() -> usize {
    streams().len()
}

fn legacy_of(context: &Arc<Context>) -> Arc<Stream> {
    let mut legacy = lock(&LEGACY);
    let all = legacy.get_or_insert_default();
    if let Some(stream) = all.get(&context.id) {
        return Arc::clone(stream);
    }
    let stream = make(0, Arc::clone(context), StreamKind::Legacy, 0);
    all.insert(context.id, Arc::clone(&stream));
    drop(legacy);
    catch_up(&stream);
    stream
}

fn used_legacy_of(context: &Context) -> Option<Arc<Stream>> {
    lock(&LEGACY).as_ref()?.get(&context.id).cloned()
}

fn own_of(context: &Arc<Context>) -> Arc<Stream> {
    OWN.with_borrow_mut(|own| {
        let stream = own.entry(context.id).or_insert_with(|| {
            let stream = make(0, Arc::clone(context), StreamKind::Blocking, 0);
            let mut all = lock(&PER_THREAD);
            // Streams of threads that have ended go once their work is done.
            all.retain(|other| Arc::strong_count(other) > 1 || !other.last().is_done());
            all.push(Arc::clone(&stream));
            drop(all);
            catch_up(&stream);
            stream
        });
        Arc::clone(stream)
    })
}

/// The stream of a handle; fails if its device is lost. 0 and 1 are the legacy stream of the
/// current context, 2 is the stream of this thread; inside callbacks there are none of these.
pub(crate) fn get(handle: u64) -> Answer<Arc<Stream>> {
    if handle <= 2 && callback::inside() {
        return Err(NOT_PERMITTED);
    }
    let stream = match handle {
        0 if default_stream::is_own() => own_of(&context::current()?),
        0 | 1 => legacy_of(&context::current()?),
        2 => own_of(&context::current()?),
        _ => match streams().get(handle) {
            Some(stream) => Arc::clone(stream),
            None => {
                crash(&format!("a call uses the stream {handle:#x}, which does not exist or was destroyed"))
            }
        },
    };
    if stream.context.ended_beside_current() {
        crash(&format!("a call uses the stream {handle:#x}, whose context ended when the device was lost"));
    }
    stream.context.check()?;
    Ok(stream)
}

/// All streams of a context.
fn of_context(context: &Context) -> Vec<Arc<Stream>> {
    let created = streams();
    let mut found: Vec<_> =
        created.values().filter(|stream| stream.context.id == context.id).cloned().collect();
    found.extend(draining().iter().filter(|stream| stream.context.id == context.id).cloned());
    drop(created);
    let own = lock(&PER_THREAD);
    found.extend(own.iter().filter(|stream| stream.context.id == context.id).cloned());
    drop(own);
    found.extend(used_legacy_of(context));
    found
}

/// Waits for all work of a context.
pub(crate) fn synchronize_context(context: &Context) -> Answer {
    ends_of(context).iter().for_each(Ticket::wait);
    loss::check_device(context.device)
}

/// The ends of the queues of a context.
pub(super) fn ends_of(context: &Context) -> Vec<Ticket> {
    of_context(context).iter().map(Stream::last).collect()
}

/// A stream of a context of which nobody has the handle. It goes once its work is done.
pub(super) fn make_unnamed(context: &Arc<Context>) -> Arc<Stream> {
    let stream = make(0, Arc::clone(context), StreamKind::NonBlocking, 0);
    draining().push(Arc::clone(&stream));
    stream
}

/// Makes all streams of a context wait for a marker, and those that are created before it is
/// reached.
pub(super) fn hold_context(context: &Context, marker: &Arc<Marker>) {
    lock(&AWAITED).push((context.id, Arc::clone(marker)));
    for stream in of_context(context) {
        let marker = Arc::clone(marker);
        stream.push_always(move || marker.wait());
    }
}

/// Makes a new stream wait for what its context waits for.
fn catch_up(stream: &Arc<Stream>) {
    let mut awaited = lock(&AWAITED);
    awaited.retain(|(_, marker)| marker.time().is_none());
    let own: Vec<_> = awaited.iter().filter(|(context, _)| *context == stream.context.id).cloned().collect();
    drop(awaited);
    for (_, marker) in own {
        stream.push_always(move || marker.wait());
    }
}

/// Waits for all work of all contexts and runs `act`, while nothing can be enqueued. Calls that
/// change mappings do this.
pub(crate) fn while_idle<R>(act: impl FnOnce() -> R) -> R {
    if callback::inside() {
        abort::hang("a host function waits for all work, and so for itself");
    }
    let _stall = write(&ENQUEUE_GATE);
    let created = streams();
    let mut all: Vec<_> = created.values().cloned().collect();
    all.extend(draining().iter().cloned());
    drop(created);
    all.extend(lock(&PER_THREAD).iter().cloned());
    let legacy = lock(&LEGACY);
    all.extend(legacy.iter().flat_map(HashMap::values).cloned());
    drop(legacy);
    for ticket in all.iter().map(Stream::last) {
        ticket.wait();
    }
    act()
}

/// Removes the streams of a context that has ended.
pub(crate) fn forget_context(context: &Context) {
    let mut all = streams();
    let created: Vec<u64> =
        all.values().filter(|stream| stream.context.id == context.id).map(|stream| stream.handle).collect();
    let ended: Vec<_> = created.into_iter().filter_map(|handle| all.remove(handle)).collect();
    drop(all);
    ended.iter().for_each(|stream| stream.end());
    draining().retain(|stream| stream.context.id != context.id);
    if let Some(legacy) = lock(&LEGACY).as_mut() {
        legacy.remove(&context.id);
    }
    lock(&PER_THREAD).retain(|own| own.context.id != context.id);
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// The current end of the queue.
    pub(crate) fn last(self: &Arc<Self>) -> Ticket {
        Ticket { stream: Arc::clone(self), number: self.lock().pushed }
    }

    /// The work of other streams that new work here must wait for.
    fn implicit_needs(&self) -> Vec<Ticket> {
        let others = match self.kind {
            StreamKind::NonBlocking => return Vec::new(),
            StreamKind::Blocking => used_legacy_of(&self.context).into_iter().collect(),
            StreamKind::Legacy => of_context(&self.context),
        };
        let wanted =
            others.iter().filter(|other| other.id != self.id && other.kind != StreamKind::NonBlocking);
        wanted.map(Stream::last).filter(|ticket| !ticket.is_done()).collect()
    }

    /// Enqueues work. It is skipped if the device is lost.
    pub(crate) fn push(self: &Arc<Self>, work: impl FnOnce() -> Result<(), Loss> + Send + 'static) -> Ticket {
        self.add(false, Box::new(work), None)
    }

    /// Enqueues work that runs even if the device is lost, so that nobody waits for ever.
    pub(crate) fn push_always(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) -> Ticket {
        self.add(
            true,
            Box::new(move || {
                work();
                Ok(())
            }),
            None,
        )
    }

    /// Enqueues a marker. `shows` publishes that the stream has reached it, under the lock of the
    /// queue: a thread that sees one of the two sees the other.
    pub(crate) fn push_marker(self: &Arc<Self>, shows: impl FnOnce() + Send + 'static) -> Ticket {
        self.add(true, Box::new(|| Ok(())), Some(Box::new(shows)))
    }

    fn add(self: &Arc<Self>, always: bool, work: Work, shows: Option<Box<dyn FnOnce() + Send>>) -> Ticket {
        let _no_stall = read(&ENQUEUE_GATE);
        let needs = self.implicit_needs();
        let mut queue = self.lock();
        queue.jobs.push_back(Job { needs, always, work, shows });
        queue.pushed += 1;
        let number = queue.pushed;
        if queue.has_worker {
            drop(queue);
            self.changed.notify_all();
        } else {
            queue.has_worker = true;
            drop(queue);
            self.start_worker();
        }
        Ticket { stream: Arc::clone(self), number }
    }

    fn start_worker(self: &Arc<Self>) {
        let stream = Arc::clone(self);
        let name = format!("cuda-soft stream {}", self.id);
        let spawned = thread::Builder::new().name(name).spawn(move || stream.work());
        if spawned.is_err() {
            // Without a thread the work runs here, in order: slower, but correct.
            self.work_until_empty();
        }
    }

    fn work(self: &Arc<Self>) {
        loop {
            self.work_until_empty();
            let queue = self.lock();
            let is_idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.is_ended;
            let (mut queue, is_late) = wait_while(&self.changed, queue, IDLE, is_idle);
            if (is_late || queue.is_ended) && queue.jobs.is_empty() {
                queue.has_worker = false;
                return;
            }
        }
    }

    /// Lets the worker thread go once all work is done.
    fn end(&self) {
        self.lock().is_ended = true;
        self.changed.notify_all();
    }

    fn work_until_empty(&self) {
        loop {
            let Some(job) = self.lock().jobs.pop_front() else { return };
            for ticket in &job.needs {
                ticket.wait();
            }
            if job.always || !loss::is_lost(self.context.device) {
                let before = callback::set_stream(self.id);
                if let Err(loss) = (job.work)() {
                    loss::set(self.context.device, loss);
                }
                callback::set_stream(before);
            } else {
                drop(job.work);
            }
            let mut queue = self.lock();
            queue.done += 1;
            if let Some(show) = job.shows {
                show();
            }
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Waits for all work so far; on the legacy stream, for the work of all blocking streams, too.
    pub(crate) fn synchronize(self: &Arc<Self>) -> Answer {
        match self.kind {
            StreamKind::Legacy => self.push_always(|| {}).wait(),
            StreamKind::Blocking | StreamKind::NonBlocking => self.last().wait(),
        }
        loss::check_device(self.context.device)
    }

    /// Whether all work so far is done.
    pub(crate) fn is_idle(self: &Arc<Self>) -> bool {
        self.last().is_done() && (self.kind != StreamKind::Legacy || self.implicit_needs().is_empty())
    }
}
