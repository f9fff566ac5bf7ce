//! Performs audits at one location: takes jobs, visits pages, judges them and delivers reports.
//!
//! [`Auditor`] performs one audit and does not know queues. [`run`] takes jobs from a [`Work`] and
//! keeps their leases alive. [`Work`] is implemented twice: by a server in the same process, and
//! over HTTPS.

mod auditor;
mod conditions;
mod cpu;
mod failure_reason;
mod judging;
mod redaction;
mod run;
mod runs;
mod self_check;
mod visits;
mod work;

pub use auditor::{AuditFault, AuditOutput, Auditor, Order};
pub use cpu::{Calibration, Cpu, DeviceThrottle, ThrottleChoice, ThrottleMethod};
pub use plumbline_browser::VisitEvent;
pub use run::{AgentSettings, run};
pub use self_check::{SelfCheckError, self_check};
pub use visits::MAX_VISITS;
pub use work::{Hold, Job, NextJob, Work, WorkError};
