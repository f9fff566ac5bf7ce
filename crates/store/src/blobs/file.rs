//! Blobs in a directory, one file each.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::{Blobs, check_name};

/// A directory of blobs. Names are ids of ours; anything else is refused.
#[derive(Debug, Clone)]
pub struct FileBlobs {
    dir: PathBuf,
}

impl FileBlobs {
    /// Creates the directory, private to its owner.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
        })
    }

    /// Replaces what was there. A crash leaves the old blob or the new one.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name)?;
        let unfinished = path.with_extension(UNFINISHED);
        replace(&path, &unfinished, write_whole(&unfinished, bytes))
    }

    /// Moves the file where it can be moved, and copies it in parts from another file system.
    pub fn put_file(&self, name: &str, file: &Path) -> io::Result<()> {
        let path = self.path(name)?;
        File::open(file)?.sync_all()?;
        match fs::rename(file, &path) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let unfinished = path.with_extension(UNFINISHED);
                replace(&path, &unfinished, copy_whole(file, &unfinished))
            }
            moved => moved,
        }
    }

    pub fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)?) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it was there.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes what was written longer ago than `age` before `now`; returns how many.
    pub fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let written = entry.metadata().and_then(|about| about.modified());
            let old = written
                .is_ok_and(|written| now.duration_since(written).is_ok_and(|since| since > age));
            // Another process may have removed it first.
            if old && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.dir.join(name).with_extension("gz"))
    }
}

/// Away from the threads that answer others.
#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let (blobs, name) = (self.clone(), name.to_owned());
        spawn_blocking(move || Self::put(&blobs, &name, &bytes)).await?
    }

    async fn put_file(&self, name: &str, file: &Path) -> io::Result<()> {
        let (blobs, name, file) = (self.clone(), name.to_owned(), file.to_owned());
        spawn_blocking(move || Self::put_file(&blobs, &name, &file)).await?
    }

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let (blobs, name) = (self.clone(), name.to_owned());
        spawn_blocking(move || Self::get(&blobs, &name)).await?
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        let (blobs, name) = (self.clone(), name.to_owned());
        spawn_blocking(move || Self::remove(&blobs, &name).map(drop)).await?
    }

    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        let blobs = self.clone();
        spawn_blocking(move || Self::remove_older(&blobs, age, now)).await?
    }
}

const UNFINISHED: &str = "unfinished";

/// Puts a file that was written in the place of a blob, or removes it where it could not be.
fn replace(path: &Path, unfinished: &Path, written: io::Result<()>) -> io::Result<()> {
    written
        .and_then(|()| fs::rename(unfinished, path))
        .inspect_err(|_| {
            // Half a blob would keep a full disk full; what cannot be removed goes when it is old.
            let _ = fs::remove_file(unfinished);
        })
}

fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs() -> (tempfile::TempDir, FileBlobs) {
        let dir = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::open(&dir.path().join("bundles")).unwrap();
        (dir, blobs)
    }

    #[test]
    fn a_blob_comes_back_as_it_was_put() {
        let (_dir, blobs) = blobs();
        blobs.put("aud_1", b"old").unwrap();
        blobs.put("aud_1", b"new").unwrap();
        assert_eq!(blobs.get("aud_1").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(blobs.get("aud_2").unwrap(), None);
    }

    #[test]
    fn a_full_disk_is_not_kept_full_by_half_a_blob() {
        let (dir, blobs) = blobs();
        blobs.put("aud_1", b"old").unwrap();
        let unfinished = dir.path().join("bundles/aud_1.unfinished");
        std::os::unix::fs::symlink("/dev/full", &unfinished).unwrap();
        let full = blobs.put("aud_1", b"new").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(fs::symlink_metadata(&unfinished).is_err());
        assert_eq!(blobs.get("aud_1").unwrap().as_deref(), Some(&b"old"[..]));
    }

    #[test]
    fn a_file_of_another_file_system_is_copied() {
        let (_dir, blobs) = blobs();
        // A file system of its own on Linux, whatever the temporary directory is on.
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = elsewhere.path().join("some");
        fs::write(&file, b"evidence").unwrap();
        let target = blobs.path("aud_1").unwrap().with_extension("moved");
        let moved = fs::rename(&file, target).unwrap_err();
        assert_eq!(moved.kind(), io::ErrorKind::CrossesDevices);
        blobs.put("aud_1", b"old").unwrap();
        blobs.put_file("aud_1", &file).unwrap();
        let kept = blobs.get("aud_1").unwrap();
        assert_eq!(kept.as_deref(), Some(&b"evidence"[..]));
    }

    #[test]
    fn a_removed_blob_is_gone() {
        let (_dir, blobs) = blobs();
        blobs.put("aud_1", b"x").unwrap();
        assert!(blobs.remove("aud_1").unwrap());
        assert!(!blobs.remove("aud_1").unwrap());
        assert_eq!(blobs.get("aud_1").unwrap(), None);
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let (_dir, blobs) = blobs();
        for name in ["", "..", "../x", "a/b", "a\0b", "a.b"] {
            assert!(blobs.put(name, b"").is_err(), "{name:?}");
            assert!(blobs.get(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_what_is_old_is_removed() {
        let (_dir, blobs) = blobs();
        blobs.put("aud_1", b"x").unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let now = SystemTime::now();
        assert_eq!(blobs.remove_older(day, now).unwrap(), 0);
        assert_eq!(blobs.remove_older(day, now + 2 * day).unwrap(), 1);
        assert_eq!(blobs.get("aud_1").unwrap(), None);
    }
}
