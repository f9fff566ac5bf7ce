//! Visits one page and prints the result:
//! `cargo run --example visit -- URL [DEVICE] [CPU_RATE] [DIRECTORY]`.
//! The trace and the log are written to the directory, with the file names of Lighthouse.
//! `RUST_LOG=debug` prints the duration of each step of gathering.

use std::time::Instant;

use plumbline_browser::{
    Benchmark, Gauge, LaunchOptions, Launcher, Pool, Throttle, VisitEvent, VisitPlan, sweep, visit,
};
use plumbline_catalog::{BUILT_IN, Catalog};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .init();
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("usage: visit URL [DEVICE] [CPU_RATE] [DIRECTORY]")?;
    let device = arguments.next().unwrap_or_else(|| "mobile".to_owned());
    let rate = arguments.next().map_or(Ok(1.0), |rate| rate.parse())?;
    let directory = arguments.next();
    let catalog = Catalog::load(BUILT_IN)?;
    let device = catalog.device(&device).ok_or("unknown device")?.clone();

    let launcher = Launcher::find(LaunchOptions::default())?;
    println!("chromium   {}", launcher.chromium().display());
    println!("swept      {}", sweep(launcher.run_dir())?);
    let gauge = Gauge::open(&launcher).await?;
    let pool = Pool::start(launcher, 1);
    let started = Instant::now();
    let browser = pool.take().await?;
    println!("browser    {} ms", started.elapsed().as_millis());
    let nominal = gauge.read(Throttle::NONE, Benchmark::Full).await?.pace;
    let throttle = Throttle::ByChromium { rate, nominal };
    for benchmark in [Benchmark::Quick, Benchmark::Full] {
        let started = Instant::now();
        let index = gauge.read(throttle, benchmark).await?.index;
        let ms = started.elapsed().as_millis();
        println!("index      {index:.0} ({benchmark:?}, {ms} ms)");
    }

    let plan = VisitPlan {
        throttle,
        ..VisitPlan::new(url, device)
    };
    let started = Instant::now();
    let bundle = visit(browser, &plan, &|step| match step {
        VisitEvent::PhaseStarted(phase) => println!("phase      {}", phase.as_str()),
        VisitEvent::DocumentLoaded(url) => println!("document   {url}"),
        VisitEvent::StepEnded(_) | VisitEvent::ConsentEnded { .. } => {}
    })
    .await?;
    println!("total      {} ms", started.elapsed().as_millis());
    for timing in &bundle.timings {
        println!("  {:<9}{:.0} ms", timing.phase.as_str(), timing.ms);
    }
    println!("final url  {}", bundle.final_url);
    println!(
        "document   {} {}",
        bundle.document.status, bundle.document.mime_type
    );
    println!("user agent {}", bundle.browser.user_agent);
    println!("trace      {} KB", bundle.trace.len() / 1024);
    println!("log        {} KB", bundle.log.len() / 1024);
    if let Some(picture) = &bundle.screenshot {
        let (width, height) = (picture.width_px, picture.height_px);
        println!(
            "picture    {width}x{height}, {} KB",
            picture.data.len() * 3 / 4 / 1024
        );
    }
    for warning in &bundle.warnings {
        println!("warning    {warning}");
    }
    if let Some(directory) = directory {
        let directory = std::path::Path::new(&directory);
        std::fs::write(directory.join("defaultPass.trace.json"), &bundle.trace)?;
        std::fs::write(directory.join("defaultPass.devtoolslog.json"), &bundle.log)?;
    }
    Ok(())
}
