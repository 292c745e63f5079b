//! Plans of bodies of conditional nodes.

use super::super::plan::plan_in;
use super::super::surroundings::{Surroundings, beside_waiting};
use super::*;

fn body(is_beside_waiting: bool, drawn: &Drawn, shape: Wish) -> ShapePlan {
    plan_in(Surroundings::Body { is_beside_waiting }, drawn, wishes(shape))
}

#[test]
fn roots_of_a_body_get_no_kernel_in_front() {
    let roots = drawn((0..40).map(kernel), []);
    assert_eq!(planned(&roots, Wish::Reduced).no_ops(), 1);
    let plan = body(false, &roots, Wish::Reduced);
    assert_eq!((plan.no_ops(), plan.words().len()), (0, 0));
}

#[test]
fn nodes_of_a_body_are_not_ordered_anew_beside_what_waits() {
    let fan = drawn([kernel(1); 41], (1..=40).map(|node| (0, node)));
    assert_eq!(body(false, &fan, Wish::Lanes(2)).words(), ["threaded 40 nodes in 1 set through 2 lanes"]);
    let plan = body(true, &fan, Wish::Lanes(2));
    assert_eq!(
        plan.words(),
        ["left 1 wide set: what runs beside the conditional node may wait for a kernel"]
    );
    // What follows from other edges goes all the same.
    let chain = drawn([kernel(1); 3], [(0, 1), (1, 2), (0, 2)]);
    assert_eq!(body(true, &chain, Wish::Reduced).report.after.edges, 2);
}

#[test]
fn what_runs_beside_a_conditional_node_is_known() {
    // The branch 0 runs beside the kernel 1, and is behind the kernel 2; 3 runs beside all.
    let roles = [Role::Other, waiting_kernel(), kernel(2), Role::Other];
    let graph = drawn(roles, [(2, 0), (2, 1)]);
    assert_eq!(beside_waiting(&graph, false), [true, false, false, true]);
    assert_eq!(beside_waiting(&graph, true), [false; 4]);
    // A loop may wait, whatever is assumed; it does not run beside itself.
    let graph = drawn([Role::Waits, Role::Other], []);
    assert_eq!(beside_waiting(&graph, true), [false, true]);
}
