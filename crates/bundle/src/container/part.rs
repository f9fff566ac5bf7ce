//! Parts of a container that are read from storage without the rest.

use std::ops::Range;

use super::{ContainerWriter, Index, Member};
use crate::PackError;

/// Some members of a container. It names the bytes to read, and makes a container of its own from
/// them without unpacking any.
#[derive(Debug)]
pub struct Part {
    members: Vec<Member>,
}

impl Part {
    /// Selects the members whose names are wanted.
    pub fn new(index: &Index, is_wanted: impl Fn(&str) -> bool) -> Self {
        let members = index.members().iter();
        Self {
            members: members
                .filter(|member| is_wanted(&member.name))
                .cloned()
                .collect(),
        }
    }

    /// Returns the ranges of the container to read. Adjacent members share a range.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for member in &self.members {
            let range = member.range();
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// Makes a container from the bytes of [`Part::ranges`], given with their positions.
    pub fn assemble(&self, ranges: &[(u64, &[u8])]) -> Result<Vec<u8>, PackError> {
        let unreadable = |error: std::io::Error| PackError::Unreadable(error.to_string());
        let mut container = ContainerWriter::new(Vec::new()).map_err(unreadable)?;
        for member in &self.members {
            let frame = ranges
                .iter()
                .find_map(|(offset, bytes)| slice(bytes, *offset, member.range()));
            let frame = frame
                .ok_or_else(|| PackError::Unreadable(format!("{}: it is cut off", member.name)))?;
            container.add_frame(member, frame).map_err(unreadable)?;
        }
        container.finish().map_err(unreadable)
    }
}

/// Returns the bytes of `range`, if they are all among `bytes`, which begin at `offset`.
fn slice(bytes: &[u8], offset: u64, range: Range<u64>) -> Option<&[u8]> {
    let start = usize::try_from(range.start.checked_sub(offset)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(offset)?).ok()?;
    bytes.get(start..end)
}
