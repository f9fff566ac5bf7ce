//! Runs a program on a page clock of a constant rate: `run_at RATE PROGRAM ARGUMENTS`.

use std::process::{Command, ExitCode};

use plumbline_clock::{Library, PageClock};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let rate: f64 = args.next().ok_or("no rate")?.parse()?;
    let program = args.next().ok_or("no program")?;
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(
        directory.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let clock = PageClock::create(directory.path(), None)?;
    let library = Library::write(directory.path())?;
    clock.set_speed(rate);
    let status = Command::new(program)
        .args(args)
        .envs(clock.environment(&library))
        .status()?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}
