//! A site that uses `"><script>alert(1)</script>` in every name it can choose, and one audit of it
//! in all formats, made once for all tests.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use crate::server::plumbline;

pub const NAME: &str = r#""><script>alert(1)</script>"#;

const PAGE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/pages/calls-itself-a-script.html"
));
const MANIFEST: &str = r#"{"name": "\"><script>alert(1)</script>", "short_name": "=cmd()",
    "start_url": "/\"><script>alert(1)</script>", "display": "standalone", "icons": []}"#;

pub struct Exports {
    dir: tempfile::TempDir,
}

impl Exports {
    pub fn path(&self, extension: &str) -> PathBuf {
        self.dir.path().join(format!("page.{extension}"))
    }

    pub fn text(&self, extension: &str) -> String {
        let path = self.path(extension);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

pub const EXTENSIONS: [&str; 6] = [
    "report.json",
    "lighthouse.json",
    "har",
    "csv",
    "junit.xml",
    "trace.json",
];

/// Returns the files of one real audit.
pub fn exports() -> &'static Exports {
    static EXPORTS: OnceLock<Exports> = OnceLock::new();
    EXPORTS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("http://{}/redirect", serve());
        let output = plumbline()
            .args(["audit", &url, "--network", "wifi", "--device", "desktop"])
            .args([
                "--output",
                "json,lighthouse,har,csv,junit,trace",
                "--output-path",
            ])
            .arg(dir.path().join("page"))
            .arg("--bundle")
            .arg(dir.path().join("bundle.gz"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        Exports { dir }
    })
}

fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || respond(stream));
        }
    });
    address
}

fn respond(mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let path = request.split(' ').nth(1)?;
    let (status, kind, body) = match path {
        "/redirect" => ("302 Found", "text/plain", ""),
        "/manifest.json" => ("200 OK", "application/manifest+json", MANIFEST),
        path if path.starts_with("/page") => ("200 OK", "text/html; charset=utf-8", PAGE),
        _ => (r#"404 "><script>alert(1)</script>"#, "text/plain", ""),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Location: /page?{NAME}=cmd()\r\nX-Name: {NAME}\r\nSet-Cookie: name={NAME}; Path=/; HttpOnly\r\n\
         Set-Cookie: formula==cmd()\r\n\r\n{body}",
        body.len()
    )
    .ok()
}
