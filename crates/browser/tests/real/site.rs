//! A small web server on loopback that serves fixture pages and faulty responses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub struct Site {
    address: SocketAddr,
    records: Arc<Records>,
    server: tokio::task::JoinHandle<()>,
}

/// A record of the requests to the server.
#[derive(Default)]
struct Records {
    reports: Mutex<Vec<Value>>,
    paths: Mutex<Vec<String>>,
    /// The path and the headers of each request; names are in lower case.
    headers: Mutex<Vec<(String, BTreeMap<String, String>)>>,
    /// Files in addition to the fixtures: their headers and contents, by path.
    files: Mutex<BTreeMap<String, (String, String)>>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Site {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let records = Arc::new(Records::default());
        let shared = Arc::clone(&records);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let records = Arc::clone(&shared);
                // A browser may close its connection at any time.
                tokio::spawn(async move { serve(stream, &records).await.ok() });
            }
        });
        Self {
            address,
            records,
            server,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Returns the reports of pages, by the place that they were sent from.
    pub fn reports(&self) -> BTreeMap<String, Value> {
        let reports = self.records.reports.lock().unwrap();
        let here = |report: &Value| report["here"].as_str().unwrap_or_default().to_owned();
        reports.iter().map(|r| (here(r), r.clone())).collect()
    }

    pub fn user_agents_for(&self, path: &str) -> Vec<String> {
        let all = self.headers().into_iter();
        let requests = all.filter(|(request_path, _)| request_path == path);
        requests
            .map(|(_, mut headers)| headers.remove("user-agent").unwrap_or_default())
            .collect()
    }

    /// Returns the path and the headers of each request.
    pub fn headers(&self) -> Vec<(String, BTreeMap<String, String>)> {
        self.records.headers.lock().unwrap().clone()
    }

    /// Serves a file in addition to the fixtures, with headers that each end with a line break.
    pub fn add_file(&self, path: &str, headers: &str, content: &str) {
        let file = (headers.to_owned(), content.to_owned());
        let mut files = self.records.files.lock().unwrap();
        files.insert(path.to_owned(), file);
    }

    pub fn paths(&self) -> Vec<String> {
        self.records.paths.lock().unwrap().clone()
    }
}

struct Request {
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let target = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim().split_once(':') {
            Some((name, value)) => {
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            None => break,
        }
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Request {
        path: path.trim_start_matches('/').to_owned(),
        query: query.to_owned(),
        headers,
        body,
    })
}

async fn serve(stream: TcpStream, records: &Records) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let Ok(request) = read(&mut stream).await else {
        // A TLS handshake gets a response without TLS.
        stream.write_all(b"HTTP/1.1 400 Status\r\n\r\n").await?;
        return stream.flush().await;
    };
    records.paths.lock().unwrap().push(request.path.clone());
    let headers = (request.path.clone(), request.headers.clone());
    records.headers.lock().unwrap().push(headers);
    if let Some(ms) = request
        .query
        .split('&')
        .find_map(|p| p.strip_prefix("delay="))
    {
        tokio::time::sleep(Duration::from_millis(ms.parse().unwrap_or(0))).await;
    }
    match request.path.as_str() {
        "hang" => std::future::pending().await,
        "broken" => Ok(()),
        "endless" => endless(&mut stream).await,
        path => {
            let (status, headers, body) = respond(path, &request, records);
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.flush().await
        }
    }
}

async fn endless(stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let block = vec![b'x'; 64 << 10];
    loop {
        stream.write_all(&block).await?;
    }
}

fn respond(path: &str, request: &Request, records: &Records) -> (u16, String, Vec<u8>) {
    let html = "content-type: text/html\r\n".to_owned();
    let text = |status: u16, headers: &str, body: &str| {
        (status, format!("{headers}\r\n"), body.as_bytes().to_vec())
    };
    if let Some((headers, content)) = records.files.lock().unwrap().get(path) {
        let tag = request.headers.get("if-none-match");
        if tag.is_some_and(|tag| headers.contains(tag.as_str())) {
            return (304, headers.clone(), Vec::new());
        }
        return (200, headers.clone(), content.as_bytes().to_vec());
    }
    match path {
        "report" => {
            let report = serde_json::from_slice(&request.body).unwrap();
            records.reports.lock().unwrap().push(report);
            text(200, "content-type: text/plain", "")
        }
        "measured" => {
            let mut parameters = url::form_urlencoded::parse(request.query.as_bytes());
            let report = parameters.find(|(name, _)| name == "report").unwrap().1;
            let report = serde_json::from_str(&report).unwrap();
            records.reports.lock().unwrap().push(report);
            text(200, "content-type: text/plain", "")
        }
        "headers" => {
            let body = json!(request.headers).to_string();
            text(200, "content-type: application/json", &body)
        }
        "redirect" => text(302, "location: /plain-text.html", ""),
        "redirect-loop" => text(302, "location: /redirect-loop", ""),
        "redirect-to-file" => text(302, "location: file:///etc/passwd", ""),
        "missing-page" => (404, html, b"<h1>Not found</h1>".to_vec()),
        "empty-error" => (500, html, Vec::new()),
        "empty" => (200, html, Vec::new()),
        "no-content" => (204, String::new(), Vec::new()),
        "auth" => {
            let headers = "content-type: text/html\r\nwww-authenticate: Basic realm=\"x\"";
            text(401, headers, "<h1>Who are you?</h1>")
        }
        "auth-as-text" => {
            let headers = "content-type: text/plain\r\nwww-authenticate: Basic realm=\"x\"";
            text(401, headers, "Who are you?")
        }
        "redirect-to-error" => text(302, "location: /missing-page", ""),
        "redirect-to-empty-error" => text(302, "location: /empty-error", ""),
        "download" => {
            let headers = "content-type: application/zip\r\ncontent-disposition: attachment";
            text(200, headers, "PK")
        }
        "account" if !is_signed_in(request) => text(302, "location: /login", ""),
        "account" | "public" => (200, html, account(request).into_bytes()),
        "login" => (200, html, b"<h1>Sign in</h1>".to_vec()),
        "sign-in" if request.body.is_empty() => (200, sign_in_headers(), sign_in("")),
        "sign-in" if is_right_login(request) => {
            let headers = "location: /account\r\nset-cookie: session=the-right-session; HttpOnly";
            text(303, headers, "")
        }
        "sign-in" => (200, sign_in_headers(), sign_in("Wrong name or password.")),
        "leave" => {
            let location = format!("location: http://{}/landed", other_site(request));
            text(302, &location, "")
        }
        "cached.js" => {
            let headers = "content-type: text/javascript\r\ncache-control: max-age=3600";
            text(200, headers, &"// cached\n".repeat(1000))
        }
        "words.txt" => text(200, "content-type: text/plain", "words"),
        _ => file(path),
    }
}

/// Returns the headers of the form, with one half of the token against forged requests.
fn sign_in_headers() -> String {
    "content-type: text/html\r\nset-cookie: csrf=token-of-the-form; HttpOnly\r\n".to_owned()
}

/// Returns a form for name and password, with a script that the browser may cache.
fn sign_in(problem: &str) -> Vec<u8> {
    format!(
        "<!doctype html><title>Sign in</title><h1>Sign in</h1><p role=alert>{problem}</p>
         <script src=/cached.js></script><form method=post action=/sign-in>
         <input type=hidden name=csrf value=token-of-the-form>
         <label>Name <input name=name></label>
         <label>Password <input type=password name=password></label>
         <button>Sign in</button></form>"
    )
    .into_bytes()
}

/// Returns whether a form was sent with the right name and password, and with both tokens.
fn is_right_login(request: &Request) -> bool {
    let cookies = request.headers.get("cookie").map_or("", String::as_str);
    request.body == b"csrf=token-of-the-form&name=ada&password=love+%26+lace"
        && cookies
            .split("; ")
            .any(|cookie| cookie == "csrf=token-of-the-form")
}

/// Returns whether a request has one of the three credentials of the account.
fn is_signed_in(request: &Request) -> bool {
    let has = |name: &str, value: &str| {
        let header = request.headers.get(name);
        header.is_some_and(|text| text.split("; ").any(|part| part == value))
    };
    has("cookie", "session=the-right-session")
        || has("authorization", "Basic YWRhOmxvdmVsYWNl")
        || has("x-token", "the-right-token")
}

fn other_site(request: &Request) -> &str {
    let mut parameters = request.query.split('&');
    let other = parameters.find_map(|parameter| parameter.strip_prefix("other="));
    other.unwrap_or_default()
}

/// Returns a page that requests files of its own site and of another one.
fn account(request: &Request) -> String {
    let other = other_site(request);
    format!(
        "<!doctype html><title>Account</title><h1 id=account>Account of Ada</h1>
         <script src=/cached.js></script><script>new Worker('/worker.js')</script>
         <script src=http://{other}/script.js></script><img src=/leave?other={other}>
         <iframe src=http://{other}/frame></iframe>
         <script>fetch('http://{other}/data').catch(() => 0)</script>"
    )
}

fn file(path: &str) -> (u16, String, Vec<u8>) {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let file = if path.starts_with("hostile/") {
        fixtures.join(path)
    } else {
        fixtures.join("pages").join(path)
    };
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    match std::fs::read(file) {
        Ok(body) => (200, format!("content-type: {kind}\r\n"), body),
        Err(_) => (
            404,
            "content-type: text/plain\r\n".to_owned(),
            b"none".to_vec(),
        ),
    }
}
