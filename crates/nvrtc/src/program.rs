//! What is given to the compiler.

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

/// CUDA C++ with the options that it is compiled with. Programs that are equal are compiled once.
///
/// The options of a call are given to the compiler in the order of the calls.
///
/// ```
/// use cuda_nvrtc::{Arch, Program, Standard, Target};
///
/// let program = Program::new("fill.cu", "#include \"value.h\"\nextern \"C\" __global__ void fill(int *x) { *x = VALUE + N; }")
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
    /// A source; `name` stands for its file in the compiler's messages.
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

    /// A header in memory: `#include "name"` and `#include <name>` find it.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Has the compiler make an instance of a template, such as `scale<float>`, or keep a kernel or
    /// variable (`&counter`) that is not `extern "C"`.
    /// [`Compiled::lowered_name`](crate::Compiled::lowered_name) tells its name in the image.
    #[doc(alias = "nvrtcAddNameExpression")]
    #[must_use]
    pub fn expression(mut self, expression: impl Into<String>) -> Self {
        self.expressions.push(expression.into());
        self
    }

    /// What is to come out. Default: PTX.
    #[doc(alias = "--gpu-architecture")]
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// The C++ standard: `--std`.
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

    /// A folder in which `#include` looks: `--include-path`. The compiler brings no headers of its
    /// own; those of CUDA are in the toolkit and in the wheel `nvidia-cuda-runtime`.
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

    /// The name for its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its headers in memory, name and text.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The expressions whose names in the image are asked for.
    #[must_use]
    pub fn expressions(&self) -> &[String] {
        &self.expressions
    }

    /// The options as the compiler gets them, but for the target's.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// What is to come out.
    #[must_use]
    pub fn wanted(&self) -> Target {
        self.target
    }
}
