//! Reads from Linux what the threads of a browser do: how long each ran, how long it was ready and
//! had no core, and whether it is blocked. The threads of this process that serve the browser are
//! watched as well, because page time must not jump while they work.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::proc_files::{ProcessClock, group_of, is_renderer, numbered_entries};
use crate::system_load::SystemLoad;
use crate::thread::Thread;
use crate::{PageTime, ThreadActivity, Waiter, interrupt};

/// The time between two searches for new processes and threads.
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);

/// The longest time without a search, whatever Linux says about new ones.
const MAX_SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// Number of looks at a new process, which shows its group and its kind a moment after its start.
const MAX_LOOKS: u32 = 20;

/// The time between two samples of all threads of a process that runs. Samples in between leave out
/// threads that did not run lately, which are five of six.
const FULL_SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// Number of samples without a change after which a thread is left out of samples in between.
const MAX_UNCHANGED_SAMPLES: u32 = 16;

/// All threads of the processes of one process group.
#[derive(Debug)]
pub struct BrowserThreads {
    group: i32,
    /// Processes by id, and the number of looks at those that may still join the group.
    looks: HashMap<i32, u32>,
    processes: HashMap<i32, Process>,
    /// The threads of this process that serve the browser, by id.
    serving: HashMap<i32, Thread>,
    /// The last look for new ids, and the last search.
    looked_at: Option<Instant>,
    searched_at: Option<Instant>,
    /// The last id that was given to a process or thread at the last search.
    last_id: Option<i32>,
    load: Option<SystemLoad>,
    sampled_at: Instant,
    /// The thread that was found to be busy when states were read last, with its process.
    last_busy: Option<(i32, i32)>,
}

#[derive(Debug)]
struct Process {
    clock: Option<ProcessClock>,
    /// The directory of its threads; `None` if the process has ended.
    tasks: Option<File>,
    is_renderer: bool,
    looks: u32,
    /// The processor time of all threads together at the last sample. If it is unchanged, no thread
    /// has to be read.
    ran: Option<Duration>,
    /// The last sample of all threads.
    fully_sampled_at: Option<Instant>,
    /// Whether threads were left out of the last sample, which may have run.
    may_lack_activity: bool,
    threads: HashMap<i32, Thread>,
}

/// The activity of a browser since the previous sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    pub activity: ThreadActivity,
    /// The main threads of pages that ran or waited for a core.
    pub main_threads: Vec<MainThread>,
}

/// The activity of the main thread of a page since the previous sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MainThread {
    pub process: i32,
    pub ran: Duration,
    pub waited: Duration,
    /// The number of the core that it ran on lately.
    pub core: Option<usize>,
}

impl Sample {
    /// Returns the core of the main thread that ran for the longest time.
    pub fn busiest_core(&self) -> Option<usize> {
        let busiest = self.main_threads.iter().max_by_key(|thread| thread.ran);
        busiest.and_then(|thread| thread.core)
    }
}

impl BrowserThreads {
    pub fn new(group: u32) -> Self {
        Self {
            group: i32::try_from(group).unwrap_or(i32::MAX),
            looks: HashMap::new(),
            processes: HashMap::new(),
            serving: HashMap::new(),
            looked_at: None,
            searched_at: None,
            last_id: None,
            load: SystemLoad::open(),
            sampled_at: Instant::now(),
            last_busy: None,
        }
    }

    /// Watches these threads of this process as those that serve the browser.
    pub fn follow_serving(&mut self, ids: &[i32]) {
        self.serving.retain(|id, _| ids.contains(id));
        for id in ids {
            if !self.serving.contains_key(id)
                && let Some(thread) = Thread::open("self", *id)
            {
                self.serving.insert(*id, thread);
            }
        }
    }

    /// Reads the counters of all threads.
    pub fn sample(&mut self) -> Sample {
        let now = Instant::now();
        let is_past =
            |at: Option<Instant>, interval| at.is_none_or(|at| now.duration_since(at) >= interval);
        let mut sample = Sample::default();
        if is_past(self.looked_at, SEARCH_INTERVAL) {
            self.looked_at = Some(now);
            if self.may_have_new_ones() || is_past(self.searched_at, MAX_SEARCH_INTERVAL) {
                self.search();
                self.searched_at = Some(now);
            }
        }
        sample.activity.elapsed = now.duration_since(self.sampled_at);
        self.sampled_at = now;
        for (id, process) in &mut self.processes {
            process.sample(*id, now, &mut sample);
        }
        for thread in self.serving.values_mut() {
            thread.last = thread.read().unwrap_or_default();
        }
        sample
    }

    /// Returns whether a thread has run since the last sample, which stays the last one.
    pub fn have_run(&self) -> bool {
        let mut processes = self.processes.values();
        let mut serving = self.serving.values();
        processes.any(|process| process.time() != process.ran)
            || serving.any(|thread| thread.read().unwrap_or_default() != thread.last)
    }

    /// Returns whether no thread of the system but the caller runs or is ready to run. This takes
    /// much less time than reading all threads.
    pub fn is_alone(&self) -> bool {
        self.load.as_ref().is_some_and(SystemLoad::is_alone)
    }

    /// Returns whether no known thread runs or is ready to run.
    pub fn are_blocked(&mut self) -> bool {
        if !self.serving.values().all(Thread::is_blocked) {
            return false;
        }
        // A thread that was busy is most likely to be busy still.
        if let Some((process, id)) = self.last_busy
            && let Some(thread) = self
                .processes
                .get(&process)
                .and_then(|it| it.threads.get(&id))
            && !thread.is_blocked()
        {
            return false;
        }
        let busy = self
            .threads()
            .find(|(_, _, thread)| !thread.is_blocked())
            .map(|(process, id, _)| (process, id));
        self.last_busy = busy;
        busy.is_none()
    }

    /// Returns all threads, each with the id of its process and its own.
    fn threads(&self) -> impl Iterator<Item = (i32, i32, &Thread)> {
        self.processes.iter().flat_map(|(process, of)| {
            let threads = of.threads.iter();
            threads.map(|(id, thread)| (*process, *id, thread))
        })
    }

    /// Returns whether a process has threads that have not been found yet. The next sample searches
    /// for them.
    pub fn has_unknown_threads(&mut self) -> bool {
        let has_unknown = self.processes.values().any(Process::has_unknown_threads);
        if has_unknown {
            (self.looked_at, self.searched_at) = (None, None);
        }
        has_unknown
    }

    /// Returns the earliest end of a wait of a thread that exists and whose end has not passed.
    pub fn next_deadline(&self, waiters: &[Waiter], now: PageTime) -> Option<PageTime> {
        let mut waiting: Vec<&Waiter> = waiters.iter().filter(|it| it.deadline > now).collect();
        waiting.sort_unstable_by_key(|waiter| waiter.deadline);
        // The first one nearly always exists, so few threads are compared with.
        let exists = |waiter: &&Waiter| {
            self.threads()
                .any(|(_, _, it)| it.inner_id == waiter.thread)
        };
        waiting
            .into_iter()
            .find(exists)
            .map(|waiter| waiter.deadline)
    }

    /// Interrupts the threads whose wait has ended by a jump of the clock. Threads of other process
    /// namespaces may have the same ids; to them an interruption does no harm.
    pub fn interrupt_due(&self, waiters: &[Waiter], now: PageTime) {
        let due: HashSet<i32> = waiters
            .iter()
            .filter(|waiter| waiter.deadline <= now)
            .map(|waiter| waiter.thread)
            .collect();
        if due.is_empty() {
            return;
        }
        for (process, id, thread) in self.threads() {
            if due.contains(&thread.inner_id) {
                // It fails if the thread has ended.
                let _ = interrupt(process, id);
            }
        }
    }

    /// Interrupts all threads that wait until a time.
    pub fn interrupt_all(&self, waiters: &[Waiter]) {
        self.interrupt_due(waiters, PageTime::from_nanos(i64::MAX));
    }

    /// Returns whether a process or thread was started since the last call, or may show its kind
    /// only now.
    fn may_have_new_ones(&mut self) -> bool {
        let last_id = self.load.as_ref().and_then(SystemLoad::last_id);
        let is_unchanged = last_id.is_some() && last_id == self.last_id;
        self.last_id = last_id;
        let mut looks = self.looks.values();
        !is_unchanged
            || looks.any(|looks| *looks < MAX_LOOKS)
            || self.processes.values().any(|it| it.looks < MAX_LOOKS)
    }

    /// Searches for new processes and threads.
    fn search(&mut self) {
        let ids = numbered_entries(Path::new("/proc"));
        // Ids of ended processes are given to others.
        self.looks.retain(|id, _| ids.contains(id));
        for id in ids {
            let looks = self.looks.entry(id).or_default();
            if *looks >= MAX_LOOKS {
                continue;
            }
            *looks += 1;
            if group_of(id) == Some(self.group) {
                *looks = MAX_LOOKS;
                self.processes.insert(id, Process::new(id));
            }
        }
        self.processes.retain(|id, process| {
            if process.looks < MAX_LOOKS {
                process.looks += 1;
                process.is_renderer = is_renderer(*id);
            }
            process.find_threads(*id)
        });
    }
}

impl Process {
    fn new(id: i32) -> Self {
        Self {
            clock: ProcessClock::of(id),
            tasks: File::open(format!("/proc/{id}/task")).ok(),
            is_renderer: false,
            looks: 0,
            ran: None,
            fully_sampled_at: None,
            may_lack_activity: false,
            threads: HashMap::new(),
        }
    }

    /// Returns the processor time of all threads, or `None` if the process has ended.
    fn time(&self) -> Option<Duration> {
        self.clock.and_then(ProcessClock::now)
    }

    /// Returns the number of threads; 0 if it is not known, or the process has ended.
    fn number_of_threads(&self) -> u64 {
        let metadata = self.tasks.as_ref().and_then(|tasks| tasks.metadata().ok());
        // The directory has a link for each thread, and two of its own.
        metadata.map_or(0, |metadata| metadata.nlink().saturating_sub(2))
    }

    fn has_unknown_threads(&self) -> bool {
        self.number_of_threads() > self.threads.len() as u64
    }

    /// Searches for new threads, unless there are as many as are known. Returns whether the process
    /// has any.
    fn find_threads(&mut self, id: i32) -> bool {
        // Containers may give their own files, which do not count threads.
        let number = self.number_of_threads();
        if number > 0 && number == self.threads.len() as u64 {
            return true;
        }
        let mut is_alive = false;
        for thread in numbered_entries(Path::new(&format!("/proc/{id}/task"))) {
            is_alive = true;
            if !self.threads.contains_key(&thread)
                && let Some(opened) = Thread::open(&id.to_string(), thread)
            {
                self.threads.insert(thread, opened);
            }
        }
        is_alive
    }

    /// Adds the activity of the threads since the last sample. That of a thread that did not run
    /// lately may be added later, by at most [`FULL_SAMPLE_INTERVAL`].
    fn sample(&mut self, id: i32, now: Instant, sample: &mut Sample) {
        let is_full = self
            .fully_sampled_at
            .is_none_or(|at| now.duration_since(at) >= FULL_SAMPLE_INTERVAL);
        let ran = self.time();
        if ran.is_some() && ran == self.ran && !(is_full && self.may_lack_activity) {
            return;
        }
        self.may_lack_activity = !is_full;
        if is_full {
            self.fully_sampled_at = Some(now);
        }
        self.ran = ran;
        let is_renderer = self.is_renderer;
        self.threads.retain(|thread_id, thread| {
            let is_main = is_renderer && *thread_id == id;
            if !is_full && !is_main && thread.unchanged_samples >= MAX_UNCHANGED_SAMPLES {
                return true;
            }
            let Some(counters) = thread.read() else {
                return false;
            };
            if counters == thread.last {
                thread.unchanged_samples = thread.unchanged_samples.saturating_add(1);
                return true;
            }
            thread.unchanged_samples = 0;
            let ran = counters.ran.saturating_sub(thread.last.ran);
            let waited = counters.waited.saturating_sub(thread.last.waited);
            thread.last = counters;
            let activity = &mut sample.activity;
            if is_main {
                activity.main_ran = activity.main_ran.max(ran);
                activity.main_waited = activity.main_waited.max(waited);
                if is_full || thread.core.is_none() {
                    thread.core = thread.read_core();
                }
                sample.main_threads.push(MainThread {
                    process: id,
                    ran,
                    waited,
                    core: thread.core,
                });
            } else {
                activity.other_waited = activity.other_waited.max(waited);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_this_process_are_found_and_have_run() {
        let group = rustix::process::getpgrp().as_raw_pid();
        let mut threads = BrowserThreads::new(group.try_into().unwrap());
        threads.sample();
        let own = i32::try_from(std::process::id()).unwrap();
        let thread = threads.processes[&own].threads.get(&own).unwrap();
        assert!(thread.last.ran > Duration::ZERO);
        assert!(threads.have_run());
        // This thread runs.
        assert!(!threads.are_blocked());
    }

    #[test]
    fn threads_that_were_started_since_the_last_search_are_noticed() {
        let group = rustix::process::getpgrp().as_raw_pid();
        let mut threads = BrowserThreads::new(group.try_into().unwrap());
        threads.sample();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = std::sync::Mutex::new(ended);
        std::thread::scope(|scope| {
            // More than other tests may end meanwhile.
            for _ in 0..50 {
                scope.spawn(|| ended.lock().unwrap().recv());
            }
            assert!(threads.has_unknown_threads());
            drop(end);
        });
    }

    #[test]
    fn a_serving_thread_is_noticed_while_it_works_and_when_it_has_worked() {
        let (work, working) = std::sync::mpsc::channel::<()>();
        let (send_id, id) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                send_id.send(rustix::thread::gettid().as_raw_pid()).unwrap();
                while working.recv().is_ok() {}
            });
            // No browser has this group.
            let mut threads = BrowserThreads::new(u32::MAX);
            let id = id.recv().unwrap();
            threads.follow_serving(&[id]);
            while !threads.are_blocked() {
                std::thread::yield_now();
            }
            threads.sample();
            assert!(!threads.have_run());
            work.send(()).unwrap();
            while !threads.have_run() {
                std::thread::yield_now();
            }
            threads.follow_serving(&[rustix::thread::gettid().as_raw_pid()]);
            threads.sample();
            // This thread runs.
            assert!(!threads.are_blocked());
            threads.follow_serving(&[]);
            assert!(threads.are_blocked() && !threads.have_run());
            drop(work);
        });
    }
}
