use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The preloaded library, compiled by the build script.
const LIBRARY: &[u8] = include_bytes!(env!("CLOCK_LIBRARY"));

/// The preloaded library in a file.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// Writes the library to a file in this directory, which every user may read.
    pub fn write(directory: &Path) -> io::Result<Self> {
        let path = directory.join("clock.so");
        fs::write(&path, LIBRARY)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
