//! The options of the driver's compiler, and its log.

use core::ffi::{c_char, c_void};

use cuda_sys::{CUjit_option as JitOption, CUresult, Call};

use crate::context::Context;
use crate::error::{Error, Result};

/// How the driver compiles PTX. The driver chooses for `None` and `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoadOptions {
    /// From 0 (none) to 4 (all). Default: 4.
    #[doc(alias = "CU_JIT_OPTIMIZATION_LEVEL")]
    pub optimization: Option<u32>,
    /// The most registers that a thread may use.
    #[doc(alias = "CU_JIT_MAX_REGISTERS")]
    pub max_registers: Option<u32>,
    /// The compute capability to compile for, such as (9, 0). Default: the device's.
    #[doc(alias = "CU_JIT_TARGET")]
    pub target: Option<(u32, u32)>,
    /// Whether to keep the source's line numbers, for profilers.
    #[doc(alias = "CU_JIT_GENERATE_LINE_INFO")]
    pub line_info: bool,
    /// Whether to generate information for debuggers. Slows the code down.
    #[doc(alias = "CU_JIT_GENERATE_DEBUG_INFO")]
    pub debug_info: bool,
}

impl LoadOptions {
    fn check(&self) -> Result<()> {
        match self.optimization {
            Some(level) if level > 4 => Err(Error::Limit {
                what: "the optimization level of the compiler",
                asked: level.into(),
                limit: 4,
            }),
            _ => Ok(()),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (JitOption, u32)> {
        let target = self.target.map(|(major, minor)| major.saturating_mul(10).saturating_add(minor));
        [
            (JitOption::CU_JIT_OPTIMIZATION_LEVEL, self.optimization),
            (JitOption::CU_JIT_MAX_REGISTERS, self.max_registers),
            (JitOption::CU_JIT_TARGET, target),
            (JitOption::CU_JIT_GENERATE_LINE_INFO, self.line_info.then_some(1)),
            (JitOption::CU_JIT_GENERATE_DEBUG_INFO, self.debug_info.then_some(1)),
        ]
        .into_iter()
        .filter_map(|(option, value)| value.map(|value| (option, value)))
    }
}

const LOG_BYTES: usize = 16 * 1024;

/// Options of the driver's compiler, with the buffer for its log. They outlive the object that they
/// were given for: with lazy loading the driver compiles later, and it writes the log's length into
/// the values.
pub(crate) struct Jit(*mut Parts);

struct Parts {
    options: Vec<JitOption>,
    values: Vec<*mut c_void>,
    text: [c_char; LOG_BYTES],
}

// SAFETY: the parts are written by the driver inside calls that their holder keeps apart, and read
// by us after such a call.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

impl Jit {
    pub(crate) fn new(options: &LoadOptions) -> Result<Self> {
        options.check()?;
        // The driver takes numbers in place of pointers.
        let number = |value: u32| core::ptr::without_provenance_mut(value as usize);
        let mut parts = Parts {
            options: vec![JitOption::CU_JIT_ERROR_LOG_BUFFER, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES],
            values: vec![core::ptr::null_mut(), number(LOG_BYTES as u32)],
            text: [0; LOG_BYTES],
        };
        for (option, value) in options.pairs() {
            parts.options.push(option);
            parts.values.push(number(value));
        }
        let parts = Box::into_raw(Box::new(parts));
        // SAFETY: the box was just made.
        unsafe { (&mut (*parts).values)[0] = (&raw mut (*parts).text).cast() };
        Ok(Self(parts))
    }

    /// How many options there are, the options, and their values, for a call.
    pub(crate) fn raw(&self) -> (u32, *mut JitOption, *mut *mut c_void) {
        // SAFETY: the parts are alive, and no call uses them now.
        let (options, values) = unsafe { (&mut (*self.0).options, &mut (*self.0).values) };
        (options.len() as u32, options.as_mut_ptr(), values.as_mut_ptr())
    }

    /// The result of a call that may compile: with the log, if the compilation failed.
    pub(crate) fn check(&self, context: &Context, call: Call, code: CUresult) -> Result<()> {
        match context.check(call, code) {
            Err(Error::Driver { call, code }) if is_of_image(code) => {
                Err(Error::Jit { call, code, log: self.text().into() })
            }
            result => result,
        }
    }

    /// The compiler's log, without trailing white space.
    fn text(&self) -> String {
        // SAFETY: the parts are alive, and no compilation is running.
        let bytes: &[u8] = bytemuck::cast_slice(unsafe { &(*self.0).text });
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: the parts came from a box, and what used them is gone or was never made.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

fn is_of_image(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_INVALID_IMAGE
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED
            | CUresult::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC
            | CUresult::CUDA_ERROR_INVALID_SOURCE
            | CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
            | CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_told() {
        assert_eq!(LoadOptions::default().pairs().count(), 0);
        let options = LoadOptions {
            target: Some((9, 0)),
            line_info: true,
            max_registers: Some(32),
            ..LoadOptions::default()
        };
        let pairs: Vec<_> = options.pairs().collect();
        let expected = [
            (JitOption::CU_JIT_MAX_REGISTERS, 32),
            (JitOption::CU_JIT_TARGET, 90),
            (JitOption::CU_JIT_GENERATE_LINE_INFO, 1),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(Jit::new(&options).map(|jit| jit.raw().0), Ok(5));
    }

    #[test]
    fn levels_are_checked() {
        let options = LoadOptions { optimization: Some(5), ..LoadOptions::default() };
        assert!(matches!(Jit::new(&options).map(drop), Err(Error::Limit { asked: 5, limit: 4, .. })));
    }
}
