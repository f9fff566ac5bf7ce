//! Visits through a link whose resolver a test chooses.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plumbline_agent::{Cpu, Interception};
use plumbline_browser::{LaunchOptions, Launcher, NetworkPath, VisitError, VisitPlan, visit};
use plumbline_bundle::Bundle;
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::{Guard, LineProfile, Link, LinkConfig, Resolution, Resolver};
use plumbline_traffic::RootCertStore;

/// A resolver that returns the same addresses for every name.
pub struct FixedResolver(pub Vec<IpAddr>);

impl Resolver for FixedResolver {
    fn resolve<'a>(&'a self, _host: &'a str) -> Resolution<'a> {
        Box::pin(async { Ok::<_, io::Error>(self.0.clone()) })
    }
}

pub async fn open_link(allow: &[&str]) -> Link {
    open_link_with(allow, FixedResolver(vec![IpAddr::from([127, 0, 0, 1])])).await
}

pub async fn open_link_with(allow: &[&str], resolver: impl Resolver) -> Link {
    let allow = allow.iter().map(|target| target.parse().unwrap()).collect();
    let config = LinkConfig {
        resolver: Arc::new(resolver),
        ..LinkConfig::new(LineProfile::UNLIMITED, Arc::new(Guard::new(allow)))
    };
    Link::open(config).unwrap()
}

pub fn launcher() -> Launcher {
    Launcher::find(LaunchOptions {
        only_through_proxy: true,
        ..LaunchOptions::default()
    })
    .unwrap()
}

pub fn plan(url: &str, link: &Link) -> VisitPlan {
    let catalog = Catalog::load(BUILT_IN).unwrap();
    VisitPlan {
        network: NetworkPath::Proxy(link.address()),
        idle: Duration::from_millis(700),
        deadline: Duration::from_secs(30),
        ..VisitPlan::new(url, catalog.device("desktop").unwrap().clone())
    }
}

pub async fn visit_through(link: &Link, url: &str) -> Result<Bundle, VisitError> {
    let browser = launcher().launch().await.unwrap();
    visit(browser, &plan(url, link), &|_| {}).await
}

/// Returns an emulation of processors whose calibration all tests share.
pub fn cpu() -> Cpu {
    let calibration = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calibration.json");
    Cpu::new(launcher(), Some(calibration))
}

pub fn interception(roots: RootCertStore) -> Interception {
    Interception::new(&launcher(), Arc::new(roots)).unwrap()
}
