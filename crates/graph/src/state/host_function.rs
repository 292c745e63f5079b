//! The host function of a host node.

use core::ffi::c_void;

/// A function that the driver can call.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// The function of a node, as far as people want to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Host {
    /// A closure of this name.
    Closure(&'static str),
    /// A C function with data that the node has.
    Function(HostFunction),
    /// A C function and its pointer.
    Raw(HostFunction, Data),
}

impl Host {
    /// A C function of other code's.
    pub(crate) fn raw(function: HostFunction, data: *mut c_void) -> Self {
        Self::Raw(function, Data(data))
    }
}

/// A pointer that goes to a C function, and is not followed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data(pub(crate) *mut c_void);

// SAFETY: nothing here follows the pointer; who gave it promised that the function can be called on
// any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}
