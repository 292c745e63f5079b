//! Loading a library whose kernels wait at their entry for programmatic predecessors.

use super::entry_wait::EntryWait;
use super::image::Image;
use super::jit::LoadOptions;
use super::library::Library;
use super::wait_insertion::with_waits;
use crate::context::Context;
use crate::error::{Error, Result};

/// The first compute capability with the instruction.
const CAPABILITY: (u32, u32) = (9, 0);

/// A library with the outcome of [`Library::load_waiting`].
#[derive(Clone, Debug)]
pub struct WaitingLibrary {
    /// The library.
    pub library: Library,
    /// Whether its kernels wait, or why they do not.
    pub outcome: EntryWait,
}

impl Library {
    /// Loads an image, with a wait at the entry of each of its kernels: `griddepcontrol.wait`
    /// becomes the first statement of every `.entry` of a PTX text. Such a kernel may begin while
    /// its programmatic predecessors still run, and does nothing before all of them have ended and
    /// their writes are visible. Without such predecessors the wait returns immediately, so the
    /// kernels compute the same as those of [`load`](Self::load).
    ///
    /// `.version` is raised to 7.8 and `.target` to `sm_90`, the first with the instruction, where
    /// they are lower.
    ///
    /// The image is loaded as it is, and [`EntryWait::AsItIs`] says why, if
    /// - it is a cubin or a fatbin,
    /// - the device is older than compute capability 9.0,
    /// - the PTX is for a target before `sm_70`, whose kernels may rely on warps in step,
    /// - the PTX has no kernel, or its structure is unclear, or
    /// - it does not compile with the waits.
    ///
    /// Calls `cuLibraryLoadData` and `cuLibraryGetKernel` (CUDA 12.0), once more if the text with
    /// the waits does not compile.
    ///
    /// # Errors
    /// As [`load`](Self::load), for the image as it is.
    #[doc(alias = "cuLibraryLoadData")]
    #[doc(alias = "griddepcontrol")]
    #[doc(alias = "cudaGridDependencySynchronize")]
    pub fn load_waiting(context: &Context, image: Image<'_>) -> Result<WaitingLibrary> {
        let options = LoadOptions::default();
        let refused = match waiting_text(context, image) {
            Ok(text) => {
                let text = Image::Ptx(&text).check()?;
                match Self::load_noting(context, &text, &options, Some(EntryWait::Waiting)) {
                    Ok(library) => return Ok(WaitingLibrary { library, outcome: EntryWait::Waiting }),
                    Err(error @ Error::Jit { .. }) => format!("it does not compile with the waits: {error}"),
                    Err(error) => return Err(error),
                }
            }
            Err(why) => why,
        };
        let outcome = EntryWait::AsItIs { why: refused.into() };
        let library = Self::load_noting(context, &image.check()?, &options, Some(outcome.clone()))?;
        Ok(WaitingLibrary { library, outcome })
    }
}

/// The text of an image with the waits, or why the image is loaded as it is.
fn waiting_text(context: &Context, image: Image<'_>) -> core::result::Result<String, String> {
    let Image::Ptx(text) = image else {
        return Err("it is a cubin or a fatbin, and waits are put into PTX alone".to_owned());
    };
    let capability = context.limits().compute_capability;
    if capability < CAPABILITY {
        let (major, minor) = capability;
        return Err(format!("the device is sm_{major}{minor}, and kernels can wait from sm_90 on"));
    }
    with_waits(text.trim_end_matches('\0'))
}
