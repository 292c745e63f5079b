//! Contexts: the primary one of each device, created ones, and each thread's stack of current ones.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::driver;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, CONTEXT_IS_DESTROYED, INVALID_CONTEXT, INVALID_DEVICE};
use crate::sync::lock;

/// A living context. A primary context that is reset and retained again is another one under the
/// same handle.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) handle: u64,
    pub(crate) device: i32,
    pub(crate) id: u64,
    pub(crate) flags: AtomicU32,
    pub(crate) limits: Mutex<HashMap<u32, usize>>,
    /// The contexts whose memory it may use, by their ids.
    pub(crate) peers: Mutex<HashSet<u64>>,
    alive: AtomicBool,
}

impl Context {
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
}

/// A handle of a context: a primary one exists for good, whether the context lives or not.
#[derive(Debug)]
struct Slot {
    context: Option<Arc<Context>>,
    device: i32,
    primary: bool,
    retained: u32,
    flags: u32,
}

static CONTEXTS: Mutex<Slots<Slot>> = Mutex::new(Slots::new(Kind::Context));
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The contexts that a thread has pushed, the current one last. Not dropped with the thread, since
/// destructors that run while it ends may still call the driver; nothing is left of it all the
/// same, if it is not very deep then.
struct Stack {
    lowest: [u64; Self::FLAT],
    len: usize,
    deep: ManuallyDrop<Vec<u64>>,
}

impl Stack {
    /// Deeper than where even tests get that make each call fail that takes a context off.
    const FLAT: usize = 1024;

    const fn new() -> Self {
        Self { lowest: [0; Self::FLAT], len: 0, deep: ManuallyDrop::new(Vec::new()) }
    }

    fn last(&self) -> Option<u64> {
        self.deep.last().or_else(|| self.lowest.get(..self.len)?.last()).copied()
    }

    fn push(&mut self, handle: u64) {
        match self.lowest.get_mut(self.len) {
            Some(place) => {
                *place = handle;
                self.len += 1;
            }
            None => self.deep.push(handle),
        }
    }

    fn pop(&mut self) -> Option<u64> {
        let last = self.last();
        if self.deep.pop().is_none() {
            self.len = self.len.saturating_sub(1);
        } else if self.deep.is_empty() {
            *self.deep = Vec::new();
        }
        last
    }
}

thread_local! {
    static STACK: RefCell<Stack> = const { RefCell::new(Stack::new()) };
}

fn contexts() -> MutexGuard<'static, Slots<Slot>> {
    let mut slots = lock(&CONTEXTS);
    if slots.len() == 0 {
        for device in 0..driver::config().devices {
            let device = i32::try_from(device).unwrap_or(i32::MAX);
            slots.insert(Slot { context: None, device, primary: true, retained: 0, flags: 0 });
        }
    }
    slots
}

fn make(handle: u64, device: i32, flags: u32) -> Arc<Context> {
    Arc::new(Context {
        handle,
        device,
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        flags: AtomicU32::new(flags),
        limits: Mutex::default(),
        peers: Mutex::default(),
        alive: AtomicBool::new(true),
    })
}

/// The handle of the device's primary context.
fn primary_handle(device: i32) -> Answer<u64> {
    check_device(device)?;
    Ok(Slots::<Slot>::nth_handle(Kind::Context, device.unsigned_abs() as usize))
}

/// A device number that exists.
pub(crate) fn check_device(device: i32) -> Answer {
    let known = u32::try_from(device).is_ok_and(|device| device < driver::config().devices);
    if known { Ok(()) } else { Err(INVALID_DEVICE) }
}

/// `cuDevicePrimaryCtxRetain`.
pub(crate) fn retain_primary(device: i32) -> Answer<Arc<Context>> {
    let handle = primary_handle(device)?;
    let mut slots = contexts();
    let slot = slots.get_mut(handle).ok_or(INVALID_DEVICE)?;
    slot.retained += 1;
    let flags = slot.flags;
    Ok(Arc::clone(slot.context.get_or_insert_with(|| make(handle, device, flags))))
}

/// One reference less; the context that ends with it, if it was the last.
pub(crate) fn release_primary(device: i32) -> Answer<Option<Arc<Context>>> {
    let handle = primary_handle(device)?;
    let mut slots = contexts();
    let slot = slots.get_mut(handle).ok_or(INVALID_DEVICE)?;
    if slot.retained == 0 {
        return Err(INVALID_CONTEXT);
    }
    slot.retained -= 1;
    Ok(if slot.retained == 0 { end(slot) } else { None })
}

/// `cuDevicePrimaryCtxReset`: the context that ends with it, if there was one. References stay
/// counted.
pub(crate) fn reset_primary(device: i32) -> Answer<Option<Arc<Context>>> {
    let handle = primary_handle(device)?;
    let mut slots = contexts();
    Ok(slots.get_mut(handle).and_then(end))
}

fn end(slot: &mut Slot) -> Option<Arc<Context>> {
    let context = slot.context.take()?;
    context.alive.store(false, Ordering::Release);
    Some(context)
}

/// The flags that the primary context was given and whether it is active. What the active one was
/// given by itself does not count.
pub(crate) fn primary_state(device: i32) -> Answer<(u32, bool)> {
    let handle = primary_handle(device)?;
    let slots = contexts();
    let slot = slots.get(handle).ok_or(INVALID_DEVICE)?;
    Ok((slot.flags, slot.context.is_some()))
}

/// Flags for the primary context, now or when it becomes active.
pub(crate) fn set_primary_flags(device: i32, flags: u32) -> Answer {
    let handle = primary_handle(device)?;
    let mut slots = contexts();
    let slot = slots.get_mut(handle).ok_or(INVALID_DEVICE)?;
    slot.flags = flags;
    if let Some(context) = &slot.context {
        context.flags.store(flags, Ordering::Relaxed);
    }
    Ok(())
}

/// `cuCtxCreate`: a context, current on this thread.
pub(crate) fn create(device: i32, flags: u32) -> Answer<u64> {
    check_device(device)?;
    let handle = contexts().insert_with(|handle| Slot {
        context: Some(make(handle, device, flags)),
        device,
        primary: false,
        retained: 0,
        flags,
    });
    push(handle);
    Ok(handle)
}

/// `cuCtxDestroy`: the context that ends.
pub(crate) fn destroy(handle: u64) -> Answer<Arc<Context>> {
    let mut slots = contexts();
    match slots.get(handle) {
        None => return Err(INVALID_CONTEXT),
        Some(slot) if slot.primary => return Err(INVALID_CONTEXT),
        Some(_) => {}
    }
    let mut slot = slots.remove(handle).ok_or(INVALID_CONTEXT)?;
    drop(slots);
    STACK.with_borrow_mut(|stack| {
        if stack.last() == Some(handle) {
            stack.pop();
        }
    });
    end(&mut slot).ok_or(CONTEXT_IS_DESTROYED)
}

/// The context of a handle.
pub(crate) fn get(handle: u64) -> Answer<Arc<Context>> {
    let slots = contexts();
    let slot = slots.get(handle).ok_or(INVALID_CONTEXT)?;
    slot.context.clone().ok_or(CONTEXT_IS_DESTROYED)
}

/// Whether the handle names a context, living or a primary one at rest.
pub(crate) fn exists(handle: u64) -> bool {
    contexts().get(handle).is_some()
}

/// The handle that is current on this thread, or 0.
pub(crate) fn current_handle() -> u64 {
    STACK.with_borrow(|stack| stack.last().unwrap_or(0))
}

/// The device of the current context, whether that lives or not.
pub(crate) fn current_device() -> Option<i32> {
    match current_handle() {
        0 => None,
        handle => contexts().get(handle).map(|slot| slot.device),
    }
}

/// The current context.
pub(crate) fn current() -> Answer<Arc<Context>> {
    match current_handle() {
        0 => Err(INVALID_CONTEXT),
        handle => get(handle),
    }
}

pub(crate) fn push(handle: u64) {
    STACK.with_borrow_mut(|stack| stack.push(handle));
}

/// Takes the current context off the stack.
pub(crate) fn pop() -> Answer<u64> {
    STACK.with_borrow_mut(|stack| stack.pop()).ok_or(INVALID_CONTEXT)
}

/// Replaces the current context; 0 takes it off.
pub(crate) fn set_current(handle: u64) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}
