//! Peer access calls, and copies between devices.

use core::ffi::{c_int, c_uint};
use std::sync::Arc;

use cuda_sys::{
    CUDA_MEMCPY3D_PEER, CUDA_MEMCPY3D_v2, CUcontext, CUdevice, CUdevice_P2PAttribute, CUdeviceptr, CUstream,
};

use super::copy::{DEVICE, Pools, linear_of, shaped_of};
use super::table::Entries;
use crate::device::context::{self, Context, check_device, current};
use crate::driver::handle::number;
use crate::driver::pointer::{self, put};
use crate::driver::result_code::{
    Answer, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, PEER_ACCESS_ALREADY_ENABLED,
    PEER_ACCESS_NOT_ENABLED,
};
use crate::graph::capture;
use crate::stream;
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuDeviceCanAccessPeer,
        cuDeviceGetP2PAttribute,
        cuCtxEnablePeerAccess,
        cuCtxDisablePeerAccess,
        cuMemcpyPeer,
        cuMemcpyPeerAsync,
        cuMemcpy3DPeer,
        cuMemcpy3DPeerAsync,
        ..entries
    }
}

fn given(context: CUcontext) -> Answer<Arc<Context>> {
    if context.is_null() { Err(INVALID_CONTEXT) } else { context::get(number(context)) }
}

/// Checks that both contexts of a copy live.
fn check_pair(dst: CUcontext, src: CUcontext) -> Answer {
    given(dst)?;
    given(src).map(drop)
}

/// The copy without its contexts, which are not needed here.
fn plain(raw: &CUDA_MEMCPY3D_PEER) -> Answer<CUDA_MEMCPY3D_v2> {
    check_pair(raw.dstContext, raw.srcContext)?;
    Ok(CUDA_MEMCPY3D_v2 {
        srcXInBytes: raw.srcXInBytes,
        srcY: raw.srcY,
        srcZ: raw.srcZ,
        srcLOD: raw.srcLOD,
        srcMemoryType: raw.srcMemoryType,
        srcHost: raw.srcHost,
        srcDevice: raw.srcDevice,
        srcArray: raw.srcArray,
        srcPitch: raw.srcPitch,
        srcHeight: raw.srcHeight,
        dstXInBytes: raw.dstXInBytes,
        dstY: raw.dstY,
        dstZ: raw.dstZ,
        dstLOD: raw.dstLOD,
        dstMemoryType: raw.dstMemoryType,
        dstHost: raw.dstHost,
        dstDevice: raw.dstDevice,
        dstArray: raw.dstArray,
        dstPitch: raw.dstPitch,
        dstHeight: raw.dstHeight,
        WidthInBytes: raw.WidthInBytes,
        Height: raw.Height,
        Depth: raw.Depth,
        ..Default::default()
    })
}

entries! {
    init fn cuDeviceCanAccessPeer(can_access_peer: *mut c_int, dev: CUdevice, peer_dev: CUdevice) {
        check_device(dev)?;
        check_device(peer_dev)?;
        put(can_access_peer, c_int::from(dev != peer_dev))
    }

    init fn cuDeviceGetP2PAttribute(value: *mut c_int, attribute: CUdevice_P2PAttribute, src: CUdevice, dst: CUdevice) {
        type A = CUdevice_P2PAttribute;
        check_device(src)?;
        check_device(dst)?;
        if src == dst {
            return Err(INVALID_DEVICE);
        }
        let answer = match attribute {
            A::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED | A::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED => 1,
            CUdevice_P2PAttribute(1..=5) => 0,
            _ => return Err(INVALID_VALUE),
        };
        put(value, answer)
    }

    live fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) {
        let (own, peer) = (current()?, given(peer)?);
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if own.device == peer.device {
            return Err(INVALID_DEVICE);
        }
        let is_new = lock(&own.peers).insert(peer.id);
        if is_new { Ok(()) } else { Err(PEER_ACCESS_ALREADY_ENABLED) }
    }

    live fn cuCtxDisablePeerAccess(peer: CUcontext) {
        let (own, peer) = (current()?, given(peer)?);
        let was_there = lock(&own.peers).remove(&peer.id);
        if was_there { Ok(()) } else { Err(PEER_ACCESS_NOT_ENABLED) }
    }

    live fn cuMemcpyPeer(dst: CUdeviceptr, to: CUcontext, src: CUdeviceptr, from: CUcontext, len: usize) {
        check_pair(to, from)?;
        linear_of(Pools::All, dst, src, len, [DEVICE, DEVICE], None)
    }

    owned fn cuMemcpyPeerAsync(
        dst: CUdeviceptr,
        to: CUcontext,
        src: CUdeviceptr,
        from: CUcontext,
        len: usize,
        h_stream: CUstream,
    ) {
        check_pair(to, from)?;
        capture::refuse_on(&*stream::get(number(h_stream))?)?;
        linear_of(Pools::All, dst, src, len, [DEVICE, DEVICE], Some(h_stream))
    }

    live fn cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D_PEER) {
        shaped_of(Pools::All, &plain(pointer::given(copy)?)?, None)
    }

    owned fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, h_stream: CUstream) {
        capture::refuse_on(&*stream::get(number(h_stream))?)?;
        shaped_of(Pools::All, &plain(pointer::given(copy)?)?, Some(h_stream))
    }
}
