//! Kernel launch calls.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_sys::{CUfunction, CUlaunchAttributeValue, CUlaunchConfig, CUstream};

use super::event::{DISABLE_TIMING, INTERPROCESS};
use super::table::Entries;
use crate::device::context::Context;
use crate::driver::handle::number;
use crate::driver::pointer::{given, slice};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::capture;
use crate::graph::model::edge::Edge;
use crate::graph::model::task::{KernelSpec, Task};
use crate::launch::{self, KernelRun, PACKED_TOO_LARGE, Sizes, declared};
use crate::module::{self, Function};
use crate::stream::attribute;
use crate::stream::attribute::{
    AttributeValue, Attributes, COOPERATIVE, DEVICE_UPDATABLE, LaunchEvent, PRIORITY,
};
use crate::stream::event;
use crate::stream::{self, Stream};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel, ..entries }
}

/// The function of a handle, which may also be a kernel of a library.
fn resolve(handle: u64, context: &Arc<Context>) -> Answer<Arc<Function>> {
    match module::kernel(handle) {
        Ok(kernel) => kernel.function(context),
        Err(_) => module::function(handle),
    }
}

/// # Safety
/// The arguments are valid as CUDA's documentation demands.
unsafe fn enqueue(
    function: CUfunction,
    sizes: Sizes,
    attributes: &Attributes,
    h_stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Answer {
    let stream = stream::get(number(h_stream))?;
    if function.is_null() {
        return Err(INVALID_HANDLE);
    }
    let captured = capture::is_captured(&stream)?;
    let events = attribute::events(attributes);
    events.iter().try_for_each(|wanted| check_event(wanted, &stream))?;
    let function = resolve(number(function), &stream.context)?;
    if !captured && attribute::names_device_updatable(attributes) {
        return Err(NOT_SUPPORTED);
    }
    let checked = launch::check(&function.code, &sizes, attributes);
    let declared = declared::expected(&function);
    if captured {
        capture::invalidate_on(&stream, checked)?;
        // SAFETY: the caller's promise.
        let arguments = unsafe { launch::read_arguments(&function.code, params, extra, PACKED_TOO_LARGE)? };
        let programmatic = attribute::is_programmatic(attributes);
        let kept = attributes.iter().filter(|(id, _)| attribute::is_node_attribute(**id));
        let mut attributes: Attributes = kept.map(|(id, value)| (*id, *value)).collect();
        if stream.priority != 0 {
            let priority = CUlaunchAttributeValue { priority: stream.priority };
            attributes.entry(PRIORITY).or_insert(AttributeValue(priority));
        }
        let spec = KernelSpec { function, sizes, arguments, attributes, declared };
        let node = capture::add(&stream, Task::Kernel(Arc::new(spec)), programmatic)?;
        for wanted in &events {
            let edge = Edge { from_port: wanted.edge.0, kind: wanted.edge.1 };
            capture::record_node(&stream, wanted.event, node, edge);
        }
        return Ok(());
    }
    checked?;
    // SAFETY: the caller's promise.
    let arguments = unsafe { launch::read_arguments(&function.code, params, extra, PACKED_TOO_LARGE)? };
    let record = |is_early: bool| {
        for wanted in events.iter().filter(|wanted| wanted.is_early == is_early) {
            if let Ok(event) = event::get(wanted.event) {
                capture::forget_event(wanted.event);
                event.record(&stream);
            }
        }
    };
    record(true);
    stream.push(move || {
        let params = &arguments.bytes;
        let declared = declared.as_deref();
        KernelRun { function: &function, sizes: &sizes, params, conditions: None, declared, watch: None }
            .run()
    });
    record(false);
    Ok(())
}

/// An event that a launch records must belong to the stream's context, without timing and not
/// interprocess.
fn check_event(wanted: &LaunchEvent, stream: &Stream) -> Answer {
    let event = event::get(wanted.event)?;
    if event.context.id != stream.context.id {
        return Err(INVALID_HANDLE);
    }
    if event.flags & DISABLE_TIMING == 0 || event.flags & INTERPROCESS != 0 {
        Err(INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// Defines launch calls with separate sizes; after the colon follow the attributes and the value of
/// `extra`.
macro_rules! sized {
    ($(fn $name:ident($($extra:ident: $ty:ty)?): $attributes:expr, $given:expr;)*) => {
        entries! {
            $(owned fn $name(
                f: CUfunction,
                grid_x: c_uint,
                grid_y: c_uint,
                grid_z: c_uint,
                block_x: c_uint,
                block_y: c_uint,
                block_z: c_uint,
                shared: c_uint,
                h_stream: CUstream,
                params: *mut *mut c_void,
                $($extra: $ty)?
            ) {
                let sizes = Sizes { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared };
                enqueue(f, sizes, &$attributes, h_stream, params, $given)
            })*
        }
    };
}

sized! {
    fn cuLaunchKernel(extra: *mut *mut c_void): Attributes::new(), extra;
    fn cuLaunchCooperativeKernel(): cooperative(), core::ptr::null_mut();
}

fn cooperative() -> Attributes {
    Attributes::from([(COOPERATIVE, AttributeValue(CUlaunchAttributeValue { cooperative: 1 }))])
}

entries! {
    owned fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        f: CUfunction,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let config = given(config)?;
        let listed = slice(config.attrs.cast_const(), config.numAttrs as usize)?;
        let mut attributes = attribute::read_attributes(listed)?;
        let index = listed.iter().rposition(|attribute| attribute.id.0 == DEVICE_UPDATABLE);
        let updatable = attribute::name_device_node(&mut attributes);
        let sizes = Sizes {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            shared: config.sharedMemBytes,
        };
        enqueue(f, sizes, &attributes, config.hStream, params, extra)?;
        if let (Some(node), Some(index)) = (updatable, index) {
            (*config.attrs.add(index)).value.deviceUpdatableKernelNode.devNode = node;
        }
        Ok(())
    }
}
