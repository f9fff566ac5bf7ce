//! Finds the threads in which a page's own code runs, as they come to life.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::launch::{group_of, is_renderer, process_ids};

/// A new process shows its kind, and a new thread its name, a moment after it is there.
const LOOKS_AT_THE_NEW: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Threads of renderers that run scripts beside the main one, as Chromium names them (cut to 15
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

/// What is told of a thread of the page's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It runs the page's code.
    Page(PageThread),
    /// It serves the page (compositor, pools, input/output): never slowed down. It may have been
    /// born on the main thread's core and must be let go.
    Servant(PageThread),
}

/// Looks until it is told to stop, and tells of each thread once (a servant that turns out to be a
/// worker: again).
pub(super) fn search(browser_group: u32, stopped: &Receiver<()>, tell: &Sender<Found>) {
    let mut processes = Young::default();
    let mut renderers = HashSet::new();
    let mut threads = Young::default();
    let mut told = HashMap::new();
    loop {
        for process in processes.of(process_ids()) {
            if group_of(process) != Some(browser_group) {
                processes.dismiss(process);
            } else if is_renderer(process) {
                renderers.insert(process);
            }
        }
        renderers.retain(|process| {
            let Some(ids) = threads_of(*process) else {
                return false;
            };
            for thread_id in threads.of(ids.into_iter()) {
                let found = kind_of(PageThread {
                    process_id: *process,
                    thread_id,
                });
                if told.insert(thread_id, found) != Some(found) && tell.send(found).is_err() {
                    return true;
                }
            }
            true
        });
        match stopped.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

fn kind_of(thread: PageThread) -> Found {
    if thread.is_main() {
        return Found::Page(thread);
    }
    let path = format!("/proc/{}/task/{}/comm", thread.process_id, thread.thread_id);
    let name = fs::read_to_string(path).unwrap_or_default();
    match WORKERS.iter().any(|worker| name.starts_with(worker)) {
        true => Found::Page(thread),
        false => Found::Servant(thread),
    }
}

fn threads_of(process_id: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{process_id}/task")).ok()?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(ids.collect())
}

/// Which ids are still worth a look: walking through `/proc` is cheap, reading all of it is not.
#[derive(Default)]
struct Young {
    looks: HashMap<u32, u32>,
}

impl Young {
    fn of(&mut self, ids: impl Iterator<Item = u32>) -> Vec<u32> {
        ids.filter(|id| {
            let looks = self.looks.entry(*id).or_default();
            *looks += 1;
            *looks <= LOOKS_AT_THE_NEW
        })
        .collect()
    }

    fn dismiss(&mut self, id: u32) {
        self.looks.insert(id, LOOKS_AT_THE_NEW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_new_are_looked_at() {
        let mut young = Young::default();
        for _ in 0..LOOKS_AT_THE_NEW {
            assert_eq!(young.of([7].into_iter()), [7]);
        }
        assert_eq!(young.of([7, 8].into_iter()), [8]);
        young.dismiss(8);
        assert!(young.of([7, 8].into_iter()).is_empty());
    }
}
