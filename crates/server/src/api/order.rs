//! The bodies of starts and batches: read, parsed, and checked value by value.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use plumbline_store::{AuditOptions, AuditOrder};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::{App, errors::Failure, router::Shared, target};

pub(crate) const RUNS_AT_MOST: u32 = 9;

/// A JSON object of known members.
///
/// Deserialising refuses what the contract calls an invalid body: a member missing, null, of another
/// type, or given twice. Members that nobody knows are ignored.
pub(crate) struct Object<T>(pub(crate) T);

/// What a client wants audited, as it said it.
#[derive(Debug, Deserialize)]
pub(crate) struct Wish {
    url: String,
    device: String,
    location: String,
    network: String,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
    #[serde(default, deserialize_with = "text")]
    webhook: Option<String>,
}

/// The same of many at once.
#[derive(Debug, Deserialize)]
pub(crate) struct ManyWishes {
    urls: Vec<String>,
    devices: Vec<String>,
    locations: Vec<String>,
    networks: Vec<String>,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
    #[serde(default, deserialize_with = "text")]
    webhook: Option<String>,
}

impl Wish {
    /// The values in the order in which the contract lists them (2.1): the first bad one is named.
    pub(crate) fn into_order(self, app: &App) -> Result<(AuditOrder, AuditOptions), Failure> {
        check_url(&self.url, app)?;
        check_device(&self.device, app)?;
        check_location(&self.location, app)?;
        check_network(&self.network, app)?;
        let order = AuditOrder {
            url: self.url,
            device: self.device,
            network: self.network,
            location: self.location,
        };
        Ok((order, options(self.runs, self.webhook, app)?))
    }
}

impl ManyWishes {
    /// Every combination, in the order of the lists; what is named twice is audited once. No list is longer than a batch,
    /// as the description says, whatever is named twice in it.
    pub(crate) fn into_orders(
        mut self,
        app: &App,
    ) -> Result<(Vec<AuditOrder>, AuditOptions), Failure> {
        let lists = [
            &mut self.urls,
            &mut self.devices,
            &mut self.locations,
            &mut self.networks,
        ];
        let at_most = app.limits.batch_audits;
        let mut count = 1_usize;
        for list in lists {
            if list.len() > at_most {
                return Err(Failure::InvalidBatch);
            }
            without_repeats(list);
            count = count.saturating_mul(list.len());
        }
        if count == 0 || count > at_most {
            return Err(Failure::InvalidBatch);
        }
        self.urls.iter().try_for_each(|url| check_url(url, app))?;
        self.devices
            .iter()
            .try_for_each(|id| check_device(id, app))?;
        self.locations
            .iter()
            .try_for_each(|id| check_location(id, app))?;
        self.networks
            .iter()
            .try_for_each(|id| check_network(id, app))?;
        let options = options(self.runs, self.webhook, app)?;
        let mut orders = Vec::with_capacity(count);
        for url in &self.urls {
            for device in &self.devices {
                for location in &self.locations {
                    orders.extend(self.networks.iter().map(|network| AuditOrder {
                        url: url.clone(),
                        device: device.clone(),
                        network: network.clone(),
                        location: location.clone(),
                    }));
                }
            }
        }
        Ok((orders, options))
    }
}

fn options(runs: Option<i64>, webhook: Option<String>, app: &App) -> Result<AuditOptions, Failure> {
    let runs = match runs {
        None => 1,
        Some(runs) => u32::try_from(runs)
            .ok()
            .filter(|runs| (1..=RUNS_AT_MOST).contains(runs))
            .ok_or(Failure::InvalidRuns)?,
    };
    if let Some(webhook) = &webhook
        && !target::is_auditable(webhook, app.limits.url_chars, &*app.may_visit)
    {
        return Err(Failure::InvalidWebhook);
    }
    Ok(AuditOptions { runs, webhook })
}

fn check_url(url: &str, app: &App) -> Result<(), Failure> {
    match target::is_auditable(url, app.limits.url_chars, &*app.may_visit) {
        true => Ok(()),
        false => Err(Failure::InvalidUrl),
    }
}

fn check_device(id: &str, app: &App) -> Result<(), Failure> {
    let found = app.catalog.device(id).map(|_| ());
    found.ok_or(Failure::InvalidDevice)
}

fn check_location(id: &str, app: &App) -> Result<(), Failure> {
    let found = app.catalog.location(id).map(|_| ());
    found.ok_or(Failure::InvalidLocation)
}

fn check_network(id: &str, app: &App) -> Result<(), Failure> {
    let found = app.catalog.network(id).map(|_| ());
    found.ok_or(Failure::InvalidNetwork)
}

fn without_repeats(list: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
}

/// An optional member may be absent; if it is there it is a whole number, never null.
fn whole_number<'de, D: Deserializer<'de>>(given: D) -> Result<Option<i64>, D::Error> {
    let value = Value::deserialize(given)?;
    let whole = value.as_i64().or_else(|| {
        // 3.0 is as whole as 3; so is a number beyond all bounds, which only has to stay outside.
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        Some(number as i64)
    });
    whole
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("not a whole number"))
}

fn text<'de, D: Deserializer<'de>>(given: D) -> Result<Option<String>, D::Error> {
    String::deserialize(given).map(Some)
}

impl<T: DeserializeOwned> FromRequest<Shared> for Object<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            return Err(Failure::InvalidBody);
        }
        let limits = &service.app.limits;
        let text = read(request.into_body(), limits.body_bytes, limits.body_read).await?;
        // The derived reader would also take the values as an array.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Failure::InvalidBody);
        }
        serde_json::from_slice(&text)
            .map(Self)
            .map_err(|_| Failure::InvalidBody)
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

pub(crate) async fn read(
    body: Body,
    most_bytes: usize,
    within: Duration,
) -> Result<Vec<u8>, Failure> {
    // A length that is announced needs no reading to be refused.
    if body.size_hint().lower() > most_bytes as u64 {
        return Err(Failure::BodyTooLarge);
    }
    let whole = Limited::new(body, most_bytes).collect();
    match tokio::time::timeout(within, whole).await {
        Err(_) => Err(Failure::BodyTooSlow),
        Ok(Ok(whole)) => Ok(whole.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::BodyTooLarge),
        // The client broke off, or its chunks are malformed.
        Ok(Err(_)) => Err(Failure::InvalidBody),
    }
}
