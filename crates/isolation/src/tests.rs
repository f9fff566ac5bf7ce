use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::Stdio;

use super::*;

/// Returns the ids of an unprivileged user, whichever user runs the tests.
fn ids() -> Ids {
    if rustix::process::geteuid().is_root() {
        Ids {
            uid: 65534,
            gid: 65534,
        }
    } else {
        Ids::own()
    }
}

/// Runs a shell script in its own namespaces and returns its output and the listener.
fn run(script: &str) -> (String, TcpListener) {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdout(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        command.uid(ids().uid).gid(ids().gid);
    }
    let pending = enter_on_spawn(&mut command, ids()).unwrap();
    let mut child = command.spawn().unwrap();
    drop(command);
    let listener = pending.listener().unwrap();
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    child.wait().unwrap();
    (output, listener)
}

#[test]
fn this_machine_permits_the_namespaces_that_chromiums_sandbox_needs() {
    probe(ids()).unwrap();
}

#[test]
fn the_program_retains_its_user_and_has_no_capabilities() {
    let (output, _) = run("id -u; id -g; grep CapEff /proc/self/status");
    let Ids { uid, gid } = ids();
    assert_eq!(output, format!("{uid}\n{gid}\nCapEff:\t0000000000000000\n"));
}

#[test]
fn the_program_sees_no_interface_but_loopback() {
    let (output, _) = run("tail -n +3 /proc/net/dev | cut -d: -f1");
    assert_eq!(output.trim(), "lo");
}

#[test]
fn packets_of_the_program_to_addresses_of_this_machine_do_not_arrive() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ports = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let script = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{}) 2>/dev/null && echo connected
         echo datagram > /dev/udp/127.0.0.1/{}
         echo done",
        ports.0, ports.1
    );
    let (output, _) = run(&script);
    assert_eq!(output, "done\n");
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err());
    assert!(udp.recv(&mut [0; 16]).is_err());
}

#[test]
fn the_program_can_connect_to_the_listener_of_this_process() {
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            "exec 3<>/dev/tcp/127.0.0.1/1080; read -u 3 line; echo $line",
        ])
        .stdout(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        command.uid(ids().uid).gid(ids().gid);
    }
    let pending = enter_on_spawn(&mut command, ids()).unwrap();
    let mut child = command.spawn().unwrap();
    drop(command);
    let listener = pending.listener().unwrap();
    listener.set_nonblocking(false).unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    connection.write_all(b"hello\n").unwrap();
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    child.wait().unwrap();
    assert_eq!(output, "hello\n");
}

#[test]
fn the_error_names_the_failed_step() {
    // Ids that this process may not map.
    let others = Ids { uid: 12, gid: 12 };
    let mut command = Command::new("true");
    if rustix::process::geteuid().is_root() {
        command.uid(ids().uid).gid(ids().gid);
    }
    let pending = enter_on_spawn(&mut command, others).unwrap();
    let error = command.spawn().unwrap_err();
    drop(command);
    let text = pending.explain(error).to_string();
    assert!(text.starts_with("failed to map the ids"), "{text}");
}

#[test]
fn a_process_gets_no_more_private_memory_than_its_limit() {
    let mut command = Command::new("python3");
    command
        .args(["-c", "bytearray(400 << 20)"])
        .stderr(Stdio::null());
    limit_on_spawn(&mut command, 300 << 20, None).unwrap();
    assert!(!command.status().unwrap().success());
    let mut command = Command::new("python3");
    command.args(["-c", "bytearray(200 << 20)"]);
    limit_on_spawn(&mut command, 300 << 20, None).unwrap();
    assert!(command.status().unwrap().success());
}

/// Cgroups can be created by root, or below a unit that systemd delegates; elsewhere this test does
/// nothing.
#[test]
fn the_processes_of_a_cgroup_together_get_no_more_memory_than_its_limit() {
    let Ok(parent) = CgroupParent::find() else {
        return;
    };
    let cgroup = parent.create(100 << 20).unwrap();
    let mut command = Command::new("python3");
    let script = "import os
first = bytearray(60 << 20)
if os.fork() == 0:
    second = bytearray(60 << 20)
else:
    os.wait()";
    command.args(["-c", script]);
    limit_on_spawn(&mut command, 1 << 30, Some(&cgroup)).unwrap();
    assert!(!cgroup.was_exceeded());
    let _ = command.status().unwrap();
    assert!(cgroup.was_exceeded());
}
