//! The driver's answers about addresses.

use cuda_handles::{Buffer, MemorySpace};
use cuda_tests::{count, no_leaks, setup};

#[test]
fn an_address_tells_where_it_lies_and_what_it_is_of() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let memory: [(MemorySpace, Buffer<u32>); 4] = [
            (MemorySpace::Device, stream.zeros(64).unwrap()),
            (MemorySpace::Device, context.alloc_blocking(64).unwrap()),
            (MemorySpace::Pinned, context.pinned_zeros(64).unwrap().share().as_buffer().clone()),
            (MemorySpace::Managed, context.managed_zeros(64).unwrap().share().as_buffer().clone()),
        ];
        for (space, buffer) in memory {
            assert_eq!(buffer.allocation().kind().space(), space);
            let inside = buffer.address() + 16;
            let (info, cost) = count(|| context.address_info(inside).unwrap());
            assert_eq!(cost.calls("cuPointerGetAttributes"), 1, "{cost}");
            assert_eq!(info.space, space);
            assert!(info.start <= buffer.address(), "{space}: {info:?}");
            assert!(info.room_at(inside).is_some_and(|room| room >= 240), "{space}: {info:?}");
        }
    });
}

#[test]
fn an_address_that_the_driver_does_not_know_is_pageable_or_nothing() {
    let context = setup();
    no_leaks(|| {
        let host = [0_u32; 4];
        for address in [0, 0x1000, host.as_ptr().addr() as u64] {
            let info = context.address_info(address).unwrap();
            assert_eq!((info.space, info.room_at(address)), (MemorySpace::Pageable, None), "{address:#x}");
        }
    });
}
