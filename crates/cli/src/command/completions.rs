//! `completions`: prints a script that completes the command line in a shell.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::exit::Exit;
use crate::standard_output as out;

/// Runs `plumbline completions`.
pub fn run(args: &CompletionsArgs) -> Result<Exit, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "plumbline", &mut script);
    out::document(&script)?;
    Ok(Exit::Done)
}
