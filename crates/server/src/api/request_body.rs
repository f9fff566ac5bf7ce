//! Parses and validates the bodies of starts, batches and comparisons, and of audits of recordings.

mod replays;

use std::{collections::HashSet, ops::RangeInclusive, slice::from_ref};

use plumbline_model::comparison::{MAX_PAIRS, MIN_PAIRS};
use plumbline_seam::{Order, VisitOptions};
use plumbline_store::AuditOptions;
use serde::{Deserialize, de::DeserializeOwned};

use super::json_body::{ReadBody, members, text, whole_number};
use super::visit_options::{self, RequestedOptions};
use crate::{
    app::App,
    errors::{Failure, InvalidBody, InvalidValue},
    share,
    start::{Orders, ValidStart},
    target,
};
pub(crate) use replays::{ExperimentRequest, MatrixRequest, Tried};

/// The largest number of runs of an audit.
pub(crate) const MAX_RUNS: u32 = 9;

/// The largest number of labels of an audit.
pub(crate) const MAX_LABELS: usize = 10;
/// The longest label.
pub(crate) const MAX_LABEL_CHARS: usize = 40;

/// The body of a start, a batch, a comparison, an experiment or a matrix, before validation: its
/// own members, and those that all have.
pub(crate) struct StartBody<T> {
    own: T,
    common: CommonMembers,
    options: RequestedOptions,
}

pub(crate) type AuditRequest = StartBody<AuditMembers>;
pub(crate) type BatchRequest = StartBody<BatchMembers>;
pub(crate) type ComparisonRequest = StartBody<ComparisonMembers>;

/// The own members of a start.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditMembers {
    url: String,
    device: String,
    location: String,
    network: String,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
}

/// The own members of a batch.
#[derive(Debug, Deserialize)]
pub(crate) struct BatchMembers {
    urls: Vec<String>,
    devices: Vec<String>,
    locations: Vec<String>,
    networks: Vec<String>,
    #[serde(default, deserialize_with = "whole_number")]
    runs: Option<i64>,
}

/// The own members of a comparison.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComparisonMembers {
    urls: Vec<String>,
    device: String,
    location: String,
    network: String,
    #[serde(default, deserialize_with = "whole_number")]
    max_pairs: Option<i64>,
}

/// The members that all have besides the options of a visit.
#[derive(Debug, Default, Deserialize)]
struct CommonMembers {
    #[serde(default, deserialize_with = "text")]
    webhook: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
}

impl<T: DeserializeOwned> ReadBody for StartBody<T> {
    /// Reads each part by itself. With `serde(flatten)`, members that nobody knows would have to be
    /// valid, too.
    fn read_body(text: &[u8]) -> Result<Self, InvalidBody> {
        Ok(Self {
            own: members(text)?,
            common: members(text)?,
            options: members(text)?,
        })
    }
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
        let days = share::valid_days(days);
        days.map(Some).ok_or_else(share::invalid_days)
    }
}

impl From<Order> for AuditRequest {
    /// Returns the request of one run of an order, without a webhook.
    fn from(order: Order) -> Self {
        Self {
            own: AuditMembers {
                url: order.url,
                device: order.device,
                location: order.location,
                network: order.network,
                runs: None,
            },
            common: CommonMembers::default(),
            options: order.options.into(),
        }
    }
}

impl AuditRequest {
    /// Returns the request with a number of runs, which is not validated yet.
    pub(crate) fn with_runs(mut self, runs: i64) -> Self {
        self.own.runs = Some(runs);
        self
    }

    /// Returns the request of visits that are prepared as these options say.
    pub(crate) fn prepared_by(mut self, preparing: RequestedOptions) -> Self {
        self.options = self.options.prepared_by(preparing);
        self
    }

    /// Returns the request of a comparison with a second page.
    pub(crate) fn compared_with(self, second_url: String) -> ComparisonRequest {
        StartBody {
            own: ComparisonMembers {
                urls: vec![self.own.url, second_url],
                device: self.own.device,
                location: self.own.location,
                network: self.own.network,
                max_pairs: None,
            },
            common: self.common,
            options: self.options,
        }
    }

    /// Validates the values; the failure names the first invalid one.
    pub(crate) fn validate(self, app: &App) -> Result<ValidStart, Failure> {
        let own = self.own;
        let values = Values {
            urls: from_ref(&own.url),
            devices: from_ref(&own.device),
            locations: from_ref(&own.location),
            networks: from_ref(&own.network),
            lists: Lists::None,
        };
        check_values(&values, app)?;
        let options = self.common.validate(valid_runs(own.runs)?, app)?;
        let order = Order {
            url: own.url,
            device: own.device,
            network: own.network,
            location: own.location,
            options: visit_options::validated(self.options)?,
        };
        Ok(ValidStart {
            orders: Orders::Single(Box::new(order)),
            options,
        })
    }
}

impl ComparisonRequest {
    /// Validates the values and returns the order of an audit of the first page, whose runs are the
    /// pairs of visits.
    pub(crate) fn validate(self, app: &App) -> Result<ValidStart, Failure> {
        let own = self.own;
        let values = Values {
            urls: &own.urls,
            devices: from_ref(&own.device),
            locations: from_ref(&own.location),
            networks: from_ref(&own.network),
            lists: Lists::Urls,
        };
        check_values(&values, app)?;
        let Ok([first, second]) = <[String; 2]>::try_from(own.urls) else {
            let reason = "A comparison has exactly two URLs.";
            return Err(Failure::InvalidUrl(InvalidValue::new("urls", reason)));
        };
        let options = self.common.validate(valid_pairs(own.max_pairs)?, app)?;
        let visit_options = visit_options::validated(self.options)?;
        check_comparable(&visit_options)?;
        let order = Order {
            url: first,
            device: own.device,
            network: own.network,
            location: own.location,
            options: VisitOptions {
                compare_with: Some(second),
                ..visit_options
            },
        };
        Ok(ValidStart {
            orders: Orders::Single(Box::new(order)),
            options,
        })
    }
}

/// Checks that nothing is measured after the visits of a comparison.
fn check_comparable(options: &VisitOptions) -> Result<(), Failure> {
    if !options.interactions.is_none() {
        let reason = "No inputs are made in a comparison.";
        let value = InvalidValue::new("interactions", reason);
        return Err(Failure::InvalidInteractions(value));
    }
    if options.need_flow() {
        let reason = "No steps are measured in a comparison.";
        return Err(Failure::InvalidSteps(InvalidValue::new("flow", reason)));
    }
    if options.profile {
        let reason = "No functions are profiled in a comparison.";
        let value = InvalidValue::new("profile", reason);
        return Err(Failure::InvalidProfile(value));
    }
    Ok(())
}

/// Validates the order of an audit that is started again: what is allowed may have changed.
pub(crate) fn again(order: Order, options: AuditOptions, app: &App) -> Result<ValidStart, Failure> {
    let mut urls = vec![order.url.clone()];
    urls.extend(order.options.compare_with.clone());
    let values = Values {
        urls: &urls,
        devices: from_ref(&order.device),
        locations: from_ref(&order.location),
        networks: from_ref(&order.network),
        lists: Lists::Urls,
    };
    check_values(&values, app)?;
    if order.options.need_comparison() {
        check_comparable(&order.options)?;
    }
    order
        .options
        .validate()
        .map_err(visit_options::invalid_option)?;
    Ok(ValidStart {
        orders: Orders::Single(Box::new(order)),
        options,
    })
}

impl BatchRequest {
    /// Validates the values and returns every combination, in the order of the lists. Repeated
    /// values count once, but as the API's description says, no list may be longer than a batch
    /// even with repetitions.
    pub(crate) fn validate(self, app: &App) -> Result<ValidStart, Failure> {
        let mut own = self.own;
        let lists = [&own.urls, &own.devices, &own.locations, &own.networks];
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
            urls: &own.urls,
            devices: &own.devices,
            locations: &own.locations,
            networks: &own.networks,
            lists: Lists::All,
        };
        check_values(&values, app)?;
        for list in [
            &mut own.urls,
            &mut own.devices,
            &mut own.locations,
            &mut own.networks,
        ] {
            remove_repetitions(list);
        }
        let options = self.common.validate(valid_runs(own.runs)?, app)?;
        let visit_options = visit_options::validated(self.options)?;
        let mut orders = Vec::with_capacity(count);
        for url in &own.urls {
            for device in &own.devices {
                for location in &own.locations {
                    orders.extend(own.networks.iter().map(|network| Order {
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

impl CommonMembers {
    fn validate(self, runs: u32, app: &App) -> Result<AuditOptions, Failure> {
        let (webhook, mut labels) = (self.webhook, self.labels);
        if let Some(webhook) = &webhook {
            check_url(webhook, app)
                .map_err(|reason| Failure::InvalidWebhook(InvalidValue::new("webhook", reason)))?;
        }
        check_labels(&labels)?;
        remove_repetitions(&mut labels);
        Ok(AuditOptions {
            runs,
            webhook,
            labels,
        })
    }
}

/// Checks the URL of a page or of a webhook.
pub(super) fn check_url(url: &str, app: &App) -> Result<(), String> {
    target::check_auditable(url, app.limits.url_chars, &*app.may_visit)
}

fn valid_runs(runs: Option<i64>) -> Result<u32, Failure> {
    let valid = in_range(runs.unwrap_or(1), 1..=MAX_RUNS);
    valid.ok_or_else(|| {
        let reason = format!("The number of runs is between 1 and {MAX_RUNS}.");
        Failure::InvalidRuns(InvalidValue::new("runs", reason))
    })
}

fn valid_pairs(pairs: Option<i64>) -> Result<u32, Failure> {
    let valid = in_range(pairs.unwrap_or(MAX_PAIRS.into()), MIN_PAIRS..=MAX_PAIRS);
    valid.ok_or_else(|| {
        let reason = format!("The number of pairs is between {MIN_PAIRS} and {MAX_PAIRS}.");
        Failure::InvalidRuns(InvalidValue::new("maxPairs", reason))
    })
}

fn in_range(number: i64, range: RangeInclusive<u32>) -> Option<u32> {
    let number = u32::try_from(number).ok();
    number.filter(|number| range.contains(number))
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
    lists: Lists,
}

/// The members of a body that are lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    None,
    Urls,
    All,
}

/// Checks the values of orders in the order in which the contract lists them (2.1).
fn check_values(values: &Values<'_>, app: &App) -> Result<(), Failure> {
    let catalog = &app.catalog;
    let first_invalid = |list: &[String], is_valid: &dyn Fn(&str) -> bool| {
        list.iter().position(|value| !is_valid(value))
    };
    let invalid = |names: [&'static str; 2], index: usize, reason: String| {
        let is_list = match values.lists {
            Lists::None => false,
            Lists::Urls => names[1] == "urls",
            Lists::All => true,
        };
        InvalidValue {
            field: names[usize::from(is_list)],
            index: is_list.then_some(index),
            reason,
        }
    };
    for (index, url) in values.urls.iter().enumerate() {
        check_url(url, app)
            .map_err(|reason| Failure::InvalidUrl(invalid(["url", "urls"], index, reason)))?;
    }
    if let Some(index) = first_invalid(values.devices, &|id| catalog.device(id).is_some()) {
        let suggested = catalog.suggested_devices(&values.devices[index]);
        let reason = unknown("device", suggested);
        let value = invalid(["device", "devices"], index, reason);
        return Err(Failure::InvalidDevice(value));
    }
    if let Some(index) = first_invalid(values.locations, &|id| catalog.location(id).is_some()) {
        let suggested = catalog.suggested_locations(&values.locations[index]);
        let reason = unknown("location", suggested);
        let value = invalid(["location", "locations"], index, reason);
        return Err(Failure::InvalidLocation(value));
    }
    if let Some(index) = first_invalid(values.networks, &|id| catalog.network(id).is_some()) {
        let suggested = catalog.suggested_networks(&values.networks[index]);
        let reason = unknown("network", suggested);
        let value = invalid(["network", "networks"], index, reason);
        return Err(Failure::InvalidNetwork(value));
    }
    Ok(())
}

/// Returns the reason why an id of the catalog is refused.
fn unknown(kind: &str, suggested: Option<String>) -> String {
    let question = suggested.map(|suggested| format!(" Did you mean {suggested}?"));
    format!(
        "Unknown {kind}.{} GET /v1/{kind}s lists the ids.",
        question.unwrap_or_default()
    )
}

fn remove_repetitions(list: &mut Vec<String>) {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
}
