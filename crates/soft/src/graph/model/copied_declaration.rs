//! What a kernel node declares is known to nodes that are made with the parameters read from it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::task::KernelSpec;
use crate::launch::declared::Declared;
use crate::launch::{Arguments, Sizes};
use crate::module::Function;
use crate::sync::lock;

/// The launches of nodes with declarations whose parameters were read, by the address of the
/// arguments' pointers.
static READ: Mutex<Option<HashMap<usize, ReadLaunch>>> = Mutex::new(None);

/// Whether a launch was ever listed. Without declarations, no call takes the lock.
static IS_USED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct ReadLaunch {
    function: u64,
    sizes: Sizes,
    arguments: Arguments,
    declared: Arc<Declared>,
}

/// The place of a node's launch in the list, until it is dropped.
#[derive(Debug)]
pub(super) struct ListedLaunch(usize);

impl ListedLaunch {
    /// Lists a launch that has a declaration and arguments, with the pointers that the reader gets.
    pub(super) fn of(spec: &KernelSpec, pointers: *mut *mut c_void) -> Option<Self> {
        let declared = Arc::clone(spec.declared.as_ref().filter(|_| !pointers.is_null())?);
        let (function, sizes, arguments) = (spec.function.handle, spec.sizes, spec.arguments.clone());
        let launch = ReadLaunch { function, sizes, arguments, declared };
        lock(&READ).get_or_insert_default().insert(pointers.addr(), launch);
        IS_USED.store(true, Ordering::Release);
        Some(Self(pointers.addr()))
    }
}

impl Drop for ListedLaunch {
    fn drop(&mut self) {
        if let Some(read) = lock(&READ).as_mut() {
            read.remove(&self.0);
        }
    }
}

/// What a launch declares whose pointers are those read from a node, if it is the same launch.
pub(crate) fn find(
    pointers: *mut *mut c_void,
    function: &Function,
    sizes: &Sizes,
    arguments: &Arguments,
) -> Option<Arc<Declared>> {
    if !IS_USED.load(Ordering::Acquire) {
        return None;
    }
    let read = lock(&READ);
    let launch = read.as_ref()?.get(&pointers.addr())?;
    let is_same =
        launch.function == function.handle && launch.sizes == *sizes && launch.arguments == *arguments;
    is_same.then(|| Arc::clone(&launch.declared))
}
