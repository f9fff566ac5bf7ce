//! A preloaded program waits in every way that the library replaces, for an hour that a test lets
//! pass at once. The clocks stand still otherwise, so that every duration is exact.
#![expect(
    clippy::unwrap_used,
    reason = "tests, including their helper functions"
)]

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use plumbline_clock::{Library, PageClock, interrupt};

/// The position of the real anchor in the file of a clock, see `shim/layout.h`.
const REAL_ANCHOR_OFFSET: u64 = 8;
const HOUR: Duration = Duration::from_secs(3600);
/// The time limit of everything that takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// A clock, and the files that a program needs to see it.
struct Fixture {
    clock: PageClock,
    library: Library,
    directory: tempfile::TempDir,
}

impl Fixture {
    /// Creates a clock that stands still.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = PageClock::create(directory.path(), None).unwrap();
        clock.set_rate(0.0);
        Self {
            clock,
            library: Library::write(directory.path()).unwrap(),
            directory,
        }
    }

    fn start(&self, wait: &str, seconds: u64) -> Program {
        let mut child = Command::new(env!("CLOCK_TEST_PROGRAM"))
            .args([wait, &seconds.to_string()])
            .envs(self.clock.environment(&self.library))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "waiting");
        Program { child, lines }
    }

    /// Waits until a thread of the program has published the end of its wait, and returns its id.
    fn waiting_thread(&self) -> i32 {
        let end = self.clock.now() + HOUR;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let waiters = self.clock.waiters().unwrap();
            if let Some(waiter) = waiters.iter().find(|waiter| waiter.deadline == end) {
                return waiter.thread;
            }
            assert!(Instant::now() < deadline, "nobody waits: {waiters:?}");
            std::thread::yield_now();
        }
    }

    /// Lets an hour pass, and interrupts the thread until it has noticed.
    fn pass_an_hour(&self, process: i32, thread: i32) {
        self.clock.jump(HOUR);
        let deadline = Instant::now() + DEADLINE;
        let is_waiting = || {
            let waiters = self.clock.waiters().unwrap();
            waiters.iter().any(|waiter| waiter.thread == thread)
        };
        while is_waiting() {
            // A thread that is not in the kernel yet does not notice a signal.
            let _ = interrupt(process, thread);
            assert!(Instant::now() < deadline, "the thread does not wake up");
            std::thread::yield_now();
        }
    }
}

struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// The durations that the program saw, in nanoseconds, and whether its wait ended in time.
#[derive(Debug, PartialEq)]
struct Waited {
    monotonic_ns: i64,
    wall_ns: i64,
    is_due: bool,
}

impl Program {
    fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    fn finish(mut self) -> Waited {
        let line = self.lines.next().unwrap().unwrap();
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(self.child.wait().unwrap().success());
        Waited {
            monotonic_ns: numbers[0],
            wall_ns: numbers[1],
            is_due: numbers[2] == 1,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_an_hour_passes(wait: &str) {
    let fixture = Fixture::new();
    let program = fixture.start(wait, HOUR.as_secs());
    let thread = fixture.waiting_thread();
    fixture.pass_an_hour(program.id(), thread);
    let hour_ns = HOUR.as_nanos().try_into().unwrap();
    let expected = Waited {
        monotonic_ns: hour_ns,
        wall_ns: hour_ns,
        is_due: true,
    };
    assert_eq!(program.finish(), expected, "{wait}");
}

#[test]
fn a_program_ends_if_its_clock_was_stopped_long_ago() {
    let fixture = Fixture::new();
    // Whoever wrote the clock stopped it an hour ago and was killed.
    let file = fixture.directory.path().join("clock");
    let file = std::fs::File::options().write(true).open(file).unwrap();
    let long_ago = fixture.clock.now().as_nanos() - i64::try_from(HOUR.as_nanos()).unwrap();
    file.write_all_at(&long_ago.to_ne_bytes(), REAL_ANCHOR_OFFSET)
        .unwrap();
    let mut child = Command::new(env!("CLOCK_TEST_PROGRAM"))
        .args(["nanosleep", "3600"])
        .envs(fixture.clock.environment(&fixture.library))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "the program still waits");
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(1));
}

#[test]
fn sleeping_ends_at_the_page_time() {
    for wait in ["nanosleep", "clock_nanosleep", "usleep", "sleep"] {
        assert_an_hour_passes(wait);
    }
}

#[test]
fn waiting_for_files_ends_at_the_page_time() {
    for wait in ["poll", "ppoll", "select", "epoll_wait"] {
        assert_an_hour_passes(wait);
    }
}

#[test]
fn waiting_for_other_threads_ends_at_the_page_time() {
    for wait in [
        "condition_monotonic",
        "condition_realtime",
        "condition_clockwait",
        "futex",
        "futex_absolute",
        "semaphore",
    ] {
        assert_an_hour_passes(wait);
    }
}

#[test]
fn a_process_forked_by_a_raw_system_call_has_the_same_clock() {
    let fixture = Fixture::new();
    let program = fixture.start("child", HOUR.as_secs());
    // The child is a process of its own, whose only thread has its id.
    let child = fixture.waiting_thread();
    assert_ne!(child, program.id());
    fixture.pass_an_hour(child, child);
    let waited = program.finish();
    assert_eq!(waited.monotonic_ns, HOUR.as_nanos() as i64);
    assert!(waited.is_due);
}

#[test]
fn all_clocks_of_a_program_agree() {
    let waited = Fixture::new().start("clocks", 0).finish();
    assert!(waited.is_due);
    assert_eq!((waited.monotonic_ns, waited.wall_ns), (0, 0));
}

#[test]
fn the_raw_clock_of_a_program_is_the_systems() {
    let waited = Fixture::new().start("raw_clock", 0).finish();
    assert!(waited.is_due);
    assert_eq!((waited.monotonic_ns, waited.wall_ns), (0, 0));
}

#[test]
fn signals_of_condition_variables_are_not_lost() {
    assert!(Fixture::new().start("turns", 0).finish().is_due);
}

#[test]
fn a_fast_clock_shortens_waits_and_the_program_sees_their_whole_length() {
    let fixture = Fixture::new();
    // An hour takes 36 ms.
    fixture.clock.set_speed(100_000.0);
    for wait in [
        "nanosleep",
        "poll",
        "select",
        "epoll_wait",
        "condition_monotonic",
        "futex",
        "semaphore",
    ] {
        let waited = fixture.start(wait, HOUR.as_secs()).finish();
        assert!(waited.is_due, "{wait}");
        assert!(
            waited.monotonic_ns >= HOUR.as_nanos() as i64,
            "{wait}: {waited:?}"
        );
    }
}

#[test]
fn a_wait_that_begins_at_a_high_rate_ends_after_the_rate_has_fallen() {
    let fixture = Fixture::new();
    fixture.clock.set_speed(100_000.0);
    fixture.clock.set_rate(0.0);
    let program = fixture.start("nanosleep", HOUR.as_secs());
    fixture.waiting_thread();
    fixture.clock.set_rate(50_000.0);
    let waited = program.finish();
    assert!(waited.is_due && waited.monotonic_ns >= HOUR.as_nanos() as i64);
}

#[test]
fn a_program_without_a_clock_sees_real_time() {
    let fixture = Fixture::new();
    let mut command = Command::new(env!("CLOCK_TEST_PROGRAM"));
    let output = command
        .args(["condition_realtime", "0"])
        .envs(
            fixture
                .clock
                .environment(&fixture.library)
                .into_iter()
                .take(1),
        )
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.trim_end().ends_with(" 1"), "{text}");
}

#[test]
fn a_clock_page_of_another_version_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::write(directory.path()).unwrap();
    let clock = PageClock::create(directory.path(), None).unwrap();
    clock.set_rate(0.0);
    let mut environment = clock.environment(&library);
    let (_, path) = &mut environment[1];
    let mut page = std::fs::read(&*path).unwrap();
    page[0] += 1;
    *path = directory.path().join("other").into();
    std::fs::write(&*path, page).unwrap();
    let output = Command::new(env!("CLOCK_TEST_PROGRAM"))
        .args(["nanosleep", "0"])
        .envs(environment)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let monotonic_ns = text.lines().nth(1).and_then(|line| line.split(' ').next());
    assert_ne!(monotonic_ns, Some("0"), "the clock stands still");
}
