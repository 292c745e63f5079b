//! Invalid configurations: an error that names the option and its value, never an abort.

use std::ffi::c_int;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use cuda_soft::Config;
use cuda_sys::*;

use crate::parent::turn;

const CHILD: &str = "CUDA_SOFT_TEST_CONFIGURATION";
const PTX: &std::ffi::CStr = c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
const EXTREMES: [u32; 7] = [0, 1, 9, 255, i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX];

/// Uses what depends on the configuration.
fn use_all(driver: &Driver) {
    unsafe {
        if !driver.cuInit(0).is_success() {
            return;
        }
        let (mut context, mut module, mut function, mut value) = (null_mut(), null_mut(), null_mut(), 0);
        assert!(driver.cuDevicePrimaryCtxRetain(&mut context, 0).is_success());
        assert!(driver.cuCtxSetCurrent(context).is_success());
        for attribute in 0..200 {
            let _ = driver.cuDeviceGetAttribute(&mut value, cuda_sys::CUdevice_attribute(attribute), 0);
        }
        let (mut free, mut total, mut address, mut pool) = (0, 0, 0, null_mut());
        assert!(driver.cuMemGetInfo(&mut free, &mut total).is_success());
        let _ = driver.cuMemAlloc(&mut address, 1 << 20);
        let _ = driver.cuMemAllocAsync(&mut address, 1 << 20, null_mut());
        assert!(driver.cuDeviceGetDefaultMemPool(&mut pool, 0).is_success());
        if driver.cuModuleLoadData(&mut module, PTX.as_ptr().cast()).is_success() {
            assert!(driver.cuModuleGetFunction(&mut function, module, c"k".as_ptr()).is_success());
            let mut block = 0;
            let answer =
                driver.cuOccupancyMaxPotentialBlockSize(&mut value, &mut block, function, None, 0, 0);
            assert!(answer.is_success());
            let (grid, one) = (64, 1);
            let _ = driver.cuLaunchCooperativeKernel(
                function,
                grid,
                one,
                one,
                one,
                one,
                one,
                0,
                null_mut(),
                null_mut(),
            );
            let answer =
                driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut());
            assert!(answer.is_success());
            assert!(driver.cuCtxSynchronize().is_success());
        }
    }
}

/// In a child: installs the driver and uses it; says the error of the installation.
fn child(install: impl FnOnce() -> Result<&'static Driver, String>) {
    match install() {
        Ok(driver) => use_all(driver),
        Err(error) => println!("refused: {error}"),
    }
    println!("ended well");
}

fn run(test: &str, variables: &[(&str, String)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).stderr(Stdio::piped());
    // Whoever runs this test may have variables of the driver's set, a pose of the CI among them.
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"CUDA_SOFT_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    let output = command.output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains("ended well"), "{variables:?}: {text}");
    text
}

fn is_refused(text: &str, variable: &str, value: &str) -> bool {
    let value = Printable(value).to_string();
    text.contains("refused: ") && text.contains(variable) && text.contains(&value)
}

#[test]
fn options_without_a_meaning_are_refused_by_name() {
    const TEST: &str = "configuration::options_without_a_meaning_are_refused_by_name";
    if let Ok(words) = std::env::var(CHILD) {
        let numbers: Vec<u64> = words.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
        let (first, second) = (numbers[0] as u32, numbers[1] as u32);
        let config = match words.split(' ').next() {
            Some("devices") => Config::new().devices(first),
            Some("capability") => Config::new().compute_capability(first, second),
            Some("multiprocessors") => Config::new().multiprocessors(first),
            Some("version") => Config::new().version(Version::from_raw(first as c_int)),
            _ => Config::new().memory(numbers[0]),
        };
        return child(|| cuda_soft::loader(config).install().map_err(|error: LoadError| error.to_string()));
    }
    let _turn = turn();
    let ask = |words: String| run(TEST, &[(CHILD, words)]);
    for value in EXTREMES {
        let text = ask(format!("devices {value} 0"));
        assert_eq!(
            is_refused(&text, "Config::devices", &format!("`{value}`")),
            value > 128,
            "{value}: {text}"
        );
        let text = ask(format!("capability {value} {value}"));
        let may = value == 1 || value == 9;
        assert_eq!(
            is_refused(&text, "Config::compute_capability", &format!("`{value}.{value}`")),
            !may,
            "{text}"
        );
        assert!(!ask(format!("multiprocessors {value} 0")).contains("refused: "));
        ask(format!("version {value} 0"));
    }
    for bytes in [0, 1, 512, (1 << 20) + 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX] {
        assert!(!ask(format!("memory {bytes} 0")).contains("refused: "));
    }
}

#[test]
fn variables_without_a_meaning_are_refused_by_name() {
    const TEST: &str = "configuration::variables_without_a_meaning_are_refused_by_name";
    if std::env::var_os(CHILD).is_some() {
        return child(|| {
            let config = Config::from_environment().map_err(|error| error.to_string())?;
            cuda_soft::loader(config).install().map_err(|error| error.to_string())
        });
    }
    let _turn = turn();
    let numbers = ["-1", "18446744073709551616", "1e9", "0x10", " 1", "eins", "\u{7}"];
    let pairs = ["1", ".", "1.", ".1", "1.2.3", "65536.0", "12.256", "-1.0", "x.y", "\u{7}"];
    let checks = ["none", "races", "all,all", "shared-races,", ",", "shared-races;global-races", "\u{7}"];
    let variables: [(&str, &[&str]); 7] = [
        ("CUDA_SOFT_VERSION", &[&pairs[..], &["12.100", "12.255"]].concat()),
        ("CUDA_SOFT_CAPABILITY", &[&pairs[..], &["0.0", "65535.255", "9.10"]].concat()),
        ("CUDA_SOFT_DEVICES", &[&numbers[..], &["129", "4294967295"]].concat()),
        ("CUDA_SOFT_MEMORY", &numbers),
        ("CUDA_SOFT_BRANCH_ORDER", &numbers),
        ("CUDA_SOFT_EARLY_ORDER", &numbers),
        ("CUDA_SOFT_CHECK", &checks),
    ];
    for (variable, values) in variables {
        for value in values {
            let text = run(TEST, &[(CHILD, "1".to_owned()), (variable, (*value).to_owned())]);
            assert!(is_refused(&text, variable, value), "{variable}={value}: {text}");
        }
    }
    for (variable, value) in [
        ("CUDA_SOFT_MEMORY", "18446744073709551615"),
        ("CUDA_SOFT_MEMORY", "0"),
        ("CUDA_SOFT_DEVICES", "0"),
        ("CUDA_SOFT_DEVICES", "128"),
        ("CUDA_SOFT_BRANCH_ORDER", "18446744073709551615"),
        ("CUDA_SOFT_EARLY_ORDER", "18446744073709551615"),
        ("CUDA_SOFT_CHECK", "all"),
        ("CUDA_SOFT_CHECK", "unwritten-shared,global-races"),
        ("CUDA_SOFT_CAPABILITY", "99.9"),
        ("CUDA_SOFT_VERSION", "65535.99"),
        ("CUDA_SOFT_VERSION", "0.0"),
    ] {
        run(TEST, &[(CHILD, "1".to_owned()), (variable, value.to_owned())]);
    }
}

/// Without an installation before it, as in the library for `dlopen`.
#[test]
fn a_library_with_a_bad_environment_answers_an_error_and_says_why() {
    const TEST: &str = "configuration::a_library_with_a_bad_environment_answers_an_error_and_says_why";
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: as the loader of the same driver does.
        let loader = unsafe { cuda_sys::Loader::in_process("by its path", cuda_soft::get_proc_address) };
        return child(|| loader.install().map_err(|error| error.to_string()));
    }
    let _turn = turn();
    let text = run(TEST, &[(CHILD, "1".to_owned()), ("CUDA_SOFT_DEVICES", "many".to_owned())]);
    assert!(is_refused(&text, "CUDA_SOFT_DEVICES", "`many`"), "{text}");
    assert!(text.contains(&CUresult::CUDA_ERROR_INVALID_VALUE.to_string()), "{text}");
}

#[test]
fn a_loss_is_explained_where_the_environment_asks_for_it() {
    const TEST: &str = "configuration::a_loss_is_explained_where_the_environment_asks_for_it";
    if std::env::var_os(CHILD).is_some() {
        cuda_soft::control::lose_device(0, CUresult::CUDA_ERROR_ASSERT);
        cuda_soft::control::lose_device(0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        return println!("ended well");
    }
    let _turn = turn();
    let sentence = format!("device 0 is lost with {}: ", CUresult::CUDA_ERROR_ASSERT);
    for (value, explains) in [("1", true), ("0", false), ("", false)] {
        let text = run(TEST, &[(CHILD, "1".to_owned()), ("CUDA_SOFT_EXPLAIN", value.to_owned())]);
        assert_eq!(text.matches("is lost with").count(), usize::from(explains), "{text}");
        assert_eq!(text.contains(&sentence), explains, "{text}");
    }
}

#[test]
fn refused_and_missing_calls_are_explained_where_the_environment_asks_for_it() {
    const TEST: &str =
        "configuration::refused_and_missing_calls_are_explained_where_the_environment_asks_for_it";
    if std::env::var_os(CHILD).is_some() {
        // Older than many calls of the table, which the loader must not ask for.
        let config = cuda_soft::Config::new().version(Version::new(12, 2));
        let driver = cuda_soft::loader(config).install().unwrap();
        let (mut module, mut context, array) = (null_mut(), null_mut(), null_mut());
        let (mut pointer, mut found) = (null_mut(), CUdriverProcAddressQueryResult(0));
        unsafe {
            assert!(driver.cuInit(0).is_success());
            assert!(driver.cuDevicePrimaryCtxRetain(&mut context, 0).is_success());
            assert!(driver.cuCtxSetCurrent(context).is_success());
            assert!(!driver.cuMemFree(77).is_success());
            assert!(
                !driver.cuModuleLoadData(&mut module, c".version 7.0 nonsense".as_ptr().cast()).is_success()
            );
            assert!(!driver.cuMipmappedArrayDestroy(array).is_success());
            let mut look_up = |name: &std::ffi::CStr, version| {
                driver.cuGetProcAddress(name.as_ptr(), &mut pointer, version, 0, &mut found)
            };
            assert!(look_up(c"cuNoSuchCall", 12000).is_success());
            assert!(!look_up(c"cuGraphAddNode", 13000).is_success());
        }
        return println!("ended well");
    }
    let _turn = turn();
    for (value, explains) in [("1", true), ("0", false)] {
        let text = run(TEST, &[(CHILD, "1".to_owned()), ("CUDA_SOFT_EXPLAIN", value.to_owned())]);
        for part in [
            "cuMemFree returns CUDA_ERROR_INVALID_VALUE",
            "cuModuleLoadData is given an image that is rejected with CUDA_ERROR_INVALID_PTX (218): ",
            "cuModuleLoadData returns CUDA_ERROR_INVALID_PTX (218)",
            "cuMipmappedArrayDestroy returns CUDA_ERROR_NOT_SUPPORTED (801): the software driver lacks this call",
            "cuGetProcAddress finds no cuNoSuchCall of version 12.0, flags 0",
            "cuGetProcAddress returns CUDA_ERROR_INVALID_VALUE (1): cuGraphAddNode of version 13.0, flags 0",
        ] {
            assert_eq!(text.contains(part), explains, "{part}: {text}");
        }
        assert!(!text.contains("cuInit"), "{text}");
        let lookups = text.matches("cuGetProcAddress").count();
        assert_eq!(lookups, if explains { 2 } else { 0 }, "the loader's own are not reported: {text}");
    }
}

/// A free of memory whose pool is destroyed crashes the real driver if it is in a stream's order.
/// The memory stays as it was.
unsafe fn free_behind_a_destroyed_pool(driver: &Driver) {
    let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    let mut props = CUmemPoolProps { allocType: pinned, ..Default::default() };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (mut context, mut pool, mut address) = (null_mut(), null_mut(), 0);
    unsafe {
        assert!(driver.cuDevicePrimaryCtxRetain(&mut context, 0).is_success());
        assert!(driver.cuCtxSetCurrent(context).is_success());
        assert!(driver.cuMemPoolCreate(&mut pool, &props).is_success());
        assert!(driver.cuMemAllocFromPoolAsync(&mut address, 64, pool, null_mut()).is_success());
        assert!(driver.cuMemPoolDestroy(pool).is_success());
        for _ in 0..2 {
            assert_eq!(driver.cuMemFreeAsync(address, null_mut()), CUresult::CUDA_ERROR_UNKNOWN);
        }
        assert!(driver.cuMemsetD8(address, 1, 64).is_success());
        assert!(driver.cuMemFree(address).is_success());
        assert_eq!(driver.cuMemFree(address), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
}

#[test]
fn an_abort_is_a_note_where_the_environment_asks_for_it() {
    const TEST: &str = "configuration::an_abort_is_a_note_where_the_environment_asks_for_it";
    if std::env::var_os(CHILD).is_some() {
        let driver = cuda_soft::loader(cuda_soft::Config::new()).install().unwrap();
        unsafe {
            assert!(driver.cuInit(0).is_success());
            // The real driver crashes.
            assert_eq!(driver.cuThreadExchangeStreamCaptureMode(null_mut()), CUresult::CUDA_ERROR_UNKNOWN);
            let stray = std::ptr::without_provenance_mut(1 << 40);
            assert_eq!(driver.cuUserObjectRelease(stray, 1), CUresult::CUDA_ERROR_UNKNOWN);
            // It goes on, and holds no lock.
            let mut graph = null_mut();
            assert!(driver.cuGraphCreate(&mut graph, 0).is_success());
            assert_eq!(driver.cuUserObjectRelease(stray, 1), CUresult::CUDA_ERROR_UNKNOWN);
            free_behind_a_destroyed_pool(driver);
        }
        return println!("ended well");
    }
    let _turn = turn();
    let text = run(TEST, &[(CHILD, "1".to_owned()), ("CUDA_SOFT_ABORT", "note".to_owned())]);
    assert!(text.contains("the real driver crashes here: cuThreadExchangeStreamCaptureMode: "), "{text}");
    assert_eq!(text.matches("cuUserObjectRelease: ").count(), 2, "{text}");
    assert!(!text.contains("panicked"), "{text}");
}
