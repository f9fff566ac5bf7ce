//! The report page: access to it, and its pictures.

use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use plumbline_bundle::Encoding;
use plumbline_model::media::{self, FullPageScreenshot, Picture, ReportMedia};
use plumbline_server::Logo;
use plumbline_store::{BlobPart, Blobs, FileBlobs};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    exports::assert_animated,
    rig::{HttpRequest, Rig, failure, get},
    visitor::{assert_is_page, completed, form, report, sign_in},
};

#[tokio::test]
async fn a_report_is_private_until_it_is_shared() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let path = format!("/reports/{id}");
    let signed_out = rig.browse(&get(&path)).await;
    assert_eq!(signed_out.status, 303);
    let to = signed_out.header("location").unwrap();
    assert_eq!(to, format!("/?to=%2Freports%2F{id}"));

    let stranger = rig.new_account(1).await;
    let stranger = sign_in(&rig, &rig.new_key(&stranger, None).await).await;
    let share = |on: &str, cookie: &str| {
        form(&format!("{path}/share"), &format!("share={on}")).header("Cookie", cookie)
    };
    for request in [
        get(&path).header("Cookie", &stranger),
        share("on", &stranger),
    ] {
        let reply = rig.browse(&request).await;
        assert_eq!(reply.status, 404);
        assert_is_page(&reply);
    }

    let owner = sign_in(&rig, &rig.key).await;
    assert_eq!(rig.browse(&share("on", &owner)).await.status, 303);
    let page = rig.browse(&get(&path).header("Cookie", &owner)).await;
    let link = page.text().split("href=\"/shared/").nth(1).unwrap();
    let link = format!("/shared/{}", link.split('"').next().unwrap());
    let (_, field) = page
        .text()
        .split_once(r#"class="js-link" readonly value="http://"#)
        .unwrap();
    let (address, rest) = field.split_once('"').unwrap();
    assert!(address.ends_with(&link), "{address}");
    let (attributes, _) = rest.split_once('>').unwrap();
    assert!(
        !attributes.contains("hidden"),
        "shown without a script: {attributes}"
    );
    let shared = rig.browse(&get(&link)).await;
    assert_eq!(shared.status, 200);
    assert!(shared.text().contains("Performance: 91 of 100"));
    assert!(!shared.text().contains("Stop sharing"));

    assert_eq!(rig.browse(&share("off", &owner)).await.status, 303);
    assert_eq!(rig.browse(&get(&link)).await.status, 404);
    assert_eq!(rig.browse(&share("nonsense", &owner)).await.status, 400);
}

/// Returns a service with a completed audit whose evidence and report media are stored, and the
/// directory of the evidence.
async fn with_evidence() -> (Rig, String, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let bundles = FileBlobs::open(directory.path()).unwrap();
    let app_bundles = bundles.clone();
    let rig = Rig::with_pages_and(|app| app.bundles = Some(Arc::new(app_bundles))).await;
    let id = completed(&rig).await;
    bundles.put(&format!("{id}-1"), b"evidence").unwrap();
    rig.put_blob("exhibits", &id, SMALL_PAGE);
    (rig, id, directory)
}

#[tokio::test]
async fn only_formats_that_the_audit_has_data_for_are_offered() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let measured = completed(&rig).await;
    rig.start().await;
    let lease = rig.lease().await;
    let mut failed = report();
    failed["metrics"] = Value::Null;
    failed["error"] = json!({ "code": "HTTP_ERROR", "message": "The server answered 404." });
    rig.finish(&lease, failed, None).await;
    for (id, has_summary) in [(measured, true), (lease.audit_id, false)] {
        let path = format!("/reports/{id}");
        let page = rig.browse(&get(&path).header("Cookie", &cookie)).await;
        let text = page.text();
        for format in ["har", "trace", "profile", "video"] {
            assert!(
                !text.contains(&format!("{path}/export/{format}")),
                "{format}"
            );
        }
        for format in ["json", "html"] {
            assert!(
                text.contains(&format!("{path}/export/{format}")),
                "{format}"
            );
        }
        assert_eq!(text.contains("Print summary"), has_summary);
    }
}

#[tokio::test]
async fn a_report_can_be_downloaded_by_its_owner_and_by_those_with_the_link() {
    let (rig, id, _directory) = with_evidence().await;
    let path = format!("/reports/{id}");
    let owner = sign_in(&rig, &rig.key).await;
    let share = form(&format!("{path}/share"), "share=on").header("Cookie", &owner);
    assert_eq!(rig.browse(&share).await.status, 303);
    let page = rig.browse(&get(&path).header("Cookie", &owner)).await;
    assert_eq!(page.header("x-robots-tag"), None);
    let link = page.text().split("href=\"/shared/").nth(1).unwrap();
    let link = format!("/shared/{}", link.split('"').next().unwrap());
    let shared = rig.browse(&get(&link)).await;
    assert_eq!(shared.header("x-robots-tag"), Some("noindex"));
    assert!(
        shared
            .text()
            .contains(r#"<meta name="robots" content="noindex">"#)
    );
    for format in [
        "json",
        "lighthouse",
        "har",
        "csv",
        "junit",
        "trace",
        "html",
        "video",
    ] {
        for (page, base) in [(&page, &path), (&shared, &link)] {
            let href = format!(r#"href="{base}/export/{format}" download"#);
            assert!(page.text().contains(&href), "{href}");
        }
    }
    let file = |base: &str, format: &str| get(&format!("{base}/export/{format}"));
    for format in ["json", "html", "csv"] {
        let of_owner = rig
            .browse(&file(&path, format).header("Cookie", &owner))
            .await;
        assert_eq!(of_owner.status, 200, "{format}");
        let disposition = of_owner.header("content-disposition").unwrap();
        assert!(disposition.starts_with("attachment"), "{disposition}");
        let of_guest = rig.browse(&file(&link, format)).await;
        assert_eq!((of_guest.status, of_guest.text()), (200, of_owner.text()));
        assert_eq!(of_guest.header("x-robots-tag"), Some("noindex"));
        assert_eq!(rig.browse(&file(&path, format)).await.status, 303);
    }
    assert_eq!(rig.browse(&file(&link, "pdf")).await.status, 404);
    let stopped = form(&format!("{path}/share"), "share=off").header("Cookie", &owner);
    assert_eq!(rig.browse(&stopped).await.status, 303);
    assert_eq!(rig.browse(&file(&link, "json")).await.status, 404);
}

#[tokio::test]
async fn an_expired_link_is_not_found() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let owner = sign_in(&rig, &rig.key).await;
    let path = format!("/reports/{id}");
    let share = |days: &str| {
        let share = form(&format!("{path}/share"), &format!("share=on&days={days}"));
        share.header("Cookie", &owner)
    };
    for wrong in ["0", "-1", "367", "1.5", "never"] {
        let refused = rig.browse(&share(wrong)).await;
        assert_eq!(refused.status, 406, "{wrong}");
        let text = refused.text();
        assert!(
            text.contains("The number of days is between 1 and 366."),
            "{text}"
        );
    }
    let link = async || {
        let page = rig.browse(&get(&path).header("Cookie", &owner)).await;
        let text = page.text().to_owned();
        let token = text.split("href=\"/shared/").nth(1)?.split('"').next()?;
        Some((format!("/shared/{token}"), text))
    };
    assert_eq!(rig.browse(&share("7")).await.status, 303);
    let (seven_days, page) = link().await.unwrap();
    assert!(page.contains("until "), "{page}");
    let opens = async |link: &str| rig.browse(&get(link)).await.status;
    let picture = format!("{seven_days}/final");
    rig.clock.fetch_add(7 * DAY_MS - 1, Ordering::SeqCst);
    assert_eq!(opens(&seven_days).await, 200);
    rig.clock.fetch_add(1, Ordering::SeqCst);
    assert_eq!(opens(&seven_days).await, 404);
    assert_eq!(opens(&picture).await, 404);
    assert_eq!(link().await, None, "the owner sees the same");

    assert_eq!(rig.browse(&share("")).await.status, 303);
    let (endless, page) = link().await.unwrap();
    assert!(!page.contains("until "), "{page}");
    // The owner's session has expired by then, the link has not.
    rig.clock.fetch_add(3000 * DAY_MS, Ordering::SeqCst);
    assert_eq!(opens(&endless).await, 200);
}

#[tokio::test]
async fn the_pictures_of_a_report_have_the_same_access_as_the_report() {
    let picture = |data: &str| Picture {
        mime_type: "image/webp".to_owned(),
        width_px: 4,
        height_px: 4,
        data: data.to_owned(),
    };
    let media = ReportMedia {
        format: media::FORMAT,
        screenshot: Some(picture("Zmlyc3Q=")),
        full_page: Some(FullPageScreenshot {
            picture: picture("d2hvbGU="),
            ..FullPageScreenshot::default()
        }),
        ..ReportMedia::default()
    };
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    rig.put_blob("exhibits", &id, &media.pack().unwrap());
    let owner = sign_in(&rig, &rig.key).await;
    let see = |file: &str| get(&format!("/reports/{id}/{file}"));
    for (file, bytes) in [("final", "first"), ("whole", "whole")] {
        let reply = rig.browse(&see(file).header("Cookie", &owner)).await;
        assert_eq!((reply.status, reply.text()), (200, bytes));
        assert_eq!(reply.header("content-type"), Some("image/webp"));
        let cache_control = reply.header("cache-control").unwrap();
        assert!(cache_control.starts_with("private"), "{cache_control}");
        assert_eq!(
            rig.browse(&see(file)).await.status,
            303,
            "not without a session"
        );
    }
    let missing = rig.browse(&see("frame-0").header("Cookie", &owner)).await;
    assert_eq!(missing.status, 404);
}

/// Returns Base64 that does not become smaller when it is packed.
fn noise(seed: u32) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed;
    let symbols = (0..200_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(ALPHABET[(state >> 26) as usize])
    });
    symbols.collect()
}

#[tokio::test]
async fn a_picture_is_read_without_the_others_and_from_media_of_earlier_versions() {
    let frame = |seed: u32| Picture {
        data: noise(seed),
        ..Picture::default()
    };
    let media = ReportMedia {
        format: media::FORMAT,
        pictures: vec![frame(1), frame(2), frame(3)],
        ..ReportMedia::default()
    };
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let owner = sign_in(&rig, &rig.key).await;
    let see = |path: &str| get(&format!("/reports/{id}{path}")).header("Cookie", &owner);
    let old = media.pack_as(Encoding::GzipJson).unwrap();
    rig.put_blob("exhibits", &id, &old);
    let before = rig.browse(&see("/frame-1")).await;
    assert_eq!((before.status, before.body.len()), (200, 150_000));

    // The first picture is damaged, which only those notice who ask for it.
    let mut packed = media.pack().unwrap();
    packed[1000] ^= 1;
    rig.put_blob("exhibits", &id, &packed);
    let after = rig.browse(&see("/frame-1")).await;
    assert_eq!((after.status, after.body == before.body), (200, true));
    assert_eq!(rig.browse(&see("")).await.status, 200);
    assert_eq!(rig.browse(&see("/frame-0")).await.status, 500);
    assert_eq!(rig.browse(&see("/frame-3")).await.status, 404);
}

/// Report media of an earlier version, with a filmstrip.
const SMALL_PAGE: &[u8] = include_bytes!("../../../model/tests/data/small-page.media.gz");

#[tokio::test]
async fn a_filmstrip_is_played_as_a_video_while_the_evidence_is_no_longer_stored() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let owner = sign_in(&rig, &rig.key).await;
    let path = format!("/reports/{id}");
    let video = format!("{path}/export/video");
    let see = |path: &str| get(path).header("Cookie", &owner);
    assert_eq!(rig.browse(&see(&video)).await.status, 404);
    rig.put_blob("exhibits", &id, SMALL_PAGE);
    let page = rig.browse(&see(&path)).await;
    assert!(page.text().contains(&format!(r#"<img src="{video}" "#)));
    let file = rig.browse(&see(&video)).await;
    assert_eq!(file.header("content-type"), Some("image/png"));
    assert_animated(&file.body);
}

/// A blob storage that fails.
#[derive(Debug)]
struct Unreachable;

#[async_trait::async_trait]
impl Blobs for Unreachable {
    async fn put(&self, _: &str, _: Vec<u8>) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn put_file(&self, _: &str, _: &Path) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn get(&self, _: &str) -> io::Result<Option<Vec<u8>>> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn get_part(&self, _: &str, _: BlobPart) -> io::Result<Option<Vec<u8>>> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn remove_older(&self, _: Duration, _: SystemTime) -> io::Result<u64> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }
}

#[tokio::test]
async fn a_report_is_shown_with_a_notice_while_its_media_cannot_be_reached() {
    let rig = Rig::with_pages_and(|app| {
        app.bundles = Some(Arc::new(Unreachable));
        app.pages.as_mut().unwrap().media = Arc::new(Unreachable);
    })
    .await;
    let cookie = sign_in(&rig, &rig.key).await;
    let id = completed(&rig).await;
    let request = |path: &str| get(path).header("Cookie", &cookie);
    let report = rig.browse(&request(&format!("/reports/{id}"))).await;
    assert_eq!(report.status, 200);
    assert!(report.text().contains("Performance: 91 of 100, good"));
    assert!(report.text().contains("cannot be read at the moment"));
    assert!(!report.text().contains("hidden.internal"));

    let keyed = |path: &str| get(path).key(&rig.key);
    let whole = format!("/v1/audit/report/{id}");
    assert_eq!(rig.send(&keyed(&whole)).await.status, 200);
    let unavailable = failure("Service Unavailable");
    rig.check(
        keyed(&format!("{whole}?format=har")),
        503,
        unavailable.clone(),
    )
    .await;
    // Nothing is deleted partially: the request is refused until all of it can be deleted.
    let delete = HttpRequest::new("DELETE", &format!("/v1/audit/data/{id}")).key(&rig.key);
    rig.check(delete, 503, unavailable).await;
    assert_eq!(rig.send(&keyed(&whole)).await.status, 200);
}

#[tokio::test]
async fn the_operators_logo_is_printed_on_reports() {
    let plain = Rig::with_pages().await;
    assert_eq!(plain.browse(&get("/logo")).await.status, 404);
    let logo = Logo::new(b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec()).unwrap();
    let rig = Rig::with_pages_and(|app| {
        app.pages.as_mut().unwrap().logo = Some(Arc::new(logo));
    })
    .await;
    let id = completed(&rig).await;
    let cookie = sign_in(&rig, &rig.key).await;
    let path = format!("/reports/{id}");
    let page = rig.browse(&get(&path).header("Cookie", &cookie)).await;
    let image = r#"<p class="letterhead"><img src="/logo""#;
    assert!(page.text().contains(image), "{}", page.text());
    let image = rig.browse(&get("/logo")).await;
    assert_eq!(image.header("content-type"), Some("image/svg+xml"));
    let policy = image.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let file = get(&format!("{path}/export/html")).header("Cookie", &cookie);
    let file = rig.browse(&file).await;
    let image = r#"<p class="letterhead"><img src="data:image/svg+xml;base64,PHN2Zy"#;
    assert!(file.text().contains(image), "{}", file.text());
}
