use std::future::pending;
use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::RefusalReason;

fn reason(outcome: Option<ConnectionOutcome>) -> Option<RefusalReason> {
    match outcome {
        Some(ConnectionOutcome::Blocked(refusal)) => Some(refusal.reason),
        _ => None,
    }
}

/// Returns whether the listener has a connection. The kernel queues connections before they are
/// accepted.
async fn has_connection(listener: &TcpListener) -> bool {
    std::future::poll_fn(|context| std::task::Poll::Ready(listener.poll_accept(context).is_ready()))
        .await
}

#[tokio::test]
async fn every_spelling_of_loopback_is_refused() {
    let (listener, address) = listen("127.0.0.1").await;
    let port = address.port();
    let resolver = ScriptedResolver::new(&[
        ("rebound.test", &[&["127.0.0.1"]]),
        ("mixed.test", &[&["8.8.8.8", "127.0.0.1"]]),
        ("mapped.test", &[&["::ffff:127.0.0.1"]]),
        ("nat64.test", &[&["64:ff9b::7f00:1"]]),
        ("zero.test", &[&["0.0.0.0"]]),
        ("metadata.test", &[&["169.254.169.254"]]),
    ]);
    for line in BOTH_LINES {
        let mut config = config(line, &[]);
        config.resolver = Arc::clone(&resolver) as Arc<dyn Resolver>;
        let link = Link::open(config).unwrap();
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
            // Names that were looked up look like names that do not exist.
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
            let outcome = outcome_for(&link, host, port);
            assert!(reason(outcome).is_some(), "{host}");
        }
    }
    assert!(!has_connection(&listener).await);
}

#[tokio::test]
async fn a_second_dns_response_is_never_used() {
    // 127.0.0.2 is allowed and represents the public internet; 127.0.0.1 is not allowed.
    let (public, address) = listen("127.0.0.2").await;
    let private = TcpListener::bind(("127.0.0.1", address.port()))
        .await
        .unwrap();
    let resolver = ScriptedResolver::new(&[("rebinds.test", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let mut config = config(QUICK_LINE, &["127.0.0.2"]);
    config.resolver = Arc::clone(&resolver) as Arc<dyn Resolver>;
    let link = Link::open(config).unwrap();
    for host in ["rebinds.test", "rebinds.test", "REBINDS.test."] {
        connect(&link, host, address.port()).await.unwrap();
        public.accept().await.unwrap();
        let record = link.records().pop().unwrap();
        assert_eq!(record.address, Some(address));
    }
    assert_eq!(resolver.lookups(), 1);
    assert!(!has_connection(&private).await);
}

#[tokio::test]
async fn a_refused_name_stays_refused() {
    let (listener, address) = listen("127.0.0.2").await;
    let resolver = ScriptedResolver::new(&[("rebinds.test", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.2"]);
    config.resolver = resolver;
    let link = Link::open(config).unwrap();
    for _ in 0..2 {
        let result = connect(&link, "rebinds.test", address.port()).await;
        assert_eq!(result.err(), Some(4));
    }
    assert!(!has_connection(&listener).await);
}

#[tokio::test]
async fn a_denied_port_is_blocked_before_a_lookup() {
    let resolver = ScriptedResolver::new(&[("db.test", &[&["8.8.8.8"]])]);
    let mut config = config(LineProfile::UNLIMITED, &[]);
    config.resolver = Arc::clone(&resolver) as Arc<dyn Resolver>;
    let link = Link::open(config).unwrap();
    assert_eq!(connect(&link, "db.test", 6379).await.err(), Some(2));
    let outcome = outcome_for(&link, "db.test", 6379);
    assert_eq!(reason(outcome), Some(RefusalReason::DeniedPort));
    assert_eq!(resolver.lookups(), 0);
}

#[tokio::test]
async fn the_link_does_not_connect_to_itself() {
    let link = open(LineProfile::UNLIMITED).await;
    let own = link.address().port();
    assert_eq!(connect(&link, "127.0.0.1", own).await.err(), Some(2));
}

#[tokio::test]
async fn a_closed_port_and_a_missing_name_have_different_replies() {
    let (listener, address) = listen("127.0.0.1").await;
    drop(listener);
    for line in BOTH_LINES {
        let mut config = config(line, &["127.0.0.0/8"]);
        config.resolver = ScriptedResolver::new(&[("empty.test", &[&[]])]);
        let link = Link::open(config).unwrap();
        let port = address.port();
        assert_eq!(connect(&link, "127.0.0.1", port).await.err(), Some(5));
        assert_eq!(connect(&link, "missing.test", 80).await.err(), Some(4));
        assert_eq!(connect(&link, "empty.test", 80).await.err(), Some(4));
        let outcome = |host: &str, port| outcome_for(&link, host, port);
        assert_eq!(
            outcome("127.0.0.1", port),
            Some(ConnectionOutcome::ConnectionRefused)
        );
        assert_eq!(
            outcome("missing.test", 80),
            Some(ConnectionOutcome::NameNotFound)
        );
        assert_eq!(
            outcome("empty.test", 80),
            Some(ConnectionOutcome::NameNotFound)
        );
        assert_eq!(outcome("missing.test", 443), None);
    }
}

#[tokio::test]
async fn a_missing_name_fails_without_a_round_trip() {
    const ROUND_TRIP: Duration = Duration::from_secs(60);
    let mut line = LineProfile::UNLIMITED;
    line.rtt_ms = ROUND_TRIP.as_secs_f64() * 1000.0;
    let mut config = config(line, &[]);
    config.resolver = ScriptedResolver::new(&[("empty.test", &[&[]])]);
    let link = Link::open(config).unwrap();
    for missing in ["missing.test", "empty.test"] {
        let result = timeout(ROUND_TRIP / 2, connect(&link, missing, 80)).await;
        assert_eq!(result.unwrap().err(), Some(4));
    }
}

#[tokio::test]
async fn a_refused_name_fails_like_a_missing_name() {
    const ROUND_TRIP: Duration = Duration::from_secs(60);
    const MIN_DURATION: Duration = Duration::from_millis(100);
    let mut line = LineProfile::UNLIMITED;
    line.rtt_ms = ROUND_TRIP.as_secs_f64() * 1000.0;
    let mut config = config(line, &["127.0.0.1:6379"]);
    config.resolver = ScriptedResolver::new(&[
        ("empty.test", &[&[]]),
        ("private.test", &[&["10.0.0.1"]]),
        ("mixed.test", &[&["8.8.8.8", "169.254.169.254"]]),
    ]);
    let link = Link::open(config).unwrap();
    let names = ["missing.test", "empty.test", "private.test", "mixed.test"];
    // The denied port is allowed for one address, and only a lookup shows whether a name has it.
    for (host, port) in names.map(|name| [(name, 80), (name, 6379)]).concat() {
        // The second time the response of the first is cached.
        for _ in 0..2 {
            let started = std::time::Instant::now();
            let reply = timeout(ROUND_TRIP / 2, connect(&link, host, port)).await;
            assert_eq!(reply.unwrap().err(), Some(4), "{host}:{port}");
            assert!(started.elapsed() >= MIN_DURATION, "{host}:{port}");
        }
    }
}

#[tokio::test]
async fn a_lookup_without_a_response_times_out() {
    struct SilentResolver;
    impl Resolver for SilentResolver {
        fn resolve<'a>(&'a self, _host: &'a str) -> Resolution<'a> {
            Box::pin(pending())
        }
    }
    let mut config = config(LineProfile::UNLIMITED, &[]);
    config.resolver = Arc::new(SilentResolver);
    config.lookup_timeout = Duration::from_millis(5);
    let link = Link::open(config).unwrap();
    assert_eq!(connect(&link, "slow.test", 80).await.err(), Some(4));
    let outcome = outcome_for(&link, "slow.test", 80);
    assert_eq!(outcome, Some(ConnectionOutcome::LookupTimedOut));
}

#[tokio::test]
async fn the_next_address_is_tried_when_the_first_refuses() {
    let (listener, address) = listen("127.0.0.1").await;
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.0/8"]);
    config.resolver = ScriptedResolver::new(&[("two.test", &[&["127.0.0.77", "127.0.0.1"]])]);
    let link = Link::open(config).unwrap();
    connect(&link, "two.test", address.port()).await.unwrap();
    listener.accept().await.unwrap();
    assert_eq!(link.records()[0].address, Some(address));
    assert_eq!(link.records()[0].outcome, ConnectionOutcome::Connected);
}

#[tokio::test]
async fn the_browsers_own_services_are_refused() {
    let resolver = ScriptedResolver::new(&[("update.googleapis.com", &[&["127.0.0.1"]])]);
    let mut config = config(LineProfile::UNLIMITED, &["127.0.0.0/8"]);
    config.resolver = Arc::clone(&resolver) as Arc<dyn Resolver>;
    let link = Link::open(config).unwrap();
    let result = connect(&link, "update.googleapis.com", 443).await;
    assert_eq!(result.err(), Some(2));
    let outcome = outcome_for(&link, "update.googleapis.com", 443);
    assert_eq!(outcome, Some(ConnectionOutcome::BrowserService));
    assert_eq!(resolver.lookups(), 0);
}

#[tokio::test]
async fn an_invalid_line_profile_is_an_error() {
    let invalid = LineProfile {
        rtt_ms: -3.0,
        ..QUICK_LINE
    };
    assert!(Link::open(config(invalid, &[])).is_err());
}
