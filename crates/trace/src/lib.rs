//! Reads the trace of a page load and the log of the protocol's network events, as written by
//! Chromium.
//!
//! The crate is pure: bytes in, typed facts out. Each byte is parsed once and only events that
//! carry a fact are kept. The engine computes metrics from these facts.
//!
//! All times are microseconds of Chromium's monotonic clock (`_us`), whatever unit a message has
//! them in. [`Trace::since_origin_ms`] converts one to milliseconds since the start of the
//! navigation.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod activity;
mod animations;
mod culprits;
mod document;
mod error;
mod event;
mod event_kinds;
mod exchanges;
mod features;
mod frames;
mod input;
mod interactions;
mod navigation;
mod paints;
mod profiles;
mod protocol_log;
mod reader;
mod reflows;
mod resources;
mod screenshots;
mod shifts;
mod task_dependencies;
mod tasks;
mod timing;
mod user_timings;
mod work;

pub use activity::{Activity, ActivitySpan};
pub use animations::Animation;
pub use culprits::{Culprits, Span};
pub use document::{Documents, DomSize, LargeUpdate, UpdateKind};
pub use error::TraceError;
pub use exchanges::{Exchange, Headers, LoadFailure, Response, header};
pub use features::FeatureUse;
pub use frames::{Frame, Frames};
pub use interactions::{Interaction, InteractionKind};
pub use navigation::{Navigation, Thread};
pub use paints::{LargestImage, LargestPaint, Milestone, Paints};
pub use profiles::{Profile, ProfileNode, ProfileSample};
pub use protocol_log::ProtocolLog;
pub use reader::Trace;
pub use reflows::{CodeLocation, ForcedReflow, forced_work};
pub use resources::{
    ImagePaint, OriginLatency, Preconnect, Redirect, RemoteFont, Resource, Resources,
    origin_latencies,
};
pub use screenshots::{MAX_SCREENSHOT_PX, MAX_SCREENSHOTS, TracedScreenshot};
pub use shifts::{LayoutShift, MovedNode, Shifts};
pub use task_dependencies::{Dependency, TaskDependencies};
pub use tasks::{Task, Tasks};
pub use timing::ResourceTiming;
pub use user_timings::UserTiming;
pub use work::{BackgroundWork, WorkKind, WorkSpan, WorkerScript};
