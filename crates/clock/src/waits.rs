//! The table in which the threads of a browser publish until when they wait.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::PageTime;
use crate::layout::{WAIT_SLOT_BYTES, WAIT_SLOTS};

/// A thread that waits until a page time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// The thread's id in its own process namespace.
    pub thread: i32,
    pub deadline: PageTime,
}

/// The file of the table. It is read, and not mapped: the browser's user may write it, and could
/// shorten it, which would end a process that maps it.
#[derive(Debug)]
pub(crate) struct WaitTable {
    file: File,
    path: PathBuf,
}

impl WaitTable {
    pub(crate) fn create(path: PathBuf, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len((WAIT_SLOTS * WAIT_SLOT_BYTES) as u64)?;
        if let Some((user, group)) = owner {
            fchown(&file, Some(user), Some(group))?;
        }
        Ok(Self { file, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a thread has ever waited.
    pub(crate) fn is_used(&self) -> io::Result<bool> {
        let mut first = [0; WAIT_SLOT_BYTES];
        self.file.read_exact_at(&mut first, 0)?;
        // The first slot is taken first; while it is free again, its deadline is the largest one.
        Ok(first.iter().any(|byte| *byte != 0))
    }

    /// Returns the threads that wait until a time.
    pub(crate) fn read(&self) -> io::Result<Vec<Waiter>> {
        let mut bytes = vec![0; WAIT_SLOTS * WAIT_SLOT_BYTES];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes
            .chunks_exact(WAIT_SLOT_BYTES)
            .filter_map(waiter)
            .collect())
    }
}

/// Returns the thread of a slot, as `struct wait_slot` of `shim/layout.h` declares it.
fn waiter(slot: &[u8]) -> Option<Waiter> {
    let thread = i32::from_ne_bytes(slot.get(..4)?.try_into().ok()?);
    let deadline = i64::from_ne_bytes(slot.get(8..16)?.try_into().ok()?);
    (thread != 0 && deadline != i64::MAX).then_some(Waiter {
        thread,
        deadline: PageTime::from_nanos(deadline),
    })
}
