//! Tests of the files in `deploy/`, as far as possible without a container engine, a cluster and
//! systemd.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(path)).expect(path)
}

#[test]
fn the_seccomp_profile_allows_only_what_it_lists() {
    let profile: Value = serde_json::from_str(&read("seccomp.json")).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    // Other runtimes ignore Docker's extensions, which would make conditional rules unconditional.
    let members: Vec<_> = profile.as_object().unwrap().keys().collect();
    assert_eq!(members, ["defaultAction", "defaultErrnoRet", "syscalls"]);
    for rule in profile["syscalls"].as_array().unwrap() {
        let rule = rule.as_object().unwrap();
        let members = ["comment", "names", "action", "errnoRet", "args"];
        assert!(
            rule.keys().all(|member| members.contains(&member.as_str())),
            "{rule:?}"
        );
        if rule["action"] != "SCMP_ACT_ALLOW" {
            continue;
        }
        for name in rule["names"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let never = [
                "acct",
                "add_key",
                "bpf",
                "clone3",
                "delete_module",
                "fanotify_init",
                "finit_module",
                "fsconfig",
                "fsmount",
                "fsopen",
                "init_module",
                "io_uring_enter",
                "io_uring_register",
                "io_uring_setup",
                "ioperm",
                "iopl",
                "kcmp",
                "kexec_file_load",
                "kexec_load",
                "keyctl",
                "mount",
                "mount_setattr",
                "move_mount",
                "open_by_handle_at",
                "open_tree",
                "perf_event_open",
                "pivot_root",
                "process_madvise",
                "quotactl",
                "reboot",
                "request_key",
                "setdomainname",
                "sethostname",
                "setns",
                "settimeofday",
                "swapoff",
                "swapon",
                "syslog",
                "umount2",
                "userfaultfd",
                "vhangup",
            ];
            assert!(!never.contains(&name), "{name}");
            let conditional = ["clone", "personality", "socket", "unshare"].contains(&name);
            assert_eq!(rule.contains_key("args"), conditional, "{name}");
        }
    }
}

#[test]
fn the_profile_allows_only_the_namespaces_that_are_needed() {
    let run = |arguments: &[&str]| {
        Command::new(root().join("tools/seccomp"))
            .arg(root().join("deploy/seccomp.json"))
            .args(arguments)
            .output()
            .expect("python3")
    };
    for (flags, expected) in [
        (&["--user", "--map-root-user", "--net"][..], true),
        (
            &["--user", "--map-root-user", "--net", "--pid", "--fork"][..],
            true,
        ),
        (&["--user", "--map-root-user", "--mount"][..], false),
        (&["--user", "--map-root-user", "--ipc"][..], false),
        (&["--user", "--map-root-user", "--uts"][..], false),
        (&["--user", "--map-root-user", "--cgroup"][..], false),
    ] {
        let output = run(&[&["unshare"], flags, &["true"]].concat());
        assert_eq!(output.status.success(), expected, "{flags:?}: {output:?}");
    }
    // The loopback interface can be enabled in a network namespace, by netlink as all tools do.
    let raise = "PATH=$PATH:/usr/sbin:/sbin ip link set lo up";
    let output = run(&[
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        raise,
    ]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_agent_shares_no_network_with_the_database() {
    let compose = read("compose.yaml");
    let networks = |service: &str| -> Vec<String> {
        let (_, rest) = compose.split_once(&format!("\n  {service}:\n")).unwrap();
        let line = rest
            .lines()
            .find_map(|line| line.strip_prefix("    networks: ["));
        let list = line.unwrap().trim_end_matches(']');
        list.split(',').map(|name| name.trim().to_owned()).collect()
    };
    let database = networks("postgres");
    assert!(
        networks("agent")
            .iter()
            .all(|name| !database.contains(name))
    );
    assert!(
        networks("server")
            .iter()
            .any(|name| database.contains(name))
    );
}

#[test]
fn units_limit_resources_and_allow_chromiums_sandbox() {
    for unit in [
        "systemd/plumbline.service",
        "systemd/plumbline-agent.service",
    ] {
        let text = read(unit);
        let value = |key: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        };
        assert_eq!(value("OOMPolicy"), Some("continue"), "{unit}");
        for key in ["MemoryMax", "TasksMax", "Delegate", "DelegateSubgroup"] {
            assert!(value(key).is_some(), "{unit}: {key}");
        }
        for key in [
            "MemoryDenyWriteExecute",
            "PrivateUsers",
            "ProtectControlGroups",
            "RestrictNamespaces",
            "SystemCallFilter",
        ] {
            assert_eq!(value(key), None, "{unit}: {key}");
        }
    }
}
