//! A memory cgroup for one program and all processes that it starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Prefix of the names of our cgroups, followed by the process id of the owner and a number.
const PREFIX: &str = "plumbline-";

const REMOVAL_DEADLINE: Duration = Duration::from_secs(2);

/// The version of the cgroup interface, on which the names of its files depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    V1,
    V2,
}

/// A directory of the cgroup file system in which this process may create memory cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupParent {
    directory: PathBuf,
    version: CgroupVersion,
}

impl CgroupParent {
    /// Finds such a directory and removes cgroups of ended processes from it. The error is the
    /// reason why there is none.
    pub fn find() -> Result<Self, String> {
        let memberships = fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let mut reason = "no memory controller is mounted".to_owned();
        for parent in candidates(&memberships, &mounts) {
            parent.remove_orphans();
            if parent.version == CgroupVersion::V2 {
                // A unit that systemd delegates has the controller, but does not enable it for its
                // children. If this fails, creating a cgroup fails.
                let _ = fs::write(parent.directory.join("cgroup.subtree_control"), "+memory");
            }
            match parent.create(u64::MAX >> 1) {
                Ok(_) => return Ok(parent),
                Err(error) => reason = format!("{}: {error}", parent.directory.display()),
            }
        }
        Err(reason)
    }

    /// Creates a cgroup whose processes together may use this much memory.
    pub fn create(&self, limit_bytes: u64) -> io::Result<Cgroup> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let cgroup = Cgroup {
            directory: self.directory.join(name),
            version: self.version,
        };
        fs::create_dir(&cgroup.directory)?;
        let limit = limit_bytes.to_string();
        match self.version {
            CgroupVersion::V1 => cgroup.write("memory.limit_in_bytes", &limit)?,
            CgroupVersion::V2 => {
                cgroup.write("memory.max", &limit)?;
                // A program with several processes is killed as a whole; otherwise the others hang.
                cgroup.write("memory.oom.group", "1")?;
            }
        }
        // Swapping would only delay the end. A kernel without swap accounting has no such file.
        let (file, bytes) = match self.version {
            CgroupVersion::V1 => ("memory.memsw.limit_in_bytes", limit.as_str()),
            CgroupVersion::V2 => ("memory.swap.max", "0"),
        };
        let _ = cgroup.write(file, bytes);
        Ok(cgroup)
    }

    fn remove_orphans(&self) {
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let owner = name.to_str().and_then(owner_of);
            if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                // This fails while a process is in it.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Returns the process id in the name of one of our cgroups.
fn owner_of(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u64>().ok()?;
    pid.parse().ok()
}

/// A cgroup with a memory limit, which is removed when this is dropped. Its processes must have
/// ended before.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
    version: CgroupVersion,
}

impl Cgroup {
    /// Opens the file to which a process writes to join.
    pub(crate) fn members(&self) -> io::Result<fs::File> {
        fs::File::options()
            .write(true)
            .open(self.directory.join("cgroup.procs"))
    }

    /// Returns whether the kernel killed a process of this cgroup because of the limit.
    pub fn was_exceeded(&self) -> bool {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let counts = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        counts
            .lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim() != "0")
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.directory.join(file), text)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A killed process may need a moment to leave. A cgroup that remains after the deadline is
        // removed with the next orphans.
        let deadline = Instant::now() + REMOVAL_DEADLINE;
        while let Err(error) = fs::remove_dir(&self.directory) {
            if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the directories in which a cgroup might be created, from the contents of
/// `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn candidates(memberships: &str, mounts: &str) -> Vec<CgroupParent> {
    let mut parents = Vec::new();
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        if controllers.split(',').any(|name| name == "memory") {
            let own = directory(mounts, "cgroup", "memory", path);
            parents.extend(own.map(|directory| CgroupParent {
                directory,
                version: CgroupVersion::V1,
            }));
        } else if controllers.is_empty() {
            let own = directory(mounts, "cgroup2", "", path);
            // In version 2 a cgroup with processes has no children with controllers, except the
            // root, so a sibling is created.
            let parent = own.map(|own| match own.parent() {
                Some(parent) if path != "/" => parent.to_owned(),
                _ => own,
            });
            parents.extend(parent.map(|directory| CgroupParent {
                directory,
                version: CgroupVersion::V2,
            }));
        }
    }
    parents
}

/// Returns the directory of a cgroup of this hierarchy.
fn directory(mounts: &str, kind: &str, option: &str, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let mut mount_fields = mount.split(' ').skip(3);
        let (root, point) = (mount_fields.next()?, mount_fields.next()?);
        let mut system_fields = rest.split(' ');
        let is_kind = system_fields.next()? == kind;
        let options = system_fields.nth(1)?;
        let has_option = option.is_empty() || options.split(',').any(|name| name == option);
        if !is_kind || !has_option {
            return None;
        }
        // In a container only a part of the hierarchy may be mounted.
        let relative = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(relative))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
30 24 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
";
    const V2_MOUNTS: &str = "\
26 24 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
";

    fn parent(directory: &str, version: CgroupVersion) -> Vec<CgroupParent> {
        vec![CgroupParent {
            directory: directory.into(),
            version,
        }]
    }

    #[test]
    fn in_version_1_a_cgroup_is_created_below_the_own_one() {
        let parents = candidates("5:cpu:/\n4:memory:/a/b\n", V1_MOUNTS);
        assert_eq!(
            parents,
            parent("/sys/fs/cgroup/memory/a/b", CgroupVersion::V1)
        );
    }

    #[test]
    fn in_version_2_a_cgroup_is_created_next_to_the_own_one() {
        let parents = candidates("0::/system.slice/plumbline.service/main\n", V2_MOUNTS);
        let directory = "/sys/fs/cgroup/system.slice/plumbline.service";
        assert_eq!(parents, parent(directory, CgroupVersion::V2));
        let parents = candidates("0::/\n", V2_MOUNTS);
        assert_eq!(parents, parent("/sys/fs/cgroup/", CgroupVersion::V2));
    }

    #[test]
    fn a_mount_that_shows_another_part_of_the_hierarchy_is_not_used() {
        let mounts = V1_MOUNTS.replace(" / /sys/fs/cgroup/memory", " /other /sys/fs/cgroup/memory");
        assert_eq!(candidates("4:memory:/a/b\n", &mounts), []);
    }

    #[test]
    fn only_names_of_our_cgroups_have_an_owner() {
        assert_eq!(owner_of("plumbline-12-3"), Some(12));
        for name in [
            "plumbline-12",
            "plumbline-a-3",
            "other-12-3",
            "plumbline-12-x",
        ] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
