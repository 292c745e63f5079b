//! What can go wrong, in sentences.

use core::fmt;

use crate::arch::Arch;
use crate::version::Version;

/// The result of this crate's operations.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why nothing was compiled.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library is nowhere.
    #[error(
        "NVRTC, the compiler for CUDA C++, is not to be found. Install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc-cu12`, or let CUDA_NVRTC \
         name the library or its folder. Tried:{}",
        Tried(tried)
    )]
    NotFound {
        /// What was tried, and why it is none.
        tried: Vec<(String, String)>,
    },
    /// What the environment variable names is no NVRTC.
    #[error("CUDA_NVRTC names {path}, which is no NVRTC that can be used: {reason}")]
    Named {
        /// What it names.
        path: String,
        /// Why that is none.
        reason: String,
    },
    /// A library could not be opened, or is no NVRTC.
    #[error("{path} is no NVRTC that can be used: {reason}")]
    Library {
        /// The library.
        path: String,
        /// Why.
        reason: String,
    },
    /// The program does not compile, or an option is wrong.
    #[error("`{name}` does not compile ({code}):\n{log}")]
    Compile {
        /// The program's name.
        name: String,
        /// The compiler's code, in its own words.
        code: String,
        /// What it wrote.
        log: String,
    },
    /// Another call failed.
    #[error("{call} answered {code}")]
    Call {
        /// The call.
        call: &'static str,
        /// The compiler's code, in its own words.
        code: String,
    },
    /// A text given has a zero byte, where C's strings end.
    #[error("{what} has a zero byte at position {position}")]
    Zero {
        /// The text.
        what: &'static str,
        /// Where.
        position: usize,
    },
    /// No name was asked for by that expression.
    #[error(
        "the program was compiled without `.expression({expression:?})`, so its name in the image is not known; it has {known:?}"
    )]
    NoExpression {
        /// The expression.
        expression: String,
        /// Those that were given.
        known: Vec<String>,
    },
    /// The compiler knows no architecture that a device has.
    #[error(
        "NVRTC {compiler} compiles for no architecture that compute capability {}.{} runs; it knows {}. Use another NVRTC (CUDA_NVRTC names one)",
        device.0, device.1, Archs(known)
    )]
    NoArch {
        /// The compiler's version.
        compiler: Version,
        /// The device's compute capability.
        device: (u32, u32),
        /// The architectures that it knows.
        known: Vec<Arch>,
    },
    /// The driver does not read PTX of so new a version.
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
        /// The newest PTX that it reads.
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
