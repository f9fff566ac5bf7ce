//! Tests of the replayer behind a link.

use std::io::ErrorKind;

use bytes::Bytes;
use plumbline_clock::PageClock;
use plumbline_link::{Guard, LineProfile, Link, LinkConfig, Servers};
use plumbline_recording::{BodyChunk, Handling, RecordedEndpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;

/// Timeout that is long enough for the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const LINE: LineProfile = LineProfile {
    down_kbps: Some(10_000.0),
    up_kbps: Some(10_000.0),
    rtt_ms: 40.0,
    loss_pct: 0.0,
};

/// Returns an exchange whose response has a body of chunks, each with its time.
fn exchange(path: &str, wait_ms: f64, chunks: &[(f64, &str)]) -> RecordedExchange {
    let body: String = chunks.iter().map(|(_, text)| *text).collect();
    let chunk = |(after_ms, text): &(f64, &str)| BodyChunk {
        after_ms: *after_ms,
        bytes: text.len() as u64,
    };
    RecordedExchange {
        endpoint: Endpoint {
            is_secure: false,
            host: "a.test".to_owned(),
            port: 80,
        },
        method: "GET".to_owned(),
        path: path.to_owned(),
        request_headers: Vec::new(),
        request_bytes: 0,
        started_ms: 0.0,
        response: Some(RecordedResponse {
            status: 200,
            headers: Vec::new(),
            wait_ms,
            chunks: chunks.iter().map(chunk).collect(),
            is_cut_off: false,
            body: Bytes::from(body),
        }),
        is_open: false,
        handling: Handling::Answered,
    }
}

/// Opens a link to the servers of a recording. Its clock runs in jumps only.
fn replay(profile: LineProfile, exchanges: Vec<RecordedExchange>) -> (Link, Arc<PageClock>) {
    let recording = Recording {
        endpoints: vec![RecordedEndpoint {
            endpoint: exchanges[0].endpoint.clone(),
            result: ConnectResult::Connected {
                protocol: Protocol::Http1,
                connect_ms: 0.0,
                tls_ms: 0.0,
            },
        }],
        exchanges,
        ..Recording::default()
    };
    let clock = Arc::new(PageClock::private().unwrap());
    clock.set_speed(10.0);
    clock.set_rate(0.0);
    let identity = Arc::new(Identity::generate().unwrap());
    let replayer = Replayer::new(identity, Arc::new(recording));
    let link = Link::open(LinkConfig {
        clock: Some(Arc::clone(&clock)),
        servers: Servers::Replayed(Arc::new(replayer)),
        ..LinkConfig::new(profile, Arc::new(Guard::public_only()))
    });
    (link.unwrap(), clock)
}

/// Awaits a future while the clock jumps to whatever is due next.
async fn with_jumps<T>(clock: &PageClock, future: impl Future<Output = T>) -> T {
    let jump = async {
        loop {
            let now = clock.now();
            if let Some(next) = clock.next_registered() {
                clock.jump(next - now);
            }
            tokio::task::yield_now().await;
        }
    };
    let result = async {
        tokio::select! {
            result = future => result,
            () = jump => unreachable!(),
        }
    };
    timeout(TIMEOUT, result).await.unwrap()
}

async fn connect(link: &Link) -> TcpStream {
    let mut browser = TcpStream::connect(link.address()).await.unwrap();
    let request = [&[5, 1, 0, 5, 1, 0, 3, 6], &b"a.test"[..], &[0, 80]].concat();
    browser.write_all(&request).await.unwrap();
    browser.read_exact(&mut [0; 12]).await.unwrap();
    browser
}

async fn request(browser: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    browser.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the text that was received ends in this way.
async fn read_until(browser: &mut TcpStream, end: &str) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.ends_with(end) {
        let count = browser.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the connection ended after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

#[tokio::test]
async fn the_recorded_times_of_a_server_pass_on_the_pages_clock() {
    const MINUTE_MS: f64 = 60_000.0;
    let chunks = [(0.0, "first"), (20.0 * MINUTE_MS, "second")];
    let exchanges = vec![
        exchange("/late", 10.0 * MINUTE_MS, &chunks[..1]),
        exchange("/slow", 10.0 * MINUTE_MS, &chunks),
    ];
    let (link, clock) = replay(LINE, exchanges);
    for (path, end, minutes) in [("/late", "first", 10), ("/slow", "second", 30)] {
        let time = with_jumps(&clock, async {
            let mut browser = connect(&link).await;
            let requested_at = clock.now();
            request(&mut browser, path).await;
            read_until(&mut browser, end).await;
            clock.now() - requested_at
        });
        let time = time.await;
        let expected = Duration::from_secs(minutes * 60);
        assert!(time >= expected, "{time:?}");
        assert!(time < expected + Duration::from_secs(10), "{time:?}");
    }
}

#[tokio::test]
async fn what_came_with_the_headers_is_sent_with_them() {
    let exchange = exchange("/", 0.0, &[(0.9, "body")]);
    // A second packet would come much later than the first.
    let narrow = LineProfile {
        down_kbps: Some(50.0),
        ..LINE
    };
    let (link, clock) = replay(narrow, vec![exchange]);
    let text = with_jumps(&clock, async {
        let mut browser = connect(&link).await;
        request(&mut browser, "/").await;
        let mut buffer = [0; 4096];
        let count = browser.read(&mut buffer).await.unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    });
    let text = text.await;
    assert!(text.ends_with("\r\n\r\nbody"), "{text:?}");
}

#[tokio::test]
async fn requests_that_were_open_at_the_end_of_the_recording_stay_open() {
    let mut long_poll = exchange("/poll", 0.0, &[]);
    long_poll.response = None;
    long_poll.is_open = true;
    let mut stream = exchange("/stream", 0.0, &[(0.0, "data: 1")]);
    stream.response.as_mut().unwrap().is_cut_off = true;
    stream.is_open = true;
    let answered = exchange("/", 0.0, &[(0.0, "answer")]);
    let (link, clock) = replay(LINE, vec![answered, long_poll, stream]);
    let (mut poll, mut stream) = with_jumps(&clock, async {
        let (mut poll, mut stream) = (connect(&link).await, connect(&link).await);
        request(&mut poll, "/poll").await;
        request(&mut stream, "/stream").await;
        read_until(&mut stream, "data: 1\r\n").await;
        let mut other = connect(&link).await;
        for _ in 0..20 {
            request(&mut other, "/").await;
            read_until(&mut other, "answer").await;
        }
        (poll, stream)
    })
    .await;
    for browser in [&poll, &stream] {
        let result = browser.try_read(&mut [0; 10]);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    drop(link);
    for browser in [&mut poll, &mut stream] {
        let ended = timeout(TIMEOUT, browser.read(&mut [0; 10])).await.unwrap();
        assert!(!matches!(ended, Ok(1..)), "{ended:?}");
    }
}
