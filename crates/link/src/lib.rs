//! The emulated network between the browser and the internet.
//!
//! A [`Link`] is a SOCKS5 proxy that lives as long as one visit. All traffic of the browser goes
//! through it, at the pace of a [`LineProfile`], to hosts that the [`Guard`] lets it reach; every
//! attempt leaves a [`Record`].
//!
//! Three parts: `guard` decides (and asks the kernel which networks are its own), `model` is the network (pure: bytes and the time in, what
//! arrives out), `proxy` connects both to sockets and the clock.

mod error;
mod guard;
mod line_profile;
mod local_networks;
mod model;
mod proxy;

pub use error::LinkError;
pub use guard::{Guard, Reason, Refusal, Target};
pub use line_profile::LineProfile;
pub use model::Algorithm;
pub use proxy::{
    Link, LinkConfig, Outcome, Record, Resolution, Resolver, SystemResolver, Traffic,
    connect_guarded,
};
