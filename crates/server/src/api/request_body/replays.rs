//! The bodies of experiments and matrices.

use std::slice::from_ref;

use plumbline_model::experiment::Subject;
use plumbline_recording::{Change, MAX_CHANGES};
use plumbline_seam::{Order, VisitOptions, has_nul, read_json};
use plumbline_store::AuditOptions;
use serde::Deserialize;
use serde_json::Value;

use super::{
    BatchMembers, BatchRequest, CommonMembers, Lists, RequestedOptions, StartBody, Values,
    check_url, check_values, text, valid_pairs, whole_number,
};
use crate::{
    app::App,
    errors::{Failure, InvalidValue},
    start::{Orders, ValidStart},
};

pub(crate) type ExperimentRequest = StartBody<ExperimentMembers>;
pub(crate) type MatrixRequest = StartBody<MatrixMembers>;

/// The own members of an experiment. Conditions that are missing are those of the recorded audit.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExperimentMembers {
    #[serde(default)]
    changes: Option<Value>,
    #[serde(default, deserialize_with = "text")]
    check: Option<String>,
    #[serde(default, deserialize_with = "text")]
    third_party: Option<String>,
    #[serde(default, deserialize_with = "text")]
    recording: Option<String>,
    #[serde(default, deserialize_with = "text")]
    device: Option<String>,
    #[serde(default, deserialize_with = "text")]
    network: Option<String>,
    #[serde(default, deserialize_with = "whole_number")]
    max_pairs: Option<i64>,
    #[serde(default)]
    repeatable: bool,
}

/// The own members of a matrix.
#[derive(Debug, Deserialize)]
pub(crate) struct MatrixMembers {
    devices: Vec<String>,
    networks: Vec<String>,
    #[serde(default)]
    repeatable: bool,
}

/// The subject of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tried {
    /// Changes that were chosen by hand.
    Changes(Vec<Change>),
    /// Those that follow the advice of the report.
    Advice(Subject),
    /// The recording of another audit in place of a changed one.
    Recording(String),
}

impl ExperimentRequest {
    /// Returns the request of an experiment that follows an advice of the report, or of a price
    /// list if there is none.
    pub(crate) fn of(subject: Option<Subject>) -> Self {
        let (check, third_party) = match subject {
            Some(Subject::Check(id)) => (Some(id), None),
            Some(Subject::ThirdParty(name)) => (None, Some(name)),
            None => (None, None),
        };
        Self {
            own: ExperimentMembers {
                check,
                third_party,
                ..ExperimentMembers::default()
            },
            common: CommonMembers::default(),
            options: RequestedOptions::default(),
        }
    }

    /// Returns whether dates and random numbers are the same in every visit.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.own.repeatable
    }

    /// Returns the changes that are tried.
    pub(crate) fn tried(&self) -> Result<Tried, Failure> {
        let invalid =
            |reason: String| Failure::InvalidChanges(InvalidValue::new("changes", reason));
        let own = &self.own;
        match (&own.changes, &own.check, &own.third_party, &own.recording) {
            (Some(changes), None, None, None) => {
                let changes = changes
                    .as_array()
                    .filter(|changes| (1..=MAX_CHANGES).contains(&changes.len()))
                    .ok_or_else(|| {
                        invalid(format!(
                            "An experiment has a list of between 1 and {MAX_CHANGES} changes."
                        ))
                    })?;
                let changes = changes.iter().enumerate().map(read_change);
                Ok(Tried::Changes(changes.collect::<Result<_, _>>()?))
            }
            (None, Some(id), None, None) => Ok(Tried::Advice(Subject::Check(id.clone()))),
            (None, None, Some(name), None) => Ok(Tried::Advice(Subject::ThirdParty(name.clone()))),
            (None, None, None, Some(id)) => Ok(Tried::Recording(id.clone())),
            _ => {
                let reason =
                    "An experiment has either `changes`, `check`, `thirdParty` or `recording`.";
                Err(invalid(reason.to_owned()))
            }
        }
    }

    /// Validates the values, and returns the conditions of comparisons like an order. This needs no
    /// recording.
    pub(crate) fn conditions(self, order: Order, app: &App) -> Result<Conditions, Failure> {
        let order = Order {
            device: self.own.device.unwrap_or(order.device),
            network: self.own.network.unwrap_or(order.network),
            ..order
        };
        let values = Values {
            urls: from_ref(&order.url),
            devices: from_ref(&order.device),
            locations: from_ref(&order.location),
            networks: from_ref(&order.network),
            lists: Lists::None,
        };
        check_values(&values, app)?;
        let options = self
            .common
            .validate(valid_pairs(self.own.max_pairs)?, app)?;
        Ok(Conditions { order, options })
    }
}

/// The conditions of comparisons: an order without its options, and those of the audit.
pub(crate) struct Conditions {
    order: Order,
    options: AuditOptions,
}

impl Conditions {
    /// Returns the cost of one comparison in credits.
    pub(crate) fn cost(&self) -> i64 {
        i64::from(self.options.runs)
    }

    /// Returns a comparison of a URL.
    pub(crate) fn comparison(
        self,
        url: String,
        options: VisitOptions,
        app: &App,
    ) -> Result<ValidStart, Failure> {
        let order = self.order(url, app)?;
        Ok(ValidStart {
            orders: Orders::Single(Box::new(Order { options, ..order })),
            options: self.options,
        })
    }

    /// Returns a batch of comparisons of a URL, one for each of several options.
    pub(crate) fn comparisons(
        self,
        url: String,
        all_options: Vec<VisitOptions>,
        app: &App,
    ) -> Result<ValidStart, Failure> {
        let order = self.order(url, app)?;
        let orders = all_options.into_iter().map(|options| Order {
            options,
            ..order.clone()
        });
        Ok(ValidStart {
            orders: Orders::Batch(orders.collect()),
            options: self.options,
        })
    }

    fn order(&self, url: String, app: &App) -> Result<Order, Failure> {
        let invalid = |reason| Failure::InvalidUrl(InvalidValue::new("url", reason));
        check_url(&url, app).map_err(invalid)?;
        Ok(Order {
            url,
            ..self.order.clone()
        })
    }
}

/// Reads one of the changes of an experiment.
fn read_change((index, change): (usize, &Value)) -> Result<Change, Failure> {
    let read = if has_nul(change) {
        Err("The character U+0000 is not allowed.".to_owned())
    } else {
        read_json(change)
    };
    read.map_err(|reason| {
        Failure::InvalidChanges(InvalidValue {
            field: "changes",
            index: Some(index),
            reason,
        })
    })
}

impl MatrixRequest {
    /// Returns the request of a matrix.
    pub(crate) fn of(devices: Vec<String>, networks: Vec<String>) -> Self {
        Self {
            own: MatrixMembers {
                devices,
                networks,
                repeatable: false,
            },
            common: CommonMembers::default(),
            options: RequestedOptions::default(),
        }
    }

    /// Returns whether dates and random numbers are the same in every visit.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.own.repeatable
    }

    /// Validates the values, and returns the batch of an order with every device and network.
    pub(crate) fn validate(self, order: Order, app: &App) -> Result<ValidStart, Failure> {
        let replay = order.options.replay.clone();
        let batch = BatchRequest {
            own: BatchMembers {
                urls: vec![order.url],
                devices: self.own.devices,
                locations: vec![order.location],
                networks: self.own.networks,
                runs: None,
            },
            common: self.common,
            options: order.options.into(),
        };
        let mut batch = batch.validate(app)?;
        if let Orders::Batch(orders) = &mut batch.orders {
            for order in orders {
                order.options.replay = replay.clone();
            }
        }
        Ok(batch)
    }
}
