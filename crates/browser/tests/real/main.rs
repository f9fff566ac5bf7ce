//! Everything that only a real Chromium can show.
#![expect(
    clippy::unwrap_used,
    reason = "a test, also where it is not marked as one"
)]

mod emulation;
mod evidence;
mod life;
mod outcomes;
mod site;
mod sizes;
mod socks;
mod usage;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use plumbline_browser::{Browser, LaunchOptions, Launcher, VisitError, VisitPlan, visit};
use plumbline_bundle::{Bundle, Failure};
use plumbline_catalog::{BUILT_IN, Catalog, Device};
use tempfile::TempDir;

/// A place for profiles that the browser's user can pass through, and a launcher that uses it.
struct Bench {
    run_dir: TempDir,
    launcher: Launcher,
}

impl Bench {
    fn new() -> Self {
        Self::with(LaunchOptions::default())
    }

    fn with(options: LaunchOptions) -> Self {
        let run_dir = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(run_dir.path(), open).unwrap();
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

    async fn measured(&self, plan: &VisitPlan) -> Bundle {
        self.visit(plan).await.unwrap()
    }

    async fn failed(&self, plan: &VisitPlan) -> Failure {
        match self.visit(plan).await {
            Err(VisitError::Page(failure)) => failure,
            Err(VisitError::Fault(fault)) => panic!("a fault of ours: {fault}"),
            Ok(bundle) => panic!("was measured, with warnings {:?}", bundle.warnings),
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

/// Short waits, for what needs no metric.
fn plan(url: String) -> VisitPlan {
    VisitPlan {
        quiet: Duration::from_millis(500),
        blank: Duration::from_millis(1000),
        deadline: Duration::from_secs(30),
        ..VisitPlan::new(url, device("mobile"))
    }
}
