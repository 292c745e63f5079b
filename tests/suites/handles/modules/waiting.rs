//! Libraries whose kernels wait at their entry.

use cuda_handles::{EntryWait, Error, Image, Library, WaitingLibrary};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Kind, Need, SMALL, UNKNOWN_INSTRUCTION, VARIABLES, alone, count, every_failure, fail, is_soft, needs,
    no_leaks, raw, setup,
};

/// The reason for loading an image as it is.
fn why(loaded: &WaitingLibrary) -> &str {
    assert_eq!(loaded.library.entry_wait(), Some(&loaded.outcome));
    match &loaded.outcome {
        EntryWait::Waiting => panic!("its kernels wait"),
        EntryWait::AsItIs { why } => why,
    }
}

#[test]
fn a_waiting_kernel_computes_the_same() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (loaded, cost) = count(|| Library::load_waiting(&context, Image::Ptx(SMALL)).unwrap());
        assert_eq!((cost.calls("cuLibraryLoadData"), cost.live(Kind::Library)), (1, 1), "{cost}");
        assert_eq!(loaded.outcome, EntryWait::Waiting);
        assert_eq!(loaded.outcome.to_string(), "the kernels wait at their entry");
        assert_eq!(loaded.library.entry_wait(), Some(&EntryWait::Waiting));
        let plain = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        assert_eq!(plain.entry_wait(), None);
        let stream = context.stream().unwrap();
        for (library, waits) in [(&loaded.library, true), (&plain, false)] {
            let increment = library.kernel("increment").unwrap();
            let (found, cost) = count(|| increment.waits_at_entry());
            assert_eq!((found, cost.total()), (waits, 0));
            let buffer = stream.upload(&[41_u32; 64]).unwrap();
            raw::launch(&stream, &increment, 64, &[buffer.address(), 64]);
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [42; 64]);
        }
        if Need::KernelNames.is_met() {
            assert_eq!(loaded.library.kernel_names().unwrap(), plain.kernel_names().unwrap());
        }
    });
}

#[test]
fn every_kernel_of_an_image_can_wait() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        for image in [
            SMALL,
            VARIABLES,
            include_str!("../../../kernels/arithmetic.ptx"),
            include_str!("../../../kernels/atomics.ptx"),
            include_str!("../../../kernels/conditions.ptx"),
            include_str!("../../../kernels/generic.ptx"),
            include_str!("../../../kernels/heat.ptx"),
            include_str!("../../../kernels/reduce.ptx"),
            include_str!("../../../kernels/spaces.ptx"),
        ] {
            let loaded = Library::load_waiting(&context, Image::Ptx(image)).unwrap();
            assert_eq!(loaded.outcome, EntryWait::Waiting);
        }
    });
}

#[test]
fn code_for_older_devices_is_loaded_as_it_is() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let older = ".version 6.0\n.target sm_50\n.address_size 64\n.entry nothing() { ret; }";
        let loaded = Library::load_waiting(&context, Image::Ptx(older)).unwrap();
        assert_eq!(why(&loaded), "the PTX is for sm_50, and waits are put into PTX for sm_70 or later");
        assert_eq!(loaded.outcome.to_string(), format!("loaded as it is: {}", why(&loaded)));
        assert!(!loaded.library.kernel("nothing").unwrap().waits_at_entry());
        let empty = Image::Ptx(".version 7.8\n.target sm_70\n.address_size 64\n");
        assert_eq!(why(&Library::load_waiting(&context, empty).unwrap()), "the PTX has no kernel");
    });
}

/// From PTX 6.4 on, shuffles for `sm_70` need a mask: raising the version makes this one invalid.
const SHUFFLES: &str = ".version 6.0
.target sm_70
.address_size 64
.visible .entry shuffles()
{
    .reg .b32 %r<3>;
    mov.u32 %r1, %laneid;
    shfl.down.b32 %r2, %r1, 1, 31;
    ret;
}
";

#[test]
fn text_that_compiles_only_without_waits_is_loaded_as_it_is() {
    let context = setup();
    needs!(LaunchAttributes);
    if is_soft() {
        cuda_tests::skip!("the software driver lacks shuffles without a mask in every version");
    }
    no_leaks(|| {
        let (loaded, cost) = count(|| Library::load_waiting(&context, Image::Ptx(SHUFFLES)).unwrap());
        assert_eq!((cost.calls("cuLibraryLoadData"), cost.live(Kind::Library)), (2, 2), "{cost}");
        assert!(why(&loaded).starts_with("it does not compile with the waits: "), "{}", why(&loaded));
        assert!(!loaded.library.kernel("shuffles").unwrap().waits_at_entry());
    });
}

#[test]
fn what_the_compiler_says_of_the_waits_is_told() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        // The check of the first text fails.
        let injection = fail(Call::cuLibraryGetKernel, 1, CUresult::CUDA_ERROR_INVALID_PTX);
        let loaded = Library::load_waiting(&context, Image::Ptx(SMALL)).unwrap();
        assert!(injection.hit());
        assert!(why(&loaded).starts_with("it does not compile with the waits: "), "{}", why(&loaded));
        assert!(why(&loaded).contains("CUDA_ERROR_INVALID_PTX"), "{}", why(&loaded));
        assert!(!loaded.library.kernel("increment").unwrap().waits_at_entry());
    });
}

#[test]
fn an_image_that_is_no_good_is_the_error_of_the_image_as_it_is() {
    let context = setup();
    no_leaks(|| {
        for image in [
            Image::Ptx(""),
            Image::Ptx("this is no PTX"),
            Image::Ptx(UNKNOWN_INSTRUCTION),
            Image::Ptx(".version 7.8\0.target sm_70"),
            Image::Ptx(&SMALL[..SMALL.len() - 3]),
            Image::Binary(b"\x7fELF"),
            Image::Binary(&[1, 2, 3]),
        ] {
            let (as_it_is, waiting) =
                (Library::load(&context, image).unwrap_err(), Library::load_waiting(&context, image));
            assert_eq!(waiting.unwrap_err(), as_it_is);
        }
        let error = Library::load_waiting(&context, Image::Ptx(UNKNOWN_INSTRUCTION)).unwrap_err();
        assert!(matches!(&error, Error::Jit { log, .. } if log.contains("line 10")), "{error}");
    });
}

#[test]
fn a_cubin_is_loaded_as_it_is() {
    let context = setup();
    no_leaks(|| {
        let mut linker = match cuda_handles::Linker::new(&context) {
            Err(Error::Driver { .. }) => cuda_tests::skip!("the driver under test does not link yet"),
            linker => linker.unwrap(),
        };
        linker.add("small.ptx", Image::Ptx(SMALL)).unwrap();
        let image = linker.link_to_image().unwrap();
        let as_it_is = Library::load(&context, Image::Binary(&image));
        let loaded = Library::load_waiting(&context, Image::Binary(&image));
        if is_soft() {
            // It has no machine code.
            assert_eq!(loaded.unwrap_err(), as_it_is.unwrap_err());
            return;
        }
        let loaded = loaded.unwrap();
        assert_eq!(why(&loaded), "it is a cubin or a fatbin, and waits are put into PTX alone");
        assert!(!loaded.library.kernel("increment").unwrap().waits_at_entry());
    });
}

#[test]
fn on_older_devices_images_are_loaded_as_they_are() {
    alone!("CUDA_SOFT_CAPABILITY" = "8.6", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let loaded = Library::load_waiting(&context, Image::Ptx(SMALL)).unwrap();
        assert_eq!(why(&loaded), "the device is sm_86, and kernels can wait from sm_90 on");
        assert!(!loaded.library.kernel("increment").unwrap().waits_at_entry());
    });
}

/// PTX 7.8 knows no target after `sm_90`.
#[test]
fn on_newer_devices_kernels_wait() {
    alone!("CUDA_SOFT_CAPABILITY" = "12.0", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let loaded = Library::load_waiting(&context, Image::Ptx(SMALL)).unwrap();
        assert_eq!(loaded.outcome, EntryWait::Waiting);
    });
}

#[test]
fn the_kernels_of_a_foreign_handle_are_not_known_to_wait() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let loaded = Library::load_waiting(&context, Image::Ptx(SMALL)).unwrap();
        // SAFETY: it stays loaded until the end of this test.
        let foreign = unsafe { Library::from_raw(&context, loaded.library.as_raw()) };
        assert_eq!(foreign.entry_wait(), None);
        assert!(!foreign.kernel("increment").unwrap().waits_at_entry());
        // A kernel that is known is known to wait.
        let increment = loaded.library.kernel("increment").unwrap();
        assert!(increment.waits_at_entry() && foreign.kernel("increment").unwrap().waits_at_entry());
    });
}

#[test]
fn a_waiting_library_is_shared_apart_from_the_plain_one() {
    let context = setup();
    no_leaks(|| {
        let load = || Library::load_waiting_shared(&context, Image::Ptx(VARIABLES)).unwrap();
        let (first, cost) = count(load);
        assert!(first.entry_wait().is_some());
        assert!(cost.calls("cuLibraryLoadData") >= 1, "{cost}");
        let (again, cost) = count(load);
        cost.assert_calls(&[]);
        assert_eq!(first, again);
        let plain = Library::load_shared(&context, Image::Ptx(VARIABLES)).unwrap();
        assert_ne!(plain, first);
        assert_eq!(plain.entry_wait(), None);
        assert_eq!(load(), first);
    });
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let context = setup();
    no_leaks(|| {
        let load = || Library::load_waiting(&context, Image::Ptx(SMALL))?.library.kernel("saxpy");
        assert!(every_failure(load) >= 2);
    });
}
