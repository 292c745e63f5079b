//! The host function of a host node.

use core::ffi::c_void;

/// A C function that the driver can call.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// The function of a host node, for descriptions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Host {
    /// A closure, by its type name.
    Closure(&'static str),
    /// A C function with data that the node owns.
    Function(HostFunction),
    /// A C function with a raw pointer.
    Raw(HostFunction, Data),
}

impl Host {
    /// A C function of other code.
    pub(crate) fn raw(function: HostFunction, data: *mut c_void) -> Self {
        Self::Raw(function, Data(data))
    }
}

/// A pointer for a C function, never dereferenced here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data(pub(crate) *mut c_void);

// SAFETY: nothing here dereferences the pointer. Whoever gave it promised that the function can be
// called on any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}
