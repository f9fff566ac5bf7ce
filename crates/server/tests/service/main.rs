//! The service as a client meets it: real sockets, the real router, a real store on disk.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on shall say where"
)]

mod bodies;
mod contract;
mod exports;
mod faults;
mod keys;
mod logs;
mod pages;
mod paths;
mod rates;
mod rig;
mod shutdown;
mod targets;
mod wire;
