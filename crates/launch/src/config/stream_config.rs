//! The configuration of a launch on a stream: events and programmatic launch, which nodes lack.

use core::fmt;

use cuda_handles::Event;
use cuda_sys::CUlaunchAttributeID as Id;

use crate::config::attribute::AttributeList;
use crate::config::launch_config::LaunchConfig;

/// A [`LaunchConfig`] with attributes that only a launch on a stream can have. Such a launch takes
/// either type.
///
/// A graph expresses the same by edges, so a kernel node takes a [`LaunchConfig`] only.
///
/// ```
/// # fn example(event: &cuda_handles::Event) {
/// let config = cuda_launch::per(1000, 256).programmatic_serialization().completion_event(event);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StreamConfig<'e> {
    config: LaunchConfig,
    serialization: bool,
    pub(crate) programmatic: Option<(&'e Event, Trigger)>,
    pub(crate) completion: Option<&'e Event>,
}

/// The moment at which a block triggers a programmatic event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trigger {
    /// When the kernel calls `cudaTriggerProgrammaticLaunchCompletion`
    /// (`griddepcontrol.launch_dependents`), or at the block's end.
    Kernel,
    /// When the block starts.
    BlockStart,
}

impl From<LaunchConfig> for StreamConfig<'_> {
    #[inline]
    fn from(config: LaunchConfig) -> Self {
        Self { config, serialization: false, programmatic: None, completion: None }
    }
}

impl LaunchConfig {
    /// Lets the kernel start before the previous kernel in the stream has ended; see
    /// [`StreamConfig::programmatic_serialization`].
    #[must_use]
    pub fn programmatic_serialization<'e>(self) -> StreamConfig<'e> {
        StreamConfig::from(self).programmatic_serialization()
    }

    /// Records `event` once all blocks have triggered it; see [`StreamConfig::programmatic_event`].
    #[must_use]
    pub fn programmatic_event(self, event: &Event, trigger: Trigger) -> StreamConfig<'_> {
        StreamConfig::from(self).programmatic_event(event, trigger)
    }

    /// Records `event` once all blocks have started; see [`StreamConfig::completion_event`].
    #[must_use]
    pub fn completion_event(self, event: &Event) -> StreamConfig<'_> {
        StreamConfig::from(self).completion_event(event)
    }
}

impl<'e> StreamConfig<'e> {
    /// Grid, block, shared memory and the attributes that nodes share.
    #[inline]
    #[must_use]
    pub fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// Lets the kernel start before the previous kernel in the stream has ended, once that one
    /// triggers it. This kernel waits for the previous one's writes by
    /// `cudaGridDependencySynchronize` (`griddepcontrol.wait`). Needs compute capability 9.0.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION")]
    #[doc(alias = "cudaLaunchAttributeProgrammaticStreamSerialization")]
    #[doc(alias = "programmatic dependent launch")]
    #[must_use]
    pub fn programmatic_serialization(mut self) -> Self {
        self.serialization = true;
        self
    }

    /// Records `event` once all blocks have triggered it, so that work waiting for the event can
    /// start before the kernel ends. The event must have neither timing nor interprocess use. The
    /// launch cannot be captured. Needs compute capability 9.0.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT")]
    #[must_use]
    pub fn programmatic_event(mut self, event: &'e Event, trigger: Trigger) -> Self {
        self.programmatic = Some((event, trigger));
        self
    }

    /// Records `event` once all blocks have started, or later if the driver chooses. The event must
    /// have neither timing nor interprocess use. The launch cannot be captured. Needs compute
    /// capability 9.0 and CUDA 12.3.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT")]
    #[must_use]
    pub fn completion_event(mut self, event: &'e Event) -> Self {
        self.completion = Some(event);
        self
    }

    /// Whether `cuLaunchKernel` suffices.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.config.has_attributes() && !self.is_programmatic()
    }

    /// Whether it has an attribute that nodes cannot have.
    #[inline]
    pub(crate) fn is_programmatic(&self) -> bool {
        self.serialization || self.programmatic.is_some() || self.completion.is_some()
    }

    /// The events, each with its name in errors.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&'e Event, &'static str)> {
        let programmatic = self.programmatic.map(|(event, _)| (event, "the programmatic event of a launch"));
        programmatic
            .into_iter()
            .chain(self.completion.map(|event| (event, "the completion event of a launch")))
    }

    /// Whether there are events.
    #[inline(always)]
    pub(crate) fn has_events(&self) -> bool {
        self.programmatic.is_some() || self.completion.is_some()
    }

    /// All attributes in the driver's form, those of the stream included.
    pub(crate) fn list(&self) -> AttributeList {
        let mut list = self.config.attributes();
        if self.serialization {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, |value| {
                value.programmaticStreamSerializationAllowed = 1;
            });
        }
        if let Some((event, trigger)) = self.programmatic {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, |value| {
                value.programmaticEvent.event = event.as_raw();
                value.programmaticEvent.triggerAtBlockStart = i32::from(trigger == Trigger::BlockStart);
            });
        }
        if let Some(event) = self.completion {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, |value| {
                value.launchCompletionEvent.event = event.as_raw();
            });
        }
        list
    }
}

impl fmt::Display for StreamConfig<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.config)?;
        if self.serialization {
            write!(formatter, ", programmatic serialization")?;
        }
        if self.programmatic.is_some() {
            write!(formatter, ", programmatic event")?;
        }
        if self.completion.is_some() {
            write!(formatter, ", completion event")?;
        }
        Ok(())
    }
}
