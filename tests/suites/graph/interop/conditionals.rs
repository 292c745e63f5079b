//! Conditional nodes of other code.

use cuda_graph::{
    ConditionError, Error, ExecError, Fallback, Graph, IfElseNode, IfNode, InstantiateOptions, LoopError,
    NodeKind, SwitchNode, Test, WhileNode,
};
use cuda_handles::Context;
use cuda_launch::per;
use cuda_sys::{CUgraph, CUgraphConditionalNodeType as Class, CUresult, Call};
use cuda_tests::{alone, count, fail, no_leaks, setup, sweep, used_stream};

use crate::common::gone::{allocations, soon};
use crate::common::other;
use crate::conditions::branches_and_loops::{Kernels, increment_by};

/// Destroys a graph of other code when it goes.
struct Foreign(usize);

impl Foreign {
    fn new() -> Self {
        Self(other::graph().expose_provenance())
    }

    fn raw(&self) -> CUgraph {
        core::ptr::with_exposed_provenance_mut(self.0)
    }

    fn adopt(&self, context: &Context) -> Result<Graph, Error> {
        // SAFETY: the graph lives longer than the handles.
        unsafe { Graph::from_raw(context, self.raw()) }
    }

    /// A conditional node with a condition of this default.
    fn add(&self, context: &Context, into: CUgraph, default: u32, class: Class, size: u32) -> Vec<CUgraph> {
        let handle = other::condition(context, self.raw(), default);
        other::conditional(context, into, handle, class, size).1
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        other::destroy(self.raw());
    }
}

fn kinds(graph: &Graph) -> Vec<NodeKind> {
    graph.nodes().unwrap().iter().map(|node| node.kind()).collect()
}

#[test]
fn a_driver_that_tells_makes_them_what_they_are() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let foreign = Foreign::new();
        let raw = foreign.raw();
        let then = foreign.add(&context, raw, 1, Class::CU_GRAPH_COND_TYPE_IF, 1);
        let either = foreign.add(&context, raw, 0, Class::CU_GRAPH_COND_TYPE_IF, 2);
        let rounds = foreign.add(&context, raw, 0, Class::CU_GRAPH_COND_TYPE_WHILE, 1);
        let choice = foreign.add(&context, raw, 2, Class::CU_GRAPH_COND_TYPE_SWITCH, 4);
        // One in a body of another, in a child graph of that body.
        let inner = other::graph();
        let child = other::child(then[0], inner);
        other::destroy(inner);
        let nested = foreign.add(&context, then[0], 1, Class::CU_GRAPH_COND_TYPE_IF, 1);
        other::empty(nested[0], &[]);
        let ((), cost) = count(|| drop(foreign.adopt(&context).unwrap()));
        assert_eq!(cost.calls("cuGraphNodeGetParams"), 5, "{cost}");
        let graph = foreign.adopt(&context).unwrap();
        assert_eq!(kinds(&graph), [NodeKind::If, NodeKind::IfElse, NodeKind::While, NodeKind::Switch]);
        let mut nodes = graph.nodes().unwrap().into_iter();
        let mut next = || nodes.next().unwrap();
        let (one, two) = (IfNode::try_from(next()).unwrap(), IfElseNode::try_from(next()).unwrap());
        let (many, all) = (WhileNode::try_from(next()).unwrap(), SwitchNode::try_from(next()).unwrap());
        let raws = |bodies: &[Graph]| bodies.iter().map(|body| body.as_raw().unwrap()).collect::<Vec<_>>();
        assert_eq!(raws(&[one.body().unwrap()]), then);
        assert_eq!(raws(&[two.then_body().unwrap(), two.else_body().unwrap()]), either);
        assert_eq!(raws(&[many.body().unwrap()]), rounds);
        assert_eq!(raws(&all.bodies().unwrap()), choice);
        let body = one.body().unwrap();
        assert_eq!(body.parent().unwrap().unwrap(), *one);
        assert_eq!(kinds(&body), [NodeKind::ChildGraph, NodeKind::If]);
        assert_eq!(body.nodes().unwrap()[0].as_raw().unwrap(), child);
        let nested = IfNode::try_from(body.nodes().unwrap().remove(1)).unwrap();
        assert_eq!(kinds(&nested.body().unwrap()), [NodeKind::Empty]);
        assert_eq!(one.describe().unwrap(), "by a condition of other code");
        // SAFETY: the body lives as long as the handle.
        assert_eq!(unsafe { Graph::from_raw(&context, then[0]) }.unwrap(), body);
        // Bodies are filled as any, and what cannot be in them is refused.
        for (body, amount) in [
            (&body, 1),
            (&nested.body().unwrap(), 10),
            (&two.then_body().unwrap(), 100),
            (&two.else_body().unwrap(), 1000),
            (&many.body().unwrap(), 10_000),
            (&all.bodies().unwrap()[2], 100_000),
        ] {
            kernels.count(&body.root(), amount);
            assert!(matches!(
                body.root().host(|| {}).unwrap_err(),
                Error::Condition(ConditionError::NotInBody { .. })
            ));
        }
        assert_eq!(kernels.run(&graph, 1), 101_011);
        let exec = graph.instantiate().unwrap();
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
        );
        drop(exec);
        assert!(matches!(
            graph.clone_graph().unwrap_err(),
            Error::Condition(ConditionError::HasConditions { .. })
        ));
        let options = InstantiateOptions::new();
        let error = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap_err();
        assert!(matches!(error, Error::Loop(LoopError::NotOnHost { .. })), "{error}");
    });
}

#[test]
fn what_is_added_to_their_bodies_lives_as_long_as_the_graph() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let stream = used_stream(&context);
        let before = allocations();
        {
            let foreign = Foreign::new();
            foreign.add(&context, foreign.raw(), 1, Class::CU_GRAPH_COND_TYPE_IF, 1);
            let graph = foreign.adopt(&context).unwrap();
            let body = IfNode::try_from(graph.nodes().unwrap().remove(0)).unwrap().body().unwrap();
            body.root().fill(&stream.zeros::<u32>(4).unwrap(), 1).unwrap();
            // A loop in the body, ready-made.
            let number = stream.upload(&[3_u32]).unwrap();
            let add = increment_by::load(&context).unwrap();
            let rounds = body.root().while_loop(Test::nonzero(&number), |body| {
                body.root().launch(&add, per(1, 1), (u32::MAX, &number))
            });
            let rounds = rounds.unwrap();
            graph.instantiate().unwrap().launch(&stream).unwrap();
            assert_eq!(rounds.rounds_done_blocking(&stream).unwrap(), 3);
            drop((graph, body, rounds, number));
            assert!(allocations() > before, "the graph has it");
            let exec = other::instantiate(&context, foreign.raw());
            other::launch(exec, &stream);
            stream.synchronize_blocking().unwrap();
            other::destroy_exec(exec);
        }
        assert!(soon(&|| allocations() == before));
    });
}

#[test]
fn a_driver_that_does_not_tell_is_said_to_be_one() {
    alone!("CUDA_SOFT_VERSION" = "13.1", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let foreign = Foreign::new();
        let bodies = foreign.add(&context, foreign.raw(), 1, Class::CU_GRAPH_COND_TYPE_IF, 1);
        other::empty(bodies[0], &[]);
        let graph = foreign.adopt(&context).unwrap();
        let node = graph.nodes().unwrap().remove(0);
        assert!(matches!(node.kind(), NodeKind::Other(_)));
        assert_eq!(node.kind().to_string(), "foreign conditional");
        assert_eq!(node.describe().unwrap(), "its class can be asked for from CUDA 13.2 on");
        assert!(node.all_bodies().unwrap().is_empty());
        // It is a conditional all the same.
        let exec = graph.instantiate().unwrap();
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
        );
        drop(exec);
        let (refused, cost) = count(|| graph.clone_graph().unwrap_err());
        assert!(matches!(refused, Error::Condition(ConditionError::HasConditions { .. })), "{refused}");
        assert_eq!(cost.calls("cuGraphClone"), 0, "{cost}");
        let options = InstantiateOptions::new();
        let error = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap_err();
        assert!(matches!(error, Error::Loop(LoopError::NotOnHost { .. })), "{error}");
        assert_eq!(graph.nodes().unwrap(), [node]);
    });
}

#[test]
fn a_driver_that_fails_to_tell_leaves_all_as_it_was() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let foreign = Foreign::new();
        foreign.add(&context, foreign.raw(), 1, Class::CU_GRAPH_COND_TYPE_SWITCH, 2);
        let failing = fail(Call::cuGraphNodeGetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        let error = foreign.adopt(&context).unwrap_err();
        assert!(error.to_string().contains("cuGraphNodeGetParams"), "{error}");
        assert!(failing.hit());
        let graph = foreign.adopt(&context).unwrap();
        assert_eq!(kinds(&graph), [NodeKind::Switch]);
        assert_eq!(graph.nodes().unwrap()[0].all_bodies().unwrap().len(), 2);
    });
    let foreign = Foreign::new();
    let bodies = foreign.add(&context, foreign.raw(), 1, Class::CU_GRAPH_COND_TYPE_IF, 2);
    for body in bodies {
        other::empty(body, &[]);
    }
    let cases = sweep("conditional nodes of other code", || -> Result<(), Error> {
        let graph = foreign.adopt(&context)?;
        let node = graph.nodes()?.remove(0);
        assert_eq!((node.kind(), node.all_bodies()?.len()), (NodeKind::IfElse, 2));
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}
