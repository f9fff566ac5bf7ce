//! Limits and rules that every recording obeys before it is stored or replayed.

use crate::{ConnectResult, Endpoint, Header, RecordedExchange, RecordedResponse, Recording};

/// The maximum number of exchanges; pages with the most requests make a few thousand.
pub const MAX_EXCHANGES: usize = 20_000;

/// The maximum number of servers; every exchange may have its own.
const MAX_ENDPOINTS: usize = MAX_EXCHANGES;

/// The maximum size of all bodies together: far above the size of pages, far below the memory of a
/// host.
pub const MAX_BODY_BYTES: u64 = 256 << 20;

/// The maximum length of a host; names in DNS have at most 253 characters.
const MAX_HOST_CHARS: usize = 255;

/// The longest time in a recording: a day, far above the deadline of a visit.
const MAX_MS: f64 = 24.0 * 3_600_000.0;

/// The reason why a recording cannot be stored or replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecording {
    #[error("it has {count} exchanges, and at most {MAX_EXCHANGES} are possible")]
    TooManyExchanges { count: usize },
    #[error("it names {count} servers, and at most {MAX_ENDPOINTS} are possible")]
    TooManyEndpoints { count: usize },
    #[error("its bodies have more than {MAX_BODY_BYTES} bytes")]
    TooLarge,
    #[error("server {number}: {reason}")]
    Endpoint { number: usize, reason: &'static str },
    #[error("exchange {number}: {reason}")]
    Exchange { number: usize, reason: &'static str },
}

impl Recording {
    /// Returns an error unless the recording is within the limits and all of its parts can be
    /// replayed. Numbers in errors begin with 1.
    pub fn check(&self) -> Result<(), InvalidRecording> {
        let count = self.exchanges.len();
        if count > MAX_EXCHANGES {
            return Err(InvalidRecording::TooManyExchanges { count });
        }
        let count = self.endpoints.len();
        if count > MAX_ENDPOINTS {
            return Err(InvalidRecording::TooManyEndpoints { count });
        }
        let responses = self.exchanges.iter().filter_map(|it| it.response.as_ref());
        let total: u64 = responses.map(|response| response.body.len() as u64).sum();
        if total > MAX_BODY_BYTES {
            return Err(InvalidRecording::TooLarge);
        }
        for (number, recorded) in (1..).zip(&self.endpoints) {
            check_endpoint(&recorded.endpoint)
                .and_then(|()| check_result(&recorded.result))
                .map_err(|reason| InvalidRecording::Endpoint { number, reason })?;
        }
        for (number, exchange) in (1..).zip(&self.exchanges) {
            check_exchange(exchange)
                .map_err(|reason| InvalidRecording::Exchange { number, reason })?;
        }
        Ok(())
    }
}

fn check_endpoint(endpoint: &Endpoint) -> Result<(), &'static str> {
    let is_part_of_host = |c: char| c.is_ascii_graphic() && !"/?#@\\[]<>".contains(c);
    let is_valid = endpoint.host.chars().all(is_part_of_host) && !endpoint.host.is_empty();
    ensure(is_valid, "its host is invalid")?;
    ensure(
        endpoint.host.len() <= MAX_HOST_CHARS,
        "its host is too long",
    )?;
    let has_upper_case = endpoint.host.chars().any(|c| c.is_ascii_uppercase());
    ensure(!has_upper_case, "its host is not in lower case")
}

fn check_result(result: &ConnectResult) -> Result<(), &'static str> {
    if let ConnectResult::Connected {
        connect_ms, tls_ms, ..
    } = result
    {
        check_time(*connect_ms)?;
        check_time(*tls_ms)?;
    }
    Ok(())
}

fn check_exchange(exchange: &RecordedExchange) -> Result<(), &'static str> {
    check_endpoint(&exchange.endpoint)?;
    ensure(is_token(&exchange.method), "its method is invalid")?;
    ensure(is_path(&exchange.path), "its path is invalid")?;
    check_time(exchange.started_ms)?;
    check_headers(&exchange.request_headers)?;
    exchange.response.as_ref().map_or(Ok(()), check_response)
}

fn check_response(response: &RecordedResponse) -> Result<(), &'static str> {
    // LinkedIn answers with 999.
    let is_status = (100..=999).contains(&response.status);
    ensure(is_status, "its status is invalid")?;
    check_headers(&response.headers)?;
    check_time(response.wait_ms)?;
    let mut bytes = 0_u64;
    for chunk in &response.chunks {
        check_time(chunk.after_ms)?;
        bytes = bytes.saturating_add(chunk.bytes);
    }
    let adds_up = bytes == response.body.len() as u64;
    ensure(
        adds_up,
        "the sizes of its chunks do not add up to that of its body",
    )
}

fn check_headers(headers: &[Header]) -> Result<(), &'static str> {
    for (name, value) in headers {
        ensure(is_header_name(name), "the name of a header is invalid")?;
        ensure(is_header_value(value), "the value of a header is invalid")?;
    }
    Ok(())
}

/// A time that is negative or infinite cannot be waited for.
fn check_time(ms: f64) -> Result<(), &'static str> {
    let is_time = (0.0..=MAX_MS).contains(&ms);
    ensure(is_time, "a time is negative or longer than a day")
}

/// Returns whether a text is a token (RFC 9110, 5.6.2), such as a method.
fn is_token(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_allowed)
}

/// Returns whether a text can be the name of a header: a token in lower case.
pub(crate) fn is_header_name(name: &str) -> bool {
    is_token(name) && !name.chars().any(|c| c.is_ascii_uppercase())
}

/// Returns whether a text can be the value of a header: one line, without control characters.
pub(crate) fn is_header_value(value: &str) -> bool {
    !value.chars().any(|c| c.is_ascii_control() && c != '\t')
}

/// Returns whether a text can be the target of a request: a path with a query, or the asterisk of
/// `OPTIONS`.
fn is_path(path: &str) -> bool {
    let is_one_word = !path.chars().any(|c| c.is_ascii_control() || c == ' ');
    is_one_word && (path.starts_with('/') || path == "*")
}

fn ensure(is_met: bool, reason: &'static str) -> Result<(), &'static str> {
    if is_met { Ok(()) } else { Err(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exchange, recording};

    #[test]
    fn an_ordinary_recording_is_valid() {
        assert_eq!(recording().check(), Ok(()));
        assert_eq!(Recording::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        type Damage = fn(&mut RecordedExchange);
        let damages: [(Damage, &str); 10] = [
            (|it| it.endpoint.host = "a b".into(), "host"),
            (|it| it.endpoint.host = "a.".repeat(200), "too long"),
            (|it| it.endpoint.host = "A.test".into(), "lower case"),
            (|it| it.method = "GET /".into(), "method"),
            (|it| it.path = "/a\r\nb".into(), "path"),
            (|it| it.started_ms = -1.0, "time"),
            (|it| it.started_ms = f64::NAN, "time"),
            (
                |it| it.request_headers.push(("A".into(), "b".into())),
                "name of a header",
            ),
            (
                |it| it.request_headers.push(("a".into(), "b\r\nc: d".into())),
                "value of a header",
            ),
            (
                |it| it.response.as_mut().unwrap().chunks[0].bytes += 1,
                "add up",
            ),
        ];
        for (damage, word) in damages {
            let mut recording = Recording::default();
            recording
                .exchanges
                .push(exchange("https://a.test/", "text/html", "a"));
            damage(&mut recording.exchanges[0]);
            let error = recording.check().unwrap_err().to_string();
            assert!(error.starts_with("exchange 1: "), "{error}");
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn too_many_exchanges_are_refused() {
        let one = exchange("https://a.test/", "text/html", "");
        let recording = Recording {
            exchanges: vec![one; MAX_EXCHANGES + 1],
            ..Recording::default()
        };
        let error = recording.check().unwrap_err();
        assert!(matches!(error, InvalidRecording::TooManyExchanges { .. }));
    }
}
