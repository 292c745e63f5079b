//! Stream attribute calls. Attributes are stored; none affects execution here.

use cuda_sys::{CUlaunchAttributeValue, CUstream, CUstreamAttrID, CUstreamAttrValue};

use super::table::Entries;
use crate::driver::handle::number;
use crate::driver::pointer::{given, put};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::stream::attribute;
use crate::stream::attribute::AttributeValue;
use crate::stream::{self, Stream};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuStreamGetAttribute, cuStreamSetAttribute, cuStreamCopyAttributes, ..entries }
}

type A = CUstreamAttrID;

fn value_of(stream: &Stream, attribute: A) -> Answer<CUlaunchAttributeValue> {
    let set = lock(&stream.attributes);
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

/// Whether streams have the attribute.
fn is_stream_attribute(attribute: A) -> bool {
    matches!(
        attribute,
        A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
            | A::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
    )
}

entries! {
    owned fn cuStreamGetAttribute(h_stream: CUstream, attr: CUstreamAttrID, value: *mut CUstreamAttrValue) {
        let stream = stream::get(number(h_stream))?;
        put(value, value_of(&stream, attr)?)
    }

    owned fn cuStreamSetAttribute(h_stream: CUstream, attr: CUstreamAttrID, param: *const CUstreamAttrValue) {
        let stream = stream::get(number(h_stream))?;
        let param = given(param)?;
        if !is_stream_attribute(attr) {
            return Err(INVALID_VALUE);
        }
        let mut value = *param;
        attribute::check_attribute(attr, &mut value)?;
        lock(&stream.attributes).insert(attr.0, AttributeValue(value));
        Ok(())
    }

    owned fn cuStreamCopyAttributes(dst_stream: CUstream, src_stream: CUstream) {
        let (dst, src) = (stream::get(number(dst_stream))?, stream::get(number(src_stream))?);
        let set = lock(&src.attributes).clone();
        *lock(&dst.attributes) = set;
        Ok(())
    }
}
