//! A loopback site with a few small pages.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

const PAGE: &str = "<!doctype html><html lang=en><title>A page</title>\
    <style>body{font:20px sans-serif}</style><h1>Hello</h1><p>Some words to paint.</p>";

/// A page with a few requests and failed checks, on the first screen and far below it.
const RICH: &str = "<!doctype html><html><title>Several requests</title>\
    <link rel=stylesheet href=style.css><script src=script.js></script>\
    <h1>Hello</h1><p>Some words to paint.</p><img src=none.png width=40 height=40>\
    <p style='height:2500px'>A long way down.</p>\
    <a href=/ style='display:block;background:#f0f;width:300px;height:100px'></a>";

/// A page whose first paint waits for four stylesheets, one after the other.
const STYLESHEETS: &str = "<!doctype html><html lang=en><title>Stylesheets</title>\
    <link rel=stylesheet href=1.css><h1>Hello</h1><p>Some words to paint.</p>";

/// A page that changes after the last screenshot that Chromium records.
const ANIMATED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/pages/animates-past-the-last-screenshot.html"
));

/// Serves the pages until the test process ends.
pub fn serve() -> SocketAddr {
    serve_after(|| {})
}

/// Serves the pages, but responds only after `ready` returns.
pub fn serve_after(ready: impl Fn() + Send + Sync + 'static) -> SocketAddr {
    serve_each(move |_| ready())
}

/// Serves the pages, but responds to `/style.css`, which blocks the first paint, only after `ready`
/// returns. `/old` redirects to `/rich`, which is then loaded but not painted.
pub fn serve_and_paint_after(ready: impl Fn() + Send + Sync + 'static) -> SocketAddr {
    serve_each(move |path| {
        if path == "/style.css" {
            ready();
        }
    })
}

fn serve_each(ready: impl Fn(&str) + Send + Sync + 'static) -> SocketAddr {
    let ready = Arc::new(ready);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let ready = Arc::clone(&ready);
            thread::spawn(move || respond(stream, &*ready));
        }
    });
    address
}

fn respond(mut stream: TcpStream, ready: &dyn Fn(&str)) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let path = request.split(' ').nth(1)?;
    ready(path);
    let (status, kind, body) = match path {
        "/old" => ("302 Found\r\nLocation: /rich", "text/html", ""),
        "/" => ("200 OK", "text/html", PAGE),
        "/animated" => ("200 OK", "text/html", ANIMATED),
        "/rich" => ("200 OK", "text/html", RICH),
        "/stylesheets" => ("200 OK", "text/html", STYLESHEETS),
        "/1.css" => ("200 OK", "text/css", "@import '2.css';"),
        "/2.css" => ("200 OK", "text/css", "@import '3.css';"),
        "/3.css" => ("200 OK", "text/css", "@import 'style.css';"),
        "/style.css" => ("200 OK", "text/css", "body { font: 20px sans-serif }"),
        "/script.js" => ("200 OK", "text/javascript", "document.title += '!'"),
        _ => ("404 Not Found", "text/html", ""),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()
}

/// Returns an address that was free a moment ago, so that connections are refused.
pub fn unused_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
