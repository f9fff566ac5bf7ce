//! Distribution of audits to agents, whether they run in this process or on other machines.

mod confirmation;
mod dispatcher;
mod embedded;
mod evidence;
mod jobs;
mod locations;
mod polls;
mod registry;
mod report_memory;

pub(crate) use dispatcher::whole_ms;
pub use dispatcher::{
    AgentSlot, AuditObserver, DEFAULT_LEASE, Dispatcher, DispatcherParts, TokenScope,
};
pub use embedded::EmbeddedAgent;
pub(crate) use report_memory::REPORT_BYTES;
