//! The emulated network between the browser and the internet.
//!
//! A [`Link`] is a SOCKS5 proxy that exists for one visit. All traffic of the browser passes
//! through it, at the speed of a [`LineProfile`], to hosts that the [`Guard`] permits; every
//! connection attempt leaves a [`ConnectionRecord`].
//!
//! There are three parts: `guard` decides what may be connected to (and reads the networks of this
//! machine), `model` is the network (pure: takes bytes and the time, returns what arrives), and
//! `proxy` connects both to sockets and the clock.

mod error;
mod guard;
mod line_profile;
mod local_networks;
mod model;
mod proxy;

pub use error::LinkError;
pub use guard::{Guard, Refusal, RefusalReason, Target};
pub use line_profile::LineProfile;
pub use proxy::{
    Arrival, Arrivals, ConnectionOutcome, ConnectionRecord, Link, LinkConfig, RecordedConnection,
    Recorder, ReplayedConnection, ReplayedHandshake, Replayer, Resolution, Resolver, Servers,
    SystemResolver, connect_guarded,
};
