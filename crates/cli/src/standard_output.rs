//! Standard output. A reader may close the pipe early (`| head -1`), which is not reported as an
//! error.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::exit::Exit;

/// Prints a line.
pub fn line(text: impl Display) -> Result<(), Exit> {
    write(format_args!("{text}\n"))
}

/// Prints a text that contains its own line breaks.
pub fn text(text: impl Display) -> Result<(), Exit> {
    write(format_args!("{text}"))
}

/// Prints a file, with a line break at the end if it has none.
pub fn document(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    let end: &[u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
    check(
        out.write_all(bytes)
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush()),
    )
}

/// Prints bytes that are no text.
pub fn bytes(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    check(out.write_all(bytes).and_then(|()| out.flush()))
}

fn write(text: std::fmt::Arguments<'_>) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    check(out.write_fmt(text).and_then(|()| out.flush()))
}

/// Converts a write error. A closed pipe ends the command without a message.
fn check(result: std::io::Result<()>) -> Result<(), Exit> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Exit::Failed(None),
        _ => Exit::failed(format!("standard output: {error}")),
    })
}
