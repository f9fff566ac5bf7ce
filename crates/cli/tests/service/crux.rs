//! A server that speaks the Chrome UX Report API's protocol, as each test wants it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

pub const KEY: &str = "AIza-a-secret-of-the-operator";

pub enum Reply {
    Answer {
        status: u16,
        headers: &'static str,
        body: String,
    },
    /// Nothing, until the test lets it go on.
    Silence,
}

type Behaviour = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// Serves until the test process ends.
pub struct Crux {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Path with query, and body.
    asked: Vec<(String, Value)>,
    answered: usize,
    released: bool,
}

impl Shared {
    fn wait_until(&self, so_far: &dyn Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_while(state, |state| !so_far(state));
        drop(waited.unwrap());
    }
}

impl Crux {
    pub fn start(behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let known = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, behaviour) = (Arc::clone(&known), Arc::clone(&behaviour));
                thread::spawn(move || answer(stream, &shared, &*behaviour));
            }
        });
        Self { address, shared }
    }

    /// The flags that make a `plumbline` ask here, about loopback too.
    pub fn flags(&self) -> Vec<String> {
        let url = format!("http://{}", self.address);
        ["--crux-key", KEY, "--crux-url", &url]
            .into_iter()
            .chain(["--crux-target", "127.0.0.1"])
            .map(str::to_owned)
            .collect()
    }

    pub fn asked(&self) -> Vec<(String, Value)> {
        self.shared.state.lock().unwrap().asked.clone()
    }

    /// A function that returns when so many questions have come.
    pub fn after_questions(&self, times: usize) -> impl Fn() + Send + Sync + 'static {
        self.once(move |state| state.asked.len() >= times)
    }

    /// A function that returns when so many answers have left.
    pub fn after_answers(&self, times: usize) -> impl Fn() + Send + Sync + 'static {
        self.once(move |state| state.answered >= times)
    }

    fn once(
        &self,
        so_far: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.wait_until(&so_far)
    }

    pub fn answers(&self) -> usize {
        self.shared.state.lock().unwrap().answered
    }

    /// Ends all silence.
    pub fn release(&self) {
        self.shared.state.lock().unwrap().released = true;
        self.shared.changed.notify_all();
    }
}

fn answer(mut stream: TcpStream, shared: &Shared, behaviour: &Behaviour) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    shared
        .state
        .lock()
        .unwrap()
        .asked
        .push((path.clone(), body.clone()));
    shared.changed.notify_all();
    match behaviour(&path, &body) {
        Reply::Silence => {
            shared.wait_until(&|state| state.released);
        }
        Reply::Answer {
            status,
            headers,
            body,
        } => {
            // Who has heard enough may hang up.
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 {headers}Connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    }
    shared.state.lock().unwrap().answered += 1;
    shared.changed.notify_all();
    Some(())
}

pub fn said(status: u16, body: &Value) -> Reply {
    Reply::Answer {
        status,
        headers: "",
        body: body.to_string(),
    }
}

pub fn missing() -> Reply {
    said(
        404,
        &json!({ "error": {
            "code": 404, "message": "chrome ux report data not found", "status": "NOT_FOUND",
        } }),
    )
}

/// A record, or a history of three weeks, as the API has them since 2024: without First Input
/// Delay.
pub fn found(path: &str, question: &Value) -> Reply {
    let mut key = question.clone();
    key["formFactor"].take();
    let mut record = json!({ "key": key });
    let day = |month: i32, day: i32| json!({ "year": 2026, "month": month, "day": day });
    let period = |last: i32| json!({ "firstDate": day(10, last), "lastDate": day(11, last) });
    if path.contains("queryHistoryRecord") {
        let over_time = |values: Value| json!({ "percentilesTimeseries": { "p75s": values } });
        record["metrics"] = json!({
            "largest_contentful_paint": over_time(json!([2700, null, 2400])),
            "cumulative_layout_shift": over_time(json!(["0.11", "0.10", "0.09"])),
        });
        record["collectionPeriods"] = json!([period(1), period(8), period(15)]);
    } else {
        let metric = |p75: Value| {
            json!({
                "histogram": [{ "start": 0, "end": 1, "density": 0.7 },
                              { "start": 1, "end": 2, "density": 0.2 },
                              { "start": 2, "density": 0.1 }],
                "percentiles": { "p75": p75 },
            })
        };
        record["metrics"] = json!({
            "first_contentful_paint": metric(json!(1801)),
            "largest_contentful_paint": metric(json!(2504)),
            "cumulative_layout_shift": metric(json!("0.05")),
            "interaction_to_next_paint": metric(json!(190)),
            "experimental_time_to_first_byte": metric(json!(812)),
            "round_trip_time": { "percentiles": { "p75": 120 } },
            "navigation_types": { "fractions": { "navigate": 1.0 } },
        });
        record["collectionPeriod"] = period(11);
    }
    said(200, &json!({ "record": record }))
}
