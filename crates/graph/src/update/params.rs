//! Setting the graph parameters of an executable.

use core::fmt;

use cuda_handles::{AsStream, Context};
use cuda_launch::LaunchConfig;

use crate::error::{Error, ParamError, Result, UpdateError};
use crate::exec::GraphExec;
use crate::exec::exec_params::ExecParams;
use crate::exec::node_updates::Latest;
use crate::exec::source::Source;
use crate::param::graph_param::{GraphParam, ParamArg, ParamType, Stored, ensure_no_output, ensure_of};
use crate::state::bindings::{ParamValue, Place};

impl GraphExec {
    /// Sets a parameter for the launches from the next one on. The next launch updates the nodes
    /// that use it, by one driver call each, if the value differs: another owner, or other bytes.
    /// Launches before it keep their value. Waits for nothing, and makes no driver call.
    ///
    /// The conditions of kernels are checked at the launch, with the values of all parameters.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::{Buffer, Stream};
    /// # fn example(
    /// #     graph: &Graph, stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let target = graph.param(x)?;
    /// graph.root().fill(&target, 1.0)?;
    /// let mut exec = graph.instantiate()?;
    /// exec.launch(stream)?;
    /// exec.set(&target, y)?;
    /// exec.launch(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`ParamError::Foreign`]: the parameter is of another graph.
    /// - [`ParamError::MadeLater`]: it was made after this executable.
    /// - [`ParamError::GraphMemory`], [`ParamError::OwnOutput`]: the memory is that of an
    ///   allocation node, or an output of this graph.
    /// - [`WrongContext`](cuda_handles::Error::WrongContext): the memory is of another context.
    /// - [`ParamError::Attributes`]: a configuration has other attributes than the parameter was
    ///   made with.
    /// - [`UpdateError::Lent`](crate::UpdateError::Lent): the executable cannot be updated.
    ///
    /// Nothing has changed then.
    pub fn set<T: ParamType + ?Sized>(
        &mut self,
        param: &GraphParam<T>,
        value: impl ParamArg<T>,
    ) -> Result<()> {
        let Stored(value) = T::stored(value.into_initial());
        let value = self.scope()?.checked(param, value)?;
        self.put(param.placeholder.number(), value);
        Ok(())
    }

    /// [Sets](Self::set) parameters and [launches](Self::launch). Parameters that are not named
    /// keep their values.
    ///
    /// ```no_run
    /// # use cuda_graph::{GraphExec, GraphParam, Result};
    /// # use cuda_handles::{Buffer, Stream};
    /// # fn example(
    /// #     exec: &mut GraphExec, stream: &Stream, input: &GraphParam<[f32]>,
    /// #     factor: &GraphParam<f32>, x: &Buffer<f32>
    /// # ) -> Result<()> {
    /// exec.launch_with(stream, ((input, x), (factor, 0.5)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`set`](Self::set): then no parameter is set, and nothing launched. The errors
    /// of [`launch`](Self::launch): then the parameters stay set.
    pub fn launch_with(&mut self, stream: &impl AsStream, values: impl ParamValues) -> Result<()> {
        self.set_all(values)?;
        self.launch(stream)
    }

    /// Sets parameters, all or none.
    pub(crate) fn set_all(&mut self, values: impl ParamValues) -> Result<()> {
        let mut list = ValueList::default();
        values.list(&self.scope()?, &mut list)?;
        list.0.into_iter().for_each(|(param, value)| self.put(param, value));
        Ok(())
    }

    /// As [`launch_with`](Self::launch_with), with all parameters of the graph.
    ///
    /// # Errors
    /// The errors of [`launch_with`](Self::launch_with). [`ParamError::NotAllNamed`]: a parameter
    /// is missing; nothing is set and launched.
    pub fn launch_bound(&mut self, stream: &impl AsStream, values: impl ParamValues) -> Result<()> {
        let (scope, mut list) = (self.scope()?, ValueList::default());
        values.list(&scope, &mut list)?;
        scope.ensure_all_named(&list)?;
        list.0.into_iter().for_each(|(param, value)| self.put(param, value));
        self.launch(stream)
    }

    fn scope(&self) -> Result<ParamScope<'_>> {
        self.live()?;
        let source = match self.updates.latest() {
            Latest::Other(latest) => &latest.source,
            Latest::Own | Latest::OwnChanged => &self.source,
        };
        let is_lent = self.owners.is_lent();
        Ok(ParamScope {
            params: self.owners.since.params.as_deref(),
            source,
            context: self.context(),
            is_lent,
        })
    }

    fn put(&mut self, param: u32, value: ParamValue) {
        if let Some(params) = &mut self.owners.since.params {
            params.set(param, value);
        }
    }
}

/// Everything that the values of an executable's parameters are checked against.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct ParamScope<'e> {
    pub(crate) params: Option<&'e ExecParams>,
    pub(crate) source: &'e Source,
    pub(crate) context: &'e Context,
    pub(crate) is_lent: bool,
}

impl ParamScope<'_> {
    /// A value that the parameter can have in the executable.
    pub(crate) fn checked<T: ParamType + ?Sized>(
        &self,
        param: &GraphParam<T>,
        value: ParamValue,
    ) -> Result<ParamValue> {
        let (graph, number) = (param.placeholder.graph(), param.placeholder.number());
        let known = match self.params {
            Some(params) if params.graph() == graph => params.value(number),
            _ if self.is_of(graph) => None,
            _ => return Err(ParamError::Foreign.into()),
        };
        let known = known.ok_or(Error::Param(ParamError::MadeLater))?;
        if self.is_lent {
            return Err(UpdateError::Lent.into());
        }
        ensure_of(self.context, &value)?;
        ensure_no_output(graph, &value)?;
        match (known, value) {
            (ParamValue::Config(known), ParamValue::Config(new)) => {
                Ok(ParamValue::Config(sized(known, new)?))
            }
            (_, value) => Ok(value),
        }
    }

    fn ensure_all_named(&self, list: &ValueList) -> Result<()> {
        let all = self.params.map_or(0, ExecParams::len);
        let is_missing = |param: &u32| list.0.iter().all(|(named, _)| named != param);
        let mut missing = (0..all as u32).filter(is_missing);
        match missing.next() {
            None => Ok(()),
            Some(first) => {
                let (first, missing) = (self.in_words(first), missing.count() + 1);
                Err(ParamError::NotAllNamed { first, missing, all }.into())
            }
        }
    }

    /// The first place that a parameter fills.
    #[cold]
    fn in_words(&self, param: u32) -> String {
        let nodes = self.params.map_or(&[][..], |params| &params.nodes);
        let used = nodes.iter().find_map(|bound| {
            let uses = || bound.binding.uses.iter().filter(|one| one.param == param);
            // Rather the memory itself than its length.
            let one = uses().find(|one| !matches!(one.place, Place::Length { .. })).or(uses().next())?;
            let graph = self.source.graph()?;
            let node = graph.look().map_or_else(|_| "?".into(), |guard| guard.name(bound.counterpart));
            Some(format!("{} of node `{}`", bound.binding.place_in_words("the", one.place), &*node))
        });
        used.unwrap_or_else(|| format!("number {param} in the order of their creation, which no node uses"))
    }

    /// Whether the executable was made of the hierarchy with this number, or updated from it last.
    fn is_of(&self, graph: u64) -> bool {
        self.source.graph().is_some_and(|source| source.hierarchy().number() == graph)
    }
}

impl fmt::Debug for ParamScope<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParamScope").finish_non_exhaustive()
    }
}

/// A configuration with the attributes of the one before it. An executable's nodes take no others.
fn sized(known: &LaunchConfig, new: LaunchConfig) -> Result<LaunchConfig> {
    let with = new.attributes_of(known);
    if new.has_attributes() && with != new { Err(ParamError::Attributes.into()) } else { Ok(with) }
}

/// Values of parameters that were checked.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct ValueList(pub(crate) smallvec::SmallVec<[(u32, ParamValue); 4]>);

/// Parameters with their values: a tuple of up to twelve pairs, as in `((&a, 1), (&b, &buffer))`.
/// One pair alone is written `((&a, 1),)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tuple of graph parameters with their values",
    label = "not a tuple of pairs",
    note = "write `((&a, 1), (&b, &buffer))`; one pair alone is written `((&a, 1),)`"
)]
pub trait ParamValues: sealed::Sealed {
    /// Adds all values to a list, checked.
    ///
    /// # Errors
    /// A value does not fit.
    #[doc(hidden)]
    fn list(self, scope: &ParamScope<'_>, list: &mut ValueList) -> Result<()>;
}

// The values of a list are of the executable that it is for.
mod sealed {
    pub trait Sealed {}
}

macro_rules! param_values {
    ($($($type:ident $value:ident $index:tt)+;)*) => { $(
        impl<$($type: ParamType + ?Sized, $value: ParamArg<$type>,)+> sealed::Sealed
            for ($((&GraphParam<$type>, $value),)+)
        {
        }

        impl<'p, $($type: ParamType + ?Sized, $value: ParamArg<$type>,)+> ParamValues
            for ($((&'p GraphParam<$type>, $value),)+)
        {
            fn list(self, scope: &ParamScope<'_>, list: &mut ValueList) -> Result<()> {
                $(
                    let (param, value) = self.$index;
                    let Stored(value) = $type::stored(value.into_initial());
                    list.0.push((param.placeholder.number(), scope.checked(param, value)?));
                )+
                Ok(())
            }
        }
    )* };
}

param_values! {
    T0 V0 0;
    T0 V0 0 T1 V1 1;
    T0 V0 0 T1 V1 1 T2 V2 2;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6 T7 V7 7;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6 T7 V7 7 T8 V8 8;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6 T7 V7 7 T8 V8 8 T9 V9 9;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6 T7 V7 7 T8 V8 8 T9 V9 9 T10 V10 10;
    T0 V0 0 T1 V1 1 T2 V2 2 T3 V3 3 T4 V4 4 T5 V5 5 T6 V6 6 T7 V7 7 T8 V8 8 T9 V9 9 T10 V10 10 T11 V11 11;
}
