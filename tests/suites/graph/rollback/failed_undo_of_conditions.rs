//! Kernels that are given another condition while two driver calls fail: the table says which
//! condition the driver's node has.

use cuda_graph::{Condition, ContextExt, Error, Graph, IfNode, KernelNode};
use cuda_handles::{Buffer, Context};
use cuda_launch::{LaunchConfig, kernel, per};
use cuda_sys::CUresult;
use cuda_tests::{fail_any, needs, raw, setup, used_stream};

kernel! {
    // SAFETY: one thread counts in the element; the condition is set, and nothing else is touched.
    unsafe in "../../../kernels/conditions.ptx";

    fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

/// A kernel in a body that has the first of two conditions.
struct Deciding<'c> {
    kernel: &'c count_down,
    counter: &'c Buffer<u32>,
    conditions: [Condition; 2],
    body: Graph,
    node: KernelNode,
    /// The nodes that go by the conditions, if they are there.
    branches: Vec<IfNode>,
}

impl<'c> Deciding<'c> {
    fn new(context: &Context, kernel: &'c count_down, counter: &'c Buffer<u32>, are_there: bool) -> Self {
        let graph = context.graph().unwrap();
        let outer = graph.condition_with_default(1).unwrap();
        let body = graph.root().if_node(&outer).unwrap().body().unwrap();
        let conditions = [(); 2].map(|()| graph.condition_with_default(1).unwrap());
        let node = body.root().launch(kernel, first(), (counter, &conditions[0])).unwrap();
        let mut made = Self { kernel, counter, conditions, body, node, branches: Vec::new() };
        if are_there {
            made.add_branches();
        }
        made
    }

    fn add_branches(&mut self) {
        if self.branches.is_empty() {
            let add = |condition| self.body.root().if_node(condition).unwrap();
            self.branches = self.conditions.iter().map(add).collect();
        }
    }

    fn set(&self) -> Result<(), Error> {
        self.node.set(self.kernel, second(), (self.counter, &self.conditions[1]))
    }

    /// The condition that the driver's node has.
    fn has(&self) -> usize {
        let params = raw::kernel(self.node.as_raw().unwrap());
        // SAFETY: the second parameter is a handle, at a pointer that is good as long as the node
        // is not changed.
        let handle = unsafe { **params.kernelParams.add(1).cast::<*const u64>() };
        self.conditions.iter().position(|condition| condition.handle().as_raw() == handle).unwrap()
    }

    /// For which of the conditions the kernel waits until they have their defaults.
    fn waits_for(&self) -> Vec<usize> {
        let before: Vec<String> = self.node.predecessors().unwrap().iter().map(|node| node.name()).collect();
        let name = |which: &usize| format!("default of condition {}", which + 2);
        (0..2).filter(|which| before.contains(&name(which))).collect()
    }
}

fn first() -> LaunchConfig {
    per(1, 1).priority(-1)
}

fn second() -> LaunchConfig {
    per(1, 1).priority(-2).memory_sync_domain_map(0, 1)
}

#[test]
fn after_two_failures_the_table_has_the_condition_that_the_driver_has() {
    let context = setup();
    needs!(Conditionals);
    let stream = used_stream(&context);
    let kernel = count_down::load(&context).unwrap();
    let counter = stream.zeros::<u32>(1).unwrap();
    let mut seen = [0; 2];
    for are_there in [true, false] {
        for begin in 1.. {
            let mut hit = false;
            for end in begin.. {
                let mut made = Deciding::new(&context, &kernel, &counter, are_there);
                assert_eq!(made.has(), 0);
                let (one, two) = (fail_any(begin, CODE), fail_any(end, CODE));
                let outcome = made.set();
                let hits = (one.hit(), two.hit());
                drop((one, two));
                hit |= hits.0;
                let what = format!("calls {begin} and {end}, {are_there}: {outcome:?}");
                let has = made.has();
                match &outcome {
                    Ok(()) => assert_eq!(has, 1, "{what}"),
                    Err(Error::HalfDone(half)) => {
                        seen[has] += 1;
                        let edge = |which: usize| {
                            let (number, name) = (which + 2, made.node.name());
                            format!("the edge from `default of condition {number}` to `{name}` is there")
                        };
                        let new = made.waits_for().contains(&1).then(|| edge(1));
                        assert!(new.is_none_or(|edge| half.left.contains(&edge)), "{what}");
                    }
                    Err(_) => assert_eq!(has, 0, "{what}"),
                }
                // It waits for the default of the condition that it has, whichever was there first.
                made.add_branches();
                assert!(made.waits_for().contains(&has), "{what}: {:?}", made.waits_for());
                if !hits.1 {
                    break;
                }
            }
            if !hit {
                break;
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}
