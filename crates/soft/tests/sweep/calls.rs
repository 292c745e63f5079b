//! All calls of the table, with their arguments as words of memory.

use std::any::type_name;
use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_sys::*;

/// The bytes of an argument, of which as many count as its type has.
pub(crate) type Value = [u64; 32];

pub(crate) struct Argument {
    pub(crate) name: &'static str,
    /// The type as the table writes it.
    pub(crate) written: &'static str,
    /// The type without aliases.
    pub(crate) full: fn() -> &'static str,
    pub(crate) size: usize,
}

pub(crate) struct Swept {
    pub(crate) call: Call,
    pub(crate) arguments: &'static [Argument],
    invoke: unsafe fn(*mut c_void, &[Value]) -> CUresult,
}

impl Swept {
    /// Calls the entry with these arguments.
    pub(crate) unsafe fn invoke(&self, entry: *mut c_void, values: &[Value]) -> CUresult {
        assert_eq!(values.len(), self.arguments.len());
        unsafe { (self.invoke)(entry, values) }
    }

    /// The entry of the software driver.
    pub(crate) fn entry(&self) -> *mut c_void {
        let mut found = null_mut();
        let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
        let (symbol, since) = (self.call.symbol().as_ptr(), self.call.since().as_raw());
        let answer = unsafe { cuda_soft::get_proc_address(symbol, &mut found, since, 0, &mut status) };
        assert!(answer.is_success() && !found.is_null(), "{} is not found", self.call.name());
        found
    }
}

unsafe fn read<T>(values: &mut std::slice::Iter<'_, Value>) -> T {
    const { assert!(size_of::<T>() <= size_of::<Value>()) };
    unsafe { values.next().unwrap().as_ptr().cast::<T>().read() }
}

macro_rules! define {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        pub(crate) static CALLS: &[Swept] = &[$({
            #[allow(unused_mut, unused_variables)]
            unsafe fn invoke(entry: *mut c_void, values: &[Value]) -> CUresult {
                let mut values = values.iter();
                let entry: unsafe extern "C" fn($($ty),*) -> CUresult = unsafe { std::mem::transmute(entry) };
                unsafe { entry($(read::<$ty>(&mut values)),*) }
            }
            Swept {
                call: Call::$name,
                arguments: &[$(Argument {
                    name: stringify!($arg),
                    written: stringify!($ty),
                    full: type_name::<$ty>,
                    size: size_of::<$ty>(),
                }),*],
                invoke,
            }
        }),*];
    };
}

for_each_call!(define);
