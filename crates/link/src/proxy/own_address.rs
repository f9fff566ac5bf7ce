use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Whether an address belongs to this machine. Many servers carry their public address themselves;
/// what a firewall hides from the world behind it is open to connections from inside, and a
/// visited page must not come from inside.
///
/// Asks the kernel by binding: only own addresses can be bound. Where the kernel is told to let
/// any be bound (`ip_nonlocal_bind`), which one for documentation shows, there is no telling.
pub(super) fn is_own(ip: IpAddr) -> bool {
    const NOBODYS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let can_bind = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    can_bind(ip) && !can_bind(NOBODYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_ours_and_the_internet_is_not() {
        assert!(is_own(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own(IpAddr::from([8, 8, 8, 8])));
        assert!(!is_own(IpAddr::from([0x2a00, 0, 0, 0, 0, 0, 0, 1])));
    }
}
