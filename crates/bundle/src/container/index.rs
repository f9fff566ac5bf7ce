//! The index of a container: names and sizes of its members.

use std::io::{self, Write};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::PackError;

/// The version of containers that is written. Readers refuse newer ones.
const VERSION: u32 = 1;

pub(super) const SKIPPABLE_FRAME: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();
pub(super) const MAGIC: [u8; 8] = *b"PLUMBLN1";
/// The frame at the beginning.
pub(super) const HEADER_BYTES: usize = SKIPPABLE_FRAME.len() + 4 + MAGIC.len();
/// The length of the index and the magic bytes, at the very end.
const TRAILER_BYTES: usize = 4 + MAGIC.len();

/// The length of the end of a container that always contains its index.
pub const TAIL_BYTES: usize = 64 << 10;

/// The maximum number of members; a bundle has about fifty.
const MAX_MEMBERS: usize = 512;

/// The sizes that a container may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of one member.
    pub member_bytes: u64,
    /// The maximum size of all members together.
    pub total_bytes: u64,
}

/// A member as the index lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub name: String,
    /// The size of the frame.
    pub packed_bytes: u64,
    /// The size of the content.
    pub bytes: u64,
    /// The position of the frame, which follows from the sizes of those before it.
    #[serde(skip)]
    offset: u64,
}

impl Member {
    /// The position of the frame in the container.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.packed_bytes
    }
}

/// The members of a container in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    version: u32,
    members: Vec<Member>,
    /// The end of the last member, where the frame of the index begins.
    #[serde(skip)]
    end: u64,
    /// The size of the frame of the index.
    #[serde(skip)]
    frame_bytes: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            version: VERSION,
            members: Vec::new(),
            end: HEADER_BYTES as u64,
            frame_bytes: 0,
        }
    }
}

/// The version, parsed first so that a newer one is reported instead of misread.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Index {
    /// Reads the index from the end of a container, of which [`TAIL_BYTES`] are enough. Returns
    /// `None` if the bytes do not end like a container.
    pub fn from_tail(tail: &[u8]) -> Result<Option<Self>, PackError> {
        let Some((rest, magic)) = tail.split_last_chunk::<{ MAGIC.len() }>() else {
            return Ok(None);
        };
        if *magic != MAGIC {
            return Ok(None);
        }
        let invalid = || PackError::Unreadable("its index is invalid".to_owned());
        let (rest, length) = rest.split_last_chunk::<4>().ok_or_else(invalid)?;
        let length = u32::from_le_bytes(*length) as usize;
        let start = rest.len().checked_sub(length).ok_or_else(invalid)?;
        let text = &rest[start..];
        let Version { version } = serde_json::from_slice(text).map_err(|_| invalid())?;
        if version > VERSION {
            return Err(PackError::Newer {
                found: version,
                supported: VERSION,
            });
        }
        let mut index: Self = serde_json::from_slice(text).map_err(|_| invalid())?;
        if index.members.len() > MAX_MEMBERS {
            return Err(invalid());
        }
        let mut offset = HEADER_BYTES as u64;
        for member in &mut index.members {
            member.offset = offset;
            offset = offset
                .checked_add(member.packed_bytes)
                .ok_or_else(invalid)?;
        }
        index.end = offset;
        index.frame_bytes = (SKIPPABLE_FRAME.len() + 4 + length + TRAILER_BYTES) as u64;
        offset.checked_add(index.frame_bytes).ok_or_else(invalid)?;
        Ok(Some(index))
    }

    /// The members in the order in which they were written.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The size of the whole container.
    pub fn container_bytes(&self) -> u64 {
        self.end + self.frame_bytes
    }

    /// Fails if the members are larger than `limits`.
    pub(super) fn check(&self, limits: Limits) -> Result<(), PackError> {
        let largest = self.members.iter().map(|member| member.bytes).max();
        if largest.is_some_and(|bytes| bytes > limits.member_bytes) {
            return Err(PackError::TooLarge {
                max: limits.member_bytes,
            });
        }
        let sizes = self.members.iter().map(|member| member.bytes);
        let total = sizes.fold(0, u64::saturating_add);
        if total > limits.total_bytes {
            return Err(PackError::TooLarge {
                max: limits.total_bytes,
            });
        }
        Ok(())
    }

    /// Adds a member after the others.
    pub(super) fn push(&mut self, name: &str, packed_bytes: u64, bytes: u64) {
        self.members.push(Member {
            name: name.to_owned(),
            packed_bytes,
            bytes,
            offset: self.end,
        });
        self.end += packed_bytes;
    }

    /// Writes the frame of the index.
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let frame_bytes = text.len() + TRAILER_BYTES;
        if self.members.len() > MAX_MEMBERS || frame_bytes > TAIL_BYTES / 2 {
            return Err(io::Error::other("the container has too many members"));
        }
        output.write_all(&SKIPPABLE_FRAME)?;
        output.write_all(&(frame_bytes as u32).to_le_bytes())?;
        output.write_all(&text)?;
        output.write_all(&(text.len() as u32).to_le_bytes())?;
        output.write_all(&MAGIC)
    }
}
