// Gives a program the time of a page clock instead of the system's time.
//
// The library is loaded into Chromium with LD_PRELOAD. It replaces the functions of the C library
// that read clocks and that wait until a time, and serves them from a clock page: a file that our
// process writes and that is mapped read-only here (layout.h). A program that was not started with
// a clock page sees no difference.
//
// A wait until a page time is made of waits in real time. Each is computed for the highest rate
// that the clock may have, so it never lasts too long, and is repeated if the page time has not
// come yet. A clock that jumps forward interrupts the waits that have become due by a signal. For
// that each thread publishes the page time until which it waits in the wait table.
//
// The zygote of Chromium forks with raw system calls and its children are in other process
// namespaces, so state of a thread is checked against the process id, and no thread is started
// here. Renderers run under a seccomp filter; only system calls that Chromium itself makes are made
// here, which excludes epoll_pwait2.

#define _GNU_SOURCE
#include "layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define NS_PER_S 1000000000LL
#define FOREVER INT64_MAX
// The size of a signal set as the kernel sees it.
#define KERNEL_SIGSET_BYTES 8
// The shortest real wait while the clock runs slower than its highest rate. Without it a wait would
// be repeated more and more often towards its end.
#define MIN_REPEATED_WAIT_NS 100000

// The clock page, or null if the program sees real time.
static const struct clock_page *page;
// The wait table, or null.
static struct wait_slot *slots;
static pthread_key_t slot_key;

// ---- Functions of the C library that are replaced, and the kernel's

typedef long syscall_function(long, ...);
typedef int gettime_function(clockid_t, struct timespec *);

static void *next_symbol(const char *name) { return dlsym(RTLD_NEXT, name); }

// The C library's function that makes a system call and sets errno.
static syscall_function *kernel(void) {
    static syscall_function *_Atomic function;
    syscall_function *known = atomic_load_explicit(&function, memory_order_relaxed);
    if (UNLIKELY(!known)) {
        known = (syscall_function *)next_symbol("syscall");
        atomic_store_explicit(&function, known, memory_order_relaxed);
    }
    return known;
}

// The C library's function that reads a clock, which needs no system call for most.
static gettime_function *real_gettime(void) {
    static gettime_function *_Atomic function;
    gettime_function *known = atomic_load_explicit(&function, memory_order_relaxed);
    if (UNLIKELY(!known)) {
        known = (gettime_function *)next_symbol("clock_gettime");
        atomic_store_explicit(&function, known, memory_order_relaxed);
    }
    return known;
}

// ---- Time

static int64_t nanoseconds(const struct timespec *t) { return t->tv_sec * NS_PER_S + t->tv_nsec; }

static struct timespec timespec_of(int64_t ns) {
    if (ns < 0) ns = 0;
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static int64_t real_now(void) {
    struct timespec t;
    real_gettime()(CLOCK_MONOTONIC, &t);
    return nanoseconds(&t);
}

// The writer sets a clock that stands still again every few milliseconds, and stops this process if
// it does not. If neither happens for this long, the writer has been killed.
#define WRITER_DEADLINE_NS (20 * NS_PER_S)

// Ends a process whose clock will never run again.
static void check_writer(int64_t real_anchor) {
    if (real_now() - real_anchor > WRITER_DEADLINE_NS) _exit(1);
}

// Returns the page time on the monotonic clock.
static int64_t page_now(void) {
    for (unsigned tries = 0;; tries++) {
        uint32_t before = atomic_load_explicit(&page->sequence, memory_order_acquire);
        if (before & 1) {
            // The writer is between two stores. It may have lost its core.
            if (tries > 100) {
                sched_yield();
                check_writer(atomic_load_explicit(&page->real_anchor_ns, memory_order_relaxed));
            }
            continue;
        }
        int64_t real_anchor = atomic_load_explicit(&page->real_anchor_ns, memory_order_relaxed);
        int64_t page_anchor = atomic_load_explicit(&page->page_anchor_ns, memory_order_relaxed);
        double rate = atomic_load_explicit(&page->rate, memory_order_relaxed);
        int64_t now = real_now();
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&page->sequence, memory_order_relaxed) == before) {
            if (rate == 0) check_writer(real_anchor);
            return page_anchor + (int64_t)((double)(now - real_anchor) * rate);
        }
    }
}

static int64_t realtime_offset(void) {
    return atomic_load_explicit(&page->realtime_offset_ns, memory_order_relaxed);
}

static int64_t boottime_offset(void) {
    return atomic_load_explicit(&page->boottime_offset_ns, memory_order_relaxed);
}

static double cpu_rate(void) {
    return atomic_load_explicit(&page->cpu_rate, memory_order_relaxed);
}

// Returns the deadline on the monotonic page clock of an absolute time of this clock.
static int64_t monotonic_deadline(clockid_t clock, const struct timespec *t) {
    int64_t deadline = nanoseconds(t);
    if (clock == CLOCK_REALTIME) return deadline - realtime_offset();
    if (clock == CLOCK_BOOTTIME) return deadline - boottime_offset();
    return deadline;
}

// Returns the real time to wait for a page time, which is not too long whatever the rate becomes,
// or 0 if that time has come.
static int64_t real_wait(int64_t deadline) {
    int64_t left = deadline - page_now();
    if (left <= 0) return 0;
    double max_rate = atomic_load_explicit(&page->max_rate, memory_order_relaxed);
    double rate = atomic_load_explicit(&page->rate, memory_order_relaxed);
    int64_t wait = (int64_t)((double)left / max_rate) + 1;
    if (rate < max_rate && wait < MIN_REPEATED_WAIT_NS) {
        // At the present rate it lasts this long; do not exceed that.
        double at_rate = rate > 0 ? (double)left / rate + 1 : MIN_REPEATED_WAIT_NS;
        wait = at_rate < MIN_REPEATED_WAIT_NS ? (int64_t)at_rate : MIN_REPEATED_WAIT_NS;
    }
    return wait;
}

// ---- The wait table

// This thread's slot, and the process it was taken in: after a fork it belongs to the parent.
static __thread struct {
    struct wait_slot *slot;
    pid_t process;
} own __attribute__((tls_model("initial-exec")));

static void release_slot(void *unused) {
    (void)unused;
    if (own.slot) {
        atomic_store(&own.slot->deadline_ns, FOREVER);
        atomic_store(&own.slot->thread, 0);
        own.slot = NULL;
    }
}

static struct wait_slot *take_slot(pid_t process) {
    own.process = process;
    own.slot = NULL;
    int32_t thread = (int32_t)kernel()(SYS_gettid);
    for (int i = 0; i < WAIT_SLOTS; i++) {
        int32_t none = 0;
        if (atomic_load_explicit(&slots[i].thread, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&slots[i].thread, &none, thread)) {
            atomic_store(&slots[i].deadline_ns, FOREVER);
            own.slot = &slots[i];
            pthread_setspecific(slot_key, own.slot);
            break;
        }
    }
    return own.slot;
}

static void publish(int64_t deadline) {
    if (!slots) return;
    pid_t process = (pid_t)kernel()(SYS_getpid);
    struct wait_slot *slot = own.process == process ? own.slot : take_slot(process);
    if (slot) atomic_store(&slot->deadline_ns, deadline);
}

static void begin_wait(int64_t deadline) { publish(deadline); }

static void end_wait(void) {
    if (own.slot) atomic_store(&own.slot->deadline_ns, FOREVER);
}

// ---- Start

// Only interrupts a wait.
static void on_jump(int signal) { (void)signal; }

static void *map_file(const char *variable, size_t size, bool writable) {
    const char *path = getenv(variable);
    if (!path) return NULL;
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) return NULL;
    struct stat status;
    void *memory = MAP_FAILED;
    if (fstat(fd, &status) == 0 && (size_t)status.st_size >= size)
        memory = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

__attribute__((constructor)) static void start(void) {
    const struct clock_page *clock = map_file(CLOCK_VARIABLE, sizeof(struct clock_page), false);
    if (!clock || clock->layout_version != LAYOUT_VERSION) return;
    kernel();
    real_gettime();
    if (pthread_key_create(&slot_key, release_slot) == 0)
        slots = map_file(WAITS_VARIABLE, WAIT_SLOTS * sizeof(struct wait_slot), true);
    struct sigaction action = {.sa_handler = on_jump, .sa_flags = SA_RESTART};
    sigaction(JUMP_SIGNAL, &action, NULL);
    page = clock;
}

// ---- Clocks

EXPORT int clock_gettime(clockid_t clock, struct timespec *t) {
    if (!page) return real_gettime()(clock, t);
    switch (clock) {
    // CLOCK_MONOTONIC_RAW stays the system's: Abseil measures the processor's cycle counter by it, in
    // sleeps of up to 255 ms that end early only if the two agree, wherever a lock is first contended.
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE: *t = timespec_of(page_now()); return 0;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: *t = timespec_of(page_now() + realtime_offset()); return 0;
    case CLOCK_BOOTTIME: *t = timespec_of(page_now() + boottime_offset()); return 0;
    }
    int result = real_gettime()(clock, t);
    // The clocks of a process or a thread: work lasts longer in page time.
    bool counts_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0;
    if (result == 0 && counts_cpu) *t = timespec_of((int64_t)((double)nanoseconds(t) * cpu_rate()));
    return result;
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    (void)zone;
    struct timespec t;
    int result = clock_gettime(CLOCK_REALTIME, &t);
    if (result == 0) *tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return result;
}

EXPORT time_t time(time_t *seconds) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (seconds) *seconds = t.tv_sec;
    return t.tv_sec;
}

EXPORT clock_t clock(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return -1;
    return (clock_t)(nanoseconds(&t) / (NS_PER_S / CLOCKS_PER_SEC));
}

static void scale(struct timeval *tv) {
    double us = ((double)tv->tv_sec * 1e6 + (double)tv->tv_usec) * cpu_rate();
    tv->tv_sec = (time_t)(us / 1e6);
    tv->tv_usec = (suseconds_t)(us - (double)tv->tv_sec * 1e6);
}

// glibc declares the first parameter as an enumeration in C.
EXPORT int getrusage(__rusage_who_t who, struct rusage *usage) {
    int result = (int)kernel()(SYS_getrusage, (long)who, usage);
    if (result == 0 && page) {
        scale(&usage->ru_utime);
        scale(&usage->ru_stime);
    }
    return result;
}

// ---- Sleeping

static int sleep_until(int64_t deadline) {
    begin_wait(deadline);
    for (int64_t wait; (wait = real_wait(deadline)) > 0;) {
        struct timespec t = timespec_of(wait);
        kernel()(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
    }
    end_wait();
    return 0;
}

EXPORT int nanosleep(const struct timespec *duration, struct timespec *rest) {
    if (!page) return (int)kernel()(SYS_nanosleep, duration, rest);
    return sleep_until(page_now() + nanoseconds(duration));
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
                           struct timespec *rest) {
    if (!page) return kernel()(SYS_clock_nanosleep, clock, flags, t, rest) == 0 ? 0 : errno;
    bool is_absolute = flags & TIMER_ABSTIME;
    return sleep_until(is_absolute ? monotonic_deadline(clock, t) : page_now() + nanoseconds(t));
}

EXPORT int usleep(useconds_t us) {
    struct timespec t = timespec_of(us * 1000LL);
    return nanosleep(&t, NULL);
}

EXPORT unsigned sleep(unsigned seconds) {
    struct timespec t = {.tv_sec = seconds};
    nanosleep(&t, NULL);
    return 0;
}

// ---- Waiting for files

static int real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                      const sigset_t *mask) {
    // The kernel writes the rest of the time back.
    struct timespec copy = timeout ? *timeout : (struct timespec){0};
    return (int)kernel()(SYS_ppoll, fds, count, timeout ? &copy : NULL, mask, KERNEL_SIGSET_BYTES);
}

// Waits for the page time `timeout_ns`, or without end if it is negative.
static int poll_for(struct pollfd *fds, nfds_t count, int64_t timeout_ns, const sigset_t *mask) {
    if (timeout_ns < 0) return real_ppoll(fds, count, NULL, mask);
    struct timespec t = timespec_of(timeout_ns);
    if (!page || timeout_ns == 0) return real_ppoll(fds, count, &t, mask);
    int64_t deadline = page_now() + timeout_ns, wait;
    int result = 0, saved = errno;
    begin_wait(deadline);
    while (result == 0 && (wait = real_wait(deadline)) > 0) {
        t = timespec_of(wait);
        result = real_ppoll(fds, count, &t, mask);
        // A jump of the clock interrupts a wait that has become due.
        if (result < 0 && errno == EINTR && real_wait(deadline) == 0) result = 0;
    }
    if (result == 0) {
        // The time has come. What happened in the last moment counts, but not another interruption.
        t = timespec_of(0);
        do {
            errno = saved;
            result = real_ppoll(fds, count, &t, mask);
        } while (result < 0 && errno == EINTR);
    }
    end_wait();
    return result;
}

static int64_t milliseconds(int ms) { return ms < 0 ? -1 : ms * 1000000LL; }

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    return poll_for(fds, count, milliseconds(timeout_ms), NULL);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask) {
    return poll_for(fds, count, timeout ? nanoseconds(timeout) : -1, mask);
}

static int real_epoll(int fd, struct epoll_event *events, int count, int timeout_ms,
                      const sigset_t *mask) {
    return (int)kernel()(SYS_epoll_pwait, fd, events, count, timeout_ms, mask, KERNEL_SIGSET_BYTES);
}

static int epoll_for(int fd, struct epoll_event *events, int count, int64_t timeout_ns,
                     const sigset_t *mask) {
    if (timeout_ns < 0) return real_epoll(fd, events, count, -1, mask);
    if (timeout_ns > 0) {
        // An epoll descriptor can be polled itself, which has a timeout of nanoseconds.
        struct pollfd self = {.fd = fd, .events = POLLIN};
        if (poll_for(&self, 1, timeout_ns, mask) < 0) return -1;
    }
    int result, saved = errno;
    do {
        errno = saved;
        result = real_epoll(fd, events, count, 0, mask);
    } while (result < 0 && errno == EINTR);
    return result;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms) {
    return epoll_for(fd, events, count, milliseconds(timeout_ms), NULL);
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout_ms,
                       const sigset_t *mask) {
    return epoll_for(fd, events, count, milliseconds(timeout_ms), mask);
}

EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int count,
                        const struct timespec *timeout, const sigset_t *mask) {
    return epoll_for(fd, events, count, timeout ? nanoseconds(timeout) : -1, mask);
}

static int select_for(int count, fd_set *reads, fd_set *writes, fd_set *errors, int64_t timeout_ns,
                      const sigset_t *mask) {
    // The kernel takes the mask with its size.
    struct {
        const sigset_t *mask;
        size_t bytes;
    } sized = {mask, KERNEL_SIGSET_BYTES};
    void *sixth = mask ? &sized : NULL;
    if (timeout_ns < 0) return (int)kernel()(SYS_pselect6, count, reads, writes, errors, NULL, sixth);
    bool is_page_wait = page && timeout_ns > 0;
    int64_t deadline = is_page_wait ? page_now() + timeout_ns : 0;
    fd_set r, w, e;
    if (is_page_wait) begin_wait(deadline);
    for (;;) {
        // The kernel changes the sets and the time.
        if (reads) r = *reads;
        if (writes) w = *writes;
        if (errors) e = *errors;
        int64_t wait = is_page_wait ? real_wait(deadline) : timeout_ns;
        struct timespec t = timespec_of(wait);
        int result = (int)kernel()(SYS_pselect6, count, reads ? &r : NULL, writes ? &w : NULL,
                                   errors ? &e : NULL, &t, sixth);
        bool is_early = result == 0 && wait > 0;
        bool is_jump = result < 0 && errno == EINTR && real_wait(deadline) == 0;
        if (is_page_wait && (is_early || is_jump)) continue;
        if (is_page_wait) end_wait();
        if (result >= 0) {
            if (reads) *reads = r;
            if (writes) *writes = w;
            if (errors) *errors = e;
        }
        return result;
    }
}

EXPORT int select(int count, fd_set *restrict reads, fd_set *restrict writes,
                  fd_set *restrict errors, struct timeval *restrict timeout) {
    int64_t ns = timeout ? timeout->tv_sec * NS_PER_S + timeout->tv_usec * 1000LL : -1;
    return select_for(count, reads, writes, errors, ns, NULL);
}

EXPORT int pselect(int count, fd_set *restrict reads, fd_set *restrict writes,
                   fd_set *restrict errors, const struct timespec *restrict timeout,
                   const sigset_t *restrict mask) {
    return select_for(count, reads, writes, errors, timeout ? nanoseconds(timeout) : -1, mask);
}

// Timers of the kernel cannot follow a rate that changes: they get the present one.
EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *old) {
    struct itimerspec real = *value;
    double rate = page ? atomic_load_explicit(&page->rate, memory_order_relaxed) : 0;
    if (rate > 0) {
        int64_t due = nanoseconds(&value->it_value);
        if (due > 0 && flags & TFD_TIMER_ABSTIME)
            due = real_now() + (int64_t)((double)(due - page_now()) / rate);
        else
            due = (int64_t)((double)due / rate);
        // A value of 0 would stop the timer.
        if (nanoseconds(&value->it_value) > 0 && due < 1) due = 1;
        real.it_value = timespec_of(due);
        real.it_interval = timespec_of((int64_t)((double)nanoseconds(&value->it_interval) / rate));
    }
    return (int)kernel()(SYS_timerfd_settime, fd, flags, &real, old);
}

// ---- Futexes

// Waits on a futex until a deadline of the page clock.
static long futex_until(uint32_t *word, int private_flag, uint32_t value, int64_t deadline,
                        uint32_t bits) {
    long result = -1;
    begin_wait(deadline);
    for (;;) {
        int64_t wait = real_wait(deadline);
        if (wait == 0) {
            errno = ETIMEDOUT;
            break;
        }
        struct timespec until = timespec_of(real_now() + wait);
        result = kernel()(SYS_futex, word, FUTEX_WAIT_BITSET | private_flag, value, &until, NULL, bits);
        if (result == 0 || (errno != ETIMEDOUT && errno != EINTR)) break;
        if (errno == EINTR && real_wait(deadline) > 0) break;
    }
    end_wait();
    return result;
}

EXPORT long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (page) {
        if (number == SYS_clock_gettime) return clock_gettime((clockid_t)a, (struct timespec *)b);
        if (number == SYS_futex && d) {
            int command = (int)b & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
            int private_flag = (int)b & FUTEX_PRIVATE_FLAG;
            const struct timespec *t = (const struct timespec *)d;
            clockid_t clock = b & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
            if (command == FUTEX_WAIT)
                return futex_until((uint32_t *)a, private_flag, (uint32_t)c,
                                   page_now() + nanoseconds(t), FUTEX_BITSET_MATCH_ANY);
            if (command == FUTEX_WAIT_BITSET)
                return futex_until((uint32_t *)a, private_flag, (uint32_t)c,
                                   monotonic_deadline(clock, t), (uint32_t)f);
        }
    }
    return kernel()(number, a, b, c, d, e, f);
}

// ---- Condition variables
//
// Those of glibc wait again after a signal without looking at the clock. These count signals: a
// waiter sleeps while the count is the one it saw when it held the mutex.

struct condition {
    _Atomic uint32_t signals;
    _Atomic uint32_t waiters;
    int32_t clock;
    // Of several processes.
    int32_t is_shared;
};
_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it has room");

static int private_flag_of(const struct condition *condition) {
    return condition->is_shared ? 0 : FUTEX_PRIVATE_FLAG;
}

EXPORT int pthread_cond_init(pthread_cond_t *restrict cond,
                             const pthread_condattr_t *restrict attributes) {
    clockid_t clock = CLOCK_REALTIME;
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes) {
        pthread_condattr_getclock(attributes, &clock);
        pthread_condattr_getpshared(attributes, &shared);
    }
    memset(cond, 0, sizeof *cond);
    struct condition *condition = (struct condition *)cond;
    condition->clock = clock;
    condition->is_shared = shared == PTHREAD_PROCESS_SHARED;
    return 0;
}

EXPORT int pthread_cond_destroy(pthread_cond_t *cond) {
    struct condition *condition = (struct condition *)cond;
    // Waiters that were woken still read it.
    while (atomic_load(&condition->waiters)) sched_yield();
    return 0;
}

// Waits until a deadline of the monotonic clock that the program sees.
static int condition_wait(struct condition *condition, pthread_mutex_t *mutex, int64_t deadline) {
    atomic_fetch_add(&condition->waiters, 1);
    uint32_t seen = atomic_load(&condition->signals);
    int private_flag = private_flag_of(condition), result = 0;
    uint32_t *word = (uint32_t *)&condition->signals;
    pthread_mutex_unlock(mutex);
    long wait;
    if (deadline == FOREVER) {
        wait = kernel()(SYS_futex, word, FUTEX_WAIT_BITSET | private_flag, seen, NULL, NULL,
                        FUTEX_BITSET_MATCH_ANY);
    } else if (page) {
        wait = futex_until(word, private_flag, seen, deadline, FUTEX_BITSET_MATCH_ANY);
    } else {
        struct timespec until = timespec_of(deadline);
        wait = kernel()(SYS_futex, word, FUTEX_WAIT_BITSET | private_flag, seen, &until, NULL,
                        FUTEX_BITSET_MATCH_ANY);
    }
    if (wait < 0 && errno == ETIMEDOUT && atomic_load(&condition->signals) == seen)
        result = ETIMEDOUT;
    atomic_fetch_sub(&condition->waiters, 1);
    pthread_mutex_lock(mutex);
    return result;
}

static int64_t condition_deadline(clockid_t clock, const struct timespec *t) {
    if (page) return monotonic_deadline(clock, t);
    if (clock != CLOCK_REALTIME) return nanoseconds(t);
    // Without a page clock, futexes wait for a monotonic time as well.
    struct timespec now;
    real_gettime()(CLOCK_REALTIME, &now);
    return nanoseconds(t) - nanoseconds(&now) + real_now();
}

EXPORT int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex) {
    return condition_wait((struct condition *)cond, mutex, FOREVER);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict t) {
    struct condition *condition = (struct condition *)cond;
    return condition_wait(condition, mutex, condition_deadline(condition->clock, t));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                  clockid_t clock, const struct timespec *restrict t) {
    return condition_wait((struct condition *)cond, mutex, condition_deadline(clock, t));
}

static int condition_wake(pthread_cond_t *cond, int count) {
    struct condition *condition = (struct condition *)cond;
    atomic_fetch_add(&condition->signals, 1);
    if (atomic_load(&condition->waiters))
        kernel()(SYS_futex, &condition->signals, FUTEX_WAKE | private_flag_of(condition), count);
    return 0;
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond) { return condition_wake(cond, 1); }

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond) { return condition_wake(cond, INT_MAX); }

// ---- Semaphores

typedef int sem_clockwait_function(sem_t *, clockid_t, const struct timespec *);

// The C library's function that waits for a semaphore until a time of the system's clock.
static sem_clockwait_function *real_sem_clockwait(void) {
    static sem_clockwait_function *_Atomic function;
    sem_clockwait_function *known = atomic_load_explicit(&function, memory_order_relaxed);
    if (UNLIKELY(!known)) {
        known = (sem_clockwait_function *)next_symbol("sem_clockwait");
        atomic_store_explicit(&function, known, memory_order_relaxed);
    }
    return known;
}

static int semaphore_until(sem_t *semaphore, int64_t deadline) {
    begin_wait(deadline);
    int result;
    for (;;) {
        // A semaphore that is free is taken even if the time has come.
        int64_t wait = real_wait(deadline);
        struct timespec until = timespec_of(wait > 0 ? real_now() + wait : 0);
        result = real_sem_clockwait()(semaphore, CLOCK_MONOTONIC, &until);
        if (result == 0 || wait == 0 || (errno != ETIMEDOUT && errno != EINTR)) break;
        if (errno == EINTR && real_wait(deadline) > 0) break;
    }
    end_wait();
    return result;
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict t) {
    if (page) return semaphore_until(semaphore, monotonic_deadline(CLOCK_REALTIME, t));
    return real_sem_clockwait()(semaphore, CLOCK_REALTIME, t);
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                         const struct timespec *restrict t) {
    if (page) return semaphore_until(semaphore, monotonic_deadline(clock, t));
    return real_sem_clockwait()(semaphore, clock, t);
}
