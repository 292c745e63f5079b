//! Variables of libraries.

use cuda_handles::{
    Batch, Buffer, Compare, Context, Error, Image, Library, MemoryKind, MemorySpace, Slice, Stream,
};
use cuda_tests::{Gate, Kind, VARIABLES, alone, count, kernel, live, no_leaks, raw, settle, setup};

fn library(context: &Context) -> Library {
    Library::load(context, Image::Ptx(VARIABLES)).unwrap()
}

fn weights(library: &Library) -> Buffer<f32> {
    // SAFETY: the kernel that uses them computes with them.
    unsafe { library.global("weights") }.unwrap()
}

fn calls(library: &Library) -> Buffer<u32> {
    // SAFETY: the kernel that uses it counts.
    unsafe { library.global("calls") }.unwrap()
}

/// `values` times the weights, by the kernel.
fn weigh(library: &Library, stream: &Stream, values: &[f32]) -> Vec<f32> {
    let (kernel, buffer) = (library.kernel("weigh").unwrap(), stream.upload(values).unwrap());
    raw::launch(stream, &kernel, 32, &[values.len() as u64, buffer.address()]);
    buffer.read_blocking(stream).unwrap()
}

#[test]
fn a_constant_is_written_by_copies_and_read_by_kernels() {
    let context = setup();
    no_leaks(|| {
        let (library, stream) = (library(&context), context.stream().unwrap());
        let weights = weights(&library);
        assert_eq!((weights.len(), weights.size_bytes()), (16, 64));
        assert_eq!(weights.read_blocking(&stream).unwrap()[..4], [1.0, 2.0, 3.0, 0.0]);
        assert_eq!(weigh(&library, &stream, &[10.0; 4]), [10.0, 20.0, 30.0, 0.0]);
        weights.write_blocking(&stream, &[0.5; 16]).unwrap();
        assert_eq!(weigh(&library, &stream, &[10.0; 4]), [5.0; 4]);
        // Fills, copies between memory of the device, and parts.
        stream.fill(weights.slice(1..2).unwrap(), 3.0).unwrap();
        stream
            .copy(stream.upload(&[7.0_f32, 8.0]).unwrap().as_slice(), weights.slice(2..4).unwrap())
            .unwrap();
        assert_eq!(weigh(&library, &stream, &[1.0; 5]), [0.5, 3.0, 7.0, 8.0, 0.5]);
        let out = stream.zeros::<f32>(2).unwrap();
        stream.copy(weights.slice(2..4).unwrap(), &out).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [7.0, 8.0]);
        // From pinned memory and back.
        let pinned = context.pinned_zeros::<f32>(16).unwrap().share();
        pinned.write_blocking(&stream, &[9.0; 16]).unwrap();
        stream.copy(&pinned, &weights).unwrap();
        assert_eq!(weigh(&library, &stream, &[2.0; 2]), [18.0; 2]);
    });
}

#[test]
fn a_variable_is_written_by_kernels_and_read_by_copies() {
    let context = setup();
    no_leaks(|| {
        let (library, stream) = (library(&context), context.stream().unwrap());
        let (calls, count) = (calls(&library), library.kernel("count").unwrap());
        raw::launch(&stream, &count, 32, &[]);
        assert_eq!(calls.read_blocking(&stream).unwrap(), [37]);
        calls.write_blocking(&stream, &[0]).unwrap();
        raw::launch(&stream, &count, 3, &[]);
        assert_eq!(calls.read_blocking(&stream).unwrap(), [3]);
        // As memory that a kernel is given.
        let increment = kernel(&context, "increment");
        raw::launch(&stream, &increment, 1, &[calls.address(), 1]);
        assert_eq!(calls.read_blocking(&stream).unwrap(), [4]);
    });
}

#[test]
fn mangled_names_and_managed_variables_are_found() {
    let context = setup();
    no_leaks(|| {
        let (library, stream) = (library(&context), context.stream().unwrap());
        let (total, odd, word): (Buffer<u64>, Buffer<u8>, Buffer<u32>) =
            // SAFETY: the kernel that uses them computes with them.
            unsafe {
                let total = library.global("_ZN4mine5totalE").unwrap();
                (total, library.global("odd").unwrap(), library.managed_global("word").unwrap())
            };
        assert_eq!(total.read_blocking(&stream).unwrap(), [40]);
        assert_eq!(odd.read_blocking(&stream).unwrap(), [7, 8, 9]);
        assert_eq!(word.read_blocking(&stream).unwrap(), [9]);
        word.write_blocking(&stream, &[100]).unwrap();
        odd.write_blocking(&stream, &[1, 1, 1]).unwrap();
        let (add_up, out) = (library.kernel("add_up").unwrap(), stream.zeros::<u64>(1).unwrap());
        raw::launch(&stream, &add_up, 1, &[out.address()]);
        assert_eq!(out.read_blocking(&stream).unwrap(), [143]);
        assert_eq!(odd.allocation().kind(), MemoryKind::Global);
        assert_eq!(odd.allocation().space(), MemorySpace::Device);
        assert_eq!(word.allocation().kind(), MemoryKind::Managed);
    });
}

#[test]
fn asking_again_gives_the_same_memory() {
    let context = setup();
    no_leaks(|| {
        let library = library(&context);
        let (first, cost) = count(|| weights(&library));
        cost.assert_calls(&[("cuCtxPushCurrent", 1), ("cuLibraryGetGlobal", 1), ("cuCtxPopCurrent", 1)]);
        let (again, cost) = count(|| weights(&library));
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!(first, again);
        // As elements of another type, too.
        // SAFETY: as for the floats.
        let (bytes, cost) = count(|| unsafe { library.global::<[u8; 8]>("weights") }.unwrap());
        cost.assert_calls(&[]);
        assert_eq!((bytes.len(), bytes.address()), (8, first.address()));
        drop((first, again, bytes));
        let (_, cost) = count(|| weights(&library));
        assert_eq!(cost.calls("cuLibraryGetGlobal"), 1);
    });
}

#[test]
fn what_is_not_there_is_an_error() {
    let context = setup();
    no_leaks(|| {
        let library = library(&context);
        // SAFETY: nothing comes of it.
        let text = |name: &str| unsafe { library.global::<f32>(name) }.unwrap_err().to_string();
        for name in ["nothing", "", "weigh", "a\0b", "total"] {
            assert!(text(name).contains(&format!("no variable `{name}`")), "{}", text(name));
        }
        // SAFETY: nothing comes of it.
        let managed = |name: &str| unsafe { library.managed_global::<u32>(name) }.unwrap_err();
        for name in ["calls", "nothing"] {
            assert!(matches!(managed(name), Error::NoGlobal { what: "managed variable", .. }));
        }
    });
}

#[test]
fn a_size_that_does_not_fit_is_an_error_with_both() {
    let context = setup();
    no_leaks(|| {
        let library = library(&context);
        // SAFETY: nothing comes of it.
        let error = unsafe { library.global::<u16>("odd") }.unwrap_err();
        let Error::WrongVariable(wrong) = &error else { panic!("{error:?}") };
        assert_eq!((wrong.bytes, wrong.size, wrong.len), (3, 2, None));
        let text = error.to_string();
        for part in ["`odd`", "3 bytes", "`u16`", "2 bytes each"] {
            assert!(text.contains(part), "{text}");
        }
        // SAFETY: as above.
        assert!(matches!(unsafe { library.global::<()>("odd") }, Err(Error::WrongVariable(_))));
        // SAFETY: as above.
        assert!(matches!(unsafe { library.global::<u64>("calls") }, Err(Error::WrongVariable(_))));
    });
}

#[test]
fn a_variable_keeps_its_library() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Library);
        let weights = weights(&library(&context));
        settle();
        assert_eq!(live().of(Kind::Library), before + 1);
        assert_eq!(weights.read_blocking(&stream).unwrap()[1], 2.0);
        let part = weights.sub_buffer(1..2).unwrap();
        drop(weights);
        settle();
        assert_eq!(part.read_blocking(&stream).unwrap(), [2.0]);
        let ((), cost) = count(|| drop(part));
        assert_eq!(cost.calls("cuLibraryUnload"), 0, "drain alone unloads");
        settle();
        assert_eq!(live().of(Kind::Library), before);
    });
}

#[test]
fn work_in_flight_keeps_the_library() {
    let context = setup();
    no_leaks(|| {
        let (stream, out) = (context.stream().unwrap(), context.pinned_zeros::<f32>(16).unwrap().share());
        let before = live().of(Kind::Library);
        let gate = Gate::close(&stream);
        // The driver may wait for the gate where a library is first used, so that is done in front.
        drop(gate);
        let weights = weights(&library(&context));
        let gate = Gate::close(&stream);
        stream.copy(&weights, &out).unwrap();
        let ((), cost) = count(|| drop(weights));
        cost.assert_calls(&[]);
        assert_eq!(live().of(Kind::Library), before + 1);
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap()[..3], [1.0, 2.0, 3.0]);
        drop(out);
        settle();
        assert_eq!(live().of(Kind::Library), before);
    });
}

#[test]
fn batches_write_and_await_variables() {
    let context = setup();
    no_leaks(|| {
        let (library, stream) = (library(&context), context.stream().unwrap());
        let calls = calls(&library);
        let mut batch = Batch::new();
        let word: Slice<'_, u32> = calls.as_slice();
        batch.write(word, 0, 77).unwrap();
        batch.wait(word, 0, Compare::Equal, 77).unwrap();
        stream.batch(&batch).unwrap();
        assert_eq!(calls.read_blocking(&stream).unwrap(), [77]);
    });
}

#[test]
fn after_a_loss_it_says_so() {
    alone!();
    let context = setup();
    let library = library(&context);
    let (stream, known) = (context.stream().unwrap(), calls(&library));
    raw::launch(&stream, &kernel(&context, "poke"), 1, &[0x40, 7]);
    let first = stream.synchronize_blocking().unwrap_err();
    // SAFETY: nothing comes of it.
    let errors =
        unsafe { [library.global::<u32>("calls").map(drop), library.global::<f32>("weights").map(drop)] };
    assert_eq!(errors, [Err(first.clone()), Err(first)]);
    let ((), cost) = count(|| drop((known, library)));
    cost.assert_calls(&[]);
}
