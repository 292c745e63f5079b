//! Event calls.

use core::ffi::c_uint;

use cuda_sys::{CUevent, CUstream};

use super::table::Entries;
use crate::device::context::current;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, required};
use crate::driver::result_code::{
    Answer, ILLEGAL_STATE, INVALID_HANDLE, INVALID_VALUE, NOT_READY, OPERATING_SYSTEM,
};
use crate::graph::capture;
use crate::graph::capture::open_captures;
use crate::graph::model::task::Task;
use crate::stream;
use crate::stream::event;
use crate::stream::shared_records::SharedRecords;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuEventCreate,
        cuEventDestroy,
        cuEventRecord,
        cuEventRecordWithFlags,
        cuEventQuery,
        cuEventSynchronize,
        cuEventElapsedTime,
        cuEventElapsedTime_v12080: cuEventElapsedTime,
        ..entries
    }
}

pub(crate) const DISABLE_TIMING: c_uint = 2;
pub(crate) const INTERPROCESS: c_uint = 4;

fn record(h_event: CUevent, h_stream: CUstream, external: bool) -> Answer {
    let stream = stream::get(number(h_stream))?;
    capture::refuse_invalid(&stream)?;
    let event = event::get(number(h_event))?;
    // An event can only be recorded in streams of its own context.
    if event.context.id != stream.context.id {
        return Err(INVALID_HANDLE);
    }
    if !capture::is_captured(&stream)? {
        // Such a record is for captures alone.
        if external {
            return Err(ILLEGAL_STATE);
        }
        capture::forget_event(number(h_event));
        event.record(&stream);
    } else if external {
        capture::add(&stream, Task::EventRecord(number(h_event)), false)?;
    } else {
        capture::record(&stream, number(h_event));
    }
    Ok(())
}

entries! {
    live fn cuEventCreate(ph_event: *mut CUevent, flags: c_uint) {
        required(ph_event)?;
        if flags > 7 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(INVALID_VALUE);
        }
        let context = current()?;
        let records = if flags & INTERPROCESS == 0 {
            None
        } else {
            Some(SharedRecords::create(context.device).map_err(|_| OPERATING_SYSTEM)?)
        };
        put(ph_event, to_raw(event::create(context, flags, records)))
    }

    owned_in_callbacks fn cuEventDestroy(h_event: CUevent) {
        event::get(number(h_event))?.context.check()?;
        // First, since another thread may get the same handle for a new event at once.
        capture::forget_event(number(h_event));
        event::destroy(number(h_event))
    }

    owned_in_callbacks fn cuEventRecord(h_event: CUevent, h_stream: CUstream) {
        record(h_event, h_stream, false)
    }

    owned_in_callbacks fn cuEventRecordWithFlags(h_event: CUevent, h_stream: CUstream, flags: c_uint) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        record(h_event, h_stream, flags == 1)
    }

    owned_in_callbacks fn cuEventQuery(h_event: CUevent) {
        let event = event::get(number(h_event))?;
        capture::check_event(number(h_event), true)?;
        open_captures::check_call()?;
        let done = event.last().is_none_or(|marker| marker.time().is_some());
        event.context.check()?;
        if done { Ok(()) } else { Err(NOT_READY) }
    }

    owned_in_callbacks fn cuEventSynchronize(h_event: CUevent) {
        let event = event::get(number(h_event))?;
        capture::check_event(number(h_event), true)?;
        open_captures::check_call()?;
        if let Some(marker) = event.last() {
            marker.wait();
        }
        event.context.check()
    }

    owned_in_callbacks fn cuEventElapsedTime(milliseconds: *mut f32, h_start: CUevent, h_end: CUevent) {
        required(milliseconds)?;
        let (start, end) = (event::get(number(h_start))?, event::get(number(h_end))?);
        start.context.check()?;
        end.context.check()?;
        capture::check_event(number(h_start), false)?;
        capture::check_event(number(h_end), false)?;
        if (start.flags | end.flags) & DISABLE_TIMING != 0 {
            return Err(INVALID_HANDLE);
        }
        let (start, end) = (start.last().ok_or(INVALID_HANDLE)?, end.last().ok_or(INVALID_HANDLE)?);
        let (start, end) = (start.time().ok_or(NOT_READY)?, end.time().ok_or(NOT_READY)?);
        let elapsed = match end.checked_duration_since(start) {
            Some(after) => after.as_secs_f32(),
            None => -start.duration_since(end).as_secs_f32(),
        };
        milliseconds.write_unaligned(elapsed * 1e3);
        Ok(())
    }
}
