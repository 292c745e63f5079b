//! The table of all driver calls, and the lookup by name and version.

use core::ffi::{CStr, c_void};

use cuda_sys::{CUresult, Call, Version};

macro_rules! define {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// A function for every driver call in every layout.
        #[derive(Clone, Copy)]
        #[allow(non_snake_case)]
        pub(crate) struct Entries {
            $(pub(crate) $name: unsafe extern "C" fn($($ty),*) -> CUresult,)*
        }

        /// Calls that are not implemented.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod missing {
            $(pub(super) unsafe extern "C" fn $name($(_: $ty),*) -> cuda_sys::CUresult {
                crate::abi::gate::missing(stringify!($name))
            })*
        }

        /// Calls that do nothing.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod nothing {
            $(pub(super) unsafe extern "C" fn $name($(_: $ty),*) -> cuda_sys::CUresult {
                cuda_sys::CUresult::CUDA_SUCCESS
            })*
        }

        impl Entries {
            /// Every call returns `CUDA_ERROR_NOT_SUPPORTED`.
            pub(crate) const MISSING: Self = Self { $($name: missing::$name),* };
            /// Every call returns success and does nothing.
            pub(crate) const NOTHING: Self = Self { $($name: nothing::$name),* };

            fn pointer(&self, call: Call) -> *mut c_void {
                match call { $(Call::$name => self.$name as *mut c_void,)* }
            }
        }
    };
}

cuda_sys::for_each_call!(define);

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Entry(*mut c_void),
    /// The driver has no call of that name.
    NoSuchCall,
    /// The call is newer than the requested version.
    NotInThatVersion,
}

impl Entries {
    /// The call of that name in the newest layout that both the requested version and the driver's
    /// own version have.
    pub(crate) fn find(&self, symbol: &CStr, asked: Version, own: Version) -> Found {
        let named = Call::ALL.iter().filter(|call| call.symbol() == symbol && call.since() <= own);
        let newest = named.clone().filter(|call| call.since() <= asked).max_by_key(|call| call.since());
        match newest {
            Some(call) => Found::Entry(self.pointer(*call)),
            None if named.count() > 0 => Found::NotInThatVersion,
            None => Found::NoSuchCall,
        }
    }
}
