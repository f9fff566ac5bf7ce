//! Tests of settings, keys and the start of a server.

use std::path::Path;
use std::process::Stdio;

use crate::client::Client;
use crate::server::{Server, create_key, plumbline};

fn status_of_start(server: &Server, data: &Path, url: &str) -> u16 {
    let client = Client {
        address: server.address,
        key: create_key(data, 1),
    };
    client.start(url).status
}

#[test]
fn flags_take_precedence_over_the_environment_and_both_over_the_file() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("plumbline.toml");
    let text =
        "slots = 0\nlisten = \"127.0.0.1:1\"\nallow-target = [\"10.1.2.3\"]\nlog = \"warn\"\n";
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];

    // The server cannot listen on port 1, so the flag takes precedence over the file.
    let by_file = Server::start(data.path(), &config);
    assert_eq!(
        status_of_start(&by_file, data.path(), "http://10.1.2.3/"),
        200
    );
    assert_eq!(
        status_of_start(&by_file, data.path(), "http://10.9.9.9/"),
        406
    );
    by_file.stop();

    let by_environment = Server::start_with(
        data.path(),
        &config,
        &[("PLUMBLINE_ALLOW_TARGET", "10.9.9.9,10.8.0.0/16")],
    );
    assert_eq!(
        status_of_start(&by_environment, data.path(), "http://10.9.9.9/"),
        200
    );
    assert_eq!(
        status_of_start(&by_environment, data.path(), "http://10.8.7.6/"),
        200
    );
    assert_eq!(
        status_of_start(&by_environment, data.path(), "http://10.1.2.3/"),
        406
    );
    by_environment.stop();
}

#[test]
fn denied_targets_are_refused_however_they_are_set_and_even_if_allowed() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("plumbline.toml");
    let text = "slots = 0\nallow-target = [\"10.0.0.0/8\"]\ndeny-target = [\"10.1.0.0/16\"]\n";
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let statuses = |server: Server| {
        let urls = [
            "10.1.2.3",
            "10.2.2.3",
            "denied.example.com",
            "a.denied.example.com",
        ];
        let statuses =
            urls.map(|host| status_of_start(&server, data.path(), &format!("http://{host}/")));
        server.stop();
        statuses
    };
    let by_file = Server::start(data.path(), &config);
    assert_eq!(statuses(by_file), [406, 200, 200, 200]);
    let environment = [("PLUMBLINE_DENY_TARGET", "10.2.2.0/24,denied.example.com")];
    let by_environment = Server::start_with(data.path(), &config, &environment);
    assert_eq!(statuses(by_environment), [200, 406, 406, 406]);
    let flags = [
        "--deny-target",
        "10.1.2.3",
        "--deny-target",
        "a.denied.example.com",
    ];
    let flags = [&config[..], &flags[..]].concat();
    let by_flags = Server::start_with(data.path(), &flags, &environment);
    assert_eq!(statuses(by_flags), [406, 200, 200, 406]);
}

#[test]
fn an_unknown_key_in_the_file_is_named() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("plumbline.toml");
    std::fs::write(&file, "allow-targets = []\n").unwrap();
    let output = plumbline()
        .args(["serve", "--config", file.to_str().unwrap(), "--data"])
        .arg(data.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("allow-targets"), "{stderr}");
}

#[test]
fn a_second_server_on_the_same_data_directory_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let first = Server::start(data.path(), &["--slots", "0"]);
    let second = plumbline()
        .args(["serve", "--listen", "127.0.0.1:0", "--slots", "0", "--data"])
        .arg(data.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert!(stderr.contains("another server is using"), "{stderr}");
    assert_eq!(first.stop(), Some(0));
}

#[test]
fn keys_are_created_listed_and_revoked_while_a_server_is_running() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--slots", "0"]);
    let key = create_key(data.path(), 1);
    let id = key.split('_').nth(1).unwrap().to_owned();
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    assert_eq!(client.get("/v1/audit/status/none").status, 404);
    let run = |args: &[&str]| {
        let output = plumbline()
            .args(args)
            .arg("--data")
            .arg(data.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["credits", "add", &id, "41"]).contains("has 42 credits"));
    assert!(run(&["credits", "add", &id, "-100"]).contains("has 0 credits"));
    // Two browsers are signed in with the key.
    let file = rusqlite::Connection::open(data.path().join("plumbline.db")).unwrap();
    for secret in [1_u8, 2] {
        let sql = "INSERT INTO sessions (digest, key_id, expires_at) VALUES (?, ?, ?)";
        file.execute(sql, rusqlite::params![[secret; 32], id, i64::MAX])
            .unwrap();
    }
    assert!(run(&["keys", "end-sessions", &key]).contains("ended 2 sessions"));
    assert!(run(&["keys", "end-sessions", "--all"]).contains("ended 0 sessions"));
    for wrong in [&["nobody"][..], &[], &["--all", "nobody"]] {
        let mut command = plumbline();
        command.args(["keys", "end-sessions"]).args(wrong);
        let refused = command.arg("--data").arg(data.path()).output().unwrap();
        assert!(!refused.status.success(), "{refused:?}");
    }
    run(&["keys", "revoke", &id]);
    assert_eq!(client.get("/v1/audit/status/none").status, 401);
    let listed = run(&["keys", "list"]);
    assert!(listed.contains("revoked"), "{listed}");
    assert!(
        !listed.contains(key.split('_').nth(2).unwrap()),
        "the secret is shown once only"
    );
}

#[test]
fn invalid_settings_are_refused_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let nothing = data.path().join("nothing.pem");
    let nothing = nothing.to_str().unwrap();
    for (flags, code, expected) in [
        (
            vec!["--tls-cert", nothing],
            2,
            "--tls-cert requires --tls-key",
        ),
        (
            vec!["--tls-key", nothing],
            2,
            "--tls-key requires --tls-cert",
        ),
        (
            vec!["--tls-cert", nothing, "--tls-key", nothing],
            1,
            "nothing.pem: No such file",
        ),
        (vec!["--metrics-token", "short"], 2, "at least 16"),
    ] {
        let output = plumbline()
            .args(["serve", "--listen", "127.0.0.1:0", "--slots", "0"])
            .args(&flags)
            .arg("--data")
            .arg(data.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
