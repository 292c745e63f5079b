//! Groups in captures, replayed.

use cuda_graph::{ContextExt, Error, Frontier, Graph, NodeKind, StreamExt};
use cuda_handles::{Buffer, Context};
use cuda_tests_nccl::Group;

use super::{LEN, MODE, Ranks, enqueue, numbers, on_ranks};
use crate::devices::leaves_nothing;

/// Replays with other numbers each time, on each stream in turn.
#[track_caller]
fn replay_sums(ranks: &Ranks, graph: &Graph) {
    let mut exec = graph.instantiate().unwrap();
    for round in 0..6 {
        ranks.load(round);
        exec.launch(&ranks.streams[round % ranks.count()]).unwrap();
        ranks.wait();
        ranks.assert_sums(round);
    }
}

#[test]
fn an_all_reduce_is_replayed_with_changing_numbers() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        // The first call of the communicators is a captured one.
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let kinds: Vec<NodeKind> = graph.nodes().unwrap().iter().map(|node| node.kind()).collect();
        println!("captured: {kinds:?}");
        assert!(graph.contexts().zip(ranks.contexts()).all(|(found, expected)| found.is_same(expected)));
        assert_eq!(graph.contexts().count(), ranks.count());
        replay_sums(&ranks, &graph);
    });
}

#[test]
fn more_than_two_ranks_work_in_one_graph() {
    let nccl = on_ranks!("4");
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        println!("{} ranks", ranks.count());
        ranks.sums().enqueue().unwrap();
        replay_sums(&ranks, &ranks.capture(&ranks.sums()).unwrap());
    });
}

#[test]
fn a_ring_of_messages_is_replayed() {
    let nccl = on_ranks!("3");
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let graph = ranks.capture(&ranks.ring()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for round in 0..4 {
            ranks.load(round);
            exec.launch(&ranks.streams[0]).unwrap();
            ranks.wait();
            for rank in 0..ranks.count() {
                let before = (rank + ranks.count() - 1) % ranks.count();
                assert_eq!(ranks.read(&ranks.to[rank], rank), numbers(before, round));
            }
        }
    });
}

#[test]
fn collectives_stand_between_other_work_of_the_capture() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let result = ranks.here.alloc_blocking::<f32>(LEN).unwrap();
        let graph = ranks.streams[0].capture(MODE, |capture| {
            ranks.joined(capture.stream(), || {
                for (rank, stream) in ranks.streams.iter().enumerate() {
                    stream.fill(&ranks.from[rank], (rank + 1) as f32)?;
                }
                enqueue(&ranks.sums())?;
                // The sums once more, now of the sums.
                let mut group = Group::new();
                for (rank, communicator) in ranks.communicators.iter().enumerate() {
                    group.all_reduce_sum(
                        communicator,
                        &ranks.streams[rank],
                        &ranks.to[rank],
                        &ranks.from[rank],
                    );
                }
                enqueue(&group)
            })?;
            capture.copy(&ranks.from[0], &result)
        });
        let mut exec = graph.unwrap().instantiate().unwrap();
        for _ in 0..3 {
            exec.launch(&ranks.streams[0]).unwrap();
        }
        let count = ranks.count();
        let once = count * (count + 1) / 2;
        assert_eq!(ranks.read(&result, 0), vec![(once * count) as f32; LEN]);
    });
}

#[test]
fn executables_of_one_set_of_communicators_run_one_after_the_other() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let mut execs =
            [graph.instantiate().unwrap(), ranks.capture(&ranks.ring()).unwrap().instantiate().unwrap()];
        ranks.load(0);
        for launch in 0..20 {
            // Without waits in between, on two streams, and with groups that are not captured.
            execs[launch % 2].launch(&ranks.streams[launch / 2 % 2]).unwrap();
            ranks.sums().enqueue().unwrap();
        }
        ranks.wait();
        ranks.assert_sums(0);
    });
}

#[test]
fn clones_and_child_graphs_run_as_their_originals() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let others: Vec<&Context> = ranks.contexts().split_off(1);
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let clone = graph.clone_graph().unwrap();
        let outer = ranks.here.graph_spanning(&others).unwrap();
        let child = outer.root().child(&clone).unwrap();
        child.then().fill(&ranks.from[0], 0.0).unwrap();
        drop(graph);
        replay_sums(&ranks, &clone);
        drop(clone);
        replay_sums(&ranks, &outer);
    });
}

#[test]
fn another_capture_updates_an_executable_or_says_why_not() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let more: Vec<Buffer<f32>> =
            ranks.contexts().iter().map(|context| context.alloc_blocking(LEN).unwrap()).collect();
        let mut group = Group::new();
        for (rank, communicator) in ranks.communicators.iter().enumerate() {
            group.all_reduce_sum(communicator, &ranks.streams[rank], &ranks.from[rank], &more[rank]);
        }
        let other = ranks.capture(&group).unwrap();
        ranks.load(5);
        let update = exec.update(&other).unwrap();
        drop((graph, other));
        exec.launch(&ranks.streams[0]).unwrap();
        ranks.wait();
        match update.refusal() {
            Some(refusal) => {
                println!("refused: {refusal}");
                assert!(!refusal.to_string().is_empty());
                ranks.assert_sums(5);
            }
            None => {
                println!("updated");
                let expected = super::sums(ranks.count(), 5);
                for (rank, more) in more.iter().enumerate() {
                    assert_eq!(ranks.read(more, rank), expected);
                    assert_eq!(ranks.read(&ranks.to[rank], rank), [-1.0; LEN]);
                }
            }
        }
    });
}

/// Captures sums at a place of a graph.
fn capture_at(ranks: &Ranks, place: &Frontier<'_>) {
    place
        .capture(&ranks.streams[0], MODE, |capture| {
            ranks.joined(capture.stream(), || enqueue(&ranks.sums()))?;
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn captured_nodes_that_come_into_a_graph_keep_what_the_library_gave_theirs() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let others: Vec<&Context> = ranks.contexts().split_off(1);
        let graph = ranks.here.graph_spanning(&others).unwrap();
        let clear = graph.root().fill(&ranks.to[0], 0.0).unwrap();
        capture_at(&ranks, &clear.then());
        let clone = graph.clone_graph().unwrap();
        drop((clear, graph));
        let mut exec = clone.instantiate().unwrap();
        drop(clone);
        // Groups in between collect what the library takes for unused.
        for round in 0..3 {
            ranks.sums().enqueue().unwrap();
            ranks.load(round);
            exec.launch(&ranks.streams[0]).unwrap();
            ranks.wait();
            ranks.assert_sums(round);
        }
    });
}
