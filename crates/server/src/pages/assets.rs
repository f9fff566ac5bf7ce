use axum::{
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_report::html;

use crate::errors::Failure;

/// `GET /assets/{file}`. The name changes with the content: it may be kept for ever.
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
