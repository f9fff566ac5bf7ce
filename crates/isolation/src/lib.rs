//! Starts a program in a user and network namespace of its own.
//!
//! The network namespace contains nothing but a loopback interface, and on it one TCP listener
//! that is handed to this process. Whatever the program does, its packets can reach that listener
//! and nothing else: no flag of the program is involved. The program keeps its user and group ids,
//! and gains no capabilities, because the namespace maps exactly these two ids and `execve` drops
//! capabilities of users other than root.
//!
//! A program can also be given limits on its memory ([`limit_on_spawn`]).
//!
//! The steps between `fork` and `execve` are in [`child`]; they make system calls only, since
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
use child::{IdMaps, Report, Step};

/// The address of the listener inside the namespace. It is the only one there, so the port is fixed.
pub const LISTENER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);

/// The user and group that the program runs as, as the initial namespace counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
}

impl Ids {
    /// The ids of this process.
    pub fn own() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }
}

/// Explains why a namespace could not be made.
#[derive(Debug)]
pub struct Error {
    step: Option<Step>,
    source: io::Error,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{}: {}", step.description(), self.source),
            None => self.source.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Self { step: None, source }
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

/// The parent's end of a program that was told to enter a namespace when it starts.
///
/// Spawn the command, drop it, and call [`Pending::listener`].
#[derive(Debug)]
pub struct Pending {
    from_child: OwnedFd,
}

/// Makes the command enter namespaces of its own before it executes its program. `ids` are those
/// that the program will have, so [`CommandExt::uid`] and [`CommandExt::gid`] must agree with them.
///
/// Call this before anything that moves file descriptors of the child.
pub fn enter_on_spawn(command: &mut Command, ids: Ids) -> Result<Pending, Error> {
    let (from_child, to_parent) = message_pair()?;
    let maps = IdMaps::identity(ids);
    before_exec(command, move || child::isolate(&maps, &to_parent));
    Ok(Pending { from_child })
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

/// Checks that this machine lets a process with these ids make the namespaces. No program is
/// executed.
pub fn probe(ids: Ids) -> Result<(), Error> {
    // The value that tells a complete probe from a failed step.
    const DONE: Errno = Errno::CANCELED;
    let (from_child, to_parent) = message_pair()?;
    let maps = IdMaps::identity(ids);
    // The name does not matter: the child ends before it would be executed.
    let mut command = Command::new("probe");
    if rustix::process::geteuid().is_root() {
        command.uid(ids.uid).gid(ids.gid);
    }
    before_exec(&mut command, move || {
        child::isolate(&maps, &to_parent)?;
        Err(DONE.into())
    });
    let spawned = command.spawn();
    drop(command);
    match spawned {
        Err(error) if error.raw_os_error() == Some(DONE.raw_os_error()) => {
            Pending { from_child }.listener().map(drop)
        }
        Err(error) => Err(Pending { from_child }.explain(error)),
        Ok(mut child) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(io::Error::other("the probe was executed").into())
        }
    }
}

impl Pending {
    /// Returns the listener that the started program has inside its namespace, at [`LISTENER`].
    pub fn listener(self) -> Result<TcpListener, Error> {
        match self.receive()? {
            (_, Some(listener)) => Ok(TcpListener::from(listener)),
            _ => Err(io::Error::other("the listener was not handed over").into()),
        }
    }

    /// Adds the step that failed to the error of [`Command::spawn`].
    pub fn explain(self, source: io::Error) -> Error {
        let step = self.receive().ok().and_then(|(step, _)| step);
        Error { step, source }
    }

    /// The child sent its message before it executed the program, or it will never send one.
    fn receive(&self) -> Result<(Option<Step>, Option<OwnedFd>), Error> {
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
            .then(|| Report::read(byte[0]))
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
