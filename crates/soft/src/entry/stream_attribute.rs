//! The attributes of streams. They are kept and told; none changes how work runs here.

use std::sync::PoisonError;

use cuda_sys::{CUlaunchAttributeValue, CUstream, CUstreamAttrID, CUstreamAttrValue};

use super::Entries;
use crate::code::{Answer, INVALID_VALUE};
use crate::device::GREATEST_PRIORITY;
use crate::gate::{put, required};
use crate::handle::number;
use crate::launch::AttributeValue;
use crate::stream::{self, Stream};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries { cuStreamGetAttribute, cuStreamSetAttribute, cuStreamCopyAttributes, ..entries }
}

type A = CUstreamAttrID;

fn value_of(stream: &Stream, attribute: A) -> Answer<CUlaunchAttributeValue> {
    let set = stream.attributes.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = set.get(&attribute.0) {
        return Ok(value.0);
    }
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    match attribute {
        A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW | A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {}
        A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => value.syncPolicy.0 = 1,
        A::CU_LAUNCH_ATTRIBUTE_PRIORITY => value.priority = stream.priority,
        A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => value.memSyncDomainMap.remote = 1,
        _ => return Err(INVALID_VALUE),
    }
    Ok(value)
}

/// # Safety
/// The value is the attribute's.
unsafe fn check(attribute: A, value: &mut CUlaunchAttributeValue) -> Answer {
    // SAFETY: the caller's promise.
    unsafe {
        let good = match attribute {
            A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
                (0.0..=1.0).contains(&value.accessPolicyWindow.hitRatio)
            }
            A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => (1..=4).contains(&value.syncPolicy.0),
            A::CU_LAUNCH_ATTRIBUTE_PRIORITY => {
                value.priority = value.priority.clamp(GREATEST_PRIORITY, 0);
                true
            }
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => value.memSyncDomain.0 <= 1,
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                value.memSyncDomainMap.default_ < 4 && value.memSyncDomainMap.remote < 4
            }
            _ => false,
        };
        if good { Ok(()) } else { Err(INVALID_VALUE) }
    }
}

entries! {
    owned fn cuStreamGetAttribute(h_stream: CUstream, attr: CUstreamAttrID, value: *mut CUstreamAttrValue) {
        let stream = stream::get(number(h_stream))?;
        put(value, value_of(&stream, attr)?)
    }

    owned fn cuStreamSetAttribute(h_stream: CUstream, attr: CUstreamAttrID, param: *const CUstreamAttrValue) {
        let stream = stream::get(number(h_stream))?;
        required(param)?;
        let mut value = *param;
        check(attr, &mut value)?;
        stream.attributes.lock().unwrap_or_else(PoisonError::into_inner).insert(attr.0, AttributeValue(value));
        Ok(())
    }

    owned fn cuStreamCopyAttributes(dst_stream: CUstream, src_stream: CUstream) {
        let (dst, src) = (stream::get(number(dst_stream))?, stream::get(number(src_stream))?);
        let set = src.attributes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *dst.attributes.lock().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    }
}
