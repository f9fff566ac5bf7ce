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

/// How many connections may wait to be accepted. A page can open hundreds at once.
const BACKLOG: i32 = 1024;

/// What the child does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Unshare = 1,
    MapIds,
    RaiseLoopback,
    Listen,
}

impl Step {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Unshare => "the kernel does not permit user and network namespaces",
            Self::MapIds => "the ids of the user namespace could not be mapped",
            Self::RaiseLoopback => "the loopback interface of the namespace could not be raised",
            Self::Listen => "the listener in the namespace could not be opened",
        }
    }
}

/// The byte that goes with the message to the parent: which step failed, or none.
pub(crate) struct Report;

impl Report {
    const DONE: u8 = 0;

    pub(crate) fn read(byte: u8) -> Option<Step> {
        [
            Step::Unshare,
            Step::MapIds,
            Step::RaiseLoopback,
            Step::Listen,
        ]
        .into_iter()
        .find(|step| *step as u8 == byte)
    }
}

/// The texts for `/proc/self/uid_map` and `/proc/self/gid_map`.
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

/// Moves this process into new namespaces, and hands the listener to the parent. If a step fails,
/// the parent learns which.
pub(crate) fn isolate(maps: &IdMaps, parent: &OwnedFd) -> io::Result<()> {
    let isolated = unshare()
        .map_err(|errno| (Step::Unshare, errno))
        .and_then(|()| map_ids(maps).map_err(|errno| (Step::MapIds, errno)))
        .and_then(|()| netlink::raise_loopback().map_err(|errno| (Step::RaiseLoopback, errno)))
        .and_then(|()| open_listener().map_err(|errno| (Step::Listen, errno)));
    match isolated {
        Ok(listener) => Ok(send(parent, Report::DONE, Some(listener.as_fd()))?),
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
        // The process that writes 0 joins.
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
    // These files take a text in one piece or not at all.
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
