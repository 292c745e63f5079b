//! Groups on ordinary streams, and what is refused of groups before anything is enqueued.

use cuda_handles::{Buffer, Element, Stream};
use cuda_tests::{Need, count};
use cuda_tests_nccl::{Communicator, Error, Group, Number};

use super::{LEN, Ranks, numbers, on_ranks};
use crate::devices::leaves_nothing;

#[test]
fn sums_and_messages_arrive_on_each_rank() {
    let nccl = on_ranks!("3");
    println!("{}", *nccl);
    let ranks = Ranks::new(&nccl);
    leaves_nothing(|| {
        for round in 0..3 {
            ranks.load(round);
            ranks.sums().enqueue().unwrap();
            ranks.assert_sums(round);
            ranks.ring().enqueue().unwrap();
            for rank in 0..ranks.count() {
                let before = (rank + ranks.count() - 1) % ranks.count();
                assert_eq!(ranks.read(&ranks.to[rank], rank), numbers(before, round));
            }
        }
    });
    let first = &ranks.communicators[0];
    assert_eq!((first.rank(), first.ranks()), (0, ranks.count()));
    assert!(first.context().is_some_and(|context| context.is_same(&ranks.here)) && !first.as_raw().is_null());
}

fn sums_of<T: Number + PartialEq + core::fmt::Debug>(ranks: &Ranks, value: fn(usize) -> T) {
    let memory: Vec<Buffer<T>> =
        ranks.contexts().iter().map(|context| context.alloc_blocking(LEN).unwrap()).collect();
    let each = |rank: usize, what: &dyn Fn(&Buffer<T>, &Stream)| what(&memory[rank], &ranks.streams[rank]);
    for rank in 0..ranks.count() {
        let mine = vec![value(1 << rank); LEN];
        each(rank, &|memory, stream| memory.write_blocking(stream, &mine).unwrap());
    }
    let mut group = Group::new();
    for (rank, communicator) in ranks.communicators.iter().enumerate() {
        // In place.
        group.all_reduce_sum(communicator, &ranks.streams[rank], &memory[rank], &memory[rank]);
    }
    group.enqueue().unwrap();
    let expected = vec![value((1 << ranks.count()) - 1); LEN];
    for rank in 0..ranks.count() {
        each(rank, &|memory, stream| assert_eq!(memory.read_blocking(stream).unwrap(), expected));
    }
}

#[test]
fn numbers_of_all_types_are_added_in_place() {
    let nccl = on_ranks!();
    let ranks = Ranks::new(&nccl);
    // Multiples, so that the sum of values is the value of the sum.
    sums_of(&ranks, |value| value as i32 * -100_000);
    sums_of(&ranks, |value| value as u32);
    sums_of(&ranks, |value| value as i64 * -(1 << 40));
    sums_of(&ranks, |value| (value as u64) << 50);
    sums_of(&ranks, |value| value as f32 * 0.5);
    sums_of(&ranks, |value| value as f64 * 0.25);
}

#[test]
fn nothing_is_enqueued_of_an_empty_group_and_nothing_of_no_numbers() {
    let nccl = on_ranks!();
    let ranks = Ranks::new(&nccl);
    let ((), cost) = count(|| Group::new().enqueue().unwrap());
    cost.assert_calls(&[]);
    let mut group = Group::new();
    for (rank, communicator) in ranks.communicators.iter().enumerate() {
        let none = ranks.from[rank].slice(..0).unwrap();
        group.all_reduce_sum(communicator, &ranks.streams[rank], none, none);
    }
    group.enqueue().unwrap();
}

/// The words of a group's refusal, for which no driver call is made.
#[track_caller]
fn refused(group: &Group<'_>) -> String {
    let (outcome, cost) = count(|| group.enqueue());
    assert_eq!(cost.calls("cuLaunchKernel") + cost.calls("cuMemcpyAsync") + cost.calls("cuEventRecord"), 0);
    match outcome {
        Err(Error::Group { why }) => why,
        other => panic!("{other:?}"),
    }
}

fn part<T: Element>(memory: &Buffer<T>, count: usize) -> cuda_handles::Slice<'_, T> {
    memory.slice(..count).unwrap()
}

#[test]
fn calls_that_do_not_fit_together_are_refused() {
    let nccl = on_ranks!();
    let ranks = Ranks::new(&nccl);
    let Ranks { streams, communicators, from, to, .. } = &ranks;
    let [one, two] = [&communicators[0], &communicators[1]];

    let mut group = Group::new();
    group.all_reduce_sum(one, &streams[0], &from[0], &to[0]);
    assert!(refused(&group).contains("the all-reduces of rank 1 are not those of rank 0"));
    let mut group = ranks.sums();
    group.all_reduce_sum(one, &streams[0], part(&from[0], 3), part(&to[0], 4));
    assert!(refused(&group).contains("3 numbers, and memory for 4 sums"));
    let mut group = ranks.ring();
    group.send(one, &streams[0], part(&from[0], 5), 1).recv(two, &streams[1], part(&to[1], 6), 0);
    assert!(refused(&group).contains("what rank 0 sends to rank 1 is not what rank 1 receives"));
    let mut group = Group::new();
    group.send(one, &streams[0], &from[0], 7);
    assert!(refused(&group).contains("rank 0 names rank 7"));
    let other = streams[0].context().stream().unwrap();
    let mut group = ranks.sums();
    group.send(one, &other, &from[0], 0).recv(one, &other, &from[0], 0);
    assert!(refused(&group).contains("rank 0 makes calls on two streams"));
    let mut group = ranks.sums();
    group.send(one, &streams[0], part(&from[0], 5), 0).recv(one, &streams[0], part(&to[0], 5), 0);
    assert!(refused(&group).contains("a call writes memory that the same or another call"));
    let more = Communicator::all(&nccl, &ranks.contexts()).unwrap();
    let mut group = ranks.sums();
    group.all_reduce_sum(&more[0], &streams[0], &from[0], &to[0]);
    assert!(refused(&group).contains("not made together"));

    ranks.load(9);
    ranks.sums().enqueue().unwrap();
    ranks.assert_sums(9);
}

#[test]
fn streams_and_memory_are_of_the_communicators_device_and_in_reach() {
    let nccl = on_ranks!();
    let ranks = Ranks::new(&nccl);
    let Ranks { streams, communicators, from, to, .. } = &ranks;
    let wrong = |outcome: Result<(), Error>| match outcome {
        Err(Error::Handles(cuda_handles::Error::WrongContext(wrong))) => wrong.to_string(),
        other => panic!("{other:?}"),
    };
    let mut group = Group::new();
    group.send(&communicators[0], &streams[1], &from[1], 0).recv(&communicators[0], &streams[1], &to[1], 0);
    let text = wrong(group.enqueue());
    assert!(text.contains("the stream of a communicator's call"), "{text}");
    let mut group = Group::new();
    group.send(&communicators[0], &streams[0], &from[1], 0).recv(&communicators[0], &streams[0], &to[1], 0);
    wrong(group.enqueue());
    if !Need::TwoDevices.is_met()
        || !ranks.here.device().can_access(from[1].allocation().context().device()).unwrap()
    {
        return;
    }
    // Memory of pools needs the access of the pool.
    let pooled: Vec<_> = streams.iter().map(|stream| stream.zeros::<f32>(LEN).unwrap()).collect();
    let mut group = Group::new();
    for (rank, communicator) in communicators.iter().enumerate() {
        group.all_reduce_sum(communicator, &streams[rank], &pooled[rank], &pooled[rank]);
    }
    let text = wrong(group.enqueue());
    assert!(text.contains("grant_access"), "{text}");
    for stream in streams {
        let pool = stream.context().default_pool().unwrap();
        for context in ranks.contexts() {
            pool.grant_access(context.device()).unwrap();
        }
    }
    group.enqueue().unwrap();
    ranks.wait();
}

#[test]
fn a_library_that_is_absent_is_named_with_the_places_that_were_searched() {
    cuda_tests::alone!("NCCL_NVLS_ENABLE" = "0", "CUDA_NCCL" = "/nowhere/libnccl.so.2");
    let error = cuda_tests_nccl::Nccl::load().unwrap_err();
    assert!(matches!(&error, Error::Unusable { path, .. } if path == "/nowhere/libnccl.so.2"), "{error:?}");
    assert!(error.to_string().starts_with("the NCCL at /nowhere/libnccl.so.2 cannot be used: "), "{error}");
}

#[test]
fn multicast_has_to_be_off_before_the_library_is_loaded() {
    cuda_tests::alone!("NCCL_NVLS_ENABLE" = "1");
    let error = cuda_tests_nccl::Nccl::load().unwrap_err();
    assert_eq!(error, Error::Multicast { found: "NCCL_NVLS_ENABLE=1".to_owned() });
    assert!(error.to_string().contains("NCCL_NVLS_ENABLE=0 alone"), "{error}");
}
