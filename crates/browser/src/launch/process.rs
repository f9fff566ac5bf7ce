//! The process group of a browser. Whatever happens, it is killed as a whole and reaped, and its
//! profile is removed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use tokio::sync::watch;

use super::memory::{MemoryLimit, MemoryUsage, SAMPLE_INTERVAL};
use super::profile::Profile;

/// Maximum time to wait for a killed process. It ends within milliseconds, unless it hangs in the
/// kernel.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// The time for which processes that have not ended by [`END_DEADLINE`] are still reaped.
const LATE_DEADLINE: Duration = Duration::from_secs(600);

/// Makes this process the parent of a killed browser's children, so that it can reap them.
/// Otherwise that is the first process of the container, which may not reap.
pub(super) fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "orphans are reaped by the first process");
    }
}

/// A running browser. Dropping it kills the browser and waits until its processes have ended and
/// its files are removed.
pub(crate) struct Process {
    group: Pid,
    /// Whether the leader was reaped, after which its process id may be reused.
    reaped: Arc<Mutex<bool>>,
    ended: watch::Receiver<bool>,
    /// The memory limit in bytes, if it was exceeded.
    exceeded: Arc<OnceLock<u64>>,
    /// The same signal as `ended`, for waiting without a runtime. The lock only permits a browser
    /// to be shared between threads.
    ended_for_drop: Mutex<Receiver<()>>,
}

impl Process {
    /// Takes ownership of a child that leads its own process group, and monitors it.
    pub(super) fn watch(child: Child, profile: Profile, memory: MemoryLimit) -> Self {
        let group = Pid::from_child(&child);
        let reaped = Arc::new(Mutex::new(false));
        let (ended_sender, ended) = watch::channel(false);
        let (drop_sender, ended_for_drop) = mpsc::channel();
        let reaped_flag = Arc::clone(&reaped);
        let exceeded = Arc::new(OnceLock::new());
        let exceeded_flag = Arc::clone(&exceeded);
        // A thread, because the runtime may have ended before the browser.
        std::thread::spawn(move || {
            let exceeded = wait_for_end(group, memory.bytes());
            if exceeded || memory.was_enforced() {
                let _ = exceeded_flag.set(memory.bytes());
            }
            reap(child, group, &reaped_flag);
            drop(memory);
            drop(profile);
            let _ = ended_sender.send(true);
            let _ = drop_sender.send(());
            // Nobody waits any longer, but the process would stay a zombie.
            reap_members(group, Duration::from_millis(100), LATE_DEADLINE);
        });
        Self {
            group,
            reaped,
            ended,
            exceeded,
            ended_for_drop: Mutex::new(ended_for_drop),
        }
    }

    /// Returns the id of the browser's main process, which is also that of its process group.
    pub(crate) fn group(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns a cell that, after the browser has ended, contains its memory limit in bytes if it
    /// was killed for exceeding it.
    pub(crate) fn exceeded_memory(&self) -> Arc<OnceLock<u64>> {
        Arc::clone(&self.exceeded)
    }

    pub(crate) fn kill(&self) {
        let reaped = self.reaped.lock();
        if !*reaped {
            let _ = rustix::process::kill_process_group(self.group, Signal::KILL);
        }
    }

    /// Kills the browser and waits until its processes have ended and its files are removed.
    pub(crate) async fn end(mut self) {
        self.kill();
        let _ = tokio::time::timeout(END_DEADLINE, self.ended.wait_for(|ended| *ended)).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !*self.ended.borrow() {
            self.kill();
            let _ = self.ended_for_drop.get_mut().recv_timeout(END_DEADLINE);
        }
    }
}

/// Waits until the leader of the group has ended or the group exceeds its memory limit, and returns
/// whether it exceeded the limit.
fn wait_for_end(group: Pid, limit_bytes: u64) -> bool {
    let leader = match rustix::process::pidfd_open(group, PidfdFlags::empty()) {
        Ok(leader) => leader,
        Err(error) => {
            tracing::warn!(%error, "memory usage of a browser is not monitored");
            // It stays a zombie until its children are killed too, so that its id is not reused.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let wait = || rustix::process::waitid(WaitId::Pid(group), options);
            while let Err(rustix::io::Errno::INTR) = wait() {}
            return false;
        }
    };
    let interval = Timespec::try_from(SAMPLE_INTERVAL).ok();
    let mut memory = MemoryUsage::of_group(group.as_raw_nonzero().get().unsigned_abs());
    loop {
        let mut fds = [PollFd::new(&leader, PollFlags::IN)];
        match rustix::event::poll(&mut fds, interval.as_ref()) {
            Ok(0) if memory.sample() > limit_bytes => return true,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Kills the whole group and waits until all its processes have ended.
fn reap(mut child: Child, group: Pid, reaped: &Mutex<bool>) {
    let mut reaped = reaped.lock();
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    *reaped = true;
    reap_members(group, Duration::from_millis(1), END_DEADLINE);
    reap_crash_handlers();
}

/// Reaps processes of a killed group until there are none, or until the time is over.
fn reap_members(group: Pid, interval: Duration, time: Duration) {
    let deadline = Instant::now() + time;
    while rustix::process::test_kill_process_group(group).is_ok() && Instant::now() < deadline {
        let _ = rustix::process::waitpgid(group, WaitOptions::NOHANG);
        std::thread::sleep(interval);
    }
}

/// Reaps ended crash handlers. Chromium's crash handler leaves its process group and ends shortly
/// after its browser; being orphaned, it is a child of this process. One that has not ended yet is
/// reaped with the next browser. Handlers are selected by id and name, because other children must
/// be left to the code that waits for them.
fn reap_crash_handlers() {
    let own_zombie = format!(" Z {} ", std::process::id());
    for pid in process_ids() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_handler = stat.contains("(chrome_crashpad");
        let is_own_zombie = stat
            .rsplit_once(')')
            .is_some_and(|(_, fields)| fields.starts_with(&own_zombie));
        if let (true, true, Some(pid)) = (is_handler, is_own_zombie, pid_of(pid)) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills the process groups of all browsers that have this home directory on their command line.
pub(super) fn kill_browsers_of(home: &Path) {
    let mut argument = b"--user-data-dir=".to_vec();
    argument.extend_from_slice(home.as_os_str().as_bytes());
    for pid in process_ids() {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has_home = command_line
            .split(|byte| *byte == 0)
            .any(|word| word == argument);
        if let (true, Some(leader)) = (has_home, pid_of(pid)) {
            let group = group_of(pid);
            // A browser leads its own group; any other process with this argument is killed alone.
            let _ = if group == Some(pid) {
                rustix::process::kill_process_group(leader, Signal::KILL)
            } else {
                rustix::process::kill_process(leader, Signal::KILL)
            };
        }
    }
}

/// Returns the process group from `/proc/PID/stat`. The system call is not used, because it returns
/// 0 for processes of other namespaces, which its wrapper does not expect.
pub(super) fn group_of(process_id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name is in parentheses and may contain anything, so fields are counted after it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the ids of a browser's renderer processes.
pub fn renderers(browser_group: u32) -> Vec<u32> {
    process_ids()
        .filter(|process| group_of(*process) == Some(browser_group) && is_renderer(*process))
        .collect()
}

fn is_renderer(process_id: u32) -> bool {
    fs::read(format!("/proc/{process_id}/cmdline")).is_ok_and(|command_line| {
        // The command line of a process that was forked without `exec` is one string.
        command_line
            .split(|byte| *byte == 0 || *byte == b' ')
            .any(|word| word == b"--type=renderer")
    })
}

/// Returns the ids of all processes that are visible to this one.
pub(super) fn process_ids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Converts a process id from `/proc` to the type for system calls.
fn pid_of(process_id: u32) -> Option<Pid> {
    Pid::from_raw(process_id.try_into().ok()?)
}
