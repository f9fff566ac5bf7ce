//! The static files of pages: the stylesheet and script of reports, followed by those of the other
//! pages, and the icon.

use std::sync::LazyLock;

use axum::{
    extract::{Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_report::html;
use sha2::{Digest, Sha256};

use super::parts as page_parts;
use crate::{errors::Failure, state::SharedState};

static STYLESHEET: LazyLock<String> =
    LazyLock::new(|| [html::STYLESHEET, include_str!("pages.css")].concat());
static SCRIPT: LazyLock<String> =
    LazyLock::new(|| [html::SCRIPT, include_str!("progress/progress.js")].concat());

/// A static file that pages load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asset {
    Stylesheet,
    Script,
    Icon,
}

impl Asset {
    const ALL: [Self; 3] = [Self::Stylesheet, Self::Script, Self::Icon];

    /// The content of the file.
    fn text(self) -> &'static str {
        match self {
            Self::Stylesheet => &STYLESHEET,
            Self::Script => &SCRIPT,
            Self::Icon => html::ICON,
        }
    }

    /// The value of the `Content-Type` header.
    fn media_type(self) -> &'static str {
        match self {
            Self::Stylesheet => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Icon => "image/svg+xml",
        }
    }

    /// The path of the file. It contains a hash of the content, so that caches may keep it forever.
    pub(crate) fn path(self) -> String {
        format!("/assets/{}", self.file())
    }

    fn file(self) -> String {
        let extension = match self {
            Self::Stylesheet => "css",
            Self::Script => "js",
            Self::Icon => "svg",
        };
        let digest = Sha256::digest(self.text());
        let hash = hex::encode(&digest[..6]);
        format!("plumbline-{hash}.{extension}")
    }

    /// Returns the asset with this file name.
    fn with_file(file: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|asset| asset.file() == file)
    }
}

/// `GET /favicon.ico`: the icon, for clients that request it without reading the page.
pub(crate) async fn favicon() -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(Asset::Icon.media_type()),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=86400"),
        ),
    ];
    (headers, Asset::Icon.text()).into_response()
}

/// The path of the operator's logo.
pub(super) const LOGO_PATH: &str = "/logo";

/// `GET /logo`: the operator's logo, if there is one.
pub(crate) async fn logo(State(service): State<SharedState>) -> Result<Response, Failure> {
    let logo = page_parts(&service)?.logo.as_ref();
    let logo = logo.ok_or(Failure::NotFound)?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(logo.media_type()),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=3600"),
        ),
    ];
    Ok((headers, logo.bytes().to_vec()).into_response())
}

/// `GET /assets/{file}`: a static file. Its name changes with its content, so it may be cached for
/// ever.
pub(crate) async fn asset(Path(file): Path<String>) -> Result<Response, Failure> {
    let asset = Asset::with_file(&file).ok_or(Failure::NotFound)?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(asset.media_type()),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
    ];
    Ok((headers, asset.text()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_returned_for_its_own_path() {
        for expected in Asset::ALL {
            let path = expected.path();
            let file = path.strip_prefix("/assets/").unwrap();
            assert_eq!(Asset::with_file(file), Some(expected));
        }
        assert_eq!(Asset::with_file("plumbline-000000000000.css"), None);
    }
}
