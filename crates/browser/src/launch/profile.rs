//! The profile directories of browsers, and the run directory that contains them.
//!
//! `RUN_DIR/PID-N/owner` belongs to this process and is locked while it runs;
//! `RUN_DIR/PID-N/home` belongs to the browser. The lock shows whether the owner still runs, also
//! after its process id was reused and between containers that share a directory.

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

/// Maximum time for removing a directory, because processes that were just killed may still write
/// to it.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(5);

pub(super) fn default_run_dir() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("plumbline-{uid}"))
}

/// Creates the run directory if necessary, and checks that it belongs to this user and that the
/// browser's user can access its subdirectories.
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
    // In a directory that is writable for everybody, another user could have created it first.
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
                "the browser runs as an unprivileged user without access to `{}`",
                closed.display()
            )));
        }
    }
    Ok(())
}

/// A new directory for one browser, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Profile {
    directory: PathBuf,
    /// Open for its lock.
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
        // Prevents a sweep while there is a directory whose owner file is not locked yet.
        let run_dir_lock = File::open(run_dir)?;
        run_dir_lock.lock_shared()?;
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

    /// Returns the directory of this profile, which belongs to this process.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
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
    let deadline = Instant::now() + REMOVAL_DEADLINE;
    while let Err(error) = fs::remove_dir_all(directory) {
        if error.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        if Instant::now() > deadline {
            tracing::warn!(directory = %directory.display(), %error, "failed to remove a profile");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills browsers whose owner has ended, removes their profiles, and returns their number.
pub fn sweep(run_dir: &Path) -> Result<usize, BrowserError> {
    match try_sweep(run_dir) {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(BrowserError::RunDir {
            path: run_dir.to_owned(),
            reason: error.to_string(),
        }),
    }
}

fn try_sweep(run_dir: &Path) -> std::io::Result<usize> {
    let run_dir_lock = File::open(run_dir)?;
    run_dir_lock.lock()?;
    let mut count = 0;
    for entry in fs::read_dir(run_dir)? {
        let directory = entry?.path();
        if is_profile(&directory) && is_orphaned(&directory) {
            process::kill_browsers_of(&directory.join(HOME));
            remove(&directory);
            count += 1;
        }
    }
    Ok(count)
}

/// Returns whether a directory is a profile, by its name: an operator may have configured a run
/// directory that contains other files.
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
        // The owner ended between creating the directory and the file.
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
    fn a_profile_is_removed_when_it_is_dropped() {
        let run_dir = run_dir();
        let profile = Profile::create(run_dir.path(), None).unwrap();
        fs::write(profile.home().join("Cookies"), "x").unwrap();
        drop(profile);
        assert_eq!(fs::read_dir(run_dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_removes_only_profiles_of_ended_processes() {
        let run_dir = run_dir();
        let active = Profile::create(run_dir.path(), None).unwrap();
        let orphaned = run_dir.path().join("4000000-1");
        fs::create_dir_all(orphaned.join(HOME)).unwrap();
        fs::write(orphaned.join(OWNER), "4000000\n").unwrap();
        let incomplete = run_dir.path().join("4000000-2");
        fs::create_dir_all(&incomplete).unwrap();
        let foreign = run_dir.path().join("somebody-else");
        fs::create_dir_all(&foreign).unwrap();

        assert_eq!(sweep(run_dir.path()).unwrap(), 2);
        assert!(active.home().exists() && foreign.exists());
        assert!(!orphaned.exists() && !incomplete.exists());
    }

    #[test]
    fn a_sweep_of_a_missing_directory_removes_nothing() {
        assert_eq!(sweep(Path::new("/nowhere/at/all")).unwrap(), 0);
    }

    #[test]
    fn a_directory_that_other_users_may_write_to_is_an_error() {
        let run_dir = run_dir();
        fs::set_permissions(run_dir.path(), Permissions::from_mode(0o777)).unwrap();
        let error = prepare_run_dir(run_dir.path(), false).unwrap_err();
        assert!(error.to_string().contains("other users may write"));
    }

    #[test]
    fn a_directory_that_the_browser_cannot_access_is_an_error() {
        let run_dir = run_dir();
        fs::set_permissions(run_dir.path(), Permissions::from_mode(0o700)).unwrap();
        let inner = run_dir.path().join("inner");
        let error = prepare_run_dir(&inner, true).unwrap_err();
        assert!(error.to_string().contains("without access"));
        assert!(prepare_run_dir(&inner, false).is_ok());
    }
}
