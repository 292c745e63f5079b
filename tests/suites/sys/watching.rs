//! Observers of driver calls.

use core::ffi::c_int;
use core::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::{CUresult, Call, Interceptor, Observer, Table};
use cuda_tests::{alone, chosen, count, fail, raw, setup, trace};

static INNER: AtomicU32 = AtomicU32::new(0);

/// Stands in for the driver's call and counts.
unsafe extern "C" fn seven_devices(count: *mut c_int) -> CUresult {
    INNER.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller's out pointer.
    unsafe { *count = 7 };
    CUresult::CUDA_SUCCESS
}

fn seven(table: &mut Table) {
    table.cuDeviceGetCount = seven_devices;
}

#[test]
fn a_wrapped_entry_is_called_in_place_of_the_drivers() {
    alone!();
    // SAFETY: the entry keeps to the interface of the call.
    let driver = unsafe { chosen().wrap(seven) }.install().unwrap();
    let mut count = 0;
    // SAFETY: the out pointer is valid.
    assert!(unsafe { driver.cuDeviceGetCount(&raw mut count) }.is_success());
    assert_eq!((count, INNER.load(Ordering::SeqCst)), (7, 1));
}

#[test]
fn wrappers_run_once_in_order_and_see_what_the_earlier_ones_put_in_place() {
    alone!();
    static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    // SAFETY: the entries keep to the interface of the call.
    let loader = unsafe {
        chosen()
            .wrap(|table| {
                ORDER.lock().unwrap().push("first");
                seven(table);
            })
            .wrap(|table| {
                let mut count = 0;
                assert!(table.cuDeviceGetCount(&raw mut count).is_success());
                ORDER.lock().unwrap().push(if count == 7 { "second, on top" } else { "second" });
            })
    };
    loader.install().unwrap();
    assert_eq!(*ORDER.lock().unwrap(), ["first", "second, on top"]);
}

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Notes;

impl Observer for Notes {
    fn before(&self, call: Call) {
        SEEN.lock().unwrap().push(format!("before {}", call.name()));
    }

    fn after(&self, call: Call, result: CUresult) {
        SEEN.lock().unwrap().push(format!("after {} {result}", call.name()));
    }
}

/// Answers one call.
struct NoName;

impl Interceptor for NoName {
    fn answer(&self, call: Call) -> Option<CUresult> {
        (call == Call::cuDeviceGetName).then_some(CUresult::CUDA_ERROR_SYSTEM_NOT_READY)
    }
}

fn ask_version(driver: &cuda_sys::Driver) -> c_int {
    let mut version = -1;
    // SAFETY: the out pointer is valid.
    assert!(unsafe { driver.cuDriverGetVersion(&raw mut version) }.is_success());
    version
}

#[test]
fn an_observer_sees_every_call_before_and_after_and_outside_of_wrappers() {
    alone!();
    // SAFETY: the entry keeps to the interface of the call.
    let driver = unsafe { chosen().wrap(seven) }.observe(&Notes).install().unwrap();
    let mut count = 0;
    // SAFETY: the out pointer is valid.
    assert!(unsafe { driver.cuDeviceGetCount(&raw mut count) }.is_success());
    assert_eq!(INNER.load(Ordering::SeqCst), 1);
    assert_eq!(*SEEN.lock().unwrap(), ["before cuDeviceGetCount", "after cuDeviceGetCount CUDA_SUCCESS (0)"]);
}

#[test]
fn an_interceptor_answers_in_the_drivers_place_and_the_observer_sees_it() {
    alone!();
    // SAFETY: the call has done nothing, as the code says.
    let driver = unsafe { chosen().observe(&Notes).intercept(&NoName) }.install().unwrap();
    let mut name = [7; 4];
    // SAFETY: the buffer has the length given.
    let result = unsafe { driver.cuDeviceGetName(name.as_mut_ptr(), 4, 0) };
    assert_eq!(result, CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    assert_eq!(name, [7; 4], "the driver was not called");
    let expected = ["before cuDeviceGetName", "after cuDeviceGetName CUDA_ERROR_SYSTEM_NOT_READY (802)"];
    assert_eq!(*SEEN.lock().unwrap(), expected);
}

/// Panics in whatever it is called for, with a value that panics in its own drop.
struct Panicking;

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

impl Observer for Panicking {
    fn before(&self, _: Call) {
        std::panic::panic_any(Bomb);
    }

    fn after(&self, _: Call, _: CUresult) {
        std::panic::panic_any(Bomb);
    }
}

impl Interceptor for Panicking {
    fn answer(&self, _: Call) -> Option<CUresult> {
        std::panic::panic_any(Bomb);
    }
}

#[test]
fn a_panic_of_who_watches_ends_there_and_the_driver_answers() {
    alone!();
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: it answers nothing.
    let driver = unsafe { chosen().observe(&Panicking).intercept(&Panicking) }.install().unwrap();
    assert!(ask_version(driver) > 0);
    assert!(ask_version(driver) > 0);
}

/// Makes driver calls while it watches one.
struct Recursive;

impl Observer for Recursive {
    fn before(&self, call: Call) {
        SEEN.lock().unwrap().push(call.name().to_owned());
        ask_version(cuda_sys::installed().unwrap());
    }

    fn after(&self, call: Call, _: CUresult) {
        self.before(call);
    }
}

impl Interceptor for Recursive {
    fn answer(&self, call: Call) -> Option<CUresult> {
        self.before(call);
        None
    }
}

#[test]
fn calls_of_who_watches_are_not_watched() {
    alone!();
    // SAFETY: it answers nothing.
    let driver = unsafe { chosen().observe(&Recursive).intercept(&Recursive) }.install().unwrap();
    assert!(ask_version(driver) > 0);
    assert_eq!(*SEEN.lock().unwrap(), ["cuDriverGetVersion"; 3]);
}

#[test]
fn an_observed_driver_still_says_which_calls_it_lacks() {
    alone!();
    let config = cuda_soft::Config::new().version(cuda_sys::Version::new(12, 2));
    let driver = cuda_soft::loader(config).observe(&Notes).install().unwrap();
    // SAFETY: the driver does not have the call, so nothing is called.
    let answer = unsafe { driver.cuKernelGetParamInfo(ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut()) };
    assert_eq!(answer.unwrap_err().call, Call::cuKernelGetParamInfo);
    assert!(SEEN.lock().unwrap().is_empty());
}

#[test]
fn counts_are_exact_and_by_thread() {
    let _context = setup();
    let ask = || {
        let mut count = 0;
        // SAFETY: the out pointer is valid.
        raw::ok(unsafe { raw::driver().cuDeviceGetCount(&raw mut count) });
    };
    let ((), cost) = count(|| {
        ask();
        ask();
        std::thread::scope(|scope| {
            scope.spawn(ask);
        });
    });
    cost.assert_calls(&[("cuDeviceGetCount", 2)]);
    assert_eq!((cost.calls_anywhere("cuDeviceGetCount"), cost.total_anywhere()), (3, 3));
    let ((), steps) = trace(ask);
    assert_eq!(steps.iter().map(|step| step.call).collect::<Vec<_>>(), [Call::cuDeviceGetCount]);
}

#[test]
fn the_nth_call_of_a_name_can_be_made_to_fail_once() {
    let _context = setup();
    let ask = || {
        let mut count = 0;
        // SAFETY: the out pointer is valid.
        unsafe { raw::driver().cuDeviceGetCount(&raw mut count) }
    };
    let injection = fail(Call::cuDeviceGetCount, 2, CUresult::CUDA_ERROR_UNKNOWN);
    assert!(ask().is_success());
    assert!(!injection.hit());
    assert_eq!(ask(), CUresult::CUDA_ERROR_UNKNOWN);
    assert!(injection.hit());
    assert!(ask().is_success());
    let called_off = fail(Call::cuDeviceGetCount, 1, CUresult::CUDA_ERROR_UNKNOWN);
    drop(called_off);
    assert!(ask().is_success());
}
