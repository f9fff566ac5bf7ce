//! The binary `plumbline`: parses arguments, resolves settings and connects the other crates.

mod args;
mod available_memory;
mod blobs;
mod budget;
mod clock;
#[cfg(test)]
#[path = "../../store/tests/cluster/mod.rs"]
mod cluster;
mod command;
mod cookie_jar;
mod exit;
mod field_data;
mod field_quota;
mod local_auditor;
mod opener;
mod output;
mod page_url;
mod progress_line;
mod recording_files;
mod retention;
mod settings;
mod standard_output;
mod storage;
mod suggestion;
mod visit_options;
mod webhook_client;

use std::process::ExitCode;

use plumbline_memory::MemoryTrimmer;

use crate::args::Command;
use crate::exit::Exit;

fn main() -> ExitCode {
    plumbline_memory::configure_allocator();
    let args = match args::parse(std::env::args_os().collect()) {
        Ok(args) => args,
        Err(exit) => return exit.report(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return Exit::failed(format!("failed to start the async runtime: {error}")).report();
        }
    };
    let exit = runtime.block_on(run(args.command));
    // A blocking call that never returns must not keep the process from exiting.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    exit.report()
}

async fn run(command: Command) -> Exit {
    // It ends with the runtime.
    tokio::spawn(trim_memory());
    let result = match command {
        Command::Serve(args) => command::serve::run(*args).await,
        Command::Agent(args) => command::agent::run(args).await,
        Command::Audit(args) => command::audit::run(*args).await,
        Command::Compare(args) => command::compare::run(*args).await,
        Command::Record(args) => command::record::run(*args).await,
        Command::Experiment(args) => command::experiment::run(*args).await,
        Command::Matrix(args) => command::matrix::run(*args).await,
        Command::ConvertRecording(args) => command::convert_recording::run(&args),
        Command::Judge(args) => command::judge::run(&args),
        Command::Metrics(args) => command::metrics::run(&args),
        Command::Doctor(args) => command::doctor::run(args).await,
        Command::Keys(command) => command::keys::run(command).await,
        Command::Credits(command) => command::keys::run_credits(command).await,
        Command::Admin(command) => command::admin::run(command).await,
        Command::MigrateStore(args) => command::migrate_store::run(args).await,
        Command::Devices(args) => command::catalog::devices(&args),
        Command::Networks(args) => command::catalog::networks(&args),
        Command::Locations(args) => command::catalog::locations(&args),
        Command::Completions(args) => command::completions::run(&args),
        Command::Man => command::man::run(),
        Command::Licenses => command::licenses::run(),
    };
    result.unwrap_or_else(|exit| exit)
}

/// Returns freed memory to the system for as long as the program runs.
async fn trim_memory() {
    let mut trimmer = MemoryTrimmer::default();
    loop {
        tokio::time::sleep(plumbline_memory::INTERVAL).await;
        let trimming = tokio::task::spawn_blocking(move || {
            trimmer.trim_if_busy();
            trimmer
        });
        match trimming.await {
            Ok(returned) => trimmer = returned,
            // The runtime is shutting down.
            Err(_) => return,
        }
    }
}
