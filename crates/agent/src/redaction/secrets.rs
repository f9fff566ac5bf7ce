//! Removes the secrets of a client from the evidence of a visit, before it is judged or stored.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use plumbline_bundle::{Artifact, Bundle, Failure, StepRecord};
use plumbline_seam::{REDACTED, SavedState, VisitOptions, VisitState};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::encodings::{literals, parts};
use super::finder::Finder;
use crate::AuditFault;

/// Headers with credentials. All of them are removed in a visit with a state, because a server may
/// have replaced the session of the client by another one.
const CREDENTIALS: [&str; 2] = ["authorization", "proxy-authorization"];

/// The shortest value of a cookie that a server sets and that is searched for. Identifiers of
/// sessions are longer; shorter values are words and numbers.
const MIN_SESSION_BYTES: usize = 16;

/// The secrets of the state of a visit and of the steps before it.
#[derive(Clone)]
pub(crate) struct Secrets {
    texts: BTreeSet<String>,
    pub(super) finder: Finder,
    /// Names of headers, in lower case, whose values are secrets.
    headers: HashSet<String>,
}

impl Secrets {
    /// Returns the secrets of the options of a visit; `None` if there are none.
    /// The options may use a saved session, with the state that it has.
    pub(crate) fn of(
        options: &VisitOptions,
        saved: Option<&SavedState>,
    ) -> Result<Option<Self>, AuditFault> {
        let has_session = options.session.is_some() || saved.is_some();
        let has_steps = !options.steps.is_empty() || !options.flow.is_empty();
        if options.state.is_none() && !has_steps && !has_session {
            return Ok(None);
        }
        let default = VisitState::default();
        let state = options.state.as_deref().unwrap_or(&default);
        let cookies = state.cookies.iter().map(|cookie| &cookie.value);
        let headers = state.headers.iter().map(|header| &header.value);
        let stored = state
            .local_storage
            .values()
            .chain(state.session_storage.values());
        let values = cookies.chain(headers).chain(stored).chain(&state.script);
        let values = values
            .chain(options.steps.secrets())
            .chain(options.flow.secrets())
            .chain(&options.secrets);
        let mut texts: BTreeSet<String> =
            values.flat_map(|secret| parts(secret.expose())).collect();
        let session = options.session.as_ref();
        if let Some(sign_in) = session.and_then(|session| session.sign_in.as_ref()) {
            let values = sign_in.definition.steps.secrets();
            texts.extend(values.flat_map(|secret| parts(secret.expose())));
        }
        texts.extend(saved.into_iter().flat_map(saved_texts));
        if let Some(credentials) = &state.basic_auth {
            let password = credentials.password.expose();
            texts.extend(parts(password));
            texts.extend(parts(&format!("{}:{password}", credentials.username)));
        }
        if let Some(script) = &state.script {
            texts.extend(literals(script.expose()));
        }
        let names = state
            .headers
            .iter()
            .map(|header| header.name.to_ascii_lowercase());
        Ok(Some(Self {
            finder: Finder::of(&texts).map_err(AuditFault::of)?,
            texts,
            headers: names.chain(CREDENTIALS.map(str::to_owned)).collect(),
        }))
    }

    /// Removes the secrets from a text for people, such as a message or a URL.
    pub(crate) fn redact(&self, text: &str) -> String {
        let quoted = Value::from(text).to_string();
        match self.finder.redact_json(quoted.as_bytes()) {
            None => text.to_owned(),
            Some(redacted) => {
                serde_json::from_slice(&redacted).unwrap_or_else(|_| REDACTED.to_owned())
            }
        }
    }

    pub(crate) fn redact_failure(&self, failure: Failure) -> Failure {
        Failure::new(failure.code, self.redact(&failure.message))
    }

    /// Removes the secrets from the texts of a step. Screenshots show what the page shows.
    pub(crate) fn redact_step(&self, record: &StepRecord) -> StepRecord {
        StepRecord {
            title: self.redact(&record.title),
            url: self.redact(&record.url),
            error: record.error.as_ref().map(|error| self.redact(error)),
            ..record.clone()
        }
    }

    /// Returns the values to be removed.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.iter().cloned().collect()
    }

    /// Removes the secrets from all evidence, on a blocking thread. The requested URL stays as the
    /// client sent it.
    pub(crate) async fn redact_bundle(&self, bundle: Bundle) -> Result<Bundle, AuditFault> {
        let secrets = self.clone();
        spawn_blocking(move || secrets.redact_evidence(bundle))
            .await
            .map_err(AuditFault::of)?
    }

    fn redact_evidence(&self, bundle: Bundle) -> Result<Bundle, AuditFault> {
        let (log, all) = self.with_sessions_of(&bundle.log)?;
        let artifacts = bundle.artifacts.into_iter().map(|(name, artifact)| {
            let artifact = match artifact {
                Artifact::Missing(reason) => Artifact::Missing(all.redact(&reason)),
                Artifact::Gathered(raw) => match all.finder.redact_json(raw.get().as_bytes()) {
                    None => Artifact::Gathered(raw),
                    Some(redacted) => Artifact::Gathered(raw_value(redacted)?),
                },
            };
            Ok((name, artifact))
        });
        Ok(Bundle {
            final_url: all.redact(&bundle.final_url),
            log: all.finder.redact_json(&log).unwrap_or(log),
            trace: all
                .finder
                .redact_json(&bundle.trace)
                .unwrap_or(bundle.trace),
            artifacts: artifacts.collect::<Result<BTreeMap<_, _>, AuditFault>>()?,
            warnings: bundle
                .warnings
                .iter()
                .map(|warning| all.redact(warning))
                .collect(),
            ..bundle
        })
    }

    /// Returns a log without the values of cookies and of secret headers, and the secrets with the
    /// sessions in it: a server may replace a session during a visit, and a page may show the new
    /// one.
    pub(super) fn with_sessions_of(&self, log: &[u8]) -> Result<(Vec<u8>, Self), AuditFault> {
        let (log, sessions) = self.redact_headers(log)?;
        let texts: BTreeSet<String> = self.texts.union(&sessions).cloned().collect();
        let all = Self {
            finder: Finder::of(&texts).map_err(AuditFault::of)?,
            texts,
            headers: HashSet::new(),
        };
        Ok((log, all))
    }

    /// Removes the values of cookies and of secret headers from the protocol log, however short
    /// they are. Returns the log, and the values of cookies that look like sessions.
    fn redact_headers(&self, log: &[u8]) -> Result<(Vec<u8>, BTreeSet<String>), AuditFault> {
        let mut cookies = BTreeSet::new();
        let events: Vec<&RawValue> = serde_json::from_slice(log).map_err(AuditFault::of)?;
        let mut redacted = Vec::with_capacity(log.len());
        redacted.push(b'[');
        for (index, event) in events.into_iter().enumerate() {
            if index > 0 {
                redacted.extend_from_slice(b",\n");
            }
            let text = event.get();
            // Other events, such as those of received data, have neither.
            if text.contains("eaders") || text.contains("ookie") {
                let mut event: Value = serde_json::from_str(text).map_err(AuditFault::of)?;
                self.redact_members(&mut event, false, &mut cookies);
                serde_json::to_writer(&mut redacted, &event).map_err(AuditFault::of)?;
            } else {
                redacted.extend_from_slice(text.as_bytes());
            }
        }
        redacted.push(b']');
        let sessions = cookies
            .into_iter()
            .filter(|value| value.len() >= MIN_SESSION_BYTES);
        let sessions = sessions.flat_map(|value| parts(&value)).collect();
        Ok((redacted, sessions))
    }

    fn redact_members(&self, value: &mut Value, are_headers: bool, cookies: &mut Cookies) {
        match value {
            Value::Array(values) => {
                for value in values {
                    self.redact_members(value, are_headers, cookies);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.redact_member(&name.to_ascii_lowercase(), value, are_headers, cookies);
                }
            }
            _ => {}
        }
    }

    fn redact_member(&self, name: &str, value: &mut Value, is_header: bool, cookies: &mut Cookies) {
        match value {
            Value::String(text) => match name {
                "cookie" if is_header => *text = redact_pairs(text, cookies),
                "set-cookie" if is_header => *text = redact_set_cookie(text, cookies),
                "cookieline" => *text = redact_set_cookie(text, cookies),
                // The headers as one text, which nothing reads.
                "headerstext" | "requestheaderstext" => text.clear(),
                name if is_header && self.headers.contains(name) => REDACTED.clone_into(text),
                _ => {}
            },
            Value::Object(cookie) if name == "cookie" => {
                if let Some(Value::String(value)) = cookie.get_mut("value") {
                    cookies.insert(std::mem::replace(value, REDACTED.to_owned()));
                }
            }
            value => {
                let are_headers = matches!(name, "headers" | "requestheaders");
                self.redact_members(value, are_headers, cookies);
            }
        }
    }
}

/// Returns the texts of a saved session that are searched for. A site stores many more than tokens:
/// words such as `accepted`, and addresses of its own pages and files, without which the evidence
/// could not be read.
fn saved_texts(saved: &SavedState) -> impl Iterator<Item = String> {
    let values = saved.cookie_values().chain(saved.stored_values());
    let texts = values.flat_map(|secret| parts(secret.expose()));
    texts.filter(|text| {
        let is_address = text.contains("://") || text.starts_with('/');
        text.len() >= MIN_SESSION_BYTES && !is_address
    })
}

/// Values of cookies in the log.
type Cookies = BTreeSet<String>;

fn raw_value(json: Vec<u8>) -> Result<Box<RawValue>, AuditFault> {
    let text = String::from_utf8(json).map_err(AuditFault::of)?;
    RawValue::from_string(text).map_err(AuditFault::of)
}

/// Replaces the values of pairs `name=value`.
fn redact_pairs(pairs: &str, cookies: &mut Cookies) -> String {
    let pairs = pairs.split("; ").map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        cookies.insert(value.to_owned());
        format!("{name}={REDACTED}")
    });
    pairs.collect::<Vec<_>>().join("; ")
}

/// Replaces the values of cookies that a server sets; several are separated by line breaks.
fn redact_set_cookie(text: &str, cookies: &mut Cookies) -> String {
    let lines = text.split('\n').map(|line| match line.split_once(';') {
        Some((pair, attributes)) => format!("{};{attributes}", redact_pairs(pair, cookies)),
        None => redact_pairs(line, cookies),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::redaction) fn secrets() -> Secrets {
        let options = json!({ "state": {
            "cookies": [{ "name": "session", "value": "12345678" }, { "name": "flag", "value": "1" }],
            "headers": [{ "name": "X-Token", "value": "no" }],
            "basicAuth": { "username": "user", "password": "hunter2" },
            "script": "window.key = 'secret/literal'",
        }, "steps": [{ "type": "fill", "selector": "#a", "value": "filled-in" }],
           "flow": [{ "type": "fill", "selector": "#b", "value": "searched-for" }],
           "secrets": ["stored-secret"] });
        let secrets = Secrets::of(&serde_json::from_value(options).unwrap(), None).unwrap();
        secrets.unwrap()
    }

    #[test]
    fn secrets_are_removed_from_messages() {
        let message = "The page at https://a/12345678 is \"secret/literal\".";
        assert_eq!(
            secrets().redact(message),
            "The page at https://a/[redacted] is \"[redacted]\"."
        );
        assert_eq!(
            secrets().redact("?k=secret%2Fliteral&s=1234"),
            "?k=[redacted]&s=1234"
        );
        assert_eq!(secrets().redact("x=stored-secret;"), "x=[redacted];");
        assert_eq!(secrets().redact("1"), "1");
        let record = StepRecord {
            title: "go to https://a/?q=filled-in".to_owned(),
            url: "https://a/?q=filled-in".to_owned(),
            ms: 1.0,
            error: Some("no element matches `filled-in`".to_owned()),
            screenshot: None,
        };
        let redacted = secrets().redact_step(&record);
        assert!(
            !format!("{redacted:?}").contains("filled-in"),
            "{redacted:?}"
        );
        assert_eq!(redacted.url, "https://a/?q=[redacted]");
        let none = Secrets::of(&VisitOptions::default(), None).unwrap();
        assert!(none.is_none());
    }

    #[test]
    fn the_tokens_of_a_saved_session_are_removed_and_its_addresses_stay() {
        let options = json!({ "session": { "name": "shop", "signIn": {
            "version": 1, "expect": { "selector": "#a" },
            "steps": [{ "type": "fill", "selector": "#a", "value": "pass-word" }],
        } } });
        let options: VisitOptions = serde_json::from_value(options).unwrap();
        let saved = json!({
            "cookies": [
                { "name": "sid", "value": "0123456789abcdef", "domain": "a.example" },
                { "name": "consent", "value": "accepted", "domain": "a.example" },
            ],
            "storage": [{ "origin": "https://a.example", "localStorage": {
                "auth": r#"{"token":"eyJhbGciOiJub25lIn0","home":"https://a.example/home"}"#,
                "file": "/static/script.0123456789.js",
            } }],
        });
        let saved: SavedState = serde_json::from_value(saved).unwrap();
        let secrets = Secrets::of(&options, Some(&saved)).unwrap().unwrap();
        assert_eq!(
            secrets.redact("0123456789abcdef eyJhbGciOiJub25lIn0 pass-word"),
            "[redacted] [redacted] [redacted]"
        );
        let page = "accepted https://a.example/home /static/script.0123456789.js";
        assert_eq!(secrets.redact(page), page);
        assert!(
            Secrets::of(&VisitOptions::default(), Some(&saved))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn cookies_and_secret_headers_are_removed_from_the_log_however_short_they_are() {
        let log = json!([
            { "method": "Network.requestWillBeSentExtraInfo", "params": {
                "headers": { "Cookie": "flag=1; other=2", "x-token": "no", "Authorization": "Basic dXNlcjpodW50ZXIy", "Accept": "no" },
                "associatedCookies": [{ "cookie": { "name": "flag", "value": "1" } }],
            }},
            { "method": "Network.responseReceivedExtraInfo", "params": {
                "headers": { "set-cookie": "flag=3; Path=/\nnext=a-long-new-session" }, "headersText": "HTTP/1.1 200\r\nset-cookie: flag=3",
                "blockedCookies": [{ "cookieLine": "flag=3; Secure" }],
            }},
            { "method": "Network.dataReceived", "params": { "dataLength": 1.5 } },
        ]);
        let (redacted, sessions) = secrets()
            .redact_headers(log.to_string().as_bytes())
            .unwrap();
        assert_eq!(sessions, BTreeSet::from(["a-long-new-session".to_owned()]));
        let redacted: Value = serde_json::from_slice(&redacted).unwrap();
        assert_eq!(
            redacted,
            json!([
                { "method": "Network.requestWillBeSentExtraInfo", "params": {
                    "headers": { "Cookie": "flag=[redacted]; other=[redacted]", "x-token": "[redacted]", "Authorization": "[redacted]", "Accept": "no" },
                    "associatedCookies": [{ "cookie": { "name": "flag", "value": "[redacted]" } }],
                }},
                { "method": "Network.responseReceivedExtraInfo", "params": {
                    "headers": { "set-cookie": "flag=[redacted]; Path=/\nnext=[redacted]" }, "headersText": "",
                    "blockedCookies": [{ "cookieLine": "flag=[redacted]; Secure" }],
                }},
                { "method": "Network.dataReceived", "params": { "dataLength": 1.5 } },
            ])
        );
    }

    #[test]
    fn a_short_password_is_found_with_its_user_name() {
        assert_eq!(secrets().redact("dXNlcjpodW50ZXIy"), "[redacted]");
        assert_eq!(secrets().redact("user:hunter2"), "[redacted]");
    }
}
