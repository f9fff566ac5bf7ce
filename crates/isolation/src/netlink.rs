//! Sets the loopback interface of the current network namespace up.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Index of the loopback interface, which is the first of every network namespace.
const LOOPBACK_INDEX: i32 = 1;

// From <linux/netlink.h>, <linux/rtnetlink.h> and <linux/if.h>.
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
const HEADER_BYTES: usize = 16;

pub(crate) fn set_loopback_up() -> Result<(), Errno> {
    // The protocol `NETLINK_ROUTE` is 0, the default.
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    // An unbound netlink socket sends to the kernel.
    send(&socket, &request(), SendFlags::empty())?;
    let mut response = [0_u8; 256];
    let (bytes, _) = recv(&socket, &mut response, RecvFlags::empty())?;
    check_acknowledgement(response.get(..bytes).unwrap_or_default())
}

/// Returns a `nlmsghdr` with an `ifinfomsg` that sets the flag `IFF_UP`.
fn request() -> [u8; 32] {
    let mut message = [0; 32];
    message[..4].copy_from_slice(&32_u32.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message[20..24].copy_from_slice(&LOOPBACK_INDEX.to_ne_bytes());
    message[24..28].copy_from_slice(&IFF_UP.to_ne_bytes());
    message[28..32].copy_from_slice(&IFF_UP.to_ne_bytes());
    message
}

/// Checks that a response is an acknowledgement, which is an error message with the error 0.
fn check_acknowledgement(response: &[u8]) -> Result<(), Errno> {
    let kind = response.get(4..6).and_then(|bytes| bytes.try_into().ok());
    let error = response
        .get(HEADER_BYTES..HEADER_BYTES + 4)
        .and_then(|bytes| bytes.try_into().ok());
    match (kind.map(u16::from_ne_bytes), error.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(negative)) => Err(Errno::from_raw_os_error(-negative)),
        _ => Err(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(kind: u16, error: i32) -> Vec<u8> {
        let mut message = vec![0; HEADER_BYTES + 4];
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER_BYTES..].copy_from_slice(&error.to_ne_bytes());
        message
    }

    #[test]
    fn a_response_is_an_acknowledgement_an_error_or_invalid() {
        assert_eq!(check_acknowledgement(&response(NLMSG_ERROR, 0)), Ok(()));
        assert_eq!(
            check_acknowledgement(&response(NLMSG_ERROR, -1)),
            Err(Errno::PERM)
        );
        assert_eq!(
            check_acknowledgement(&response(RTM_NEWLINK, 0)),
            Err(Errno::PROTO)
        );
        assert_eq!(check_acknowledgement(&[]), Err(Errno::PROTO));
    }
}
