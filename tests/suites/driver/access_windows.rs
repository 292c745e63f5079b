//! Access policy windows of kernel nodes, launches and streams: which the driver accepts.

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use cuda_sys::*;

use crate::common::table::{Table, all_said, said};
use crate::common::*;

const WINDOW: CUlaunchAttributeID = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
const NAMES: [&str; 4] = ["normal", "streaming", "persisting", "property 3"];

fn value(window: CUaccessPolicyWindow) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    value.accessPolicyWindow = window;
    value
}

fn most(driver: &Session) -> usize {
    let (mut most, asked) = (0, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    assert_eq!(unsafe { driver.cuDeviceGetAttribute(&mut most, asked, 0) }, OK);
    assert!(most > 0);
    most as usize
}

/// All windows that are tried; `base` begins a word of plain memory.
fn windows(driver: &Session, base: CUdeviceptr) -> Vec<(String, CUaccessPolicyWindow)> {
    let most = most(driver);
    let at = |address: u64| with_exposed_provenance_mut::<c_void>(address as usize);
    let plain = CUaccessPolicyWindow {
        base_ptr: at(base),
        num_bytes: 4,
        hitRatio: 0.5,
        hitProp: CUaccessProperty(1),
        missProp: CUaccessProperty(0),
    };
    let mut all = vec![("all 0".to_owned(), unsafe { std::mem::zeroed() })];
    for hit_ratio in [f32::NAN, -0.1, -0.0, 0.0, 0.5, 1.0, 1.001, 1.5, f32::INFINITY] {
        all.push((format!("ratio {hit_ratio}"), CUaccessPolicyWindow { hitRatio: hit_ratio, ..plain }));
    }
    for hit in 0..4 {
        for miss in 0..4 {
            let (hit_prop, miss_prop) = (CUaccessProperty(hit), CUaccessProperty(miss));
            let window = CUaccessPolicyWindow { hitProp: hit_prop, missProp: miss_prop, ..plain };
            all.push((format!("hits {}, misses {}", NAMES[hit as usize], NAMES[miss as usize]), window));
        }
    }
    for (what, address, bytes) in [
        ("no bytes", base, 0),
        ("no bytes at null", 0, 0),
        ("bytes at null", 0, 4),
        ("bytes that are not allocated", 1 << 40, 4),
        ("bytes past the allocation", base, most / 2),
        ("the most bytes", base, most),
        ("one byte more", base, most + 1),
        ("all the bytes there are", base, usize::MAX),
    ] {
        all.push((
            what.to_owned(),
            CUaccessPolicyWindow { base_ptr: at(address), num_bytes: bytes, ..plain },
        ));
    }
    for (what, ratio, miss) in [("no bytes, ratio 1.5", 1.5, 0), ("no bytes, misses persisting", 0.5, 2)] {
        let window = CUaccessPolicyWindow { num_bytes: 0, hitRatio: ratio, ..plain };
        all.push((what.to_owned(), CUaccessPolicyWindow { missProp: CUaccessProperty(miss), ..window }));
    }
    all
}

/// The window that is read back, if it is not the one that was set.
fn read_back(answer: CUresult, value: &CUlaunchAttributeValue, set: &CUaccessPolicyWindow) -> String {
    let window = unsafe { value.accessPolicyWindow };
    match answer {
        // By their text, as a ratio that is no number is not itself.
        OK if format!("{window:?}") == format!("{set:?}") => "the same".to_owned(),
        OK if window == unsafe { std::mem::zeroed() } => "none".to_owned(),
        OK => format!("{window:?}"),
        code => said(code),
    }
}

#[test]
fn of_kernel_nodes() {
    let driver = session();
    let (mut table, word) = (Table::default(), driver.words(1));
    for (what, window) in windows(&driver, word) {
        let own = driver.graph();
        let node = driver.kernel(own, &[], "add", [word, 1]);
        let (given, mut back) = (value(window), CUlaunchAttributeValue { pad: [0; 64] });
        let set = unsafe { driver.cuGraphKernelNodeSetAttribute(node, WINDOW, &given) };
        let read = unsafe { driver.cuGraphKernelNodeGetAttribute(node, WINDOW, &mut back) };
        let (mut exec, mut codes) = (null_mut(), vec![set]);
        unsafe {
            codes.push(driver.cuGraphInstantiateWithFlags(&mut exec, own, 0));
            if codes[1] == OK {
                codes.push(driver.launch(exec));
                codes.push(driver.cuStreamSynchronize(driver.stream));
                driver.end(exec);
            }
        }
        table.row(what, format!("{}; read {}", all_said(&codes), read_back(read, &back, &window)));
        driver.destroy(&[own]);
    }
    table.is(NODES);
}

const NODES: &str = "
all 0: ok, ok, ok, ok; read the same
ratio NaN: ok, ok, ok, ok; read the same
ratio -0.1: INVALID_VALUE, ok, ok, ok; read none
ratio -0: ok, ok, ok, ok; read the same
ratio 0: ok, ok, ok, ok; read the same
ratio 0.5: ok, ok, ok, ok; read the same
ratio 1: ok, ok, ok, ok; read the same
ratio 1.001: INVALID_VALUE, ok, ok, ok; read none
ratio 1.5: INVALID_VALUE, ok, ok, ok; read none
ratio inf: INVALID_VALUE, ok, ok, ok; read none
hits normal, misses normal: ok, ok, ok, ok; read the same
hits normal, misses streaming: ok, ok, ok, ok; read the same
hits normal, misses persisting: INVALID_VALUE, ok, ok, ok; read none
hits normal, misses property 3: ok, ok, ok, ok; read the same
hits streaming, misses normal: ok, ok, ok, ok; read the same
hits streaming, misses streaming: ok, ok, ok, ok; read the same
hits streaming, misses persisting: INVALID_VALUE, ok, ok, ok; read none
hits streaming, misses property 3: ok, ok, ok, ok; read the same
hits persisting, misses normal: ok, ok, ok, ok; read the same
hits persisting, misses streaming: ok, ok, ok, ok; read the same
hits persisting, misses persisting: INVALID_VALUE, ok, ok, ok; read none
hits persisting, misses property 3: ok, ok, ok, ok; read the same
hits property 3, misses normal: ok, ok, ok, ok; read the same
hits property 3, misses streaming: ok, ok, ok, ok; read the same
hits property 3, misses persisting: INVALID_VALUE, ok, ok, ok; read none
hits property 3, misses property 3: ok, ok, ok, ok; read the same
no bytes: ok, ok, ok, ok; read the same
no bytes at null: ok, ok, ok, ok; read the same
bytes at null: ok, ok, ok, ok; read the same
bytes that are not allocated: ok, ok, ok, ok; read the same
bytes past the allocation: ok, ok, ok, ok; read the same
the most bytes: ok, ok, ok, ok; read the same
one byte more: INVALID_VALUE, ok, ok, ok; read none
all the bytes there are: INVALID_VALUE, ok, ok, ok; read none
no bytes, ratio 1.5: INVALID_VALUE, ok, ok, ok; read none
no bytes, misses persisting: INVALID_VALUE, ok, ok, ok; read none
";

#[test]
fn of_launches() {
    let driver = session();
    let (mut table, word) = (Table::default(), driver.words(1));
    let function = driver.function("add");
    for (what, window) in windows(&driver, word) {
        let mut attribute = CUlaunchAttribute { id: WINDOW, pad: [0; 4], value: value(window) };
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            hStream: driver.stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
            ..Default::default()
        };
        let mut arguments = [word, 1u64];
        let mut pointers = arguments.each_mut().map(|argument| (&raw mut *argument).cast::<c_void>());
        let launched =
            unsafe { driver.cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut()) };
        let waited = unsafe { driver.cuStreamSynchronize(driver.stream) };
        table.row(what, all_said(&[launched, waited]));
    }
    table.is(LAUNCHES);
}

const LAUNCHES: &str = "
all 0: ok, ok
ratio NaN: ok, ok
ratio -0.1: INVALID_VALUE, ok
ratio -0: ok, ok
ratio 0: ok, ok
ratio 0.5: ok, ok
ratio 1: ok, ok
ratio 1.001: INVALID_VALUE, ok
ratio 1.5: INVALID_VALUE, ok
ratio inf: INVALID_VALUE, ok
hits normal, misses normal: ok, ok
hits normal, misses streaming: ok, ok
hits normal, misses persisting: INVALID_VALUE, ok
hits normal, misses property 3: ok, ok
hits streaming, misses normal: ok, ok
hits streaming, misses streaming: ok, ok
hits streaming, misses persisting: INVALID_VALUE, ok
hits streaming, misses property 3: ok, ok
hits persisting, misses normal: ok, ok
hits persisting, misses streaming: ok, ok
hits persisting, misses persisting: INVALID_VALUE, ok
hits persisting, misses property 3: ok, ok
hits property 3, misses normal: ok, ok
hits property 3, misses streaming: ok, ok
hits property 3, misses persisting: INVALID_VALUE, ok
hits property 3, misses property 3: ok, ok
no bytes: ok, ok
no bytes at null: ok, ok
bytes at null: ok, ok
bytes that are not allocated: ok, ok
bytes past the allocation: ok, ok
the most bytes: ok, ok
one byte more: INVALID_VALUE, ok
all the bytes there are: INVALID_VALUE, ok
no bytes, ratio 1.5: INVALID_VALUE, ok
no bytes, misses persisting: INVALID_VALUE, ok
";

#[test]
fn of_streams() {
    let driver = session();
    let (mut table, word) = (Table::default(), driver.words(1));
    for (what, window) in windows(&driver, word) {
        let (mut stream, given) = (null_mut(), value(window));
        let mut back = CUlaunchAttributeValue { pad: [0; 64] };
        unsafe {
            assert_eq!(driver.cuStreamCreate(&mut stream, 1), OK);
            let set = driver.cuStreamSetAttribute(stream, WINDOW, &given);
            let read = driver.cuStreamGetAttribute(stream, WINDOW, &mut back);
            let filled = driver.cuMemsetD32Async(word, 1, 1, stream);
            let waited = driver.cuStreamSynchronize(stream);
            let codes = all_said(&[set, filled, waited]);
            table.row(what, format!("{codes}; read {}", read_back(read, &back, &window)));
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    }
    table.is(STREAMS);
}

const STREAMS: &str = "
all 0: ok, ok, ok; read the same
ratio NaN: ok, ok, ok; read the same
ratio -0.1: INVALID_VALUE, ok, ok; read none
ratio -0: ok, ok, ok; read the same
ratio 0: ok, ok, ok; read the same
ratio 0.5: ok, ok, ok; read the same
ratio 1: ok, ok, ok; read the same
ratio 1.001: INVALID_VALUE, ok, ok; read none
ratio 1.5: INVALID_VALUE, ok, ok; read none
ratio inf: INVALID_VALUE, ok, ok; read none
hits normal, misses normal: ok, ok, ok; read the same
hits normal, misses streaming: ok, ok, ok; read the same
hits normal, misses persisting: INVALID_VALUE, ok, ok; read none
hits normal, misses property 3: ok, ok, ok; read the same
hits streaming, misses normal: ok, ok, ok; read the same
hits streaming, misses streaming: ok, ok, ok; read the same
hits streaming, misses persisting: INVALID_VALUE, ok, ok; read none
hits streaming, misses property 3: ok, ok, ok; read the same
hits persisting, misses normal: ok, ok, ok; read the same
hits persisting, misses streaming: ok, ok, ok; read the same
hits persisting, misses persisting: INVALID_VALUE, ok, ok; read none
hits persisting, misses property 3: ok, ok, ok; read the same
hits property 3, misses normal: ok, ok, ok; read the same
hits property 3, misses streaming: ok, ok, ok; read the same
hits property 3, misses persisting: INVALID_VALUE, ok, ok; read none
hits property 3, misses property 3: ok, ok, ok; read the same
no bytes: ok, ok, ok; read the same
no bytes at null: ok, ok, ok; read the same
bytes at null: ok, ok, ok; read the same
bytes that are not allocated: ok, ok, ok; read the same
bytes past the allocation: ok, ok, ok; read the same
the most bytes: ok, ok, ok; read the same
one byte more: INVALID_VALUE, ok, ok; read none
all the bytes there are: INVALID_VALUE, ok, ok; read none
no bytes, ratio 1.5: INVALID_VALUE, ok, ok; read none
no bytes, misses persisting: INVALID_VALUE, ok, ok; read none
";
