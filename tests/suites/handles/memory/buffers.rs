//! Buffers and slices: upload, read, fill, copy.

use std::time::Duration;

use cuda_handles::{Buffer, Error, Slice};
use cuda_tests::{Gate, Kind, count, live, no_leaks, setup, until};
use proptest::prelude::*;

fn kind_of<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("an error was due"),
        Err(error) => error,
    }
}

#[test]
fn what_is_uploaded_is_read_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        macro_rules! round {
            ($($ty:ty: $values:expr),* $(,)?) => {$({
                let values: Vec<$ty> = $values;
                let buffer: Buffer<$ty> = stream.upload(&values).unwrap();
                assert_eq!((buffer.len(), buffer.size_bytes()), (values.len(), size_of_val(&values[..])));
                assert!(!buffer.is_empty());
                assert_eq!(buffer.read_blocking(&stream).unwrap(), values);
            })*};
        }
        round!(
            u8: vec![1, 2, 255],
            i8: vec![-1, 1],
            u16: (0..1000).collect(),
            u32: (0..100_000).collect(),
            i64: vec![i64::MIN, 0, i64::MAX],
            f32: vec![1.5, -0.0, f32::INFINITY],
            f64: vec![1e300, -2.5],
            [f32; 4]: vec![[1.0, 2.0, 3.0, 4.0]; 33],
        );
    });
}

#[test]
fn new_memory_is_zero() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        // Memory that was something else before.
        drop(stream.upload(&[u32::MAX; 4096]).unwrap());
        let buffer = stream.zeros::<u32>(4096).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), vec![0; 4096]);
    });
}

#[test]
fn an_upload_has_read_its_source_when_it_returns() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut source = vec![3_u32; 1 << 16];
        let buffer = stream.upload(&source).unwrap();
        source.fill(4);
        drop(source);
        assert!(buffer.read_blocking(&stream).unwrap().iter().all(|value| *value == 3));
    });
}

#[test]
fn a_buffer_of_no_elements_is_an_ordinary_value() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for buffer in [stream.zeros::<u32>(0).unwrap(), stream.upload::<u32>(&[]).unwrap()] {
            assert!(buffer.is_empty());
            assert_eq!((buffer.len(), buffer.size_bytes()), (0, 0));
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [0_u32; 0]);
            buffer.write_blocking(&stream, &[]).unwrap();
            stream.fill(&buffer, 7).unwrap();
            stream.copy(&buffer, &stream.zeros::<u32>(0).unwrap()).unwrap();
            assert!(buffer.slice(..).unwrap().is_empty());
            assert!(buffer.sub_buffer(0..0).unwrap().is_empty());
            assert_eq!(kind_of(buffer.slice(0..1)), Error::Bounds { start: 0, end: 1, len: 0 });
        }
        let full = stream.upload(&[1_u32, 2]).unwrap();
        assert!(full.slice(1..1).unwrap().read_blocking(&stream).unwrap().is_empty());
    });
}

#[test]
fn a_range_outside_of_a_buffer_is_an_error_with_the_numbers() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32, 2, 3, 4]).unwrap();
        assert_eq!(kind_of(buffer.slice(2..5)), Error::Bounds { start: 2, end: 5, len: 4 });
        assert_eq!(kind_of(buffer.slice(5..)), Error::Bounds { start: 5, end: 4, len: 4 });
        assert!(matches!(kind_of(buffer.slice(..=4)), Error::Bounds { end: 5, len: 4, .. }));
        assert!(matches!(kind_of(buffer.slice(..=usize::MAX)), Error::Bounds { len: 4, .. }));
        assert!(matches!(kind_of(buffer.sub_buffer(1..9)), Error::Bounds { start: 1, end: 9, len: 4 }));
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = buffer.slice(3..1);
        assert!(matches!(kind_of(backwards), Error::Bounds { start: 3, end: 1, len: 4 }));
        let inner = buffer.slice(1..3).unwrap();
        assert_eq!(kind_of(inner.slice(1..3)), Error::Bounds { start: 1, end: 3, len: 2 });
        let text = kind_of(buffer.slice(2..5)).to_string();
        assert!(text.contains("2..5") && text.contains('4'), "{text}");
    });
}

#[test]
fn slices_are_parts_of_their_buffer() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&(0..10).collect::<Vec<u32>>()).unwrap();
        let slice = buffer.slice(2..8).unwrap();
        assert_eq!(slice.address(), buffer.address() + 8);
        assert_eq!(slice.len(), 6);
        assert_eq!(slice.read_blocking(&stream).unwrap(), [2, 3, 4, 5, 6, 7]);
        let inner = slice.slice(1..=2).unwrap();
        assert_eq!(inner.read_blocking(&stream).unwrap(), [3, 4]);
        let (copy, cost) = count(|| inner);
        cost.assert_calls(&[]);
        assert_eq!(copy.len(), 2);
        assert_eq!(Slice::from(&buffer).len(), buffer.as_slice().len());
        stream.fill(inner, 99).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0, 1, 2, 99, 99, 5, 6, 7, 8, 9]);
    });
}

#[test]
fn a_sub_buffer_keeps_the_whole_allocation() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Allocation);
        let whole = stream.upload(&(0..100).collect::<Vec<u32>>()).unwrap();
        let (part, cost) = count(|| whole.sub_buffer(10..20).unwrap());
        cost.assert_calls(&[]);
        assert_eq!(part.address(), whole.address() + 40);
        drop(whole);
        assert_eq!(live().of(Kind::Allocation), before + 1);
        let other = stream.upload(&[u32::MAX; 100]).unwrap();
        assert_eq!(part.read_blocking(&stream).unwrap(), (10..20).collect::<Vec<u32>>());
        drop((part, other));
    });
}

#[test]
fn memory_is_filled_with_values_of_one_two_and_four_bytes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let bytes = stream.zeros::<u8>(7).unwrap();
        stream.fill(&bytes, 0xA5).unwrap();
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [0xA5; 7]);
        let halves = stream.zeros::<i16>(5).unwrap();
        stream.fill(&halves, -2).unwrap();
        assert_eq!(halves.read_blocking(&stream).unwrap(), [-2; 5]);
        let floats = stream.zeros::<f32>(9).unwrap();
        stream.fill(&floats, 1.5).unwrap();
        stream.fill(floats.slice(3..5).unwrap(), -0.5).unwrap();
        assert_eq!(floats.read_blocking(&stream).unwrap(), [1.5, 1.5, 1.5, -0.5, -0.5, 1.5, 1.5, 1.5, 1.5]);
        let wide = stream.zeros::<f64>(2).unwrap();
        stream.fill(wide.as_slice().cast::<u32>().unwrap(), u32::MAX).unwrap();
        assert!(wide.read_blocking(&stream).unwrap().iter().all(|value| value.to_bits() == u64::MAX));
        let pairs = stream.zeros::<[u8; 2]>(3).unwrap();
        stream.fill(&pairs, [1, 2]).unwrap();
        assert_eq!(pairs.read_blocking(&stream).unwrap(), [[1, 2]; 3]);
    });
}

#[test]
fn a_copy_needs_equal_lengths() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let source = stream.upload(&[1_u32, 2, 3, 4]).unwrap();
        let target = stream.zeros::<u32>(3).unwrap();
        let (copied, cost) = count(|| stream.copy(&source, &target));
        assert!(matches!(kind_of(copied), Error::Length { .. }));
        cost.assert_calls(&[]);
        assert_eq!(target.read_blocking(&stream).unwrap(), [0; 3]);
        let (copied, cost) = count(|| stream.copy(source.slice(1..).unwrap(), &target));
        copied.unwrap();
        cost.assert_calls(&[("cuMemcpyDtoDAsync", 1)]);
        assert_eq!(target.read_blocking(&stream).unwrap(), [2, 3, 4]);
    });
}

#[test]
fn overlapping_ranges_are_not_copied() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32, 2, 3, 4, 5, 6]).unwrap();
        let part = |range| buffer.slice(range).unwrap();
        for (from, to, bytes) in [(0..4, 2..6, 8), (2..6, 0..4, 8), (1..3, 1..3, 8), (0..3, 2..5, 4)] {
            let (copied, cost) = count(|| stream.copy(part(from), part(to)));
            assert_eq!(kind_of(copied), Error::Overlap { bytes });
            cost.assert_calls(&[]);
        }
        stream.copy(part(0..3), part(3..6)).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2, 3, 1, 2, 3]);
    });
}

#[test]
fn elements_of_no_size_are_ordinary_values() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let units = stream.upload(&[(); 5]).unwrap();
        assert_eq!((units.len(), units.size_bytes()), (5, 0));
        assert_eq!(units.read_blocking(&stream).unwrap(), [(); 5]);
        assert_eq!(units.slice(2..).unwrap().len(), 3);
        stream.copy(&units, &stream.zeros::<()>(5).unwrap()).unwrap();
        let words = stream.zeros::<u32>(4).unwrap();
        let _ = words.cast::<()>();
        let _ = units.cast::<u32>();
        assert_eq!(stream.zeros::<()>(usize::MAX).unwrap().len(), usize::MAX);
    });
}

#[test]
fn memory_allocated_while_a_thread_waits_is_not_settled_by_that_wait() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let first = Gate::close(&home);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| home.synchronize_blocking().unwrap());
            // The wait looks at the stream when it begins; it has long begun after this.
            let _ = until(Duration::from_millis(100), || waiting.is_finished());
            let second = Gate::close(&home);
            let buffer = home.zeros::<u32>(16).unwrap();
            first.open();
            if until(Duration::from_secs(5), || waiting.is_finished()) {
                assert!(!buffer.allocation().is_settled(), "its allocation is behind the second gate");
                other.fill(&buffer, 3).unwrap();
                assert!(!other.query().unwrap(), "so another stream has to wait");
            } else {
                println!("skipped: the driver waited for later work too");
            }
            second.open();
            context.synchronize_blocking().unwrap();
        });
    });
}

#[test]
fn host_slices_need_the_buffers_length() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32, 2, 3]).unwrap();
        let error = kind_of(buffer.write_blocking(&stream, &[9, 9]));
        assert!(matches!(error, Error::Length { expected: 3, found: 2, .. }), "{error:?}");
        let mut short = [7; 4];
        let error = kind_of(buffer.read_into_blocking(&stream, &mut short));
        assert!(matches!(error, Error::Length { expected: 3, found: 4, .. }), "{error:?}");
        assert_eq!(short, [7; 4]);
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2, 3]);
        buffer.write_blocking(&stream, &[4, 5, 6]).unwrap();
        let mut read = [0; 3];
        buffer.read_into_blocking(&stream, &mut read).unwrap();
        assert_eq!(read, [4, 5, 6]);
    });
}

#[test]
fn memory_can_be_seen_as_another_type_of_element() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.upload(&[0x0403_0201_u32, 0x0807_0605]).unwrap();
        let bytes: Buffer<u8> = words.cast().unwrap();
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        let long: Buffer<u64> = words.cast().unwrap();
        assert_eq!(long.read_blocking(&stream).unwrap(), [0x0807_0605_0403_0201]);
        let odd = stream.zeros::<u8>(6).unwrap();
        assert!(matches!(kind_of(odd.cast::<u32>()), Error::Cast { bytes: 6, size: 4, .. }));
        let shifted = bytes.sub_buffer(1..5).unwrap();
        assert!(matches!(kind_of(shifted.cast::<u32>()), Error::Cast { align: 4, .. }));
    });
}

#[test]
fn an_allocation_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (buffer, cost) = count(|| stream.zeros::<f32>(256).unwrap());
        cost.assert_calls(&[
            ("cuMemAllocAsync", 1),
            ("cuMemsetD8Async", 1),
            ("cuThreadExchangeStreamCaptureMode", 2),
        ]);
        assert_eq!(cost.live(Kind::Allocation), 1);
        assert_eq!(buffer.home(), Some(&stream));
        let (clone, cost) = count(|| buffer.clone());
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!(clone, buffer);
    });
}

#[test]
fn work_on_the_home_stream_needs_no_wait() {
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    let (filled, cost) = count(|| stream.fill(&buffer, 1));
    filled.unwrap();
    cost.assert_calls(&[("cuMemsetD32Async", 1)]);
    assert_eq!(cost.heap_allocations(), 0);
}

#[test]
fn the_first_use_on_another_stream_waits_for_the_home_stream_and_later_ones_cost_nothing() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let gate = Gate::close(&home);
        let buffer = home.zeros::<u32>(16).unwrap();
        let (filled, cost) = count(|| other.fill(&buffer, 5));
        filled.unwrap();
        assert_eq!(cost.calls("cuStreamWaitEvent"), 1, "{cost}");
        assert_eq!(cost.calls("cuMemsetD32Async"), 1, "{cost}");
        let (filled, cost) = count(|| other.fill(&buffer, 6));
        filled.unwrap();
        cost.assert_calls(&[("cuMemsetD32Async", 1)]);
        assert!(!other.query().unwrap(), "it waits for the home stream");
        gate.open();
        assert_eq!(buffer.read_blocking(&other).unwrap(), [6; 16]);
    });
}

#[test]
fn settled_memory_is_used_anywhere_without_a_wait() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(16).unwrap();
        assert!(!buffer.allocation().is_settled());
        home.synchronize_blocking().unwrap();
        assert!(buffer.allocation().is_settled());
        let (filled, cost) = count(|| other.fill(&buffer, 5));
        filled.unwrap();
        cost.assert_calls(&[("cuMemsetD32Async", 1)]);
        assert_eq!(buffer.read_blocking(&other).unwrap(), [5; 16]);
    });
}

#[test]
fn every_other_stream_waits_for_itself() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..4).map(|_| context.stream().unwrap()).collect();
        let gate = Gate::close(&streams[0]);
        let buffer = streams[0].zeros::<u32>(16).unwrap();
        for other in &streams[1..] {
            other.fill(&buffer, 1).unwrap();
            assert!(!other.query().unwrap(), "a stream that has not waited would run at once");
        }
        gate.open();
        context.synchronize_blocking().unwrap();
        assert_eq!(buffer.read_blocking(&streams[0]).unwrap(), [1; 16]);
    });
}

#[test]
fn asking_for_too_much_memory_is_an_error_with_the_bytes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let asked = 1_usize << 50;
        let error = kind_of(stream.zeros::<u8>(asked));
        let Error::OutOfMemory { asked: told, total, .. } = error else { panic!("{error:?}") };
        assert_eq!(told, asked);
        assert!(total > 0 && total < asked);
        assert!(error.to_string().contains(&asked.to_string()), "{error}");
        let small = stream.upload(&[1_u8]).unwrap();
        assert_eq!(small.read_blocking(&stream).unwrap(), [1], "and nothing is broken");
        let error = kind_of(stream.zeros::<u64>(usize::MAX / 4));
        assert!(matches!(error, Error::TooLarge { size: 8, .. }), "{error:?}");
    });
}

#[test]
fn any_range_of_any_buffer_is_read_written_filled_and_copied() {
    let context = setup();
    let stream = context.stream().unwrap();
    no_leaks(|| {
        let strategy = (1_usize..300)
            .prop_flat_map(|len| (prop::collection::vec(any::<u16>(), len), 0..=len, 0..=len, any::<u16>()));
        proptest!(ProptestConfig::with_cases(48), |((values, a, b, value) in strategy)| {
            let (start, end) = (a.min(b), a.max(b));
            let mut model = values.clone();
            let buffer = stream.upload(&values).unwrap();
            let slice = buffer.slice(start..end).unwrap();
            prop_assert_eq!(slice.read_blocking(&stream).unwrap(), &model[start..end]);
            stream.fill(slice, value).unwrap();
            model[start..end].fill(value);
            prop_assert_eq!(&buffer.read_blocking(&stream).unwrap(), &model);
            let other = stream.zeros::<u16>(end - start).unwrap();
            stream.copy(slice, &other).unwrap();
            prop_assert_eq!(other.read_blocking(&stream).unwrap(), &model[start..end]);
            let part = buffer.sub_buffer(start..end).unwrap();
            let reversed: Vec<u16> = values[start..end].iter().rev().copied().collect();
            part.write_blocking(&stream, &reversed).unwrap();
            model[start..end].copy_from_slice(&reversed);
            prop_assert_eq!(buffer.read_blocking(&stream).unwrap(), model);
        });
    });
}
