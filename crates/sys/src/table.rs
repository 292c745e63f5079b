//! The table of driver calls, made from the generated list.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::ptr::NonNull;

use crate::{CUresult, Version};

/// The field of an entry: a baseline call is always there.
macro_rules! field {
    (baseline ($($ty:ty),*)) => { unsafe extern "C" fn($($ty),*) -> CUresult };
    (optional ($($ty:ty),*)) => { Option<unsafe extern "C" fn($($ty),*) -> CUresult> };
}

macro_rules! is_baseline {
    (baseline) => {
        true
    };
    (optional) => {
        false
    };
}

/// The method of an entry on [`Table`].
macro_rules! method {
    (baseline $name:ident ($($arg:ident: $ty:ty),*)) => {
        /// The driver call of this name; part of the baseline.
        ///
        /// # Safety
        /// As CUDA's documentation of the call demands of its arguments.
        #[inline]
        pub unsafe fn $name(&self, $($arg: $ty),*) -> CUresult {
            // SAFETY: the pointer has the layout it was looked up with; the arguments are the
            // caller's promise.
            unsafe { (self.$name)($($arg),*) }
        }
    };
    (optional $name:ident ($($arg:ident: $ty:ty),*)) => {
        /// The driver call of this name; newer than the baseline.
        ///
        /// # Safety
        /// As CUDA's documentation of the call demands of its arguments.
        ///
        /// # Errors
        /// The driver that runs does not have the call; nothing was called.
        #[inline]
        pub unsafe fn $name(&self, $($arg: $ty),*) -> Result<CUresult, Missing> {
            match self.$name {
                // SAFETY: the pointer has the layout it was looked up with; the arguments are the
                // caller's promise.
                Some(entry) => Ok(unsafe { entry($($arg),*) }),
                None => Err(self.missing(Call::$name)),
            }
        }
    };
}

/// Reads one entry out of a look-up.
macro_rules! entry {
    // SAFETY (both arms): the caller of `Table::look_up` promises that its pointers have the layout
    // of the version asked for.
    (baseline $found:expr, ($($ty:ty),*), $call:expr) => {
        match $found {
            Some(pointer) => unsafe {
                core::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($ty),*) -> CUresult>(pointer)
            },
            None => return Err($call),
        }
    };
    (optional $found:expr, ($($ty:ty),*), $call:expr) => {
        $found.map(|pointer| unsafe {
            core::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($ty),*) -> CUresult>(pointer)
        })
    };
}

macro_rules! define {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// One driver call in one layout. The first layout in the table has the call's plain name;
        /// newer ones carry the version that brought them, as in `cuGraphAddNode_v12030`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, non_camel_case_types)]
        #[repr(u16)]
        pub enum Call { $($name),* }

        impl Call {
            /// All calls of the table, by name.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in the table, such as `cuGraphAddNode_v12030`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// The name to ask the driver for, such as `cuGraphAddNode`.
            #[must_use]
            pub const fn symbol(self) -> &'static CStr {
                match self { $(Self::$name => $symbol),* }
            }

            /// The version whose layout the table has; a driver of at least this version has the
            /// call.
            #[must_use]
            pub const fn since(self) -> Version {
                match self { $(Self::$name => Version::from_raw($since)),* }
            }

            /// Whether every supported driver has the call.
            #[must_use]
            pub const fn is_baseline(self) -> bool {
                match self { $(Self::$name => is_baseline!($need)),* }
            }
        }

        /// The driver's entry points, one field a call. Methods of the same names call them.
        #[derive(Clone, Copy)]
        #[allow(missing_docs, non_snake_case)]
        pub struct Table {
            version: Version,
            $(pub $name: field!($need ($($ty),*)),)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Table {
            /// Fills the table by asking `find` for each call; on failure says which baseline call
            /// was not found.
            ///
            /// # Safety
            /// Each pointer that `find` returns stays callable for the life of the process and has
            /// the signature that the headers give the call in the version asked for.
            #[allow(clippy::undocumented_unsafe_blocks)]
            pub(crate) unsafe fn look_up(
                version: Version,
                mut find: impl FnMut(Call) -> Option<NonNull<c_void>>,
            ) -> Result<Self, Call> {
                Ok(Self {
                    version,
                    $($name: entry!($need find(Call::$name), ($($ty),*), Call::$name),)*
                })
            }

            $(method! { $need $name ($($arg: $ty),*) })*
        }
    };
}

for_each_call!(define);

impl Table {
    /// The version of the driver that filled the table.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The error of an optional call that this driver lacks.
    #[must_use]
    pub fn missing(&self, call: Call) -> Missing {
        Missing { call, found: self.version }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The error of a call that the driver does not have.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} needs a CUDA driver of version {} or newer; this one is {found}", call.name(), call.since())]
pub struct Missing {
    /// The call.
    pub call: Call,
    /// The version of the driver.
    pub found: Version,
}

impl fmt::Debug for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
