//! Finds the threads that run a page's code, as they are created.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::launch::{group_of, is_renderer, process_ids};

/// Number of checks of a new process or thread, which shows its kind or name a moment after its
/// creation.
const MAX_CHECKS: u32 = 20;
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);

/// Renderer threads that run scripts in addition to the main one, as Chromium names them (cut to 15
/// letters by the kernel).
const WORKERS: [&str; 3] = ["DedicatedWorker", "SharedWorker", "ServiceWorker"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageThread {
    pub(super) process_id: u32,
    pub(super) thread_id: u32,
}

impl PageThread {
    pub(super) fn is_main(self) -> bool {
        self.process_id == self.thread_id
    }
}

/// A thread of the page's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RendererThread {
    /// A thread that runs the page's code.
    Page(PageThread),
    /// A thread that serves the page (compositor, pools, input/output) and is never throttled. It
    /// may have inherited the main thread's core and must be released from it.
    Service(PageThread),
}

/// Searches until stopped and reports each thread once (a service thread that turns out to be a
/// worker twice).
pub(super) fn search(browser_group: u32, stopped: &Receiver<()>, sender: &Sender<RendererThread>) {
    let mut processes = RecentIds::default();
    let mut renderers = HashSet::new();
    let mut threads = RecentIds::default();
    let mut reported = HashMap::new();
    loop {
        for process in processes.needing_check(process_ids()) {
            if group_of(process) != Some(browser_group) {
                processes.ignore(process);
            } else if is_renderer(process) {
                renderers.insert(process);
            }
        }
        renderers.retain(|process| {
            let Some(ids) = threads_of(*process) else {
                return false;
            };
            for thread_id in threads.needing_check(ids.into_iter()) {
                let thread = kind_of(PageThread {
                    process_id: *process,
                    thread_id,
                });
                if reported.insert(thread_id, thread) != Some(thread)
                    && sender.send(thread).is_err()
                {
                    return true;
                }
            }
            true
        });
        match stopped.recv_timeout(SEARCH_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

fn kind_of(thread: PageThread) -> RendererThread {
    if thread.is_main() {
        return RendererThread::Page(thread);
    }
    let path = format!("/proc/{}/task/{}/comm", thread.process_id, thread.thread_id);
    let name = fs::read_to_string(path).unwrap_or_default();
    if WORKERS.iter().any(|worker| name.starts_with(worker)) {
        RendererThread::Page(thread)
    } else {
        RendererThread::Service(thread)
    }
}

fn threads_of(process_id: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{process_id}/task")).ok()?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(ids.collect())
}

/// Ids that still need to be checked: listing `/proc` is cheap, reading all of it is not.
#[derive(Default)]
struct RecentIds {
    checks: HashMap<u32, u32>,
}

impl RecentIds {
    fn needing_check(&mut self, ids: impl Iterator<Item = u32>) -> Vec<u32> {
        ids.filter(|id| {
            let checks = self.checks.entry(*id).or_default();
            *checks += 1;
            *checks <= MAX_CHECKS
        })
        .collect()
    }

    fn ignore(&mut self, id: u32) {
        self.checks.insert(id, MAX_CHECKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recent_ids_are_checked() {
        let mut recent = RecentIds::default();
        for _ in 0..MAX_CHECKS {
            assert_eq!(recent.needing_check([7].into_iter()), [7]);
        }
        assert_eq!(recent.needing_check([7, 8].into_iter()), [8]);
        recent.ignore(8);
        assert!(recent.needing_check([7, 8].into_iter()).is_empty());
    }
}
