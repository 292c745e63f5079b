//! CUDA C++ compiled for a context's device. Without a compiler these tests are skipped.

use std::sync::Arc;

use cuda_handles::nvrtc::{self, Arch, Compiled, Program, Target, Version};
use cuda_handles::{Context, Error, Image, Library};
use cuda_tests::{alone, count, is_soft, kernel, no_leaks, raw, setup};

/// The result of the compilation; ends the test where there is no compiler, or only one that is too
/// new for the driver.
macro_rules! compiled {
    ($outcome:expr) => {
        match $outcome {
            Ok(compiled) => compiled,
            Err(Error::Nvrtc(error)) if is_lacking(&error) => {
                cuda_tests::skip!("{}", error.to_string().lines().next().unwrap_or_default())
            }
            Err(error) => panic!("{error}"),
        }
    };
}

fn is_lacking(error: &nvrtc::Error) -> bool {
    matches!(error, nvrtc::Error::NotFound { .. } | nvrtc::Error::PtxTooNew { .. })
}

const SCALE: &str = "template <class T> __global__ void scale(unsigned n, T factor, T *x)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * factor + OFFSET;
}
";

fn scale() -> Program {
    Program::new("scale.cu", SCALE)
        .define("OFFSET", "1")
        .expression("scale<unsigned>")
        .expression("scale<float>")
}

fn run(context: &Context, compiled: &Compiled) {
    let library = Library::load(context, Image::from(compiled)).unwrap();
    let scale = library.kernel(compiled.lowered_name("scale<unsigned>").unwrap()).unwrap();
    let stream = context.stream().unwrap();
    let x = stream.upload(&[1_u32, 2, 3, 4]).unwrap();
    raw::launch(&stream, &scale, 4, &[3, 10, x.address()]);
    assert_eq!(x.read_blocking(&stream).unwrap(), [11, 21, 31, 4]);
    assert!(library.kernel(compiled.lowered_name("scale<float>").unwrap()).is_ok());
}

#[test]
fn what_was_compiled_runs() {
    let context = setup();
    let compiled = compiled!(context.compile(&scale()));
    no_leaks(|| run(&context, &compiled));
}

#[test]
fn it_is_compiled_once_and_without_the_driver() {
    let context = setup();
    compiled!(context.compile(&scale()));
    let (first, cost) = count(|| context.compile(&scale().define("MORE", "1")).unwrap());
    cost.assert_calls(&[]);
    assert!(Arc::ptr_eq(&first, &context.compile(&scale().define("MORE", "1")).unwrap()));
}

#[test]
fn the_target_is_the_device() {
    let context = setup();
    let compiled = compiled!(context.compile(&scale()));
    let (major, minor) = context.limits().compute_capability;
    let best = nvrtc::Compiler::load().unwrap().best_arch((major, minor)).unwrap();
    let ptx = compiled.ptx().unwrap();
    assert!(ptx.contains(&format!(".target sm_{best}")), "{ptx}");
    let named = context.compile(&scale().target(Target::Ptx(Arch::new(8, 0)))).unwrap();
    assert!(named.ptx().unwrap().contains(".target sm_80"));
    run(&context, &named);
}

#[test]
fn a_cubin_runs_where_there_is_a_device_for_it() {
    let context = setup();
    let (major, minor) = context.limits().compute_capability;
    let compiled = compiled!(context.compile(&scale().target(Target::Cubin(Arch::new(major, minor)))));
    if is_soft() {
        // It interprets PTX.
        assert!(Library::load(&context, Image::from(&*compiled)).is_err());
    } else {
        no_leaks(|| run(&context, &compiled));
    }
}

#[test]
fn what_does_not_compile_is_an_error_of_this_crate_too() {
    let context = setup();
    compiled!(context.compile(&scale()));
    let error =
        context.compile(&Program::new("wrong.cu", "__global__ void wrong() { missing(); }")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Nvrtc(_)), "{error:?}");
    assert!(text.contains("wrong.cu(1)") && text.contains("missing"), "{text}");
}

#[test]
fn ptx_that_is_too_new_for_the_driver_is_an_error_that_says_so() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    match context.compile(&scale()) {
        Ok(compiled) => assert!(compiled.compiler() <= Version::new(12, 2), "{compiled:?}"),
        Err(Error::Nvrtc(error)) if matches!(*error, nvrtc::Error::NotFound { .. }) => {}
        Err(Error::Nvrtc(error)) => {
            let nvrtc::Error::PtxTooNew { compiler, driver, .. } = *error else { panic!("{error}") };
            assert!(compiler > driver && driver == Version::new(12, 2), "{error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_compiler_that_is_not_where_the_environment_says_is_named() {
    alone!("CUDA_NVRTC" = "/nowhere/libnvrtc.so.12");
    let context = setup();
    let text = context.compile(&scale()).unwrap_err().to_string();
    assert!(text.contains("CUDA_NVRTC names /nowhere/libnvrtc.so.12"), "{text}");
}

#[test]
fn a_lost_context_compiles_nothing() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    raw::launch(&stream, &kernel(&context, "poke"), 1, &[0x40, 7]);
    let first = stream.synchronize_blocking().unwrap_err();
    assert_eq!(context.compile(&scale()).unwrap_err(), first);
}
