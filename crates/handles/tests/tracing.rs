//! Without a hook, failures of drops are warnings.
#![cfg(feature = "tracing")]

use std::sync::{Mutex, PoisonError};

use cuda_handles::Device;
use cuda_sys::{CUresult, Call, Interceptor};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Lets no event be destroyed.
struct Refuse;

impl Interceptor for Refuse {
    fn answer(&self, call: Call) -> Option<CUresult> {
        (call == Call::cuEventDestroy).then_some(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collect;

impl Subscriber for Collect {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cuda_handles::reaper" && *metadata.level() == Level::WARN
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).push(text.0);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

#[test]
fn a_failing_drop_is_a_warning() {
    let loader = cuda_soft::loader(cuda_soft::Config::default());
    // SAFETY: the event stays as it is, as the code says.
    unsafe { loader.intercept(&Refuse) }.install().expect("the software driver");
    tracing::subscriber::set_global_default(Collect).expect("no other subscriber");
    let context = Device::new(0).and_then(Device::context).expect("a context");
    drop(context.event().expect("an event"));
    let seen = SEEN.lock().expect("nothing panics");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(
        seen[0].contains("destroying an event") && seen[0].contains("CUDA_ERROR_INVALID_VALUE"),
        "{seen:?}"
    );
}
