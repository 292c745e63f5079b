//! What came out of the compiler.

use crate::error::{Error, Result};
use crate::version::{self, Version, newest_ptx};

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    pub(crate) ptx: Option<String>,
    pub(crate) cubin: Option<Vec<u8>>,
    pub(crate) log: String,
    /// Expressions and the names that the compiler gave them.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) compiler: Version,
}

impl Compiled {
    /// The PTX; `None` if a cubin was asked for.
    #[doc(alias = "nvrtcGetPTX")]
    #[must_use]
    pub fn ptx(&self) -> Option<&str> {
        self.ptx.as_deref()
    }

    /// The cubin, if that was asked for.
    #[doc(alias = "nvrtcGetCUBIN")]
    #[must_use]
    pub fn cubin(&self) -> Option<&[u8]> {
        self.cubin.as_deref()
    }

    /// What the compiler wrote: its warnings.
    #[doc(alias = "nvrtcGetProgramLog")]
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The name in the image of what an [`expression`](crate::Program::expression) stands for.
    ///
    /// # Errors
    /// The program was compiled without this expression.
    #[doc(alias = "nvrtcGetLoweredName")]
    pub fn lowered_name(&self, expression: &str) -> Result<&str> {
        let found = self.names.iter().find(|(known, _)| known == expression);
        found.map(|(_, name)| &**name).ok_or_else(|| Error::NoExpression {
            expression: expression.to_owned(),
            known: self.names.iter().map(|(known, _)| known.clone()).collect(),
        })
    }

    /// The version of the compiler.
    #[must_use]
    pub fn compiler(&self) -> Version {
        self.compiler
    }

    /// The version of the PTX, if it is PTX.
    #[must_use]
    pub fn ptx_version(&self) -> Option<Version> {
        self.ptx().and_then(version::of_ptx)
    }

    /// Whether a driver of this CUDA version reads the PTX. Says nothing of cubins, and of drivers
    /// that this crate does not know: there the driver has the last word.
    ///
    /// # Errors
    /// [`Error::PtxTooNew`], which says what to do.
    pub fn check_driver(&self, driver: Version) -> Result<()> {
        match (self.ptx_version(), newest_ptx(driver)) {
            (Some(ptx), Some(newest)) if ptx > newest => {
                Err(Error::PtxTooNew { compiler: self.compiler, ptx, driver, newest })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(ptx: &str) -> Compiled {
        Compiled {
            ptx: Some(ptx.to_owned()),
            cubin: None,
            log: String::new(),
            names: vec![("scale<float>".to_owned(), "_Z5scaleIfE".to_owned())],
            compiler: Version::new(13, 0),
        }
    }

    #[test]
    fn ptx_that_is_too_new_says_what_to_do() {
        let compiled = compiled(".version 9.0\n.target sm_75\n");
        for driver in [Version::new(13, 0), Version::new(13, 1), Version::new(14, 0)] {
            assert_eq!(compiled.check_driver(driver), Ok(()));
        }
        let text = compiled.check_driver(Version::new(12, 2)).unwrap_err().to_string();
        assert!(
            text.starts_with("NVRTC 13.0 writes PTX 9.0, and the driver, of CUDA 12.2, reads PTX up to 8.2."),
            "{text}"
        );
        assert!(
            text.contains("pip install 'nvidia-cuda-nvrtc-cu12<=12.2.999'") && text.contains("CUDA_NVRTC"),
            "{text}"
        );
    }

    #[test]
    fn names_are_found_by_their_expressions() {
        let compiled = compiled("");
        assert_eq!(compiled.lowered_name("scale<float>"), Ok("_Z5scaleIfE"));
        let text = compiled.lowered_name("scale<int>").unwrap_err().to_string();
        assert!(text.contains(".expression(\"scale<int>\")") && text.contains("scale<float>"), "{text}");
    }
}
