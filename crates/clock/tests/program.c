// A program that waits in one of many ways and says how long it waited, by its own clocks.
//
// usage: program WAIT SECONDS
//
// Prints "waiting", waits, and prints the nanoseconds that passed on the monotonic clock, on the
// wall clock, and 1 if the wait ended because its time had come, else 0.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long seconds;

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec after(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += seconds;
    return t;
}

static int wait_condition(clockid_t clock, int by_clockwait) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t attributes;
    pthread_cond_t condition;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_init(&condition, &attributes);
    struct timespec until = after(clock);
    pthread_mutex_lock(&mutex);
    int result;
    // Wake-ups without a cause are allowed.
    do result = by_clockwait ? pthread_cond_clockwait(&condition, &mutex, clock, &until)
                             : pthread_cond_timedwait(&condition, &mutex, &until);
    while (result == 0);
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&condition);
    return result == ETIMEDOUT;
}

static int wait_futex(int absolute) {
    uint32_t word = 0;
    struct timespec t = absolute ? after(CLOCK_MONOTONIC) : (struct timespec){.tv_sec = seconds};
    int command = absolute ? FUTEX_WAIT_BITSET : FUTEX_WAIT;
    long result = syscall(SYS_futex, &word, command | FUTEX_PRIVATE_FLAG, 0, &t, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    return result == -1 && errno == ETIMEDOUT;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int turn;

static void *answer(void *unused) {
    pthread_mutex_lock(&mutex);
    for (int i = 1; i < 20000; i += 2) {
        while (turn != i) pthread_cond_wait(&condition, &mutex);
        turn = i + 1;
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

// Passes a turn between two threads many times; a lost signal would never end.
static int pass_turns(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, answer, NULL);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 20000; i += 2) {
        while (turn != i) pthread_cond_wait(&condition, &mutex);
        turn = i + 1;
        pthread_cond_signal(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return pthread_join(thread, NULL) == 0;
}

static int wait_in_child(void) {
    // As Chromium's zygote does, without the handlers of the C library.
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        struct timespec t = {.tv_sec = seconds};
        _exit(nanosleep(&t, NULL));
    }
    int status;
    return waitpid((pid_t)child, &status, 0) == child && status == 0;
}

static int wait_by(const char *name) {
    struct timespec t = {.tv_sec = seconds};
    struct timeval tv = {.tv_sec = seconds};
    int pipes[2];
    if (pipe(pipes)) return 0;
    struct pollfd fd = {.fd = pipes[0], .events = POLLIN};
    if (!strcmp(name, "nanosleep")) return nanosleep(&t, NULL) == 0;
    if (!strcmp(name, "clock_nanosleep")) {
        t = after(CLOCK_REALTIME);
        return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0;
    }
    if (!strcmp(name, "usleep")) return usleep((useconds_t)(seconds * 1000000)) == 0;
    if (!strcmp(name, "sleep")) return sleep((unsigned)seconds) == 0;
    if (!strcmp(name, "poll")) return poll(&fd, 1, (int)seconds * 1000) == 0;
    if (!strcmp(name, "ppoll")) return ppoll(&fd, 1, &t, NULL) == 0;
    if (!strcmp(name, "select")) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pipes[0], &set);
        return select(pipes[0] + 1, &set, NULL, NULL, &tv) == 0;
    }
    if (!strcmp(name, "epoll_wait")) {
        int epoll = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN};
        epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
        return epoll_wait(epoll, &event, 1, (int)seconds * 1000) == 0;
    }
    if (!strcmp(name, "condition_monotonic")) return wait_condition(CLOCK_MONOTONIC, 0);
    if (!strcmp(name, "condition_realtime")) return wait_condition(CLOCK_REALTIME, 0);
    if (!strcmp(name, "condition_clockwait")) return wait_condition(CLOCK_MONOTONIC, 1);
    if (!strcmp(name, "futex")) return wait_futex(0);
    if (!strcmp(name, "futex_absolute")) return wait_futex(1);
    if (!strcmp(name, "semaphore")) {
        sem_t semaphore;
        sem_init(&semaphore, 0, 0);
        t = after(CLOCK_REALTIME);
        return sem_timedwait(&semaphore, &t) == -1 && errno == ETIMEDOUT;
    }
    if (!strcmp(name, "child")) return wait_in_child();
    if (!strcmp(name, "turns")) return pass_turns();
    if (!strcmp(name, "clocks")) {
        // The clocks agree to the microsecond that gettimeofday has, and to the second of time().
        gettimeofday(&tv, NULL);
        int64_t wall = now(CLOCK_REALTIME), old = tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL;
        return wall - old < 1000 && time(NULL) == wall / 1000000000LL &&
               now(CLOCK_REALTIME_COARSE) == wall && now(CLOCK_MONOTONIC_COARSE) == now(CLOCK_MONOTONIC);
    }
    if (!strcmp(name, "raw_clock")) {
        // The clock that the processor's cycle counter is measured by runs at any rate.
        int64_t raw = now(CLOCK_MONOTONIC_RAW);
        for (int i = 0; i < 100000000 && now(CLOCK_MONOTONIC_RAW) == raw; i++) continue;
        return now(CLOCK_MONOTONIC_RAW) > raw;
    }
    fprintf(stderr, "unknown wait %s\n", name);
    exit(2);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    seconds = atol(words[2]);
    printf("waiting\n");
    fflush(stdout);
    int64_t monotonic = now(CLOCK_MONOTONIC), wall = now(CLOCK_REALTIME);
    int is_due = wait_by(words[1]);
    printf("%lld %lld %d\n", (long long)(now(CLOCK_MONOTONIC) - monotonic),
           (long long)(now(CLOCK_REALTIME) - wall), is_due);
}
