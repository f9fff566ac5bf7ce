//! A report's page: who sees it, and what is kept beside it.

use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use plumbline_engine::media::{self, FullPageScreenshot, Picture, ReportMedia};
use plumbline_store::Blobs;

use crate::{
    rig::{Ask, Rig, failure, get},
    visitor::{assert_is_page, completed, form, sign_in},
};

#[tokio::test]
async fn a_report_is_its_owners_until_it_is_shared() {
    let rig = Rig::with_pages().await;
    let id = completed(&rig).await;
    let path = format!("/reports/{id}");
    let nobody = rig.browse(&get(&path)).await;
    assert_eq!(nobody.status, 303);
    let to = nobody.header("location").unwrap();
    assert_eq!(to, format!("/?to=%2Freports%2F{id}"));

    let stranger = rig.new_account(1).await;
    let stranger = sign_in(&rig, &rig.new_key(&stranger, None).await).await;
    let share = |on: &str, cookie: &str| {
        form(&format!("{path}/share"), &format!("share={on}")).header("Cookie", cookie)
    };
    for ask in [
        get(&path).header("Cookie", &stranger),
        share("on", &stranger),
    ] {
        let reply = rig.browse(&ask).await;
        assert_eq!(reply.status, 404);
        assert_is_page(&reply);
    }

    let owner = sign_in(&rig, &rig.key).await;
    assert_eq!(rig.browse(&share("on", &owner)).await.status, 303);
    let page = rig.browse(&get(&path).header("Cookie", &owner)).await;
    let link = page.text().split("href=\"/shared/").nth(1).unwrap();
    let link = format!("/shared/{}", link.split('"').next().unwrap());
    let shared = rig.browse(&get(&link)).await;
    assert_eq!(shared.status, 200);
    assert!(shared.text().contains("Performance: 91 of 100"));
    assert!(!shared.text().contains("Stop sharing"));

    assert_eq!(rig.browse(&share("off", &owner)).await.status, 303);
    assert_eq!(rig.browse(&get(&link)).await.status, 404);
    assert_eq!(rig.browse(&share("nonsense", &owner)).await.status, 400);
}

#[tokio::test]
async fn a_link_that_has_an_end_is_not_found_after_it() {
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
        assert_eq!(rig.browse(&share(wrong)).await.status, 400, "{wrong}");
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
    assert_eq!(link().await, None, "the owner is told the same");

    assert_eq!(rig.browse(&share("")).await.status, 303);
    let (endless, page) = link().await.unwrap();
    assert!(!page.contains("until "), "{page}");
    // The owner's session is over then, the link is not.
    rig.clock.fetch_add(3000 * DAY_MS, Ordering::SeqCst);
    assert_eq!(opens(&endless).await, 200);
}

#[tokio::test]
async fn a_reports_pictures_are_seen_by_who_may_see_the_report() {
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
    rig.keep_blob("exhibits", &id, &media.pack().unwrap());
    let owner = sign_in(&rig, &rig.key).await;
    let see = |file: &str| get(&format!("/reports/{id}/{file}"));
    for (file, bytes) in [("final", "first"), ("whole", "whole")] {
        let seen = rig.browse(&see(file).header("Cookie", &owner)).await;
        assert_eq!((seen.status, seen.text()), (200, bytes));
        assert_eq!(seen.header("content-type"), Some("image/webp"));
        let kept = seen.header("cache-control").unwrap();
        assert!(kept.starts_with("private"), "{kept}");
        assert_eq!(rig.browse(&see(file)).await.status, 303, "nobody sees it");
    }
    let missing = rig.browse(&see("frame-0").header("Cookie", &owner)).await;
    assert_eq!(missing.status, 404);
}

/// A place for blobs that does not answer.
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

    async fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }

    async fn remove_older(&self, _: Duration, _: SystemTime) -> io::Result<u64> {
        Err(io::Error::other("hidden.internal:9000 refused"))
    }
}

#[tokio::test]
async fn a_report_reads_while_what_is_kept_beside_it_cannot_be_reached_and_says_so() {
    let rig = Rig::with_pages_and(|app| {
        app.bundles = Some(Arc::new(Unreachable));
        app.pages.as_mut().unwrap().media = Arc::new(Unreachable);
    })
    .await;
    let cookie = sign_in(&rig, &rig.key).await;
    let id = completed(&rig).await;
    let ask = |path: &str| get(path).header("Cookie", &cookie);
    let report = rig.browse(&ask(&format!("/reports/{id}"))).await;
    assert_eq!(report.status, 200);
    assert!(report.text().contains("Performance: 91 of 100, good"));
    assert!(report.text().contains("cannot be read at the moment"));
    assert!(!report.text().contains("hidden.internal"));

    let keyed = |path: &str| get(path).key(&rig.key);
    let whole = format!("/v1/audit/report/{id}");
    assert_eq!(rig.ask(&keyed(&whole)).await.status, 200);
    let unavailable = failure("Service Unavailable");
    rig.check(
        keyed(&format!("{whole}?format=har")),
        503,
        unavailable.clone(),
    )
    .await;
    // Nothing is half deleted: it is refused until all of it can go.
    let delete = Ask::new("DELETE", &format!("/v1/audit/data/{id}")).key(&rig.key);
    rig.check(delete, 503, unavailable).await;
    assert_eq!(rig.ask(&keyed(&whole)).await.status, 200);
}
