//! Flags for the state of the browser before a visit, and for what its page must show.

use std::path::PathBuf;

use plumbline_model::report::{Consent, View};

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Signed in, consented")]
pub struct StateArgs {
    /// Read the members `state`, `expect`, `steps`, `consent` and `view` of the API, and `flow` for
    /// `audit`, from this file (JSON, or TOML if its name ends with .toml); other flags add to it.
    /// Other users of this machine can see the values of flags: prefer the file
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Set a cookie for the host of the URL; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub cookie: Vec<String>,
    /// Set the cookies of this file, in the format of Netscape that curl writes
    #[arg(long, value_name = "FILE")]
    pub cookie_jar: Option<PathBuf>,
    /// Add a header to requests to the origin of the URL, and to no others; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Send credentials of HTTP basic authentication to the origin of the URL
    #[arg(long, value_name = "USER:PASSWORD")]
    pub basic_auth: Option<String>,
    /// Set an item of localStorage; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub local_storage: Vec<String>,
    /// Set an item of sessionStorage; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub session_storage: Vec<String>,
    /// Run the script in this file before those of the page
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// An origin that gets headers, credentials, storage and the script; repeatable [default: that
    /// of the URL]
    #[arg(long, value_name = "ORIGIN")]
    pub state_origin: Vec<String>,
    /// Append this text to the user agent of the device
    #[arg(long, value_name = "TEXT")]
    pub user_agent_suffix: Option<String>,
    /// Send no request to this host, e.g. ads.example or *.ads.example; repeatable
    #[arg(long, value_name = "HOST")]
    pub block_host: Vec<String>,
    /// Perform the steps in this file before the visit: a list of steps, or a recording of the
    /// Recorder in Chrome DevTools (JSON, or TOML if its name ends with .toml)
    #[arg(long, value_name = "FILE")]
    pub steps: Option<PathBuf>,
    /// Answer the page's consent dialog before the visit: none, accept or reject [default: none]
    #[arg(long, value_name = "CHOICE", value_parser = consent)]
    pub consent: Option<Consent>,
    /// The content of the browser's cache before the visit: first (empty), repeat (the same page
    /// was loaded before), or after=URL (that page was loaded before) [default: first]
    #[arg(long, value_name = "VIEW", value_parser = view)]
    pub view: Option<View>,
    /// Measure the page only if an element matches this CSS selector; otherwise exit code 1
    #[arg(long, value_name = "SELECTOR")]
    pub expect_selector: Option<String>,
    /// Measure the page only if it shows this text
    #[arg(long, value_name = "TEXT")]
    pub expect_text: Option<String>,
    /// Measure the page only if this is its URL after redirects; * stands for any characters
    #[arg(long, value_name = "URL")]
    pub expect_url: Option<String>,
    /// Measure the page only if it has a cookie with this name
    #[arg(long, value_name = "NAME")]
    pub expect_cookie: Option<String>,
}

fn view(text: &str) -> Result<View, &'static str> {
    match text.split_once('=') {
        None if text == "first" => Ok(View::First),
        None if text == "repeat" => Ok(View::Repeat),
        Some(("after", url)) => Ok(View::After(url.to_owned())),
        _ => Err("the view is first, repeat or after=URL"),
    }
}

fn consent(name: &str) -> Result<Consent, &'static str> {
    Consent::from_name(name).ok_or("the consent is none, accept or reject")
}
