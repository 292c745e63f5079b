//! Errors of finding the compiler and of compiling.

use core::fmt;

use crate::arch::Arch;
use crate::version::Version;

/// The result of this crate's operations.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The error of a program that was not compiled.
///
/// `Debug` shows the same sentence as `Display`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// NVRTC was not found.
    #[error(
        "NVRTC, the compiler for CUDA C++, is not to be found. Install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc-cu12`. If it is \
         installed: is the virtual environment activated? Else set CUDA_NVRTC to the library or its folder. Tried:{}",
        Tried(tried)
    )]
    NotFound {
        /// The places that were tried, each with the reason it was rejected.
        tried: Vec<(String, String)>,
    },
    /// The environment variable `CUDA_NVRTC` does not name a usable NVRTC.
    #[error("CUDA_NVRTC names {path}, which is no NVRTC that can be used: {reason}")]
    Named {
        /// The value of the variable.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A library cannot be opened, or is not a usable NVRTC.
    #[error("{path} is no NVRTC that can be used: {reason}")]
    Library {
        /// The library.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The program does not compile, or an option is wrong.
    #[error("`{name}` does not compile ({code}):\n{log}")]
    Compile {
        /// The program's name.
        name: String,
        /// The compiler's description of its result code.
        code: String,
        /// The compiler's log.
        log: String,
    },
    /// A call of the compiler failed.
    #[error("{call} answered {code}")]
    Call {
        /// The call.
        call: &'static str,
        /// The compiler's description of its result code.
        code: String,
    },
    /// A text contains a zero byte, which ends C strings.
    #[error("{what} has a zero byte at position {position}")]
    Zero {
        /// The text, in words.
        what: &'static str,
        /// The position of the byte.
        position: usize,
    },
    /// The program was compiled without the expression.
    #[error(
        "the program was compiled without `.expression({expression:?})`, so its name in the image is not known; it has {known:?}"
    )]
    NoExpression {
        /// The expression.
        expression: String,
        /// The expressions of the program.
        known: Vec<String>,
    },
    /// The compiler supports no architecture that the device runs.
    #[error(
        "NVRTC {compiler} compiles for no architecture that compute capability {}.{} runs; it knows {}. Use another NVRTC (CUDA_NVRTC names one)",
        device.0, device.1, Archs(known)
    )]
    NoArch {
        /// The compiler's version.
        compiler: Version,
        /// The device's compute capability.
        device: (u32, u32),
        /// The supported architectures.
        known: Vec<Arch>,
    },
    /// The PTX is too new for the driver.
    #[error(
        "NVRTC {compiler} writes PTX {ptx}, and the driver, of CUDA {driver}, reads PTX up to {newest}. Use an NVRTC of CUDA {driver} or older \
         (`pip install 'nvidia-cuda-nvrtc-cu{}<={driver}.999'`; CUDA_NVRTC names it), compile a cubin for the device (`Target::Cubin`) if both are of \
         CUDA {}, or install a newer driver", driver.major, driver.major
    )]
    PtxTooNew {
        /// The compiler's version.
        compiler: Version,
        /// The version of the PTX.
        ptx: Version,
        /// The driver's version.
        driver: Version,
        /// The newest PTX that the driver reads.
        newest: Version,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

struct Tried<'a>(&'a [(String, String)]);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, why)| write!(formatter, "\n- {what}: {why}"))
    }
}

struct Archs<'a>(&'a [Arch]);

impl fmt::Display for Archs<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|arch| format!("sm_{arch}")).collect();
        formatter.write_str(&names.join(", "))
    }
}
