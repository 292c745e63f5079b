//! One run of the matrix at a time in a target folder: the build of a second one would replace the
//! binaries that the first one is running.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The file's name, in the target folder.
const NAME: &str = ".matrix-lock";

/// The right to run the matrix in a folder. The system takes it back when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock of a folder, which is made if there is none.
    ///
    /// # Errors
    /// Another run has the lock, or the folder cannot be written.
    pub fn take(folder: &Path) -> Result<Self> {
        let words = || format!("no lock can be taken in {}", folder.display());
        std::fs::create_dir_all(folder).with_context(words)?;
        let file = File::options().append(true).create(true).open(folder.join(NAME)).with_context(words)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => bail!(
                "another run of the matrix uses the folder {}; wait for its end, or name another folder by \
                 CARGO_TARGET_DIR",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => Err(error).with_context(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_in_one_folder_is_refused_until_the_first_ends() {
        let folder = std::env::temp_dir().join(format!("cuda-matrix-lock-{}", std::process::id()));
        let first = FolderLock::take(&folder).unwrap();
        let refused = FolderLock::take(&folder).unwrap_err().to_string();
        assert!(
            refused.contains(&folder.display().to_string()) && refused.contains("another run"),
            "{refused}"
        );
        drop(first);
        assert!(FolderLock::take(&folder).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
