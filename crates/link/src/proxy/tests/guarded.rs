use std::future::pending;
use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::{Outcome, Reason};

fn reason(outcome: Option<Outcome>) -> Option<Reason> {
    match outcome {
        Some(Outcome::Blocked(refusal)) => Some(refusal.reason),
        _ => None,
    }
}

/// Whether anybody has connected so far. The kernel queues connections before they are accepted.
async fn anybody_came(listener: &TcpListener) -> bool {
    std::future::poll_fn(|context| std::task::Poll::Ready(listener.poll_accept(context).is_ready()))
        .await
}

#[tokio::test]
async fn no_spelling_of_loopback_gets_through() {
    let (listener, address) = listen("127.0.0.1").await;
    let port = address.port();
    let told = Told::new(&[
        ("rebound.test", &[&["127.0.0.1"]]),
        ("mixed.test", &[&["8.8.8.8", "127.0.0.1"]]),
        ("mapped.test", &[&["::ffff:127.0.0.1"]]),
        ("nat64.test", &[&["64:ff9b::7f00:1"]]),
        ("zero.test", &[&["0.0.0.0"]]),
        ("metadata.test", &[&["169.254.169.254"]]),
    ]);
    for line in BOTH_LINES {
        let mut config = config(line, &[]);
        config.resolver = Arc::clone(&told) as Arc<dyn Resolver>;
        let link = Link::open(config).await.unwrap();
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.0.1.",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "2130706433",
            "0",
            "0.0.0.0",
            "::1",
            "[::1]",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "rebound.test",
            "REBOUND.test.",
            "mixed.test",
            "mapped.test",
            "nat64.test",
            "zero.test",
            "metadata.test",
            "169.254.169.254",
            "10.0.0.1",
            "",
        ] {
            // What had to be looked up looks like a name that does not exist.
            let reply = if host.ends_with(".test") || host.ends_with(".test.") {
                4
            } else {
                2
            };
            assert_eq!(
                connect(&link, host, port).await.err(),
                Some(reply),
                "{host}"
            );
            let outcome = link.outcome_for(host, port);
            assert!(reason(outcome).is_some(), "{host}");
        }
    }
    assert!(!anybody_came(&listener).await);
}

#[tokio::test]
async fn a_second_answer_is_never_heard() {
    // 127.0.0.2 is allowed and stands for the public internet; 127.0.0.1 is not.
    let (public, address) = listen("127.0.0.2").await;
    let private = TcpListener::bind(("127.0.0.1", address.port()))
        .await
        .unwrap();
    let told = Told::new(&[("rebinds.test", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let mut config = config(QUICK_LINE, &["127.0.0.2"]);
    config.resolver = Arc::clone(&told) as Arc<dyn Resolver>;
    let link = Link::open(config).await.unwrap();
    for host in ["rebinds.test", "rebinds.test", "REBINDS.test."] {
        connect(&link, host, address.port()).await.unwrap();
        public.accept().await.unwrap();
        let record = link.records().pop().unwrap();
        assert_eq!(record.address, Some(address));
    }
    assert_eq!(told.asked(), 1);
    assert!(!anybody_came(&private).await);
}

#[tokio::test]
async fn a_name_once_refused_stays_refused() {
    let (listener, address) = listen("127.0.0.2").await;
    let told = Told::new(&[("rebinds.test", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.2"]);
    config.resolver = told;
    let link = Link::open(config).await.unwrap();
    for _ in 0..2 {
        let refused = connect(&link, "rebinds.test", address.port()).await;
        assert_eq!(refused.err(), Some(4));
    }
    assert!(!anybody_came(&listener).await);
}

#[tokio::test]
async fn a_denied_port_is_blocked_before_anything_is_looked_up() {
    let told = Told::new(&[("db.test", &[&["8.8.8.8"]])]);
    let mut config = config(LineProfile::UNLIMITED, &[]);
    config.resolver = Arc::clone(&told) as Arc<dyn Resolver>;
    let link = Link::open(config).await.unwrap();
    assert_eq!(connect(&link, "db.test", 6379).await.err(), Some(2));
    let outcome = link.outcome_for("db.test", 6379);
    assert_eq!(reason(outcome), Some(Reason::DeniedPort));
    assert_eq!(told.asked(), 0);
}

#[tokio::test]
async fn the_link_does_not_talk_to_itself() {
    let link = open(LineProfile::UNLIMITED).await;
    let own = link.address().port();
    assert_eq!(connect(&link, "127.0.0.1", own).await.err(), Some(2));
}

#[tokio::test]
async fn a_closed_port_is_told_from_a_missing_name() {
    let (listener, address) = listen("127.0.0.1").await;
    drop(listener);
    for line in BOTH_LINES {
        let mut config = config(line, &["127.0.0.0/8"]);
        config.resolver = Told::new(&[("empty.test", &[&[]])]);
        let link = Link::open(config).await.unwrap();
        let port = address.port();
        assert_eq!(connect(&link, "127.0.0.1", port).await.err(), Some(5));
        assert_eq!(connect(&link, "missing.test", 80).await.err(), Some(4));
        assert_eq!(connect(&link, "empty.test", 80).await.err(), Some(4));
        let outcome = |host: &str, port| link.outcome_for(host, port);
        assert_eq!(outcome("127.0.0.1", port), Some(Outcome::ConnectionRefused));
        assert_eq!(outcome("Missing.test.", 80), Some(Outcome::NameNotFound));
        assert_eq!(outcome("empty.test", 80), Some(Outcome::NameNotFound));
        assert_eq!(outcome("missing.test", 443), None);
    }
}

#[tokio::test]
async fn a_missing_name_is_known_before_any_packet_could_be_back() {
    const ROUND_TRIP: Duration = Duration::from_secs(60);
    let mut line = LineProfile::UNLIMITED;
    line.rtt_ms = ROUND_TRIP.as_secs_f64() * 1000.0;
    let mut config = config(line, &[]);
    config.resolver = Told::new(&[("empty.test", &[&[]])]);
    let link = Link::open(config).await.unwrap();
    for missing in ["missing.test", "empty.test"] {
        let told = timeout(ROUND_TRIP / 2, connect(&link, missing, 80)).await;
        assert_eq!(told.unwrap().err(), Some(4));
    }
}

#[tokio::test]
async fn a_refused_name_fails_like_a_missing_one() {
    const ROUND_TRIP: Duration = Duration::from_secs(60);
    const LEAST: Duration = Duration::from_millis(100);
    let mut line = LineProfile::UNLIMITED;
    line.rtt_ms = ROUND_TRIP.as_secs_f64() * 1000.0;
    let mut config = config(line, &["127.0.0.1:6379"]);
    config.resolver = Told::new(&[
        ("empty.test", &[&[]]),
        ("private.test", &[&["10.0.0.1"]]),
        ("mixed.test", &[&["8.8.8.8", "169.254.169.254"]]),
    ]);
    let link = Link::open(config).await.unwrap();
    let names = ["missing.test", "empty.test", "private.test", "mixed.test"];
    // The port is denied, but for an address that no name is known to have before it is looked up.
    for (host, port) in names.map(|name| [(name, 80), (name, 6379)]).concat() {
        // The second time the answer of the first is known.
        for _ in 0..2 {
            let started = std::time::Instant::now();
            let reply = timeout(ROUND_TRIP / 2, connect(&link, host, port)).await;
            assert_eq!(reply.unwrap().err(), Some(4), "{host}:{port}");
            assert!(started.elapsed() >= LEAST, "{host}:{port}");
        }
    }
}

#[tokio::test]
async fn a_name_server_that_never_answers_is_a_timeout() {
    struct Silent;
    impl Resolver for Silent {
        fn resolve<'a>(&'a self, _host: &'a str) -> Resolution<'a> {
            Box::pin(pending())
        }
    }
    let mut config = config(LineProfile::UNLIMITED, &[]);
    config.resolver = Arc::new(Silent);
    config.lookup_timeout = Duration::from_millis(5);
    let link = Link::open(config).await.unwrap();
    assert_eq!(connect(&link, "slow.test", 80).await.err(), Some(4));
    let outcome = link.outcome_for("slow.test", 80);
    assert_eq!(outcome, Some(Outcome::LookupTimedOut));
}

#[tokio::test]
async fn the_next_address_is_tried_when_the_first_refuses() {
    let (listener, address) = listen("127.0.0.1").await;
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.0/8"]);
    config.resolver = Told::new(&[("two.test", &[&["127.0.0.77", "127.0.0.1"]])]);
    let link = Link::open(config).await.unwrap();
    connect(&link, "two.test", address.port()).await.unwrap();
    listener.accept().await.unwrap();
    assert_eq!(link.records()[0].address, Some(address));
    assert_eq!(link.records()[0].outcome, Outcome::Connected);
}

#[tokio::test]
async fn the_browsers_own_services_are_refused_quietly() {
    let told = Told::new(&[("update.googleapis.com", &[&["127.0.0.1"]])]);
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.0/8"]);
    config.resolver = Arc::clone(&told) as Arc<dyn Resolver>;
    let link = Link::open(config).await.unwrap();
    let refused = connect(&link, "update.googleapis.com", 443).await;
    assert_eq!(refused.err(), Some(2));
    let outcome = link.outcome_for("update.googleapis.com", 443);
    assert_eq!(outcome, Some(Outcome::BrowserService));
    assert_eq!(told.asked(), 0);
}

#[tokio::test]
async fn a_line_that_cannot_be_is_refused() {
    let nonsense = LineProfile {
        rtt_ms: -3.0,
        ..QUICK_LINE
    };
    assert!(Link::open(config(nonsense, &[])).await.is_err());
}
