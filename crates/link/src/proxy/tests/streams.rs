use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::{Outcome, Traffic};

/// Long enough for the slowest machine; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// So far that Chromium would dial twice.
const FAR_LINE: LineProfile = LineProfile {
    rtt_ms: 600.0,
    ..QUICK_LINE
};

#[tokio::test]
async fn a_megabyte_comes_back_unchanged() {
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
        let total = Traffic {
            up: 1_000_000,
            down: 1_000_000,
        };
        assert_eq!(link.bytes(), total);
    }
}

#[tokio::test]
async fn a_lossy_line_delivers_everything_all_the_same() {
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
async fn a_handshake_is_ahead_of_what_is_sent_while_its_request_is_read() {
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
    // Four seconds of this line.
    other.write_all(&pattern(1000)).await.unwrap();
    while link.bytes().up < 1000 {
        tokio::task::yield_now().await;
    }
    let port = address.port().to_be_bytes();
    late.write_all(&[&[5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat())
        .await
        .unwrap();
    let (mut reply, mut upload) = ([0; 10], [0; 1000]);
    tokio::select! {
        connected = late.read_exact(&mut reply) => assert_eq!((connected.unwrap(), reply[1]), (10, 0)),
        _ = server.read_exact(&mut upload) => panic!("the handshake came behind the upload"),
    }
}

#[tokio::test]
async fn a_host_far_away_is_dialed_twice_and_the_second_is_kept_for_the_next() {
    let link = open(FAR_LINE).await;
    let (listener, address) = listen("127.0.0.1").await;
    let first = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let accept = || timeout(PATIENCE, listener.accept());
    let (_server, _) = accept().await.unwrap().unwrap();
    let (mut spare, _) = accept().await.expect("a second try").unwrap();
    let mut second = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    second.write_all(b"over the second").await.unwrap();
    let mut heard = [0; 15];
    spare.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"over the second");
    assert_eq!(link.records().len(), 2);
    drop(first);
}

#[tokio::test]
async fn a_second_try_that_the_server_has_closed_is_not_given_to_anybody() {
    let link = open(FAR_LINE).await;
    let (listener, address) = listen("127.0.0.1").await;
    let _first = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    let accept = || timeout(PATIENCE, listener.accept());
    let (_server, _) = accept().await.unwrap().unwrap();
    drop(accept().await.expect("a second try").unwrap());
    let mut second = connect(&link, "127.0.0.1", address.port()).await.unwrap();
    second.write_all(b"anew").await.unwrap();
    let (mut server, _) = accept().await.expect("a connection of its own").unwrap();
    let mut heard = [0; 4];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"anew");
}

#[tokio::test]
async fn a_client_that_has_said_all_still_hears_the_answer() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            stream.read_to_end(&mut asked).await.unwrap();
            stream.write_all(&pattern(200_000)).await.unwrap();
            asked
        });
        let mut stream = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        stream.write_all(b"all I want to say").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer == pattern(200_000), "{line:?}");
        assert_eq!(serving.await.unwrap(), b"all I want to say");
    }
}

#[tokio::test]
async fn a_server_that_has_said_all_still_hears_the_client() {
    for line in BOTH_LINES {
        let link = open(line).await;
        let (listener, address) = listen("127.0.0.1").await;
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"goodbye").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).await.unwrap();
            heard
        });
        let mut stream = connect(&link, "127.0.0.1", address.port()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"goodbye");
        stream.write_all(&pattern(50_000)).await.unwrap();
        drop(stream);
        assert!(serving.await.unwrap() == pattern(50_000), "{line:?}");
    }
}

/// Two megabytes take more than half an hour on it.
const CRAWLING_LINE: LineProfile = LineProfile {
    down_kbps: Some(8.0),
    up_kbps: Some(8.0),
    rtt_ms: 400.0,
    loss_pct: 5.0,
};

#[tokio::test]
async fn a_line_that_is_lifted_holds_nobody_back() {
    let (link, server) = (open(CRAWLING_LINE).await, echo_server().await);
    let before = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    let (mut from, mut to) = before.into_split();
    let sent = pattern(2_000_000);
    let copy = sent.clone();
    // Some of it is on its way, and waits in queues, when the line is lifted.
    let writing = tokio::spawn(async move {
        to.write_all(&copy).await.unwrap();
        to
    });
    let mut first = [0; 100];
    timeout(PATIENCE, from.read_exact(&mut first))
        .await
        .unwrap()
        .unwrap();
    link.remove_limits();
    let mut rest = vec![0; sent.len() - first.len()];
    timeout(PATIENCE, from.read_exact(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(sent == [&first[..], &rest].concat());
    drop(writing.await.unwrap());

    let after = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    let (mut from, mut to) = after.into_split();
    let mut received = vec![0; sent.len()];
    let exchange = async { tokio::join!(to.write_all(&sent), from.read_exact(&mut received)) };
    let (wrote, read) = timeout(PATIENCE, exchange).await.unwrap();
    wrote.unwrap();
    read.unwrap();
    assert!(sent == received);
}

#[tokio::test]
async fn a_line_without_limits_can_be_lifted_too() {
    let (link, server) = (open(LineProfile::UNLIMITED).await, echo_server().await);
    link.remove_limits();
    let mut stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
    stream.write_all(b"still here").await.unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"still here");
}

async fn read_until_error(stream: &mut TcpStream) -> io::ErrorKind {
    let mut buffer = [0; 4096];
    loop {
        match timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap() {
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

/// Waits until a count stands still while `rounds` echoes go round: a clock that needs no sleep.
async fn until_still(link: &Link, clock: &mut TcpStream, count: impl Fn(&Link) -> u64) -> u64 {
    let (mut last, mut still) = (count(link), 0);
    while still < 200 {
        clock.write_all(b"tick").await.unwrap();
        clock.read_exact(&mut [0; 4]).await.unwrap();
        let now = count(link);
        still = if now == last { still + 1 } else { 0 };
        last = now;
    }
    last
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_the_server_back() {
    const TOTAL: usize = 64 << 20;
    for line in BOTH_LINES {
        let (link, echo) = (open(line).await, echo_server().await);
        let (listener, address) = listen("127.0.0.1").await;
        let mut clock = connect(&link, "127.0.0.1", echo.port()).await.unwrap();
        let mut lazy = connect(&link, "127.0.0.1", address.port()).await.unwrap();
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
        let stuck_at = until_still(&link, &mut clock, down).await;
        // What the operating system buffers on loopback, and our window; far from all of it.
        assert!(stuck_at < 16 << 20, "{line:?}: {stuck_at} bytes");
        assert!(!serving.is_finished());
        lazy.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    }
}

#[tokio::test]
async fn a_thousand_connections_at_once_all_get_their_answer() {
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
        // All stay open until the last has its answer.
        let open = timeout(PATIENCE, clients.join_all()).await.unwrap();
        assert_eq!(open.len(), 1000);
        let records = link.records();
        assert_eq!(records.len(), 1000);
        assert!(records.iter().all(|r| r.outcome == Outcome::Connected));
        assert!(
            records
                .iter()
                .all(|r| (r.bytes_up, r.bytes_down) == (400, 400))
        );
    }
}

/// Four sockets per connection in this one process.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the limit on open files can be raised");
}

#[tokio::test]
async fn the_cap_on_bytes_cuts_everything() {
    for line in BOTH_LINES {
        let mut config = config(line, &["127.0.0.0/8"]);
        config.max_bytes = 300_000;
        let (link, server) = (Link::open(config).await.unwrap(), echo_server().await);
        let mut idle = connect(&link, "127.0.0.1", server.port()).await.unwrap();
        let busy = connect(&link, "127.0.0.1", server.port()).await.unwrap();
        assert!(!link.over_limit());
        let (mut from, mut to) = busy.into_split();
        let writing = tokio::spawn(async move { to.write_all(&pattern(10_000_000)).await });
        let mut received = Vec::new();
        let read = from.read_to_end(&mut received).await;
        assert!(received.len() <= 300_000 && pattern(received.len()) == received);
        // The kernel tells of a reset once, whoever asks first; and its buffers may hold all that was written.
        let wrote = writing.await.unwrap();
        assert!(read.is_err() || wrote.is_err());
        assert!(link.over_limit());
        let idle_end = read_until_error(&mut idle).await;
        assert_eq!(idle_end, io::ErrorKind::ConnectionReset);
        assert_eq!(
            connect(&link, "127.0.0.1", server.port()).await.err(),
            Some(2)
        );
        let last = link.outcome_for("127.0.0.1", server.port());
        assert_eq!(last, Some(Outcome::OverLimit));
    }
}

#[tokio::test]
async fn a_link_that_is_dropped_takes_everything_with_it() {
    for line in BOTH_LINES {
        for politely in [true, false] {
            let (link, server) = (open(line).await, echo_server().await);
            let address = link.address();
            let mut stream = connect(&link, "127.0.0.1", server.port()).await.unwrap();
            if politely {
                link.close().await;
            } else {
                drop(link);
            }
            read_until_error(&mut stream).await;
            let refused = TcpStream::connect(address).await.map(|_| ());
            assert!(refused.is_err(), "{line:?}");
        }
    }
}
