//! The memory that is shared with the processes of a browser, as `shim/layout.h` declares it.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

pub(crate) const LAYOUT_VERSION: u32 = 1;
pub(crate) const WAIT_SLOTS: usize = 1024;
pub(crate) const WAIT_SLOT_BYTES: usize = 16;
pub(crate) const CLOCK_VARIABLE: &str = "PLUMBLINE_CLOCK";
pub(crate) const WAITS_VARIABLE: &str = "PLUMBLINE_CLOCK_WAITS";

/// A clock. Rates are the bits of an `f64`.
#[repr(C)]
pub(crate) struct ClockPage {
    pub(crate) layout_version: AtomicU32,
    /// The sequence number, which is odd while the anchors and the rate are written.
    pub(crate) sequence: AtomicU32,
    pub(crate) real_anchor_ns: AtomicI64,
    pub(crate) page_anchor_ns: AtomicI64,
    pub(crate) rate: AtomicU64,
    pub(crate) max_rate: AtomicU64,
    pub(crate) cpu_rate: AtomicU64,
    pub(crate) realtime_offset_ns: AtomicI64,
    pub(crate) boottime_offset_ns: AtomicI64,
}
