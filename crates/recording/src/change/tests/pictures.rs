//! Tests of changes of pictures.

use super::*;
use crate::picture::testing::{jpeg, photograph};

/// Returns an exchange with a JPEG that Chrome shows.
fn picture_exchange(url: &str, width: usize, quality: u8) -> RecordedExchange {
    let mut exchange = exchange(url, "image/jpeg", "");
    let jpeg = jpeg(width, quality);
    exchange.response.as_mut().unwrap().set_body(jpeg.into());
    exchange
}

#[test]
fn pictures_are_recompressed_and_resized() {
    let mut recording = page(
        "<img src=a.jpg>",
        &[("https://first.test/c.jpg", "image/jpeg", "GIF")],
    );
    let mut exchanges = recording.exchanges.split_off(1);
    exchanges.push(picture_exchange("https://first.test/a.jpg", 200, 90));
    exchanges.push(picture_exchange("https://first.test/b.jpg", 40, 20));
    recording.exchanges.extend(exchanges);
    let small = changed(
        &recording,
        json!({"type": "recompressImages", "quality": 50}),
    );
    assert_eq!(small.effects[0].exchanges, 1);
    let bytes =
        |changed: &Changed, index: usize| response(&changed.recording.exchanges[index]).body.len();
    let before = response(&recording.exchanges[2]).body.len();
    assert!(
        bytes(&small, 2) * 10 < before * 8,
        "{} of {before}",
        bytes(&small, 2)
    );
    let narrow = changed(&recording, json!({"type": "resizeImages", "maxWidth": 100}));
    assert_eq!(narrow.effects[0].exchanges, 1);
    assert!(bytes(&narrow, 2) * 10 < before * 5);
    let length = bytes(&narrow, 2).to_string();
    let resized = response(&narrow.recording.exchanges[2]);
    assert_eq!(resized.header("content-length"), Some(length.as_str()));
    for (value, message) in [
        (
            json!({"type": "recompressImages", "quality": 0}),
            "between 1 and 100",
        ),
        (json!({"type": "resizeImages", "maxWidth": 0}), "at least 1"),
        (
            json!({"type": "resizeImages", "maxWidth": 4000}),
            "affects nothing",
        ),
    ] {
        assert!(error(&recording, value).contains(message));
    }
    recording.exchanges[2]
        .response
        .as_mut()
        .unwrap()
        .set_body((&b"\xff\xd8\xff\xe0"[..]).into());
    let damaged = json!({"type": "recompressImages", "quality": 50, "pattern": "a.jpg"});
    assert!(error(&recording, damaged).contains("cannot be decoded as JPEG"));
}

/// Returns an exchange with a file of any type.
fn file_exchange(url: &str, content_type: &str, file: &[u8]) -> RecordedExchange {
    let mut exchange = exchange(url, content_type, "");
    let response = exchange.response.as_mut().unwrap();
    response.set_body(file.to_vec().into());
    exchange
}

/// Returns the start of a WebP picture with a width of 258.
fn webp() -> &'static [u8] {
    b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x02\x01\x10\0"
}

/// Returns a page with a PNG of 200 pixels by 100 and pictures of other formats.
fn page_with_pictures() -> Recording {
    let mut recording = page("<img src=a.png>", &[]);
    let png = photograph(200, 100);
    recording.exchanges.extend([
        file_exchange("https://first.test/a.png", "image/png", &png),
        file_exchange("https://first.test/b.webp", "image/webp", webp()),
        file_exchange(
            "https://first.test/c.gif",
            "image/gif",
            b"GIF89a\x10\0\x01\0",
        ),
    ]);
    recording
}

#[test]
fn a_png_is_resized_and_stays_a_png() {
    let recording = page_with_pictures();
    let narrow = changed(&recording, json!({"type": "resizeImages", "maxWidth": 100}));
    assert_eq!(narrow.effects[0].exchanges, 1);
    let [before, after] = [&recording, &narrow.recording].map(|it| response(&it.exchanges[1]));
    assert_eq!(crate::picture::size(&after.body), Some((100, 50)));
    assert_eq!(after.header("content-type"), Some("image/png"));
    let length = after.body.len().to_string();
    assert_eq!(after.header("content-length"), Some(length.as_str()));
    assert!(after.body.len() * 2 < before.body.len());
}

#[test]
fn a_png_that_is_recompressed_has_fewer_bytes_or_stays() {
    let recording = page_with_pictures();
    let recompress = json!({"type": "recompressImages", "quality": 50});
    let small = changed(&recording, recompress.clone());
    assert_eq!(small.effects[0].exchanges, 1);
    let [before, after] = [&recording, &small.recording].map(|it| response(&it.exchanges[1]));
    assert_eq!(crate::picture::size(&after.body), Some((200, 100)));
    assert!(after.body.len() < before.body.len());
    assert!(error(&small.recording, recompress).contains("affects nothing"));
}

#[test]
fn pictures_that_cannot_be_changed_are_noted() {
    let recording = page_with_pictures();
    let note = |name: &str, format: &str| {
        format!(
            "https://first.test/{name} is not changed, since only JPEG and PNG are encoded again, \
             and it is {format}."
        )
    };
    let small = changed(
        &recording,
        json!({"type": "recompressImages", "quality": 50}),
    );
    assert_eq!(
        small.effects[0].notes,
        [note("b.webp", "WebP"), note("c.gif", "GIF")]
    );
    // The GIF is narrow.
    let narrow = changed(&recording, json!({"type": "resizeImages", "maxWidth": 100}));
    assert_eq!(narrow.effects[0].notes, [note("b.webp", "WebP")]);
}

#[test]
fn a_png_that_would_have_more_bytes_with_fewer_pixels_stays() {
    // Stripes of two colours are repeated, and have many colours between them when they shrink.
    let mut recording = page("<img src=a.png>", &[]);
    let png = crate::picture::testing::stripes(300, 200);
    recording
        .exchanges
        .push(file_exchange("https://first.test/a.png", "image/png", &png));
    let message = error(&recording, json!({"type": "resizeImages", "maxWidth": 290}));
    assert!(message.contains("more bytes"), "{message}");
}
