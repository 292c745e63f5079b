//! The table of driver calls, expanded from the generated list.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::ptr::NonNull;

use crate::{CUresult, Version};

/// The type of an entry. A baseline call is always present.
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
        /// The driver call of this name, part of the baseline.
        ///
        /// # Safety
        /// The arguments meet the requirements in CUDA's documentation of the call.
        #[inline]
        pub unsafe fn $name(&self, $($arg: $ty),*) -> CUresult {
            // SAFETY: the pointer was looked up with this layout; the caller promises the
            // arguments.
            unsafe { (self.$name)($($arg),*) }
        }
    };
    (optional $name:ident ($($arg:ident: $ty:ty),*)) => {
        /// The driver call of this name, newer than the baseline.
        ///
        /// # Safety
        /// The arguments meet the requirements in CUDA's documentation of the call.
        ///
        /// # Errors
        /// [`Missing`] if the driver lacks the call. Then nothing is called.
        #[inline]
        pub unsafe fn $name(&self, $($arg: $ty),*) -> Result<CUresult, Missing> {
            match self.$name {
                // SAFETY: the pointer was looked up with this layout; the caller promises the
                // arguments.
                Some(entry) => Ok(unsafe { entry($($arg),*) }),
                None => Err(self.missing(Call::$name)),
            }
        }
    };
}

/// Converts the result of one look-up into an entry.
macro_rules! entry {
    // SAFETY (both arms): the caller of `Table::look_up` promises pointers with the layout of the
    // version passed in.
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
        /// newer layouts carry their version, as in `cuGraphAddNode_v12030`.
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

            /// The name by which the driver is asked, such as `cuGraphAddNode`.
            #[must_use]
            pub const fn symbol(self) -> &'static CStr {
                match self { $(Self::$name => $symbol),* }
            }

            /// The version of the layout. Drivers of this version and newer have the call.
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

        /// The driver's entry points, one field for each call. Methods of the same names call them.
        #[derive(Clone, Copy)]
        #[allow(missing_docs, non_snake_case)]
        pub struct Table {
            version: Version,
            $(pub $name: field!($need ($($ty),*)),)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Table {
            /// Fills the table by calling `find` for each call. Fails with the baseline call that
            /// was not found.
            ///
            /// # Safety
            /// Each pointer that `find` returns is callable for the life of the process and has the
            /// signature of the call in the headers of its version.
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
