//! The start page: sign in, start an audit, list recent ones.

use askama::Template;

use super::HtmlError;
use super::history::{AuditRow, PastAudit, audit_rows};
use super::page_frame::PageFrame;

/// The content of the start page.
pub struct StartPage<'a> {
    pub page_frame: PageFrame,
    pub devices: Vec<SelectOption<'a>>,
    pub networks: Vec<SelectOption<'a>>,
    pub locations: Vec<SelectOption<'a>>,
    pub form: StartForm,
    /// The path to open after signing in.
    pub to: &'a str,
    pub credits: Option<i64>,
    /// Recent audits, newest first.
    pub past: Vec<PastAudit>,
    /// The error of the last attempt to start an audit or sign in.
    pub problem: Option<&'a str>,
}

/// An option of a select element, such as a device.
pub struct SelectOption<'a> {
    pub id: &'a str,
    pub name: &'a str,
}

/// The values of the form.
#[derive(Debug, Clone, Default)]
pub struct StartForm {
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartTemplate<'a> {
    page_frame: &'a PageFrame,
    devices: &'a [SelectOption<'a>],
    networks: &'a [SelectOption<'a>],
    locations: &'a [SelectOption<'a>],
    form: &'a StartForm,
    to: &'a str,
    credits: Option<i64>,
    past: Vec<AuditRow>,
    problem: Option<&'a str>,
}

/// Renders the start page.
pub fn start_page(page: &StartPage<'_>) -> Result<String, HtmlError> {
    let template = StartTemplate {
        page_frame: &page.page_frame,
        devices: &page.devices,
        networks: &page.networks,
        locations: &page.locations,
        form: &page.form,
        to: page.to,
        credits: page.credits,
        past: audit_rows(&page.past),
        problem: page.problem,
    };
    Ok(template.render()?)
}
