use std::io;
use std::sync::Arc;
use std::time::Duration;

use plumbline_clock::PageClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;

/// Timeout that is long enough for the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A line with so long a round trip that Chromium would dial a backup connection.
const DISTANT_LINE: LineProfile = LineProfile {
    rtt_ms: 600.0,
    ..QUICK_LINE
};

#[tokio::test]
async fn a_megabyte_is_echoed_unchanged() {
    for line in BOTH_LINES {
        let (link, server) = (open(line).await, echo_server().await);
        let stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
        let (mut from, mut to) = stream.into_split();
        let sent = pattern(1_000_000);
        let copy = sent.clone();
        let writing = tokio::spawn(async move {
            to.write_all(&copy).await.unwrap();
            to
        });
        let mut received = vec![0; sent.len()];
        from.read_exact(&mut received).await.unwrap();
        assert!(sent == received, "{line:?}");
        drop(writing.await.unwrap());
        let record = link.records().pop().unwrap();
        assert_eq!((record.bytes_up, record.bytes_down), (1_000_000, 1_000_000));
    }
}

#[tokio::test]
async fn a_lossy_line_delivers_all_bytes() {
    let lossy = LineProfile {
        loss_pct: 5.0,
        ..QUICK_LINE
    };
    let (link, server) = (open(lossy).await, echo_server().await);
    let stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let sent = pattern(100_000);
    let mut received = vec![0; sent.len()];
    let (wrote, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut received));
    wrote.unwrap();
    read.unwrap();
    assert!(sent == received);
}

#[tokio::test]
async fn a_handshake_is_sent_before_bytes_that_are_written_during_its_socks_request() {
    let narrow_up = LineProfile {
        up_kbps: Some(2.0),
        ..QUICK_LINE
    };
    let link = open(narrow_up).await;
    let (listener, address) = listen("127.0.0.1").await;
    let mut other = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();

    let mut late = TcpStream::connect(link.address()).await.unwrap();
    late.write_all(&[5, 1, 0]).await.unwrap();
    late.read_exact(&mut [0; 2]).await.unwrap();
    // This line needs many seconds for it.
    other.write_all(&pattern(5000)).await.unwrap();
    while link.records()[0].bytes_up < 5000 {
        tokio::task::yield_now().await;
    }
    let port = address.port().to_be_bytes();
    late.write_all(&[&[5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat())
        .await
        .unwrap();
    let (mut reply, mut upload) = ([0; 10], [0; 5000]);
    tokio::select! {
        connected = late.read_exact(&mut reply) => assert_eq!((connected.unwrap(), reply[1]), (10, 0)),
        _ = server.read_exact(&mut upload) => panic!("the handshake was queued behind the upload"),
    }
}

#[tokio::test]
async fn a_backup_connection_to_a_distant_host_serves_the_next_request() {
    let link = open(DISTANT_LINE).await;
    let (listener, address) = listen("127.0.0.1").await;
    let first = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let accept = || timeout(TIMEOUT, listener.accept());
    let (_server, _) = accept().await.unwrap().unwrap();
    let (mut backup, _) = accept().await.expect("a backup connection").unwrap();
    let mut second = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    second.write_all(b"over the second").await.unwrap();
    let mut received = [0; 15];
    backup.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"over the second");
    assert_eq!(link.records().len(), 2);
    drop(first);
}

#[tokio::test]
async fn a_backup_connection_that_the_server_has_closed_is_not_used() {
    let link = open(DISTANT_LINE).await;
    let (listener, address) = listen("127.0.0.1").await;
    let _first = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let accept = || timeout(TIMEOUT, listener.accept());
    let (_server, _) = accept().await.unwrap().unwrap();
    drop(accept().await.expect("a backup connection").unwrap());
    let mut second = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    second.write_all(b"anew").await.unwrap();
    let (mut server, _) = accept().await.expect("a new connection").unwrap();
    let mut received = [0; 4];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"anew");
}

#[tokio::test]
async fn a_client_that_has_closed_its_direction_still_receives_the_response() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            stream.read_to_end(&mut request).await.unwrap();
            stream.write_all(&pattern(200_000)).await.unwrap();
            request
        });
        let mut stream = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        stream.write_all(b"the whole request").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
        assert!(response == pattern(200_000), "{line:?}");
        assert_eq!(serving.await.unwrap(), b"the whole request");
    }
}

#[tokio::test]
async fn a_server_that_has_closed_its_direction_still_receives_the_request() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"goodbye").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            received
        });
        let mut stream = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
        assert_eq!(response, b"goodbye");
        stream.write_all(&pattern(50_000)).await.unwrap();
        drop(stream);
        assert!(serving.await.unwrap() == pattern(50_000), "{line:?}");
    }
}

/// A line on which two megabytes take more than half an hour.
const VERY_SLOW_LINE: LineProfile = LineProfile {
    down_kbps: Some(8.0),
    up_kbps: Some(8.0),
    rtt_ms: 400.0,
    loss_pct: 5.0,
};

#[tokio::test]
async fn without_limits_open_and_new_connections_are_fast() {
    let (link, server) = (open(VERY_SLOW_LINE).await, echo_server().await);
    let before = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    let (mut from, mut to) = before.into_split();
    let sent = pattern(2_000_000);
    let copy = sent.clone();
    // Some of it is in transit and in queues when the limits are removed.
    let writing = tokio::spawn(async move {
        to.write_all(&copy).await.unwrap();
        to
    });
    let mut first = [0; 100];
    timeout(TIMEOUT, from.read_exact(&mut first))
        .await
        .unwrap()
        .unwrap();
    link.remove_limits();
    let mut rest = vec![0; sent.len() - first.len()];
    timeout(TIMEOUT, from.read_exact(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(sent == [&first[..], &rest].concat());
    drop(writing.await.unwrap());

    let after = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    let (mut from, mut to) = after.into_split();
    let mut received = vec![0; sent.len()];
    let exchange = async { tokio::join!(to.write_all(&sent), from.read_exact(&mut received)) };
    let (wrote, read) = timeout(TIMEOUT, exchange).await.unwrap();
    wrote.unwrap();
    read.unwrap();
    assert!(sent == received);
}

#[tokio::test]
async fn limits_can_be_removed_from_an_unlimited_line() {
    let (link, server) = (open(LineProfile::UNLIMITED).await, echo_server().await);
    link.remove_limits();
    let mut stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    stream.write_all(b"still here").await.unwrap();
    let mut response = [0; 10];
    stream.read_exact(&mut response).await.unwrap();
    assert_eq!(&response, b"still here");
}

async fn read_until_error(stream: &mut TcpStream) -> io::ErrorKind {
    let mut buffer = [0; 4096];
    loop {
        match timeout(TIMEOUT, stream.read(&mut buffer)).await.unwrap() {
            Ok(0) => return io::ErrorKind::UnexpectedEof,
            Ok(_) => {}
            Err(e) => return e.kind(),
        }
    }
}

#[tokio::test]
async fn a_reset_by_the_server_reaches_the_client() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let mut client = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        server.set_zero_linger().unwrap();
        drop(server);
        let ended = read_until_error(&mut client).await;
        assert_eq!(ended, io::ErrorKind::ConnectionReset, "{line:?}");
    }
}

#[tokio::test]
async fn a_reset_by_the_client_reaches_the_server() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let client = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.set_zero_linger().unwrap();
        drop(client);
        let ended = read_until_error(&mut server).await;
        assert_eq!(ended, io::ErrorKind::ConnectionReset, "{line:?}");
    }
}

/// Waits until a count has not changed during 200 round trips of an echo, which measures time
/// without sleeping.
async fn wait_until_stable(link: &Link, echo: &mut TcpStream, count: impl Fn(&Link) -> u64) -> u64 {
    let (mut last, mut unchanged) = (count(link), 0);
    while unchanged < 200 {
        echo.write_all(b"tick").await.unwrap();
        echo.read_exact(&mut [0; 4]).await.unwrap();
        let current = count(link);
        unchanged = if current == last { unchanged + 1 } else { 0 };
        last = current;
    }
    last
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_server() {
    const TOTAL: usize = 64 << 20;
    for line in BOTH_LINES {
        let (link, echo_address) = (open(line).await, echo_server().await);
        let (listener, address) = listen("127.0.0.1").await;
        let mut echo = connect(&link, "127.0.0.1", echo_address.port())
            .await
            .unwrap();
        let mut client = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let serving = tokio::spawn(async move {
            let block = vec![7; 64 * 1024];
            for _ in 0..TOTAL / block.len() {
                if server.write_all(&block).await.is_err() {
                    return;
                }
            }
        });
        let down = |link: &Link| {
            let records = link.records();
            records.iter().map(|r| r.bytes_down).max().unwrap_or(0)
        };
        let transferred = wait_until_stable(&link, &mut echo, down).await;
        // The buffers of the operating system on loopback and our window; far less than the total.
        assert!(transferred < 16 << 20, "{line:?}: {transferred} bytes");
        assert!(!serving.is_finished());
        client.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    }
}

#[tokio::test]
async fn a_thousand_simultaneous_connections_all_get_their_response() {
    raise_file_limit();
    for line in BOTH_LINES {
        let (link, server) = (Arc::new(open(line).await), echo_server().await);
        let mut clients = JoinSet::new();
        for i in 0..1000u32 {
            let link = Arc::clone(&link);
            clients.spawn(async move {
                let mut stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
                let sent = i.to_be_bytes().repeat(100);
                stream.write_all(&sent).await.unwrap();
                let mut received = vec![0; sent.len()];
                stream.read_exact(&mut received).await.unwrap();
                assert_eq!(sent, received);
                stream
            });
        }
        // All stay open until the last one has its response.
        let open = timeout(TIMEOUT, clients.join_all()).await.unwrap();
        assert_eq!(open.len(), 1000);
        let records = link.records();
        assert_eq!(records.len(), 1000);
        assert!(
            records
                .iter()
                .all(|r| r.outcome == ConnectionOutcome::Connected)
        );
        assert!(
            records
                .iter()
                .all(|r| (r.bytes_up, r.bytes_down) == (400, 400))
        );
    }
}

/// Raises the limit on open files: there are four sockets per connection in this process.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the limit on open files can be raised");
}

#[tokio::test]
async fn exceeding_the_limit_on_bytes_resets_all_connections() {
    for line in BOTH_LINES {
        let mut config = config(line, &["127.0.0.0/8"]);
        config.max_bytes = 300_000;
        let (link, server) = (Link::open(config).unwrap(), echo_server().await);
        let mut idle = connect(&link, "127.0.0.1", server.port()).await.unwrap();
        let busy = connect(&link, "127.0.0.1", server.port()).await.unwrap();
        assert!(!link.over_limit());
        let (mut from, mut to) = busy.into_split();
        let writing = tokio::spawn(async move { to.write_all(&pattern(10_000_000)).await });
        let mut received = Vec::new();
        let read = from.read_to_end(&mut received).await;
        assert!(received.len() <= 300_000 && pattern(received.len()) == received);
        // The kernel reports a reset once, to the first call; and its buffers may hold all that was
        // written.
        let wrote = writing.await.unwrap();
        assert!(read.is_err() || wrote.is_err());
        assert!(link.over_limit());
        let idle_end = read_until_error(&mut idle).await;
        assert_eq!(idle_end, io::ErrorKind::ConnectionReset);
        assert_eq!(
            connect(&link, "127.0.0.1", server.port()).await.err(),
            Some(2)
        );
        let last = outcome_for(&link, "127.0.0.1", server.port());
        assert_eq!(last, Some(ConnectionOutcome::OverLimit));
    }
}

#[tokio::test]
async fn closing_or_dropping_a_link_ends_all_connections() {
    for line in BOTH_LINES {
        for close in [true, false] {
            let (link, server) = (open(line).await, echo_server().await);
            let address = link.address();
            let mut stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
            if close {
                link.close().await;
            } else {
                drop(link);
            }
            read_until_error(&mut stream).await;
            let result = TcpStream::connect(address).await.map(|_| ());
            assert!(result.is_err(), "{line:?}");
        }
    }
}

async fn open_with_clock(profile: LineProfile, rate: f64) -> (Link, Arc<PageClock>) {
    let clock = Arc::new(PageClock::private().unwrap());
    clock.set_speed(rate);
    let mut config = config(profile, &["127.0.0.0/8"]);
    config.clock = Some(Arc::clone(&clock));
    (Link::open(config).unwrap(), clock)
}

#[tokio::test]
async fn a_server_has_a_request_while_it_is_under_way_in_page_time() {
    let (link, clock) = open_with_clock(DISTANT_LINE, 10.0).await;
    let (listener, address) = listen("127.0.0.1").await;
    let mut browser = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    clock.set_rate(0.0);
    let sent_at = clock.now();
    browser.write_all(b"question").await.unwrap();
    let mut received = [0; 8];
    timeout(TIMEOUT, server.read_exact(&mut received))
        .await
        .expect("the request waits for the page's clock")
        .unwrap();
    server.write_all(b"answer").await.unwrap();
    clock.set_rate(10.0);
    browser.read_exact(&mut received[..6]).await.unwrap();
    assert_eq!(&received[..6], b"answer");
    let rtt = Duration::from_secs_f64(DISTANT_LINE.rtt_ms / 1000.0);
    assert!(clock.now() - sent_at >= rtt);
}

#[tokio::test]
async fn the_time_of_an_answer_counts_after_bytes_that_came_before_it() {
    let (link, clock) = open_with_clock(DISTANT_LINE, 10.0).await;
    let (listener, address) = listen("127.0.0.1").await;
    let mut browser = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    // The request is under way on the emulated network as long as the clock stands still.
    clock.set_rate(0.0);
    let sent_at = clock.now();
    browser.write_all(b"question").await.unwrap();
    server.read_exact(&mut [0; 8]).await.unwrap();
    server.write_all(b"settings").await.unwrap();
    let think_time = Duration::from_millis(200);
    tokio::time::sleep(think_time).await;
    server.write_all(b"answer").await.unwrap();
    clock.set_rate(10.0);
    browser.read_exact(&mut [0; 14]).await.unwrap();
    let elapsed = clock.now() - sent_at;
    let rtt = Duration::from_secs_f64(DISTANT_LINE.rtt_ms / 1000.0);
    assert!(elapsed >= rtt + think_time, "{elapsed:?}");
}

#[tokio::test]
async fn a_server_does_not_seem_faster_on_a_slow_clock() {
    let (link, clock) = open_with_clock(DISTANT_LINE, 0.5).await;
    let (listener, address) = listen("127.0.0.1").await;
    let mut browser = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let think_time = Duration::from_millis(200);
    let exchange = async {
        let sent_at = clock.now();
        browser.write_all(b"question").await.unwrap();
        browser.read_exact(&mut [0; 6]).await.unwrap();
        clock.now() - sent_at
    };
    let think = async {
        server.read_exact(&mut [0; 8]).await.unwrap();
        tokio::time::sleep(think_time).await;
        server.write_all(b"answer").await.unwrap();
    };
    let (elapsed, ()) = tokio::join!(exchange, think);
    let rtt = Duration::from_secs_f64(DISTANT_LINE.rtt_ms / 1000.0);
    assert!(elapsed >= rtt + think_time, "{elapsed:?}");
}
