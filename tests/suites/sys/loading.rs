//! Finding a driver and loading it; every way in which that fails.

use cuda_sys::{Call, LoadError, Loader, Version};
use cuda_tests::{alone, chosen};

use crate::fake_driver;

fn file(path: &str) -> Loader {
    // SAFETY: a file that is not there, or a library of the system whose initialisers any program
    // runs.
    unsafe { Loader::file(path) }
}

#[test]
fn a_driver_that_is_not_there_is_an_error_naming_the_file() {
    alone!();
    let error = file("/nowhere/libcuda.so.1").install().unwrap_err();
    let LoadError::NotFound { file, reason } = &error else { panic!("{error:?}") };
    assert_eq!(file, "/nowhere/libcuda.so.1");
    assert!(!reason.is_empty());
    let text = error.to_string();
    assert!(text.contains("/nowhere/libcuda.so.1"), "{text}");
    assert!(text.contains("no CUDA driver"), "{text}");
    assert!(cuda_sys::installed().is_none());
}

#[test]
fn a_file_that_is_no_library_is_an_error_naming_it() {
    alone!();
    let path = std::env::temp_dir().join(format!("not-a-driver-{}.so", std::process::id()));
    std::fs::write(&path, "this is not a library").unwrap();
    let error = file(path.to_str().unwrap()).install().unwrap_err();
    std::fs::remove_file(&path).unwrap();
    let LoadError::NotFound { file, reason } = &error else { panic!("{error:?}") };
    assert_eq!(*file, path.display().to_string());
    assert!(!reason.is_empty());
}

#[test]
fn an_unreadable_file_is_an_error_naming_it() {
    alone!();
    let path = std::env::temp_dir();
    let error = file(path.to_str().unwrap()).install().unwrap_err();
    assert!(matches!(error, LoadError::NotFound { .. }), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_foreign_library_is_named_as_no_driver() {
    alone!();
    let error = file("libm.so.6").install().unwrap_err();
    let LoadError::NotADriver { file, symbol } = &error else { panic!("{error:?}") };
    assert_eq!(file, "libm.so.6");
    let text = error.to_string();
    assert!(text.contains("libm.so.6") && text.contains(symbol), "{text}");
    assert!(cuda_sys::installed().is_none());
}

#[test]
fn a_driver_too_old_is_named_with_both_versions() {
    alone!();
    let error = fake_driver::loader(11080, None).install().unwrap_err();
    assert_eq!(
        error,
        LoadError::TooOld {
            file: "fake driver".into(),
            needed: Version::new(12, 2),
            found: Version::new(11, 8)
        }
    );
    let text = error.to_string();
    assert!(text.contains("12.2") && text.contains("11.8") && text.contains("fake driver"), "{text}");
}

#[test]
fn a_driver_that_does_not_tell_its_version_is_an_error() {
    alone!();
    let error = fake_driver::loader(0, None).install().unwrap_err();
    assert!(matches!(error, LoadError::NoVersion { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("cuDriverGetVersion") && text.contains("CUDA_ERROR_NOT_INITIALIZED"), "{text}");
}

#[test]
fn a_driver_that_lacks_a_baseline_call_is_named_with_the_call() {
    alone!();
    let error = fake_driver::loader(12040, Some("cuGraphInstantiateWithParams")).install().unwrap_err();
    let expected = LoadError::Incomplete {
        file: "fake driver".into(),
        call: Call::cuGraphInstantiateWithParams,
        found: Version::new(12, 4),
    };
    assert_eq!(error, expected);
    let text = error.to_string();
    assert!(text.contains("cuGraphInstantiateWithParams") && text.contains("12.4"), "{text}");
}

#[test]
fn the_oldest_supported_driver_is_accepted() {
    alone!();
    let driver = fake_driver::loader(12020, None).install().unwrap();
    assert_eq!(driver.version(), Version::BASELINE);
    assert!(driver.table().cuGraphAddNode_v12030.is_none(), "a call of 12.3 on a driver of 12.2");
}

#[test]
fn a_failed_load_leaves_nothing_behind_and_can_be_tried_again() {
    alone!();
    for _ in 0..3 {
        assert!(matches!(file("/nowhere/libcuda.so.1").install(), Err(LoadError::NotFound { .. })));
        assert!(matches!(fake_driver::loader(11080, None).install(), Err(LoadError::TooOld { .. })));
    }
    let driver = chosen().install().unwrap();
    assert!(core::ptr::eq(driver, cuda_sys::driver().unwrap()));
    assert!(core::ptr::eq(driver, cuda_sys::installed().unwrap()));
}

#[test]
fn a_process_has_one_driver() {
    alone!();
    let driver = chosen().install().unwrap();
    for loader in [chosen(), fake_driver::loader(12040, None), file("/nowhere/libcuda.so.1")] {
        let error = loader.install().unwrap_err();
        assert_eq!(error, LoadError::AlreadyInstalled { file: driver.origin().to_owned() });
        assert!(error.to_string().contains(driver.origin()), "{error}");
    }
    assert!(core::ptr::eq(driver, cuda_sys::driver().unwrap()));
}

#[test]
fn of_many_threads_that_install_one_succeeds_and_all_get_its_driver() {
    alone!();
    let start = std::sync::Barrier::new(8);
    let won = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    match chosen().install() {
                        Ok(driver) => {
                            assert!(core::ptr::eq(driver, cuda_sys::driver().unwrap()));
                            true
                        }
                        Err(error) => {
                            assert!(matches!(error, LoadError::AlreadyInstalled { .. }), "{error:?}");
                            assert!(cuda_sys::installed().is_some());
                            false
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
}

#[test]
fn the_environment_names_the_driver() {
    alone!("CUDA_SYS_DRIVER" = "/nowhere/from-the-environment.so");
    let error = cuda_sys::driver().unwrap_err();
    let text = error.to_string();
    let LoadError::Variable { variable, value, reason } = &error else { panic!("{error:?}") };
    assert_eq!((*variable, value.as_str()), ("CUDA_SYS_DRIVER", "/nowhere/from-the-environment.so"));
    let LoadError::NotFound { file, reason } = &**reason else { panic!("{reason:?}") };
    assert_eq!(file, value);
    assert_eq!(
        text,
        format!(
            "the environment variable CUDA_SYS_DRIVER asks for the CUDA driver `{file}`, which cannot be used: {reason}. Correct the \
             variable, which takes the path of a library, or unset it to use the system's driver"
        )
    );
    assert_eq!(cuda_sys::driver().unwrap_err(), error, "the next try gives the same answer");
}

#[test]
fn a_variable_that_names_no_driver_is_named() {
    alone!("CUDA_SYS_DRIVER" = "libm.so.6");
    let text = cuda_sys::driver().unwrap_err().to_string();
    assert!(text.contains("CUDA_SYS_DRIVER asks for the CUDA driver `libm.so.6`"), "{text}");
    assert!(text.contains("has no symbol cuDriverGetVersion. Correct the variable"), "{text}");
}

#[test]
fn what_a_variable_says_does_nothing_to_a_terminal() {
    alone!("CUDA_SYS_DRIVER" = "/nowhere/\u{1b}[31mred\n");
    let text = cuda_sys::driver().unwrap_err().to_string();
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.contains(r"`/nowhere/\u{1b}[31mred\n`"), "{text}");
}

#[test]
fn an_empty_variable_counts_as_none() {
    alone!("CUDA_SYS_DRIVER" = "");
    match cuda_sys::driver() {
        Ok(driver) => assert!(driver.origin().contains("libcuda.so.1"), "{}", driver.origin()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("libcuda.so.1"), "{text}");
            assert!(text.contains("`cuda_soft::loader(cuda_soft::Config::new()).install()?`"), "{text}");
        }
    }
}
