//! Starts a program in its own user and network namespace.
//!
//! The network namespace contains nothing but a loopback interface, and on it one TCP listener
//! that is passed to this process. Whatever the program does, its packets can reach that listener
//! and nothing else; this does not depend on flags of the program. The program retains its user and
//! group ids and gains no capabilities, because the namespace maps exactly these two ids and
//! `execve` drops capabilities of users other than root.
//!
//! The memory of a program can be limited as well ([`limit_on_spawn`]).
//!
//! The steps between `fork` and `execve` are in `child`; they make system calls only, since
//! another thread of the parent may have held the allocator's lock at the `fork`.

mod cgroup;
mod child;
mod netlink;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

pub use cgroup::{Cgroup, CgroupParent};
use child::{ChildStep, IdMaps};

/// The address of the listener inside the namespace. It is the only listener there, so its port is
/// fixed.
pub const LISTENER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);

/// The user and group that the program runs as, as ids of the initial namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
}

impl Ids {
    /// Returns the ids of this process.
    pub fn own() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }
}

/// An error from creating the namespaces, with the step that failed.
#[derive(Debug)]
pub struct IsolationError {
    step: Option<ChildStep>,
    source: io::Error,
}

impl fmt::Display for IsolationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{}: {}", step.description(), self.source),
            None => self.source.fmt(f),
        }
    }
}

impl std::error::Error for IsolationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<io::Error> for IsolationError {
    fn from(source: io::Error) -> Self {
        Self { step: None, source }
    }
}

impl From<Errno> for IsolationError {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

/// The parent's end of a command that enters namespaces when it is spawned.
///
/// Spawn the command, drop it, and call [`PendingListener::listener`].
#[derive(Debug)]
pub struct PendingListener {
    from_child: OwnedFd,
}

/// Makes the command enter its own namespaces before it executes its program. `ids` are the ids of
/// the program, so [`CommandExt::uid`] and [`CommandExt::gid`] must agree with them.
///
/// Call this before anything that maps file descriptors of the child.
pub fn enter_on_spawn(command: &mut Command, ids: Ids) -> Result<PendingListener, IsolationError> {
    let (from_child, to_parent) = message_pair()?;
    let maps = IdMaps::identity(ids);
    before_exec(command, move || child::isolate(&maps, &to_parent));
    Ok(PendingListener { from_child })
}

/// Makes the command limit its memory before it executes its program: each process to
/// `process_bytes` of private memory, and all of them together by the cgroup, if there is one.
pub fn limit_on_spawn(
    command: &mut Command,
    process_bytes: u64,
    cgroup: Option<&Cgroup>,
) -> io::Result<()> {
    let members = cgroup.map(Cgroup::members).transpose()?;
    before_exec(command, move || {
        child::limit(process_bytes, members.as_ref().map(|file| file.as_fd()))
    });
    Ok(())
}

/// Checks that this machine permits a process with these ids to create the namespaces. No program
/// is executed.
pub fn probe(ids: Ids) -> Result<(), IsolationError> {
    // The error that distinguishes a complete probe from a failed step.
    const DONE: Errno = Errno::CANCELED;
    let (from_child, to_parent) = message_pair()?;
    let maps = IdMaps::identity(ids);
    // The name does not matter: the child exits before it would be executed.
    let mut command = Command::new("probe");
    if rustix::process::geteuid().is_root() {
        command.uid(ids.uid).gid(ids.gid);
    }
    before_exec(&mut command, move || {
        child::isolate(&maps, &to_parent)?;
        Err(DONE.into())
    });
    let result = command.spawn();
    drop(command);
    match result {
        Err(error) if error.raw_os_error() == Some(DONE.raw_os_error()) => {
            PendingListener { from_child }.listener().map(drop)
        }
        Err(error) => Err(PendingListener { from_child }.explain(error)),
        Ok(mut child) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(io::Error::other("the probe was executed").into())
        }
    }
}

impl PendingListener {
    /// Returns the listener that the started program has inside its namespace, at [`LISTENER`].
    pub fn listener(self) -> Result<TcpListener, IsolationError> {
        match self.receive()? {
            (_, Some(listener)) => Ok(TcpListener::from(listener)),
            _ => Err(io::Error::other("the listener was not received").into()),
        }
    }

    /// Adds the failed step to the error of [`Command::spawn`].
    pub fn explain(self, source: io::Error) -> IsolationError {
        let step = self.receive().ok().and_then(|(step, _)| step);
        IsolationError { step, source }
    }

    /// Receives the child's message without waiting: the child sends it before it executes the
    /// program, or never.
    fn receive(&self) -> Result<(Option<ChildStep>, Option<OwnedFd>), IsolationError> {
        let mut byte = [0_u8; 1];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.from_child,
            &mut [io::IoSliceMut::new(&mut byte)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        )?;
        let listener = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        let step = (received.bytes > 0)
            .then(|| ChildStep::from_byte(byte[0]))
            .flatten();
        Ok((step, listener))
    }
}

fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn before_exec<F>(command: &mut Command, run: F)
where
    F: FnMut() -> io::Result<()> + Send + Sync + 'static,
{
    #[expect(unsafe_code, reason = "`pre_exec` has no safe form")]
    // SAFETY: the closures given here call functions of `child`, which make system calls on memory
    // that was allocated before the fork, and neither allocate nor take locks.
    unsafe {
        command.pre_exec(run);
    }
}

#[cfg(test)]
mod tests;
