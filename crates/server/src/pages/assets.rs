//! Static files of pages.

use axum::{
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_report::html;

use crate::errors::Failure;

/// `GET /assets/{file}`: a static file. Its name changes with its content, so it may be cached for
/// ever.
pub(crate) async fn asset(Path(file): Path<String>) -> Result<Response, Failure> {
    let asset = html::asset(&file).ok_or(Failure::NotFound)?;
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
