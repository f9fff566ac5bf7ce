//! Graceful shutdown.

use std::time::Duration;

use plumbline_server::ServeOptions;
use tokio::net::TcpStream;

use crate::rig::{Connection, Rig, get, order};

/// Begins a start whose handler waits for the body; its `100 Continue` shows that it is running.
async fn running_start(rig: &Rig) -> Connection {
    let mut connection = rig.connect().await;
    let head = format!(
        "POST /v1/audit/start HTTP/1.1\r\nHost: x\r\nX-SVC-KEY: {}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        rig.key,
        order().to_string().len()
    );
    connection.write(head.as_bytes()).await;
    assert_eq!(connection.interim().await, 100);
    connection
}

#[tokio::test]
async fn running_requests_are_finished_and_no_new_ones_accepted() {
    let mut rig = Rig::new().await;
    let mut running = running_start(&rig).await;
    let mut idle = rig.connect().await;
    idle.write(&get("/healthz").bytes()).await;
    assert_eq!(idle.reply().await.status, 200);

    rig.stop();
    assert!(
        idle.is_closed().await,
        "an idle connection is closed at once"
    );
    assert!(TcpStream::connect(rig.address).await.is_err());

    running.write(order().to_string().as_bytes()).await;
    let reply = running.reply().await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(running.is_closed().await);
    (&mut rig.serving).await.unwrap().unwrap();
    assert_eq!(rig.credits().await, 99);
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_prevent_the_shutdown() {
    let options = ServeOptions {
        drain: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let mut rig = Rig::with_options(options, |_| {}).await;
    let mut running = running_start(&rig).await;
    rig.stop();
    (&mut rig.serving).await.unwrap().unwrap();
    assert!(running.is_closed().await);
}
