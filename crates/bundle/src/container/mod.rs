//! A container of named members that can each be read alone.
//!
//! Every member is one zstd frame. An index at the end lists their names and sizes, so that a
//! container is written without knowing what follows, and one member is read without the others.
//! The magic bytes at the beginning and the index are in skippable frames (RFC 8878, 3.1.2), which
//! makes the whole container a valid zstd stream: `zstd -dc` prints the contents of all members.
//!
//! Containers come from agents and are not trusted. The sizes in the index are compared with
//! [`Limits`] before anything is unpacked, and a member that unpacks to another size is refused.

mod index;
mod part;

use std::io::{self, Read, Write};

use serde::Serialize;
use zstd::stream::{read::Decoder, write::Encoder};

use index::{HEADER_BYTES, MAGIC, SKIPPABLE_FRAME};
pub use index::{Index, Limits, Member, TAIL_BYTES};
pub use part::Part;

use crate::PackError;

/// The compression level. Higher levels take several times as long for a few percent.
const LEVEL: i32 = 3;

/// The largest window of a frame, as a power of two: the memory that a decoder allocates. Frames of
/// [`LEVEL`] use 2 MB.
const MAX_WINDOW_LOG: u32 = 23;

/// The ratio of sizes, unpacked to packed, up to which memory is reserved before unpacking.
const USUAL_RATIO: usize = 16;

/// Writes a container, one member after the other.
pub struct ContainerWriter<W: Write> {
    output: CountingWriter<W>,
    index: Index,
}

impl<W: Write> ContainerWriter<W> {
    /// Begins a container.
    pub fn new(output: W) -> io::Result<Self> {
        let mut output = CountingWriter::new(output);
        output.write_all(&SKIPPABLE_FRAME)?;
        output.write_all(&(MAGIC.len() as u32).to_le_bytes())?;
        output.write_all(&MAGIC)?;
        Ok(Self {
            output,
            index: Index::default(),
        })
    }

    /// Adds a member.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.add_with(name, |member| member.write_all(content))
    }

    /// Adds a value as a member, in JSON.
    pub fn add_json(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.add_with(name, |member| Ok(serde_json::to_writer(member, value)?))
    }

    /// Adds a member whose content `write` writes.
    pub(crate) fn add_with(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.output.count;
        let bytes = write_frame(&mut self.output, write)?;
        self.index.push(name, self.output.count - start, bytes);
        Ok(())
    }

    /// Adds a member of another container, which is packed already.
    fn add_frame(&mut self, member: &Member, frame: &[u8]) -> io::Result<()> {
        self.output.write_all(frame)?;
        self.index
            .push(&member.name, member.packed_bytes, member.bytes);
        Ok(())
    }

    /// Writes the index and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.index.write(&mut self.output)?;
        Ok(self.output.inner)
    }
}

/// Writes one frame with a checksum, and returns the size of its content.
fn write_frame(
    output: &mut impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut encoder = Encoder::new(output, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut content = CountingWriter::new(io::BufWriter::new(encoder));
    write(&mut content)?;
    let encoder = content.inner.into_inner();
    encoder.map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(content.count)
}

/// A writer that counts the bytes written.
struct CountingWriter<W> {
    inner: W,
    count: u64,
}

impl<W> CountingWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, count: 0 }
    }
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A container in memory, of which members are unpacked on request.
#[derive(Debug)]
pub struct Container<'a> {
    bytes: &'a [u8],
    index: Index,
}

impl<'a> Container<'a> {
    /// Returns whether bytes begin like a container.
    pub fn is_container(bytes: &[u8]) -> bool {
        bytes.len() >= HEADER_BYTES
            && bytes.starts_with(&SKIPPABLE_FRAME)
            && bytes[HEADER_BYTES - MAGIC.len()..HEADER_BYTES] == MAGIC
    }

    /// Reads the index of a container and compares the sizes in it with `limits`.
    pub fn open(bytes: &'a [u8], limits: Limits) -> Result<Self, PackError> {
        let index = Index::from_tail(bytes)?;
        let index = index.ok_or_else(|| PackError::Unreadable("it is cut off".to_owned()))?;
        if index.container_bytes() != bytes.len() as u64 {
            let reason = "its length differs from its index";
            return Err(PackError::Unreadable(reason.to_owned()));
        }
        index.check(limits)?;
        Ok(Self { bytes, index })
    }

    /// Returns the names of all members, in the order in which they were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index
            .members()
            .iter()
            .map(|member| member.name.as_str())
    }

    /// Unpacks a member; returns `None` if there is none with this name.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PackError> {
        let members = self.index.members();
        let Some(member) = members.iter().find(|member| member.name == name) else {
            return Ok(None);
        };
        let unreadable =
            |reason: &dyn std::fmt::Display| PackError::Unreadable(format!("{name}: {reason}"));
        let range = member.range();
        let range = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        let packed = range.and_then(|(start, end)| self.bytes.get(start..end));
        let packed = packed.ok_or_else(|| unreadable(&"it is cut off"))?;
        let mut decoder = Decoder::with_buffer(packed).map_err(|error| unreadable(&error))?;
        decoder
            .window_log_max(MAX_WINDOW_LOG)
            .map_err(|error| unreadable(&error))?;
        // The size in the index may be wrong, so memory is reserved for a usual ratio only.
        let usual_bytes = packed.len().saturating_mul(USUAL_RATIO);
        let indexed_bytes = usize::try_from(member.bytes).unwrap_or(usize::MAX);
        let mut content = Vec::with_capacity(usual_bytes.min(indexed_bytes));
        decoder
            .take(member.bytes + 1)
            .read_to_end(&mut content)
            .map_err(|error| unreadable(&error))?;
        if content.len() as u64 != member.bytes {
            return Err(unreadable(&"its size differs from the index"));
        }
        Ok(Some(content))
    }
}

#[cfg(test)]
mod tests;
