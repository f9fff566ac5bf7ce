//! Reads, parses and validates the bodies of starts and batches.

use std::{collections::HashSet, slice::from_ref, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use plumbline_seam::{Expectation, InvalidOption, Order, Steps, VisitState};
use plumbline_store::AuditOptions;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use super::visit_options::{self, Parsed, RequestedOptions};
use crate::{
    app::App,
    errors::{Failure, InvalidValue},
    share::{self, MAX_SHARED_DAYS},
    start::{Orders, ValidStart},
    state::SharedState,
    target,
};

/// The rule for URLs of pages and webhooks, see [`target::is_auditable`].
pub(crate) const URL_RULE: &str = "The URL must be an absolute http or https URL of a host that may be visited, \
                        without user name and password.";

/// The largest number of runs of an audit.
pub(crate) const MAX_RUNS: u32 = 9;

/// The largest number of labels of an audit.
pub(crate) const MAX_LABELS: usize = 10;
/// The longest label.
pub(crate) const MAX_LABEL_CHARS: usize = 40;

/// A body that is a JSON object.
///
/// Deserializing refuses what the contract calls an invalid body: a member that is missing, null,
/// of another type, or given twice. Unknown members are ignored.
pub(crate) struct JsonObject<T>(pub(crate) T);

/// The body of a start, before validation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRequest {
    url: String,
    device: String,
    location: String,
    network: String,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
    #[serde(default, deserialize_with = "text")]
    webhook: Option<String>,
    #[serde(default)]
    allow_error_status: bool,
    #[serde(default)]
    quick: bool,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default, deserialize_with = "visit_options::parsed")]
    state: Option<Parsed<VisitState>>,
    #[serde(default, deserialize_with = "visit_options::parsed")]
    expect: Option<Parsed<Expectation>>,
    #[serde(default, deserialize_with = "visit_options::parsed_steps")]
    steps: Option<Parsed<Steps, InvalidOption>>,
    #[serde(default, deserialize_with = "text")]
    consent: Option<String>,
    #[serde(default, deserialize_with = "any")]
    view: Option<Value>,
    #[serde(default, deserialize_with = "text")]
    session: Option<String>,
    #[serde(default, deserialize_with = "any")]
    interactions: Option<Value>,
}

/// The body of a batch, before validation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchRequest {
    urls: Vec<String>,
    devices: Vec<String>,
    locations: Vec<String>,
    networks: Vec<String>,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
    #[serde(default, deserialize_with = "text")]
    webhook: Option<String>,
    #[serde(default)]
    allow_error_status: bool,
    #[serde(default)]
    quick: bool,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default, deserialize_with = "visit_options::parsed")]
    state: Option<Parsed<VisitState>>,
    #[serde(default, deserialize_with = "visit_options::parsed")]
    expect: Option<Parsed<Expectation>>,
    #[serde(default, deserialize_with = "visit_options::parsed_steps")]
    steps: Option<Parsed<Steps, InvalidOption>>,
    #[serde(default, deserialize_with = "text")]
    consent: Option<String>,
    #[serde(default, deserialize_with = "any")]
    view: Option<Value>,
    #[serde(default, deserialize_with = "text")]
    session: Option<String>,
    #[serde(default, deserialize_with = "any")]
    interactions: Option<Value>,
}

/// The body of a request to share a report, before validation.
#[derive(Debug, Deserialize)]
pub(crate) struct ShareRequest {
    #[serde(default, deserialize_with = "whole_number")]
    days: Option<i64>,
}

impl ShareRequest {
    /// Returns the validity of the link in days; `None` if it does not expire.
    pub(crate) fn validate(&self) -> Result<Option<u32>, Failure> {
        let Some(days) = self.days else {
            return Ok(None);
        };
        let days = share::valid_days(days).ok_or_else(|| {
            let reason = format!("The number of days is between 1 and {MAX_SHARED_DAYS}.");
            Failure::InvalidDays(InvalidValue::new("days", reason))
        })?;
        Ok(Some(days))
    }
}

impl From<Order> for AuditRequest {
    /// Returns the request of one run of an order, without a webhook.
    fn from(order: Order) -> Self {
        Self {
            url: order.url,
            device: order.device,
            location: order.location,
            network: order.network,
            runs: None,
            webhook: None,
            allow_error_status: order.options.allow_error_status,
            quick: order.options.quick,
            labels: Vec::new(),
            state: order.options.state.map(|state| Parsed(Ok(*state))),
            expect: order.options.expect.map(|expect| Parsed(Ok(*expect))),
            steps: Some(Parsed(Ok(order.options.steps))),
            consent: Some(order.options.consent.as_str().to_owned()),
            view: serde_json::to_value(&order.options.view).ok(),
            session: order.options.session.map(|session| session.name),
            interactions: Some(order.options.interactions.number().into()),
        }
    }
}

impl AuditRequest {
    /// Returns the request with a number of runs, which is not validated yet.
    pub(crate) fn with_runs(self, runs: i64) -> Self {
        Self {
            runs: Some(runs),
            ..self
        }
    }

    /// Validates the values; the failure names the first invalid one.
    pub(crate) fn validate(self, app: &App) -> Result<ValidStart, Failure> {
        let values = Values {
            urls: from_ref(&self.url),
            devices: from_ref(&self.device),
            locations: from_ref(&self.location),
            networks: from_ref(&self.network),
            are_lists: false,
        };
        check_values(&values, app)?;
        let order = Order {
            url: self.url,
            device: self.device,
            network: self.network,
            location: self.location,
            options: visit_options::validated(RequestedOptions {
                allow_error_status: self.allow_error_status,
                quick: self.quick,
                state: self.state,
                expect: self.expect,
                steps: self.steps,
                consent: self.consent,
                view: self.view,
                session: self.session,
                interactions: self.interactions,
            })?,
        };
        Ok(ValidStart {
            orders: Orders::Single(order),
            options: options(self.runs, self.webhook, self.labels, app)?,
        })
    }
}

impl BatchRequest {
    /// Validates the values and returns every combination, in the order of the lists. Repeated
    /// values count once, but as the API's description says, no list may be longer than a batch
    /// even with repetitions.
    pub(crate) fn validate(mut self, app: &App) -> Result<ValidStart, Failure> {
        let lists = [&self.urls, &self.devices, &self.locations, &self.networks];
        let at_most = app.limits.batch_audits;
        let invalid_batch = || {
            let reason = format!("A batch has between 1 and {at_most} audits.");
            Failure::InvalidBatch(InvalidValue::new("urls", reason))
        };
        let mut count = 1_usize;
        for list in lists {
            if list.len() > at_most {
                return Err(invalid_batch());
            }
            count = count.saturating_mul(list.iter().collect::<HashSet<_>>().len());
        }
        if count == 0 || count > at_most {
            return Err(invalid_batch());
        }
        let values = Values {
            urls: &self.urls,
            devices: &self.devices,
            locations: &self.locations,
            networks: &self.networks,
            are_lists: true,
        };
        check_values(&values, app)?;
        for list in [
            &mut self.urls,
            &mut self.devices,
            &mut self.locations,
            &mut self.networks,
        ] {
            remove_repetitions(list);
        }
        let options = options(self.runs, self.webhook, self.labels, app)?;
        let visit_options = visit_options::validated(RequestedOptions {
            allow_error_status: self.allow_error_status,
            quick: self.quick,
            state: self.state,
            expect: self.expect,
            steps: self.steps,
            consent: self.consent,
            view: self.view,
            session: self.session,
            interactions: self.interactions,
        })?;
        let mut orders = Vec::with_capacity(count);
        for url in &self.urls {
            for device in &self.devices {
                for location in &self.locations {
                    orders.extend(self.networks.iter().map(|network| Order {
                        url: url.clone(),
                        device: device.clone(),
                        network: network.clone(),
                        location: location.clone(),
                        options: visit_options.clone(),
                    }));
                }
            }
        }
        Ok(ValidStart {
            orders: Orders::Batch(orders),
            options,
        })
    }
}

fn options(
    runs: Option<i64>,
    webhook: Option<String>,
    mut labels: Vec<String>,
    app: &App,
) -> Result<AuditOptions, Failure> {
    let runs = match runs {
        None => 1,
        Some(runs) => u32::try_from(runs)
            .ok()
            .filter(|runs| (1..=MAX_RUNS).contains(runs))
            .ok_or_else(|| {
                let reason = format!("The number of runs is between 1 and {MAX_RUNS}.");
                Failure::InvalidRuns(InvalidValue::new("runs", reason))
            })?,
    };
    if let Some(webhook) = &webhook
        && !target::is_auditable(webhook, app.limits.url_chars, &*app.may_visit)
    {
        return Err(Failure::InvalidWebhook(InvalidValue::new(
            "webhook", URL_RULE,
        )));
    }
    check_labels(&labels)?;
    remove_repetitions(&mut labels);
    Ok(AuditOptions {
        runs,
        webhook,
        labels,
    })
}

fn check_labels(labels: &[String]) -> Result<(), Failure> {
    let invalid = |index: Option<usize>, reason: String| {
        Failure::InvalidLabels(InvalidValue {
            field: "labels",
            index,
            reason,
        })
    };
    if labels.len() > MAX_LABELS {
        let reason = format!("An audit has at most {MAX_LABELS} labels.");
        return Err(invalid(None, reason));
    }
    match labels.iter().position(|label| !is_label(label)) {
        Some(index) => {
            let reason = format!(
                "A label has between 1 and {MAX_LABEL_CHARS} characters, without control \
                 characters, and without spaces at its ends."
            );
            Err(invalid(Some(index), reason))
        }
        None => Ok(()),
    }
}

/// Whether a text can be a label of an audit.
pub(crate) fn is_label(text: &str) -> bool {
    (1..=MAX_LABEL_CHARS).contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && text.trim() == text
}

/// The lists of values that orders are made of.
struct Values<'a> {
    urls: &'a [String],
    devices: &'a [String],
    locations: &'a [String],
    networks: &'a [String],
    /// Whether the members of the body are lists.
    are_lists: bool,
}

/// Checks the values of orders in the order in which the contract lists them (2.1).
fn check_values(values: &Values<'_>, app: &App) -> Result<(), Failure> {
    let (limits, catalog) = (&app.limits, &app.catalog);
    let is_auditable = |url: &str| target::is_auditable(url, limits.url_chars, &*app.may_visit);
    let first_invalid = |list: &[String], is_valid: &dyn Fn(&str) -> bool| {
        list.iter().position(|value| !is_valid(value))
    };
    let invalid = |names: [&'static str; 2], index: usize, reason: String| InvalidValue {
        field: names[usize::from(values.are_lists)],
        index: values.are_lists.then_some(index),
        reason,
    };
    if let Some(index) = first_invalid(values.urls, &is_auditable) {
        let value = invalid(["url", "urls"], index, URL_RULE.to_owned());
        return Err(Failure::InvalidUrl(value));
    }
    if let Some(index) = first_invalid(values.devices, &|id| catalog.device(id).is_some()) {
        let reason = "Unknown device. GET /v1/devices lists the ids.".to_owned();
        let value = invalid(["device", "devices"], index, reason);
        return Err(Failure::InvalidDevice(value));
    }
    if let Some(index) = first_invalid(values.locations, &|id| catalog.location(id).is_some()) {
        let reason = "Unknown location. GET /v1/locations lists the ids.".to_owned();
        let value = invalid(["location", "locations"], index, reason);
        return Err(Failure::InvalidLocation(value));
    }
    if let Some(index) = first_invalid(values.networks, &|id| catalog.network(id).is_some()) {
        let reason = "Unknown network. GET /v1/networks lists the ids.".to_owned();
        let value = invalid(["network", "networks"], index, reason);
        return Err(Failure::InvalidNetwork(value));
    }
    Ok(())
}

fn remove_repetitions(list: &mut Vec<String>) {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
}

/// Deserializes an optional member, which may be absent but not null, as a whole number.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let whole = value.as_i64().or_else(|| {
        // 3.0 is a whole number like 3. A number beyond all bounds only has to stay invalid.
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        Some(number as i64)
    });
    whole
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("not a whole number"))
}

/// Deserializes an optional member, which may be absent but not null, as a text.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

/// Deserializes an optional member of any type, of which null is one.
fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl<T: DeserializeOwned> FromRequest<SharedState> for JsonObject<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &SharedState) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            let reason = "The content type must be application/json.";
            return Err(Failure::InvalidBody(reason.to_owned()));
        }
        let limits = &service.app.limits;
        let text = read(request.into_body(), limits.body_bytes, limits.body_read).await?;
        // The derived implementation would also accept the values as an array.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Failure::InvalidBody(
                "The body must be a JSON object.".to_owned(),
            ));
        }
        serde_json::from_slice(&text)
            .map(Self)
            .map_err(|error| Failure::InvalidBody(error.to_string()))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Reads a body of at most `max_bytes` within `timeout`.
pub(crate) async fn read(
    body: Body,
    max_bytes: usize,
    timeout: Duration,
) -> Result<Vec<u8>, Failure> {
    // A body whose announced length is too large is refused without reading it.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(Failure::BodyTooLarge);
    }
    let reading = Limited::new(body, max_bytes).collect();
    match tokio::time::timeout(timeout, reading).await {
        Err(_) => Err(Failure::BodyTooSlow),
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::BodyTooLarge),
        // The client disconnected, or its chunks are malformed.
        Ok(Err(_)) => Err(Failure::InvalidBody("The body is incomplete.".to_owned())),
    }
}
