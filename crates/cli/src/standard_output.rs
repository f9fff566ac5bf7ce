//! Standard output. Whoever reads it may leave early (`| head -1`): then there is nobody to say
//! more to.

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

/// Prints a whole file, so that it ends its last line.
pub fn document(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    let end: &[u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
    ended(
        out.write_all(bytes)
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush()),
    )
}

fn write(text: std::fmt::Arguments<'_>) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    ended(out.write_fmt(text).and_then(|()| out.flush()))
}

fn ended(written: std::io::Result<()>) -> Result<(), Exit> {
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Exit::Failed(None),
        _ => Exit::failed(format!("standard output: {error}")),
    })
}
