//! Libraries shared by everyone who loads the same image.

use std::sync::{Barrier, LazyLock};

use cuda_handles::{Image, Library};
use cuda_tests::{
    Kind, SMALL, UNKNOWN_INSTRUCTION, VARIABLES, alone, count, kernel, live, no_leaks, raw, settle, setup,
};

#[test]
fn an_image_is_loaded_once() {
    let context = setup();
    no_leaks(|| {
        let (first, cost) = count(|| Library::load_shared(&context, Image::Ptx(SMALL)).unwrap());
        assert_eq!((cost.calls("cuLibraryLoadData"), cost.live(Kind::Library)), (1, 1));
        let (again, cost) = count(|| Library::load_shared(&context, Image::Ptx(SMALL)).unwrap());
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!(first, again);
        assert_eq!(first.kernel("saxpy").unwrap(), again.kernel("saxpy").unwrap());
        // The contents count.
        static COPY: LazyLock<String> = LazyLock::new(|| SMALL.to_owned());
        assert_eq!(Library::load_shared(&context, Image::Ptx(&COPY)).unwrap(), first);
        let others = [Image::Ptx(VARIABLES), Image::Ptx(&SMALL[..SMALL.len() - 1])];
        for other in others {
            assert_ne!(Library::load_shared(&context, other).unwrap(), first);
        }
        // Loaded for oneself it is another one.
        assert_ne!(Library::load(&context, Image::Ptx(SMALL)).unwrap(), first);
    });
}

#[test]
fn the_last_owner_unloads_it() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Library);
        let library = Library::load_shared(&context, Image::Ptx(SMALL)).unwrap();
        let increment = library.kernel("increment").unwrap();
        drop(library);
        settle();
        assert_eq!(live().of(Kind::Library), before + 1, "the kernel keeps it");
        let again = Library::load_shared(&context, Image::Ptx(SMALL)).unwrap();
        assert_eq!(&again, increment.library());
        drop((increment, again));
        settle();
        assert_eq!(live().of(Kind::Library), before);
        let (library, cost) = count(|| Library::load_shared(&context, Image::Ptx(SMALL)).unwrap());
        assert_eq!(cost.calls("cuLibraryLoadData"), 1);
        drop(library);
    });
}

#[test]
fn threads_that_load_it_at_once_get_the_same() {
    let context = setup();
    no_leaks(|| {
        for _ in 0..20 {
            let start = Barrier::new(4);
            let libraries = std::thread::scope(|scope| {
                let load = || {
                    start.wait();
                    let library = Library::load_shared(&context, Image::Ptx(SMALL)).unwrap();
                    drop(library.kernel("increment").unwrap());
                    library
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(libraries.iter().all(|library| *library == libraries[0]));
            settle();
        }
    });
}

#[test]
fn a_failed_load_leaves_nothing() {
    let context = setup();
    no_leaks(|| {
        for _ in 0..2 {
            let (outcome, cost) = count(|| Library::load_shared(&context, Image::Ptx(UNKNOWN_INSTRUCTION)));
            assert_eq!((outcome.is_err(), cost.calls("cuLibraryLoadData")), (true, 1));
        }
    });
}

#[test]
fn it_is_not_found_in_a_lost_context() {
    alone!();
    let context = setup();
    let library = Library::load_shared(&context, Image::Ptx(SMALL)).unwrap();
    let stream = context.stream().unwrap();
    raw::launch(&stream, &kernel(&context, "poke"), 1, &[0x40, 7]);
    let first = stream.synchronize_blocking().unwrap_err();
    assert_eq!(Library::load_shared(&context, Image::Ptx(SMALL)).unwrap_err(), first);
    drop(library);
}
