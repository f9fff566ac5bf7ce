//! Performs audits at one location: takes jobs, visits pages, judges them and delivers reports.
//!
//! [`Auditor`] performs one audit and does not know queues. [`run`] takes jobs from a
//! [`Work`](plumbline_seam::Work) and keeps their leases alive.

mod after_visits;
mod auditor;
mod comparison;
mod conditions;
mod cpu;
mod failure_reason;
mod held_evidence;
mod host;
mod judging;
mod page_evidence;
mod redaction;
mod run;
mod runs;
mod self_check;
mod sessions;
mod traffic;
mod visits;

pub use auditor::{AuditEvent, AuditFault, Auditor};
pub use conditions::AgentLocation;
pub use cpu::{Calibration, Cpu, DeviceThrottle, ThrottleChoice, ThrottleMethod};
pub use host::Host;
pub use plumbline_browser::VisitEvent;
pub use run::{AgentSettings, run};
pub use self_check::{SelfCheckError, self_check};
pub use traffic::Interception;
pub use visits::MAX_VISITS;
