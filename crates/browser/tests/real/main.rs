//! Tests with a real Chromium.
#![expect(
    clippy::unwrap_used,
    reason = "tests, including their helper functions"
)]

mod agentic;
mod consent;
mod emulation;
mod evidence;
mod flow;
mod interactions;
mod life;
mod outcomes;
mod page_time;
mod pictures;
mod site;
mod sizes;
mod socks;
mod state;
mod steps;
mod throttling;
mod usage;
mod views;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use plumbline_browser::{Browser, LaunchOptions, Launcher, VisitError, VisitPlan, visit};
use plumbline_bundle::{Bundle, Failure};
use plumbline_catalog::{BUILT_IN, Catalog, Device};
use tempfile::TempDir;

/// A directory for profiles that the browser's user can access, and a launcher that uses it.
struct TestBed {
    run_dir: TempDir,
    launcher: Launcher,
}

impl TestBed {
    fn new() -> Self {
        Self::with(LaunchOptions::default())
    }

    fn with(options: LaunchOptions) -> Self {
        let run_dir = tempfile::tempdir().unwrap();
        let permissions = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(run_dir.path(), permissions).unwrap();
        let launcher = Launcher::find(LaunchOptions {
            run_dir: Some(run_dir.path().to_owned()),
            ..options
        })
        .unwrap();
        Self { run_dir, launcher }
    }

    async fn browser(&self) -> Browser {
        self.launcher.launch().await.unwrap()
    }

    async fn visit(&self, plan: &VisitPlan) -> Result<Bundle, VisitError> {
        visit(self.browser().await, plan, &|_| {}).await
    }

    async fn measure(&self, plan: &VisitPlan) -> Bundle {
        self.visit(plan).await.unwrap()
    }

    async fn measure_failure(&self, plan: &VisitPlan) -> Failure {
        match self.visit(plan).await {
            Err(VisitError::Page(failure)) => failure,
            Err(VisitError::Fault(fault)) => panic!("not a failure of the page: {fault}"),
            Ok(bundle) => panic!("measured, with warnings {:?}", bundle.warnings),
        }
    }

    fn leftover_files(&self) -> usize {
        std::fs::read_dir(self.run_dir.path()).unwrap().count()
    }
}

fn device(id: &str) -> Device {
    let catalog = Catalog::load(BUILT_IN).unwrap();
    catalog.device(id).unwrap().clone()
}

/// Returns a plan with short waits, for tests that need no metrics.
fn plan(url: String) -> VisitPlan {
    VisitPlan {
        idle: Duration::from_millis(500),
        blank: Duration::from_millis(1000),
        deadline: Duration::from_secs(30),
        ..VisitPlan::new(url, device("mobile"))
    }
}
