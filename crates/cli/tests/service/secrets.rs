//! The secrets of a client are neither stored nor shown: searched for in everything that a service
//! writes and returns.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_bundle::Bundle;
use plumbline_model::media::ReportMedia;
use plumbline_report::Format;
use serde_json::{Value, json};

use crate::client::Client;
use crate::login_site::CANARY;
use crate::server::{Server, completed, create_key, credits, plumbline};

/// A page that repeats its secrets in every way that a page can.
const PAGE: &str = r#"<!doctype html><html lang=en><title>Account</title><h1>Account</h1><p id=a></p><img id=b>
<label>Code <input id=c oninput="localStorage.typed = this.value; location.hash = this.value"></label>
<script>
  const stored = [localStorage.token, sessionStorage.tab, localStorage.typed];
  const secrets = [document.cookie, ...stored, window.flag].join(" ");
  document.getElementById("a").textContent = secrets;
  document.getElementById("a").className = encodeURIComponent(secrets);
  document.getElementById("b").alt = btoa("x" + encodeURIComponent(secrets));
  console.error(secrets, btoa(encodeURIComponent(secrets)));
  performance.mark(secrets);
  fetch("/echo?plain=" + encodeURIComponent(secrets) + "&base64=" + btoa(localStorage.token));
  fetch("/echo", { method: "POST", body: JSON.stringify({ secrets }) });
  setTimeout(() => { throw new Error(secrets); });
</script>"#;

/// A site that records the bodies that it receives, for webhooks.
struct Site {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, bodies) = (listener.local_addr().unwrap(), Arc::default());
        let shared = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bodies = Arc::clone(&shared);
                thread::spawn(move || respond(stream, &bodies));
            }
        });
        Self { address, bodies }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Waits until a webhook has arrived.
    fn webhook(&self) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let bodies = self.bodies.lock().unwrap().clone();
            if let Some(body) = bodies
                .into_iter()
                .find(|body| body.contains("audit.completed"))
            {
                return body;
            }
            assert!(Instant::now() < deadline, "no webhook");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn respond(mut stream: TcpStream, bodies: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut request = String::new();
    reader.read_line(&mut request).ok()?;
    let (mut length, mut cookie, mut token, mut is_basic) = (0, None, None, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "cookie" => cookie = Some(value.to_owned()),
            "x-token" => token = Some(value.to_owned()),
            "authorization" => is_basic = value.starts_with("Basic "),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    bodies.lock().unwrap().push(String::from_utf8(body).ok()?);
    let path = request.split(' ').nth(1)?;
    let (cookie, token) = (cookie.unwrap_or_default(), token.unwrap_or_default());
    let (status, headers, body) = if path == "/account" && is_basic && token.contains(CANARY) {
        // A redirect with the secret in its URL, and a session that is replaced.
        let headers = format!("Location: /home?token={}\r\n", token.replace(' ', "%20"));
        ("302 Found", headers, "")
    } else if path.starts_with("/home") {
        let headers =
            format!("Set-Cookie: rotated=7{CANARY}-session\r\nX-Echo: {token}; {cookie}\r\n");
        ("200 OK", headers, PAGE)
    } else {
        ("200 OK", String::new(), "<h1>Other</h1>")
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n{headers}\r\n{body}",
        body.len()
    )
    .ok()
}

fn state() -> Value {
    json!({
        "cookies": [{ "name": "session", "value": format!("1/{CANARY}+\"x\"=") }],
        "localStorage": { "token": format!("2 {{{CANARY}}}") },
        "sessionStorage": { "tab": format!("3<{CANARY}>\\\"") },
        "headers": [{ "name": "X-Token", "value": format!("Bearer 4{CANARY}") }],
        "basicAuth": { "username": "ada", "password": format!("5:{CANARY}?") },
        "script": format!("window.flag = '6{CANARY}';"),
    })
}

/// Returns a measured step that types a secret into the page, which puts it into its URL.
fn flow() -> Value {
    json!([{ "type": "fill", "selector": "#c", "value": format!("9 {CANARY}=ü") }])
}

/// Returns steps that fill a secret into the page, which keeps it.
fn steps() -> Value {
    json!([
        { "type": "goto", "url": "/home" },
        { "type": "fill", "selector": "#c", "value": format!("8 {CANARY}/é") },
    ])
}

/// Returns the canary as it can be found in a text, also in Base64 at each of three positions.
fn needles() -> Vec<String> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let base64 = |bytes: &[u8]| -> String {
        let bits: Vec<u8> = bytes
            .iter()
            .flat_map(|b| (0..8).rev().map(move |i| b >> i & 1))
            .collect();
        let digit = |six: &[u8]| DIGITS[six.iter().fold(0, |n, bit| n * 2 + usize::from(*bit))];
        bits.chunks_exact(6)
            .map(|six| char::from(digit(six)))
            .collect()
    };
    // A part that begins at a multiple of three bytes depends on no others.
    let mut needles = vec![CANARY.to_owned()];
    needles.extend((0..3).map(|skipped| base64(&CANARY.as_bytes()[skipped..skipped + 9])));
    needles
}

#[track_caller]
pub fn assert_no_canary(place: &str, content: &[u8]) {
    assert!(!content.is_empty(), "{place} is empty");
    for needle in needles() {
        let found = content
            .windows(needle.len())
            .position(|window| window == needle.as_bytes());
        if let Some(at) = found {
            let around = &content[at.saturating_sub(200)..content.len().min(at + 100)];
            panic!(
                "{place} contains {needle}: {}",
                String::from_utf8_lossy(around)
            );
        }
    }
}

pub fn search_files(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search_files(&path);
        } else {
            let content = fs::read(&path).unwrap();
            assert_no_canary(
                &path.display().to_string(),
                &[content, b"\n".to_vec()].concat(),
            );
        }
    }
}

/// Searches everything that the API returns of a completed audit, in all formats.
pub fn search_answers(client: &Client, tracking_id: &str, audit_id: &str) {
    for path in [
        format!("/v1/audit/status/{tracking_id}"),
        "/v1/audits".to_owned(),
        format!("/v1/audit/report/{audit_id}"),
    ] {
        assert_no_canary(&path, client.get(&path).json.to_string().as_bytes());
    }
    let report = client.get(&format!("/v1/audit/report/{audit_id}")).json;
    let is_profiled = !report["data"]["report"]["profile"].is_null();
    for format in Format::ALL {
        let path = format!("/v1/audit/report/{audit_id}?format={}", format.name());
        let export = client.get_bytes(&path);
        let status: &[u8] = if format != Format::Profile || is_profiled {
            b"HTTP/1.1 200"
        } else {
            b"HTTP/1.1 404"
        };
        assert!(export.starts_with(status), "{path}");
        assert_no_canary(&path, &export);
    }
}

/// Searches the stored evidence of an audit, unpacked.
pub fn search_evidence(data: &Path, audit_id: &str) -> Bundle {
    let packed = fs::read(data.join(format!("exhibits/{audit_id}-1.gz"))).unwrap();
    let media = ReportMedia::unpack(&packed).unwrap();
    assert_no_canary("media", &serde_json::to_vec(&media).unwrap());
    let packed = fs::read(data.join(format!("bundles/{audit_id}-1.gz"))).unwrap();
    let bundle = Bundle::unpack(&packed).unwrap();
    assert_no_canary("trace", &bundle.trace);
    assert_no_canary("log", &bundle.log);
    assert_no_canary("bundle", serde_json::to_string(&bundle).unwrap().as_bytes());
    bundle
}

fn search_bundle(packed: &[u8]) {
    let bundle = Bundle::unpack(packed).unwrap();
    assert_no_canary("trace", &bundle.trace);
    assert_no_canary("log", &bundle.log);
    assert_no_canary("bundle", serde_json::to_string(&bundle).unwrap().as_bytes());
    // The evidence is there, with the names and without the values.
    let log = String::from_utf8(bundle.log).unwrap();
    assert!(log.contains("session=[redacted]") && log.contains("rotated=[redacted]"));
}

#[test]
fn the_needles_find_the_canary_in_base64() {
    // "canarysecret" at three positions, as other programs encode it.
    for text in [
        "Y2FuYXJ5c2VjcmV0",
        "IGNhbmFyeXNlY3JldA==",
        "ICBjYW5hcnlzZWNyZXQ=",
    ] {
        assert!(
            needles().iter().any(|needle| text.contains(needle)),
            "{text}"
        );
    }
}

#[test]
fn the_secrets_of_a_client_are_nowhere_when_its_audit_has_ended() {
    let (data, site) = (tempfile::tempdir().unwrap(), Site::start());
    let key = create_key(data.path(), 5);
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = Server::start_logged(
        data.path(),
        &["--allow-target", "127.0.0.1"],
        File::create(&log).unwrap(),
    );
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let mut start = json!({
        "url": site.url("account"), "device": "desktop", "network": "wifiFast", "location": "us-tx",
        "state": state(), "expect": { "selector": "#a", "url": "*/home*" }, "webhook": site.url("hook"),
        "steps": steps(), "flow": flow(), "profile": true, "quick": true,
    });
    let tracking_id = client.post("/v1/audit/start", &start).json["trackingId"].clone();
    let status = completed(&client, tracking_id.as_str().unwrap());
    assert!(status["error"].is_null(), "{status}");
    let audit_id = status["auditId"].as_str().unwrap().to_owned();

    assert_no_canary("webhook", site.webhook().as_bytes());
    search_answers(&client, tracking_id.as_str().unwrap(), &audit_id);
    let report = client.get(&format!("/v1/audit/report/{audit_id}")).json;
    let names = &report["data"]["report"]["conditions"]["state"];
    assert_eq!(names["cookies"], json!(["session"]), "{report}");
    assert_eq!(
        (&names["headers"], &names["basicAuth"]),
        (&json!(["X-Token"]), &json!(true))
    );

    // The pictures of the steps are there, and their texts have no value.
    let steps = &report["data"]["report"]["conditions"]["steps"];
    assert_eq!(steps, &json!(["go to /home", "fill in `#c`"]), "{report}");
    let packed = fs::read(data.path().join(format!("exhibits/{audit_id}-1.gz"))).unwrap();
    let media = ReportMedia::unpack(&packed).unwrap();
    assert_eq!(media.steps.len(), 2, "{:?}", media.steps);
    assert!(
        media.steps[1].url.ends_with("#[redacted]"),
        "{}",
        media.steps[1].url
    );
    assert!(media.steps.iter().all(|step| step.picture.is_some()));
    assert_no_canary("media", &serde_json::to_vec(&media).unwrap());

    // So are those of the measured step, in which the page puts the value into its URL.
    let flow = &report["data"]["report"]["flow"];
    let measured = &flow["steps"][0];
    assert_eq!(measured["error"], json!(null), "{flow}");
    let url = measured["url"].as_str().unwrap();
    assert!(url.ends_with("#[redacted]"), "{flow}");
    assert!(media.flow[0].is_some());

    // The profiled load has the secrets in the URL of its document, and so in its trace.
    let profile = &report["data"]["report"]["profile"];
    assert_eq!(profile["error"], json!(null), "{profile}");
    assert!(
        profile["scriptMs"].as_f64().is_some_and(|ms| ms > 0.0),
        "{profile}"
    );
    let bundle = search_evidence(data.path(), &audit_id);
    let trace = String::from_utf8(bundle.profile_trace.unwrap()).unwrap();
    assert!(trace.contains("ProfileChunk") && trace.contains("token=[redacted]"));
    assert_no_canary("trace of the profile", trace.as_bytes());

    // A page that is not the expected one: its URL contains a secret, and the credit comes back.
    let left = credits(data.path(), &key);
    start["expect"] = json!({ "selector": "#none" });
    let tracking_id = client.post("/v1/audit/start", &start).json["trackingId"].clone();
    let status = completed(&client, tracking_id.as_str().unwrap());
    assert_eq!(status["error"]["code"], "PRECONDITION_FAILED", "{status}");
    let message = status["error"]["message"].as_str().unwrap();
    assert!(message.contains("no element matches `#none`"), "{message}");
    assert!(message.contains("/home?token="), "{message}");
    assert_no_canary("message", message.as_bytes());
    assert_eq!(credits(data.path(), &key), left);

    // Requests that are refused are not quoted.
    for (member, value) in [
        ("script", json!([CANARY])),
        ("headers", json!([{ "name": "Host", "value": CANARY }])),
    ] {
        start["state"] = json!({ member: value });
        let refused = client.post("/v1/audit/start", &start);
        assert_eq!(
            (refused.status, &refused.json["code"]),
            (406, &json!("INVALID_STATE"))
        );
        assert_no_canary(member, refused.json.to_string().as_bytes());
    }

    start["state"] = json!({});
    start["flow"] = json!([{ "type": "fill", "selector": "#c", "value": [CANARY] }]);
    let refused = client.post("/v1/audit/start", &start);
    assert_eq!(refused.json["field"], "flow", "{:?}", refused.json);
    assert_no_canary("flow", refused.json.to_string().as_bytes());
    start.as_object_mut().unwrap().remove("flow");
    start["steps"] = json!([{ "type": "fill", "selector": "#c", "value": [CANARY] }]);
    let refused = client.post("/v1/audit/start", &start);
    assert_eq!(refused.json["code"], "INVALID_STEPS", "{:?}", refused.json);
    assert_no_canary("steps", refused.json.to_string().as_bytes());

    // Stopping writes the write-ahead log into the file.
    assert_eq!(server.stop(), Some(0));
    search_bundle(&fs::read(data.path().join(format!("bundles/{audit_id}-1.gz"))).unwrap());
    search_files(data.path());
    search_files(logs.path());
}

#[test]
fn the_command_writes_no_secret_and_fails_with_exit_code_1_if_the_page_is_another() {
    let (directory, site) = (tempfile::tempdir().unwrap(), Site::start());
    let file = directory.path().join("state.json");
    fs::write(
        &file,
        json!({ "state": state(), "steps": steps() }).to_string(),
    )
    .unwrap();
    let bundle = directory.path().join("page.bundle");
    let url = site.url("account");
    let audit = |args: &[&str]| {
        let mut command = plumbline();
        command.args([
            "audit",
            &url,
            "--network",
            "wifiFast",
            "--device",
            "desktop",
            "--quick",
            "--state",
        ]);
        command.arg(&file).args(args).output().unwrap()
    };
    let output = audit(&[
        "--expect-selector",
        "#a",
        "--json",
        "--bundle",
        bundle.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_no_canary("output", &output.stdout);
    search_bundle(&fs::read(&bundle).unwrap());
    let output = audit(&["--expect-text", "Sign out"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("PRECONDITION_FAILED"), "{text}");
    assert!(text.contains("does not show the text `Sign out`"), "{text}");
    assert_no_canary("output", text.as_bytes());
}
