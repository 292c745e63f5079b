//! Copies and fills of rectangles and boxes.

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Copy2d, Copy3d, Error, MemoryKind, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Gate, Kind, alone, count, every_failure, fail, live, needs, no_leaks, other_device, settle, setup,
};
use proptest::prelude::*;

/// The expected target of a copy of a box.
fn expected(
    source: &[u32],
    from: [usize; 3],
    target: &[u32],
    to: [usize; 3],
    extent: [usize; 3],
) -> Vec<u32> {
    let mut result = target.to_vec();
    let at = |[start, pitch, rows]: [usize; 3], [x, y, z]: [usize; 3]| start + (z * rows + y) * pitch + x;
    for z in 0..extent[2] {
        for y in 0..extent[1] {
            for x in 0..extent[0] {
                result[at(to, [x, y, z])] = source[at(from, [x, y, z])];
            }
        }
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn boxes_are_copied_where_they_fit_and_refused_where_not(
        extent in prop::array::uniform3(0_usize..5),
        pitches in prop::array::uniform2(0_usize..8),
        rows in prop::array::uniform2(0_usize..7),
        starts in prop::array::uniform2(0_usize..20),
    ) {
        let context = setup();
        let stream = context.stream().unwrap();
        let (from, to): (Vec<u32>, Vec<u32>) = ((0..160).collect(), (1000..1160).collect());
        let (source, target) = (stream.upload(&from).unwrap(), stream.upload(&to).unwrap());
        let [width, height, depth] = extent;
        let copy = Copy3d {
            source: source.slice(starts[0]..).unwrap(),
            source_pitch: pitches[0],
            source_rows: rows[0],
            destination: target.slice(starts[1]..).unwrap(),
            destination_pitch: pitches[1],
            destination_rows: rows[1],
            width, height, depth,
        };
        let empty = extent.contains(&0);
        let fits = |side: usize| {
            let steps = pitches[side] >= width && rows[side] >= height;
            let end = || starts[side] + ((depth - 1) * rows[side] + height - 1) * pitches[side] + width;
            empty || steps && end() <= 160
        };
        let shape = |side: usize| [starts[side], pitches[side], rows[side]];
        match stream.copy_3d(copy) {
            Ok(()) => {
                prop_assert!(fits(0) && fits(1));
                let want = expected(&from, shape(0), &to, shape(1), extent);
                prop_assert_eq!(target.read_blocking(&stream).unwrap(), want);
            }
            Err(Error::Pitch { .. } | Error::Bounds { .. }) => prop_assert!(!fits(0) || !fits(1)),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn rectangles_are_copied_and_filled_where_they_fit(
        [width, height] in prop::array::uniform2(0_usize..9),
        pitches in prop::array::uniform2(0_usize..14),
        starts in prop::array::uniform2(0_usize..20),
        value in any::<u32>(),
    ) {
        let context = setup();
        let stream = context.stream().unwrap();
        let (from, to): (Vec<u32>, Vec<u32>) = ((0..100).collect(), (1000..1100).collect());
        let (source, target) = (stream.upload(&from).unwrap(), stream.upload(&to).unwrap());
        let copy = Copy2d {
            source: source.slice(starts[0]..).unwrap(),
            source_pitch: pitches[0],
            destination: target.slice(starts[1]..).unwrap(),
            destination_pitch: pitches[1],
            width, height,
        };
        let fits = |side: usize| {
            let end = || starts[side] + (height - 1) * pitches[side] + width;
            width == 0 || height == 0 || pitches[side] >= width && end() <= 100
        };
        let shape = |side: usize| [starts[side], pitches[side], 0];
        let mut now = to.clone();
        let copied = stream.copy_2d(copy);
        prop_assert_eq!(copied.is_ok(), fits(0) && fits(1), "{:?}", copied);
        if copied.is_ok() {
            now = expected(&from, shape(0), &to, shape(1), [width, height, 1]);
        }
        prop_assert_eq!(&target.read_blocking(&stream).unwrap(), &now);
        let filled = stream.fill_2d(copy.destination, pitches[1], [width, height], value);
        prop_assert_eq!(filled.is_ok(), fits(1), "{:?}", filled);
        if filled.is_ok() {
            now = expected(&vec![value; 200], [0, pitches[1], 0], &now, shape(1), [width, height, 1]);
        }
        prop_assert_eq!(&target.read_blocking(&stream).unwrap(), &now);
    }
}

fn square(stream: &Stream, side: usize) -> cuda_handles::Buffer<u32> {
    stream.upload_blocking(&(0..(side * side) as u32).collect::<Vec<_>>()).unwrap()
}

#[test]
fn rectangles_of_one_buffer_may_lie_side_by_side_but_not_overlap() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let image = square(&stream, 8);
        let copy = |from: usize, to: usize, width| Copy2d {
            source: image.slice(from..).unwrap(),
            source_pitch: 8,
            destination: image.slice(to..).unwrap(),
            destination_pitch: 8,
            width,
            height: 8,
        };
        stream.copy_2d(copy(0, 4, 4)).unwrap();
        let now = image.read_blocking(&stream).unwrap();
        assert!(now.chunks(8).all(|row| row[..4] == row[4..]), "{now:?}");
        assert!(matches!(stream.copy_2d(copy(0, 3, 4)), Err(Error::Overlap { bytes: 4 })));
        assert_eq!(image.read_blocking(&stream).unwrap(), now);
    });
}

#[test]
fn fills_of_a_rectangle_take_values_of_three_sizes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        macro_rules! fill {
            ($($ty:ty: $value:expr),*) => {$({
                let memory = stream.zeros::<$ty>(12).unwrap();
                stream.fill_2d(&memory, 4, [2, 3], $value).unwrap();
                let zero = <$ty>::default();
                let row = [$value, $value, zero, zero];
                assert_eq!(memory.read_blocking(&stream).unwrap(), [row, row, row].concat());
            })*};
        }
        fill!(u8: 7, i16: -2, f32: 1.5);
        let narrow = stream.fill_2d(&stream.zeros::<u8>(12).unwrap(), 1, [2, 3], 1);
        let text = narrow.unwrap_err().to_string();
        assert!(text.contains('2') && text.contains('1'), "{text}");
    });
}

#[test]
fn rectangles_go_between_device_and_host() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let image = square(&stream, 8);
        for host in [context.pinned_zeros::<u32>(6).unwrap(), context.managed_zeros(6).unwrap()] {
            let shared = host.share();
            let copy = Copy2d {
                source: image.slice(9..).unwrap(),
                source_pitch: 8,
                destination: shared.as_slice(),
                destination_pitch: 3,
                width: 3,
                height: 2,
            };
            stream.copy_2d(copy).unwrap();
            stream.synchronize_blocking().unwrap();
            let host = shared.try_unique().unwrap();
            assert_eq!(host[..], [9, 10, 11, 17, 18, 19]);
            let shared = host.share();
            let back = Copy3d {
                source: shared.as_slice(),
                source_pitch: 3,
                source_rows: 1,
                destination: image.as_slice(),
                destination_pitch: 3,
                destination_rows: 2,
                width: 3,
                height: 1,
                depth: 2,
            };
            stream.copy_3d(back).unwrap();
            let now = image.read_blocking(&stream).unwrap();
            assert_eq!((&now[..3], &now[6..9]), (&[9, 10, 11][..], &[17, 18, 19][..]));
            drop(shared);
            image.write_blocking(&stream, &(0..64).collect::<Vec<_>>()).unwrap();
        }
    });
}

#[test]
fn plain_memory_needs_no_wait_and_is_freed_in_stream_order() {
    let context = setup();
    no_leaks(|| {
        let (one, other) = (context.stream().unwrap(), context.stream().unwrap());
        let before = live().of(Kind::Allocation);
        let (buffer, cost) = count(|| context.alloc_blocking::<u32>(16).unwrap());
        assert_eq!(cost.calls("cuMemAlloc"), 1);
        assert_eq!((buffer.allocation().kind(), buffer.home()), (MemoryKind::Plain, None));
        assert!(buffer.allocation().is_settled());
        one.fill(&buffer, 1).unwrap();
        other.wait_for(&one).unwrap();
        let ((), cost) = count(|| other.fill(&buffer, 2).unwrap());
        cost.assert_calls(&[("cuMemsetD32Async", 1)]);
        let gate = Gate::close(&other);
        other.fill(&buffer, 3).unwrap();
        let copy = buffer.clone();
        drop(buffer);
        let ((), cost) = count(|| drop(copy));
        assert_eq!(cost.total(), 0, "the reaper does it: {cost}");
        gate.open();
        let (_, cost) = count(settle);
        assert_eq!(cost.calls_anywhere("cuMemFree"), 0, "{cost}");
        assert_eq!(live().of(Kind::Allocation), before);
        assert!(context.alloc_blocking::<u32>(0).unwrap().is_empty());
    });
}

#[test]
fn whatever_call_of_a_copy_fails_nothing_stays_behind() {
    let context = setup();
    let stream = context.stream().unwrap();
    let image = square(&stream, 4);
    let shared = context.pinned_zeros::<u32>(16).unwrap().share();
    let copy = |height| Copy2d {
        source: image.as_slice(),
        source_pitch: 4,
        destination: shared.as_slice(),
        destination_pitch: 4,
        width: 2,
        height,
    };
    // Once before, so that the stream and the reaper have what they keep.
    stream.copy_2d(copy(2)).unwrap();
    drop(context.alloc_blocking::<u32>(4).unwrap());
    settle();
    assert!(every_failure(|| stream.copy_2d(copy(4))) >= 1);
    assert!(every_failure(|| stream.fill_2d(&image, 4, [2, 2], 1_u32)) >= 1);
    assert!(every_failure(|| stream.copy(&image, &shared)) >= 1);
    assert!(every_failure(|| stream.copy(&shared, &image)) >= 1);
    assert!(every_failure(|| shared.read_blocking(&stream)) >= 2);
    assert!(every_failure(|| context.alloc_blocking::<u32>(4)) >= 2);
    assert!(every_failure(|| context.pinned_zeros::<u32>(4)) >= 2);
    assert!(every_failure(|| context.managed_zeros::<u32>(4)) >= 2);
}

#[test]
fn a_fill_of_memory_that_is_not_aligned_to_its_value_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let bytes = stream.zeros::<u8>(16).unwrap();
        let odd = bytes.sub_buffer(1..9).unwrap().cast::<[u8; 4]>().unwrap();
        let error = stream.fill(&odd, [1; 4]).unwrap_err();
        assert_eq!(error, Error::Unaligned { address: bytes.address() + 1, align: 4 });
        assert_eq!(stream.fill_2d(&odd, 2, [1, 1], [1; 4]).unwrap_err(), error);
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [0; 16]);
    });
}

#[test]
fn captured_copies_and_fills_keep_their_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Allocation);
        let (one, other) = (stream.upload(&[1_u32; 16]).unwrap(), stream.zeros::<u32>(16).unwrap());
        let (plain, pinned) =
            (context.alloc_blocking::<u32>(16).unwrap(), context.pinned_zeros::<u32>(16).unwrap().share());
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        stream.copy(&one, &other).unwrap();
        stream.copy(&pinned, &plain).unwrap();
        stream.fill(&other, 3).unwrap();
        stream.fill_2d(&one, 4, [2, 2], 3_u32).unwrap();
        let copy = Copy2d {
            source: one.as_slice(),
            source_pitch: 4,
            destination: plain.as_slice(),
            destination_pitch: 4,
            width: 2,
            height: 2,
        };
        stream.copy_2d(copy).unwrap();
        assert!(matches!(one.read_blocking(&stream), Err(Error::Capturing { .. })));
        let pinned = pinned.try_unique().unwrap_err();
        let address = pinned.as_slice().address();
        drop((one, other, plain, pinned));
        let captured = capture.end().unwrap();
        settle();
        assert_eq!(live().of(Kind::Allocation), before + 3, "the capture's owners keep it");
        let fresh = context.pinned_zeros::<u32>(16).unwrap();
        assert_ne!(fresh.as_ptr().addr() as u64, address);
        drop(captured);
        settle();
        assert_eq!(live().of(Kind::Allocation), before);
    });
}

#[test]
fn memory_as_bytes_and_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.upload(&[0x0403_0201_u32, 0x0807_0605]).unwrap();
        let bytes = words.bytes();
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes.cast::<u32>().unwrap(), words);
    });
}

#[test]
fn memory_is_copied_between_devices() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let second = other_device().context().unwrap();
    // Once before, so that the reaper has the stream of its own that it keeps.
    let pair = [second.stream().unwrap(), second.stream().unwrap()];
    pair[1].fill(&pair[0].zeros::<u32>(1).unwrap(), 1).unwrap();
    drop(pair);
    settle();
    no_leaks(|| {
        let (here, there) = (context.stream().unwrap(), second.stream().unwrap());
        let (from, to) = (here.upload(&[1_u32, 2, 3]).unwrap(), there.zeros::<u32>(3).unwrap());
        assert!(matches!(here.copy(&from, &to), Err(Error::WrongContext { .. })));
        here.copy_peer(&from, &to).unwrap();
        assert_eq!(to.read_blocking(&there).unwrap(), [1, 2, 3], "the home waits");
        there.fill(&to, 9).unwrap();
        here.wait_for(&there).unwrap();
        let gate = Gate::close(&here);
        here.copy_peer(&to, &from).unwrap();
        drop(to);
        gate.open();
        assert_eq!(from.read_blocking(&here).unwrap(), [9, 9, 9]);
        let third = context.stream().unwrap();
        third.copy_peer(&from, &third.upload(&[0_u32; 3]).unwrap()).unwrap();
        let _ = context.device().can_access(second.device()).unwrap();
    });
}

#[test]
fn a_read_on_a_lent_stream_gives_the_memory_back_when_the_copy_is_done_though_the_wait_failed() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[7_u32; 16]).unwrap();
        let _ = stream.lend();
        let refusal = fail(Call::cuStreamSynchronize, 1, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        let mut elements = [0_u32; 16];
        let (outcome, cost) = count(|| buffer.read_into_blocking(&stream, &mut elements));
        assert!(refusal.hit());
        assert_eq!((outcome, elements), (Ok(()), [7; 16]));
        assert_eq!(cost.calls("cuEventSynchronize"), 1, "{cost}");
        buffer.write_blocking(&stream, &[8; 16]).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [8; 16]);
    });
}
