//! Contexts: primary ones, created ones, and the stack of current contexts of each thread.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::loss;
use crate::driver;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, CONTEXT_IS_DESTROYED, INVALID_CONTEXT, INVALID_DEVICE};
use crate::ptx::Heap;
use crate::sync::lock;

/// A live context. A primary context that is reset and retained again is another context under the
/// same handle.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) handle: u64,
    pub(crate) device: i32,
    pub(crate) id: u64,
    pub(crate) flags: AtomicU32,
    pub(crate) limits: Mutex<HashMap<u32, usize>>,
    /// The heap that its kernels allocate from.
    pub(crate) heap: Heap,
    /// The ids of the contexts whose memory it may access.
    pub(crate) peers: Mutex<HashSet<u64>>,
    alive: AtomicBool,
}

impl Context {
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Fails if the device is lost. A context that ended since has a code of its own.
    pub(crate) fn check(&self) -> Answer {
        if self.is_alive() { loss::check_device(self.device) } else { Err(CONTEXT_IS_DESTROYED) }
    }

    /// Whether it ended, and the current context of this thread, if any, is not one that ended with
    /// its device.
    pub(crate) fn ended_out_of_sight(&self) -> bool {
        !self.is_alive() && !is_current_ended_lost()
    }

    /// Whether it ended, and this thread has another current context that did not.
    pub(crate) fn ended_beside_current(&self) -> bool {
        current_handle() != 0 && self.ended_out_of_sight()
    }
}

/// The slot of a context handle. The slot of a primary context exists whether the context is active
/// or not.
#[derive(Debug)]
struct Slot {
    context: Option<Arc<Context>>,
    device: i32,
    primary: bool,
    retained: u32,
    flags: u32,
    /// Whether it is a primary context that ended on a lost device. No other one takes its place.
    ended_lost: bool,
}

static CONTEXTS: Mutex<Slots<Slot>> = Mutex::new(Slots::new(Kind::Context));
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The contexts that a thread has pushed, the current one last. It is not dropped with the thread,
/// since destructors that run while the thread ends may still call the driver. Nothing leaks unless
/// the stack is deeper than [`FLAT`](Self::FLAT) then.
struct Stack {
    lowest: [u64; Self::FLAT],
    len: usize,
    deep: ManuallyDrop<Vec<u64>>,
}

impl Stack {
    /// Deeper than any test gets, even those that make the calls fail that pop a context.
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
            slots.insert(Slot {
                context: None,
                device,
                primary: true,
                retained: 0,
                flags: 0,
                ended_lost: false,
            });
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
        heap: Heap::default(),
        peers: Mutex::default(),
        alive: AtomicBool::new(true),
    })
}

/// The handle of the device's primary context.
fn primary_handle(device: i32) -> Answer<u64> {
    check_device(device)?;
    Ok(Slots::<Slot>::nth_handle(Kind::Context, device.unsigned_abs() as usize))
}

/// Fails unless the device exists.
pub(crate) fn check_device(device: i32) -> Answer {
    let known = u32::try_from(device).is_ok_and(|device| device < driver::config().devices);
    if known { Ok(()) } else { Err(INVALID_DEVICE) }
}

/// `cuDevicePrimaryCtxRetain`: returns the handle. On a lost device only an active context can be
/// retained.
pub(crate) fn retain_primary(device: i32) -> Answer<u64> {
    let (handle, lost) = (primary_handle(device)?, loss::check_device(device));
    let mut slots = contexts();
    let slot = slots.get_mut(handle).ok_or(INVALID_DEVICE)?;
    if slot.context.is_none() {
        lost?;
        slot.context = Some(make(handle, device, slot.flags));
    }
    slot.retained += 1;
    Ok(handle)
}

/// Releases one reference; returns the context if that was the last one.
pub(crate) fn release_primary(device: i32) -> Answer<Option<Arc<Context>>> {
    let (handle, is_lost) = (primary_handle(device)?, loss::is_lost(device));
    let mut slots = contexts();
    let slot = slots.get_mut(handle).ok_or(INVALID_DEVICE)?;
    if slot.retained == 0 {
        return Err(INVALID_CONTEXT);
    }
    slot.retained -= 1;
    Ok(if slot.retained == 0 { end(slot, is_lost) } else { None })
}

/// `cuDevicePrimaryCtxReset`: returns the context that ends, if it was active. References stay
/// counted.
pub(crate) fn reset_primary(device: i32) -> Answer<Option<Arc<Context>>> {
    let (handle, is_lost) = (primary_handle(device)?, loss::is_lost(device));
    let mut slots = contexts();
    Ok(slots.get_mut(handle).and_then(|slot| end(slot, is_lost)))
}

fn end(slot: &mut Slot, is_lost: bool) -> Option<Arc<Context>> {
    let context = slot.context.take()?;
    slot.ended_lost = slot.primary && is_lost;
    context.alive.store(false, Ordering::Release);
    Some(context)
}

/// The flags set for the primary context and whether it is active. Flags set on the active context
/// itself do not count.
pub(crate) fn primary_state(device: i32) -> Answer<(u32, bool)> {
    let handle = primary_handle(device)?;
    let slots = contexts();
    let slot = slots.get(handle).ok_or(INVALID_DEVICE)?;
    Ok((slot.flags, slot.context.is_some()))
}

/// Sets the flags of the primary context, active or not.
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

/// `cuCtxCreate`: creates a context and makes it current on this thread.
pub(crate) fn create(device: i32, flags: u32) -> Answer<u64> {
    check_device(device)?;
    loss::check_device(device)?;
    let handle = contexts().insert_with(|handle| Slot {
        context: Some(make(handle, device, flags)),
        device,
        primary: false,
        retained: 0,
        flags,
        ended_lost: false,
    });
    push(handle);
    Ok(handle)
}

/// `cuCtxDestroy`: returns the context that ends.
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
    end(&mut slot, false).ok_or(CONTEXT_IS_DESTROYED)
}

/// The context of a handle.
pub(crate) fn get(handle: u64) -> Answer<Arc<Context>> {
    let slots = contexts();
    let slot = slots.get(handle).ok_or(INVALID_CONTEXT)?;
    slot.context.clone().ok_or(CONTEXT_IS_DESTROYED)
}

/// All contexts that live.
pub(crate) fn all() -> Vec<Arc<Context>> {
    contexts().values().filter_map(|slot| slot.context.clone()).collect()
}

/// Whether the handle is that of a context, or of an inactive primary one.
pub(crate) fn exists(handle: u64) -> bool {
    contexts().get(handle).is_some()
}

/// The current context of this thread, or 0.
pub(crate) fn current_handle() -> u64 {
    STACK.with_borrow(|stack| stack.last().unwrap_or(0))
}

/// The device of the current context, active or not.
pub(crate) fn current_device() -> Option<i32> {
    match current_handle() {
        0 => None,
        handle => contexts().get(handle).map(|slot| slot.device),
    }
}

/// Whether the current context ended on a lost device.
pub(crate) fn is_current_ended_lost() -> bool {
    contexts().get(current_handle()).is_some_and(|slot| slot.ended_lost)
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

/// Pops the current context.
pub(crate) fn pop() -> Answer<u64> {
    STACK.with_borrow_mut(|stack| stack.pop()).ok_or(INVALID_CONTEXT)
}

/// Replaces the current context; 0 pops it.
pub(crate) fn set_current(handle: u64) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}
