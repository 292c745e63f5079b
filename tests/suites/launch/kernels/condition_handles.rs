//! Kernels with a conditional handle: on a stream they are refused, since the launch would lose the
//! context.

use cuda_handles::capture::CaptureMode;
use cuda_launch::{Arguments, ConditionalHandle, Error, Launch, TypedKernel, kernel, params, per};
use cuda_tests::{count, no_leaks, setup};

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each touches the first element
    // alone.
    unsafe in "../../../kernels/conditions.ptx";

    fn set_to(value: u32, handle: ConditionalHandle);
    fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

#[test]
fn handles_are_refused_on_streams_however_they_are_given() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (set_to, count_down) = (set_to::load(&context).unwrap(), count_down::load(&context).unwrap());
        let counter = stream.upload(&[3_u32]).unwrap();
        // SAFETY: it reaches no kernel.
        let handle = unsafe { ConditionalHandle::new(1, 2, 3) };
        assert_eq!((handle.as_raw(), handle.graph(), handle.number()), (1, 2, 3));
        let one = per(1, 1);
        let refused = |outcome: Result<(), Error>, name: &str| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::OutsideGraph { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains("add it as a node"), "{text}");
        };
        let ((), cost) = count(|| {
            let plain = params![7_u32, handle];
            // SAFETY: the arguments are the kernels'.
            unsafe {
                refused(set_to.kernel().launch(&stream, one, &plain), "set_to");
                refused(set_to.kernel().launch(&stream, one, plain.into_owned()), "set_to");
                let typed = count_down.prepare(&one, (&counter, handle)).unwrap();
                assert_eq!(typed.handles().as_slice(), [handle]);
                refused(count_down.kernel().launch(&stream, one, typed), "count_down");
            }
        });
        cost.assert_calls(&[]);
        let many = params![handle, 1_u8, handle];
        assert!(many.has_handles() && many.handles().len() == 2 && !params![1_u8].has_handles());
        assert_eq!(counter.read_blocking(&stream).unwrap(), [3], "nothing ran");
    });
}

#[test]
fn a_refused_launch_leaves_a_capture_as_it_is() {
    let context = setup();
    no_leaks(|| {
        let (stream, kernel) = (context.stream().unwrap(), set_to::load(&context).unwrap());
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        // SAFETY: it reaches no kernel.
        let handle = unsafe { ConditionalHandle::new(1, 2, 3) };
        // SAFETY: the arguments are the kernel's.
        let outcome = unsafe { kernel.kernel().launch(&stream, per(1, 1), params![7_u32, handle]) };
        assert!(matches!(outcome, Err(Error::OutsideGraph { .. })));
        capture.end().expect("nothing has harmed it");
    });
}
