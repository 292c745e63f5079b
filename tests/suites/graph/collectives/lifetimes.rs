//! Graphs keep communicators and buffers.

use cuda_graph::StreamExt;
use cuda_handles::reaper;
use cuda_tests::{Gate, Kind, SOON, live, settle, until};
use cuda_tests_nccl::{Communicator, Group};

use super::{LEN, MODE, Ranks, enqueue, on_ranks, sums};
use crate::devices::leaves_nothing;

#[test]
fn communicators_and_buffers_that_are_dropped_before_the_launch_live_on() {
    let nccl = on_ranks!();
    let section = || {
        let ranks = Ranks::new(&nccl);
        let results: Vec<_> = ranks
            .contexts()
            .iter()
            .map(|context| context.pinned_zeros::<f32>(LEN).unwrap().share())
            .collect();
        ranks.load(3);
        let graph = ranks.streams[0].capture(MODE, |capture| {
            ranks.joined(capture.stream(), || {
                enqueue(&ranks.sums())?;
                for (rank, stream) in ranks.streams.iter().enumerate() {
                    stream.copy(&ranks.to[rank], &results[rank])?;
                }
                Ok(())
            })
        });
        let mut exec = graph.unwrap().instantiate().unwrap();
        let expected = sums(ranks.count(), 3);
        let Ranks { here, communicators, streams, from, to } = ranks;
        drop((communicators, streams, from, to));
        settle();
        let stream = here.stream().unwrap();
        // Memory that the executable did not keep would be given to these.
        let others: Vec<_> = (0..8).map(|_| here.alloc_blocking::<f32>(LEN).unwrap()).collect();
        others.iter().for_each(|other| stream.fill(other, f32::NAN).unwrap());
        for _ in 0..2 {
            exec.launch(&stream).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        for result in &results {
            let memory = result.as_buffer();
            let own = memory.allocation().context().stream().unwrap();
            assert_eq!(memory.read_blocking(&own).unwrap(), expected);
        }
    };
    leaves_nothing(section);
}

#[test]
fn everything_is_dropped_while_a_replay_is_in_flight() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let before = live().of(Kind::Allocation);
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let stream = ranks.here.stream().unwrap();
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        let Ranks { here, communicators, streams, from, to } = ranks;
        drop((exec, graph, communicators, streams, from, to));
        assert!(live().of(Kind::Allocation) >= before, "the run still uses the memory");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(until(SOON, || {
            settle();
            live().of(Kind::Allocation) < before
        }));
        drop(here);
    });
}

#[test]
fn communicators_that_are_dropped_in_a_capture_leave_it_valid() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let more = Communicator::all(&nccl, &ranks.contexts()).unwrap();
        let graph = ranks.streams[0].capture(MODE, |capture| {
            capture.fill(&ranks.from[0], 1.0)?;
            drop(more);
            reaper::drain();
            ranks.joined(capture.stream(), || enqueue(&ranks.sums()))
        });
        assert!(graph.unwrap().len().unwrap() > 1);
    });
}

#[test]
fn a_capture_that_is_given_up_gives_up_what_it_kept() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let outcome = ranks.streams[0].capture(MODE, |capture| {
            ranks.joined(capture.stream(), || enqueue(&ranks.sums()))?;
            Err::<(), _>(cuda_graph::Error::from(cuda_handles::Error::StillShared))
        });
        assert!(outcome.is_err());
        ranks.load(1);
        ranks.sums().enqueue().unwrap();
        ranks.assert_sums(1);
    });
}

/// One process may have several sets of communicators.
#[test]
fn sets_of_communicators_work_beside_each_other() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let more = Communicator::all(&nccl, &ranks.contexts()).unwrap();
        let graph = ranks.capture(&ranks.sums()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        ranks.load(2);
        exec.launch(&ranks.streams[0]).unwrap();
        ranks.wait();
        let mut group = Group::new();
        for (rank, communicator) in more.iter().enumerate() {
            group.all_reduce_sum(communicator, &ranks.streams[rank], &ranks.from[rank], &ranks.to[rank]);
        }
        group.enqueue().unwrap();
        ranks.wait();
        ranks.assert_sums(2);
    });
}
