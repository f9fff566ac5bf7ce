//! Real visits through a real link: that everything goes through it, and nothing past the guard.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod besides;
mod everything;
mod guarded;
mod isolated;
mod rig;
mod site;
