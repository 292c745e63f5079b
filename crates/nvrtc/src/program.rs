//! Programs to compile: source, headers and options.

use std::path::Path;

use crate::arch::Target;

/// A C++ standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standard {
    /// C++03.
    Cpp03,
    /// C++11.
    Cpp11,
    /// C++14.
    Cpp14,
    /// C++17, the default of NVRTC 12 and 13.
    Cpp17,
    /// C++20.
    Cpp20,
}

/// A CUDA C++ source with its compiler options. Equal programs are compiled once.
///
/// The compiler receives the options in the order of the method calls.
///
/// ```
/// use cuda_nvrtc::{Arch, Program, Standard, Target};
///
/// let source = r#"
///     #include "value.h"
///     extern "C" __global__ void fill(int *x) { *x = VALUE + N; }
/// "#;
/// let program = Program::new("fill.cu", source)
///     .header("value.h", "#define VALUE 40")
///     .define("N", "2")
///     .standard(Standard::Cpp17)
///     .target(Target::Ptx(Arch::new(8, 0)));
/// assert_eq!(program.options(), ["--define-macro=N=2", "--std=c++17"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    name: String,
    source: String,
    headers: Vec<(String, String)>,
    expressions: Vec<String>,
    target: Target,
    options: Vec<String>,
}

impl Program {
    /// A program with this source. The compiler's messages show `name` as its file.
    #[doc(alias = "nvrtcCreateProgram")]
    #[must_use]
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            source: source.into(),
            headers: Vec::new(),
            expressions: Vec::new(),
            target: Target::default(),
            options: Vec::new(),
        }
    }

    /// Adds a header in memory, found by `#include "name"` and `#include <name>`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Instantiates a template, such as `scale<float>`, or keeps a kernel or variable (`&counter`)
    /// that is not `extern "C"`. [`Compiled::lowered_name`](crate::Compiled::lowered_name) returns
    /// its name in the image.
    #[doc(alias = "nvrtcAddNameExpression")]
    #[must_use]
    pub fn expression(mut self, expression: impl Into<String>) -> Self {
        self.expressions.push(expression.into());
        self
    }

    /// Sets the target. The default is PTX.
    #[doc(alias = "--gpu-architecture")]
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// Sets the C++ standard: `--std`.
    #[must_use]
    pub fn standard(self, standard: Standard) -> Self {
        self.option(match standard {
            Standard::Cpp03 => "--std=c++03",
            Standard::Cpp11 => "--std=c++11",
            Standard::Cpp14 => "--std=c++14",
            Standard::Cpp17 => "--std=c++17",
            Standard::Cpp20 => "--std=c++20",
        })
    }

    /// Adds a folder that `#include` searches: `--include-path`. The compiler brings no headers.
    /// The headers of CUDA are in the toolkit and in the wheel `nvidia-cuda-runtime`.
    #[must_use]
    pub fn include(self, folder: impl AsRef<Path>) -> Self {
        self.option(format!("--include-path={}", folder.as_ref().display()))
    }

    /// Defines a macro: `--define-macro`.
    #[must_use]
    pub fn define(self, name: &str, value: &str) -> Self {
        self.option(format!("--define-macro={name}={value}"))
    }

    /// Faster and less exact arithmetic: `--use_fast_math`.
    #[must_use]
    pub fn fast_math(self) -> Self {
        self.option("--use_fast_math")
    }

    /// Code for debuggers, without optimisation: `--device-debug`.
    #[must_use]
    pub fn device_debug(self) -> Self {
        self.option("--device-debug")
    }

    /// The source's line numbers, for profilers: `--generate-line-info`.
    #[must_use]
    pub fn line_info(self) -> Self {
        self.option("--generate-line-info")
    }

    /// The most registers that a thread may use: `--maxrregcount`.
    #[must_use]
    pub fn max_registers(self, registers: u32) -> Self {
        self.option(format!("--maxrregcount={registers}"))
    }

    /// Code that refers to other images, for a linker: `--relocatable-device-code`.
    #[must_use]
    pub fn relocatable(self) -> Self {
        self.option("--relocatable-device-code=true")
    }

    /// Any option, as NVRTC's documentation spells it.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// The name of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The headers in memory, each with name and text.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The expressions whose names are looked up.
    #[must_use]
    pub fn expressions(&self) -> &[String] {
        &self.expressions
    }

    /// The options as the compiler receives them, without the target's.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// The target.
    #[must_use]
    pub fn wanted(&self) -> Target {
        self.target
    }
}
