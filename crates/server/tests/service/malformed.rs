//! Malformed requests, and slow or broken clients.

use std::time::Duration;

use plumbline_server::ServeOptions;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn malformed_http_is_refused_with_an_envelope() {
    let rig = Rig::new().await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS greeting\r\n\r\n"[..],
        b"nonsense\r\n\r\n",
        b"GET /v1/devices\r\n\r\n",
        b"GET /v1/devices HTTP/9.9\r\n\r\n",
        b"GET /v1/devices HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/devices HTTP/1.1\r\nname with space: x\r\n\r\n",
        b"GET /v1/devices/\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/devices/a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/audit/start HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/audit/start HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/audit/start HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
        b"POST /v1/audit/start HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        let mut connection = rig.connect().await;
        connection.write(garbage).await;
        let reply = connection.reply().await;
        assert_eq!(
            (reply.status, reply.json()),
            (400, failure("Bad Request")),
            "{}",
            garbage.escape_ascii()
        );
        assert_eq!(reply.header("connection"), Some("close"));
        connection.end().await;
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn raw_bytes_in_an_id_are_not_found_if_utf8_and_otherwise_malformed() {
    let rig = Rig::new().await;
    for (id, status, message) in [
        ("ü".as_bytes(), 404, "Resource Not Found"),
        (b"\xff", 400, "Bad Request"),
    ] {
        let mut connection = rig.connect().await;
        let request = [b"GET /v1/devices/", id, b" HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
        connection.write(&request).await;
        let reply = connection.reply().await;
        assert_eq!((reply.status, reply.json()), (status, failure(message)));
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_with_an_envelope() {
    let rig = Rig::new().await;
    let too_large = failure("Request Header Fields Too Large");
    rig.check(
        get("/v1/devices").header("X-Long", &"x".repeat(20_000)),
        431,
        too_large.clone(),
    )
    .await;
    rig.check(
        get(&format!("/v1/devices/{}", "x".repeat(100_000))),
        431,
        too_large.clone(),
    )
    .await;
    let mut many = get("/v1/devices");
    for n in 0..200 {
        many = many.header(&format!("X-{n}"), "x");
    }
    rig.check(many, 431, too_large).await;
    // A smaller head is accepted.
    let long = get("/v1/devices/mobile").header("X-Long", &"x".repeat(12_000));
    assert_eq!(rig.send(&long).await.status, 200);
}

fn chunked_start(rig: &Rig) -> String {
    format!(
        "POST /v1/audit/start HTTP/1.1\r\nHost: x\r\nX-SVC-KEY: {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        rig.key
    )
}

#[tokio::test]
async fn a_chunked_body_counts_like_any_other() {
    let rig = Rig::new().await;
    let order = order().to_string();
    let mut connection = rig.connect().await;
    let (one, two) = order.split_at(20);
    let chunks = format!(
        "{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    connection
        .write((chunked_start(&rig) + &chunks).as_bytes())
        .await;
    assert_eq!(connection.reply().await.status, 200);

    connection.write(chunked_start(&rig).as_bytes()).await;
    for _ in 0..80 {
        connection
            .write(format!("400\r\n{}\r\n", " ".repeat(1024)).as_bytes())
            .await;
    }
    connection.write(b"0\r\n\r\n").await;
    let reply = connection.reply().await;
    assert_eq!(
        (reply.status, reply.json()),
        (413, failure("Request Body Too Large"))
    );
    // The rest was read and discarded, so that the connection can be used again.
    connection.write(&get("/healthz").bytes()).await;
    assert_eq!(connection.reply().await.status, 200);
}

#[tokio::test]
async fn a_malformed_chunk_is_an_invalid_body() {
    let rig = Rig::new().await;
    let mut connection = rig.connect().await;
    connection
        .write((chunked_start(&rig) + "zz\r\n{}\r\n0\r\n\r\n").as_bytes())
        .await;
    let reply = connection.reply().await;
    let invalid = failure("Invalid Request body or missing required parameters");
    assert_eq!((reply.status, reply.json()), (400, invalid));
}

#[tokio::test]
async fn a_wrong_content_length_is_refused() {
    let rig = Rig::with(|app| app.limits.body_read = Duration::from_millis(200)).await;
    let head = |length: usize| {
        format!(
            "POST /v1/audit/start HTTP/1.1\r\nHost: x\r\nX-SVC-KEY: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            rig.key
        )
    };
    let order = order().to_string();

    let mut too_short = rig.connect().await;
    too_short.write((head(10) + &order).as_bytes()).await;
    assert_eq!(
        too_short.reply().await.status,
        400,
        "ten bytes are not a valid body"
    );
    assert_eq!(
        too_short.reply().await.status,
        400,
        "the rest is not a request"
    );
    assert!(too_short.is_closed().await);

    let mut too_long = rig.connect().await;
    too_long.write((head(1000) + &order).as_bytes()).await;
    let reply = too_long.reply().await;
    assert_eq!(
        (reply.status, reply.json()),
        (408, failure("Request Timeout"))
    );
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(too_long.is_closed().await);

    let mut interrupted = rig.connect().await;
    interrupted.write((head(1000) + &order).as_bytes()).await;
    interrupted.end().await;
    assert_eq!(interrupted.reply().await.status, 400);
    assert!(interrupted.is_closed().await);

    let mut absurd = rig.connect().await;
    absurd.write(head(1 << 40).as_bytes()).await;
    let reply = absurd.reply().await;
    assert_eq!(
        (reply.status, reply.json()),
        (413, failure("Request Body Too Large"))
    );
    assert_eq!(reply.header("connection"), Some("close"));

    let mut none = rig.connect().await;
    let head = head(0).replace("Content-Length: 0\r\n", "");
    none.write(head.as_bytes()).await;
    assert_eq!(none.reply().await.status, 400, "no length, no body");
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_refusal_before_the_body_was_read_keeps_the_connection() {
    let rig = Rig::new().await;
    let body = "x".repeat(100_000);
    let mut connection = rig.connect().await;
    for path in ["/v1/audit/start", "/v1/devices", "/nowhere"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write(head.as_bytes()).await;
        connection.write(body.as_bytes()).await;
        let reply = connection.reply().await;
        assert!([401, 404, 405].contains(&reply.status));
        assert_eq!(reply.header("connection"), None);
    }
}

#[tokio::test]
async fn a_client_that_sends_more_than_is_read_still_gets_the_response() {
    let rig = Rig::new().await;
    let long_body = "POST /v1/audit/start HTTP/1.1\r\nContent-Length: 1900000\r\n\r\n";
    for (head, then_bytes, status) in [(long_body, 1_900_000, 401), ("GET /", 900_000, 431)] {
        let mut connection = rig.connect().await;
        connection.write(head.as_bytes()).await;
        connection.write(&vec![b'x'; then_bytes]).await;
        let reply = connection.reply().await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("connection"), Some("close"));
    }
}

#[tokio::test]
async fn a_body_is_requested_with_100_continue_only_for_a_valid_key() {
    let rig = Rig::new().await;
    let order = order().to_string();
    let head = |key: &str| {
        format!(
            "POST /v1/audit/start HTTP/1.1\r\nHost: x\r\nX-SVC-KEY: {key}\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            order.len()
        )
    };
    let mut connection = rig.connect().await;
    connection.write(head("invalid").as_bytes()).await;
    let reply = connection.reply().await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("connection"), Some("close"));

    let mut connection = rig.connect().await;
    connection.write(head(&rig.key).as_bytes()).await;
    assert_eq!(connection.interim().await, 100);
    connection.write(order.as_bytes()).await;
    assert_eq!(connection.reply().await.status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let rig = Rig::new().await;
    let mut connection = rig.connect().await;
    let paths = ["/v1/devices/pixel", "/v1/devices/none", "/v1/locations/eu"];
    let requests: Vec<_> = paths.iter().flat_map(|path| get(path).bytes()).collect();
    connection.write(&requests).await;
    for (path, status) in paths.iter().zip([200, 404, 200]) {
        let reply = connection.reply().await;
        assert_eq!(reply.status, status, "{path}");
    }
    connection.write(b"\0\0\0\r\n\r\n").await;
    assert_eq!(connection.reply().await.status, 400);
}

#[tokio::test]
async fn old_and_unusual_requests_are_answered_too() {
    let rig = Rig::new().await;
    for (request, status) in [
        ("GET /v1/devices HTTP/1.0\r\n\r\n", 200),
        ("GET /v1/devices HTTP/1.1\r\n\r\n", 200),
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
            404,
        ),
        (
            "GET /v1/devices HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            200,
        ),
    ] {
        let mut connection = rig.connect().await;
        connection.write(request.as_bytes()).await;
        assert_eq!(connection.reply().await.status, status, "{request:?}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_half_after_the_request_still_gets_the_response() {
    let rig = Rig::new().await;
    let mut connection = rig.connect().await;
    connection.write(&start(&rig.key, &order()).bytes()).await;
    connection.end().await;
    assert_eq!(connection.reply().await.status, 200);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_connection_with_an_endless_head_is_closed() {
    let options = ServeOptions {
        head: Duration::from_millis(200),
        idle: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let rig = Rig::with_options(options, |_| {}).await;
    let mut connection = rig.connect().await;
    connection
        .write(b"GET /v1/devices HTTP/1.1\r\nX-Slow: ")
        .await;
    assert!(connection.is_closed().await);
    // So is an idle connection.
    let mut connection = rig.connect().await;
    connection.write(&start(&rig.key, &order()).bytes()).await;
    assert_eq!(connection.reply().await.status, 200);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_connection_whose_client_never_reads_is_closed() {
    let options = ServeOptions {
        write: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let rig = Rig::with_options(options, |_| {}).await;
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let request = get("/openapi.json").bytes();
    // Writes until both directions are full; then only the write timeout ends the connection.
    let writing = async { while stream.write_all(&request).await.is_ok() {} };
    let in_time = tokio::time::timeout(Duration::from_secs(60), writing).await;
    assert!(in_time.is_ok(), "still connected");
    let other = rig.send(&get("/healthz")).await;
    assert_eq!(other.status, 200);
}
