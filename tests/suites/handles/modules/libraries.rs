//! Libraries: loading an image, finding its kernels.

use cuda_handles::{Error, Image, Library};
use cuda_tests::{Kind, Need, SMALL, UNKNOWN_INSTRUCTION, alone, count, kernel, needs, no_leaks, raw, setup};

#[test]
fn a_library_knows_its_kernels() {
    let context = setup();
    no_leaks(|| {
        let (library, cost) = count(|| Library::load(&context, Image::Ptx(SMALL)).unwrap());
        assert_eq!(cost.calls("cuLibraryLoadData"), 1, "{cost}");
        assert_eq!(cost.live(Kind::Library), 1);
        assert_eq!(library.context(), &*context);
        let saxpy = library.kernel("saxpy").unwrap();
        assert_eq!(saxpy.name(), "saxpy");
        assert_eq!(saxpy.library(), &library);
        assert_eq!(saxpy.context(), &*context);
    });
}

#[test]
fn a_library_tells_the_names_of_its_kernels() {
    let context = setup();
    needs!(KernelNames);
    no_leaks(|| {
        let library = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        let mut names: Vec<String> =
            library.kernel_names().unwrap().iter().map(ToString::to_string).collect();
        names.sort_unstable();
        let expected = [
            "empty",
            "increment",
            "many16",
            "many20",
            "neighbour",
            "offset_copy",
            "poke",
            "roomy",
            "saxpy",
            "spin",
            "stamp",
            "structures",
        ];
        assert_eq!(names, expected);
    });
}

#[test]
fn a_kernel_that_is_not_there_is_an_error_with_those_that_are() {
    let context = setup();
    no_leaks(|| {
        let library = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        let error = library.kernel("saxpi").unwrap_err();
        assert!(matches!(error, Error::NoKernel { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("saxpi"), "{text}");
        if Need::KernelNames.is_met() {
            assert!(text.contains("saxpy") && text.contains("increment"), "{text}");
        }
        assert!(library.kernel("").is_err());
        assert!(library.kernel("a\0b").is_err(), "a name no C string can hold");
    });
}

#[test]
fn ptx_that_does_not_compile_is_an_error_with_the_compilers_log() {
    let context = setup();
    no_leaks(|| {
        let loaded = Library::load(&context, Image::Ptx(UNKNOWN_INSTRUCTION));
        let error = loaded.and_then(|library| library.kernel("broken")).unwrap_err();
        let Error::Jit { log, code, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*code, cuda_sys::CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("line 10") && log.contains("frobnicate"), "{log}");
        let text = error.to_string();
        assert!(text.contains("line 10") && text.contains("CUDA_ERROR_INVALID_PTX"), "{text}");
    });
}

#[test]
fn what_is_no_image_is_an_error() {
    let context = setup();
    no_leaks(|| {
        for image in [
            Image::Ptx(""),
            Image::Ptx("this is no PTX"),
            Image::Ptx(".version 7.8\0.target sm_70"),
            Image::Binary(&[]),
            Image::Binary(&[1, 2, 3]),
            Image::Binary(b"\x7fELF"),
            Image::Binary(&[0; 64]),
        ] {
            let outcome = Library::load(&context, image).and_then(|library| library.kernel("k"));
            let text = outcome.unwrap_err().to_string();
            assert!(!text.is_empty());
        }
        drop(kernel(&context, "saxpy"));
    });
}

#[test]
fn zero_bytes_at_the_end_of_a_text_belong_to_no_image() {
    let context = setup();
    no_leaks(|| {
        for end in ["\0", "\0\0\0"] {
            let text = format!("{SMALL}{end}");
            drop(Library::load(&context, Image::Ptx(&text)).unwrap().kernel("saxpy").unwrap());
        }
    });
}

#[test]
fn a_cut_off_image_never_reads_past_its_end() {
    let context = setup();
    no_leaks(|| {
        for cut in [10, 100, SMALL.find("saxpy").unwrap(), SMALL.len() - 2] {
            let outcome = Library::load(&context, Image::Ptx(&SMALL[..cut]))
                .and_then(|library| library.kernel("saxpy"));
            assert!(outcome.is_err(), "cut at {cut}");
        }
    });
}

#[test]
fn a_kernel_knows_the_layout_of_its_parameters() {
    let context = setup();
    if raw::driver().version() < cuda_sys::Version::new(12, 4) {
        assert_eq!(kernel(&context, "saxpy").parameters(), None);
        return;
    }
    no_leaks(|| {
        let layout = |name: &str| -> Vec<(usize, usize)> {
            let kernel = kernel(&context, name);
            kernel.parameters().unwrap().iter().map(|parameter| (parameter.offset, parameter.size)).collect()
        };
        assert_eq!(layout("empty"), []);
        assert_eq!(layout("saxpy"), [(0, 4), (4, 4), (8, 8), (16, 8)]);
        assert_eq!(layout("structures"), [(0, 1), (8, 24), (32, 2), (48, 16), (64, 4), (72, 8)]);
        assert_eq!(layout("many20").len(), 20);
    });
}

#[test]
fn a_driver_that_does_not_tell_layouts_is_not_asked() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let saxpy = kernel(&context, "saxpy");
    assert_eq!(saxpy.parameters(), None);
    let text = saxpy.library().kernel("saxpi").unwrap_err().to_string();
    assert!(text.contains("saxpi"), "{text}");
}

#[test]
fn a_kernel_knows_its_attributes() {
    let context = setup();
    no_leaks(|| {
        let (saxpy, roomy) = (kernel(&context, "saxpy"), kernel(&context, "roomy"));
        assert_eq!(saxpy.attributes().static_shared_bytes, 0);
        assert_eq!(roomy.attributes().static_shared_bytes, 32768);
        assert!(saxpy.attributes().max_threads_per_block <= context.limits().max_threads_per_block);
        assert!(saxpy.attributes().max_threads_per_block >= 32);
        assert!(roomy.attributes().max_dynamic_shared_bytes <= context.limits().max_shared_bytes - 32768);
        let (_, cost) = count(|| saxpy.attributes().registers);
        cost.assert_calls(&[]);
    });
}

#[test]
fn a_kernel_keeps_its_library() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        cuda_tests::settle();
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[41_u32]).unwrap();
        raw::launch(&stream, &increment, 1, &[buffer.address(), 1]);
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [42]);
    });
}
