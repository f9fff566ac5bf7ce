//! A browser's process group: ended as a whole, reaped, and its profile removed, whatever happened.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use tokio::sync::watch;

use super::memory::{MemoryLimit, MemoryUse, SAMPLE_INTERVAL};
use super::profile::Profile;

/// A killed process ends within milliseconds; one that hangs in the kernel is not waited for.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Makes the children of a killed browser ours to reap. Else they would fall to the first process of
/// the container, which may be a program that reaps nobody.
pub(super) fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "orphans are left to the first process");
    }
}

/// A running browser. Dropping it ends the browser and waits until nothing is left of it.
pub(crate) struct Process {
    group: Pid,
    /// Whether the leader was reaped, after which its number may belong to somebody else.
    reaped: Arc<Mutex<bool>>,
    gone: watch::Receiver<bool>,
    /// The memory limit in bytes, once it was exceeded.
    exceeded: Arc<OnceLock<u64>>,
    /// Behind a lock only so that a browser may be shared between threads.
    gone_for_drop: Mutex<Receiver<()>>,
}

impl Process {
    /// Takes over a child that leads its own process group.
    pub(super) fn watch(child: Child, profile: Profile, memory: MemoryLimit) -> Self {
        let group = Pid::from_child(&child);
        let reaped = Arc::new(Mutex::new(false));
        let (tell_gone, gone) = watch::channel(false);
        let (tell_drop, gone_for_drop) = mpsc::channel();
        let mark = Arc::clone(&reaped);
        let exceeded = Arc::new(OnceLock::new());
        let report_exceeded = Arc::clone(&exceeded);
        // A thread, so that it needs no runtime to be alive when the browser ends.
        std::thread::spawn(move || {
            let used_too_much = wait_for_end(group, memory.bytes());
            if used_too_much || memory.was_enforced() {
                let _ = report_exceeded.set(memory.bytes());
            }
            reap(child, group, &mark);
            drop(memory);
            drop(profile);
            let _ = tell_gone.send(true);
            let _ = tell_drop.send(());
        });
        Self {
            group,
            reaped,
            gone,
            exceeded,
            gone_for_drop: Mutex::new(gone_for_drop),
        }
    }

    /// The id of the browser's main process and of its process group.
    pub(crate) fn group(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// The memory limit in bytes, if the browser was ended because it used more. Known when the
    /// browser has ended.
    pub(crate) fn exceeded_memory(&self) -> Arc<OnceLock<u64>> {
        Arc::clone(&self.exceeded)
    }

    pub(crate) fn kill(&self) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            let _ = rustix::process::kill_process_group(self.group, Signal::KILL);
        }
    }

    /// Ends the browser and waits until it, its children and its files are gone.
    pub(crate) async fn end(mut self) {
        self.kill();
        let _ = tokio::time::timeout(END_DEADLINE, self.gone.wait_for(|gone| *gone)).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !*self.gone.borrow() {
            self.kill();
            let gone = self.gone_for_drop.get_mut();
            let gone = gone.unwrap_or_else(PoisonError::into_inner);
            let _ = gone.recv_timeout(END_DEADLINE);
        }
    }
}

/// Waits until the leader of the group has ended, or the group uses more memory than it may, in
/// which case it returns true.
fn wait_for_end(group: Pid, limit_bytes: u64) -> bool {
    let leader = match rustix::process::pidfd_open(group, PidfdFlags::empty()) {
        Ok(leader) => leader,
        Err(error) => {
            tracing::warn!(%error, "the memory of a browser is not watched");
            // Left as a zombie until its children are killed too, so that the number stays taken.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let wait = || rustix::process::waitid(WaitId::Pid(group), options);
            while let Err(rustix::io::Errno::INTR) = wait() {}
            return false;
        }
    };
    let interval = Timespec::try_from(SAMPLE_INTERVAL).ok();
    let mut memory = MemoryUse::of_group(group.as_raw_nonzero().get().unsigned_abs());
    loop {
        let mut ended = [PollFd::new(&leader, PollFlags::IN)];
        match rustix::event::poll(&mut ended, interval.as_ref()) {
            Ok(0) if memory.sample() > limit_bytes => return true,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Ends the whole group and waits until nothing is left of it.
fn reap(mut child: Child, group: Pid, reaped: &Mutex<bool>) {
    let mut reaped = reaped.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    *reaped = true;
    let given_up = Instant::now() + END_DEADLINE;
    while rustix::process::test_kill_process_group(group).is_ok() && Instant::now() < given_up {
        let _ = rustix::process::waitpgid(group, WaitOptions::NOHANG);
        std::thread::sleep(Duration::from_millis(1));
    }
    reap_crash_handlers();
}

/// Chromium's crash handler leaves its process group and ends a moment after its browser; as it was
/// orphaned, it is ours to reap. One that is not done yet is reaped with the next browser. Only by
/// its own id and name: no other child's end may be taken from who waits for it.
fn reap_crash_handlers() {
    let ours = format!(" Z {} ", std::process::id());
    for pid in process_ids() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_handler = stat.contains("(chrome_crashpad");
        let is_our_zombie = stat
            .rsplit_once(')')
            .is_some_and(|(_, fields)| fields.starts_with(&ours));
        if let (true, true, Some(pid)) = (is_handler, is_our_zombie, pid_of(pid)) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills every process group that is a browser with this home, as its command line says.
pub(super) fn kill_browsers_of(home: &Path) {
    let mut argument = b"--user-data-dir=".to_vec();
    argument.extend_from_slice(home.as_os_str().as_bytes());
    for pid in process_ids() {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let names_home = command_line
            .split(|byte| *byte == 0)
            .any(|word| word == argument);
        if let (true, Some(leader)) = (names_home, pid_of(pid)) {
            let group = group_of(pid);
            // A browser leads its own group; anything else that names the home is killed alone.
            let _ = if group == Some(pid) {
                rustix::process::kill_process_group(leader, Signal::KILL)
            } else {
                rustix::process::kill_process(leader, Signal::KILL)
            };
        }
    }
}

/// The process group, as `/proc/PID/stat` has it. Not by the system call: its answer for processes
/// of other namespaces is 0, which the library around it takes for impossible.
pub(crate) fn group_of(process_id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so the fields are counted behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(2)?.parse().ok()
}

/// The renderer processes of a browser, to be looked at while it runs (`/proc/PID/task/…`).
pub fn renderers(browser_group: u32) -> Vec<u32> {
    process_ids()
        .filter(|process| group_of(*process) == Some(browser_group) && is_renderer(*process))
        .collect()
}

pub(crate) fn is_renderer(process_id: u32) -> bool {
    fs::read(format!("/proc/{process_id}/cmdline")).is_ok_and(|command_line| {
        // A process that was forked rather than started writes its title as one text.
        command_line
            .split(|byte| *byte == 0 || *byte == b' ')
            .any(|word| word == b"--type=renderer")
    })
}

/// All processes of this machine, as far as this one can see.
pub(crate) fn process_ids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A number from `/proc` as system calls want it.
pub(crate) fn pid_of(process_id: u32) -> Option<Pid> {
    Pid::from_raw(process_id.try_into().ok()?)
}
