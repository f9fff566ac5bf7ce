//! The directory of one browser, and the directory of all of them.
//!
//! `RUN_DIR/PID-N/owner` is ours and locked as long as we live; `RUN_DIR/PID-N/home` is the
//! browser's. The lock tells the dead from the living, also after a process id was given away again
//! and between containers that share a directory.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::find::User;
use super::{flags, process};
use crate::BrowserError;

const OWNER: &str = "owner";
const HOME: &str = "home";

/// Processes that were just killed may still be writing.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(5);

pub(super) fn default_run_dir() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("plumbline-{uid}"))
}

/// Makes sure that the directory is there, is ours, and can be passed through by the browser's user.
pub(super) fn prepare_run_dir(run_dir: &Path, for_other_user: bool) -> Result<(), BrowserError> {
    let refuse = |reason: String| BrowserError::RunDir {
        path: run_dir.to_owned(),
        reason,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(run_dir)
        .map_err(|error| refuse(error.to_string()))?;
    let metadata = fs::symlink_metadata(run_dir).map_err(|error| refuse(error.to_string()))?;
    if !metadata.is_dir() {
        return Err(refuse("it is not a directory".to_owned()));
    }
    // In a place that everybody may write to, somebody else could have been there first.
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("it belongs to another user".to_owned()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refuse("other users may write to it".to_owned()));
    }
    if for_other_user {
        let absolute = fs::canonicalize(run_dir).map_err(|error| refuse(error.to_string()))?;
        let closed = absolute
            .ancestors()
            .find(|part| fs::metadata(part).is_ok_and(|m| m.mode() & 0o001 == 0));
        if let Some(closed) = closed {
            return Err(refuse(format!(
                "the browser runs as an unprivileged user, who may not pass through `{}`",
                closed.display()
            )));
        }
    }
    Ok(())
}

/// A fresh directory for one browser. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Profile {
    directory: PathBuf,
    /// Held for its lock.
    _owner: File,
}

impl Profile {
    pub(super) fn create(run_dir: &Path, user: Option<User>) -> Result<Self, BrowserError> {
        Self::try_create(run_dir, user).map_err(|error| BrowserError::RunDir {
            path: run_dir.to_owned(),
            reason: error.to_string(),
        })
    }

    fn try_create(run_dir: &Path, user: Option<User>) -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Keeps a sweep from meeting a directory whose owner file is not locked yet.
        let all = File::open(run_dir)?;
        all.lock_shared()?;
        let directory = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let directory = run_dir.join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o711).create(&directory) {
                Ok(()) => break directory,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        let mut owner = File::create(directory.join(OWNER))?;
        owner.lock()?;
        writeln!(owner, "{}", std::process::id())?;
        let profile = Self {
            directory,
            _owner: owner,
        };
        let home = profile.home();
        DirBuilder::new().mode(0o700).create(&home)?;
        fs::set_permissions(&home, Permissions::from_mode(0o700))?;
        let local_state = home.join("Local State");
        fs::write(&local_state, flags::LOCAL_STATE)?;
        if let Some(user) = user {
            chown(&local_state, Some(user.uid), Some(user.gid))?;
            chown(&home, Some(user.uid), Some(user.gid))?;
        }
        Ok(profile)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.directory.join(HOME)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

fn remove(directory: &Path) {
    let given_up = Instant::now() + REMOVAL_DEADLINE;
    while let Err(error) = fs::remove_dir_all(directory) {
        if error.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        if Instant::now() > given_up {
            tracing::warn!(directory = %directory.display(), %error, "a profile was not removed");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends browsers whose owner died and removes what they left. Returns how many there were.
pub fn sweep(run_dir: &Path) -> Result<usize, BrowserError> {
    match try_sweep(run_dir) {
        Ok(swept) => Ok(swept),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(BrowserError::RunDir {
            path: run_dir.to_owned(),
            reason: error.to_string(),
        }),
    }
}

fn try_sweep(run_dir: &Path) -> std::io::Result<usize> {
    let all = File::open(run_dir)?;
    all.lock()?;
    let mut swept = 0;
    for entry in fs::read_dir(run_dir)? {
        let directory = entry?.path();
        if is_profile(&directory) && is_orphaned(&directory) {
            process::kill_browsers_of(&directory.join(HOME));
            remove(&directory);
            swept += 1;
        }
    }
    Ok(swept)
}

/// Whether we made it: a person may have pointed us at a directory with other things in it.
fn is_profile(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    let numbers = name.and_then(|name| name.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers.is_some_and(|(pid, n)| is_number(pid) && is_number(n))
        && fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir())
}

fn is_orphaned(directory: &Path) -> bool {
    match File::open(directory.join(OWNER)) {
        Ok(owner) => owner.try_lock().is_ok(),
        // Died between making the directory and the file.
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_dir() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_profile_disappears_when_it_is_dropped() {
        let run_dir = run_dir();
        let profile = Profile::create(run_dir.path(), None).unwrap();
        fs::write(profile.home().join("Cookies"), "x").unwrap();
        drop(profile);
        assert_eq!(fs::read_dir(run_dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_removes_the_dead_and_spares_the_living_and_the_foreign() {
        let run_dir = run_dir();
        let living = Profile::create(run_dir.path(), None).unwrap();
        let dead = run_dir.path().join("4000000-1");
        fs::create_dir_all(dead.join(HOME)).unwrap();
        fs::write(dead.join(OWNER), "4000000\n").unwrap();
        let half_made = run_dir.path().join("4000000-2");
        fs::create_dir_all(&half_made).unwrap();
        let foreign = run_dir.path().join("somebody-else");
        fs::create_dir_all(&foreign).unwrap();

        assert_eq!(sweep(run_dir.path()).unwrap(), 2);
        assert!(living.home().exists() && foreign.exists());
        assert!(!dead.exists() && !half_made.exists());
    }

    #[test]
    fn a_sweep_of_nothing_is_fine() {
        assert_eq!(sweep(Path::new("/nowhere/at/all")).unwrap(), 0);
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let run_dir = run_dir();
        fs::set_permissions(run_dir.path(), Permissions::from_mode(0o777)).unwrap();
        let error = prepare_run_dir(run_dir.path(), false).unwrap_err();
        assert!(error.to_string().contains("other users may write"));
    }

    #[test]
    fn a_directory_that_the_browser_cannot_reach_is_refused_by_name() {
        let run_dir = run_dir();
        fs::set_permissions(run_dir.path(), Permissions::from_mode(0o700)).unwrap();
        let inner = run_dir.path().join("inner");
        let error = prepare_run_dir(&inner, true).unwrap_err();
        assert!(error.to_string().contains("pass through"));
        assert!(prepare_run_dir(&inner, false).is_ok());
    }
}
