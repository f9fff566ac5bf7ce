//! The clock page in a file that the processes of a browser map as well.

use std::fs::{File, Permissions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memmap2::{MmapOptions, MmapRaw};

use crate::layout::ClockPage;

/// A clock page in memory that is mapped from a file, or is only known to this process.
#[derive(Debug)]
pub(crate) struct SharedClockPage {
    memory: MmapRaw,
    path: Option<PathBuf>,
}

impl SharedClockPage {
    /// Creates the file. Other users may only read it.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.set_len(size_of::<ClockPage>() as u64)?;
        let memory = MmapOptions::new()
            .len(size_of::<ClockPage>())
            .map_raw(&file)?;
        Ok(Self {
            memory,
            path: Some(path),
        })
    }

    pub(crate) fn anonymous() -> io::Result<Self> {
        let memory = MmapOptions::new().len(size_of::<ClockPage>()).map_anon()?;
        Ok(Self {
            memory: memory.into(),
            path: None,
        })
    }

    /// Returns the path of the file, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl Deref for SharedClockPage {
    type Target = ClockPage;

    fn deref(&self) -> &ClockPage {
        #[expect(unsafe_code, reason = "the compiler does not know the mapped memory")]
        // SAFETY: the mapping has the size of a `ClockPage`, is aligned to a page and lives as long
        // as `self`. All fields are atomics, for which any contents are valid.
        unsafe {
            &*self.memory.as_ptr().cast::<ClockPage>()
        }
    }
}
