//! The hostile server: the pages of `fixtures/hostile`, and invalid or malicious responses.
//!
//! It writes raw HTTP, so that it can violate the protocol. The same pages are served from forty
//! addresses of the loopback network, which are forty sites to a browser.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::bombs;
use crate::websocket;

/// The addresses are 127.0.0.1 to 127.0.0.41.
const ADDRESSES: u8 = 41;
/// Every address of the site, in the form that `--allow-target` takes.
pub const NETWORK: &str = "127.0.0.0/26";
/// The well-behaved page that is audited at the same time as the hostile ones.
pub const WELL_BEHAVED: &str = "/well-behaved";

const SMALL: &str = "<!doctype html><html lang=en><title>Small</title><h1>Small</h1>";
const WELL_BEHAVED_PAGE: &str = "<!doctype html><html lang=en><title>Well-behaved</title>\
    <meta name=viewport content='width=device-width'><h1>Hello</h1><p>Some words to paint.</p>";
/// Longer than any visit.
const FOREVER: Duration = Duration::from_secs(600);
/// The pause between two parts of a slow response.
const DRIP: Duration = Duration::from_millis(500);

/// Serves until the process ends, and returns the address of the first site.
pub fn serve() -> SocketAddr {
    // The example of RFC 6455, section 1.3: without a correct handshake there would be no flood.
    assert_eq!(
        websocket::accept("dGhlIHNhbXBsZSBub25jZQ=="),
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
    let listeners = listeners();
    let address = listeners[0]
        .local_addr()
        .expect("a listener has an address");
    for listener in listeners {
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Most cases end with a browser that closes the connection during a response.
                thread::spawn(move || Connection::accept(stream).map(Connection::respond));
            }
        });
    }
    address
}

/// One listener for each address, all on the same port.
fn listeners() -> Vec<TcpListener> {
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    for _ in 0..20 {
        let first = TcpListener::bind((address(1), 0)).expect("loopback can be listened on");
        let port = first
            .local_addr()
            .expect("a listener has an address")
            .port();
        let others = (2..=ADDRESSES).map(|last| TcpListener::bind((address(last), port)));
        if let Ok(others) = others.collect::<Result<Vec<_>, _>>() {
            return [first].into_iter().chain(others).collect();
        }
    }
    panic!("no port is free on all of {NETWORK}");
}

/// The largest request that is read.
const MAX_REQUEST_BYTES: u64 = 4 << 20;

/// The result of writing to a browser that may have closed the connection.
pub type Written = std::io::Result<()>;

pub struct Connection {
    pub stream: TcpStream,
    /// The path without the query.
    pub path: String,
    pub query: String,
    websocket_key: Option<String>,
}

impl Connection {
    /// Reads a request.
    fn accept(stream: TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream.try_clone().ok()?.take(MAX_REQUEST_BYTES));
        let mut lines = reader.by_ref().lines();
        let request = lines.next()?.ok()?;
        let mut websocket_key = None;
        let mut body_bytes = 0;
        loop {
            let line = lines.next()?.ok()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            match name.to_ascii_lowercase().as_str() {
                "sec-websocket-key" => websocket_key = Some(value.trim().to_owned()),
                "content-length" => body_bytes = value.trim().parse().ok()?,
                _ => {}
            }
        }
        // A connection that is closed before its request was read would be reset.
        std::io::copy(&mut reader.take(body_bytes), &mut std::io::sink()).ok()?;
        let target = request.split(' ').nth(1)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(Self {
            stream,
            path: path.to_owned(),
            query: query.to_owned(),
            websocket_key,
        })
    }

    fn respond(mut self) -> Written {
        let path = self.path.clone();
        match path.trim_start_matches('/') {
            "well-behaved" => self.html("", WELL_BEHAVED_PAGE),
            "small" => self.html("", SMALL),
            "websocket" => self.websocket(),
            "events" => self.events(),
            "import-loop.css" => {
                let text = format!("@import url(/import-loop.css?{}1);", self.query);
                self.whole("200 OK", "text/css", "", text.as_bytes())
            }
            "manifest" => self.manifest(),
            "robots.txt" => self.robots_txt(),
            "llms.txt" | ".well-known/ai-catalog.json" => self.text_for_agents(),
            "script-with-map" => self.script_with_map(),
            "source-map-large" | "source-map" => self.source_map(),
            "giant.png" => self.whole("200 OK", "image/png", "", bombs::giant_png()),
            name if name.ends_with(".html") || name.ends_with(".js") => self.file(name),
            name if name.starts_with("head-") => self.hostile_head(name),
            name if name.starts_with("to-") => self.redirect(name),
            name => self.hostile_response(name),
        }
    }

    /// Returns the last number of the IP address that was requested.
    pub fn site(&self) -> std::io::Result<u8> {
        Ok(match self.stream.local_addr()?.ip() {
            IpAddr::V4(ip) => ip.octets()[3],
            IpAddr::V6(_) => 0,
        })
    }

    /// Sends a page or script of `fixtures/hostile`.
    fn file(&mut self, name: &str) -> Written {
        let dir = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/hostile"
        ));
        let kind = if name.ends_with(".js") {
            "text/javascript"
        } else {
            "text/html; charset=utf-8"
        };
        match fs::read(dir.join(name)) {
            Ok(bytes) => self.whole("200 OK", kind, "", &bytes),
            Err(error) => panic!("fixtures/hostile/{name}: {error}"),
        }
    }

    pub fn whole(&mut self, status: &str, kind: &str, headers: &str, body: &[u8]) -> Written {
        write!(
            self.stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{headers}\
             Connection: close\r\n\r\n",
            body.len()
        )?;
        self.stream.write_all(body)
    }

    pub fn html(&mut self, headers: &str, body: &str) -> Written {
        let kind = "text/html; charset=utf-8";
        self.whole("200 OK", kind, headers, body.as_bytes())
    }

    /// Sends the head of a response that ends with the connection.
    pub fn begin(&mut self, kind: &str, headers: &str) -> Written {
        write!(
            self.stream,
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{headers}Connection: close\r\n\r\n"
        )
    }

    /// Writes the same bytes until the browser closes the connection.
    pub fn repeat(&mut self, bytes: &[u8]) -> Written {
        loop {
            self.stream.write_all(bytes)?;
        }
    }

    /// Writes one part at a time, slowly, until the browser closes the connection.
    pub fn drip(&mut self, piece: &[u8]) -> Written {
        loop {
            self.stream.write_all(piece)?;
            thread::sleep(DRIP);
        }
    }

    /// Sends a response with a hostile body or connection.
    pub fn hostile_response(&mut self, name: &str) -> Written {
        let html = "text/html; charset=utf-8";
        match name {
            "hang" => {
                thread::sleep(FOREVER);
                Ok(())
            }
            "silent-close" => Ok(()),
            "endless" => {
                self.begin("application/octet-stream", "")?;
                self.repeat(&[b'x'; 1 << 16])
            }
            "endless-html" => {
                self.begin(html, "")?;
                self.stream.write_all(SMALL.as_bytes())?;
                self.repeat("<p>and so on</p>\n".repeat(4000).as_bytes())
            }
            "endless-line" => {
                self.begin(html, "")?;
                self.stream.write_all(b"<!doctype html><title>")?;
                self.repeat(&[b't'; 1 << 16])
            }
            "attachment" => self.whole(
                "200 OK",
                html,
                "Content-Disposition: attachment; filename=../../../../tmp/plumbline-was-here\r\n",
                SMALL.as_bytes(),
            ),
            "attachment-endless" => {
                self.begin(
                    "application/octet-stream",
                    "Content-Disposition: attachment; filename=endless\r\n",
                )?;
                self.repeat(&[b'x'; 1 << 16])
            }
            "drip-body" => {
                self.begin(html, "")?;
                self.stream.write_all(SMALL.as_bytes())?;
                self.drip(b"<i>.</i>")
            }
            "drip-body-blank" => {
                self.begin(html, "")?;
                self.drip(b" ")
            }
            "body-too-short" => {
                let headers = "Content-Length: 1000000\r\n";
                self.begin(html, headers)?;
                self.stream.write_all(SMALL.as_bytes())
            }
            "chunks-broken" => {
                self.begin(html, "Transfer-Encoding: chunked\r\n")?;
                self.stream
                    .write_all(b"fffffffffffffffffffffff\r\n<h1>x</h1>")
            }
            "chunks-endless-extension" => {
                self.begin(html, "Transfer-Encoding: chunked\r\n")?;
                self.stream.write_all(b"5;")?;
                self.repeat(&[b'x'; 1 << 16])
            }
            "chunks-of-one" => {
                self.begin(html, "Transfer-Encoding: chunked\r\n")?;
                for byte in SMALL.bytes() {
                    write!(self.stream, "1\r\n{}\r\n", char::from(byte))?;
                }
                self.repeat("1\r\n \r\n".repeat(10_000).as_bytes())
            }
            "gzip-bomb" => {
                self.begin(html, "Content-Encoding: gzip\r\n")?;
                self.stream.write_all(&bombs::GZIP_HEAD)?;
                self.repeat(bombs::megabyte_of_spaces())
            }
            "gzip-nested" => {
                self.begin(html, "Content-Encoding: gzip, gzip\r\n")?;
                self.stream.write_all(&bombs::GZIP_HEAD)?;
                self.stream.write_all(bombs::gzip_head_packed())?;
                self.repeat(bombs::gigabyte_packed_twice())
            }
            "gzip-broken" => {
                self.begin(html, "Content-Encoding: gzip\r\n")?;
                self.repeat(&[0x1f; 1 << 16])
            }
            "gzip-many-times" => {
                let headers = format!("Content-Encoding: {}gzip\r\n", "gzip, ".repeat(2000));
                self.begin(html, &headers)?;
                self.repeat(bombs::megabyte_of_spaces())
            }
            "zstd-bomb" => {
                self.begin(html, "Content-Encoding: zstd\r\n")?;
                self.stream.write_all(&bombs::ZSTD_HEAD)?;
                self.repeat(&bombs::ZSTD_SPACES.repeat(1024))
            }
            "brotli-bomb" => {
                self.begin(html, "Content-Encoding: br\r\n")?;
                self.stream.write_all(&bombs::BROTLI_HEAD)?;
                self.repeat(&bombs::BROTLI_SPACES)
            }
            "encoding-unknown" => self.whole(
                "200 OK",
                html,
                "Content-Encoding: hostile, br, zstd, dcb\r\n",
                SMALL.as_bytes(),
            ),
            "resources-packed" => {
                let mut page = SMALL.to_owned();
                for number in 0..20 {
                    page += &format!(
                        "<script src='/gzip-bomb?{number}'></script>\
                         <link rel=stylesheet href='/gzip-nested?{number}'>\
                         <img alt='' src='/gzip-bomb?image{number}'>"
                    );
                }
                self.html("", &page)
            }
            "resources-many" => {
                let mut page = SMALL.to_owned();
                for number in 0..5000 {
                    page += &format!("<img alt='' src='/small?{number}'>");
                }
                self.html("", &page)
            }
            "xml-entities" => {
                let mut page = "<!DOCTYPE html [<!ENTITY e0 'laugh'>".to_owned();
                for number in 1..12 {
                    let inner = format!("&e{};", number - 1).repeat(10);
                    page += &format!("<!ENTITY e{number} '{inner}'>");
                }
                page += "]><html xmlns='http://www.w3.org/1999/xhtml'><body><h1>&e11;</h1></body></html>";
                self.whole("200 OK", "application/xhtml+xml", "", page.as_bytes())
            }
            "xml-deep" => {
                let mut page = "<html xmlns='http://www.w3.org/1999/xhtml'><body>".to_owned();
                page += &"<div>".repeat(100_000);
                self.whole("200 OK", "application/xhtml+xml", "", page.as_bytes())
            }
            "html-deep" => {
                let page = format!("{SMALL}{}", "<b><i><font><div>".repeat(100_000));
                self.html("", &page)
            }
            "html-attributes" => {
                let many: String = (0..100_000).map(|number| format!(" a{number}=1")).collect();
                self.html("", &format!("{SMALL}<p{many}>many attributes</p>"))
            }
            "html-nul" => self.html(
                "",
                &format!("{SMALL}{}", "\0\u{feff}\u{202e}".repeat(300_000)),
            ),
            "html-templates" => {
                let page = format!("{SMALL}{}", "<template><svg><math><table>".repeat(50_000));
                self.html("", &page)
            }
            "sniffed" => self.whole("200 OK", "", "", &[0x7f, b'E', b'L', b'F', 0, 0, 0, 0]),
            "pdf" => self.whole("200 OK", "application/pdf", "", b"%PDF-1.7\n%endless"),
            "video" => {
                self.begin("video/mp4", "")?;
                self.repeat(&[0; 1 << 16])
            }
            "charset" => {
                let kind = "text/html; charset=utf-7; charset=utf-16; charset=\"";
                self.whole("200 OK", kind, "", SMALL.as_bytes())
            }
            "multipart" => {
                self.begin("multipart/x-mixed-replace; boundary=b", "")?;
                self.repeat(b"--b\r\nContent-Type: text/html\r\n\r\n<h1>part</h1>\r\n")
            }
            "password" => self.whole(
                "401 Unauthorized",
                html,
                "WWW-Authenticate: Basic realm=hostile\r\nWWW-Authenticate: Negotiate\r\n\
                 WWW-Authenticate: NTLM\r\nWWW-Authenticate: Digest realm=x, nonce=y\r\n",
                b"",
            ),
            "password-of-proxy" => self.whole(
                "407 Proxy Authentication Required",
                html,
                "Proxy-Authenticate: Basic realm=hostile\r\n",
                SMALL.as_bytes(),
            ),
            "passwords-of-resources" => {
                let mut page = SMALL.to_owned();
                for number in 0..200 {
                    page += &format!("<img alt='' src='/password?{number}'>");
                }
                self.html("", &page)
            }
            "not-http" => self.repeat(b"220 hostile.invalid ESMTP\r\n"),
            "status-none" => self.whole("999999999999 \u{1}", html, "", SMALL.as_bytes()),
            "status-204" => self.stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
            "status-205" => self.whole("205 Reset Content", html, "", SMALL.as_bytes()),
            "status-304" => self.stream.write_all(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
            "status-408" => self.stream.write_all(b"HTTP/1.1 408 Timeout\r\n\r\n"),
            "continue-endless" => self.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
            "hints-endless" => self.repeat(
                b"HTTP/1.1 103 Early Hints\r\nLink: </endless>; rel=preload; as=script\r\n\r\n",
            ),
            "hints-many" => {
                for number in 0..500 {
                    write!(
                        self.stream,
                        "HTTP/1.1 103 Early Hints\r\n\
                         Link: <http://127.0.0.{}:1/>; rel=preconnect, </small?{number}>; rel=preload; as=style\r\n\r\n",
                        number % 250
                    )?;
                }
                self.html("", SMALL)
            }
            "switch-protocols" => {
                self.stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
                )?;
                self.repeat(&[0; 1 << 16])
            }
            _ => self.whole("404 Not Found", html, "", SMALL.as_bytes()),
        }
    }

    /// Sends a response with a hostile head.
    fn hostile_head(&mut self, name: &str) -> Written {
        match name {
            "head-endless" => {
                self.stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
                self.repeat("X-Endless: yes\r\n".repeat(1000).as_bytes())
            }
            "head-endless-line" => {
                self.stream.write_all(b"HTTP/1.1 200 OK\r\nX-Endless: ")?;
                self.repeat(&[b'x'; 1 << 16])
            }
            "head-drip" => {
                self.stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
                self.drip(b"X-Slow: yes\r\n")
            }
            "head-drip-status" => self.drip(b"H"),
            "head-many" => {
                let many: String = (0..8000)
                    .map(|number| format!("X-{number}: {number}\r\n"))
                    .collect();
                self.html(&many, SMALL)
            }
            "head-cookies" => {
                let value = "c".repeat(4000);
                let cookies =
                    (0..55).map(|number| format!("Set-Cookie: c{number}={value}; Path=/\r\n"));
                let page = format!("{SMALL}{}", "<img alt='' src='/head-cookies'>".repeat(50));
                self.html(&cookies.collect::<String>(), &page)
            }
            "head-policy" => {
                let policy =
                    "script-src 'self' 'nonce-((((((((((((((((' 'sha256-+++' *.*.* ;".repeat(3000);
                self.html(&format!("Content-Security-Policy: {policy}\r\n"), SMALL)
            }
            "head-policies" => {
                let policies = "Content-Security-Policy: default-src 'none'; report-uri /small\r\n\
                                Permissions-Policy: a=(\"(((((\"), b=*\r\n\
                                Document-Policy: force-load-at-top=?9\r\n\
                                Cross-Origin-Opener-Policy: same-origin; report-to=\"\r\n"
                    .repeat(300);
                let page = format!("{SMALL}{}", "<script src=/small></script>".repeat(500));
                self.html(&policies, &page)
            }
            "head-links" => {
                let links = "</small?h>; rel=\"preload preconnect ((((\"; as=style; imagesrcset=\""
                    .repeat(2500);
                self.html(&format!("Link: {links}\r\n"), SMALL)
            }
            "head-link-preloads" => {
                let links: String = (0..1000)
                    .map(|number| {
                        format!("Link: </endless?{number}>; rel=preload; as=fetch; crossorigin\r\n")
                    })
                    .collect();
                self.html(&links, SMALL)
            }
            "head-timing" => {
                let timing = "metric;dur=1e999;desc=\"((((\\\"".repeat(6000);
                self.html(&format!("Server-Timing: {timing}\r\n"), SMALL)
            }
            "head-reports" => {
                let headers = "Reporting-Endpoints: all=\"/small\"\r\nReport-To: {\"group\":\"all\",\"max_age\":1,\
                               \"endpoints\":[{\"url\":\"/small\"}]}\r\nNEL: {\"report_to\":\"all\",\"max_age\":1,\
                               \"success_fraction\":1}\r\n"
                    .repeat(500);
                self.html(&headers, SMALL)
            }
            "head-refresh" => self.html("Refresh: 0\r\n", SMALL),
            "head-refresh-elsewhere" => self.html("Refresh: 0; url=file:///etc/passwd\r\n", SMALL),
            "head-clear-site-data" => {
                self.html("Clear-Site-Data: \"*\", \"executionContexts\"\r\n", SMALL)
            }
            "head-lengths" => {
                self.begin("text/html", "Content-Length: 5\r\nContent-Length: 999\r\n")?;
                self.stream.write_all(SMALL.as_bytes())
            }
            "head-length-negative" => {
                self.begin("text/html", "Content-Length: -1\r\n")?;
                self.stream.write_all(SMALL.as_bytes())
            }
            "head-length-huge" => {
                self.begin("text/html", "Content-Length: 99999999999999999999999\r\n")?;
                self.stream.write_all(SMALL.as_bytes())
            }
            "head-control-characters" => {
                self.stream
                    .write_all(b"HTTP/1.1 200 \x00\xff\x1b[2J\r\nX-\x00\xff: \x00\x01\x02\xff\xfe\r\n: none\r\n")?;
                self.stream.write_all(
                    b"Content-Type: text/html;\x00\r\nSet-Cookie: \xff=\x01\r\n\r\n<h1>x</h1>",
                )
            }
            "head-source-map" => {
                let maps = format!("SourceMap: {}\r\n", "/".repeat(200_000));
                self.html(&maps, SMALL)
            }
            _ => panic!("there is no response for {name}"),
        }
    }

    /// Sends a redirect.
    fn redirect(&mut self, name: &str) -> Written {
        let query_length = self.query.len();
        let to = match name {
            "to-itself" => "/to-itself".to_owned(),
            "to-next" => format!("/to-next?{}", query_length + 1),
            "to-longer" => format!("/to-longer?{}", "x".repeat(query_length * 2 + 1000)),
            "to-huge" => format!("/small?{}", "x".repeat(3_000_000)),
            "to-file" => "file:///etc/passwd".to_owned(),
            "to-chrome" => "chrome://crash".to_owned(),
            "to-script" => "javascript:alert(1)".to_owned(),
            "to-data" => "data:text/html,<h1>x</h1>".to_owned(),
            "to-view-source" => "view-source:http://127.0.0.1/".to_owned(),
            "to-nothing" => String::new(),
            "to-garbage" => "http://[::::]:99999/%%%\u{1}".to_owned(),
            "to-other-sites" => {
                let (next, port) = (
                    self.site()? % ADDRESSES + 1,
                    self.stream.local_addr()?.port(),
                );
                format!("http://127.0.0.{next}:{port}/to-other-sites")
            }
            "to-slow" => {
                thread::sleep(Duration::from_secs(4));
                format!("/to-slow?{}", query_length + 1)
            }
            _ => panic!("there is no redirect for {name}"),
        };
        let status = "302 Found";
        self.whole(status, "text/html", &format!("Location: {to}\r\n"), b"")
    }

    fn websocket(&mut self) -> Written {
        let Some(key) = &self.websocket_key else {
            return self.html("", SMALL);
        };
        write!(
            self.stream,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            websocket::accept(key)
        )?;
        // Incoming messages must be read, or the browser would stop sending.
        let mut incoming = self.stream.try_clone()?;
        thread::spawn(move || std::io::copy(&mut incoming, &mut std::io::sink()));
        self.repeat(&websocket::text_frame(&[b'w'; 60_000]))
    }

    fn events(&mut self) -> Written {
        self.begin("text/event-stream", "")?;
        self.repeat(format!("data: {}\n\n", "e".repeat(10_000)).as_bytes())
    }
}
