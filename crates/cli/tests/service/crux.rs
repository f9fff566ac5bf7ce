//! A fake Chrome UX Report API whose behaviour each test defines.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

pub const KEY: &str = "AIza-a-secret-of-the-operator";

pub enum Reply {
    Response {
        status: u16,
        headers: &'static str,
        body: String,
    },
    /// No response until the test calls [`Crux::release`].
    Silence,
}

type Behaviour = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// The server, which runs until the test process ends.
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
    /// The path with query and the body of each request.
    requests: Vec<(String, Value)>,
    responses: usize,
    released: bool,
}

impl Shared {
    fn wait_until(&self, condition: &dyn Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_while(state, |state| !condition(state));
        drop(waited.unwrap());
    }
}

impl Crux {
    pub fn start(behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, behaviour) = (Arc::clone(&server), Arc::clone(&behaviour));
                thread::spawn(move || respond(stream, &shared, &*behaviour));
            }
        });
        Self { address, shared }
    }

    /// Returns the flags that make `plumbline` use this server, also for loopback addresses.
    pub fn flags(&self) -> Vec<String> {
        let url = format!("http://{}", self.address);
        ["--crux-key", KEY, "--crux-url", &url]
            .into_iter()
            .chain(["--crux-target", "127.0.0.1"])
            .map(str::to_owned)
            .collect()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// Returns a function that waits for this number of requests.
    pub fn after_requests(&self, count: usize) -> impl Fn() + Send + Sync + 'static {
        self.waiting_for(move |state| state.requests.len() >= count)
    }

    /// Returns a function that waits for this number of responses.
    pub fn after_responses(&self, count: usize) -> impl Fn() + Send + Sync + 'static {
        self.waiting_for(move |state| state.responses >= count)
    }

    fn waiting_for(
        &self,
        condition: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.wait_until(&condition)
    }

    /// Returns the number of responses so far.
    pub fn responses(&self) -> usize {
        self.shared.state.lock().unwrap().responses
    }

    /// Lets all silent requests end.
    pub fn release(&self) {
        self.shared.state.lock().unwrap().released = true;
        self.shared.changed.notify_all();
    }
}

fn respond(mut stream: TcpStream, shared: &Shared, behaviour: &Behaviour) -> Option<()> {
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
        .requests
        .push((path.clone(), body.clone()));
    shared.changed.notify_all();
    match behaviour(&path, &body) {
        Reply::Silence => {
            shared.wait_until(&|state| state.released);
        }
        Reply::Response {
            status,
            headers,
            body,
        } => {
            // The client may have closed the connection.
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 {headers}Connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    }
    shared.state.lock().unwrap().responses += 1;
    shared.changed.notify_all();
    Some(())
}

/// Returns a JSON response.
fn json_response(status: u16, body: &Value) -> Reply {
    Reply::Response {
        status,
        headers: "",
        body: body.to_string(),
    }
}

/// Returns the response for a URL that is not in the dataset.
pub fn missing() -> Reply {
    json_response(
        404,
        &json!({ "error": {
            "code": 404, "message": "chrome ux report data not found", "status": "NOT_FOUND",
        } }),
    )
}

/// Returns a record, or a history of three weeks, in the format of the API since 2024: without
/// First Input Delay.
pub fn found(path: &str, query: &Value) -> Reply {
    let mut key = query.clone();
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
    json_response(200, &json!({ "record": record }))
}
