//! Child graphs with work of other code, which are captured again for other values.

use core::cell::RefCell;
use std::rc::Rc;

use cuda_graph::capture::ForeignNode;
use cuda_graph::{CaptureError, Error, InstantiateOptions, Result, Shape};
use cuda_handles::{Buffer, Owner};
use cuda_tests::{no_leaks, raw, setup};

use super::{Bench, N};

/// What the next comparison of values does, or the next drop.
#[derive(Default)]
struct Hook(RefCell<Option<Box<dyn Fn()>>>);

impl Hook {
    fn set(&self, call: impl Fn() + 'static) {
        *self.0.borrow_mut() = Some(Box::new(call));
    }

    fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    fn call(&self) {
        let call = self.0.take();
        call.iter().for_each(|call| call());
    }
}

thread_local! {
    static COMPARED: Hook = Hook::default();
    static DROPPED: Hook = Hook::default();
}

#[derive(Clone)]
struct Values(u32);

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.with(Hook::call);
        self.0 == other.0
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        DROPPED.with(Hook::call);
    }
}

#[test]
fn values_that_set_the_node_when_they_are_compared_or_dropped() -> Result<()> {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let numbers = bench.numbers.clone();
        let fill = move |stream, values: &Values| {
            // SAFETY: the memory is the buffer's, which is returned.
            raw::ok(unsafe { raw::driver().cuMemsetD32Async(numbers.address(), values.0, 1, stream) });
            Ok(vec![Owner::from(&numbers)])
        };
        let capture = bench.begin();
        // SAFETY: the work fills only the buffer, and only on the stream that it gets.
        let node: Rc<ForeignNode<Values>> = Rc::new(unsafe { capture.embed_foreign(Values(1), fill) }?);
        let graph = capture.end()?.into_graph();
        assert_eq!(bench.run(&graph), 1);
        let sets = |number| {
            let node = Rc::clone(&node);
            move || node.set(Values(number)).unwrap()
        };
        // The comparison comes first, and the drop of values that are forgotten last.
        COMPARED.with(|hook| hook.set(sets(2)));
        node.set(Values(3))?;
        assert!(!COMPARED.with(Hook::is_set));
        assert_eq!(bench.run(&graph), 3);
        DROPPED.with(|hook| hook.set(sets(5)));
        let mut last = 100;
        while DROPPED.with(Hook::is_set) {
            last += 1;
            node.set(Values(last))?;
            assert!(last < 200, "values are never forgotten");
        }
        assert_eq!(bench.run(&graph), 5);
        // Values that are still known, and given again, are dropped as well.
        DROPPED.with(|hook| hook.set(sets(7)));
        node.set(Values(last))?;
        assert!(!DROPPED.with(Hook::is_set));
        assert_eq!(bench.run(&graph), 7);
        node.set(Values(last))?;
        assert_eq!(bench.run(&graph), last);
        bench.works_again();
        Ok(())
    })
}

#[test]
fn values_are_set_in_an_executable_for_later_launches() -> Result<()> {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let fill = move |stream, (numbers, values): &(Buffer<u32>, Vec<u32>)| {
            for value in values {
                // SAFETY: the memory is the buffer's, which is returned.
                raw::ok(unsafe { raw::driver().cuMemsetD32Async(numbers.address(), *value, 1, stream) });
            }
            Ok(vec![Owner::from(numbers)])
        };
        let capture = bench.begin();
        let first = (bench.numbers.clone(), vec![1]);
        // SAFETY: the work fills only the buffer, and only on the stream that it gets.
        let node = unsafe { capture.embed_foreign(first, fill) }?;
        let graph = capture.end()?.into_graph();
        // Shaping expands child graphs.
        let as_drawn = InstantiateOptions::new().shape(Shape::AsBuilt);
        let mut exec = graph.instantiate_with(as_drawn)?;
        exec.launch(&bench.stream)?;
        let other = bench.stream.zeros::<u32>(N)?;
        node.set_in(&mut exec, (other.clone(), vec![5]))?;
        exec.launch(&bench.stream)?;
        assert_eq!(bench.numbers.read_blocking(&bench.stream)?[0], 1);
        assert_eq!(other.read_blocking(&bench.stream)?[0], 5);
        // The executable keeps the memory of the work, whoever else has it.
        drop(other);
        exec.launch(&bench.stream)?;
        let refused = node.set_in(&mut exec, (bench.numbers.clone(), vec![6, 7])).unwrap_err();
        assert!(matches!(refused, Error::Capture(CaptureError::OtherShape { .. })), "{refused}");
        node.set_in(&mut exec, (bench.numbers.clone(), vec![8]))?;
        exec.launch(&bench.stream)?;
        assert_eq!(bench.numbers.read_blocking(&bench.stream)?[0], 8);
        // The graph is as it was captured.
        assert_eq!(bench.run(&graph), 1);
        bench.works_again();
        Ok(())
    })
}
