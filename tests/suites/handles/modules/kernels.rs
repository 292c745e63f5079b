//! Kernels from raw handles, their attributes, the compiler's options, the linker.

use cuda_handles::{Error, Image, Kernel, Library, Linker, LoadOptions};
use cuda_sys::{CUfunction_attribute as Attribute, CUresult, Call, Version};
use cuda_tests::{SMALL, UNKNOWN_INSTRUCTION, alone, count, fail, kernel, no_leaks, raw, setup};

#[test]
fn a_known_kernel_gives_its_owner_and_another_library_is_refused() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        let other = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        // SAFETY: the kernel's library is loaded.
        let of = |library: Option<&Library>| unsafe { Kernel::from_raw_in(saxpy.as_raw(), library) };
        assert_eq!(of(None).unwrap(), saxpy);
        assert_eq!(of(Some(saxpy.library())).unwrap(), saxpy);
        let error = of(Some(&other)).unwrap_err();
        assert!(matches!(error, Error::OtherLibrary { .. }), "{error:?}");
        let text = error.to_string();
        for named in [
            "saxpy".to_owned(),
            format!("{:#x}", other.as_raw().addr()),
            format!("{:#x}", saxpy.library().as_raw().addr()),
        ] {
            assert!(text.contains(&named), "{named} in {text}");
        }
    });
}

#[test]
fn a_kernel_nobody_holds_needs_its_library_and_keeps_it() {
    let context = setup();
    no_leaks(|| {
        let library = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        let saxpy = library.kernel("saxpy").unwrap();
        let raw = saxpy.as_raw();
        drop(saxpy);
        // SAFETY: the library is loaded, and it is the kernel's.
        let (none, some) =
            unsafe { (Kernel::from_raw_in(raw, None), Kernel::from_raw_in(raw, Some(&library))) };
        assert!(matches!(none, Err(Error::Unknown { .. })), "{none:?}");
        let again = some.unwrap();
        assert_eq!(again.library(), &library);
        assert_eq!(again, library.kernel("saxpy").unwrap(), "it is known now");
        if raw::driver().version() >= Version::new(12, 4) {
            assert_eq!(again.parameters().unwrap().len(), 4);
            assert_eq!(again.name(), "saxpy");
        }
        let other = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        drop(again);
        if raw::driver().version() >= Version::new(12, 5) {
            // SAFETY: the kernel's library is loaded; that the other one is given is what is
            // refused.
            let wrong = unsafe { Kernel::from_raw_in(raw, Some(&other)) };
            assert!(matches!(wrong, Err(Error::OtherLibrary { .. })), "{wrong:?}");
        }
    });
}

#[test]
fn a_foreign_library_is_used_and_left_alone() {
    let context = setup();
    no_leaks(|| {
        let theirs = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        // SAFETY: it stays loaded until the end of this test.
        let foreign = unsafe { Library::from_raw(&context, theirs.as_raw()) };
        let increment = foreign.kernel("increment").unwrap();
        assert_eq!(increment.library(), &foreign);
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[41_u32]).unwrap();
        raw::launch(&stream, &increment, 1, &[buffer.address(), 1]);
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [42]);
        drop((increment, foreign));
        cuda_tests::settle();
        theirs.kernel("increment").unwrap();
    });
}

#[test]
fn an_image_that_is_no_good_is_refused_by_the_load() {
    let context = setup();
    no_leaks(|| {
        let error = Library::load(&context, Image::Ptx("this is no PTX")).unwrap_err();
        assert!(matches!(error, Error::Jit { .. }), "{error:?}");
        // An empty text stands for no image: the driver does not see it.
        let error = Library::load(&context, Image::Ptx("")).unwrap_err();
        assert!(matches!(error, Error::Image(_)), "{error:?}");
        assert!(error.to_string().contains("without an image"), "{error}");
        let error = Library::load(&context, Image::Ptx(UNKNOWN_INSTRUCTION)).unwrap_err();
        let Error::Jit { code, log, .. } = error else { panic!("{error:?}") };
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("line 10"), "{log}");
    });
}

#[test]
fn the_dynamic_shared_memory_of_a_kernel_can_be_raised_to_the_devices_limit() {
    let context = setup();
    no_leaks(|| {
        let roomy = kernel(&context, "roomy");
        let before = roomy.attributes().max_dynamic_shared_bytes;
        assert_eq!(roomy.max_dynamic_shared_bytes(), before);
        let limit = context.limits().max_shared_bytes_opt_in - roomy.attributes().static_shared_bytes;
        let (set, cost) = count(|| roomy.set_max_dynamic_shared_bytes(limit));
        set.unwrap();
        cost.assert_calls(&[("cuKernelSetAttribute", 1)]);
        assert_eq!(roomy.max_dynamic_shared_bytes(), limit);
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        assert_eq!(roomy.attribute(attribute).unwrap(), i32::try_from(limit).unwrap());
        let error = roomy.set_max_dynamic_shared_bytes(limit + 1).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error:?}");
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        assert_eq!(roomy.max_dynamic_shared_bytes(), limit);
        let fixed = Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        assert!(roomy.set_attribute(fixed, 1).is_err(), "not every attribute can be set");
    });
}

#[test]
fn a_kernel_can_be_loaded_ahead() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        if raw::driver().version() >= Version::new(12, 4) {
            saxpy.load_now().unwrap();
        }
    });
}

#[test]
fn loading_ahead_on_an_old_driver_says_what_it_takes() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let error = kernel(&context, "saxpy").load_now().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cuFuncLoad") && text.contains("12.4") && text.contains("12.2"), "{text}");
}

#[test]
fn ptx_is_compiled_with_the_options_given() {
    let context = setup();
    no_leaks(|| {
        for options in [
            LoadOptions { optimization: Some(0), ..LoadOptions::default() },
            LoadOptions { line_info: true, max_registers: Some(64), ..LoadOptions::default() },
            LoadOptions { target: Some(context.limits().compute_capability), ..LoadOptions::default() },
        ] {
            let library = Library::load_with(&context, Image::Ptx(SMALL), &options).unwrap();
            library.kernel("saxpy").unwrap();
        }
        let wrong = LoadOptions { optimization: Some(9), ..LoadOptions::default() };
        let (outcome, cost) = count(|| Library::load_with(&context, Image::Ptx(SMALL), &wrong).map(drop));
        assert!(matches!(outcome, Err(Error::Limit { .. })), "{outcome:?}");
        cost.assert_calls(&[]);
    });
}

const HELPER: &str = ".version 7.8
.target sm_70
.address_size 64
.visible .func (.param .b32 out) twice(.param .b32 in)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [in];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [out], %r2;
    ret;
}
";

const MAIN: &str = ".version 7.8
.target sm_70
.address_size 64
.extern .func (.param .b32 out) twice(.param .b32 in);
.visible .entry doubled(.param .u64 at)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [at];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [%rd2];
    {
        .param .b32 param0;
        st.param.b32 [param0], %r1;
        .param .b32 retval0;
        call.uni (retval0), twice, (param0);
        ld.param.b32 %r2, [retval0];
    }
    st.global.u32 [%rd2], %r2;
    ret;
}
";

#[test]
fn several_images_are_linked_to_one_library() {
    let context = setup();
    no_leaks(|| {
        let mut linker = match Linker::new(&context) {
            Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_SUPPORTED, .. }) => {
                cuda_tests::skip!("the driver under test does not link yet");
            }
            linker => linker.unwrap(),
        };
        linker.add("main.ptx", Image::Ptx(MAIN)).unwrap().add("helper.ptx", Image::Ptx(HELPER)).unwrap();
        let library = linker.link().unwrap();
        let doubled = library.kernel("doubled").unwrap();
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[21_u32]).unwrap();
        raw::launch(&stream, &doubled, 1, &[buffer.address()]);
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [42]);
        let mut alone = Linker::new(&context).unwrap();
        let error =
            alone.add("main.ptx", Image::Ptx(MAIN)).map(drop).and_then(|()| alone.link()).unwrap_err();
        assert!(error.to_string().contains("twice"), "what is missing is named: {error}");
        let mut broken = Linker::new(&context).unwrap();
        let error = broken.add("broken.ptx", Image::Ptx(UNKNOWN_INSTRUCTION)).unwrap_err();
        assert!(matches!(error, Error::Jit { .. }), "{error:?}");
        assert!(broken.add("cut.cubin", Image::Binary(b"\x7fELF")).is_err());
    });
}

#[test]
fn a_linker_takes_whole_archives_only() {
    let context = setup();
    no_leaks(|| {
        let linker = || Linker::new(&context);
        if let Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_SUPPORTED, .. }) = linker() {
            cuda_tests::skip!("the driver under test does not link yet");
        }
        let header = format!("!<arch>\n{:<48}{:<10}`\n", "member/", 999_999_999);
        let cut = [header.as_bytes(), b"\x7fELF"].concat();
        let mut broken = linker().unwrap();
        let (outcome, cost) = count(|| broken.add_archive("cut.a", &cut).map(drop));
        assert!(matches!(outcome, Err(Error::Image(_))), "{outcome:?}");
        cost.assert_calls(&[]);
    });
}

/// A driver can succeed and give nothing, which must not be looked at.
#[test]
fn a_linker_that_makes_nothing_is_an_error() {
    let context = setup();
    no_leaks(|| {
        let linker = || Linker::new(&context);
        if let Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_SUPPORTED, .. }) = linker() {
            cuda_tests::skip!("the driver under test does not link yet");
        }
        let outcomes: [fn(Linker) -> Result<(), Error>; 2] =
            [|linker| linker.link().map(drop), |linker| linker.link_to_image().map(drop)];
        for outcome in outcomes {
            let made = linker().unwrap();
            // The driver is not called and writes no image.
            let injection = fail(Call::cuLinkComplete, 1, CUresult::CUDA_SUCCESS);
            let (found, cost) = count(|| outcome(made));
            assert!(injection.hit());
            assert!(matches!(found, Err(Error::Image(_))), "{found:?}");
            assert_eq!(cost.calls("cuLibraryLoadData"), 0, "{cost}");
        }
    });
}
