//! The fields of the form that starts an audit.

use axum::http::{HeaderMap, request::Parts};
use plumbline_catalog::Catalog;
use plumbline_seam::{Consent, with_scheme};

use super::CHOICE_COOKIE;
use crate::{
    errors::Failure,
    pages::{
        cookies::Cookies,
        form::{Form, query},
    },
    state::SharedState,
};

/// The longest part of an unknown value that the page shows.
const MAX_QUOTED_CHARS: usize = 40;
/// The field for error pages.
const ERROR_STATUS: &str = "allowErrorStatus";

/// The values of the form.
pub(super) struct StartForm {
    pub(super) url: String,
    /// The URL of a second page to compare with; empty for none.
    pub(super) compare_with: String,
    pub(super) device: String,
    /// The id of the network; empty for the network that follows the device.
    pub(super) network: String,
    pub(super) location: String,
    /// The number of runs, as it was typed.
    pub(super) runs: String,
    pub(super) quick: bool,
    pub(super) record: bool,
    pub(super) consent: Consent,
    /// Whether the cache is warm.
    pub(super) is_repeat_view: bool,
    /// Whether inputs are made on the page after its visits.
    pub(super) interactions: bool,
    /// Whether the page is loaded once more with a profiler.
    pub(super) profile: bool,
    /// Whether an error page is measured as well.
    pub(super) allow_error_status: bool,
    /// The name of the session to sign in with; empty for none.
    pub(super) session: String,
    /// The state, the steps, the expectation and the flow of the visit in JSON, as they were typed.
    pub(super) preparing: String,
}

impl StartForm {
    /// Returns whether something is done before the visit.
    pub(super) fn is_prepared(&self) -> bool {
        !self.session.is_empty() || !self.preparing.is_empty()
    }

    /// Returns the fields of a form that was sent.
    pub(super) fn sent(fields: &mut Form, catalog: &Catalog) -> Self {
        let mut form = Self {
            url: completed_url(fields.take("url").trim()),
            compare_with: completed_url(fields.take("compareWith").trim()),
            device: fields.take("device"),
            network: fields.take("network"),
            location: fields.take("location"),
            runs: fields.take("runs"),
            quick: is_ticked(&fields.take("quick")),
            record: is_ticked(&fields.take("record")),
            consent: Consent::from_name(&fields.take("consent")).unwrap_or_default(),
            is_repeat_view: fields.take("view") == "repeat",
            interactions: is_ticked(&fields.take("interactions")),
            profile: is_ticked(&fields.take("profile")),
            allow_error_status: is_ticked(&fields.take(ERROR_STATUS)),
            session: fields.take("session"),
            preparing: fields.take("preparing"),
        };
        form.choose_preset(catalog, &fields.take("preset"));
        form
    }

    /// Chooses the device and the network of a preset, and returns whether there is one.
    fn choose_preset(&mut self, catalog: &Catalog, id: &str) -> bool {
        let Some(preset) = catalog.preset(id) else {
            return false;
        };
        preset.device.clone_into(&mut self.device);
        preset.network.clone_into(&mut self.network);
        true
    }
}

/// Returns whether a value ticks a box.
fn is_ticked(value: &str) -> bool {
    matches!(value, "true" | "on" | "1")
}

/// Returns the form as the query fills it in, with the device, network and location of the last
/// choice where the query names none that the catalog has, and the parameters whose values are not
/// known.
pub(super) fn prefilled(
    service: &SharedState,
    headers: &HeaderMap,
    parts: &Parts,
) -> Result<(StartForm, Vec<String>), Failure> {
    let catalog = &service.app.catalog;
    let mut form = last_choice(service, headers);
    let mut unknown = Vec::new();
    // Takes a value over with `take`, which returns whether it is known.
    let mut fill = |name: &'static str, take: &mut dyn FnMut(String) -> bool| {
        if let Some(value) = query(parts, name)?.filter(|value| !value.is_empty())
            && !take(value.clone())
        {
            let value: String = value.chars().take(MAX_QUOTED_CHARS).collect();
            unknown.push(format!("{name}={value}"));
        }
        Ok::<(), Failure>(())
    };
    fill("preset", &mut |id| form.choose_preset(catalog, &id))?;
    let mut choice = |name, is_known: &dyn Fn(&str) -> bool, field: &mut String| {
        fill(name, &mut |id| {
            let is_known = is_known(&id);
            if is_known {
                *field = id;
            }
            is_known
        })
    };
    choice(
        "device",
        &|id| catalog.device(id).is_some(),
        &mut form.device,
    )?;
    choice(
        "network",
        &|id| catalog.network(id).is_some(),
        &mut form.network,
    )?;
    choice(
        "location",
        &|id| catalog.location(id).is_some(),
        &mut form.location,
    )?;
    for (name, field) in [
        ("quick", &mut form.quick),
        ("record", &mut form.record),
        ("profile", &mut form.profile),
        (ERROR_STATUS, &mut form.allow_error_status),
        ("interactions", &mut form.interactions),
    ] {
        fill(name, &mut |value| {
            *field = is_ticked(&value);
            *field || matches!(&*value, "false" | "off" | "0")
        })?;
    }
    fill("consent", &mut |name| {
        let consent = Consent::from_name(&name);
        form.consent = consent.unwrap_or_default();
        consent.is_some()
    })?;
    fill("view", &mut |view| {
        form.is_repeat_view = view == "repeat";
        matches!(&*view, "repeat" | "first")
    })?;
    form.runs = query(parts, "runs")?.unwrap_or(form.runs);
    form.url = query(parts, "url")?.unwrap_or_default();
    form.compare_with = query(parts, "compareWith")?.unwrap_or_default();
    form.session = query(parts, "session")?.unwrap_or_default();
    form.preparing = prefilled_preparing(parts)?;
    Ok((form, unknown))
}

/// Returns what the query tells to do before the visit, and the flow after it: `preparing`, or the
/// members of its JSON one by one. Whether they are valid is checked when the audit is started.
fn prefilled_preparing(parts: &Parts) -> Result<String, Failure> {
    if let Some(preparing) = query(parts, "preparing")? {
        return Ok(preparing);
    }
    let mut members = Vec::new();
    for name in ["state", "steps", "expect", "flow"] {
        if let Some(json) = query(parts, name)?.filter(|json| !json.is_empty()) {
            members.push(format!("  \"{name}\": {json}"));
        }
    }
    Ok(if members.is_empty() {
        String::new()
    } else {
        format!("{{\n{}\n}}", members.join(",\n"))
    })
}

/// Returns the last choice if the catalog still has it, and defaults otherwise.
fn last_choice(service: &SharedState, headers: &HeaderMap) -> StartForm {
    let catalog = &service.app.catalog;
    let choice = Cookies::of(service, headers).get(CHOICE_COOKIE);
    let mut ids = choice.unwrap_or_default().split('.');
    let mut pick = |exists: &dyn Fn(&str) -> bool, default: &str| {
        let id = ids.next().filter(|id| exists(id)).unwrap_or(default);
        id.to_owned()
    };
    StartForm {
        url: String::new(),
        compare_with: String::new(),
        device: pick(&|id| catalog.device(id).is_some(), "mobile"),
        network: pick(&|id| catalog.network(id).is_some(), ""),
        location: pick(&|id| catalog.location(id).is_some(), "us-tx"),
        runs: "1".to_owned(),
        quick: false,
        record: false,
        consent: Consent::None,
        is_repeat_view: false,
        interactions: false,
        profile: false,
        allow_error_status: false,
        session: String::new(),
        preparing: String::new(),
    }
}

/// Adds a scheme to a URL that has none, such as `example.com` or `localhost:3000`. Nothing else is
/// changed, so that the text that is stored, shown and visited is the same.
fn completed_url(text: &str) -> String {
    match with_scheme(text) {
        Some(url) => format!("{}://{text}", url.scheme()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_added_and_nothing_else_is_changed() {
        for (text, url) in [
            ("example.com/a b", "https://example.com/a b"),
            ("localhost:3000", "http://localhost:3000"),
            ("http://example.com", "http://example.com"),
            ("shop", "shop"),
            ("", ""),
        ] {
            assert_eq!(completed_url(text), url);
        }
    }
}
