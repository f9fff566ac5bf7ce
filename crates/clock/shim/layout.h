// The memory that our process shares with the processes of a browser. `src/layout.rs` declares the
// same; a test compares the sizes.

#include <stdatomic.h>
#include <stdint.h>

#define LAYOUT_VERSION 1
#define WAIT_SLOTS 1024
// Ignored by programs that do not expect it, and not used by Chromium.
#define JUMP_SIGNAL SIGURG
#define CLOCK_VARIABLE "PLUMBLINE_CLOCK"
#define WAITS_VARIABLE "PLUMBLINE_CLOCK_WAITS"

// A clock. It is written by one thread of our process under a sequence lock, and read-only for the
// browser: no page can set its own time.
struct clock_page {
    uint32_t layout_version;
    // Odd while the anchors and the rate are written.
    _Atomic uint32_t sequence;
    // A moment on the system's monotonic clock, and the page time at that moment.
    _Atomic int64_t real_anchor_ns;
    _Atomic int64_t page_anchor_ns;
    // Page time that passes in one unit of real time.
    _Atomic double rate;
    // The rate is never higher.
    _Atomic double max_rate;
    // Page time that a unit of processor time lasts.
    _Atomic double cpu_rate;
    // The difference of these clocks to the monotonic page clock.
    _Atomic int64_t realtime_offset_ns;
    _Atomic int64_t boottime_offset_ns;
};

// A thread that waits until a page time. All processes of a browser write their own slots, so what
// is in them is only a hint.
struct wait_slot {
    // The thread's id in its process namespace, or 0 for a free slot.
    _Atomic int32_t thread;
    int32_t unused;
    // The end of the wait, or INT64_MAX while the thread is not in a wait that ends by itself.
    _Atomic int64_t deadline_ns;
};
