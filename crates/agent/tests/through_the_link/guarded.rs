//! A page is a program of a stranger in our network: it cannot reach what the guard forbids.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumbline_browser::{VisitError, VisitPlan, visit};
use plumbline_link::{ConnectionOutcome, Resolution, Resolver};

use crate::rig::{launcher, open_link, open_link_with, plan, visit_through};
use crate::site::{Response, Site};

/// A server that pages must not reach; any request to it is a breach.
async fn secret() -> Site {
    Site::serve([("/", Response::html("secret"))]).await
}

#[tokio::test]
async fn no_address_of_this_machine_is_visited_in_any_notation() {
    let secret = secret().await;
    let port = secret.address.port();
    let link = open_link(&[]).await;
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.1",
        "localhost",
        "localhost.",
        "sub.localhost",
        "0.0.0.0",
        "[::1]",
        "[::ffff:7f00:1]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "named.example",
        "named.example.",
    ] {
        let url = format!("http://{host}:{port}/");
        let visited = visit_through(&link, &url).await;
        assert!(matches!(visited, Err(VisitError::Page(_))), "{url}");
    }
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
}

#[tokio::test]
async fn the_script_of_a_state_cannot_reach_forbidden_addresses() {
    let secret = secret().await;
    let secret_url = secret.url("/");
    let host = Site::serve([(
        "/",
        Response::html("<!doctype html><title>A page</title><h1>Hello"),
    )])
    .await;
    let link = open_link(&[&host.address.to_string()]).await;
    let state = serde_json::json!({
        "script": format!("fetch('{secret_url}', {{mode: 'no-cors'}}).catch(() => {{}})"),
        "headers": [{ "name": "X-Token", "value": "1", "origins": [secret_url, host.url("/")] }],
        "cookies": [{ "name": "a", "value": "b", "domain": "127.0.0.1" }],
    });
    let plan = VisitPlan {
        state: serde_json::from_value(state).unwrap(),
        ..plan(&host.url("/"), &link)
    };
    let browser = launcher().launch().await.unwrap();
    visit(browser, &plan, &|_| {}).await.unwrap();
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
    let records = link.records();
    let port = secret.address.port();
    let mut refused = records.iter().filter(|record| record.port == port);
    let is_refused = refused.any(|record| matches!(record.outcome, ConnectionOutcome::Blocked(_)));
    assert!(is_refused, "{records:?}");
}

#[tokio::test]
async fn an_allowed_page_cannot_reach_forbidden_addresses() {
    let secret = secret().await;
    let (port, metadata) = (secret.address.port(), "http://169.254.169.254/latest/");
    let page = format!(
        r#"<!doctype html><title>Hostile</title><h1>Hello</h1>
        <link rel=preconnect href="http://127.0.0.1:{port}"><link rel=preload as=image href="http://127.0.0.1:{port}/a">
        <img src="http://127.0.0.1:{port}/b"><iframe src="http://localhost:{port}/c"></iframe>
        <iframe src="view-source:http://127.0.0.1:{port}/"></iframe><iframe src="file:///etc/passwd"></iframe>
        <script>
          for (const host of ['127.0.0.1', '0x7f.1', '[::1]', '[::ffff:7f00:1]', 'localhost', 'named.example'])
            fetch(`http://${{host}}:{port}/fetched`, {{mode: 'no-cors'}}).catch(() => {{}});
          fetch('{metadata}', {{mode: 'no-cors'}}).catch(() => {{}});
          new WebSocket('ws://127.0.0.1:{port}/socket');
          new EventSource('http://127.0.0.1:{port}/events');
          navigator.sendBeacon('http://127.0.0.1:{port}/beacon', 'x');
          new Worker(URL.createObjectURL(new Blob([`fetch('http://127.0.0.1:{port}/worker', {{mode: 'no-cors'}})`])));
          open('http://127.0.0.1:{port}/window');
        </script>"#
    );
    let host = Site::serve([("/", Response::html(page))]).await;
    let link = open_link(&[&host.address.to_string()]).await;
    let bundle = visit_through(&link, &host.url("/")).await.unwrap();
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
    assert!(host.requested_paths().contains(&"/".to_owned()));
    let records = link.records();
    let refused = |host: &str| {
        records
            .iter()
            .any(|r| r.host == host && matches!(r.outcome, ConnectionOutcome::Blocked(_)))
    };
    assert!(refused("169.254.169.254"), "{records:?}");
    assert!(refused("127.0.0.1"), "{records:?}");
    let log = String::from_utf8(bundle.log).unwrap();
    assert!(
        log.contains("Network.loadingFailed"),
        "a refused request must be logged as failed"
    );
}

#[tokio::test]
async fn a_chain_of_redirects_ends_at_a_forbidden_address() {
    let secret = secret().await;
    let inside = secret.url("/");
    let host = Site::serve_with(|address| {
        [
            ("/", Response::redirect(&format!("http://{address}/second"))),
            ("/second", Response::redirect(&inside)),
        ]
        .into()
    })
    .await;
    let link = open_link(&[&host.address.to_string()]).await;
    let visited = visit_through(&link, &host.url("/")).await;
    assert!(matches!(visited, Err(VisitError::Page(_))));
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
    let last = link.records().pop().unwrap();
    assert!(
        matches!(last.outcome, ConnectionOutcome::Blocked(_)),
        "{last:?}"
    );
}

/// Resolves a name first to an address that may be visited, and later to our own.
struct Rebinding(AtomicUsize);

impl Resolver for Rebinding {
    fn resolve<'a>(&'a self, _host: &'a str) -> Resolution<'a> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let address = if first {
            [127, 0, 0, 7]
        } else {
            [127, 0, 0, 1]
        };
        Box::pin(async move { Ok(vec![IpAddr::from(address)]) })
    }
}

#[tokio::test]
async fn dns_rebinding_does_not_reach_a_forbidden_address() {
    let secret = secret().await;
    let link = open_link_with(&["127.0.0.7"], Rebinding(AtomicUsize::new(0))).await;
    let url = format!("http://rebinding.example:{}/", secret.address.port());
    for _ in 0..2 {
        let visited = visit_through(&link, &url).await;
        assert!(matches!(visited, Err(VisitError::Page(_))));
    }
    assert_eq!(secret.requested_paths(), Vec::<String>::new());
}

/// Resolves one internal name and no other.
struct Internal;

impl Resolver for Internal {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        let is_known = host == "known.example";
        Box::pin(async move {
            if is_known {
                Ok(vec![IpAddr::from([127, 0, 0, 1])])
            } else {
                Err(io::Error::other("no such host"))
            }
        })
    }
}

#[tokio::test]
async fn a_page_cannot_distinguish_a_refused_name_from_an_unknown_one() {
    let secret = secret().await;
    let port = secret.address.port();
    let page = format!(
        r#"<!doctype html><title>Curious</title><h1>Hello</h1><script>
          const result = async host => {{
            const url = `http://${{host}}:{port}/`, began = performance.now();
            const error = await fetch(url, {{mode: 'no-cors'}}).then(() => 'arrived', String);
            const isQuick = performance.now() - began < 100;
            return [host, error.replaceAll(host, 'HOST'), isQuick].join(' ');
          }};
          const all = hosts => Promise.all(hosts.map(result));
          all(['known.example', 'unknown.example']).then(async first => {{
            const second = await all(['known.example', 'unknown.example']);
            fetch('/results?' + encodeURIComponent([...first, ...second].join('\n')));
          }});
        </script>"#
    );
    let host = Site::serve([("/", Response::html(page))]).await;
    let link = open_link_with(&[&host.address.to_string()], Internal).await;
    let bundle = visit_through(&link, &host.url("/")).await.unwrap();
    assert_eq!(secret.requested_paths(), Vec::<String>::new());

    // Scripts see the same error, and no difference in time.
    let paths = host.requested_paths();
    let results = paths.iter().find_map(|path| path.strip_prefix("/results?"));
    let results = results.expect("the page reports its results");
    let error = "TypeError%3A%20Failed%20to%20fetch%20false";
    let lines = ["known", "unknown", "known", "unknown"];
    let expected = lines.map(|name| format!("{name}.example%20{error}"));
    assert_eq!(results, expected.join("%0A"));

    // The protocol log, from which the report is made: both failed twice, with the same error.
    let log = String::from_utf8(bundle.log).unwrap();
    let member = |line: &str, name: &str| {
        let rest = line.split_once(&format!("\"{name}\":\""))?.1;
        rest.split('"').next().map(str::to_owned)
    };
    let failures = |host: &str| -> Vec<String> {
        let names_host = |line: &&str| line.contains(&format!("\"url\":\"http://{host}"));
        let requests = log.lines().filter(names_host);
        let ids: Vec<_> = requests
            .filter_map(|line| member(line, "requestId"))
            .collect();
        let is_of_host =
            |line: &&str| member(line, "requestId").is_some_and(|id| ids.contains(&id));
        let events = log.lines().filter(is_of_host);
        events
            .filter_map(|line| member(line, "errorText"))
            .collect()
    };
    assert_eq!(
        failures("known.example"),
        ["net::ERR_SOCKS_CONNECTION_FAILED"; 2]
    );
    assert_eq!(failures("known.example"), failures("unknown.example"));

    // The operator sees the difference.
    let outcome_for = |host: &str| {
        let mut records = link.records().into_iter().rev();
        let record = records.find(|record| record.host == host && record.port == port);
        record.map(|record| record.outcome)
    };
    let outcome = outcome_for("known.example");
    let Some(ConnectionOutcome::Blocked(refusal)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(refusal.to_string().contains("127.0.0.1"), "{refusal}");
    let outcome = outcome_for("unknown.example");
    assert_eq!(outcome, Some(ConnectionOutcome::NameNotFound));
}
