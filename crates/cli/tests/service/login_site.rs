//! A site with a login: a form with a CSRF token and sessions that can expire, HTTP basic
//! authentication, and a bearer token. Its pages repeat the secrets that they get.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A part of every secret. Its letters are the same in URLs and in JSON.
pub const CANARY: &str = "canarysecret";

/// A page for signed-in users, which repeats secrets in every way that a page can.
const ACCOUNT: &str = r#"<!doctype html><html lang=en><title>Account</title><link rel=stylesheet href=/style.css>
<h1 id=account>Account</h1><p id=a></p><img src=/picture.svg alt="" width=10 height=10>
<script>
  const secrets = [document.cookie, localStorage.token, sessionStorage.tab, "SECRETS"].join(" ");
  document.getElementById("a").textContent = secrets;
  document.getElementById("a").className = encodeURIComponent(secrets);
  document.getElementById("a").title = btoa("x" + encodeURIComponent(secrets)) + JSON.stringify({ secrets });
  console.error(secrets, btoa(encodeURIComponent(secrets)), JSON.stringify({ secrets }));
  performance.mark(secrets);
  fetch("/echo?plain=" + encodeURIComponent(secrets));
  fetch("/echo", { method: "POST", body: JSON.stringify({ secrets }) });
</script>"#;

/// The state of the site.
#[derive(Default)]
struct State {
    /// Tokens of login forms that were not sent yet.
    csrf_tokens: BTreeSet<String>,
    /// The passwords of open sessions by their ids.
    sessions: BTreeMap<String, String>,
    /// The number of ids and tokens so far.
    issued: u32,
    /// Requests as `METHOD /path`.
    requests: Vec<String>,
    /// Bodies, also those of webhooks.
    bodies: Vec<String>,
}

/// A running site.
pub struct LoginSite {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl LoginSite {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || respond(stream, &state));
            }
        });
        Self { address, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The password of the only user, `ada`.
    pub fn password() -> String {
        format!("p&1 {CANARY}\"<ü")
    }

    /// The bearer token that `/token` requires.
    pub fn token() -> String {
        format!("tok.{CANARY}/+=")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends all sessions.
    pub fn expire_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Returns how often a request was made, such as `POST /login`.
    pub fn count(&self, request: &str) -> usize {
        let state = self.state();
        let requests = state.requests.iter();
        requests.filter(|made| *made == request).count()
    }

    /// Returns the first body that contains a text.
    pub fn body_with(&self, text: &str) -> Option<String> {
        let state = self.state();
        state
            .bodies
            .iter()
            .find(|body| body.contains(text))
            .cloned()
    }
}

/// A request with the headers that the site reads.
struct Request {
    method: String,
    path: String,
    cookies: BTreeMap<String, String>,
    authorization: String,
    body: String,
}

struct Response {
    status: &'static str,
    headers: String,
    content_type: &'static str,
    body: String,
}

impl Response {
    fn html(body: impl Into<String>) -> Self {
        Self {
            status: "200 OK",
            headers: String::new(),
            content_type: "text/html; charset=utf-8",
            body: body.into(),
        }
    }

    fn redirect(to: &str) -> Self {
        Self {
            status: "303 See Other",
            headers: format!("Location: {to}\r\n"),
            ..Self::html("")
        }
    }
}

fn respond(mut stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let request = read(&mut BufReader::new(stream.try_clone().ok()?))?;
    let response = answer(&request, &mut state.lock().unwrap());
    write!(
        stream,
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
        response.status,
        response.content_type,
        response.body.len(),
        response.headers,
        response.body
    )
    .ok()
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let mut request = Request {
        method: words.next()?,
        path: words.next()?,
        cookies: BTreeMap::new(),
        authorization: String::new(),
        body: String::new(),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => request.authorization = value.to_owned(),
            "cookie" => {
                let pairs = value.split("; ").filter_map(|pair| pair.split_once('='));
                let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
                request.cookies = pairs.collect();
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}

fn answer(request: &Request, state: &mut State) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    state.requests.push(format!("{} {path}", request.method));
    state.bodies.push(request.body.clone());
    match (request.method.as_str(), path) {
        ("GET", "/login") => login_form(state),
        ("POST", "/login") => sign_in(request, state),
        ("GET", "/account") => {
            let session = request.cookies.get("sid");
            match session.and_then(|id| state.sessions.get(id)) {
                Some(password) => account(password),
                None => Response::redirect("/login"),
            }
        }
        ("GET", "/basic") if request.authorization == basic_credentials() => account("basic"),
        ("GET", "/basic") => Response {
            status: "401 Unauthorized",
            headers: "WWW-Authenticate: Basic realm=\"site\"\r\n".to_owned(),
            ..Response::html("<h1>Sign in</h1>")
        },
        ("GET", "/token") if request.authorization == format!("Bearer {}", LoginSite::token()) => {
            account(&LoginSite::token())
        }
        ("GET", "/token") => Response {
            status: "403 Forbidden",
            ..Response::html("<h1>Forbidden</h1>")
        },
        ("GET", "/style.css") => Response {
            headers: "Cache-Control: max-age=3600\r\n".to_owned(),
            content_type: "text/css",
            ..Response::html(format!("h1 {{ color: #000 }} /*{}*/", "-".repeat(20_000)))
        },
        ("GET", "/picture.svg") => Response {
            headers: "Cache-Control: max-age=3600\r\n".to_owned(),
            content_type: "image/svg+xml",
            ..Response::html(
                "<svg xmlns=\"http://www.w3.org/2000/svg\"><rect width=\"9\" height=\"9\"/></svg>",
            )
        },
        _ => Response::html("<h1>Other</h1>"),
    }
}

fn login_form(state: &mut State) -> Response {
    state.issued += 1;
    let token = format!("csrf-{}", state.issued);
    state.csrf_tokens.insert(token.clone());
    Response::html(format!(
        "<!doctype html><html lang=en><title>Sign in</title><link rel=stylesheet href=/style.css>\
         <h1>Sign in</h1><form method=post action=/login><input type=hidden name=csrf value={token}>\
         <label>Name <input id=name name=name></label>\
         <label>Password <input id=password name=password type=password></label>\
         <button id=submit>Sign in</button></form>\
         <script>document.querySelector('form').onsubmit = () => {{\
           localStorage.token = 'local-' + document.getElementById('password').value;\
           sessionStorage.tab = 'tab-' + document.getElementById('password').value;\
         }};</script>"
    ))
}

fn sign_in(request: &Request, state: &mut State) -> Response {
    let fields: BTreeMap<String, String> = url::form_urlencoded::parse(request.body.as_bytes())
        .into_owned()
        .collect();
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    // A token is valid once, so that a recorded request cannot be repeated.
    if !state.csrf_tokens.remove(field("csrf")) {
        return Response {
            status: "403 Forbidden",
            ..Response::html("<h1>Form expired</h1>")
        };
    }
    if field("name") != "ada" || field("password") != LoginSite::password() {
        return Response::html("<h1 id=wrong>Wrong name or password</h1>");
    }
    state.issued += 1;
    let id = format!("{CANARY}-session-{}", state.issued);
    state
        .sessions
        .insert(id.clone(), field("password").to_owned());
    Response {
        status: "303 See Other",
        headers: format!(
            "Location: /account\r\nSet-Cookie: sid={id}; Path=/; HttpOnly; SameSite=Lax\r\n\
             Set-Cookie: readable={CANARY}-readable; Path=/\r\n"
        ),
        ..Response::html("")
    }
}

fn account(secret: &str) -> Response {
    let quoted = serde_json::to_string(secret).unwrap();
    let quoted = quoted[1..quoted.len() - 1].replace('<', "\\u003c");
    let echo: String = secret.chars().filter(|c| !c.is_control()).collect();
    Response {
        headers: format!("X-Echo: {}\r\n", echo.replace('ü', "")),
        ..Response::html(ACCOUNT.replace("SECRETS", &quoted))
    }
}

fn basic_credentials() -> String {
    // "ada:" and a password of ASCII, as `state` requires for headers.
    format!("Basic {}", base64(format!("ada:basic-{CANARY}").as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = (0..3).fold(0_u32, |n, i| {
            n << 8 | u32::from(*chunk.get(i).unwrap_or(&0))
        });
        for i in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}
