//! The list of all audits of the account, with filters.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use plumbline_catalog::Catalog;
use plumbline_store::{AuditFilter, ListCursor};
use url::form_urlencoded::Serializer;

use super::audit_list::{AuditRow, listed};
use super::form::query;
use super::frame::Page;
use super::session::Visitor;
use crate::{
    api::{
        audits::{STATE_RULE, parse_state},
        cursor,
    },
    errors::Failure,
    query::invalid,
    state::SharedState,
};

/// The number of audits on a page.
const PAGE_SIZE: u32 = 50;
/// The longest value of a filter.
const MAX_FILTER_CHARS: usize = 200;

/// The states that the form offers, by their names in the API.
const STATES: [(&str, &str); 4] = [
    ("", "Any status"),
    ("not-started", "Waiting"),
    ("in-progress", "Running"),
    ("completed", "Completed"),
];

/// The page with a list of audits.
#[derive(Template)]
#[template(path = "audits/audits.html")]
struct AuditsPage {
    catalog: Arc<Catalog>,
    form: FilterForm,
    past: Vec<AuditRow>,
    /// Whether this is not the first page.
    is_later: bool,
    /// The path of the first page with the same filters.
    first: String,
    /// The path of the next page.
    next: Option<String>,
}

/// The values of the filters; those that are not used are empty.
struct FilterForm {
    url: String,
    status: String,
    device: String,
    label: String,
}

impl FilterForm {
    fn read(parts: &Parts) -> Result<Self, Failure> {
        let value = |name| {
            let value = query(parts, name)?.unwrap_or_default();
            if value.chars().count() > MAX_FILTER_CHARS {
                let rule = format!("must have at most {MAX_FILTER_CHARS} characters");
                return Err(invalid(name, &rule));
            }
            Ok(value.trim().to_owned())
        };
        Ok(Self {
            url: value("url")?,
            status: value("status")?,
            device: value("device")?,
            label: value("label")?,
        })
    }

    fn is_empty(&self) -> bool {
        let values = [&self.url, &self.status, &self.device, &self.label];
        values.iter().all(|value| value.is_empty())
    }

    fn filter(&self) -> Result<AuditFilter, Failure> {
        let used = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let state = match self.status.as_str() {
            "" => None,
            name => Some(parse_state(name).ok_or_else(|| invalid("status", STATE_RULE))?),
        };
        Ok(AuditFilter {
            device: used(&self.device),
            label: used(&self.label),
            url_part: used(&self.url),
            state,
            ..AuditFilter::default()
        })
    }

    /// Returns the path of the page with these filters that begins after a cursor.
    fn path(&self, after: Option<ListCursor>) -> String {
        let cursor = after.map(cursor::format).unwrap_or_default();
        let mut query = Serializer::new(String::new());
        for (name, value) in [
            ("url", &self.url),
            ("status", &self.status),
            ("device", &self.device),
            ("label", &self.label),
            ("cursor", &cursor),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        match query.finish() {
            query if query.is_empty() => "/audits".to_owned(),
            query => format!("/audits?{query}"),
        }
    }
}

impl Page for AuditsPage {
    fn title(&self) -> String {
        "Audits · Plumbline".to_owned()
    }

    fn description(&self) -> String {
        "All audits of the account, newest first.".to_owned()
    }
}

/// `GET /audits`: the audits of the account, with the filters `url`, `status`, `device` and
/// `label`.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let form = FilterForm::read(&parts)?;
    let after = match query(&parts, "cursor")? {
        None => None,
        Some(text) => {
            let cursor = cursor::parse(&text);
            Some(cursor.ok_or_else(|| invalid("cursor", cursor::RULE))?)
        }
    };
    let filter = form.filter()?;
    let (past, next) = listed(&service, &visitor.account_id, filter, after, PAGE_SIZE).await?;
    let catalog = Arc::clone(&service.app.catalog);
    let page = AuditsPage {
        past,
        is_later: after.is_some(),
        first: form.path(None),
        next: next.map(|next| form.path(Some(next))),
        catalog,
        form,
    };
    let page_frame = visitor.page_frame();
    let page = service.render_pool.page(move || page_frame.render(&page));
    Ok(page.await?.into_response())
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;
    use plumbline_seam::VisitOptions;
    use plumbline_store::Timestamp;

    use super::super::audit_list::listed_row;
    use super::super::testing::{EVIL, assert_text_only, listed_audit};
    use super::*;

    #[test]
    fn texts_of_audits_and_filters_are_escaped() {
        let catalog = Arc::new(Catalog::load(BUILT_IN).unwrap());
        let audit = listed_audit(EVIL, VisitOptions::default());
        let form = FilterForm {
            url: EVIL.to_owned(),
            status: EVIL.to_owned(),
            device: EVIL.to_owned(),
            label: EVIL.to_owned(),
        };
        let next = form.path(Some(ListCursor {
            accepted_at: Timestamp(1),
            number: 1,
        }));
        assert_text_only(&AuditsPage {
            past: vec![listed_row(&audit, None, &catalog)],
            is_later: true,
            first: form.path(None),
            next: Some(next),
            catalog,
            form,
        });
    }
}
