//! Does audits where it stands: takes work through a seam, visits, judges, and hands in reports.
//!
//! [`Auditor`] makes one audit and knows nothing of queues; [`run`] takes work from a [`Work`] and
//! keeps leases alive. The seam is implemented twice: on a server's desk in the same process, and over HTTPS.

mod auditor;
mod conditions;
mod cpu;
mod judging;
mod logged;
mod reason;
mod run;
mod self_check;
mod several;
mod visits;
mod work;

pub use auditor::{AuditFault, Audited, Auditor, Order};
pub use cpu::{Calibration, Choice, Cpu, DeviceRate, Way};
pub use plumbline_browser::VisitEvent;
pub use run::{AgentSettings, run};
pub use self_check::{SelfCheckError, self_check};
pub use visits::MOST_VISITS;
pub use work::{Hold, Job, Next, Work, WorkError};
