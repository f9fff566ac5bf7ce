//! Shared links to comparisons and histories.

use axum::{extract::State, response::Response};
use plumbline_store::SharedPage;

use super::form::Form;
use super::page_rate::Guest;
use super::report::{NO_INDEX, ROBOTS_TAG, picture_response};
use super::session::{Visitor, see_other};
use super::sharing::{Origin, SharedLink, Sharing, parse_days};
use super::{compare, history, parts as page_parts};
use crate::{
    api::{PathId, PathIds},
    errors::Failure,
    share::new_share,
    state::SharedState,
};

/// A page that can be shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// The comparison of two audits, by their audit ids.
    Comparison { before: String, after: String },
    /// The history of a URL.
    History { url: String },
}

const COMPARISON: &str = "compare/";
const HISTORY: &str = "history/";

impl Subject {
    /// Returns the text under which the store keeps the page.
    fn to_text(&self) -> String {
        match self {
            Self::Comparison { before, after } => format!("{COMPARISON}{before}/{after}"),
            Self::History { url } => format!("{HISTORY}{url}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        if let Some(url) = text.strip_prefix(HISTORY) {
            let url = url.to_owned();
            return Some(Self::History { url });
        }
        let (before, after) = text.strip_prefix(COMPARISON)?.split_once('/')?;
        Some(Self::Comparison {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }
}

impl Subject {
    /// Returns the form by which this page of an account is shared.
    pub(super) async fn sharing(
        &self,
        service: &SharedState,
        account_id: &str,
        origin: &Origin,
    ) -> Result<Sharing, Failure> {
        let now = (service.app.clock)();
        let store = &page_parts(service)?.store;
        let share = store.page_share(account_id, &self.to_text(), now).await?;
        let (action, fields) = match self.clone() {
            Self::Comparison { before, after } => {
                ("/compare/share", vec![("before", before), ("after", after)])
            }
            Self::History { url } => ("/history/share", vec![("url", url)]),
        };
        Ok(Sharing {
            action: action.to_owned(),
            fields,
            link: share.map(|share| SharedLink::new(origin, "/shared-pages", &share)),
        })
    }
}

/// `POST /compare/share` with `before`, `after` and `share=on` or `share=off`.
pub(crate) async fn share_comparison(
    State(service): State<SharedState>,
    visitor: Visitor,
    mut form: Form,
) -> Result<Response, Failure> {
    let (before, after) = (form.take("before"), form.take("after"));
    for id in [&before, &after] {
        let stored = service.app.store.report(&visitor.account_id, id).await?;
        stored.ok_or(Failure::NotFound)?;
    }
    let back = format!("/compare?before={before}&after={after}");
    let subject = Subject::Comparison { before, after };
    store_share(&service, &visitor, &subject, form).await?;
    Ok(see_other(&back))
}

/// `POST /history/share` with `url` and `share=on` or `share=off`.
pub(crate) async fn share_history(
    State(service): State<SharedState>,
    visitor: Visitor,
    mut form: Form,
) -> Result<Response, Failure> {
    let url = form.take("url");
    let store = &page_parts(&service)?.store;
    let audits = store.recent(&visitor.account_id, Some(&url), 1).await?;
    if audits.is_empty() {
        return Err(Failure::NotFound);
    }
    let encoded: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
    store_share(&service, &visitor, &Subject::History { url }, form).await?;
    Ok(see_other(&format!("/history?url={encoded}")))
}

async fn store_share(
    service: &SharedState,
    visitor: &Visitor,
    subject: &Subject,
    mut form: Form,
) -> Result<(), Failure> {
    let now = (service.app.clock)();
    let share = match form.take("share").as_str() {
        "on" => Some(new_share(parse_days(&form.take("days"))?, now)?),
        "off" => None,
        _ => {
            return Err(Failure::InvalidBody("`share` is neither on nor off".into()));
        }
    };
    let store = &page_parts(service)?.store;
    let page = subject.to_text();
    store
        .share_page(&visitor.account_id, &page, share, now)
        .await?;
    Ok(())
}

/// `GET /shared-pages/{token}`: a comparison or a history, for anyone with the link.
pub(crate) async fn page(
    State(service): State<SharedState>,
    _guest: Guest,
    PathId(token): PathId,
) -> Result<Response, Failure> {
    let (account_id, subject) = shared_subject(&service, &token).await?;
    let mut page = match subject {
        Subject::Comparison { before, after } => {
            let ids = [before.as_str(), after.as_str()];
            compare::shared(&service, &account_id, ids, &token).await?
        }
        Subject::History { url } => history::shared(&service, &account_id, url).await?,
    };
    page.headers_mut().insert(ROBOTS_TAG, NO_INDEX);
    Ok(page)
}

async fn shared_subject(service: &SharedState, token: &str) -> Result<(String, Subject), Failure> {
    let now = (service.app.clock)();
    let shared = page_parts(service)?.store.shared_page(token, now).await?;
    let SharedPage { account_id, page } = shared.ok_or(Failure::NotFound)?;
    let subject = Subject::from_text(&page).ok_or(Failure::NotFound)?;
    Ok((account_id, subject))
}

/// `GET /shared-pages/{token}/before/{picture}`: a picture of the first audit of a comparison.
pub(crate) async fn picture_before(
    State(service): State<SharedState>,
    _guest: Guest,
    PathIds((token, file)): PathIds,
) -> Result<Response, Failure> {
    picture(&service, &token, &file, |before, _| before).await
}

/// `GET /shared-pages/{token}/after/{picture}`: a picture of the second audit of a comparison.
pub(crate) async fn picture_after(
    State(service): State<SharedState>,
    _guest: Guest,
    PathIds((token, file)): PathIds,
) -> Result<Response, Failure> {
    picture(&service, &token, &file, |_, after| after).await
}

async fn picture(
    service: &SharedState,
    token: &str,
    file: &str,
    side: fn(String, String) -> String,
) -> Result<Response, Failure> {
    let (account_id, subject) = shared_subject(service, token).await?;
    let Subject::Comparison { before, after } = subject else {
        return Err(Failure::NotFound);
    };
    let id = side(before, after);
    let stored = service.app.store.report(&account_id, &id).await?;
    picture_response(service, &stored.ok_or(Failure::NotFound)?, file).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_as_it_was_written() {
        let comparison = Subject::Comparison {
            before: "aud_1".to_owned(),
            after: "aud_2".to_owned(),
        };
        let history = Subject::History {
            url: "https://example.com/a/b?c".to_owned(),
        };
        for subject in [comparison, history] {
            assert_eq!(Subject::from_text(&subject.to_text()), Some(subject));
        }
        assert_eq!(Subject::from_text("compare/only-one"), None);
    }
}
