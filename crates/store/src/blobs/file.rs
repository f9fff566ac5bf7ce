//! Blobs in a directory, one file each.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::{BlobPart, Blobs, check_name};

/// A directory of blobs. Names must be ids; others are refused.
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

    /// Stores a blob in place of an earlier one. A crash leaves the old blob or the new one.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name)?;
        let unfinished = path.with_extension(UNFINISHED);
        replace(&path, &unfinished, write_whole(&unfinished, bytes))
    }

    /// Stores a file as a blob by moving it, or by copying it in parts from another file system.
    pub fn put_file(&self, name: &str, file: &Path) -> io::Result<()> {
        let path = self.path(name)?;
        File::open(file)?.sync_all()?;
        match fs::rename(file, &path) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let unfinished = path.with_extension(UNFINISHED);
                replace(&path, &unfinished, copy_whole(file, &unfinished))
            }
            result => result,
        }
    }

    pub fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)?) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a part of a blob.
    pub fn get_part(&self, name: &str, part: BlobPart) -> io::Result<Option<Vec<u8>>> {
        let mut file = match File::open(self.path(name)?) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let range = match part {
            BlobPart::Range(range) => range,
            BlobPart::Last(bytes) => {
                let end = file.metadata()?.len();
                end.saturating_sub(bytes)..end
            }
        };
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::new();
        let length = range.end.saturating_sub(range.start);
        file.take(length).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Removes a blob, and returns whether there was one.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the blobs that at `now` are older than `age`, and returns their number.
    pub fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let is_old =
                modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|since| since > age));
            // Another process may have removed it first.
            if is_old && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        // The extension of earlier versions is kept so that their blobs are found.
        Ok(self.dir.join(name).with_extension("gz"))
    }
}

/// Runs file operations on blocking threads.
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

    async fn get_part(&self, name: &str, part: BlobPart) -> io::Result<Option<Vec<u8>>> {
        let (blobs, name) = (self.clone(), name.to_owned());
        spawn_blocking(move || Self::get_part(&blobs, &name, part)).await?
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

/// Renames a completely written file to the name of a blob, or removes it if writing failed.
fn replace(path: &Path, unfinished: &Path, written: io::Result<()>) -> io::Result<()> {
    written
        .and_then(|()| fs::rename(unfinished, path))
        .inspect_err(|_| {
            // An incomplete blob would keep a full disk full. If it cannot be removed now, it is
            // removed when it is old.
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
    fn the_newest_blob_is_returned_unchanged() {
        let (_dir, blobs) = blobs();
        blobs.put("aud_1", b"old").unwrap();
        blobs.put("aud_1", b"new").unwrap();
        assert_eq!(blobs.get("aud_1").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(blobs.get("aud_2").unwrap(), None);
    }

    #[test]
    fn an_incomplete_blob_does_not_stay_on_a_full_disk() {
        let (dir, blobs) = blobs();
        blobs.put("aud_1", b"old").unwrap();
        let unfinished = dir.path().join("bundles/aud_1.unfinished");
        std::os::unix::fs::symlink("/dev/full", &unfinished).unwrap();
        let error = blobs.put("aud_1", b"new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(fs::symlink_metadata(&unfinished).is_err());
        assert_eq!(blobs.get("aud_1").unwrap().as_deref(), Some(&b"old"[..]));
    }

    #[test]
    fn a_file_of_another_file_system_is_copied() {
        let (_dir, blobs) = blobs();
        // On Linux, /dev/shm is another file system than that of the temporary directory.
        let other = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = other.path().join("some");
        fs::write(&file, b"evidence").unwrap();
        let target = blobs.path("aud_1").unwrap().with_extension("moved");
        let error = fs::rename(&file, target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
        blobs.put("aud_1", b"old").unwrap();
        blobs.put_file("aud_1", &file).unwrap();
        let blob = blobs.get("aud_1").unwrap();
        assert_eq!(blob.as_deref(), Some(&b"evidence"[..]));
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
    fn names_that_are_not_ids_are_refused() {
        let (_dir, blobs) = blobs();
        for name in ["", "..", "../x", "a/b", "a\0b", "a.b"] {
            assert!(blobs.put(name, b"").is_err(), "{name:?}");
            assert!(blobs.get(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_old_blobs_are_removed() {
        let (_dir, blobs) = blobs();
        blobs.put("aud_1", b"x").unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let now = SystemTime::now();
        assert_eq!(blobs.remove_older(day, now).unwrap(), 0);
        assert_eq!(blobs.remove_older(day, now + 2 * day).unwrap(), 1);
        assert_eq!(blobs.get("aud_1").unwrap(), None);
    }
}
