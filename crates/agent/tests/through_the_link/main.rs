//! Real visits through a real link: all traffic uses it, and none passes the guard unchecked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod after_measuring;
mod all_traffic;
mod guarded;
mod isolated;
mod profiled;
mod recorded;
mod rig;
mod secure_site;
mod site;
mod slots;
mod steps;
