//! The steps of the child between `fork` and `execve`.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    bind, listen, sendmsg, socket_with,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior};
use rustix::thread::UnshareFlags;

use crate::{Ids, LISTENER, netlink};

/// Number of connections that may wait to be accepted. A page can open hundreds at the same time.
const BACKLOG: i32 = 1024;

/// The steps of the child, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildStep {
    Unshare = 1,
    MapIds,
    SetLoopbackUp,
    Listen,
}

impl ChildStep {
    const ALL: [Self; 4] = [
        Self::Unshare,
        Self::MapIds,
        Self::SetLoopbackUp,
        Self::Listen,
    ];

    /// Returns the failed step that a message to the parent contains, if any.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Unshare => "the kernel does not permit user and network namespaces",
            Self::MapIds => "failed to map the ids of the user namespace",
            Self::SetLoopbackUp => "failed to set the loopback interface of the namespace up",
            Self::Listen => "failed to open the listener in the namespace",
        }
    }
}

/// The byte in the message to the parent if no step failed.
const DONE: u8 = 0;

/// The contents of `/proc/self/uid_map` and `/proc/self/gid_map`.
pub(crate) struct IdMaps {
    uid: String,
    gid: String,
}

impl IdMaps {
    /// Maps the ids to themselves, and no others.
    pub(crate) fn identity(ids: Ids) -> Self {
        Self {
            uid: format!("{0} {0} 1", ids.uid),
            gid: format!("{0} {0} 1", ids.gid),
        }
    }
}

/// Moves this process into new namespaces and sends the listener to the parent. If a step fails, it
/// is sent instead.
pub(crate) fn isolate(maps: &IdMaps, parent: &OwnedFd) -> io::Result<()> {
    let result = unshare()
        .map_err(|errno| (ChildStep::Unshare, errno))
        .and_then(|()| map_ids(maps).map_err(|errno| (ChildStep::MapIds, errno)))
        .and_then(|()| {
            netlink::set_loopback_up().map_err(|errno| (ChildStep::SetLoopbackUp, errno))
        })
        .and_then(|()| open_listener().map_err(|errno| (ChildStep::Listen, errno)));
    match result {
        Ok(listener) => Ok(send(parent, DONE, Some(listener.as_fd()))?),
        Err((step, errno)) => {
            send(parent, step as u8, None)?;
            Err(errno.into())
        }
    }
}

/// Limits the memory of this process and of those that it will start.
pub(crate) fn limit(process_bytes: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(process_bytes),
        maximum: Some(process_bytes),
    };
    rustix::process::setrlimit(Resource::Data, limit)?;
    if let Some(members) = cgroup {
        // A process that writes 0 joins the cgroup.
        rustix::io::write(members, b"0")?;
    }
    Ok(())
}

fn unshare() -> Result<(), Errno> {
    // A process that changed its user is not dumpable, and the files of such a process in `/proc`
    // belong to root: its id maps could not be written.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    #[expect(unsafe_code, reason = "`unshare` has no safe form")]
    // SAFETY: the file descriptor table is not unshared.
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
    }
}

fn map_ids(maps: &IdMaps) -> Result<(), Errno> {
    // Without this an unprivileged process may not map its group.
    write_once(c"/proc/self/setgroups", b"deny")?;
    write_once(c"/proc/self/uid_map", maps.uid.as_bytes())?;
    write_once(c"/proc/self/gid_map", maps.gid.as_bytes())
}

fn write_once(path: &std::ffi::CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // These files accept their contents in one write or not at all.
    rustix::io::write(&file, text).map(drop)
}

fn open_listener() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&listener, &LISTENER)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn send(parent: &OwnedFd, byte: u8, listener: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let fds: &[BorrowedFd<'_>] = listener.as_slice();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let bytes = [byte];
    sendmsg(
        parent,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::empty(),
    )
    .map(drop)
}
