//! Standard output. Whoever reads it may leave early (`| head -1`): then there is nobody to say more to.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::exit::Exit;

/// Prints a line.
pub fn line(text: impl Display) -> Result<(), Exit> {
    write(format_args!("{text}\n"))
}

/// Prints text that has its own line ends.
pub fn text(text: impl Display) -> Result<(), Exit> {
    write(format_args!("{text}"))
}

fn write(text: std::fmt::Arguments<'_>) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    out.write_fmt(text)
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Exit::Failed(None),
            _ => Exit::failed(format!("standard output: {error}")),
        })
}
