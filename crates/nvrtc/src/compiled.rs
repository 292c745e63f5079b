//! Compiled programs.

use crate::error::{Error, Result};
use crate::version::{self, Version, newest_ptx};

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    pub(crate) ptx: Option<String>,
    pub(crate) cubin: Option<Vec<u8>>,
    pub(crate) log: String,
    /// Expressions and their names in the image.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) compiler: Version,
}

impl Compiled {
    /// The PTX; `None` if the target is a cubin.
    #[doc(alias = "nvrtcGetPTX")]
    #[must_use]
    pub fn ptx(&self) -> Option<&str> {
        self.ptx.as_deref()
    }

    /// The cubin; `None` if the target is PTX.
    #[doc(alias = "nvrtcGetCUBIN")]
    #[must_use]
    pub fn cubin(&self) -> Option<&[u8]> {
        self.cubin.as_deref()
    }

    /// The compiler's log: its warnings.
    #[doc(alias = "nvrtcGetProgramLog")]
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The name in the image of an [`expression`](crate::Program::expression).
    ///
    /// # Errors
    /// [`Error::NoExpression`] if the program was compiled without this expression.
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

    /// The version of the PTX; `None` if the target is a cubin.
    #[must_use]
    pub fn ptx_version(&self) -> Option<Version> {
        self.ptx().and_then(version::of_ptx)
    }

    /// Checks that a driver of this CUDA version reads the PTX. Succeeds for cubins and for driver
    /// versions unknown to this crate, which only the driver can judge.
    ///
    /// # Errors
    /// [`Error::PtxTooNew`], with advice.
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
